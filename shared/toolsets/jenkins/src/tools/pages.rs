//! Long answers in pages: texts by their byte, and how an answer says that it goes on.
//!
//! A text is masked as a whole before it is cut, so that a secret cannot hide at the edge of a page.

use super::reply::JenkinsReplyFields;
use domain::Failure;
use policy::Permit;
use serde::{Deserialize, Serialize};
use target::cursor::Cursors;
use target::reply::{Omitted, ROOM, size_of};

/// Where a page of one build begins. The number is part of it, because the newest build may be another one by then.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct BuildPageToken {
    pub(super) number: u32,
    pub(super) from: usize,
}

/// A text from a byte on, in whole lines as far as they fit; and where the next page begins.
pub(super) fn text(all: &str, from: usize) -> (String, Option<usize>) {
    let rest = all.get(from..).unwrap_or_default();
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        // What JSON makes of it counts: quotes and line ends take two bytes.
        if size_of(&&rest[..end + line.len()]) > ROOM {
            break;
        }
        end += line.len();
    }
    if end == 0 && !rest.is_empty() {
        // One line that is longer than a page.
        end = (1..=rest.len().min(ROOM / 2)).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
    }
    let next = from + end;
    (rest[..end].to_owned(), (next < all.len()).then_some(next))
}

/// Notes in an answer that it goes on.
pub(super) fn goes_on(
    common: &mut JenkinsReplyFields,
    (cursors, permit): (&Cursors, &Permit),
    args: &impl Serialize,
    spot: &impl Serialize,
    left: Omitted,
) -> Result<(), Failure> {
    common.next_cursor = Some(cursors.seal(permit, args, spot)?);
    common.cut(left, "go on with cursor");
    Ok(())
}

/// So many rows are left out.
pub(super) fn items(left: usize) -> Omitted {
    Omitted { items: u64::try_from(left).unwrap_or(u64::MAX), ..Omitted::default() }
}

/// So many bytes are left out.
pub(super) fn bytes(left: usize) -> Omitted {
    Omitted { bytes: u64::try_from(left).unwrap_or(u64::MAX), ..Omitted::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_text_are_whole_lines_and_together_the_text() {
        let long: String = (0..9_000).map(|n| format!("line \"{n}\"\n")).collect();
        let (mut from, mut seen, mut pages) = (0, String::new(), 0);
        loop {
            let (page, next) = text(&long, from);
            assert!(size_of(&page) <= ROOM && page.ends_with('\n'));
            (seen, pages) = (seen + &page, pages + 1);
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(seen, long);
        assert!(pages > 3);
        let (first, next) = text(&"é".repeat(50_000), 0);
        assert!(!first.is_empty() && next == Some(first.len()), "a line longer than a page is cut at a character");
        assert_eq!(text("abc", 7), (String::new(), None));
    }
}
