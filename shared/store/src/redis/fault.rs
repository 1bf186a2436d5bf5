//! What an error of the Redis client means to us.

use crate::StoreError;
use redis::{ErrorKind, RedisError, ServerError, ServerErrorKind};

pub(super) fn fault(error: RedisError) -> StoreError {
    match code(&error).as_deref() {
        Some("OOM") => return StoreError::Full,
        Some("NOREPLICAS") => {
            // To its callers a store that takes no changes; an operator looks elsewhere for the cause.
            telemetry::metrics::STORE_ERRORS.add(["noreplicas"], 1);
            return StoreError::ReadOnly;
        }
        // MISCONF: the server cannot save and therefore refuses writes.
        Some("READONLY" | "MISCONF") => return StoreError::ReadOnly,
        Some("WRONGTYPE") => return StoreError::Corrupt { what: "a key of another kind" },
        Some(_) | None => {}
    }
    if wrong_node(&error) {
        return StoreError::ReadOnly;
    }
    if error.is_timeout() {
        return StoreError::Timeout;
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "the client's own enum, and open")]
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
            StoreError::Corrupt { what: "an answer of another shape" }
        }
        _ => StoreError::unavailable(error),
    }
}

/// The word the server's answer begins with. A pipeline may hold several failures; the first tells.
pub(super) fn code(error: &RedisError) -> Option<String> {
    let errors = error.clone().into_server_errors()?;
    errors.first().map(|(_, error)| error.code().to_owned())
}

/// Whether the server's answer, or one of its answers, has these words.
pub(super) fn says(error: &RedisError, words: &str) -> bool {
    let errors = error.clone().into_server_errors();
    errors.is_some_and(|errors| errors.iter().any(|(_, e)| e.details().is_some_and(|text| text.contains(words))))
}

/// Whether the server does not know a script (any more), so that nothing of it was done.
pub(super) fn no_script(error: &RedisError) -> bool {
    let codes =
        |errors: std::sync::Arc<[(usize, redis::ServerError)]>| errors.iter().any(|(_, e)| e.code() == "NOSCRIPT");
    error.clone().into_server_errors().is_some_and(codes)
}

/// Whether the node in use is the wrong one, so that only a new connection can help.
pub(super) fn wrong_node(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown))
}

/// What a node says instead of doing what it was told. Nothing of a refused command was done, so it may be sent again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal<'e> {
    /// The slot is served by this node from now on.
    Moved(&'e str),
    /// The slot is on its way to this node: this one command should be sent there.
    Ask(&'e str),
    /// The keys of the command are on both sides of a slot that moves, the cluster is not well, or the node reads its files.
    Wait,
    /// The node follows another one.
    WrongNode,
    /// The node does not know a script.
    NoScript,
}

impl Refusal<'_> {
    pub(super) fn of(error: &ServerError) -> Option<Refusal<'_>> {
        let named = || error.details()?.split_ascii_whitespace().nth(1);
        match error.code() {
            "MOVED" => named().map(Refusal::Moved),
            "ASK" => named().map(Refusal::Ask),
            "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" => Some(Refusal::Wait),
            "READONLY" | "MASTERDOWN" => Some(Refusal::WrongNode),
            "NOSCRIPT" => Some(Refusal::NoScript),
            _ => None,
        }
    }
}
