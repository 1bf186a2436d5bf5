//! Known secrets in any text: the exact values, in the forms in which a server may echo them.
//!
//! A value is looked for as it is and inside base64 of either alphabet, wherever in the encoded bytes it begins, so that
//! `user:value` is found as well. The text is read as it is, with its percent-encoding undone and with its JSON escapes
//! undone, twice over: an encoder is free in what it escapes, and undoing asks for no list of encoders. What is found in
//! one reading is taken out of the text itself, with everything that overlaps it.
//!
//! It is for whole texts, before anything cuts them: half a secret is not found.
//!
//! Left alone: values below [`SHORTEST`] bytes, which would turn up in everything; base64 that is broken into lines;
//! a part of a value. A value longer than [`HEAD`] bytes counts as found where its first [`HEAD`] bytes stand.

mod forms;
mod reading;

use crate::SecretText;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use forms::SecretForm;
use reading::{ESCAPES, UnescapedText};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Values with fewer bytes are left alone.
const SHORTEST: usize = 6;
/// By so many bytes a longer form is known; beyond that it is followed as far as the text agrees. It bounds what a large
/// secret costs.
const HEAD: usize = 256;
/// How many escapings inside one another are undone.
const DEPTH: usize = 2;
/// What stands where a secret stood.
const MASK: &str = "[redacted: secret]";
/// What stands for a text that cannot be judged.
const GONE: &str = "[redacted]";

/// Takes known secrets out of texts. Does not print them.
#[derive(Default)]
pub struct Scrubber {
    forms: Vec<SecretForm>,
    /// Over the heads of the forms. `None` with forms at hand: it cannot be built, and nothing can be judged.
    heads: Option<AhoCorasick>,
}

impl Scrubber {
    /// A scrubber for these values. Blanks around a value do not count as part of it.
    pub fn new(values: impl IntoIterator<Item = SecretText>) -> Scrubber {
        Scrubber::default().with(values)
    }

    /// A scrubber for these values and all that this one knows.
    #[must_use]
    pub fn with(&self, values: impl IntoIterator<Item = SecretText>) -> Scrubber {
        let mut forms = self.forms.clone();
        for value in values {
            let value = value.expose().trim();
            if value.len() >= SHORTEST {
                forms.extend(forms::of(value));
            }
        }
        forms.sort();
        forms.dedup();
        if forms.is_empty() {
            return Scrubber::default();
        }
        let heads = AhoCorasick::builder()
            // All matches are wanted, also those that overlap.
            .match_kind(MatchKind::Standard)
            // The larger kind takes a row of the alphabet for every byte of a secret.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(forms.iter().map(SecretForm::head))
            .ok();
        Scrubber { forms, heads }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The text without the secrets.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.scrub_and_count(text).0
    }

    /// The text without the secrets, and how many characters of it were taken out.
    pub fn scrub_and_count<'a>(&self, text: &'a str) -> (Cow<'a, str>, usize) {
        if self.is_empty() {
            return (Cow::Borrowed(text), 0);
        }
        // What cannot be judged is not shown.
        let Some(heads) = &self.heads else { return (Cow::Borrowed(GONE), text.chars().count()) };
        let mut spans = self.find(heads, text.as_bytes(), DEPTH);
        if spans.is_empty() {
            return (Cow::Borrowed(text), 0);
        }
        let mut out = String::with_capacity(text.len());
        let (mut from, mut hidden) = (0, 0);
        merge(&mut spans);
        for span in spans {
            // A long form may agree with the text up to the middle of a letter.
            let end = (span.end..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            out.push_str(&text[from..span.start]);
            out.push_str(MASK);
            hidden += text[span.start..end].chars().count();
            from = end;
        }
        out.push_str(&text[from..]);
        (Cow::Owned(out), hidden)
    }

    /// Where secrets stand in a text, escaped up to so many times.
    fn find(&self, heads: &AhoCorasick, text: &[u8], depth: usize) -> Vec<Range<usize>> {
        let mut spans = self.plain(heads, text);
        let Some(deeper) = depth.checked_sub(1) else { return spans };
        for escape in ESCAPES {
            // Without its sign the text reads the same.
            let Some(reading) = UnescapedText::of(text, escape) else { continue };
            let mut inner = self.find(heads, reading.bytes(), deeper);
            merge(&mut inner);
            spans.extend(reading.locate(&inner));
        }
        spans
    }

    /// Where secrets stand in a text as it is.
    fn plain(&self, heads: &AhoCorasick, text: &[u8]) -> Vec<Range<usize>> {
        if !heads.is_match(text) {
            return Vec::new();
        }
        let mut spans: Vec<Range<usize>> = Vec::new();
        // How far each form was followed: a secret of one letter, over and over, must not be followed from every letter.
        let mut followed = vec![0; self.forms.len()];
        for hit in heads.find_overlapping_iter(text) {
            let n = hit.pattern().as_usize();
            let Some(form) = self.forms.get(n) else { continue };
            let end = form.follow(text, hit.start(), followed[n].max(hit.end()));
            followed[n] = end;
            // Keeps the list as short as what it covers.
            join(&mut spans, form.with_edges(text, hit.start()..end));
        }
        spans
    }
}

impl fmt::Debug for Scrubber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scrubber({} forms)", self.forms.len())
    }
}

/// Sorts spans and joins those that touch.
fn merge(spans: &mut Vec<Range<usize>>) {
    spans.sort_unstable_by_key(|span| span.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans.drain(..) {
        join(&mut merged, span);
    }
    *spans = merged;
}

/// Adds a span that ends no earlier than the last one begins; joins the two if they touch.
fn join(spans: &mut Vec<Range<usize>>, span: Range<usize>) {
    match spans.last_mut() {
        Some(last) if span.start <= last.end => *last = last.start.min(span.start)..last.end.max(span.end),
        Some(_) | None => spans.push(span),
    }
}

#[cfg(test)]
mod tests;
