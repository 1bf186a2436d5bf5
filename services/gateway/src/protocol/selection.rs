//! `/mcp/x/k8s,helm:write`: a set of toolsets fixed by the address, in one canonical form.

use domain::outcome::near;
use domain::{Caller, Code, Failure, Level, LoadedToolsets, SessionMode, ToolsetName};
use executor::Snapshot;
use mcp::{Era, Id, MessageFault, Refusal, WireError};

/// More names than a catalog can hold are not read.
const MOST: usize = 64;

/// Why an address names no set.
#[derive(Debug)]
pub enum NoSelection {
    /// It cannot be read.
    Malformed(&'static str),
    /// It names a toolset there is not.
    Unknown(String, Vec<String>, Vec<String>),
    /// The caller may not have it.
    Denied(Box<Failure>),
}

/// The set an address names, for this caller.
pub fn read(snapshot: &Snapshot, caller: &Caller, text: &str) -> Result<LoadedToolsets, NoSelection> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > MOST {
        return Err(NoSelection::Malformed("the address names too many toolsets"));
    }
    let mut loaded = LoadedToolsets::default();
    let mut wanted = Vec::new();
    for part in parts {
        let (name, level) = match part.split_once(':') {
            None => (part, Level::Read),
            Some((name, "write")) => (name, Level::Write),
            Some((name, "read")) => (name, Level::Read),
            Some(_) => return Err(NoSelection::Malformed("after the colon only read or write can stand")),
        };
        let name =
            ToolsetName::parse(name).map_err(|_| NoSelection::Malformed("the address holds no toolset's name"))?;
        let all = || snapshot.catalog.toolsets().iter().map(|set| set.name.as_str());
        if !all().any(|known| known == name.as_str()) {
            let near = near(name.as_str(), all());
            return Err(NoSelection::Unknown(name.to_string(), all().map(str::to_owned).collect(), near));
        }
        if !loaded.raise(name.clone(), level) || wanted.iter().any(|(known, _)| *known == name) {
            return Err(NoSelection::Malformed("the address names a toolset twice"));
        }
        wanted.push((name, level));
    }
    policy::decide_load(&snapshot.policy, caller, SessionMode::Write, &wanted)
        .map_err(|reason| NoSelection::Denied(Box::new(reason.0)))?;
    Ok(loaded)
}

impl NoSelection {
    /// The refusal as it travels.
    pub fn refusal(&self, era: Era, id: Option<Id>) -> Refusal {
        match self {
            NoSelection::Malformed(why) => {
                Refusal::new(era, id, WireError::new(MessageFault::MalformedSelection, *why))
            }
            NoSelection::Unknown(name, valid, near) => {
                let error = WireError::new(MessageFault::UnknownSelection, format!("there is no toolset `{name}`"))
                    .with("toolsets", valid.clone());
                let error = if near.is_empty() { error } else { error.with("did_you_mean", near.clone()) };
                Refusal::new(era, id, error)
            }
            // A set that the tenant may not have does not exist for it.
            NoSelection::Denied(failure) if failure.code == Code::PolicyDenied => {
                Refusal::new(era, id, WireError::new(MessageFault::UnknownSelection, failure.message.clone()))
            }
            NoSelection::Denied(failure) => Refusal::before_call(era, id, failure),
        }
    }
}
