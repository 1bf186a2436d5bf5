//! The mark: a small record of the store's own, by whose absence a loss is known.
//!
//! It names the server that holds it and the *line* of records it belongs to, drawn when the line began. Another server
//! over the same line was restarted or promoted; a missing mark, or one of another line, means that everything is gone.
//!
//! Each shard of a cluster has a mark, in the lowest slot it serves. All marks of a store have one generation in the end:
//! whoever finds a lower one raises it, so that no shard that is taken away can take the number of losses along.

use domain::Moment;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the record holds. Fields of later releases are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EpochRecord {
    v: u8,
    pub(super) generation: u64,
    line: String,
    server: Option<String>,
    pub(super) since: Option<Moment>,
}

/// What is known of the place the mark stands in.
pub(super) struct EpochContext {
    /// The server's name for this run of itself, if it tells.
    pub(super) server: Option<String>,
    /// Its time.
    pub(super) now: Moment,
    /// The name of a new line, should one begin.
    pub(super) line: String,
    /// The highest generation that is known of any mark of the store; 0 if none is.
    pub(super) generation: u64,
    /// Whether a place without a mark may hold records all the same: the slots of a cluster move, and with them the
    /// place of a shard's mark.
    pub(super) joins: bool,
}

impl EpochRecord {
    /// Whether both belong to one line of records: nothing was lost between them but perhaps the last few writes.
    pub(super) fn same_line(&self, other: &EpochRecord) -> bool {
        self.line == other.line
    }

    /// Whether this very server wrote it.
    pub(super) fn is_of(&self, server: Option<&str>) -> bool {
        self.server.is_some() && self.server.as_deref() == server
    }

