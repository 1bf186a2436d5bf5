//! What the owner of this host lets be executed here: names of runbooks, and texts of runbooks pinned by digest.
//!
//! It is read from the runner's own command line and file. Whatever the service sends, nothing else is executed: a service
//! that is broken into cannot make a runner do what its owner did not write down. A name alone trusts the service with
//! the text of that runbook; a pin does not, because the commands are resolved again from the pinned text.

use domain::job::JobSpec;
use runbook::{RunbookText, variables};
use std::collections::BTreeMap;

/// A pattern of names, `group/name` with `*` for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Vec<String>);

impl NamePattern {
    /// Reads a pattern. It is `*` alone, or has exactly one slash.
    pub fn parse(text: &str) -> Option<NamePattern> {
        let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*' | '/'));
        let whole = text == "*" || (text.matches('/').count() == 1 && !text.starts_with('/') && !text.ends_with('/'));
        (plain && whole).then(|| NamePattern(text.split('*').map(str::to_owned).collect()))
    }

    /// Whether a name fits.
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_first() else { return false };
        let Some(mut left) = name.strip_prefix(first.as_str()) else { return false };
        let Some((last, between)) = rest.split_last() else { return left.is_empty() };
        for part in between {
            let Some(at) = left.find(part.as_str()) else { return false };
            left = &left[at + part.len()..];
        }
        left.ends_with(last.as_str())
    }
}

/// What may be executed here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    only: Vec<NamePattern>,
    pins: Option<BTreeMap<String, String>>,
}

/// A line of a file of pins that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not of the form GROUP/NAME sha256:DIGEST, or names a runbook a second time")]
pub struct BadPin {
    line: usize,
}

impl AllowList {
    /// Names that fit one of these patterns; with pins, only those that are pinned too. Without either nothing fits.
    pub fn new(only: Vec<NamePattern>, pins: Option<BTreeMap<String, String>>) -> AllowList {
        AllowList { only, pins }
    }

    /// Reads a file of pins: a line `GROUP/NAME sha256:DIGEST` for each, `#` for comments.
    pub fn read_pins(text: &str) -> Result<BTreeMap<String, String>, BadPin> {
        let mut pins = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let bad = BadPin { line: number + 1 };
            match words.as_slice() {
                [] => {}
                [name, digest] if name.contains('/') && is_digest(digest) => {
                    if pins.insert((*name).to_owned(), (*digest).to_owned()).is_some() {
                        return Err(bad);
                    }
                }
                _ => return Err(bad),
            }
        }
        Ok(pins)
    }

    /// Whether a job may be executed here; `Err` says which rule is against it.
    pub fn judge(&self, spec: &JobSpec) -> Result<(), String> {
        let name = &spec.runbook;
        if self.only.is_empty() && self.pins.is_none() {
            return Err("the runner's owner has allowed nothing".into());
        }
        if !self.only.is_empty() && !self.only.iter().any(|pattern| pattern.matches(name)) {
            return Err("the runner's owner has not allowed a runbook of this name (--only)".into());
        }
        well_formed(spec)?;
        let Some(pins) = &self.pins else { return Ok(()) };
        let Some(pinned) = pins.get(name) else {
            return Err("the runner's owner has not pinned this runbook (--pin)".into());
        };
        let digest = spec.digest();
        if *pinned != digest {
            return Err(format!("the runner's owner has pinned another text of this runbook; this one is {digest}"));
        }
        // The digest is of the text alone, and what would be executed is beside it.
        match RunbookText::admitted(spec) {
            Ok(_) => Ok(()),
            Err(why) => Err(format!("the job is not what the pinned runbook says: {why}")),
        }
    }
}

/// Whether a job could be executed at all, and sets no variable that nobody may set.
fn well_formed(spec: &JobSpec) -> Result<(), String> {
    let commands = [&spec.check, &spec.run, &spec.verify];
    if commands.iter().all(|command| command.is_none()) {
        return Err("the job has no command".into());
    }
    let empty = |argv: &Vec<String>| argv.first().is_none_or(String::is_empty);
    if commands.into_iter().flatten().any(|argv| empty(argv) || argv.iter().any(|word| word.contains('\0'))) {
        return Err("a command of the job cannot be executed".into());
    }
    let of_argument = |name: &str| spec.arguments.keys().any(|argument| variables::of_argument(argument) == name);
    for (name, variable) in &spec.env {
        let reserved = variables::is_reserved(name) && !of_argument(name);
        if !variables::is_name(name) || reserved || variable.value.contains('\0') {
            return Err("the job sets a variable that nobody may set".into());
        }
    }
    Ok(())
}

fn is_digest(text: &str) -> bool {
    let hex = |rest: &str| rest.len() == 64 && rest.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    text.strip_prefix("sha256:").is_some_and(hex)
}

#[cfg(test)]
mod tests;
