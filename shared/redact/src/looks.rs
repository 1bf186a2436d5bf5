//! What looks like a secret: by the names around a value, and by its own shape. Nobody has to know the value.
//!
//! This is a guess, in both directions: the corpus under `tests/corpus` says how good it is. What is *known* to be a secret
//! is another matter, see [`Scrubber`](crate::Scrubber).
//!
//! The cost grows with the length of the text and no faster: every line is looked at a fixed number of times, names and
//! values are judged by a bounded part of them, and what is decoded is shorter than what it was decoded from. A text that
//! is longer than [`LONGEST`], or costs more than it should, is masked from there on.
//!
//! Reading order: this file, `names`, `values`, `pairs`, `shapes`, `blocks`, `encoded`; the words are in `words.txt`.

mod blocks;
mod encoded;
mod names;
mod pairs;
mod shapes;
mod values;
mod words;

use blocks::{BlockLook, OpenBlock};
pub use names::{is_pointer_name, is_secret_name};
use std::ops::Range;
pub use values::{SettingPlace, is_mark};

/// The longest text that is looked at; what is behind it is masked as a whole.
pub const LONGEST: usize = 16 * 1024 * 1024;
/// How often each byte may be looked at before the rest is masked unseen; and what even a short text may cost.
const LOOKS_PER_BYTE: u64 = 1024;
const LEAST_LOOKS: u64 = 1024 * 1024;
/// How often what was decoded is decoded again.
const DEPTH: usize = 2;

/// The rule for what was not looked at.
const UNSEEN: &str = "more than is looked at";

/// A place that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpan {
    /// What is refused or masked by it is called so.
    pub rule: &'static str,
    /// The whole of what was recognised, with the name before the secret.
    pub hit: Range<usize>,
    /// The secret itself.
    pub secret: Range<usize>,
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookCost {
    bytes: u64,
    most: u64,
    /// The longest text that is looked at.
    longest: usize,
}

impl LookCost {
    fn of(length: usize) -> LookCost {
        let most = LOOKS_PER_BYTE.saturating_mul(u64::try_from(length).unwrap_or(u64::MAX)).max(LEAST_LOOKS);
        LookCost { bytes: 0, most, longest: LONGEST }
    }

    fn bytes(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    }

    fn is_spent(&self) -> bool {
        self.bytes > self.most
    }
}

/// Everything in a text that looks like a secret, in order and apart.
pub fn find(text: &str) -> Vec<SecretSpan> {
    find_counted(text).0
}

/// Whether a value under a name is a secret by the two of them.
pub fn is_secret_setting(name: &str, value: &str, place: SettingPlace) -> bool {
    !names::is_directory(name, value) && values::is_secret(names::class(name), value, place)
}

/// Whether a field of an object holds a secret: what its name says plainly counts whatever the value, and what it only
/// hints at counts as in a text.
pub fn is_secret_field(name: &str, value: &str) -> bool {
    let class = names::class(name);
    let place = if class == names::NameClass::Strong { SettingPlace::Setting } else { SettingPlace::Text };
    values::is_secret(class, value, place)
}

/// Whether a text is, or holds, a Secret as YAML or indented JSON.
pub fn holds_secret_manifest(text: &str) -> bool {
    mentions_secret(text) && text.lines().any(|line| blocks::is_secret_kind(line.trim()))
}

/// Whether some bytes hold a secret: a text with something secret in it, or what is no text and cannot be judged.
pub fn holds_secret(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or(true, |text| !find(text).is_empty())
}

/// The same with what it cost.
pub(crate) fn find_counted(text: &str) -> (Vec<SecretSpan>, u64) {
    let mut cost = LookCost::of(text.len());
    let spans = find_within(text, DEPTH, &mut cost);
    (spans, cost.bytes)
}

