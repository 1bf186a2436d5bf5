//! The gauges of targets, by name: those of several tenants add up. External servers go by their name alone, clusters and
//! Jenkins servers by kind and name.

use super::Upstreams;
use crate::pins::PinState;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use target::ConnectionLoad;
use telemetry::metrics;
use tokio::time::Instant;

/// What is known of the servers of one name.
#[derive(Default)]
struct ServerLoad {
    closed: bool,
    in_flight: usize,
    waiting: usize,
    quarantined: usize,
}

impl Upstreams {
    /// Sets the gauges, for these connections too; from memory, and without asking any server.
    pub fn measure(&self, connections: Vec<ConnectionLoad>) {
        let (mut servers, now) = (BTreeMap::<String, ServerLoad>::new(), Instant::now());
        let members = self.0.members.read().unwrap_or_else(PoisonError::into_inner);
        for member in members.values().flat_map(BTreeMap::values) {
            let load = servers.entry(member.id.clone()).or_default();
            let (in_flight, waiting) = member.places().in_use();
            load.closed |= member.breaker.is_closed(now);
            load.in_flight += in_flight;
            load.waiting += waiting;
            load.quarantined += member.view().tools.iter().filter(|tool| tool.state == PinState::Changed).count();
        }
        drop(members);
        for connection in connections {
            let load = servers.entry(connection.name).or_default();
            load.closed |= connection.is_closed;
            load.in_flight += connection.in_flight;
            load.waiting += connection.waiting;
        }
        let all = |value: fn(&ServerLoad) -> f64| {
            servers.iter().map(move |(name, load)| ([name.as_str()], value(load))).collect::<Vec<_>>()
        };
        metrics::UPSTREAM_BREAKER.replace(all(|load| f64::from(u8::from(load.closed))));
        metrics::UPSTREAM_IN_FLIGHT.replace(all(|load| load.in_flight as f64));
        metrics::UPSTREAM_WAITING.replace(all(|load| load.waiting as f64));
        metrics::TOOLS_QUARANTINED.replace(all(|load| load.quarantined as f64));
    }
}
