//! YAML text as a tree in which every value knows where it stands.
//!
//! The subset is small on purpose: one document of mappings, lists and scalars. Tags, anchors, aliases, merge keys
//! and directives are refused rather than bounded, so a tree is never larger than its text and nothing in a text can
//! name a type. Whatever still makes sense after a refusal is kept, so that one reading finds all mistakes.
//!
//! Not here: what the keys mean. A scalar stays text until somebody asks for a number.

use crate::problem::{Position, ProblemReport, count, escaped, shown};
use serde_saphyr::granit_parser::{self, ErrorKind, Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};
use std::collections::HashMap;

/// The longest text that is looked at; a tenant's file is a few hundred lines.
pub(crate) const MOST_BYTES: usize = 256 * 1024;
/// The deepest nesting; the format itself needs six levels.
const MOST_DEPTH: usize = 16;
/// The most values in one file.
const MOST_NODES: usize = 20_000;

/// A value and where it stands.
#[derive(Debug)]
pub struct YamlNode {
    /// Where it begins.
    pub at: Position,
    /// What stands there.
    pub value: YamlValue,
}

impl YamlNode {
    /// What stands under a key, if this is a mapping that has it.
    pub fn find(&self, key: &str) -> Option<&YamlNode> {
        match &self.value {
            YamlValue::Map(entries) => entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node),
            YamlValue::Scalar { .. } | YamlValue::List(_) | YamlValue::Refused => None,
        }
    }

    /// The items, if this is a list.
    pub fn items(&self) -> &[YamlNode] {
        match &self.value {
            YamlValue::List(items) => items,
            YamlValue::Scalar { .. } | YamlValue::Map(_) | YamlValue::Refused => &[],
        }
    }

    /// The text, if this is a scalar.
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            YamlValue::Scalar { text, .. } => Some(text),
            YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Refused => None,
        }
    }
}

/// What stands there.
#[derive(Debug)]
pub enum YamlValue {
    /// A single value. It stays text until somebody asks for a number.
    Scalar {
        /// As it is written, without its quotes.
        text: String,
        /// Whether it stands there without quotes.
        plain: bool,
    },
    /// A list.
    List(Vec<YamlNode>),
    /// A mapping in the order of the file, each key once.
    Map(Vec<(YamlKey, YamlNode)>),
    /// Something already reported; whoever meets it stays silent.
    Refused,
}

/// A key of a mapping and where it stands.
#[derive(Debug)]
pub struct YamlKey {
    /// Where it begins.
    pub at: Position,
    /// As it is written, without its quotes.
    pub text: String,
}

/// Reading cannot go on; the report says why.
#[derive(Debug)]
struct ReadingStopped;

