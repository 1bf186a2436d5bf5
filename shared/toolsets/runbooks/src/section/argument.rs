//! The arguments of a runbook as the file declares them.

use super::ARGUMENT;
use crate::arguments::OVERLAY;
use regex::RegexBuilder;
use runbook::{ArgumentKind, ArgumentRule, variables};
use serde_json::Number;
use std::collections::{BTreeMap, BTreeSet};
use tenancy::{MappingFields, SectionReader, YamlNode, YamlValue, shown};

/// How many arguments a runbook may have.
const MOST: usize = 32;
/// How many values an argument may be chosen from.
const MOST_CHOICES: usize = 100;
/// The longest pattern, and how much it may compile to.
const PATTERN_BYTES: usize = 1_000;
const PATTERN_SIZE: usize = 256 * 1024;

type Arguments = (BTreeMap<String, ArgumentRule>, BTreeMap<String, String>);

/// The rules of the arguments, and what the arguments mean.
pub(super) fn arguments(reader: &mut SectionReader<'_>, node: &YamlNode) -> Arguments {
    let (mut rules, mut meanings) = (BTreeMap::new(), BTreeMap::new());
    let mut taken = BTreeSet::new();
    for (key, node) in reader.values.entries(node, "`arguments`", MOST) {
        let name = key.text.as_str();
        if !is_name(name) || name == OVERLAY {
            let message = format!("{} is no name of an argument", shown(name));
            let hint = format!("use 1 to 40 of a-z, 0-9, `_` and `-`, beginning with a letter; `{OVERLAY}` is taken");
            reader.values.report.add(key.at, "bad_value", message, Some(hint));
            continue;
        }
        if !taken.insert(variables::of_argument(name)) {
            let message = format!("two arguments would stand in the variable {}", variables::of_argument(name));
            let hint = "`-` and `_` are the same there; name one of them otherwise".to_owned();
            reader.values.report.add(key.at, "repeated_value", message, Some(hint));
        }
        let Some(fields) = reader.values.fields(node, "an argument", &ARGUMENT, None) else { continue };
        if let Some(meaning) = fields.find("description").and_then(|node| reader.values.words(node, "`description`")) {
            meanings.insert(name.to_owned(), meaning);
        }
        let rule = rule(reader, node, &fields);
        rules.insert(name.to_owned(), rule);
    }
    (rules, meanings)
}

fn is_name(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    (1..=40).contains(&text.len()) && text.as_bytes()[0].is_ascii_lowercase() && text.bytes().all(letter)
}

/// One rule. A mistake is reported, and the rest of the rule stays, so that references to the argument are understood.
fn rule(reader: &mut SectionReader<'_>, node: &YamlNode, fields: &MappingFields<'_>) -> ArgumentRule {
    let kinds = [("string", ArgumentKind::String), ("number", ArgumentKind::Number), ("bool", ArgumentKind::Bool)];
    let kind = fields.find("type").and_then(|node| reader.values.choice(node, "`type`", &kinds)).unwrap_or_default();
    let required =
        fields.find("required").and_then(|node| reader.values.switch(node, "`required`")).unwrap_or_default();
    for (key, fits) in [
        ("pattern", kind == ArgumentKind::String),
        ("min", kind == ArgumentKind::Number),
        ("max", kind == ArgumentKind::Number),
        ("enum", kind != ArgumentKind::Bool),
    ] {
        if let Some(node) = fields.find(key).filter(|_| !fits) {
            let message = format!("`{key}` says nothing about an argument of this type");
            reader.values.report.add(node.at, "bad_value", message, None);
        }
    }
    let one_of = fields.find("enum").map_or_else(Vec::new, |node| {
        let items = reader.values.some(node, "`enum`", MOST_CHOICES);
        items.iter().filter_map(|item| scalar(reader, item, kind)).collect()
    });
    let mut bound = |key: &str| fields.find(key).and_then(|node| number(reader, node, key)).and_then(|n| n.as_f64());
    let (min, max) = (bound("min"), bound("max"));
    if let (Some(least), Some(most)) = (min, max)
        && least > most
    {
        reader.values.report.add(node.at, "out_of_range", "`min` is above `max`", None);
    }
    let pattern = fields.find("pattern").and_then(|node| pattern(reader, node));
    let default = fields.find("default").and_then(|node| scalar(reader, node, kind).map(|text| (node, text)));
    let mut rule = ArgumentRule { kind, required, default: None, one_of, pattern, min, max };
    if let Some((node, text)) = default {
        if required {
            let hint = "leave `required` out, or the default".to_owned();
            reader.values.report.add(node.at, "bad_value", "a required argument has no use for a default", Some(hint));
        }
        if let Err(must) = rule.judge(&text) {
            reader.values.report.add(node.at, "bad_value", format!("the default {must}"), None);
        }
        rule.default = Some(text);
    }
    rule
}

/// A value of this kind as the text that a command gets.
fn scalar(reader: &mut SectionReader<'_>, node: &YamlNode, kind: ArgumentKind) -> Option<String> {
    match kind {
        ArgumentKind::String => reader.values.text(node, "the value").map(str::to_owned),
        ArgumentKind::Number => number(reader, node, "the value").map(|number| number.to_string()),
        ArgumentKind::Bool => reader.values.switch(node, "the value").map(|yes| yes.to_string()),
    }
}

fn number(reader: &mut SectionReader<'_>, node: &YamlNode, place: &str) -> Option<Number> {
    let number = match &node.value {
        YamlValue::Scalar { text, .. } => serde_json::from_str::<Number>(text).ok(),
        YamlValue::List(_) | YamlValue::Map(_) => None,
        YamlValue::Refused => return None,
    };
    let finite = number.filter(|number| number.as_f64().is_some_and(f64::is_finite));
    reader.values.accept(node, finite.ok_or_else(|| format!("{place} is a number, such as 7 or 0.5")))
}

fn pattern(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<String> {
    let text = reader.values.text(node, "`pattern`")?;
    let compiled = RegexBuilder::new(text).size_limit(PATTERN_SIZE).build();
    let why = |error: regex::Error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            return "`pattern` is too large".to_owned();
        }
        let words = error.to_string();
        format!("`pattern` is no regular expression: {}", words.lines().last().unwrap_or_default().trim())
    };
    reader.values.accept(node, compiled.map(drop).map_err(why))?;
    let fits = (1..=PATTERN_BYTES).contains(&text.len());
    reader
        .values
        .accept(node, fits.then_some(()).ok_or_else(|| format!("`pattern` has 1 to {PATTERN_BYTES} bytes")))?;
    if !text.starts_with('^') || !text.ends_with('$') || text.ends_with(r"\$") {
        let hint = "write `^…$` so that it describes the whole value".to_owned();
        reader.values.report.warn(node.at, "open_pattern", "`pattern` may match a part of a value only", Some(hint));
    }
    Some(text.to_owned())
}
