//! Reads one value of the kind that is wanted, or reports what stands there instead.
//!
//! Every method that finds a mistake notes it with its position and goes on, so that one reading finds all of them. `place`
//! is how the sentence names the value (`` `name` ``, "a cluster").
//!
//! Text that another YAML reader would take for a number, a yes or nothing must be quoted, so that a file means the
//! same to every program and to every person. Numbers are decimal digits and nothing else.

use crate::config;
use crate::problem::{ProblemReport, shown};
use crate::yaml::{YamlKey, YamlNode, YamlValue};
use domain::outcome::near;
use domain::run::OnReject;
use domain::text::is_label;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a description may be.
const WORDS_BYTES: usize = 1_000;

/// Reads the values of one file, and notes what is wrong with them.
pub struct ValueReader<'r> {
    /// Where problems are noted.
    pub report: &'r mut ProblemReport,
}

/// The entries of one mapping whose keys are all known.
pub struct MappingFields<'n>(&'n [(YamlKey, YamlNode)]);

impl<'n> MappingFields<'n> {
    /// What stands under a key.
    pub fn find(&self, key: &str) -> Option<&'n YamlNode> {
        self.0.iter().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }
}

impl ValueReader<'_> {
    /// The fields of a mapping. Keys outside `known` are reported, with `why` there are no others.
    pub fn fields<'n>(
        &mut self,
        node: &'n YamlNode,
        place: &str,
        known: &[&str],
        why: Option<&str>,
    ) -> Option<MappingFields<'n>> {
        let YamlValue::Map(entries) = &node.value else {
            self.wrong_type(node, place, "a mapping");
            return None;
        };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.text.as_str())) {
            let hint = or_nearest(&key.text, known, "known keys here");
            let hint = why.map_or_else(|| hint.clone(), |why| format!("{why}; {hint}"));
            let message = format!("{place} has no key {}", shown(&key.text));
            self.report.add(key.at, "unknown_key", message, Some(hint));
        }
        Some(MappingFields(entries))
    }

    /// The entries of a mapping whose keys are names that somebody chose; none, if it is no mapping or holds too many.
    pub fn entries<'n>(&mut self, node: &'n YamlNode, place: &str, most: usize) -> &'n [(YamlKey, YamlNode)] {
        let YamlValue::Map(entries) = &node.value else {
            self.wrong_type(node, place, "a mapping");
            return &[];
        };
        if let Some((beyond, _)) = entries.get(most) {
            self.report.add(beyond.at, "out_of_range", format!("{place} has at most {most} entries"), None);
            return &[];
        }
        entries
    }

    /// The items of a list that holds at most so many; those beyond are reported and left out.
    pub fn some<'n>(&mut self, node: &'n YamlNode, place: &str, most: usize) -> &'n [YamlNode] {
        let items = self.list(node, place);
        let Some(beyond) = items.get(most) else { return items };
        self.report.add(beyond.at, "out_of_range", format!("{place} has at most {most} items"), None);
        &items[..most]
    }

    /// The items of a list; none, if it is no list.
    pub fn list<'n>(&mut self, node: &'n YamlNode, place: &str) -> &'n [YamlNode] {
        if let YamlValue::List(items) = &node.value {
            return items;
        }
        self.wrong_type(node, place, "a list");
        &[]
    }

    /// Text that cannot be mistaken for anything else.
    pub fn text<'n>(&mut self, node: &'n YamlNode, place: &str) -> Option<&'n str> {
        let YamlValue::Scalar { text, plain } = &node.value else {
            self.wrong_type(node, place, "text");
            return None;
        };
        match plain.then(|| read_as(text)).flatten() {
            None => Some(text),
            Some(ScalarReading::Nothing) => {
                self.wrong_type(node, place, "text");
                None
            }
            Some(ScalarReading::Switch | ScalarReading::Number) => {
                let message = format!("{place} must be text, and {} without quotes may be read otherwise", shown(text));
                let hint = "put it in quotes if that is what you mean".to_owned();
                self.report.add(node.at, "ambiguous_text", message, Some(hint));
                None
            }
        }
    }

    /// A whole number within its range.
    pub fn number(&mut self, node: &YamlNode, key: &str, range: &RangeInclusive<u32>) -> Option<u32> {
        let place = format!("`{key}`");
        let digits = match &node.value {
            YamlValue::Scalar { text, plain: true } if is_decimal(text.trim_start_matches('-')) => text,
            YamlValue::Scalar { .. } | YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Refused => {
                self.wrong_type(node, &place, "a whole number");
                return None;
            }
        };
        let number = digits.parse::<u32>().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let message = format!("{place} is {}, which is out of range", shown(digits));
            let hint = format!("choose from {} to {}", range.start(), range.end());
            self.report.add(node.at, "out_of_range", message, Some(hint));
        }
        number
    }

    /// A span of time within its range.
    pub fn span(&mut self, node: &YamlNode, key: &str, range: &RangeInclusive<Duration>) -> Option<Duration> {
        let text = self.text(node, &format!("`{key}`"))?;
        let span = config::span(text);
        if span.is_none_or(|span| !range.contains(&span)) {
            let (least, most) = (range.start().as_secs(), range.end().as_secs());
            let message = format!("{} is no span between {least} s and {most} s", shown(text));
            let hint = "write a whole number and s, m, h or d, such as `30m`".to_owned();
            self.report.add(node.at, "out_of_range", message, Some(hint));
            return None;
        }
        span
    }

    /// A name as DNS has them.
    pub fn label(&mut self, node: &YamlNode, place: &str) -> Option<String> {
        let text = self.text(node, place)?;
        let label = is_label(text).then(|| text.to_owned());
        let why = || format!("{} is no DNS label: a-z, 0-9 and '-', neither first nor last a dash", shown(text));
        self.accept(node, label.ok_or_else(why))
    }

    /// What people are told about a thing: some printable text.
    pub fn words(&mut self, node: &YamlNode, place: &str) -> Option<String> {
        let text = self.text(node, place)?;
        let fits = text.len() <= WORDS_BYTES && !text.chars().any(|c| c.is_control() && c != '\n');
        let why = || format!("{place} is at most {WORDS_BYTES} bytes of printable text");
        self.accept(node, fits.then(|| text.to_owned()).ok_or_else(why))
    }

    /// The name of a secret. It is a file in the tenant's folder of secrets, so it can be no path.
    pub fn secret_name(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.text(node, "`secret`")?;
        let fits = (1..=253).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            && !text.starts_with('.');
        let name = fits.then(|| text.to_owned()).ok_or_else(|| format!("{} is no name of a secret", shown(text)));
        self.accept(node, name)
    }

    /// What a rejection means for the session.
    pub fn on_reject(&mut self, node: &YamlNode) -> Option<OnReject> {
        match self.text(node, "`on_reject`")? {
            "fail" => Some(OnReject::Fail),
            "continue" => Some(OnReject::Continue),
            other => {
                let message = format!("{} says nothing about a rejection", shown(other));
                self.report.add(node.at, "bad_value", message, Some("use `fail` or `continue`".to_owned()));
                None
            }
        }
    }

    /// Reports a key that must be there.
    pub fn missing<T>(&mut self, node: &YamlNode, key: &str, why: &str) -> Option<T> {
        let hint = format!("add `{key}:`, {why}");
        self.report.add(node.at, "missing_key", format!("the key `{key}` is missing"), Some(hint));
        None
    }

    /// Reports a name that is there twice.
    pub fn twice(&mut self, node: &YamlNode, what: &str) {
        let hint = "give each a name of its own".to_owned();
        self.report.add(node.at, "repeated_value", format!("{what} is there twice"), Some(hint));
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, node: &YamlNode, place: &str, known: &[(&str, T)]) -> Option<T> {
        let text = self.text(node, place)?;
        let found = known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<String> = known.iter().map(|(word, _)| (*word).to_owned()).collect();
            let message = format!("{} is nothing {place} can be", shown(text));
            self.report.add(node.at, "bad_value", message, Some(format!("use {}", alternatives(&words))));
        }
        found
    }

    /// A yes. A no is refused: what is not wanted is left out.
    pub fn yes(&mut self, node: &YamlNode, place: &str) -> Option<()> {
        match &node.value {
            YamlValue::Scalar { text, plain: true } if text == "true" => Some(()),
            YamlValue::Scalar { .. } | YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Refused => {
                let message = format!("{place} can only be `true`");
                self.report.add(node.at, "bad_value", message, Some("leave the key out instead".to_owned()));
                None
            }
        }
    }

    /// A yes or a no, where both say something.
    pub fn switch(&mut self, node: &YamlNode, place: &str) -> Option<bool> {
        match &node.value {
            YamlValue::Scalar { text, plain: true } if text == "true" => Some(true),
            YamlValue::Scalar { text, plain: true } if text == "false" => Some(false),
            YamlValue::Scalar { .. } | YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Refused => {
                let message = format!("{place} is `true` or `false`");
                self.report.add(node.at, "bad_value", message, None);
                None
            }
        }
    }

    /// A parsed value, or a report of why it is none.
    pub fn accept<T>(&mut self, node: &YamlNode, parsed: Result<T, String>) -> Option<T> {
        parsed.map_err(|message| self.report.add(node.at, "bad_value", message, None)).ok()
    }

    fn wrong_type(&mut self, node: &YamlNode, place: &str, wanted: &str) {
        let found = match &node.value {
            YamlValue::Scalar { text, plain: true } if matches!(read_as(text), Some(ScalarReading::Nothing)) => {
                "nothing"
            }
            YamlValue::Scalar { plain: false, .. } => "quoted text",
            YamlValue::Scalar { plain: true, .. } => "a plain value",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a mapping",
            YamlValue::Refused => return,
        };
        self.report.add(node.at, "wrong_type", format!("{place} must be {wanted}, and {found} stands here"), None);
    }
}

