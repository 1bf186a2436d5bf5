//! Reads the memory of a tenant: how long a review may take, what a session may keep unasked, and its stores.

use super::{MEMORY, MemoryConfig, MemoryStore, STORE, SessionWrites, session_write_patterns};
use crate::documents::{DocumentKind, DocumentScope, WriteAccess};
use domain::run::OnReject;
use policy::Gate;
use tenancy::values::or_nearest;
use tenancy::{SectionReader, YamlNode, shown};

/// How many stores a tenant may speak of; a list of them is read by models.
const MOST: usize = 48;
/// The longest name of a store.
const NAME_BYTES: usize = 64;

/// The section, and the gates that follow from it.
pub(super) fn memory(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<MemoryConfig> {
    let fields = reader.values.fields(node, "`memory`", &MEMORY, None)?;
    let review = fields.find("review").and_then(|node| reader.values.span(node, "review", &MemoryConfig::REVIEW));
    let session_writes =
        fields.find("session_writes").and_then(|node| session_writes(reader, node)).unwrap_or_default();
    let stores = fields.find("stores").map_or_else(Vec::new, |node| stores(reader, node));
    if session_writes == SessionWrites::Ask {
        for pattern in session_write_patterns() {
            reader.add_gate(Gate { pattern, on_reject: OnReject::Continue });
        }
    }
    Some(MemoryConfig { review, session_writes, stores })
}

fn session_writes(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<SessionWrites> {
    match reader.values.text(node, "`session_writes`")? {
        "run" => Some(SessionWrites::Run),
        "ask" => Some(SessionWrites::Ask),
        other => {
            let message = format!("{} says nothing about a session's writes", shown(other));
            reader.values.report.add(node.at, "bad_value", message, Some("use `run` or `ask`".to_owned()));
            None
        }
    }
}

fn stores(reader: &mut SectionReader<'_>, node: &YamlNode) -> Vec<MemoryStore> {
    let items = reader.values.list(node, "`stores`");
    if let Some(beyond) = items.get(MOST) {
        let message = format!("a tenant speaks of at most {MOST} stores");
        reader.values.report.add(beyond.at, "out_of_range", message, None);
    }
    let mut stores: Vec<MemoryStore> = Vec::new();
    for item in items.iter().take(MOST) {
        let Some(store) = store(reader, item) else { continue };
        let same = |known: &MemoryStore| (&known.scope, &known.name) == (&store.scope, &store.name);
        if stores.iter().any(same) {
            let message = format!("the store `{}/{}` is there twice", store.scope.as_str(), store.name);
            reader.values.report.add(item.at, "repeated_value", message, Some("remove one of them".to_owned()));
        } else {
            stores.push(store);
        }
    }
    stores
}

fn store(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<MemoryStore> {
    let fields = reader.values.fields(node, "a store", &STORE, None)?;
    let place = match fields.find("name") {
        Some(node) => place(reader, node),
        None => {
            let hint = "add `name:` with scope and store, such as `tenant/postmortems`".to_owned();
            reader.values.report.add(node.at, "missing_key", "the key `name` is missing", Some(hint));
            None
        }
    };
    let types = fields.find("types").map(|node| types(reader, node));
    let writable = fields.find("writable").map(|node| writers(reader, node));
    let promotable = fields.find("promotable").map(|node| reader.values.switch(node, "`promotable`"));
    let documents = fields.find("documents").map(|at| reader.values.number(at, "documents", &MemoryConfig::DOCUMENTS));
    let bytes = fields.find("bytes").map(|at| reader.values.number(at, "bytes", &MemoryConfig::BYTES));
    let (scope, name) = place?;
    if scope == DocumentScope::Session {
        let own = "a session's notes are its own: it always writes there, and nothing is proposed for it";
        let wrong = [
            fields.find("writable").filter(|_| writable == Some(Some(WriteAccess::People))),
            fields.find("promotable").filter(|_| promotable == Some(Some(true))),
        ];
        for at in wrong.into_iter().flatten() {
            reader.values.report.add(at.at, "bad_value", own, Some("leave the key out".to_owned()));
        }
    }
    // What is wrong is reported; what stands here then is never used.
    let (writable, promotable) = (writable.flatten(), promotable.flatten());
    Some(MemoryStore {
        scope,
        name,
        types,
        writable,
        promotable,
        documents: documents.flatten(),
        bytes: bytes.flatten(),
    })
}

/// Scope and name of a store.
fn place(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<(DocumentScope, String)> {
    let text = reader.values.text(node, "`name`")?;
    let (scope, name) = text.split_once('/').unwrap_or((text, ""));
    let Some(scope) = DocumentScope::parse(scope) else {
        let message = format!("{} begins with no scope", shown(text));
        let hint = or_nearest(scope, &DocumentScope::ALL.map(DocumentScope::as_str), "scopes");
        reader.values.report.add(node.at, "bad_value", message, Some(hint));
        return None;
    };
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let fits = (1..=NAME_BYTES).contains(&name.len())
        && name.bytes().next().is_some_and(first)
        && name.bytes().all(|b| first(b) || matches!(b, b'.' | b'_' | b'-'));
    let why =
        || format!("{} names no store: after the scope comes one word of a-z, 0-9, '.', '_' and '-'", shown(text));
    reader.values.accept(node, fits.then(|| (scope, name.to_owned())).ok_or_else(why))
}

fn types(reader: &mut SectionReader<'_>, node: &YamlNode) -> Vec<DocumentKind> {
    let items = reader.values.list(node, "`types`");
    if items.is_empty() {
        let hint = "leave the key out to take every type".to_owned();
        reader.values.report.add(node.at, "bad_value", "a store that takes no type can hold nothing", Some(hint));
    }
    let mut types: Vec<DocumentKind> = Vec::new();
    for item in items {
        let Some(text) = reader.values.text(item, "a type") else { continue };
        match DocumentKind::parse(text) {
            None => {
                let message = format!("{} is no type of document", shown(text));
                let hint = or_nearest(text, &DocumentKind::ALL.map(DocumentKind::as_str), "types");
                reader.values.report.add(item.at, "bad_value", message, Some(hint));
            }
            Some(kind) if types.contains(&kind) => {
                let message = format!("the type `{text}` is named twice");
                reader.values.report.add(item.at, "repeated_value", message, Some("remove one of them".to_owned()));
            }
            Some(kind) => types.push(kind),
        }
    }
    types
}

fn writers(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<WriteAccess> {
    match reader.values.text(node, "`writable`")? {
        "people" => Some(WriteAccess::People),
        "agents" => Some(WriteAccess::Agents),
        other => {
            let message = format!("{} says nobody who could write", shown(other));
            reader.values.report.add(node.at, "bad_value", message, Some("use `people` or `agents`".to_owned()));
            None
        }
    }
}
