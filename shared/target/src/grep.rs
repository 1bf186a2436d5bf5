//! `grep`: a search expression over text that is already masked. Linear time, and small once compiled.

use crate::bounded_text;
use regex::RegexBuilder;
use serde::{Deserialize, Serialize};

const MOST_BYTES: usize = 256;
/// What a compiled expression may take; nested counts would otherwise multiply.
const MOST_COMPILED: usize = 1 << 20;

/// A compiled expression.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Grep {
    text: String,
    pattern: regex::Regex,
}

impl Grep {
    /// Whether the line is wanted.
    pub fn wants(&self, line: &str) -> bool {
        self.pattern.is_match(line)
    }
}

impl TryFrom<String> for Grep {
    type Error = String;

    fn try_from(text: String) -> Result<Grep, String> {
        if text.is_empty() || text.len() > MOST_BYTES {
            return Err(format!("grep has 1 to {MOST_BYTES} bytes"));
        }
        let built = RegexBuilder::new(&text).size_limit(MOST_COMPILED).dfa_size_limit(MOST_COMPILED).build();
        match built {
            Ok(pattern) => Ok(Grep { text, pattern }),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err("grep is too large once compiled; use smaller counts".to_owned())
            }
            // The library draws the expression with a marker below; one line is enough here.
            Err(error) => {
                let why = error.to_string();
                let last = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(format!("grep is no regex: {last} (no look-around, no back-references)"))
            }
        }
    }
}

bounded_text!(Grep, MOST_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_finds_its_lines() {
        let grep = Grep::try_from("(?i)error|time.?out".to_owned()).unwrap();
        assert!(grep.wants("an ERROR") && grep.wants("timeout") && !grep.wants("fine"));
    }

    #[test]
    fn what_cannot_run_in_linear_time_and_little_space_is_refused() {
        for bad in ["", "(", "(?=a)", r"(a)\1", "a{1000}{1000}", &"a".repeat(257)] {
            assert!(Grep::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        let bomb = Grep::try_from("^(a+)+$".to_owned()).unwrap();
        assert!(!bomb.wants(&format!("{}!", "a".repeat(100_000))));
    }
}
