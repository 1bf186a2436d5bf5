//! Cancelling a legacy call by a message, on whichever replica it runs.

use crate::app::Gateway;
use crate::in_flight::RequestKey;
use crate::protocol::exchange::{McpExchange, McpRequest};
use domain::SessionId;
use executor::Handle;
use mcp::{Era, Id};
use std::sync::Arc;
use std::time::Duration;
use store::{Topic, WakeUp};
use tokio_util::sync::CancellationToken;

/// Calls shorter than this never listen for a cancellation from another replica.
const SHORT: Duration = Duration::from_millis(250);

/// A legacy call of a session that a message can cancel; dropping it ends that.
pub(super) struct CancelRegistration {
    gateway: Arc<Gateway>,
    key: RequestKey,
    watching: tokio::task::JoinHandle<Option<()>>,
}

impl Drop for CancelRegistration {
    fn drop(&mut self) {
        self.gateway.in_flight.remove(&self.key);
        self.watching.abort();
    }
}

/// Makes a call cancellable, if it belongs to a session of the transport.
pub(super) fn register(
    request: &McpRequest<'_>,
    era: Era,
    id: &Id,
    cancel: &CancellationToken,
) -> Option<CancelRegistration> {
    let Handle::Transport(session) = request.handle(era) else { return None };
    let McpExchange { gateway, caller, .. } = &request.exchange;
    let key = RequestKey::new(caller, SessionId::parse(&session).ok()?, id.clone());
    gateway.in_flight.insert(key.clone(), cancel.clone());
    let store = gateway.store.of(&caller.tenant);
    let (cancel, session, request_id) = (cancel.clone(), key.session, topic_id(id));
    // The message may reach another replica; only a call that takes a while is worth listening for it.
    let watching = gateway.tasks.spawn("cancel watch", async move {
        tokio::time::sleep(SHORT).await;
        let mut watch = store.watch();
        loop {
            if let WakeUp::Topic(Topic::Cancel { session: whose, request: which }) = watch.next().await
                && whose == session
                && which == request_id
            {
                cancel.cancel();
                return;
            }
        }
    });
    Some(CancelRegistration { gateway: Arc::clone(gateway), key, watching })
}

/// `notifications/cancelled` of a legacy session: reaches only that session's own request.
pub(super) async fn cancel(exchange: &McpExchange, session: String, request_id: Id) {
    let McpExchange { gateway, caller, snapshot, .. } = exchange;
    let Ok(versioned) = gateway.executor.session(snapshot, caller, &Handle::Transport(session)).await else {
        return;
    };
    let session = versioned.session.id;
    let topic = Topic::Cancel { session, request: topic_id(&request_id) };
    if gateway.in_flight.cancel(&RequestKey::new(caller, session, request_id)) {
        return;
    }
    if let Err(error) = gateway.store.of(&caller.tenant).wake(&topic).await {
        // The call then runs to its deadline, as if the message had been lost on the way.
        tracing::debug!(%error, "a cancellation could not be passed on");
    }
}

/// A request's id in a wake-up.
fn topic_id(id: &Id) -> String {
    match id {
        Id::Text(text) => format!("t{text}"),
        Id::Integer(number) => format!("n{number}"),
    }
}
