//! The pipeline: one exchange from a parsed request to the last byte of its answer.
//!
//! All branching of the pipeline is in this file. Each stage takes the value of the one before and
//! returns a richer one, so leaving a stage out does not compile.

pub mod options;
pub mod held;
pub mod state;
pub mod client;
pub mod gate;
pub mod respond;
pub mod intake;
pub mod guard;
pub mod upload;
pub mod forward;
pub mod relay;

use client::Client;
use gate::{Admission, Request};
use respond::{Halt, Reception};
use state::State;

use crate::http::head::Persistence;
use crate::telemetry::Event;

/// How an exchange ended. Every exchange has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer went out whole; the connection may carry another request.
    Continue,
    /// The connection ends.
    Close,
}

/// Runs one exchange.
///
/// # Cancel safety
///
/// Not cancel safe: the client's connection must be closed.
pub async fn exchange(state: &State, client: &mut Client, request: Request) -> Outcome {
    let reception = Reception::of(state, &request);
    let persistence = match run(state, client, &reception, request).await {
        Ok(persistence) => Ok(persistence),
        // A stage halts only while nothing has been sent; `relay` ends later cuts itself.
        Err(Halt::Refused(refused)) => reception.refuse(state, client, &refused).await,
        Err(Halt::ClientGone) => {
            state.counters.count(Event::ClientGone);
            Ok(Persistence::Close)
        }
    };
    state.counters.count(Event::Exchange);
    match persistence {
        Ok(Persistence::KeepAlive) => Outcome::Continue,
        Ok(Persistence::Close) | Err(_) => Outcome::Close,
    }
}

async fn run(
    state: &State,
    client: &mut Client,
    reception: &Reception,
    request: Request,
) -> Result<Persistence, Halt> {
    let admitted = match gate::admit(state, request).map_err(Halt::fault)? {
        Admission::Forward(admitted) => admitted,
        Admission::Preflight => {
            return reception.allow(state, client).await.map_err(|_| Halt::ClientGone);
        }
    };
    let received = intake::receive(state, client, admitted).await?;
    let mut bound = guard::bind(state, client, received).await?;
    let reply = forward::send(state, client, reception, &mut bound).await?;
    relay::pump(state, client, reception, &bound, reply).await
}
