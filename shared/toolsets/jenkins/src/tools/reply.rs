//! What every answer about a server has in common, and times as people read them.

use crate::client::PermittedServer;
use domain::Moment;
use schemars::JsonSchema;
use serde::Serialize;
use target::cursor::Cursors;

/// The fields every answer may have.
pub(super) type JenkinsReplyFields = target::reply::ReplyFields<ServerNote>;

/// Which server was asked, if the call left that open.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ServerNote {
    server: String,
    /// It is the sandbox, and nothing in it is real.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

impl ServerNote {
    /// For an answer made of what the server says: it may hold anybody's text.
    pub(super) fn answer(server: &PermittedServer<'_>, named: bool) -> JenkinsReplyFields {
        let simulated = server.simulated();
        let target = (simulated || !named).then(|| ServerNote { server: server.name().to_owned(), simulated });
        JenkinsReplyFields { target, untrusted: true, ..JenkinsReplyFields::default() }
    }
}

/// A moment as people read it.
pub(super) fn when(millis: u64) -> String {
    Moment::from_millis(millis).to_string()
}

/// How long something took, or takes so far.
pub(super) fn seconds(cursors: &Cursors, running: bool, started_ms: u64, duration_ms: u64) -> u64 {
    if running { cursors.now().since(Moment::from_millis(started_ms)).as_secs() } else { duration_ms / 1000 }
}
