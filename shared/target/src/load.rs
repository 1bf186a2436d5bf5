//! How hard the targets of this process are pressed at the moment: for gauges, read from memory.
//!
//! A connection is in the list as long as somebody holds it. The list is the process's, as its metrics are.

use crate::{Breaker, TargetSlots};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::time::Instant;

static CONNECTIONS: Mutex<Vec<Weak<ConnectionState>>> = Mutex::new(Vec::new());

/// What is shared by a connection and whoever measures it.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    name: String,
    pub(crate) slots: TargetSlots,
    pub(crate) breaker: Breaker,
}

/// The load of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLoad {
    /// The target: its kind, and the name it is configured under.
    pub name: String,
    /// Whether it is not asked at the moment because it failed before.
    pub is_closed: bool,
    /// Requests under way.
    pub in_flight: usize,
    /// Requests that wait for a slot.
    pub waiting: usize,
}

impl ConnectionState {
    pub(crate) fn new(name: String, slots: usize) -> Arc<ConnectionState> {
        let state = Arc::new(ConnectionState { name, slots: TargetSlots::new(slots), breaker: Breaker::default() });
        let mut all = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&state));
        state
    }

    pub(crate) fn load(&self, now: Instant) -> ConnectionLoad {
        let (in_flight, waiting) = self.slots.in_use();
        ConnectionLoad { name: self.name.clone(), is_closed: self.breaker.is_closed(now), in_flight, waiting }
    }
}

/// The load of every connection there is. Several tenants may have a target of the same name.
pub fn connection_loads() -> Vec<ConnectionLoad> {
    let all = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let states: Vec<Arc<ConnectionState>> = all.iter().filter_map(Weak::upgrade).collect();
    drop(all);
    let now = Instant::now();
    states.iter().map(|state| state.load(now)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Connection, NoAnswer};
    use std::time::Duration;

    fn load(name: &str) -> Option<ConnectionLoad> {
        connection_loads().into_iter().find(|load| load.name == name)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_measured_as_long_as_it_is_there() {
        let (connection, later) = (Connection::new("cluster", "measured", 1), Instant::now() + Duration::from_secs(60));
        let place = connection.slot::<()>(later).await.unwrap();
        let (one_more, look) = (connection.slot::<()>(Instant::now() + Duration::from_secs(1)), async {
            tokio::task::yield_now().await;
            load("cluster/measured").unwrap()
        });
        let (refused, seen) = tokio::join!(one_more, look);
        assert_eq!(
            (refused.unwrap_err(), seen.in_flight, seen.waiting, seen.is_closed),
            (NoAnswer::Crowded, 1, 1, false)
        );
        drop(place);
        for _ in 0..5 {
            connection.send_once(later, async { Err::<(), NoAnswer<()>>(NoAnswer::Unconnected) }).await.unwrap_err();
        }
        let seen = load("cluster/measured").unwrap();
        assert_eq!((seen.is_closed, seen.in_flight, seen.waiting), (true, 0, 0));
        drop(connection);
        assert_eq!(load("cluster/measured"), None);
    }
}
