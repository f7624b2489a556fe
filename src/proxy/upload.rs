//! Sends a request to a pod: in one go when its body is there, piece by piece when it is to come.

use std::future::poll_fn;
use std::io;

use super::client::Inbound;
use super::intake::{Body, Received};
use crate::http::body::{Framing, LAST_CHUNK, write_data};
use crate::limits::{BODY_READ_BYTES, COPIED_ANSWER_BYTES_MAX};
use crate::net::stream::Writer;

/// Why a request did not go out whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadError {
    /// The pod does not read on, or has answered already.
    Pod,
    /// The client went away.
    Client,
    /// The body is malformed.
    Framing,
    /// The body is larger than the limit.
    TooLarge,
}

/// Sends a request whose body is there.
///
/// # Errors
///
/// [`UploadError::Pod`]
///
/// # Cancel safety
///
/// Not cancel safe: the pod's connection must be closed.
pub async fn upload(
    mut head: Vec<u8>,
    received: &mut Received,
    writer: &mut Writer,
    progress: &impl Fn(),
) -> Result<(), UploadError> {
    let pod = |_: io::Error| UploadError::Pod;
    match &mut received.body {
        Body::Gathered(body, _) if COPIED_ANSWER_BYTES_MAX < body.len() => {
            let body = std::mem::take(body);
            writer.send_vectored(vec![head, body], progress).await.map_err(pod)
        }
        body @ (Body::Inline(_) | Body::Gathered(..) | Body::Coming(_)) => {
            head.extend_from_slice(body.bytes(&received.admitted.request));
            writer.send(head).await.map(drop).map_err(pod)
        }
    }
}

/// Sends a request and passes its body on as it comes.
///
/// # Errors
///
/// See [`UploadError`].
///
/// # Cancel safety
///
/// Not cancel safe: both connections must be closed.
pub async fn stream(
    mut out: Vec<u8>,
    received: &mut Received,
    inbound: &mut Inbound,
    writer: &mut Writer,
    bytes_max: u64,
    progress: &impl Fn(),
) -> Result<(), UploadError> {
    let request = &mut received.admitted.request;
    let Body::Coming(decoder) = &mut received.body else { return Ok(()) };
    let framing = request.head.framing;
    let mut input = request.buffer.split_off(request.head.bytes);
    let mut body_bytes = 0;
    loop {
        let mut rest = &input[..];
        while let Some(data) = decoder.next_data(&mut rest).map_err(|_| UploadError::Framing)? {
            write_data(data, framing, &mut out);
            body_bytes += data.len() as u64;
        }
        if bytes_max < body_bytes {
            return Err(UploadError::TooLarge);
        }
        let is_done = decoder.is_done();
        if is_done && framing == Framing::Chunked {
            out.extend_from_slice(LAST_CHUNK);
        }
        if is_done && !rest.is_empty() {
            inbound.put_back(rest.to_vec());
        }
        out = writer.send(out).await.map_err(|_| UploadError::Pod)?;
        out.clear();
        progress();
        if is_done {
            return Ok(());
        }
        let more = poll_fn(|context| inbound.poll_receive(context, BODY_READ_BYTES)).await;
        input = more.ok_or(UploadError::Client)?;
        progress();
    }
}
