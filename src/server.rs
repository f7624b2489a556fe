//! The front door: accepts connections on one shard and runs their exchanges one after the other.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use monoio::io::Canceller;
use monoio::net::TcpStream;

use crate::http::body::Framing;
use crate::http::head::{EndFinder, HeadError, read_request};
use crate::limits::{
    ACCEPT_PAUSE, FIRST_REQUEST_GRACE, HANDSHAKE_GRACE, HEAD_READ_BYTES, LINGER, LINGER_BYTES_MAX,
    SWEEP_PERIOD,
};
use crate::mcp::fault::Fault;
use crate::net::listener::Listener;
use crate::net::stream::split;
use crate::proxy::client::{Client, ReceiveError, Unread};
use crate::proxy::gate::Request;
use crate::proxy::respond::{Reception, Refused};
use crate::proxy::state::State;
use crate::proxy::{Outcome, exchange};
use crate::shard::drain::contain;
use crate::shard::wait::Idle;
use crate::telemetry::Event;

/// Accepts connections until `cancel` is used, then those that are already queued.
///
/// # Cancel safety
///
/// Not cancel safe: a connection accepted meanwhile would leak. End it through `cancel`.
pub async fn accept(state: Rc<State>, listener: Listener, canceller: Rc<AcceptEnd>) {
    while !state.is_draining.get() {
        let bound = state.options.limits.connections_max;
        state.connections.fewer_than_unless(bound, || state.is_draining.get()).await;
        // The end of a full shard interrupts no accept, so none may begin.
        if !state.is_draining.get() {
            accept_one(&state, &listener, &canceller).await;
        }
    }
    // Connections that the kernel has completed already would be reset with the socket.
    canceller.end_after_grace();
    while !canceller.is_over() {
        accept_one(&state, &listener, &canceller).await;
    }
    // And one that is completed between the last look and the end of the socket too.
    if let Err(error) = listener.refuse_new() {
        tracing::debug!(%error, "clients go on connecting");
    }
    monoio::time::sleep(HANDSHAKE_GRACE).await;
    while let Ok((stream, peer)) = listener.accept_waiting() {
        start(&state, stream, peer);
    }
    listener.stop();
}

/// Ends the accept that is under way, without losing a connection.
#[derive(Default)]
pub struct AcceptEnd {
    canceller: std::cell::RefCell<Canceller>,
    sweeps_left: std::cell::Cell<Option<u32>>,
}

/// Sweeps between the drain and the end of accepting.
const GRACE_SWEEPS: u32 = 2;

impl AcceptEnd {
    /// Wakes the accept under way, so that it looks around.
    pub fn interrupt(&self) {
        self.canceller.replace_with(|canceller| std::mem::take(canceller).cancel());
    }

    /// To be called at each sweep.
    pub fn sweep(&self) {
        if let Some(left) = self.sweeps_left.get() {
            self.sweeps_left.set(Some(left.saturating_sub(1)));
            self.interrupt();
        }
    }

    fn end_after_grace(&self) {
        self.sweeps_left.set(Some(GRACE_SWEEPS));
    }

    fn is_over(&self) -> bool {
        self.sweeps_left.get() == Some(0)
    }
}

async fn accept_one(state: &Rc<State>, listener: &Listener, end: &AcceptEnd) {
    let handle = end.canceller.borrow().handle();
    match listener.accept(handle).await {
        Ok((stream, peer)) => start(state, stream, peer),
        Err(error) if is_out_of_descriptors(&error) => {
            state.counters.count(Event::AcceptPaused);
            tracing::warn!(%error, "accepting pauses");
            monoio::time::sleep(ACCEPT_PAUSE).await;
        }
        // Cancelled, or the connection was gone before it was taken.
        Err(error) => tracing::debug!(%error, "nothing accepted"),
    }
}

/// Starts to serve one connection.
fn start(state: &Rc<State>, stream: TcpStream, peer: SocketAddr) {
    state.counters.count(Event::Connection);
    let pass = state.connections.enter();
    let state = Rc::clone(state);
    monoio::spawn(async move {
        let _pass = pass;
        if let Err(panic) = contain(serve(&state, stream, peer.ip())).await {
            state.counters.count(Event::Panic);
            tracing::error!(message = panic.message(), "an exchange panicked");
        }
    });
}

/// Accepting would fail again at once, as often as it is tried.
fn is_out_of_descriptors(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let errno = error.raw_os_error().map(Errno::from_i32);
    matches!(errno, Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM))
}

