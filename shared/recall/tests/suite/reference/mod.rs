//! The ranking once more, in the plainest way: no index, every document is looked at for every question.

use std::collections::BTreeMap;

/// A document as the plain ranking wants it.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) tags: Vec<String>,
    pub(crate) content: String,
    pub(crate) trust_weight: f64,
    pub(crate) type_weight: f64,
    pub(crate) updated_ms: u64,
    pub(crate) suspect: bool,
}

/// Documents with their words counted.
pub(crate) struct Ranking<'d> {
    documents: &'d [Plain],
    counted: Vec<(BTreeMap<String, f64>, f64)>,
    average: f64,
}

impl<'d> Ranking<'d> {
    /// Counts all words.
    pub(crate) fn of(documents: &'d [Plain]) -> Ranking<'d> {
        let with_length = |counts: BTreeMap<String, f64>| {
            let length = counts.values().sum::<f64>();
            (counts, length)
        };
        let counted: Vec<_> = documents.iter().map(count).map(with_length).collect();
        let total = counted.iter().map(|(_, length)| length).sum::<f64>();
        let average = (total / (documents.len() as f64).max(1.0)).max(1.0);
        Ranking { documents, counted, average }
    }

    /// Ranks all documents for a question, best first; `rarity` says how much a word counts that so many of so many have.
    pub(crate) fn rank(&self, question: &str, now_ms: u64, rarity: fn(f64, f64) -> f64) -> Vec<(String, f64)> {
        let mut asked = words(question);
        asked.sort();
        asked.dedup();
        let all = self.documents.len() as f64;
        let having = |word: &String| self.counted.iter().filter(|(counts, _)| counts.contains_key(word)).count() as f64;
        let rarities: Vec<f64> = asked.iter().map(|word| rarity(having(word), all)).collect();
        let bm25 = |(counts, length): &(BTreeMap<String, f64>, f64)| {
            let mut sum = 0.0;
            for (word, rare) in asked.iter().zip(&rarities) {
                let count = counts.get(word).copied().unwrap_or(0.0);
                sum += rare * count * 2.2 / (count + 1.2 * (1.0 - 0.75 + 0.75 * length / self.average));
            }
            sum
        };
        let scores: Vec<f64> = self.counted.iter().map(bm25).collect();
        let best = scores.iter().copied().fold(0.0, f64::max);
        let found = self.documents.iter().zip(scores).filter(|(_, score)| *score > 0.0);
        let mut ranked: Vec<(String, f64)> =
            found.map(|(document, score)| (document.path.clone(), document.joined(score / best, now_ms))).collect();
        ranked.sort_by(|(path, score), (other, than)| than.total_cmp(score).then_with(|| path.cmp(other)));
        ranked
    }
}

/// As it should be.
pub(crate) fn rare_words_count(having: f64, all: f64) -> f64 {
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

impl Plain {
    fn joined(&self, words: f64, now_ms: u64) -> f64 {
        let days = now_ms.saturating_sub(self.updated_ms) as f64 / 86_400_000.0;
        let recency = 0.5_f64.powf(days / 30.0);
        let joined = 0.60 * words + 0.20 * self.trust_weight + 0.10 * self.type_weight + 0.10 * recency;
        if self.suspect { joined * 0.5 } else { joined }
    }
}

fn count(document: &Plain) -> BTreeMap<String, f64> {
    let mut end = document.content.len().min(32 * 1024);
    while !document.content.is_char_boundary(end) {
        end -= 1;
    }
    let mut texts =
        vec![(3.0, document.title.as_str()), (2.0, document.path.as_str()), (1.0, &document.content[..end])];
    texts.extend(document.tags.iter().map(|tag| (2.0, tag.as_str())));
    let mut counts = BTreeMap::new();
    for (weight, text) in texts {
        for word in words(text) {
            *counts.entry(word).or_default() += weight;
        }
    }
    counts
}

/// A word without its usual English ending.
fn without_ending(word: &str) -> String {
    if word.len() < 4 || !word.chars().all(|letter| letter.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let singular = match word {
        many if many.len() > 4 && many.ends_with("ies") => format!("{}y", &many[..many.len() - 3]),
        same if same.ends_with("ss") || same.ends_with("us") || same.ends_with("is") => same.to_owned(),
        other => other.strip_suffix('s').unwrap_or(other).to_owned(),
    };
    let stem = match singular.strip_suffix("ing").or(singular.strip_suffix("ed")) {
        Some(stem) if stem.len() >= 3 && stem.chars().any(|letter| "aeiouy".contains(letter)) => {
            let letters: Vec<char> = stem.chars().collect();
            let [.., last_but_one, last] = letters[..] else { return stem.to_owned() };
            if last == last_but_one && !"lszeo".contains(last) {
                stem[..stem.len() - 1].to_owned()
            } else {
                stem.to_owned()
            }
        }
        Some(_) | None => singular,
    };
    if stem.len() > 3 { stem.strip_suffix('e').unwrap_or(&stem).to_owned() } else { stem }
}

/// Tokens whole, and their parts if they have several.
fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for token in text.split(|letter: char| !(letter.is_alphanumeric() || "-_./".contains(letter))) {
        let token = token.trim_matches(|letter: char| !letter.is_alphanumeric());
        if token.is_empty() {
            continue;
        }
        let parts = parts(token);
        if parts.len() > 1 {
            all.push(without_ending(&token.chars().flat_map(char::to_lowercase).collect::<String>()));
        }
        all.extend(parts.iter().map(|part| without_ending(part)));
    }
    all
}

fn parts(token: &str) -> Vec<String> {
    let letters: Vec<char> = token.chars().collect();
    let (mut parts, mut part) = (Vec::new(), String::new());
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let small = |at: usize| letters.get(at).is_some_and(|letter| letter.is_lowercase());
        let turns = letter.is_uppercase()
            && before
                .is_some_and(|before| before.is_lowercase() || before.is_uppercase() && small(at + 1) && small(at + 2));
        if (turns || !letter.is_alphanumeric()) && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if letter.is_alphanumeric() {
            part.extend(letter.to_lowercase());
        }
    }
    parts.extend(Some(part).filter(|part| !part.is_empty()));
    parts
}
