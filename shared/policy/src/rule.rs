//! What a tenant may say about tools: patterns that deny, or that ask a person where the product would not.

use domain::run::OnReject;
use std::fmt;

/// Which calls a rule is about: a tool's name, or a beginning of one with `*`, and optionally what the arguments are
/// about: `k8s_exec`, `helm_*`, `k8s_get:secrets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    tool: String,
    open: bool,
    about: Option<String>,
}

/// The text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAPattern {
    /// Nothing before the colon or the star would match every tool by accident.
    #[error("a pattern names a tool, such as `helm_*` or `k8s_get:secrets`")]
    Empty,
    /// A star is only understood at the end.
    #[error("`*` is only understood at the end of the tool's name")]
    Star,
    /// A letter no tool's name can hold.
    #[error("a tool's name holds only letters, digits, '_' and '-'")]
    Letter,
}

impl Pattern {
    /// Reads a pattern. A lone `*` is allowed: a tenant may ask for, or deny, everything.
    pub fn parse(text: &str) -> Result<Pattern, NotAPattern> {
        let (tool, about) = match text.split_once(':') {
            Some((_, "")) => return Err(NotAPattern::Empty),
            Some((tool, about)) => (tool, Some(about.to_owned())),
            None => (text, None),
        };
        if tool.is_empty() {
            return Err(NotAPattern::Empty);
        }
        let (stem, open) = tool.strip_suffix('*').map_or((tool, false), |stem| (stem, true));
        if stem.contains('*') {
            return Err(NotAPattern::Star);
        }
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !stem.chars().all(letter) {
            return Err(NotAPattern::Letter);
        }
        Ok(Pattern { tool: stem.to_owned(), open, about })
    }

    /// Whether the rule is about this tool, whatever the arguments.
    pub fn tool_matches(&self, tool: &str) -> bool {
        if self.open { tool.starts_with(&self.tool) } else { tool == self.tool }
    }

    /// Whether the rule covers every call of the tools it names.
    pub fn is_whole(&self) -> bool {
        self.about.is_none()
    }

    /// Whether this rule is about every call that the other one is about.
    pub fn covers(&self, other: &Pattern) -> bool {
        let tools = if self.open { other.tool.starts_with(&self.tool) } else { !other.open && other.tool == self.tool };
        tools && self.about.as_ref().is_none_or(|about| other.about.as_ref() == Some(about))
    }

    /// Whether this rule is about some tool that the other one is about.
    pub fn meets(&self, other: &Pattern) -> bool {
        match (self.open, other.open) {
            (true, true) => self.tool.starts_with(&other.tool) || other.tool.starts_with(&self.tool),
            (_, false) => self.tool_matches(&other.tool),
            (false, true) => other.tool_matches(&self.tool),
        }
    }

    /// Whether the rule is about this call. What a call is about may be several words, with commas between them; a rule
    /// about any of them is about the call.
    pub fn matches(&self, tool: &str, about: Option<&str>) -> bool {
        let named = |wanted: &str| about.is_some_and(|about| about.split(',').any(|word| word == wanted));
        self.tool_matches(tool) && self.about.as_deref().is_none_or(named)
    }
}

/// A rule that asks a person, and what a no means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Which calls.
    pub pattern: Pattern,
    /// What a rejection means for the session.
    pub on_reject: OnReject,
}

impl Gate {
    /// Whether this rule asks for every call that the other one asks for, and a no means at least as much.
    pub fn covers(&self, other: &Gate) -> bool {
        let strict = self.on_reject == OnReject::Fail || other.on_reject == OnReject::Continue;
        strict && self.pattern.covers(&other.pattern)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        f.write_str(if self.open { "*" } else { "" })?;
        self.about.iter().try_for_each(|about| write!(f, ":{about}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_what_it_says() {
        let matches = |text: &str, tool, about| Pattern::parse(text).unwrap().matches(tool, about);
        assert!(matches("k8s_exec", "k8s_exec", None) && !matches("k8s_exec", "k8s_execute", None));
        assert!(matches("helm_*", "helm_upgrade", Some("web")) && !matches("helm_*", "k8s_get", None));
        assert!(matches("k8s_get:secrets", "k8s_get", Some("secrets")));
        assert!(!matches("k8s_get:secrets", "k8s_get", None) && !matches("k8s_get:secrets", "k8s_get", Some("pods")));
        assert!(matches("*", "anything", None));
        let several = Some("configmaps,secrets");
        assert!(
            matches("k8s_apply:secrets", "k8s_apply", several) && matches("k8s_apply:configmaps", "k8s_apply", several)
        );
        assert!(!matches("k8s_apply:config", "k8s_apply", several) && !matches("k8s_apply:pods", "k8s_apply", several));
    }

    #[test]
    fn a_pattern_reads_back_and_knows_whether_it_covers_a_tool_whole() {
        for (text, whole) in [("k8s_exec", true), ("helm_*", true), ("*", true), ("k8s_get:secrets", false)] {
            let pattern = Pattern::parse(text).unwrap();
            assert_eq!((pattern.to_string().as_str(), pattern.is_whole()), (text, whole));
        }
    }

    #[test]
    fn a_pattern_covers_another_exactly_if_it_matches_whatever_that_one_matches() {
        let patterns = ["a", "ab", "a*", "ab*", "*", "b", "a:x", "a*:x", "a:y", "*:x", "ab*:y"];
        let calls = ["a", "ab", "abc", "b", "c"]
            .into_iter()
            .flat_map(|tool| [None, Some("x"), Some("y"), Some("z")].map(|about| (tool, about)));
        for (one, other) in patterns.iter().flat_map(|one| patterns.map(|other| (one, other))) {
            let (covering, covered) = (Pattern::parse(one).unwrap(), Pattern::parse(other).unwrap());
            let all = calls
                .clone()
                .filter(|(tool, about)| covered.matches(tool, *about))
                .all(|(tool, about)| covering.matches(tool, about));
            assert_eq!(covering.covers(&covered), all, "{one} covers {other}");
            let some = calls.clone().any(|(tool, _)| covering.tool_matches(tool) && covered.tool_matches(tool));
            assert_eq!(covering.meets(&covered), some, "{one} meets {other}");
        }
    }

    #[test]
    fn a_gate_covers_another_if_a_no_means_as_much() {
        let gate = |text, on_reject| Gate { pattern: Pattern::parse(text).unwrap(), on_reject };
        assert!(gate("a*", OnReject::Fail).covers(&gate("ab", OnReject::Continue)));
        assert!(gate("a*", OnReject::Fail).covers(&gate("ab", OnReject::Fail)));
        assert!(!gate("a*", OnReject::Continue).covers(&gate("ab", OnReject::Fail)));
        assert!(!gate("ab", OnReject::Fail).covers(&gate("a*", OnReject::Continue)));
    }

    #[test]
    fn a_pattern_that_would_surprise_is_refused() {
        for (text, why) in [
            ("", NotAPattern::Empty),
            (":secrets", NotAPattern::Empty),
            ("k8s_get:", NotAPattern::Empty),
            ("*_get", NotAPattern::Star),
            ("a**", NotAPattern::Star),
            ("k8s get", NotAPattern::Letter),
            ("k8s.get", NotAPattern::Letter),
        ] {
            assert_eq!(Pattern::parse(text), Err(why), "{text}");
        }
    }
}