    /// The mark that has to be written in place of the one found, as far as this process remembers. `None`: it may stay.
    pub(super) fn due(
        found: Option<&EpochRecord>,
        known: Option<&EpochRecord>,
        here: &EpochContext,
    ) -> Option<EpochRecord> {
        let begin = |generation: u64, since| {
            let (line, server) = (here.line.clone(), here.server.clone());
            Some(EpochRecord { v: 1, generation: generation.max(here.generation), line, server, since })
        };
        // Later than the change before it, whatever the clocks of the two servers say.
        let after = |last: Option<Moment>| {
            Some(last.map_or(here.now, |last| here.now.max(last.plus(Duration::from_millis(1)))))
        };
        let lost =
            |known: &EpochRecord| begin(known.generation.max(here.generation).saturating_add(1), after(known.since));
        match (found, known) {
            // Nobody was here before, as far as anybody can tell.
            (None, None) => begin(1, here.joins.then_some(here.now)),
            (None, Some(known)) => lost(known),
            // Somebody without a memory was quicker, and could not know that there was something to lose.
            (Some(found), Some(known)) if !found.same_line(known) && found.generation <= known.generation => {
                lost(known)
            }
            (Some(found), _) if here.server.is_some() && found.server != here.server => {
                let since = after(found.since.max(known.and_then(|known| known.since)));
                let generation = found.generation.max(here.generation);
                Some(EpochRecord { server: here.server.clone(), since, generation, ..found.clone() })
            }
            (Some(found), _) if found.generation < here.generation => {
                Some(EpochRecord { generation: here.generation, ..found.clone() })
            }
            (Some(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(server: &str, now: u64) -> EpochContext {
        let (now, line) = (Moment::from_secs(now), format!("line-{server}-{now}"));
        EpochContext { server: Some(server.into()), now, line, generation: 0, joins: false }
    }

    fn first() -> EpochRecord {
        EpochRecord::due(None, None, &here("a", 1)).unwrap()
    }

    #[test]
    fn the_first_mark_doubts_nothing_and_stays() {
        let mark = first();
        assert_eq!((mark.generation, mark.since), (1, None));
        assert_eq!(EpochRecord::due(Some(&mark), None, &here("a", 2)), None);
        assert_eq!(EpochRecord::due(Some(&mark), Some(&mark), &here("a", 2)), None);
    }

    #[test]
    fn another_server_over_the_same_records_is_noted_with_its_moment_also_by_who_just_started() {
        let mark = first();
        for known in [None, Some(&mark)] {
            let next = EpochRecord::due(Some(&mark), known, &here("b", 7)).unwrap();
            assert_eq!((next.generation, next.since), (1, Some(Moment::from_secs(7))));
            assert!(next.same_line(&mark));
            assert_eq!(
                EpochRecord::due(Some(&next), Some(&mark), &here("b", 9)),
                None,
                "whoever comes later takes it as it is"
            );
        }
    }

    #[test]
    fn a_later_change_is_later_although_the_new_servers_clock_is_behind() {
        let (mark, early) = (first(), here("c", 3));
        let second = EpochRecord::due(Some(&mark), Some(&mark), &here("b", 7)).unwrap();
        let third = EpochRecord::due(Some(&second), Some(&second), &early).unwrap();
        let forgotten = EpochRecord::due(Some(&mark), Some(&second), &early).unwrap();
        assert!(third.since > second.since && forgotten.since > second.since);
    }

    #[test]
    fn a_missing_mark_is_a_loss_to_whoever_remembers_one() {
        let mark = first();
        for server in ["a", "b"] {
            let next = EpochRecord::due(None, Some(&mark), &here(server, 7)).unwrap();
            assert_eq!((next.generation, next.since), (2, Some(Moment::from_secs(7))), "emptied or replaced: {server}");
            assert!(!next.same_line(&mark));
            assert_eq!(EpochRecord::due(Some(&next), Some(&mark), &here(server, 8)), None, "one replica writes it");
        }
    }

    #[test]
    fn a_newcomer_that_began_anew_after_a_loss_is_corrected_by_who_remembers() {
        let mark = first();
        let newcomer = EpochRecord::due(None, None, &here("b", 7)).unwrap();
        let next = EpochRecord::due(Some(&newcomer), Some(&mark), &here("b", 8)).unwrap();
        assert_eq!((next.generation, next.since), (2, Some(Moment::from_secs(8))));
    }

    #[test]
    fn a_server_that_tells_nothing_of_itself_is_never_another() {
        let quiet = |now| EpochContext { server: None, line: "quiet".into(), ..here("", now) };
        let mark = EpochRecord::due(None, None, &quiet(1)).unwrap();
        assert_eq!(EpochRecord::due(Some(&mark), Some(&mark), &quiet(2)), None);
        assert_eq!(
            EpochRecord::due(None, Some(&mark), &quiet(3)).unwrap().generation,
            2,
            "but a loss is seen all the same"
        );
    }

    #[test]
    fn a_shard_without_a_mark_may_hold_older_records_and_is_doubted_from_now_on() {
        let shard = EpochContext { joins: true, generation: 3, ..here("a", 5) };
        let mark = EpochRecord::due(None, None, &shard).unwrap();
        assert_eq!((mark.generation, mark.since), (3, Some(Moment::from_secs(5))));
    }

    #[test]
    fn the_loss_of_one_shard_raises_the_generation_of_every_mark_once() {
        let (mark, other) = (first(), first());
        let lost = EpochRecord::due(None, Some(&mark), &EpochContext { generation: 1, ..here("a", 7) }).unwrap();
        assert_eq!(lost.generation, 2);
        let knowing = EpochContext { generation: 2, ..here("a", 8) };
        let raised = EpochRecord::due(Some(&other), Some(&other), &knowing).unwrap();
        assert!(raised.same_line(&other) && raised.since == other.since, "nothing of this shard is doubted");
        assert_eq!(raised.generation, 2);
        for known in [&other, &raised] {
            assert_eq!(EpochRecord::due(Some(&raised), Some(known), &knowing), None);
        }
        assert_eq!(EpochRecord::due(Some(&lost), Some(&mark), &knowing), None, "who saw the other shard first agrees");
    }
}
