//! Commands and variables: text with references, checked where it stands.

use domain::outcome::near;
use runbook::{ArgumentRule, Template};
use std::collections::BTreeMap;
use tenancy::{ParameterValue, SectionReader, YamlNode, shown};

/// How many words a command may have.
const MOST_WORDS: usize = 64;
/// The longest word of a command, and the longest value of a variable, references not filled in.
const TEXT_BYTES: usize = 8 * 1024;

/// What a text is for.
pub(super) enum ValueKind<'a> {
    /// A word of a command. Everybody on a host can read it, so no secret stands there.
    Word,
    /// A variable. A secret may stand there alone; it is noted under the name of its parameter.
    Variable(&'a mut BTreeMap<String, String>),
}

/// A command, one word each. Plain parameters are filled in; places for arguments stay.
pub(super) fn words(
    reader: &mut SectionReader<'_>,
    node: &YamlNode,
    key: &str,
    arguments: &BTreeMap<String, ArgumentRule>,
) -> Option<Vec<String>> {
    let items = reader.values.some(node, &format!("`{key}`"), MOST_WORDS);
    let words: Vec<Option<String>> = items.iter().map(|item| text(reader, item, ValueKind::Word, arguments)).collect();
    let Some(first) = items.first() else {
        if matches!(node.value, tenancy::YamlValue::List(_)) {
            let hint = format!("write `{key}: [\"PROGRAM\", \"ARGUMENT\"]`");
            reader.values.report.add(node.at, "bad_value", format!("`{key}` has no words"), Some(hint));
        }
        return None;
    };
    let words: Vec<String> = words.into_iter().collect::<Option<_>>()?;
    if words[0].is_empty() || words[0].contains("{{ args.") {
        let hint = "which program runs is not for a caller to choose".to_owned();
        let message = format!("the first word of `{key}` is a program, without arguments in it");
        reader.values.report.add(first.at, "bad_value", message, Some(hint));
        return None;
    }
    Some(words)
}

/// One text. References to plain parameters are filled in, those to arguments are checked and stay.
pub(super) fn text(
    reader: &mut SectionReader<'_>,
    node: &YamlNode,
    mut kind: ValueKind<'_>,
    arguments: &BTreeMap<String, ArgumentRule>,
) -> Option<String> {
    let text = reader.values.text(node, "a word or a variable")?;
    if text.len() > TEXT_BYTES || text.contains('\0') {
        let message = format!("it is longer than {TEXT_BYTES} bytes, or holds a zero byte");
        reader.values.report.add(node.at, "bad_value", message, None);
        return None;
    }
    let template = reader.values.accept(node, Template::parse(text).map_err(|error| error.to_string()))?;
    let mut sound = true;
    for name in template.arguments() {
        sound &= check_argument(reader, node, name, arguments);
    }
    let params: Vec<&str> = template.params().collect();
    let mut filled = BTreeMap::new();
    for name in params {
        match (reader.parameter(node, name), &mut kind) {
            (None, _) => sound = false,
            (Some(ParameterValue::Text(value)), _) if value.contains("{{") || value.contains("}}") => {
                let message =
                    format!("the parameter `{name}` holds braces, and a runbook would read them as a reference");
                reader.values.report.add(node.at, "bad_value", message, None);
                sound = false;
            }
            (Some(ParameterValue::Text(value)), _) => {
                filled.insert(name.to_owned(), value);
            }
            (Some(ParameterValue::Secret(secret)), ValueKind::Variable(secrets)) if is_only(text, name) => {
                secrets.insert(name.to_owned(), secret);
                return Some(format!("{{{{ params.{name} }}}}"));
            }
            (Some(ParameterValue::Secret(_)), ValueKind::Word | ValueKind::Variable(_)) => {
                let hint =
                    format!("a secret stands alone in a variable: `env: {{ NAME: \"{{{{ params.{name} }}}}\" }}`");
                let message = format!("the secret `{name}` is mixed into a text, or stands in a command");
                reader.values.report.add(node.at, "secret_leak", message, Some(hint));
                sound = false;
            }
        }
    }
    sound.then(|| fill(text, &filled))
}

/// Whether a text is nothing but a reference to this parameter.
fn is_only(text: &str, name: &str) -> bool {
    let inner = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    inner.is_some_and(|inner| inner.trim() == format!("params.{name}"))
}

/// The text with these parameters filled in, and references to arguments in their one spelling.
fn fill(text: &str, params: &BTreeMap<String, String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        let (inner, behind) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        match inner.trim().strip_prefix("params.").and_then(|name| params.get(name)) {
            Some(value) => out.push_str(value),
            None => out.push_str(&format!("{{{{ {} }}}}", inner.trim())),
        }
        rest = behind;
    }
    out + rest
}

/// Whether a text may refer to an argument: it is the runbook's own, and it always has a value.
fn check_argument(
    reader: &mut SectionReader<'_>,
    node: &YamlNode,
    name: &str,
    arguments: &BTreeMap<String, ArgumentRule>,
) -> bool {
    match arguments.get(name) {
        Some(rule) if rule.required || rule.default.is_some() => true,
        Some(_) => {
            let message = format!("the argument `{name}` may have no value, so no text can refer to it");
            let hint = "make it `required: true`, give it a `default`, or read it from the environment".to_owned();
            reader.values.report.add(node.at, "optional_argument", message, Some(hint));
            false
        }
        None => {
            let known = arguments.keys().map(String::as_str);
            let hint = match near(name, known).as_slice() {
                [] => "declare it under `arguments`; a runbook refers to its own arguments only".to_owned(),
                names => format!("did you mean `{}`? a runbook refers to its own arguments only", names.join("` or `")),
            };
            let message = format!("the runbook declares no argument {}", shown(name));
            reader.values.report.add(node.at, "unknown_argument", message, Some(hint));
            false
        }
    }
}
