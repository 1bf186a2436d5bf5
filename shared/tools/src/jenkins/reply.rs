//! What every answer about a server has in common, and times as people read them.

use crate::cursor::Cursors;
use domain::Moment;
use jenkins::Server;
use schemars::JsonSchema;
use serde::Serialize;

/// The fields every answer may have.
pub(super) type Common = crate::reply::Common<Where>;

/// Which server was asked, if the call left that open.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Where {
    server: String,
    /// It is the sandbox, and nothing in it is real.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

impl Common {
    /// For an answer made of what the server says: it may hold anybody's text.
    pub(super) fn of(server: &Server<'_>, named: bool) -> Common {
        let simulated = server.simulated();
        let target = (simulated || !named).then(|| Where { server: server.name().to_owned(), simulated });
        Common { target, untrusted: true, ..Common::default() }
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
