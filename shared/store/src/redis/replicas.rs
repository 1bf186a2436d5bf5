//! How many replicas must have what may not be lost.
//!
//! Whichever replica is promoted must have it, so every one that may be promoted must. A primary cannot say how many
//! that are: one that is cut off sees none, and a replica that is away for a moment may be promoted when it is back. So
//! those who promote are asked: sentinels and the nodes of a cluster know a replica until they are told to forget it.
//! Where nobody can be asked, the greatest number that was seen at a server counts, for as long as that server stays.
//!
//! A cluster forgets for a moment: a primary that failed keeps no mark of whose replica it will be when it is back, and a
//! node that was just promoted is named without any. So a primary that took over from another one needs at least that one,
//! and a smaller number counts once it was named for a while.

use super::sentinel::SentinelResolver;
use crate::config::Confirm;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// More than there can be: nobody has said yet how many there are, so nothing counts.
pub(super) const UNKNOWN: u8 = u8::MAX;
/// How long a replica that was seen or named counts although those who promote do not name it: sentinels look for new ones
/// every ten seconds, and are asked every five, as are the nodes of a cluster.
const LATELY: Duration = Duration::from_secs(20);

/// Who knows which replicas a primary has.
pub(super) enum ReplicaCensus {
    /// Nobody who could be asked.
    Unasked,
    Sentinels(Arc<SentinelResolver>),
    /// The nodes of the cluster; `None` until they have told.
    Cluster(Mutex<Option<NamedReplicas>>),
}

/// What the nodes of a cluster say of a primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedReplicas {
    many: u8,
    /// Since when they name fewer than that.
    fewer_since: Option<Instant>,
}

/// What is known of the replicas of one primary.
pub(super) struct ReplicaCount {
    confirm: Confirm,
    census: ReplicaCensus,
    seen: Mutex<SeenReplicas>,
}

#[derive(Default)]
struct SeenReplicas {
    /// Whether any server was asked.
    met: bool,
    /// The server's name for this run of itself.
    server: Option<String>,
    /// The most replicas it had at one moment.
    most: u8,
    /// When each replica last followed it, by address.
    lately: HashMap<String, Instant>,
}

impl ReplicaCount {
    pub(super) fn new(confirm: Confirm, census: ReplicaCensus) -> ReplicaCount {
        ReplicaCount { confirm, census, seen: Mutex::default() }
    }

    /// How many replicas must have a decision before it counts.
    pub(super) fn needed(&self) -> u8 {
        let told = match (self.confirm, &self.census) {
            (Confirm::Exactly(many), _) => return many,
            (Confirm::Auto, ReplicaCensus::Unasked) => return self.seen().most,
            (Confirm::Auto, ReplicaCensus::Sentinels(resolver)) => resolver.replicas(),
            (Confirm::Auto, ReplicaCensus::Cluster(told)) => {
                told.lock().unwrap_or_else(PoisonError::into_inner).map(|named| named.many)
            }
        };
        // `WAIT` tells how many have caught up, and not which: a new one must not stand for one that is known and away.
        told.map_or(UNKNOWN, |told| told.max(self.seen().lately(Instant::now())))
    }

    /// Whether the server was asked who it is, so that a change of it is known.
    pub(super) fn is_met(&self) -> bool {
        self.seen().met
    }

    /// Takes over what the nodes of a cluster say; `took_over` if another one served its slots until now.
    pub(super) fn tell(&self, many: Option<u8>, took_over: bool) {
        if let ReplicaCensus::Cluster(told) = &self.census {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            *told = many.map(|many| NamedReplicas::after(*told, many, took_over, Instant::now()));
        }
    }

    /// Takes over what a server says of itself.
    pub(super) fn see(&self, server: Option<&str>, info: &str) {
        let (now, mut seen) = (Instant::now(), self.seen());
        if seen.server.as_deref() != server {
            *seen = SeenReplicas { server: server.map(str::to_owned), ..SeenReplicas::default() };
        }
        seen.met = true;
        seen.lately.retain(|_, at| now.duration_since(*at) < LATELY);
        let online: Vec<&str> = online(info).collect();
        seen.most = seen.most.max(clamped(online.len()));
        seen.lately.extend(online.into_iter().map(|address| (address.to_owned(), now)));
    }

    fn seen(&self) -> MutexGuard<'_, SeenReplicas> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NamedReplicas {
    fn after(before: Option<NamedReplicas>, many: u8, took_over: bool, now: Instant) -> NamedReplicas {
        let at_least = u8::from(took_over);
        let counted = before.map_or(many, |before| before.many).max(at_least);
        let fewer_since = before.and_then(|before| before.fewer_since).unwrap_or(now);
        if many >= counted || now.duration_since(fewer_since) >= LATELY {
            return NamedReplicas { many, fewer_since: None };
        }
        NamedReplicas { many: counted, fewer_since: Some(fewer_since) }
    }
}

impl SeenReplicas {
    fn lately(&self, now: Instant) -> u8 {
        clamped(self.lately.values().filter(|at| now.duration_since(**at) < LATELY).count())
    }
}

