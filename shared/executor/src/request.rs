//! One request to use a tool, as a transport hands it in.

use catalog::Progress;
use domain::{Caller, Code, Failure, LoadedToolsets, SessionId};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The two protocol eras differ in what a vanished client means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEra {
    /// The work goes on; only an explicit cancel ends it.
    Legacy,
    /// The request's future is the work: dropped with it.
    Modern,
}

/// How the caller named its session, which decides how a wrong name is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    /// No session.
    None,
    /// By the transport's header or the address: a wrong one ends the transport's session.
    Transport(String),
    /// By `_meta` or an argument: a wrong one is a tool error, so that the model can load again.
    Told(String),
}

/// One request to use a tool.
pub struct CallRequest {
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The tool's name, as told.
    pub tool: String,
    /// Its arguments, as told.
    pub arguments: Map<String, Value>,
    /// The session.
    pub handle: Handle,
    /// What the address itself has loaded, for calls without a session.
    pub selection: Option<LoadedToolsets>,
    /// The era.
    pub era: ClientEra,
    /// Where progress goes.
    pub progress: Progress,
    /// Ends the call on the caller's wish.
    pub cancel: CancellationToken,
    /// How long the caller waits for a person before it is answered with the run alone.
    pub hold: Option<Duration>,
    /// The caller's own key, under which a repeated call finds its run.
    pub idempotency_key: Option<String>,
    /// For the audit.
    pub trace: Option<String>,
    /// The program the caller uses, as it names itself; for the audit, short and printable.
    pub client: Option<String>,
}

pub(crate) fn read_handle(handle: &Handle) -> Result<Option<SessionId>, Failure> {
    match handle {
        Handle::None => Ok(None),
        // A name that cannot be one is answered like one that never was.
        Handle::Transport(text) | Handle::Told(text) => {
            SessionId::parse(text).map(Some).map_err(|_| no_session(handle))
        }
    }
}

pub(crate) fn no_session(handle: &Handle) -> Failure {
    match handle {
        Handle::Transport(_) => Failure::new(Code::SessionNotFound, "no such session").next("open a new session"),
        Handle::Told(_) | Handle::None => Failure::new(Code::SessionExpired, "no live session has this handle")
            .next("call load_toolset again without a session; it gives a new handle"),
    }
}
