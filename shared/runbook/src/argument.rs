//! What an argument of a runbook may be.

use regex::RegexBuilder;
use serde::{Deserialize, Serialize};

/// How much a pattern may compile to.
const PATTERN_BYTES: usize = 256 * 1024;
/// How many bytes a value may have.
const MOST_BYTES: usize = 4096;

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentKind {
    /// Any text without a zero byte.
    #[default]
    String,
    /// A number of JSON.
    Number,
    /// `true` or `false`.
    Bool,
}

/// What an argument may be. Values are judged as the texts that they become in a command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentRule {
    /// Its type.
    #[serde(default, rename = "type")]
    pub kind: ArgumentKind,
    /// Whether a call has to give it.
    #[serde(default)]
    pub required: bool,
    /// What counts if a call does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The only values there are.
    #[serde(default, rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// A regular expression that a text must match somewhere; `^` and `$` make it the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// The least number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The greatest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

impl ArgumentRule {
    /// Whether the value is one that this argument may have; `Err` says what it must be.
    pub fn judge(&self, value: &str) -> Result<(), String> {
        if value.contains('\0') {
            return Err("must not hold a zero byte".into());
        }
        if value.len() > MOST_BYTES {
            return Err(format!("must have at most {MOST_BYTES} bytes"));
        }
        match self.kind {
            ArgumentKind::String => {}
            ArgumentKind::Bool if matches!(value, "true" | "false") => {}
            ArgumentKind::Bool => return Err("must be true or false".into()),
            ArgumentKind::Number => self.judge_number(value)?,
        }
        if !self.one_of.is_empty() && !self.one_of.iter().any(|one| one == value) {
            return Err(format!("must be one of {}", self.one_of.join(", ")));
        }
        let Some(pattern) = &self.pattern else { return Ok(()) };
        let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
        match regex {
            Ok(regex) if regex.is_match(value) => Ok(()),
            Ok(_) => Err(format!("must match {pattern}")),
            Err(_) => Err("has a pattern that cannot be read".into()),
        }
    }

    fn judge_number(&self, value: &str) -> Result<(), String> {
        let number: serde_json::Number = serde_json::from_str(value).map_err(|_| "must be a number")?;
        let number = number.as_f64().ok_or("must be a number")?;
        if self.min.is_some_and(|min| number < min) || self.max.is_some_and(|max| number > max) {
            let bound = |bound: Option<f64>| bound.map_or("any".to_owned(), |bound| bound.to_string());
            return Err(format!("must be from {} to {}", bound(self.min), bound(self.max)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_judged_by_type_list_pattern_and_bounds() {
        let rule = |kind| ArgumentRule { kind, ..ArgumentRule::default() };
        let number = ArgumentRule { min: Some(1.0), max: Some(9.0), ..rule(ArgumentKind::Number) };
        let listed = ArgumentRule { one_of: vec!["eu".into(), "us".into()], ..ArgumentRule::default() };
        let pattern = |text: &str| ArgumentRule { pattern: Some(text.into()), ..ArgumentRule::default() };
        for (rule, good, bad) in [
            (rule(ArgumentKind::String), vec!["", "-rf", "a b", "$(id)"], vec!["a\0b"]),
            (rule(ArgumentKind::Bool), vec!["true", "false"], vec!["1", "True", ""]),
            (number, vec!["1", "9", "1.5"], vec!["0", "10", "x", "", "1 2", "0x5", "NaN"]),
            (listed, vec!["eu"], vec!["EU", "eu ", ""]),
            (pattern("^[a-z]+$"), vec!["abc"], vec!["", "a1", "a\nb"]),
            (pattern("("), vec![], vec!["anything"]),
        ] {
            for value in good {
                assert_eq!(rule.judge(value), Ok(()), "{rule:?} {value}");
            }
            for value in bad {
                assert!(rule.judge(value).is_err(), "{rule:?} {value}");
            }
        }
        assert!(ArgumentRule::default().judge(&"x".repeat(5_000)).is_err());
    }
}
