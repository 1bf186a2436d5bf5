//! How a document is changed: exact replacements, a unified difference, or a whole new text.
//!
//! A patch fits or it does not. Nothing is guessed: text that occurs twice is not replaced, context that is not there
//! is not searched for by likeness.

use crate::codes;
use crate::documents::text::{composed, normalise};
use domain::{Code, Failure};
use serde::{Deserialize, Serialize};
use serde_json::json;

mod unified;

/// One exact replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// What must occur exactly once.
    pub find: String,
    /// What stands there afterwards.
    pub replace: String,
}

/// How a document is to be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchChange {
    /// Replacements, one after the other.
    Edits(Vec<Edit>),
    /// One unified difference.
    Diff(String),
    /// A whole new text.
    Content(String),
}

impl PatchChange {
    /// The text as it would be, normalised.
    pub fn apply(&self, content: &str) -> Result<String, Failure> {
        match self {
            PatchChange::Content(text) => Ok(normalise(text)),
            PatchChange::Diff(diff) => unified::apply(content, &composed(diff)).map(|text| normalise(&text)),
            PatchChange::Edits(edits) => {
                let mut text = content.to_owned();
                for (n, edit) in edits.iter().enumerate() {
                    text = replaced(&text, edit, n + 1)?;
                }
                Ok(normalise(&text))
            }
        }
    }
}

/// The text with one replacement made.
fn replaced(text: &str, edit: &Edit, number: usize) -> Result<String, Failure> {
    /// How many places are named.
    const NAMED: usize = 5;
    let (find, replace) = (composed(&edit.find), composed(&edit.replace));
    if find.is_empty() {
        return Err(Failure::new(Code::InvalidArgument, format!("edit {number} looks for nothing"))
            .next("give the text that is to be replaced"));
    }
    let mut places = occurrences(text, &find).take(NAMED);
    let Some(first) = places.next() else {
        return Err(Failure::new(codes::EDIT_NOT_FOUND, format!("the text of edit {number} does not occur"))
            .next("read the document again and copy the text exactly, blanks and line ends included"));
    };
    let others: Vec<usize> = places.collect();
    if !others.is_empty() {
        let lines: Vec<usize> = [first].iter().chain(&others).map(|at| text[..*at].matches('\n').count() + 1).collect();
        let named: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let message = format!("the text of edit {number} occurs more than once, in lines {}", named.join(", "));
        return Err(Failure::new(codes::EDIT_AMBIGUOUS, message)
            .next("take in a line before or after, so that it occurs once")
            .details(json!({ "edit": number, "lines": lines })));
    }
    Ok([&text[..first], &replace, &text[first + find.len()..]].concat())
}

/// Where a text occurs, overlapping places included: each of them could have been meant.
fn occurrences<'a>(text: &'a str, find: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = find.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(find)?;
        from = at + step;
        Some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(text: &str, edits: &[(&str, &str)]) -> Result<String, Failure> {
        let edit = |(find, replace): &(&str, &str)| Edit { find: (*find).into(), replace: (*replace).into() };
        PatchChange::Edits(edits.iter().map(edit).collect()).apply(text)
    }

    #[test]
    fn edits_are_made_in_order_each_in_its_only_place() {
        assert_eq!(edits("one two three", &[("two", "2"), ("2 three", "rest")]).unwrap(), "one rest");
        assert_eq!(edits("a\nb\nc", &[("b\n", "")]).unwrap(), "a\nc");
        assert_eq!(edits("a\r\nb", &[("a", "x")]).unwrap(), "x\nb");
        assert_eq!(edits("caf\u{e9}", &[("cafe\u{301}", "tea")]).unwrap(), "tea", "one form for equal texts");
    }

    #[test]
    fn what_is_not_there_or_there_twice_is_not_replaced() {
        assert_eq!(edits("abc", &[("x", "y")]).unwrap_err().code, codes::EDIT_NOT_FOUND);
        let failure = edits("a b\nc\na b", &[("c", "d"), ("a b", "e")]).unwrap_err();
        assert_eq!(failure.code, codes::EDIT_AMBIGUOUS);
        assert_eq!(failure.details, Some(json!({ "edit": 2, "lines": [1, 3] })));
        assert_eq!(edits("aaa", &[("aa", "b")]).unwrap_err().code, codes::EDIT_AMBIGUOUS, "overlapping places count");
        assert_eq!(edits("ééé", &[("éé", "b")]).unwrap_err().code, codes::EDIT_AMBIGUOUS);
        assert_eq!(edits("abc", &[("", "y")]).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn a_whole_text_replaces_everything() {
        assert_eq!(PatchChange::Content("new\r\ntext \n".into()).apply("old").unwrap(), "new\ntext");
    }
}
