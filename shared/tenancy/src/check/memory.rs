//! The memory of a tenant: how long a review may take, what a session may keep unasked, and its stores.

use super::{ConfigCheck, MEMORY, STORE};
use crate::config::{MemoryConfig, MemoryStore, SessionWrites, Writers};
use crate::problem::shown;
use crate::values::or_nearest;
use crate::yaml::YamlNode;

/// How many stores a tenant may speak of; a list of them is read by models.
const MOST: usize = 48;
/// Whose documents a store can hold.
const SCOPES: [&str; 3] = ["session", "user", "tenant"];
/// The types of documents there are.
const TYPES: [&str; 8] = ["preference", "convention", "runbook", "incident", "service", "lesson", "checklist", "note"];
/// The longest name of a store.
const NAME_BYTES: usize = 64;

impl ConfigCheck<'_> {
    pub(super) fn memory(&mut self, node: &YamlNode) -> MemoryConfig {
        let Some(fields) = self.reader.values.fields(node, "`memory`", &MEMORY, None) else {
            return MemoryConfig::default();
        };
        let review =
            fields.find("review").and_then(|node| self.reader.values.span(node, "review", &MemoryConfig::REVIEW));
        let session_writes = fields.find("session_writes").and_then(|node| self.session_writes(node));
        let stores = fields.find("stores").map_or_else(Vec::new, |node| self.stores(node));
        MemoryConfig { review, session_writes: session_writes.unwrap_or_default(), stores }
    }

    fn session_writes(&mut self, node: &YamlNode) -> Option<SessionWrites> {
        match self.reader.values.text(node, "`session_writes`")? {
            "run" => Some(SessionWrites::Run),
            "ask" => Some(SessionWrites::Ask),
            other => {
                let message = format!("{} says nothing about a session's writes", shown(other));
                self.reader.values.report.add(node.at, "bad_value", message, Some("use `run` or `ask`".to_owned()));
                None
            }
        }
    }

    fn stores(&mut self, node: &YamlNode) -> Vec<MemoryStore> {
        let items = self.reader.values.list(node, "`stores`");
        if let Some(beyond) = items.get(MOST) {
            let message = format!("a tenant speaks of at most {MOST} stores");
            self.reader.values.report.add(beyond.at, "out_of_range", message, None);
        }
        let mut stores: Vec<MemoryStore> = Vec::new();
        for item in items.iter().take(MOST) {
            let Some(store) = self.store(item) else { continue };
            let same = |known: &MemoryStore| (&known.scope, &known.name) == (&store.scope, &store.name);
            if stores.iter().any(same) {
                let message = format!("the store `{}/{}` is there twice", store.scope, store.name);
                self.reader.values.report.add(
                    item.at,
                    "repeated_value",
                    message,
                    Some("remove one of them".to_owned()),
                );
            } else {
                stores.push(store);
            }
        }
        stores
    }

    fn store(&mut self, node: &YamlNode) -> Option<MemoryStore> {
        let fields = self.reader.values.fields(node, "a store", &STORE, None)?;
        let place = match fields.find("name") {
            Some(node) => self.place(node),
            None => {
                let hint = "add `name:` with scope and store, such as `tenant/postmortems`".to_owned();
                self.reader.values.report.add(node.at, "missing_key", "the key `name` is missing", Some(hint));
                None
            }
        };
        let types = fields.find("types").map(|node| self.types(node));
        let writable = fields.find("writable").map(|node| self.writers(node));
        let promotable = fields.find("promotable").map(|node| self.reader.values.switch(node, "`promotable`"));
        let documents =
            fields.find("documents").map(|at| self.reader.values.number(at, "documents", &MemoryConfig::DOCUMENTS));
        let bytes = fields.find("bytes").map(|at| self.reader.values.number(at, "bytes", &MemoryConfig::BYTES));
        let (scope, name) = place?;
        if scope == "session" {
            let own = "a session's notes are its own: it always writes there, and nothing is proposed for it";
            let wrong = [
                fields.find("writable").filter(|_| writable == Some(Some(Writers::People))),
                fields.find("promotable").filter(|_| promotable == Some(Some(true))),
            ];
            for at in wrong.into_iter().flatten() {
                self.reader.values.report.add(at.at, "bad_value", own, Some("leave the key out".to_owned()));
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
    fn place(&mut self, node: &YamlNode) -> Option<(String, String)> {
        let text = self.reader.values.text(node, "`name`")?;
        let (scope, name) = text.split_once('/').unwrap_or((text, ""));
        if !SCOPES.contains(&scope) {
            let message = format!("{} begins with no scope", shown(text));
            let hint = or_nearest(scope, &SCOPES, "scopes");
            self.reader.values.report.add(node.at, "bad_value", message, Some(hint));
            return None;
        }
        let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let fits = (1..=NAME_BYTES).contains(&name.len())
            && name.bytes().next().is_some_and(first)
            && name.bytes().all(|b| first(b) || matches!(b, b'.' | b'_' | b'-'));
        let why =
            || format!("{} names no store: after the scope comes one word of a-z, 0-9, '.', '_' and '-'", shown(text));
        self.reader.values.accept(node, fits.then(|| (scope.to_owned(), name.to_owned())).ok_or_else(why))
    }

    fn types(&mut self, node: &YamlNode) -> Vec<String> {
        let items = self.reader.values.list(node, "`types`");
        if items.is_empty() {
            let hint = "leave the key out to take every type".to_owned();
            self.reader.values.report.add(
                node.at,
                "bad_value",
                "a store that takes no type can hold nothing",
                Some(hint),
            );
        }
        let mut types: Vec<String> = Vec::new();
        for item in items {
            let Some(text) = self.reader.values.text(item, "a type") else { continue };
            if !TYPES.contains(&text) {
                let message = format!("{} is no type of document", shown(text));
                self.reader.values.report.add(item.at, "bad_value", message, Some(or_nearest(text, &TYPES, "types")));
            } else if types.iter().any(|known| known == text) {
                let message = format!("the type `{text}` is named twice");
                self.reader.values.report.add(
                    item.at,
                    "repeated_value",
                    message,
                    Some("remove one of them".to_owned()),
                );
            } else {
                types.push(text.to_owned());
            }
        }
        types
    }

    fn writers(&mut self, node: &YamlNode) -> Option<Writers> {
        match self.reader.values.text(node, "`writable`")? {
            "people" => Some(Writers::People),
            "agents" => Some(Writers::Agents),
            other => {
                let message = format!("{} says nobody who could write", shown(other));
                self.reader.values.report.add(
                    node.at,
                    "bad_value",
                    message,
                    Some("use `people` or `agents`".to_owned()),
                );
                None
            }
        }
    }
}