/// Serves one connection to its end.
async fn serve(state: &State, stream: TcpStream, address: std::net::IpAddr) {
    let Ok((reader, writer)) = split(stream) else {
        return;
    };
    let mut client = Client::new(reader, writer, state.waits.register(), address);
    let mut turn = Turn::First;
    loop {
        let outcome = match read_head(state, &mut client, turn).await {
            // Boxed: an exchange is large, and most connections are idle.
            Ok(request) => Box::pin(exchange(state, &mut client, request)).await,
            Err(Some(fault)) => {
                client.unread = Unread::Body;
                let refused = Refused::unknown(fault);
                let sent = Reception::of_nothing().refuse(state, &mut client, &refused).await;
                tracing::debug!(is_sent = sent.is_ok(), "connection refused");
                Outcome::Close
            }
            Err(None) => return,
        };
        if outcome == Outcome::Close {
            break;
        }
        turn = Turn::Later;
    }
    linger(state, &mut client).await;
}

/// Which request of a connection is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The first: it is on its way, or the client would not have connected.
    First,
    /// Another one, if the client has any.
    Later,
}

/// Reads the next head; `None` when the client is done.
async fn read_head(
    state: &State,
    client: &mut Client,
    turn: Turn,
) -> Result<Request, Option<Fault>> {
    let limits = &state.options.limits;
    let idle_deadline = state.clock.deadline(limits.client_idle);
    let mut received = client.receive(idle_deadline, Idle::Yes, HEAD_READ_BYTES).await;
    if received == Err(ReceiveError::Drained) && turn == Turn::First {
        let deadline = state.clock.deadline(FIRST_REQUEST_GRACE);
        received = client.receive(deadline, Idle::No, HEAD_READ_BYTES).await;
    }
    let mut buffer = received.map_err(|_| None)?;
    let deadline = state.clock.deadline(limits.head_timeout);
    let mut finder = EndFinder::default();
    let head_bytes = loop {
        if let Some(bytes) =
            finder.find(&buffer, limits.head_bytes_max).map_err(|error| Some(fault(error)))?
        {
            break bytes;
        }
        match client.receive(deadline, Idle::No, HEAD_READ_BYTES).await {
            Ok(more) => buffer.extend_from_slice(&more),
            Err(ReceiveError::Late) => return Err(Some(Fault::RequestTimeout)),
            Err(ReceiveError::Gone | ReceiveError::Drained) => return Err(None),
        }
    };
    let head = read_request(buffer.get(..head_bytes).unwrap_or_default(), limits)
        .map_err(|error| Some(fault(error)))?;
    client.unread = Unread::Body;
    if head.framing == Framing::None {
        client.unread = Unread::Nothing;
        // Whatever becomes of this request, what follows it is the next one.
        client.inbound.put_back(buffer.split_off(head_bytes));
    }
    Ok(Request { head, buffer })
}

fn fault(error: HeadError) -> Fault {
    match error {
        HeadError::Malformed | HeadError::BareLineFeed | HeadError::Target | HeadError::Host => {
            Fault::HeadMalformed
        }
        HeadError::Length => Fault::BodyFraming,
        HeadError::TooLarge => Fault::HeadTooLarge,
        HeadError::TargetTooLong => Fault::TargetTooLong,
        HeadError::Version => Fault::VersionOfHttpUnsupported,
        HeadError::Nominated => Fault::ConnectionNominates,
        HeadError::Duplicated => Fault::FieldDuplicated,
    }
}

/// Ends a connection so that the client can read the last answer: closing with bytes unread resets
/// it, and the reset overtakes the answer (RFC 9112, section 9.6). A body that nobody wants and
/// requests that were sent early are read and dropped.
async fn linger(state: &State, client: &mut Client) {
    if client.writer.shutdown().await.is_err() {
        return;
    }
    let deadline = state.clock.deadline(LINGER);
    let mut bytes = 0;
    while bytes < LINGER_BYTES_MAX {
        match client.receive(deadline, Idle::No, HEAD_READ_BYTES).await {
            Ok(more) => bytes += more.len(),
            Err(_) => return,
        }
    }
}

/// Looks around at each period for as long as the shard lives.
///
/// # Cancel safety
///
/// Cancel safe.
pub async fn sweep(state: Rc<State>, end: Rc<AcceptEnd>) {
    loop {
        monoio::time::sleep(SWEEP_PERIOD).await;
        state.sweep(crate::shard::clock::now(), crate::shard::clock::wall());
        end.sweep();
    }
}
