//! A tool as a server defines it: checked, pinned by its digest, and put into words a model can be shown.
//!
//! A tool that fails a check is left out with its reason, and the others stay. What is pinned is what the server said,
//! whole; what a model reads is made from it and never says more.

pub(crate) mod schema;

use crate::naming;
use crate::visible::{cut, has_tricks, visible};
use catalog::validate::Arguments;
use domain::json;
use schema::UnusableSchema;
use serde_json::{Map, Value};

/// How much of a description a model is shown.
const DESCRIPTION_CHARS: usize = 2_000;
const TITLE_CHARS: usize = 100;
/// How large one whole definition may be, as compact JSON.
const BYTES: usize = 160 * 1024;
/// What a definition is pinned by. Icons and what stands in `_meta` neither reach a model nor change what a tool does.
const PINNED: [&str; 6] = ["annotations", "description", "inputSchema", "name", "outputSchema", "title"];

/// What a server claims of a tool; believed only as far as the operator vouches for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Hints {
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
}

/// One definition as it was listed.
#[derive(Debug, Clone)]
pub(crate) struct ListedDefinition {
    /// The server's own name.
    pub(crate) name: String,
    /// SHA-256 over [`ListedDefinition::canonical`].
    pub(crate) digest: String,
    /// What is pinned, in its one form.
    pub(crate) canonical: String,
    /// What can be offered, or why it is not.
    pub(crate) tool: Result<UsableDefinition, String>,
}

/// A definition that passed every check.
#[derive(Debug, Clone)]
pub(crate) struct UsableDefinition {
    pub(crate) title: String,
    pub(crate) description: String,
    /// Validates arguments: the server's own schema.
    pub(crate) strict: Value,
    /// The same for a model to read, as JSON text.
    pub(crate) wire: String,
    pub(crate) hints: Hints,
    /// What an administrator should know of it.
    pub(crate) remarks: Vec<String>,
    /// How many patterns its schema holds.
    pub(crate) patterns: usize,
}

/// Why a tool is left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadTool {
    #[error("its definition is larger than {BYTES} bytes")]
    Large,
    #[error(transparent)]
    Schema(#[from] UnusableSchema),
}

/// The parts of a raw tool that are pinned. What is no object has none.
pub(crate) fn pinned(raw: &Value) -> Value {
    let part =
        |key: &&str| raw.get(*key).filter(|value| !value.is_null()).map(|value| ((*key).to_owned(), value.clone()));
    Value::Object(PINNED.iter().filter_map(part).collect())
}

/// Reads what a server listed, in the order of names. One name with two meanings is no name at all.
pub(crate) fn read(raw: &[Value]) -> Vec<ListedDefinition> {
    let mut all: Vec<ListedDefinition> = raw.iter().map(one).collect();
    all.sort_by(|a, b| (&a.name, &a.digest).cmp(&(&b.name, &b.digest)));
    all.dedup_by(|a, b| a.name == b.name && a.digest == b.digest);
    let twice: Vec<bool> = (0..all.len())
        .map(|n| {
            let near = [n.checked_sub(1), n.checked_add(1)];
            near.into_iter().flatten().filter_map(|m| all.get(m)).any(|other| other.name == all[n].name)
        })
        .collect();
    for (listed, _) in all.iter_mut().zip(twice).filter(|(_, twice)| *twice) {
        listed.tool = Err("the server lists two different tools under this name".to_owned());
    }
    all
}

fn one(raw: &Value) -> ListedDefinition {
    let pinned = pinned(raw);
    let canonical = json::canonical(&pinned);
    let name = pinned.get("name").and_then(Value::as_str).unwrap_or_default();
    let tool = if canonical.len() > BYTES { Err(BadTool::Large) } else { usable(name, &pinned) };
    ListedDefinition {
        // A name nobody can use still has to be shown to somebody.
        name: if name.len() > naming::LONGEST { cut(name, naming::LONGEST) } else { name.to_owned() },
        digest: json::sha256_hex(canonical.as_bytes()),
        canonical,
        tool: tool.map_err(|bad| bad.to_string()),
    }
}

fn usable(name: &str, tool: &Value) -> Result<UsableDefinition, BadTool> {
    let input = tool.get("inputSchema").ok_or(UnusableSchema::NotAnObject)?;
    let patterns = schema::check(input)?;
    let mut strict = input.clone();
    if let Value::Object(root) = &mut strict {
        // It would only move the base that references are resolved against, and there is none but the document itself.
        root.remove("$id");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    let unusable = |bad: catalog::validate::BadSchema| UnusableSchema::Unusable(cut(&visible(&bad.why), 200));
    Arguments::compile(name, &strict).map_err(unusable)?;
    let mut remarks = Vec::new();
    let mut wire = String::new();
    catalog::schema::write(&schema::told(&strict, &mut remarks), &mut wire);
    let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
    let hints = tool.get("annotations");
    let hint = |key: &str| hints.and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    // Where it says nothing of itself, its name has to do.
    let title = [text("title"), hints.and_then(|h| h.get("title")).and_then(Value::as_str).unwrap_or_default(), name];
    let title = title.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
    for (what, text) in [("name", name), ("title", title), ("description", text("description"))] {
        if has_tricks(text) {
            remarks.push(format!("its {what} holds invisible characters; they are written out"));
        }
    }
    if text("description").chars().nth(DESCRIPTION_CHARS).is_some() {
        remarks.push(format!(
            "its description is longer than {DESCRIPTION_CHARS} characters; the model reads the beginning"
        ));
    }
    Ok(UsableDefinition {
        title: cut(&visible(title), TITLE_CHARS),
        description: cut(&visible(text("description")), DESCRIPTION_CHARS),
        strict,
        wire,
        hints: Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
        },
        remarks,
        patterns,
    })
}

#[cfg(test)]
mod tests;