/// Reads the one document of a text; an empty one is told how to `begin`. `None` means that the report says why there
/// is none.
pub fn read(text: &str, begin: &str, report: &mut ProblemReport) -> Option<YamlNode> {
    if text.len() > MOST_BYTES {
        too_large(&text.as_bytes()[..MOST_BYTES], report);
        return None;
    }
    let options = granit_parser::options! {
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: MOST_DEPTH,
        block_nesting_limit: MOST_DEPTH,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    YamlReader { parser, nodes: 0, report }.document(begin).ok()
}

/// Reports a text that goes on after `head`.
pub(crate) fn too_large(head: &[u8], report: &mut ProblemReport) {
    let at = Position::after(&String::from_utf8_lossy(head));
    report.add(at, "too_large", format!("the file is larger than {MOST_BYTES} bytes"), None);
}

struct YamlReader<'t, 'r> {
    parser: Parser<'t, StrInput<'t>>,
    nodes: usize,
    report: &'r mut ProblemReport,
}

impl<'t> YamlReader<'t, '_> {
    /// The first document, provided that no second one follows.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum: every event but these begins a node")]
    fn document(&mut self, begin: &str) -> Result<YamlNode, ReadingStopped> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::DocumentStart(..) if root.is_some() => {
                    let hint = "keep one document in a file, without `---` after it".to_owned();
                    self.report.add(position(span.start), "second_document", "a second document begins", Some(hint));
                    return Err(ReadingStopped);
                }
                Event::DocumentStart(..) => {}
                Event::StreamEnd => break,
                _ => root = Some(self.node(event, span)?),
            }
        }
        root.ok_or_else(|| {
            let hint = Some(begin.to_owned());
            self.report.add(Position::START, "empty_file", "the file holds no configuration", hint);
            ReadingStopped
        })
    }

    /// The node that begins with `event`. Recursion is bounded by the parser's own nesting limits.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum: no other event can begin a node")]
    fn node(&mut self, event: Event<'t>, span: Span) -> Result<YamlNode, ReadingStopped> {
        let at = position(span.start);
        self.count(at)?;
        let refused = self.refuse(&event, span);
        let value = match event {
            Event::Scalar(text, style, ..) => {
                YamlValue::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain }
            }
            Event::SequenceStart(..) => YamlValue::List(self.list()?),
            Event::MappingStart(..) => YamlValue::Map(self.map()?),
            _ => YamlValue::Refused,
        };
        Ok(YamlNode { at, value: if refused { YamlValue::Refused } else { value } })
    }

    fn list(&mut self) -> Result<Vec<YamlNode>, ReadingStopped> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(items);
            }
            items.push(self.node(event, span)?);
        }
    }

    fn map(&mut self) -> Result<Vec<(YamlKey, YamlNode)>, ReadingStopped> {
        let mut entries: Vec<(YamlKey, YamlNode)> = Vec::new();
        let mut lines: HashMap<String, u32> = HashMap::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(entries);
            }
            let key = self.node(event, span)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span)?;
            let Some(key) = self.key(key) else { continue };
            if let Some(line) = lines.get(&key.text) {
                let message = format!("the key {} stands here a second time", shown(&key.text));
                let hint = format!("the first one is in line {line}; keep one of them");
                self.report.add(key.at, "duplicate_key", message, Some(hint));
            } else {
                lines.insert(key.text.clone(), key.at.line);
                entries.push((key, value));
            }
        }
    }

    /// A key is a scalar; anything else is reported and left out with its value.
    fn key(&mut self, node: YamlNode) -> Option<YamlKey> {
        match node.value {
            YamlValue::Scalar { text, .. } => Some(YamlKey { at: node.at, text }),
            YamlValue::List(_) | YamlValue::Map(_) => {
                self.report.add(node.at, "wrong_type", "a key is text, not a list or a mapping", None);
                None
            }
            YamlValue::Refused => None,
        }
    }

    /// Reports what this subset leaves out of YAML; tells whether the node is affected.
    fn refuse(&mut self, event: &Event<'_>, span: Span) -> bool {
        if let Some(tag) = event.tag() {
            let at = position(span.tag_start().unwrap_or(span.start));
            let message = format!("the tag {} is not allowed", shown(&tag.original()));
            self.report.add(at, "yaml_tag", message, Some("remove it; types follow from the keys".to_owned()));
            return true;
        }
        let what = match (event.anchor_id(), event) {
            (_, Event::Alias(_) | Event::UnresolvedAlias(_)) => "an alias (`*name`)",
            (Some(_), _) => "an anchor (`&name`)",
            (None, _) => return false,
        };
        let hint = "write the value out where it is used".to_owned();
        self.report.add(position(span.start), "yaml_alias", format!("{what} is not allowed"), Some(hint));
        true
    }

    /// Keeps the number of values within its budget.
    fn count(&mut self, at: Position) -> Result<(), ReadingStopped> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            self.report.add(at, "too_many_values", format!("the file holds more than {MOST_NODES} values"), None);
        }
        if self.nodes > MOST_NODES || self.report.is_full() { Err(ReadingStopped) } else { Ok(()) }
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), ReadingStopped> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.not_yaml(&error)),
            // Only asked for after the end of the stream, which `document` does not do.
            None => Err(ReadingStopped),
        }
    }

    fn not_yaml(&mut self, error: &ScanError) -> ReadingStopped {
        let at = position(*error.marker());
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            self.report.add(at, "too_deep", format!("values are nested more than {MOST_DEPTH} deep"), None);
        } else {
            self.report.add(at, "yaml_syntax", escaped(&error.info()), None);
        }
        ReadingStopped
    }
}

/// The parser counts lines from one and columns from zero.
fn position(marker: Marker) -> Position {
    Position { line: count(marker.line().max(1)), column: count(marker.col() + 1) }
}
