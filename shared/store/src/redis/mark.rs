//! The mark: a small record of the store's own, by whose absence a loss is known.
//!
//! It names the server that holds it and the *line* of records it belongs to, drawn when the line began. Another server
//! over the same line was restarted or promoted; a missing mark, or one of another line, means that everything is gone.

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
}

impl EpochRecord {
    /// Whether both belong to one line of records: nothing was lost between them but perhaps the last few writes.
    pub(super) fn same_line(&self, other: &EpochRecord) -> bool {
        self.line == other.line
    }

    /// The mark that has to be written in place of the one found, as far as this process remembers. `None`: it may stay.
    pub(super) fn due(
        found: Option<&EpochRecord>,
        known: Option<&EpochRecord>,
        here: &EpochContext,
    ) -> Option<EpochRecord> {
        let begin = |generation, since| {
            let (line, server) = (here.line.clone(), here.server.clone());
            Some(EpochRecord { v: 1, generation, line, server, since })
        };
        match (found, known) {
            // Nobody was here before, as far as anybody can tell.
            (None, None) => begin(1, None),
            (None, Some(known)) => begin(known.generation.saturating_add(1), Some(here.now)),
            // Somebody without a memory was quicker, and could not know that there was something to lose.
            (Some(found), Some(known)) if !found.same_line(known) && found.generation <= known.generation => {
                begin(known.generation.saturating_add(1), Some(here.now))
            }
            (Some(found), _) if here.server.is_some() && found.server != here.server => {
                let last = found.since.max(known.and_then(|known| known.since));
                // Later than the change before it, whatever the clocks of the two servers say.
                let since = Some(last.map_or(here.now, |last| here.now.max(last.plus(Duration::from_millis(1)))));
                Some(EpochRecord { server: here.server.clone(), since, ..found.clone() })
            }
            (Some(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(server: &str, now: u64) -> EpochContext {
        EpochContext { server: Some(server.into()), now: Moment::from_secs(now), line: format!("line-{server}-{now}") }
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
        let quiet = |now| EpochContext { server: None, now: Moment::from_secs(now), line: "quiet".into() };
        let mark = EpochRecord::due(None, None, &quiet(1)).unwrap();
        assert_eq!(EpochRecord::due(Some(&mark), Some(&mark), &quiet(2)), None);
        assert_eq!(
            EpochRecord::due(None, Some(&mark), &quiet(3)).unwrap().generation,
            2,
            "but a loss is seen all the same"
        );
    }
}
