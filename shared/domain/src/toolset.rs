//! Toolsets: named groups of tools that are loaded together, and the set a session has loaded.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A toolset's name: 1 to 64 of `a-z`, `0-9`, `_` and `-`, beginning with a letter.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolsetName(Arc<str>);

/// The text is not a toolset's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a toolset is named with 1 to 64 of a-z, 0-9, '_' and '-', beginning with a letter")]
pub struct NotAToolset;

impl ToolsetName {
    /// Checks the name.
    pub fn parse(text: &str) -> Result<ToolsetName, NotAToolset> {
        let rest = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
        match text.as_bytes() {
            [first, tail @ ..] if first.is_ascii_lowercase() && tail.len() < 64 && tail.iter().all(rest) => {
                Ok(ToolsetName(text.into()))
            }
            _ => Err(NotAToolset),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ToolsetName {
    type Error = NotAToolset;
    fn try_from(text: String) -> Result<Self, NotAToolset> {
        ToolsetName::parse(&text)
    }
}

impl From<ToolsetName> for String {
    fn from(name: ToolsetName) -> String {
        name.0.as_ref().to_owned()
    }
}

impl fmt::Display for ToolsetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolsetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How much of a toolset is loaded. `Write` includes `Read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Its read list.
    Read,
    /// Its read list and its write list.
    Write,
}

impl Level {
    /// As it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Level::Read => "read",
            Level::Write => "write",
        }
    }
}

/// The toolsets a session (or an address) has loaded, each with its level. A permission, checked at every call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoadedToolsets(BTreeMap<ToolsetName, Level>);

impl LoadedToolsets {
    /// How much of a toolset is loaded, if any of it.
    pub fn level(&self, toolset: &ToolsetName) -> Option<Level> {
        self.0.get(toolset).copied()
    }

    /// Adds a toolset. Never takes a level down: asking for `Read` after `Write` keeps `Write`.
    /// Tells whether anything changed.
    pub fn raise(&mut self, toolset: ToolsetName, level: Level) -> bool {
        let known = self.0.get(&toolset).copied();
        if known >= Some(level) {
            return false;
        }
        self.0.insert(toolset, level);
        true
    }

    /// Takes a toolset out; tells whether it was there.
    pub fn remove(&mut self, toolset: &ToolsetName) -> bool {
        self.0.remove(toolset).is_some()
    }

    /// All of them, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&ToolsetName, Level)> {
        self.0.iter().map(|(name, level)| (name, *level))
    }
}

impl FromIterator<(ToolsetName, Level)> for LoadedToolsets {
    fn from_iter<T: IntoIterator<Item = (ToolsetName, Level)>>(sets: T) -> LoadedToolsets {
        sets.into_iter().fold(LoadedToolsets::default(), |mut loaded, (name, level)| {
            loaded.raise(name, level);
            loaded
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ToolsetName {
        ToolsetName::parse(text).unwrap()
    }

    #[test]
    fn a_level_is_only_ever_raised() {
        let mut loaded = LoadedToolsets::default();
        assert!(loaded.raise(name("k8s"), Level::Read));
        assert!(!loaded.raise(name("k8s"), Level::Read));
        assert!(loaded.raise(name("k8s"), Level::Write));
        assert!(!loaded.raise(name("k8s"), Level::Read));
        assert_eq!(loaded.level(&name("k8s")), Some(Level::Write));
    }

    #[test]
    fn names_with_separators_are_refused() {
        for bad in ["", "K8s", "0k", "_k", "k8s:write", "a,b", "a/b", "a b", &"x".repeat(65)] {
            assert!(ToolsetName::parse(bad).is_err(), "{bad}");
        }
    }
}
