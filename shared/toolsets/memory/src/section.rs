//! The section `memory` of a tenant's file: how long a review may take, what a session may keep unasked, and its stores.

mod bounds;
mod check;

use crate::documents::{DocumentKind, DocumentScope, WriteAccess};
use domain::run::OnReject;
use policy::Pattern;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::RangeInclusive;
use std::time::Duration;
use tenancy::{Place, RuleAt, RuleKind, Section, YamlNode};

/// The key of the section.
pub const KEY: &str = "memory";
/// The keys of the section.
const MEMORY: [&str; 3] = ["review", "session_writes", "stores"];
/// The keys of one of `memory.stores`.
const STORE: [&str; 6] = ["name", "types", "writable", "promotable", "documents", "bytes"];
/// The tools that write, as far as they write to the session that calls them. What they do elsewhere asks anyway.
const SESSION_WRITES: [&str; 3] = ["memory_remember:session", "memory_patch:session", "memory_forget:session"];

/// What a tenant says about its memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryConfig {
    /// How long people may take to review what agents propose; `None` leaves it to the product.
    pub review: Option<Duration>,
    /// What a write to an agent's own session does.
    pub session_writes: SessionWrites,
    /// Stores besides those of the product, or other rules for these.
    pub stores: Vec<MemoryStore>,
}

impl MemoryConfig {
    /// How long a review may take where nothing is said.
    pub const USUAL_REVIEW: Duration = Duration::from_secs(14 * 24 * 3600);
    /// What [`MemoryConfig::review`] may be.
    pub const REVIEW: RangeInclusive<Duration> = Duration::from_secs(24 * 3600)..=Duration::from_secs(30 * 24 * 3600);
    /// What [`MemoryStore::documents`] may be.
    pub const DOCUMENTS: RangeInclusive<u32> = 1..=2_000;
    /// What [`MemoryStore::bytes`] may be; below the floor a single document of usual size would not fit.
    pub const BYTES: RangeInclusive<u32> = 4_096..=104_857_600;
}

/// What a write to an agent's own session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionWrites {
    /// It runs at once.
    #[default]
    Run,
    /// It waits for a person, like a write anywhere else.
    Ask,
}

/// What a tenant says about one store. What it leaves out stays as the product has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryStore {
    /// Whose documents it holds.
    pub scope: DocumentScope,
    /// Its name in that scope.
    pub name: String,
    /// The types it takes.
    pub types: Option<Vec<DocumentKind>>,
    /// Who may write to it.
    pub writable: Option<WriteAccess>,
    /// Whether documents can be proposed for it.
    pub promotable: Option<bool>,
    /// How many documents it may hold.
    pub documents: Option<u32>,
    /// How many bytes of text it may hold.
    pub bytes: Option<u32>,
}

/// The section. It is read as a [`MemoryConfig`].
pub fn section() -> Section {
    let section = Section::new::<MemoryFile, _>(KEY, Place::Root, check::memory).after("policy").with_rules(rules);
    section.bounded(bounds::exceeding)
}

/// The calls that wait for a person where a session must ask.
fn session_write_patterns() -> Vec<Pattern> {
    SESSION_WRITES.iter().filter_map(|rule| Pattern::parse(rule).ok()).collect()
}

/// `session_writes: ask`, where it stands.
fn rules(node: &YamlNode) -> Vec<RuleAt> {
    let asks = node.find("session_writes").filter(|node| node.scalar() == Some("ask"));
    let rule = |node| RuleAt::new(RuleKind::Section("memory.session_writes"), node, session_write_patterns());
    asks.map(|node| RuleAt { on_reject: Some(OnReject::Continue), ..rule(node) }).into_iter().collect()
}

/// The section as it stands in the file.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct MemoryFile {
    /// What is kept in the tenant's memory, and how.
    #[schemars(default, with = "MemoryPart")]
    memory: Option<MemoryPart>,
}

/// What is kept in the tenant's memory, and how.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct MemoryPart {
    /// How long people may take to review what agents propose: `1d` to `30d`, and `14d` unless said otherwise.
    #[schemars(default, regex(pattern = r"^[0-9]+[smhd]$"))]
    review: String,
    /// Whether a write to an agent's own session runs at once or waits for a person.
    #[schemars(default)]
    session_writes: SessionWritesName,
    /// Stores besides those of the product, or other rules for these.
    #[schemars(default)]
    stores: Vec<StorePart>,
}

/// What a write to an agent's own session does.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum SessionWritesName {
    #[default]
    Run,
    Ask,
}

/// One store; what is left out stays as the product has it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct StorePart {
    /// Scope and name, such as `tenant/postmortems`.
    #[schemars(regex(pattern = r"^(session|user|tenant)/[a-z0-9][a-z0-9._-]{0,63}$"))]
    name: String,
    /// The types of documents it takes; left out: all.
    #[schemars(default, length(min = 1), extend("uniqueItems" = true))]
    types: Vec<TypeName>,
    /// Who may write to it: people only, or agents too with a person's approval.
    #[schemars(default, with = "WritersName", skip_serializing_if = "Option::is_none")]
    writable: Option<WritersName>,
    /// Whether documents can be proposed for it.
    #[schemars(default, with = "bool", skip_serializing_if = "Option::is_none")]
    promotable: Option<bool>,
    /// How many documents it may hold.
    #[schemars(default, with = "u32", skip_serializing_if = "Option::is_none", range(min = *MemoryConfig::DOCUMENTS.start(), max = *MemoryConfig::DOCUMENTS.end()))]
    documents: Option<u32>,
    /// How many bytes of text it may hold.
    #[schemars(default, with = "u32", skip_serializing_if = "Option::is_none", range(min = *MemoryConfig::BYTES.start(), max = *MemoryConfig::BYTES.end()))]
    bytes: Option<u32>,
}

/// The types of documents there are.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum TypeName {
    Preference,
    Convention,
    Runbook,
    Incident,
    Service,
    Lesson,
    Checklist,
    Note,
}

/// Who may write to a store.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum WritersName {
    People,
    Agents,
}

#[cfg(test)]
mod tests;
