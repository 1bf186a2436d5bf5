//! A full-text index in memory: BM25 joined with trust, type and recency.
//!
//! Reading order: `words` says what a word is, [`TextIndex`] holds who uses which, [`search()`] ranks, [`excerpt()`] shows why
//! something was found. An index holds no text, only how often which word stands where, so its size is a fraction of
//! what it was given and is known at any time.
//!
//! Not here: where documents come from, who may see them, and when an index is behind. Nothing here waits or fails.

mod excerpt;
mod index;
mod search;
mod words;

pub use excerpt::excerpt;
pub use index::{DocumentText, RankFacts, TextIndex};
pub use search::{IndexHit, search};
