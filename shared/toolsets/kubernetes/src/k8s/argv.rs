//! A command as a list of words. There is no shell, so nothing in them is special.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

const MOST_WORDS: usize = 64;
const MOST_BYTES: usize = 8 * 1024;

/// The words of a command, the program first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct Argv(Vec<String>);

impl Argv {
    /// The words.
    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for Argv {
    type Error = String;

    fn try_from(words: Vec<String>) -> Result<Argv, String> {
        let bytes: usize = words.iter().map(String::len).sum();
        let fits = (1..=MOST_WORDS).contains(&words.len())
            && bytes <= MOST_BYTES
            && words.first().is_some_and(|program| !program.is_empty())
            && !words.iter().any(|word| word.contains('\0'));
        match fits {
            true => Ok(Argv(words)),
            false => Err(format!("a command is 1 to {MOST_WORDS} words, {MOST_BYTES} bytes together, without NUL")),
        }
    }
}

impl JsonSchema for Argv {
    fn schema_name() -> Cow<'static, str> {
        "Argv".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array", "minItems": 1, "maxItems": MOST_WORDS,
            "items": { "type": "string", "maxLength": MOST_BYTES },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_as_they_are() {
        let argv = |words: &[&str]| Argv::try_from(words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(argv(&["ls", "-l; rm -rf /", "$(id)", ""]).unwrap().words()[1], "-l; rm -rf /");
        assert!(argv(&[]).is_err() && argv(&[""]).is_err() && argv(&["a\0"]).is_err());
        assert!(argv(&["x"; 65]).is_err() && argv(&["x".repeat(9_000).as_str()]).is_err());
    }
}