/// The replicas that follow and have caught up once, by address: those still copying confirm nothing.
pub(super) fn online(info: &str) -> impl Iterator<Item = &str> {
    fn address(line: &str) -> Option<&str> {
        let (address, state) = line.split_once(":ip=")?.1.split_once(",state=")?;
        state.starts_with("online").then_some(address)
    }
    info.lines().filter(|line| line.starts_with("slave")).filter_map(address)
}

/// No more than can be wanted, and never by chance what stands for not knowing.
pub(super) fn clamped(many: usize) -> u8 {
    u8::try_from(many).unwrap_or(UNKNOWN).min(UNKNOWN - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(replicas: &[(u16, &str)]) -> String {
        let line = |(number, (port, state)): (usize, &(u16, &str))| {
            format!("slave{number}:ip=127.0.0.1,port={port},state={state},offset=14,lag=0\r\n")
        };
        let lines: String = replicas.iter().enumerate().map(line).collect();
        format!("# Replication\r\nrole:master\r\nconnected_slaves:{}\r\n{lines}", replicas.len())
    }

    fn cluster(told: Option<u8>) -> ReplicaCount {
        let named = told.map(|many| NamedReplicas { many, fewer_since: None });
        ReplicaCount::new(Confirm::Auto, ReplicaCensus::Cluster(Mutex::new(named)))
    }

    #[test]
    fn a_replica_counts_once_it_has_caught_up() {
        let text = info(&[(1, "online"), (2, "wait_bgsave")]);
        assert_eq!(online(&text).collect::<Vec<_>>(), ["127.0.0.1,port=1"]);
    }

    #[test]
    fn where_nobody_can_be_asked_the_most_that_a_server_had_count_while_it_stays() {
        let count = ReplicaCount::new(Confirm::Auto, ReplicaCensus::Unasked);
        assert_eq!(count.needed(), 0);
        count.see(Some("a"), &info(&[(1, "online"), (2, "online")]));
        count.see(Some("a"), &info(&[]));
        assert_eq!(count.needed(), 2, "each of them may be promoted");
        count.see(Some("b"), &info(&[(1, "online")]));
        assert_eq!(count.needed(), 1, "another server has replicas of its own");
        assert_eq!(ReplicaCount::new(Confirm::Exactly(3), ReplicaCensus::Unasked).needed(), 3);
    }

    #[test]
    fn a_primary_that_sees_nobody_needs_all_that_the_others_know() {
        let count = cluster(Some(2));
        count.see(Some("a"), &info(&[]));
        assert_eq!(count.needed(), 2);
        assert_eq!(cluster(None).needed(), UNKNOWN, "before anybody has told, nothing counts");
        count.tell(None, false);
        assert_eq!(count.needed(), UNKNOWN, "they do not tell any more");
    }

    #[test]
    fn a_smaller_number_counts_once_it_was_named_for_a_while() {
        let begun = Instant::now();
        let named = |before, many, took_over, secs| {
            NamedReplicas::after(before, many, took_over, begun + Duration::from_secs(secs))
        };
        let two = named(None, 2, false, 0);
        let fewer = named(Some(two), 1, false, 5);
        assert_eq!((two.many, fewer.many), (2, 2), "one of them may be away for a moment");
        assert_eq!(named(Some(fewer), 1, false, 24).many, 2);
        assert_eq!(named(Some(fewer), 1, false, 25).many, 1, "told to forget it");
        let back = named(Some(fewer), 2, false, 20);
        assert_eq!(named(Some(back), 1, false, 26).many, 2, "it was back in between");
        assert_eq!(named(Some(two), 3, false, 1).many, 3, "more counts at once");
    }

    #[test]
    fn whoever_took_over_needs_the_one_before_it() {
        let begun = Instant::now();
        assert_eq!(NamedReplicas::after(None, 0, false, begun).many, 0, "it has no replicas, and had none");
        let promoted = NamedReplicas::after(None, 0, true, begun);
        assert_eq!(promoted.many, 1, "the one before it may come back and be promoted");
        assert_eq!(NamedReplicas::after(Some(promoted), 0, false, begun + LATELY).many, 0, "and did not");
        let again = NamedReplicas { many: 0, fewer_since: None };
        assert_eq!(NamedReplicas::after(Some(again), 0, true, begun).many, 1, "also if it led before");
    }

    #[test]
    fn a_server_that_nobody_has_asked_is_not_met() {
        let count = cluster(Some(0));
        assert!(!count.is_met());
        count.see(None, "");
        assert!(count.is_met(), "one that hides its name was met all the same");
    }

    #[test]
    fn a_new_replica_does_not_stand_for_a_known_one_that_is_away() {
        let count = cluster(Some(2));
        count.see(Some("a"), &info(&[(1, "online"), (2, "online")]));
        count.see(Some("a"), &info(&[(1, "online"), (3, "online")]));
        assert_eq!(count.needed(), 3);
        let later = Instant::now() + LATELY;
        assert_eq!(count.seen().lately(later), 0, "by then those who promote know it");
    }

    #[test]
    fn no_number_is_taken_for_not_knowing() {
        assert_eq!((clamped(2), clamped(255), clamped(10_000)), (2, 254, 254));
    }
}
