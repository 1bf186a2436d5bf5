//! The part of a tenant's file that one toolset owns: where it stands, its schema, and how it is read.
//!
//! The toolset reads the YAML itself and reports every mistake with its position ([`SectionReader`]). The value it
//! returns is kept under the section's key, for [`TenantConfig::section`](crate::TenantConfig::section).
//!
//! This crate knows no toolset's keys. What several sections share is here: secrets, references to the tenant's
//! parameters, and the addresses that the operator allows.

mod reader;
mod values;

pub use reader::{SectionReader, ToolFamily};
pub use values::{SectionTypeError, SectionValues};

use crate::bounds::{Excess, SecretUse};
use crate::problem::Position;
use crate::trace::RuleAt;
use crate::yaml::{YamlNode, YamlValue};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use values::SectionValue;

/// One toolset's part of a tenant's file.
#[derive(Clone)]
pub struct Section {
    /// Its key.
    pub key: &'static str,
    /// Where the key stands.
    pub place: Place,
    after: Option<&'static str>,
    schema: fn(&mut SchemaGenerator, &str) -> Schema,
    read: Arc<ReadSection>,
    rules: fn(&YamlNode) -> Vec<RuleAt>,
    bounds: Option<Arc<CompareSections>>,
    uses: Option<ListSecretUses>,
}

/// Where the key of a section stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the file itself. For the built-in toolsets, whose keys are older than `toolsets`.
    Root,
    /// Under `toolsets`.
    Toolsets,
    /// Under `policy`. Such a section only tightens.
    Policy,
}

type ReadSection = dyn Fn(&mut SectionReader<'_>, &YamlNode) -> Option<Arc<dyn SectionValue>> + Send + Sync;

/// Lists the secrets that a section hands to somebody.
pub type ListSecretUses = fn(&SectionValues) -> Result<Vec<SecretUse>, SectionTypeError>;

type CompareSections = dyn Fn(&SectionValues, &SectionValues) -> Result<Vec<Excess>, SectionTypeError> + Send + Sync;

/// A mistake in a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionProblem {
    /// Where it is, as a JSON pointer into the section; the nearest thing that stands in the file is shown.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Section {
    /// A section that reads the YAML itself. `F` is a struct whose field of the section's name has the section's schema,
    /// description and default. A `read` that returns `None` leaves the tenant without the section.
    pub fn new<F: JsonSchema, T: Any + fmt::Debug + Eq + Send + Sync>(
        key: &'static str,
        place: Place,
        read: impl Fn(&mut SectionReader<'_>, &YamlNode) -> Option<T> + Send + Sync + 'static,
    ) -> Section {
        let read = move |reader: &mut SectionReader<'_>, node: &YamlNode| {
            read(reader, node).map(|value| Arc::new(value) as Arc<dyn SectionValue>)
        };
        let (schema, rules) = (field_schema::<F>, |_: &YamlNode| Vec::new());
        Section { key, place, after: None, schema, read: Arc::new(read), rules, bounds: None, uses: None }
    }

    /// A section under `toolsets` that is read as `T`, and then judged by `check`.
    pub fn of<T: JsonSchema + DeserializeOwned + Any + fmt::Debug + Eq + Send + Sync>(
        key: &'static str,
        check: fn(&T) -> Vec<SectionProblem>,
    ) -> Section {
        let read = move |reader: &mut SectionReader<'_>, node: &YamlNode| {
            let value = serde_json::from_value::<T>(json(node));
            let problems = match &value {
                Ok(value) => check(value),
                Err(error) => vec![SectionProblem { at: String::new(), message: error.to_string(), hint: None }],
            };
            for SectionProblem { at, message, hint } in problems {
                reader.values.report.add(position(node, &at), "bad_value", format!("`{key}`: {message}"), hint);
            }
            value.ok()
        };
        let schema = |generator: &mut SchemaGenerator, _: &str| generator.subschema_for::<T>();
        Section { schema, ..Section::new::<T, T>(key, Place::Toolsets, read) }
    }

    /// The same, listed after another key wherever the known keys are listed.
    #[must_use]
    pub fn after(self, key: &'static str) -> Section {
        Section { after: Some(key), ..self }
    }

    /// The same with the rules that follow from it and where they stand, for whoever explains a decision. The section has
    /// been read without a problem before.
    #[must_use]
    pub fn with_rules(self, rules: fn(&YamlNode) -> Vec<RuleAt>) -> Section {
        Section { rules, ..self }
    }

    /// The same with what a text over HTTP takes beyond the tenant's file: the file's section first, then the text's. A
    /// section without this can only be what it is in the file.
    #[must_use]
    pub fn bounded<T: Any>(self, exceeding: fn(Option<&T>, Option<&T>) -> Vec<Excess>) -> Section {
        let key = self.key;
        let bounds = move |file: &SectionValues, asked: &SectionValues| Ok(exceeding(file.get(key)?, asked.get(key)?));
        Section { bounds: Some(Arc::new(bounds)), ..self }
    }

    /// The same with the secrets that it hands to somebody, for
    /// [`TenantConfig::grants`](crate::TenantConfig::grants).
    #[must_use]
    pub fn with_secret_uses(self, uses: ListSecretUses) -> Section {
        Section { uses: Some(uses), ..self }
    }

    /// What a text takes beyond the file. What cannot be compared is not let through.
    pub(crate) fn exceeding(&self, file: &SectionValues, asked: &SectionValues) -> Vec<Excess> {
        let path = match self.place {
            Place::Root => format!("/{}", self.key),
            Place::Toolsets => format!("/toolsets/{}", self.key),
            Place::Policy => format!("/policy/{}", self.key),
        };
        let whole = |given: &str, asked: &str| vec![Excess::new("", format!("`{}`", self.key), given, asked)];
        let found = match &self.bounds {
            Some(bounds) => bounds(file, asked).unwrap_or_else(|error| whole("something else", &error.to_string())),
            None if file.same(asked, self.key) => Vec::new(),
            None => whole("another one, which only the file can change", "this"),
        };
        found.into_iter().map(|excess| Excess { at: format!("{path}{}", excess.at), ..excess }).collect()
    }

    pub(crate) fn secret_uses(&self, values: &SectionValues) -> Vec<SecretUse> {
        // What cannot be read grants nothing.
        self.uses.and_then(|uses| uses(values).ok()).unwrap_or_default()
    }

    /// Its JSON Schema with description and default, for editors.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator, self.key)
    }

    /// Reads it, reports what is wrong with it, and keeps its value.
    pub(crate) fn read(&self, reader: &mut SectionReader<'_>, node: &YamlNode) {
        reader.key = self.key;
        if let Some(value) = (self.read)(reader, node) {
            reader.sections.insert(self.key, value);
        }
    }

    pub(crate) fn rules(&self, node: &YamlNode) -> Vec<RuleAt> {
        (self.rules)(node)
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section").field("key", &self.key).field("place", &self.place).finish_non_exhaustive()
    }
}

