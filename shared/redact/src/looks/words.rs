//! The list of words, read from `words.txt` once.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

type WordSet = HashSet<&'static str>;

/// The words by which names and values are judged. What each section is for stands in the file.
pub(super) struct WordLists {
    pub(super) strong: WordSet,
    pub(super) secret_keys: WordSet,
    pub(super) plain_keys: WordSet,
    pub(super) secret_values: WordSet,
    pub(super) tails: WordSet,
    pub(super) pointers: WordSet,
    pub(super) spoken: WordSet,
    pub(super) lookups: WordSet,
}

/// All of them.
pub(super) static WORDS: LazyLock<WordLists> = LazyLock::new(|| {
    let mut sections: HashMap<&str, WordSet> = HashMap::new();
    let mut section = "";
    for line in include_str!("words.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = name,
            None => sections.entry(section).or_default().extend(line.split_whitespace()),
        }
    }
    let mut take = |name: &str| sections.remove(name).unwrap_or_default();
    WordLists {
        strong: take("strong"),
        secret_keys: take("secret keys"),
        plain_keys: take("plain keys"),
        secret_values: take("secret values"),
        tails: take("tails"),
        pointers: take("pointers"),
        spoken: take("spoken"),
        lookups: take("lookups"),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_words_in_lower_case() {
        let lists = &*WORDS;
        let all = [&lists.strong, &lists.secret_keys, &lists.plain_keys, &lists.secret_values];
        let more = [&lists.tails, &lists.pointers, &lists.spoken, &lists.lookups];
        for list in all.into_iter().chain(more) {
            assert!(list.len() > 10);
            assert!(list.iter().all(|word| !word.bytes().any(|b| b.is_ascii_uppercase())), "{list:?}");
        }
    }
}
