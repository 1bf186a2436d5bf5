//! Who uses which word how often.
//!
//! Words and documents have numbers, and a word's postings are sorted by document, so that taking a document out is one
//! binary search for each of its words. Numbers that became free are given out again.

use crate::search::{self, IndexHit};
use crate::words::each_word;
use std::collections::HashMap;
use std::sync::Arc;

/// Content beyond this is not looked at; the head of a document says what it is about.
pub(crate) const LOOKED_AT: usize = 32 * 1024;

const TITLE: u32 = 3;
const TAGS_AND_PATH: u32 = 2;
const CONTENT: u32 = 1;

/// What an entry of a hash table costs beside key and value, at the load tables usually have.
const ENTRY: usize = 8;

/// The text of a document.
#[derive(Debug, Clone, Copy)]
pub struct DocumentText<'a> {
    /// Where it stands; what it is known by here.
    pub path: &'a str,
    /// What it is called.
    pub title: &'a str,
    /// Labels.
    pub tags: &'a [String],
    /// The text itself.
    pub content: &'a str,
}

/// What else makes a document rank high or low.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFacts {
    /// How far it can be relied on, from zero to one.
    pub trust_weight: f64,
    /// How useful documents of its type are, from zero to one.
    pub type_weight: f64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// Whether it is rather not to be shown.
    pub suspect: bool,
    /// Its type, for filters.
    pub kind: String,
}

/// A full-text index of documents, by path.
#[derive(Debug, Default)]
pub struct TextIndex {
    by_path: HashMap<Arc<str>, u32>,
    documents: Vec<Option<IndexEntry>>,
    free_documents: Vec<u32>,
    by_word: HashMap<Arc<str>, u32>,
    words: Vec<IndexedWord>,
    free_words: Vec<u32>,
    /// The lengths of all documents together.
    total: u64,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct IndexEntry {
    pub(crate) path: Arc<str>,
    pub(crate) facts: RankFacts,
    /// How many words it has, each counted by its weight.
    pub(crate) length: u32,
    words: Box<[u32]>,
}

#[derive(Debug, Default)]
struct IndexedWord {
    text: Arc<str>,
    postings: Vec<Posting>,
}

/// That a document has a word, and how often by weight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    pub(crate) count: u32,
}

impl TextIndex {
    /// Puts a document in, in place of the one at its path.
    pub fn put(&mut self, text: DocumentText<'_>, facts: RankFacts) {
        self.remove(text.path);
        let document = self.free_documents.pop().unwrap_or(number(self.documents.len()));
        let (counts, length) = self.count(text);
        let mut words: Vec<u32> = counts.keys().copied().collect();
        words.sort_unstable();
        for (word, count) in counts {
            self.post(word, Posting { document, count });
        }
        let path: Arc<str> = text.path.into();
        let entry = IndexEntry { path: Arc::clone(&path), facts, length, words: words.into() };
        self.bytes += entry.bytes();
        self.total += u64::from(length);
        self.by_path.insert(path, document);
        match self.documents.get_mut(document as usize) {
            Some(free) => *free = Some(entry),
            None => self.documents.push(Some(entry)),
        }
    }

    /// Takes a document out; tells whether it was there.
    pub fn remove(&mut self, path: &str) -> bool {
        let Some(document) = self.by_path.remove(path) else { return false };
        let Some(entry) = self.documents.get_mut(document as usize).and_then(Option::take) else { return false };
        for word in &entry.words {
            self.unpost(*word, document);
        }
        self.bytes -= entry.bytes();
        self.total -= u64::from(entry.length);
        self.free_documents.push(document);
        true
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The best documents for a query among those that `filter` lets through; see [`search`](crate::search()).
    pub fn search(&self, query: &str, filter: impl Fn(&RankFacts) -> bool, now_ms: u64, limit: usize) -> Vec<IndexHit> {
        search::search(&[self], query, filter, now_ms, limit)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// How many numbers were given to documents.
    pub(crate) fn numbers(&self) -> usize {
        self.documents.len()
    }

    pub(crate) fn entry(&self, document: u32) -> Option<&IndexEntry> {
        self.documents.get(document as usize)?.as_ref()
    }

    pub(crate) fn postings(&self, word: &str) -> &[Posting] {
        let found = self.by_word.get(word).and_then(|word| self.words.get(*word as usize));
        found.map_or(&[], |word| &word.postings)
    }

    /// How often each word counts in a document, and how long it is: the title thrice, tags and path twice, the content
    /// once.
    fn count(&mut self, text: DocumentText<'_>) -> (HashMap<u32, u32>, u32) {
        let (mut counts, mut length) = (HashMap::new(), 0_u32);
        let mut add = |text: &str, weight: u32| {
            each_word(text, |word| {
                *counts.entry(self.word(word)).or_default() += weight;
                length += weight;
            });
        };
        add(text.title, TITLE);
        text.tags.iter().for_each(|tag| add(tag, TAGS_AND_PATH));
        add(text.path, TAGS_AND_PATH);
        add(head(text.content), CONTENT);
        (counts, length)
    }

    /// The number of a word, new if need be.
    fn word(&mut self, text: &str) -> u32 {
        if let Some(word) = self.by_word.get(text) {
            return *word;
        }
        let shared: Arc<str> = text.into();
        let new = IndexedWord { text: Arc::clone(&shared), postings: Vec::new() };
        self.bytes += new.bytes();
        let word = match self.free_words.pop() {
            Some(free) => {
                self.words[free as usize] = new;
                free
            }
            None => {
                self.words.push(new);
                number(self.words.len() - 1)
            }
        };
        self.by_word.insert(shared, word);
        word
    }

    fn post(&mut self, word: u32, posting: Posting) {
        let word = &mut self.words[word as usize];
        let before = word.postings.capacity();
        let at = word.postings.partition_point(|other| other.document < posting.document);
        word.postings.insert(at, posting);
        self.bytes += (word.postings.capacity() - before) * size_of::<Posting>();
    }

    fn unpost(&mut self, number: u32, document: u32) {
        let word = &mut self.words[number as usize];
        let before = word.bytes();
        if let Ok(at) = word.postings.binary_search_by_key(&document, |posting| posting.document) {
            word.postings.remove(at);
        }
        if word.postings.is_empty() {
            self.by_word.remove(&word.text);
            *word = IndexedWord::default();
            self.free_words.push(number);
            self.bytes -= before;
        } else if word.postings.len() * 4 <= word.postings.capacity() {
            word.postings.shrink_to(word.postings.len() * 2);
            self.bytes -= before - word.bytes();
        }
    }
}

impl IndexEntry {
    fn bytes(&self) -> usize {
        // The path stands here and as a key, but only once in memory.
        size_of::<Option<IndexEntry>>()
            + self.path.len()
            + self.facts.kind.len()
            + size_of_val(&*self.words)
            + size_of::<(Arc<str>, u32)>()
            + ENTRY
    }
}

impl IndexedWord {
    fn bytes(&self) -> usize {
        let postings = self.postings.capacity() * size_of::<Posting>();
        size_of::<IndexedWord>()
            + self.text.len()
            + 2 * size_of::<usize>()
            + postings
            + size_of::<(Arc<str>, u32)>()
            + ENTRY
    }
}

/// The part of a content that is looked at.
pub(crate) fn head(content: &str) -> &str {
    let mut end = content.len().min(LOOKED_AT);
    while !content.is_char_boundary(end) {
        end -= 1;
    }
    &content[..end]
}

/// Four billion documents or words of one index do not fit into memory.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
