//! Listens to Redis for every watcher of this process, on a connection of its own.
//!
//! A reconciler: it compares the channels somebody wants with those it holds and asks for the difference, after every
//! change and after every new connection.

use super::address::NodeAddress;
use super::pause;
use super::target::DialTarget;
use crate::hub::Notifier;
use futures_util::StreamExt;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{Msg, ProtocolVersion, RedisError};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

/// How often a silent connection is asked whether it is still there.
const ASK_EVERY: Duration = Duration::from_secs(2);

pub(super) async fn listen(target: DialTarget, hub: Arc<Notifier>, deadline: Duration, stop: CancellationToken) {
    let work = async {
        let mut failures = 0;
        loop {
            if let Ok(Ok((address, connection))) = timeout(deadline, connect(&target)).await {
                failures = 0;
                let (sink, messages) = connection.split();
                let listener = Listener { hub: &hub, deadline, sink, held: HashSet::new() };
                tokio::select! {
                    () = listener.run(messages) => {}
                    // A node that others no longer write to may stay silent for good.
                    () = target.moved_from(&address) => {}
                }
                hub.cut();
            } else {
                target.failed();
            }
            failures += 1;
            pause(failures).await;
        }
    };
    stop.run_until_cancelled(work).await;
}

/// The listening connection is the client's older kind: RESP2, made for nothing else.
async fn connect(target: &DialTarget) -> Result<(NodeAddress, PubSub), RedisError> {
    let (address, client) = target.resolve(ProtocolVersion::RESP2).await?;
    Ok((address, client.get_async_pubsub().await?))
}

/// The connection gave no answer in time, or broke.
struct BrokenConnection;

struct Listener<'a> {
    hub: &'a Notifier,
    deadline: Duration,
    sink: PubSubSink,
    held: HashSet<String>,
}

impl Listener<'_> {
    async fn run(mut self, mut messages: PubSubStream) {
        let mut ask = interval(ASK_EVERY);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.reconcile().await.is_ok() {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.hand_on(&message),
                    None => return,
                },
                () = self.hub.changed() => {}
                _ = ask.tick() => {
                    if answered(self.deadline, self.sink.ping::<redis::Value>()).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn hand_on(&self, message: &Msg) {
        if let Ok(text) = message.get_payload::<String>() {
            self.hub.deliver(message.get_channel_name(), &text);
        }
    }

    async fn reconcile(&mut self) -> Result<(), BrokenConnection> {
        let wanted: HashSet<String> = self.hub.wanted().into_iter().collect();
        let missing: Vec<&String> = wanted.difference(&self.held).collect();
        if !missing.is_empty() {
            answered(self.deadline, self.sink.subscribe(&missing)).await?;
        }
        let spare: Vec<&String> = self.held.difference(&wanted).collect();
        if !spare.is_empty() {
            answered(self.deadline, self.sink.unsubscribe(&spare)).await?;
        }
        // Also those held before: a channel that was left and wanted again is new to the hub.
        self.hub.live(&wanted);
        self.held = wanted;
        Ok(())
    }
}

async fn answered<T>(
    deadline: Duration,
    work: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, BrokenConnection> {
    timeout(deadline, work).await.map_err(|_| BrokenConnection)?.map_err(|_| BrokenConnection)
}
