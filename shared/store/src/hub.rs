//! Wake-ups inside one process: who watches which tenant, and how a message reaches them.
//!
//! The embedded store sends straight into the hub. With Redis one task listens for all of them
//! (see `redis::subscriber`) and keeps its subscriptions equal to [`Notifier::wanted`].
//! Every watch begins with [`WakeUp::Resync`]: from then on nothing is missed without another one being sent.

use crate::Topic;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, broadcast};

/// How many wake-ups a slow watcher may be behind before it is told to look at everything.
const BACKLOG: usize = 256;

/// One wake-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WakeUp {
    /// This moved.
    Topic(Topic),
    /// Something may have been missed: look at everything again.
    Resync,
}

struct Channel {
    sender: broadcast::Sender<WakeUp>,
    watchers: usize,
    /// Whether messages arrive here by now.
    live: bool,
}

pub(crate) struct Notifier {
    channels: Mutex<HashMap<String, Channel>>,
    changed: Notify,
    local: bool,
}

impl Notifier {
    /// A hub whose messages come from this process alone, and are therefore never lost on the way.
    pub(crate) fn local() -> Arc<Notifier> {
        Arc::new(Notifier { channels: Mutex::default(), changed: Notify::new(), local: true })
    }

    /// A hub that somebody else subscribes for.
    pub(crate) fn remote() -> Arc<Notifier> {
        Arc::new(Notifier { channels: Mutex::default(), changed: Notify::new(), local: false })
    }

    pub(crate) fn watch(self: &Arc<Notifier>, name: String) -> TenantWatch {
        let mut channels = self.lock();
        let channel = channels.entry(name.clone()).or_insert_with(|| Channel {
            sender: broadcast::Sender::new(BACKLOG),
            watchers: 0,
            live: self.local,
        });
        channel.watchers += 1;
        let (receiver, owed) = (channel.sender.subscribe(), channel.live);
        drop(channels);
        self.changed.notify_one();
        TenantWatch { hub: Arc::clone(self), name, receiver, owed }
    }

    /// Hands a message to whoever watches the channel.
    pub(crate) fn deliver(&self, name: &str, text: &str) {
        if let (Some(channel), Some(topic)) = (self.lock().get(name), Topic::parse(text)) {
            send(channel, WakeUp::Topic(topic));
        }
    }

    /// Resolves when channels were added or dropped since the last time.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Every channel somebody watches.
    pub(crate) fn wanted(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Notes that messages arrive on these channels from now on.
    pub(crate) fn live<'a>(&self, names: impl IntoIterator<Item = &'a String>) {
        let mut channels = self.lock();
        for name in names {
            if let Some(channel) = channels.get_mut(name).filter(|channel| !channel.live) {
                channel.live = true;
                send(channel, WakeUp::Resync);
            }
        }
    }

    /// Notes that nothing arrives any more. Watchers hear of it when it is over.
    pub(crate) fn cut(&self) {
        self.lock().values_mut().for_each(|channel| channel.live = false);
    }

    fn leave(&self, name: &str) {
        let mut channels = self.lock();
        if let Some(channel) = channels.get_mut(name) {
            channel.watchers -= 1;
            if channel.watchers == 0 {
                channels.remove(name);
            }
        }
        drop(channels);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Channel>> {
        // The map is whole after every statement, so a panic elsewhere leaves it usable.
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send(channel: &Channel, wake: WakeUp) {
    // An error means that nobody listens at this moment, which is no loss.
    drop(channel.sender.send(wake));
}

/// Hears the wake-ups of one tenant for as long as it is held.
pub struct TenantWatch {
    hub: Arc<Notifier>,
    name: String,
    receiver: broadcast::Receiver<WakeUp>,
    /// Whether the first [`WakeUp::Resync`] is still due, the channel having been live already.
    owed: bool,
}

impl TenantWatch {
    /// Waits for the next wake-up. The first one is always [`WakeUp::Resync`], sent once messages arrive.
    /// Safe to abandon and call again.
    pub async fn next(&mut self) -> WakeUp {
        if std::mem::take(&mut self.owed) {
            return WakeUp::Resync;
        }
        match self.receiver.recv().await {
            Ok(wake) => wake,
            Err(broadcast::error::RecvError::Lagged(_)) => WakeUp::Resync,
            // The hub keeps the sender while we are counted, so this is never reached; waiting is harmless.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Drop for TenantWatch {
    fn drop(&mut self) {
        self.hub.leave(&self.name);
    }
}

impl std::fmt::Debug for TenantWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("channel", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_watch_begins_with_resync_and_then_hears_its_own_channel() {
        let hub = Notifier::local();
        let mut watch = hub.watch("a".into());
        hub.deliver("b", "c");
        hub.deliver("a", "d");
        assert_eq!(watch.next().await, WakeUp::Resync);
        assert_eq!(watch.next().await, WakeUp::Topic(Topic::Document));
    }

    #[tokio::test]
    async fn a_remote_watch_hears_resync_when_messages_begin_and_when_they_begin_again() {
        let hub = Notifier::remote();
        let mut watch = hub.watch("a".into());
        hub.live(&["a".to_owned()]);
        hub.live(&["a".to_owned()]);
        hub.cut();
        hub.live(&["a".to_owned()]);
        hub.deliver("a", "c");
        assert_eq!([watch.next().await, watch.next().await], [WakeUp::Resync, WakeUp::Resync]);
        assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
    }

    #[tokio::test]
    async fn a_watcher_that_falls_behind_is_told_to_look_at_everything() {
        let hub = Notifier::local();
        let mut watch = hub.watch("a".into());
        assert_eq!(watch.next().await, WakeUp::Resync);
        (0..=BACKLOG).for_each(|_| hub.deliver("a", "c"));
        assert_eq!(watch.next().await, WakeUp::Resync);
        assert_eq!(watch.next().await, WakeUp::Topic(Topic::Catalog));
    }

    #[test]
    fn a_channel_is_wanted_while_anybody_watches() {
        let hub = Notifier::remote();
        let (first, second) = (hub.watch("a".into()), hub.watch("a".into()));
        drop(first);
        assert_eq!(hub.wanted(), ["a"]);
        drop(second);
        assert!(hub.wanted().is_empty());
    }
}
