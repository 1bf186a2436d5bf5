//! The notices of a legacy session, for as long as the client is there.

use super::exchange::forward_notices;
use super::{Bridge, HostedSession};
use crate::stdio::lines::LineWriter;
use std::sync::Arc;
use std::time::Duration;

/// When a stream is opened again that ended; doubled up to the second figure while it cannot be.
const SOON: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_secs(60);

impl Bridge {
    /// Follows whichever session the client has, until the client is gone.
    pub(super) async fn follow(self: Arc<Bridge>, writer: LineWriter) {
        let mut sessions = self.session.subscribe();
        let stopping = self.tasks.stopping().clone();
        loop {
            // A service that gives no session has no notices.
            let session = sessions.borrow_and_update().clone().filter(|session| session.id.is_some());
            tokio::select! {
                () = stopping.cancelled() => return,
                () = writer.gone() => return,
                changed = sessions.changed() => if changed.is_err() { return },
                () = self.follow_session(session, &writer) => {}
            }
        }
    }

    /// Writes the notices of one session, and opens its stream again whenever that ends.
    async fn follow_session(&self, session: Option<HostedSession>, writer: &LineWriter) {
        let Some(session) = session else { return std::future::pending().await };
        let (mut wait, mut missed) = (SOON, false);
        loop {
            if let Some(stream) = self.open_notices(&session).await {
                // What happened while nobody listened is told as one change.
                if std::mem::replace(&mut missed, true) {
                    writer.send(mcp::frames::list_changed(None)).await;
                }
                wait = SOON;
                forward_notices(stream, writer).await;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LATEST);
        }
    }
}
