//! The part of a text that shows why it was found.

use crate::index::head;
use crate::words::{tokens, wanted, words_of};
use std::collections::VecDeque;

/// The stretch of at most `chars` characters with the most different words of the query; of equals the one with most
/// matches, of equals the first. Without any match, the beginning.
pub fn excerpt(content: &str, query: &str, chars: usize) -> String {
    let wanted = wanted(query);
    let Some(stretch) = best(&matches(content, &wanted), wanted.len(), chars) else {
        return content.chars().take(chars).collect();
    };
    // What is left of the room goes around the matches, a bit more behind them than ahead.
    let spare = chars.saturating_sub(stretch.end - stretch.start);
    let start = stretch.start.saturating_sub(spare / 3);
    content.chars().skip(start).take(chars).collect()
}

/// A place in a text where a word of the query stands, in characters.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Match {
    start: usize,
    end: usize,
    /// Which of the words.
    word: usize,
}

/// The places of the words, in order. What is not in the index is not looked at here either.
fn matches(content: &str, wanted: &[String]) -> Vec<Match> {
    let content = head(content);
    let (mut found, mut lower) = (Vec::new(), String::new());
    let (mut bytes, mut start) = (0, 0);
    for (at, token) in tokens(content) {
        start += content[bytes..at].chars().count();
        bytes = at;
        let mut word = None;
        words_of(token, &mut lower, &mut |text| {
            word = wanted.binary_search_by(|wanted| wanted.as_str().cmp(text)).ok().or(word);
        });
        if let Some(word) = word {
            found.push(Match { start, end: start + token.chars().count(), word });
        }
    }
    found
}

/// From the first match of a stretch to the end of its last.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MatchSpan {
    start: usize,
    end: usize,
}

fn best(matches: &[Match], words: usize, chars: usize) -> Option<MatchSpan> {
    let (mut inside, mut counts, mut different) = (VecDeque::<Match>::new(), vec![0_usize; words], 0);
    let (mut best, mut rank) = (None, (0, 0));
    for last in matches {
        inside.push_back(*last);
        different += usize::from(counts[last.word] == 0);
        counts[last.word] += 1;
        while let Some(first) =
            inside.front().copied().filter(|first| last.end - first.start > chars && inside.len() > 1)
        {
            inside.pop_front();
            counts[first.word] -= 1;
            different -= usize::from(counts[first.word] == 0);
        }
        if (different, inside.len()) > rank {
            rank = (different, inside.len());
            best = inside.front().map(|first| MatchSpan { start: first.start, end: last.end });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_match_is_in_sight_in_any_script() {
        let long = format!("{} needle in a haystack {}", "Straße İstanbul ".repeat(500), "tail ".repeat(500));
        let shown = excerpt(&long, "needle", 400);
        assert_eq!(shown.chars().count(), 400);
        assert!(shown.contains("needle in a haystack"), "{shown}");
    }

    #[test]
    fn the_stretch_with_most_different_words_is_shown() {
        let far = "filler ".repeat(200);
        let text = format!("redis redis redis {far} the redis failover begins here {far} failover");
        let shown = excerpt(&text, "redis failover", 120);
        assert!(shown.contains("the redis failover begins"), "{shown}");
    }

    #[test]
    fn words_found_as_parts_of_an_identifier_are_shown() {
        let text = format!("{} restart web-frontend now", "filler ".repeat(200));
        assert!(excerpt(&text, "frontend", 60).contains("web-frontend"));
    }

    #[test]
    fn without_a_match_the_beginning_is_shown() {
        assert_eq!(excerpt("äöü and more", "zebra", 3), "äöü");
        assert_eq!(excerpt("", "zebra", 3), "");
        assert_eq!(excerpt("zebra", "", 9), "zebra");
    }

    #[test]
    fn a_word_longer_than_the_room_is_cut_and_nothing_else_happens() {
        assert_eq!(excerpt("aaaaaaaaaaaa", "aaaaaaaaaaaa", 5), "aaaaa");
        assert_eq!(excerpt("a needle", "needle", 0), "");
    }
}
