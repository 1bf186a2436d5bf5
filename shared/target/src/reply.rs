//! What every answer has in common, and how it is kept within its bounds.
//!
//! Whatever is cut is counted, and a hint names the argument that narrows. Text keeps whole lines; lists keep whole
//! rows and go on with a cursor; one object that is too large is thinned until it fits.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The most JSON in one answer.
pub const MOST_BYTES: usize = 24 * 1024;
/// What the frame around rows or text may take of it.
const FRAME: usize = 2 * 1024;
/// What rows, an object or a text may take.
pub const ROOM: usize = MOST_BYTES - FRAME;
/// The longest single value, other than a text that is the answer.
const MOST_VALUE: usize = 8 * 1024;
/// The most rows of a list.
pub const MOST_ROWS: usize = 100;

/// The fields every answer may have; `W` says where a call went that did not say so itself.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "a comment on a field becomes part of the schema that models read")]
pub struct ReplyFields<W> {
    /// Where it was looked, if the call left that open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<W>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Omitted::is_none")]
    pub omitted: Omitted,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// It holds text that somebody else wrote.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// What was left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "a comment on a field becomes part of the schema that models read")]
pub struct Omitted {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub items: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lines: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
}

impl Omitted {
    /// Whether nothing was left out.
    pub fn is_none(&self) -> bool {
        *self == Omitted::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl<W> Default for ReplyFields<W> {
    fn default() -> ReplyFields<W> {
        let (omitted, warnings) = (Omitted::default(), Vec::new());
        ReplyFields {
            target: None,
            truncated: false,
            omitted,
            next_cursor: None,
            hint: None,
            warnings,
            untrusted: false,
        }
    }
}

impl<W> ReplyFields<W> {
    /// Notes that something was left out, and how to ask for less.
    pub fn cut(&mut self, omitted: Omitted, hint: &str) {
        self.truncated = true;
        self.omitted.items += omitted.items;
        self.omitted.lines += omitted.lines;
        self.omitted.bytes += omitted.bytes;
        self.hint.get_or_insert_with(|| hint.to_owned());
    }

    /// Notes that so many rows were left out, if any were.
    pub fn cut_items(&mut self, left: usize, hint: &str) {
        if left > 0 {
            self.cut(Omitted { items: wide(left), ..Omitted::default() }, hint);
        }
    }

    /// Notes that so many lines were left out, if any were.
    pub fn cut_lines(&mut self, left: usize, hint: &str) {
        if left > 0 {
            self.cut(Omitted { lines: wide(left), ..Omitted::default() }, hint);
        }
    }

    /// Notes that so many bytes were left out, if any were.
    pub fn cut_bytes(&mut self, bytes: u64, hint: &str) {
        if bytes > 0 {
            self.cut(Omitted { bytes, ..Omitted::default() }, hint);
        }
    }
}

fn wide(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// Rows from an index on, as far as they fit; and where the next page begins. One row always fits, or nobody would get
/// past it.
pub fn page_of_rows<T: Serialize>(all: Vec<T>, from: usize) -> (Vec<T>, Option<usize>) {
    let many = all.len();
    let (mut kept, mut used) = (Vec::new(), 0);
    for row in all.into_iter().skip(from) {
        let size = size_of(&row) + 1;
        if !kept.is_empty() && (used + size > ROOM || kept.len() == MOST_ROWS) {
            break;
        }
        used += size;
        kept.push(row);
    }
    let next = from + kept.len();
    (kept, (next < many).then_some(next))
}

/// Rows as far as they fit; how many were left behind. The first row always fits, thinned if need be.
pub fn rows_that_fit(rows: Vec<Map<String, Value>>, room: usize) -> (Vec<Map<String, Value>>, usize) {
    let (mut kept, mut used, all) = (Vec::new(), 0, rows.len());
    for mut row in rows {
        let mut size = size_of_map(&row);
        if kept.is_empty() && size > room {
            let mut value = Value::Object(row);
            thin(&mut value, room);
            size = size_of(&value);
            row = match value {
                Value::Object(row) => row,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
            };
        }
        if used + size > room || kept.len() == MOST_ROWS {
            break;
        }
        used += size + 1;
        kept.push(row);
    }
    let left = all - kept.len();
    (kept, left)
}

/// Thins a value until it fits: first long texts, then long lists are shortened, each time more. Gives the bytes saved.
pub fn thin(value: &mut Value, room: usize) -> u64 {
    let before = size_of(value);
    shorten(value, MOST_VALUE, usize::MAX);
    for (text, items) in [(2_048, 100), (1_024, 40), (512, 20), (256, 10), (128, 5), (64, 2)] {
        if size_of(value) <= room {
            break;
        }
        shorten(value, text, items);
    }
    if size_of(value) > room {
        // Thousands of keys, each of them short: nothing that could still be shown in part.
        *value = Value::String("too large to be shown; use path".to_owned());
    }
    u64::try_from(before.saturating_sub(size_of(value))).unwrap_or_default()
}

fn shorten(value: &mut Value, most_text: usize, most_items: usize) {
    match value {
        Value::String(text) => {
            if text.len() > most_text {
                cut_text(text, most_text);
            }
        }
        Value::Array(items) => {
            if items.len() > most_items {
                let left = items.len() - most_items;
                items.truncate(most_items);
                items.push(Value::String(format!("… ({left} more items)")));
            }
            items.iter_mut().for_each(|item| shorten(item, most_text, most_items));
        }
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, most_text, most_items)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Cuts a text at a character and says how much is gone.
pub fn cut_text(text: &mut String, most: usize) {
    let at = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let left = text.len() - at;
    if left > 0 {
        text.truncate(at);
        text.push_str(&format!("… ({left} more bytes)"));
    }
}

/// How many bytes a value takes as JSON.
pub fn size_of(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

fn size_of_map(row: &Map<String, Value>) -> usize {
    size_of(row)
}

/// Text for people without what a terminal would act on.
pub fn printable(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match c {
            // A colour: everything up to its final letter.
            '\u{1b}' => {
                if letters.next() == Some('[') {
                    letters.by_ref().find(|c| ('@'..='~').contains(c));
                }
            }
            '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(bytes: usize) -> Map<String, Value> {
        let Value::Object(row) = json!({ "a": "x".repeat(bytes) }) else { panic!("an object") };
        row
    }

    #[test]
    fn whole_rows_are_kept_as_far_as_they_fit() {
        let (kept, left) = rows_that_fit((0..10).map(|_| row(92)).collect(), 305);
        assert_eq!((kept.len(), left), (3, 7));
        let (kept, left) = rows_that_fit((0..150).map(|_| row(1)).collect(), ROOM);
        assert_eq!((kept.len(), left), (MOST_ROWS, 50));
        let (kept, left) = rows_that_fit(vec![row(100_000), row(1)], 1_000);
        assert_eq!((kept.len(), left), (2, 0), "a first row that is too large is thinned, not lost");
        assert_eq!(rows_that_fit(Vec::new(), 10).1, 0);
    }

    #[test]
    fn pages_of_rows_are_together_all_rows() {
        let all: Vec<String> = (0..250).map(|n| format!("{n:0200}")).collect();
        let (mut from, mut seen) = (0, Vec::new());
        loop {
            let (page, next) = page_of_rows(all.clone(), from);
            assert!(page.len() <= MOST_ROWS);
            seen.extend(page);
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert_eq!(seen, all);
        assert_eq!(page_of_rows(vec!["x".repeat(100_000), "y".to_owned()], 0).1, Some(1), "one row always fits");
    }

    #[test]
    fn what_was_left_out_is_noted_only_if_something_was() {
        let mut common = ReplyFields::<()>::default();
        common.cut_items(0, "a");
        common.cut_lines(0, "b");
        common.cut_bytes(0, "c");
        assert!(!common.truncated && common.hint.is_none());
        common.cut_items(2, "a");
        common.cut_lines(3, "b");
        assert_eq!(common.omitted, Omitted { items: 2, lines: 3, bytes: 0 });
        assert_eq!((common.truncated, common.hint.as_deref()), (true, Some("a")), "the first hint stays");
    }

    #[test]
    fn a_large_object_is_thinned_until_it_fits() {
        let many: Vec<Value> = (0..5_000).map(|n| json!({ "n": n, "text": "é".repeat(100) })).collect();
        let mut object = json!({ "metadata": { "name": "a" }, "items": many, "long": "x".repeat(50_000) });
        let saved = thin(&mut object, ROOM);
        assert!(size_of(&object) <= ROOM && saved > 500_000);
        assert_eq!(object["metadata"]["name"], "a");
        let mut wide: Value = (0..20_000).map(|n| (format!("key{n}"), json!(1))).collect::<Map<_, _>>().into();
        thin(&mut wide, ROOM);
        assert!(size_of(&wide) <= ROOM);
    }

    #[test]
    fn what_a_terminal_would_act_on_is_gone() {
        assert_eq!(printable("\u{1b}[31mred\u{1b}[0m\tplain\u{7}\u{202e}"), "red\tplain\u{202e}");
        assert_eq!(printable("\u{1b}"), "");
    }
}
