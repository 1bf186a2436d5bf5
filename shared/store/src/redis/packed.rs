//! Audit entries that are written together, packed: Redis holds, writes and rewrites every byte of them, and its scripting
//! engine hashes each, so fewer bytes are the cheapest thing that can be done for it.
//!
//! A packed text is a mark, its length and its packed length (four bytes each, lowest first), and an LZ4 block. No text of
//! ours begins with the mark: entries are JSON. What does not get shorter is written as it is, as everything was before.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a packed text begins with.
const MARK: [u8; 4] = *b"\x01LZ4";
const HEAD: usize = MARK.len() + 8;
/// LZ4 makes nothing shorter than this part of it, so what claims to be longer was not packed by us.
const MOST_RATIO: usize = 255;

/// The text, shorter if it can be.
pub(super) fn pack(text: &[u8]) -> Cow<'_, [u8]> {
    packed(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn packed(text: &[u8]) -> Option<Vec<u8>> {
    let mut packed = vec![0; HEAD + lz4_flex::block::get_maximum_output_size(text.len())];
    let (head, block) = packed.split_at_mut(HEAD);
    let length = lz4_flex::block::compress_into(text, block).ok()?;
    if HEAD + length >= text.len() {
        return None;
    }
    head[..4].copy_from_slice(&MARK);
    head[4..8].copy_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
    head[8..].copy_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    packed.truncate(HEAD + length);
    Some(packed)
}

/// Whether this is a packed text.
pub(super) fn is_packed(body: &[u8]) -> bool {
    body.starts_with(&MARK)
}

/// The text as it was before it was packed; `None` if it was not packed by [`pack`].
pub(super) fn unpack(body: Vec<u8>) -> Option<Vec<u8>> {
    if !is_packed(&body) {
        return Some(body);
    }
    let number =
        |at: usize| body.get(at..at + 4).map(|bytes| bytes.iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte)));
    let (length, block) = (number(4)?, body.get(HEAD..)?);
    if number(8)? != block.len() || length > block.len().saturating_mul(MOST_RATIO) {
        return None;
    }
    let mut text = vec![0; length];
    let written = lz4_flex::block::decompress_into(block, &mut text).ok()?;
    (written == length).then_some(text)
}

/// How long a log's entries go as they are once each of them had to be judged by itself.
const CROWDED: Duration = Duration::from_secs(1);

/// The audit logs whose limits are so near that the script has to look at each entry. Theirs are not packed for a moment, so
/// that they do not go twice.
#[derive(Default)]
pub(super) struct CrowdedLogs(Mutex<HashMap<String, Instant>>);

impl CrowdedLogs {
    pub(super) fn add(&self, stream: &str, now: Instant) {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.retain(|_, until| *until > now);
        logs.insert(stream.to_owned(), now + CROWDED);
    }

    pub(super) fn holds(&self, stream: &str, now: Instant) -> bool {
        let logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.get(stream).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_that_are_alike_are_packed_and_come_back() {
        let line =
            |n: usize| format!(r#"{{"v":1,"tenant":"acme","phase":"open","id":"aud_{n}","tool":"memory_list"}}"#);
        let text = (0..20).map(line).collect::<Vec<_>>().join("\n");
        let packed = pack(text.as_bytes());
        assert!(is_packed(&packed) && packed.len() * 3 < text.len(), "{} of {}", packed.len(), text.len());
        assert_eq!(unpack(packed.into_owned()).unwrap(), text.as_bytes());
    }

    #[test]
    fn what_gets_no_shorter_stays_as_it_is() {
        for text in ["", "{}", r#"{"v":1,"id":"aud_0Zq"}"#] {
            assert_eq!(pack(text.as_bytes()), text.as_bytes());
            assert_eq!(unpack(text.into()).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn what_somebody_else_wrote_is_refused_and_costs_no_memory() {
        let good = pack("abcdefgh".repeat(50).as_bytes()).into_owned();
        for cut in 4..good.len() {
            assert_eq!(unpack(good[..cut].to_vec()), None, "{cut}");
        }
        for (at, byte) in [(4, 0), (4, 0xff), (7, 0xff), (8, 0), (11, 1)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(unpack(bad), None, "{at}");
        }
        assert_eq!(unpack([&good[..], b"more"].concat()), None);
    }

    #[test]
    fn a_crowded_log_is_one_for_a_moment_and_no_other_is() {
        let (logs, now) = (CrowdedLogs::default(), Instant::now());
        logs.add("acme", now);
        assert!(logs.holds("acme", now) && !logs.holds("bolt", now) && !logs.holds("acme", now + CROWDED));
        logs.add("bolt", now + CROWDED);
        assert_eq!(logs.0.lock().unwrap().len(), 1, "what is over is forgotten");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(words in proptest::collection::vec("[ -~]{0,12}", 0..200)) {
            let text = words.join("\n").into_bytes();
            prop_assert_eq!(unpack(pack(&text).into_owned()).unwrap(), text);
        }

        #[test]
        fn whatever_bears_the_mark_is_read_or_refused(rest in proptest::collection::vec(any::<u8>(), 0..200)) {
            unpack([&MARK[..], &rest].concat());
        }
    }
}