fn find_within(text: &str, depth: usize, cost: &mut LookCost) -> Vec<SecretSpan> {
    let mut looker = LineLooker { depth, ..LineLooker::default() };
    let mut documents = secret_documents(text, cost).into_iter().peekable();
    let (mut spans, mut start) = (Vec::new(), 0);
    for whole in text.split_inclusive('\n') {
        if documents.next_if(|(at, _)| *at <= start).is_some_and(|(_, secret)| secret) {
            looker.block.document(true);
        }
        if start + whole.len() > cost.longest || cost.is_spent() {
            spans.push(SecretSpan { rule: UNSEEN, hit: start..text.len(), secret: start..text.len() });
            break;
        }
        let line = whole.trim_end_matches(['\n', '\r']);
        for span in looker.line(line, cost) {
            let moved = |range: Range<usize>| range.start + start..range.end + start;
            spans.push(SecretSpan { rule: span.rule, hit: moved(span.hit), secret: moved(span.secret) });
        }
        start += whole.len();
    }
    spans
}

fn mentions_secret(text: &str) -> bool {
    ["Secret", "secret", "SECRET"].iter().any(|word| text.contains(word))
}

/// Where the documents of a text begin, and which of them are Secrets. The kind may stand behind the contents.
fn secret_documents(text: &str, cost: &mut LookCost) -> Vec<(usize, bool)> {
    cost.bytes(text.len());
    if !mentions_secret(text) {
        return Vec::new();
    }
    let (mut documents, mut start) = (vec![(0, false)], 0);
    cost.bytes(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            documents.push((start + line.len(), false));
        } else if blocks::is_secret_kind(line.trim())
            && let Some(last) = documents.last_mut()
        {
            last.1 = true;
        }
        start += line.len();
    }
    documents
}

/// Looks at the lines of one text in their order.
#[derive(Debug, Default)]
pub(crate) struct LineLooker {
    block: OpenBlock,
    depth: usize,
}

impl LineLooker {
    /// A looker that also looks into what is encoded.
    pub(crate) fn new() -> LineLooker {
        LineLooker { block: OpenBlock::default(), depth: DEPTH }
    }

    /// What of one line looks like a secret, at a cost of its own.
    pub(crate) fn alone(&mut self, line: &str) -> Vec<SecretSpan> {
        if line.len() > LONGEST {
            return vec![SecretSpan { rule: UNSEEN, hit: 0..line.len(), secret: 0..line.len() }];
        }
        self.line(line, &mut LookCost::of(line.len()))
    }

    fn line(&mut self, line: &str, cost: &mut LookCost) -> Vec<SecretSpan> {
        cost.bytes(line.len());
        let mut spans = Vec::new();
        let span = |rule, range: Range<usize>| SecretSpan { rule, hit: range.clone(), secret: range };
        match self.block.line(line) {
            BlockLook::Whole(rule, range) => {
                return if range.is_empty() { spans } else { vec![span(rule, range)] };
            }
            BlockLook::Part(rule, range) => spans.push(span(rule, range)),
            BlockLook::Alone => {}
        }
        if shapes::find(line, &mut spans, cost).is_none() {
            // Without the shapes nothing can be told apart, and what cannot be judged is not shown.
            return vec![span(UNSEEN, 0..line.len())];
        }
        pairs::find(line, &mut spans, cost);
        if let Some(depth) = self.depth.checked_sub(1) {
            for run in encoded::runs(line) {
                cost.bytes(run.len());
                let text = encoded::decode(&line.as_bytes()[run.clone()]);
                if text.is_some_and(|text| !find_within(&text, depth, cost).is_empty()) {
                    spans.push(span("encoded secret", run));
                }
            }
        }
        apart(spans)
    }
}

/// Spans in their order, those that overlap as one. The longer of two that begin together gives its name.
fn apart(mut spans: Vec<SecretSpan>) -> Vec<SecretSpan> {
    spans.sort_by_key(|span| (span.secret.start, std::cmp::Reverse(span.secret.end)));
    let mut out: Vec<SecretSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut() {
            Some(last) if span.secret.start < last.secret.end => {
                last.secret.end = last.secret.end.max(span.secret.end);
                last.hit = last.hit.start.min(span.hit.start)..last.hit.end.max(span.hit.end);
            }
            Some(_) | None => out.push(span),
        }
    }
    out
}

#[cfg(test)]
mod tests;
