//! A sheet: what people see of a tool when they choose what an agent may be given.
//!
//! It says more than a model reads (the hint, the strict schema, what is promised about calls) and costs no tokens.
//! Sheets are drawn from the catalog, so a tool that is added to it has one without anybody's doing.

use crate::{Catalog, CatalogEntry, ToolSource};
use domain::{Effect, Level, SessionMode};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::time::Duration;

/// The key by which a field of ours says how its lean schema is written; nobody outside has a use for it.
const OURS: &str = "x-wire";

/// Everything about one tool that helps to choose it.
#[derive(Debug, Serialize)]
pub struct ToolSheet<'a> {
    /// Its name.
    pub name: &'a str,
    /// The toolset it is loaded with.
    pub toolset: &'a str,
    /// Where it comes from.
    pub source: &'a ToolSource,
    /// For people.
    pub title: &'a str,
    /// What the model reads.
    pub description: &'a str,
    /// When to give it to an agent, and what to mind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ui_hint: Option<&'a str>,
    /// The most that any arguments can do.
    pub effect: Effect,
    /// The sessions it can be loaded in.
    pub modes: &'static [SessionMode],
    /// The list of its toolset that it is in.
    pub list: Level,
    /// Whether it is there when a session opens.
    pub default: bool,
    /// Whether it may be repeated after a crash.
    pub idempotent: bool,
    /// Whether it reaches beyond this service.
    pub open_world: bool,
    /// How long one call may take.
    #[serde(rename = "deadline_ms", serialize_with = "as_ms")]
    pub deadline: Duration,
    /// How long people may take to review its runs, where those are not urgent.
    #[serde(rename = "reviewed_within_ms", serialize_with = "some_as_ms", skip_serializing_if = "Option::is_none")]
    pub reviewed: Option<Duration>,
    /// What it costs a model to read.
    pub tokens: u32,
    /// What the arguments of a call must satisfy.
    pub input_schema: Value,
    /// What a structured result looks like, if the tool says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<&'a Value>,
}

/// What people see of a tool that the service answers itself.
#[derive(Debug, Serialize)]
pub struct VirtualSheet {
    /// Its name.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// What the model reads.
    pub description: &'static str,
    /// What it costs a model to read where it takes the session's handle.
    pub tokens: u32,
    /// What the arguments of a call must satisfy.
    pub input_schema: Value,
    /// What a structured result looks like, if that can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl Catalog {
    /// The sheets of all tools, in catalog order.
    pub fn sheets(&self) -> impl Iterator<Item = ToolSheet<'_>> {
        self.entries().iter().map(|entry| {
            let default = self.toolsets().iter().any(|set| set.default && set.name == entry.definition().toolset);
            ToolSheet::of(entry, default)
        })
    }

    /// The sheets of the virtual tools, which every session has.
    pub fn virtual_sheets(&self) -> impl Iterator<Item = VirtualSheet> {
        let sets: Vec<&str> = self.toolsets().iter().map(|set| set.name.as_str()).collect();
        self.virtuals().iter().map(move |entry| VirtualSheet {
            name: entry.which.name(),
            title: entry.which.title(),
            description: entry.description(),
            tokens: entry.modern.tokens,
            input_schema: entry.which.strict(&sets),
            output_schema: entry.which.output(),
        })
    }
}

impl<'a> ToolSheet<'a> {
    /// The sheet of one tool; `default` says whether its toolset is loaded when a session opens.
    pub fn of(entry: &'a CatalogEntry, default: bool) -> ToolSheet<'a> {
        let definition = entry.definition();
        let mut input_schema = definition.strict.clone();
        if definition.source == ToolSource::BuiltIn {
            drop_ours(&mut input_schema); // elsewhere it could be the name of an argument
        }
        ToolSheet {
            name: definition.name.as_str(),
            toolset: definition.toolset.as_str(),
            source: &definition.source,
            title: &definition.title,
            description: &definition.description,
            ui_hint: definition.hint.as_deref(),
            effect: definition.most,
            modes: modes(entry.list()),
            list: entry.list(),
            // Only the read list of a default toolset is loaded unasked.
            default: default && entry.list() == Level::Read,
            idempotent: definition.idempotent,
            open_world: definition.open_world,
            deadline: definition.deadline,
            reviewed: definition.reviewed,
            tokens: entry.tokens(),
            input_schema,
            output_schema: definition.output.as_ref(),
        }
    }
}

/// The sessions a tool of this list can be loaded in.
const fn modes(list: Level) -> &'static [SessionMode] {
    match list {
        Level::Read => &[SessionMode::Read, SessionMode::Write],
        Level::Write => &[SessionMode::Write],
    }
}

fn drop_ours(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.remove(OURS);
            map.values_mut().for_each(drop_ours);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_ours),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn as_ms<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn some_as_ms<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => as_ms(time, to),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests;