/// What some YAML reader makes of a scalar without quotes.
enum ScalarReading {
    Nothing,
    Switch,
    Number,
}

/// How a scalar without quotes may be read, other than as text.
fn read_as(text: &str) -> Option<ScalarReading> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "" | "~" | "null" => return Some(ScalarReading::Nothing),
        "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" => return Some(ScalarReading::Switch),
        ".nan" => return Some(ScalarReading::Number),
        _ => {}
    }
    let bare = lower.trim_start_matches(['+', '-']);
    let begins = bare.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let based = ["0x", "0o", "0b"].iter().any(|base| bare.starts_with(base));
    // Underscores between digits and sixties (`12:30`) were numbers in YAML 1.1.
    let spaced: String = bare.chars().filter(|c| !matches!(c, '_' | ':')).collect();
    let number = begins && (based || bare == ".inf" || spaced.parse::<f64>().is_ok());
    number.then_some(ScalarReading::Number)
}

/// Digits without a leading zero, which elsewhere would mean octal.
fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

/// The nearest of the known names, then all of them.
pub fn or_nearest(wanted: &str, known: &[&str], title: &str) -> String {
    let all = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match near(wanted, known.iter().copied()).as_slice() {
        [] => format!("{title}: {all}"),
        names => format!("did you mean {}? {title}: {all}", alternatives(names)),
    }
}

/// Names as a choice.
pub fn alternatives(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_reader_would_not_take_for_text_is_noticed() {
        for odd in ["no", "ON", "y", "True", "~", "", "0", "-7", "1e3", "0x1f", "0o17", "1_000", "12:30", ".5", "-.inf"]
        {
            assert!(read_as(odd).is_some(), "{odd}");
        }
        for text in ["acme", "acme-2", "0-9", "nobody", "inf", "nan", "e3", "k8s", "2024-01-01", "-", "."] {
            assert!(read_as(text).is_none(), "{text}");
        }
    }

    #[test]
    fn numbers_are_decimal_digits_only() {
        for bad in ["", "+1", "1_0", "0x1", "1.0", "1e3", "017", "٣"] {
            assert!(!is_decimal(bad), "{bad}");
        }
        assert!(is_decimal("0") && is_decimal("32"));
    }
}