/// The keys at a place in the order in which they are listed: those of the file, and each section where it belongs.
pub(crate) fn keys_at(place: Place, own: &[&'static str], sections: &[Section]) -> Vec<&'static str> {
    let here = sections.iter().filter(|section| section.place == place);
    let (mut waiting, last): (Vec<&Section>, Vec<&Section>) = here.partition(|section| section.after.is_some());
    let mut keys: Vec<&'static str> = own.iter().copied().chain(last.iter().map(|section| section.key)).collect();
    loop {
        let before = waiting.len();
        waiting.retain(|section| {
            let neighbour = keys.iter().position(|key| section.after == Some(*key));
            neighbour.inspect(|at| keys.insert(at + 1, section.key)).is_none()
        });
        if waiting.len() == before {
            break;
        }
    }
    keys.extend(waiting.iter().map(|section| section.key));
    keys
}

/// The schema of a field of a struct.
fn field_schema<F: JsonSchema>(generator: &mut SchemaGenerator, field: &str) -> Schema {
    let schema = F::json_schema(generator);
    let property = schema.get("properties").and_then(|properties| properties.get(field)).cloned();
    property.and_then(|property| Schema::try_from(property).ok()).unwrap_or_default()
}

/// A node as JSON, as far as nothing in it was refused. Plain scalars are numbers and booleans where they look like it.
fn json(node: &YamlNode) -> Json {
    match &node.value {
        YamlValue::Scalar { text, plain: true } => match text.as_str() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            "null" | "~" | "" => Json::Null,
            other => other.parse::<serde_json::Number>().map_or_else(|_| Json::String(text.clone()), Json::Number),
        },
        YamlValue::Scalar { text, plain: false } => Json::String(text.clone()),
        YamlValue::List(items) => Json::Array(items.iter().map(json).collect()),
        YamlValue::Map(entries) => {
            Json::Object(entries.iter().map(|(key, node)| (key.text.clone(), json(node))).collect())
        }
        YamlValue::Refused => Json::Null,
    }
}

/// Where the thing at a pointer stands, or the nearest that contains it.
pub(crate) fn position(node: &YamlNode, pointer: &str) -> Position {
    let mut here = node;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let next = match &here.value {
            YamlValue::List(items) => part.parse::<usize>().ok().and_then(|n| items.get(n)),
            YamlValue::Map(entries) => entries.iter().find(|(key, _)| key.text == part).map(|(_, node)| node),
            YamlValue::Scalar { .. } | YamlValue::Refused => None,
        };
        match next {
            Some(node) => here = node,
            None => break,
        }
    }
    here.at
}

#[cfg(test)]
mod tests;
