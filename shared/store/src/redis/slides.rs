//! Which slides are worth sending: moving the end of a record that this process moved a moment ago gains next to nothing.
//!
//! Redis writes every moved end to its append-only file, so a busy session would cost a write for each look at it.
//! Up to a sixteenth of the span (a minute at most) is left on the table, as in the embedded store: a session may end
//! that much early, never late. What is forgotten here is only sent once more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many records are remembered before all are forgotten.
const MOST: usize = 10_000;

/// A record whose end is to move, if it begins with these bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct TtlMove<'a> {
    pub(super) key: &'a str,
    pub(super) span: Duration,
    pub(super) begins: &'a [u8],
}

#[derive(Default)]
pub(super) struct TtlRefresh(Mutex<HashMap<String, TtlExtension>>);

struct TtlExtension {
    span: Duration,
    /// For whom it was moved. Somebody else's try may have moved nothing, so it spares nobody a slide.
    begins: Vec<u8>,
    at: Instant,
}

impl TtlRefresh {
    /// Whether the end of this record has to be moved now.
    pub(super) fn due(&self, slide: &TtlMove<'_>, now: Instant) -> bool {
        let slides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slack = (slide.span / 16).min(Duration::from_secs(60));
        slides.get(slide.key).is_none_or(|last| {
            let same = last.span == slide.span && last.begins == slide.begins;
            !same || now.saturating_duration_since(last.at) >= slack
        })
    }

    /// The end of this record was moved, by a command sent not before `at`.
    pub(super) fn moved(&self, slide: &TtlMove<'_>, at: Instant) {
        let mut slides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slides.len() >= MOST {
            slides.clear();
        }
        let extension = TtlExtension { span: slide.span, begins: slide.begins.to_owned(), at };
        slides.insert(slide.key.to_owned(), extension);
    }

    /// The record was written, and with it another end.
    pub(super) fn forget(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn slide(key: &str, span: Duration) -> TtlMove<'_> {
        TtlMove { key, span, begins: b"hers" }
    }

    #[test]
    fn a_slide_is_due_at_first_and_again_when_it_moves_the_end_noticeably() {
        let (slides, now) = (TtlRefresh::default(), Instant::now());
        assert!(slides.due(&slide("a", HOUR), now));
        slides.moved(&slide("a", HOUR), now);
        assert!(!slides.due(&slide("a", HOUR), now + Duration::from_secs(59)));
        assert!(slides.due(&slide("a", HOUR), now + Duration::from_secs(60)));
        assert!(slides.due(&slide("a", HOUR * 2), now), "another span is another end");
        assert!(slides.due(&slide("b", HOUR), now));
        let short = slide("b", Duration::from_millis(160));
        slides.moved(&short, now);
        assert!(!slides.due(&short, now + Duration::from_millis(9)));
        assert!(slides.due(&short, now + Duration::from_millis(10)));
    }

    #[test]
    fn a_strangers_try_spares_the_owner_no_slide() {
        let (slides, now) = (TtlRefresh::default(), Instant::now());
        slides.moved(&TtlMove { begins: b"his", ..slide("a", HOUR) }, now);
        assert!(slides.due(&slide("a", HOUR), now));
    }

    #[test]
    fn a_record_that_was_written_slides_anew() {
        let (slides, now) = (TtlRefresh::default(), Instant::now());
        slides.moved(&slide("a", HOUR), now);
        slides.forget("a");
        assert!(slides.due(&slide("a", HOUR), now));
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let (slides, now) = (TtlRefresh::default(), Instant::now());
        (0..=MOST).for_each(|n| slides.moved(&slide(&n.to_string(), HOUR), now));
        assert_eq!(slides.0.lock().unwrap().len(), 1);
    }
}
