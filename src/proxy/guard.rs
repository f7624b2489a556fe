//! The third stage: which pods may take the request (SG-1 to SG-3, RT-2).
//!
//! The guard hangs on the presence of `Mcp-Session-Id` alone, never on the era or on anything else
//! that a client can claim.

use smallvec::SmallVec;

use super::client::Client;
use super::intake::Received;
use super::respond::Halt;
use super::state::State;
use crate::http::field::Known;
use crate::http::head::Method;
use crate::ids::{PodId, SessionKey};
use crate::limits::{MESH_DEADLINE, PODS_TRIED_MAX};
use crate::mcp::fault::Fault;
use crate::mcp::request::{CallKind, Ids};
use crate::mcp::response::Asked;
use crate::session::owner;
use crate::shard::mesh::AskError;
use crate::shard::message::{Answer, Question};

/// A request and the pods that may take it.
#[derive(Debug)]
pub struct Bound {
    /// The request.
    pub received: Received,
    /// Where it may go.
    pub route: Route,
}

/// The pods that may take a request.
#[derive(Debug)]
pub enum Route {
    /// The one that has the session.
    Session(SessionKey, PodId),
    /// Any of these, the first if it can be reached.
    Preferred(SmallVec<[PodId; PODS_TRIED_MAX]>),
}

/// Finds the pods.
///
/// # Errors
///
/// The session is unknown, its owner did not answer in time, or an array would open one.
///
/// # Cancel safety
///
/// Cancel safe.
pub async fn bind(state: &State, client: &Client, received: Received) -> Result<Bound, Halt> {
    let request = &received.admitted.request;
    let refuse = |fault| Halt::by_call(fault, received.call.as_ref());
    let route = match request.value(Known::McpSessionId) {
        None => Route::Preferred(preferred(state, client, &received)),
        Some(id) => {
            let key = SessionKey::new(id).ok_or_else(|| refuse(Fault::SessionUnknown))?;
            match ask(state, client, Question::Find(key.clone())).await {
                Ok(Answer::Found(pod)) => Route::Session(key, pod),
                Ok(Answer::Unknown | Answer::Done) => return Err(refuse(Fault::SessionUnknown)),
                Err(AskError::Full | AskError::Late) => return Err(refuse(Fault::Overloaded)),
            }
        }
    };
    if received.call.as_ref().is_some_and(|call| call.kind == CallKind::OpeningBatch) {
        return Err(refuse(Fault::MessageInvalid));
    }
    Ok(Bound { received, route })
}

/// SG-1: opens the session that the proved answer to `initialize` names, and returns when its owner
/// has noted it: only then may the id leave.
///
/// # Errors
///
/// The fault to answer instead: the id is malformed, or its owner did not answer in time.
///
/// # Cancel safety
///
/// Cancel safe: the session may be noted.
pub async fn open_session(
    state: &State,
    client: &Client,
    bound: &Bound,
    (pod, id): (PodId, Option<&[u8]>),
) -> Result<(), Fault> {
    let is_initialize = bound.received.call.as_ref().is_some_and(|call| call.is_initialize);
    let (true, Some(id)) = (is_initialize, id) else { return Ok(()) };
    let key = SessionKey::new(id).ok_or(Fault::UpstreamMalformed)?;
    let registered = ask(state, client, Question::Register(key, pod)).await;
    registered.map(drop).map_err(|_| Fault::Overloaded)
}

/// SG-6: a DELETE ends the session whatever the pod answered; later use of its id is refused.
///
/// # Cancel safety
///
/// Cancel safe: the session may have ended.
pub async fn close_session(state: &State, client: &Client, bound: &Bound) {
    if let Route::Session(key, _) = &bound.route
        && bound.received.admitted.request.head.method == Method::Delete
        && let Err(error) = ask(state, client, Question::Remove(key.clone())).await
    {
        tracing::warn!(%error, "a session that ended is not forgotten yet");
    }
}

async fn ask(state: &State, client: &Client, question: Question) -> Result<Answer, AskError> {
    let key = match &question {
        Question::Register(key, _) | Question::Find(key) | Question::Remove(key) => key,
    };
    let owner = owner(key, state.mesh.shards_count());
    if owner == state.mesh.own() {
        return Ok(state.answer(question));
    }
    let deadline = state.clock.deadline(MESH_DEADLINE);
    state.mesh.ask(owner, question, &client.wait, deadline).await
}

fn preferred(
    state: &State,
    client: &Client,
    received: &Received,
) -> SmallVec<[PodId; PODS_TRIED_MAX]> {
    let request = &received.admitted.request;
    let affinity = state.options.affinity_field.as_ref().and_then(|name| {
        let is_named = |field: &[u8]| field.eq_ignore_ascii_case(name.as_bytes());
        let fields = &request.head.fields;
        let field = fields.lines().find(|field| is_named(field.name.of(&request.buffer)))?;
        Some(field.value.of(&request.buffer))
    });
    let key = affinity.unwrap_or(client.address_text.as_bytes());
    let pods = state.pods.preference(key);
    pods.take(PODS_TRIED_MAX).collect()
}

impl Bound {
    /// What the answer may answer.
    #[must_use]
    pub fn asked(&self) -> Asked {
        match self.received.call.as_ref().map(|call| &call.ids) {
            Some(Ids::One(id)) => Asked::One(id.clone()),
            Some(Ids::Many(ids)) => Asked::Many(ids.clone()),
            Some(Ids::None) | None => Asked::Anything,
        }
    }
}
