//! What an approver is shown of a change, while it is drawn.
//!
//! A preview keeps two things apart. What is *shown* may hold numbers that move by themselves; what is *judged* is every
//! fact that must still be so when the change is carried out, and the warnings. So what moves by itself leaves a yes alone,
//! and whatever the approver judged voids it.
//!
//! Nothing that is shown is shortened: whoever decides reads all of it, or is not asked (see the executor). What was
//! brought by the requester and will be executed is shown as it is; what is hidden all the same is counted.
//!
//! Not here: which facts a change has (see the toolsets).

use crate::ToolPreview;
use domain::json::{canonical, sha256_hex};
use serde_json::{Value, json};

/// How many letters of a digest are shown.
const DIGEST: usize = 16;

/// A preview in the making.
#[derive(Debug)]
pub struct PreviewBuilder {
    lines: Vec<String>,
    blocks: Vec<PreviewBlock>,
    warnings: Vec<String>,
    facts: Vec<Value>,
    hidden: Vec<Value>,
    arguments: Option<String>,
    withheld: Vec<String>,
}

/// A longer text below the lines, such as a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewBlock {
    /// What it is about.
    pub title: String,
    /// The text.
    pub text: String,
}

impl PreviewBuilder {
    /// A preview that begins with this line.
    pub fn new(heading: impl Into<String>) -> PreviewBuilder {
        PreviewBuilder {
            lines: vec![heading.into()],
            blocks: Vec::new(),
            warnings: Vec::new(),
            facts: Vec::new(),
            hidden: Vec::new(),
            arguments: None,
            withheld: Vec::new(),
        }
    }

    /// Says something that may be otherwise by the time it is done.
    pub fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Notes something that must still be so.
    pub fn fact(&mut self, fact: Value) {
        self.facts.push(fact);
    }

    /// Notes something that the text shows without its secrets: where the text stays the same, this must too.
    pub fn hidden(&mut self, value: Value) {
        self.hidden.push(value);
    }

    /// Says something that must still be so.
    pub fn judge(&mut self, line: impl Into<String>) {
        let line = line.into();
        self.fact(Value::from(line.as_str()));
        self.line(line);
    }

    /// Warns, once. The [`digest`](PreviewBuilder::digest) covers it, so it holds no number that moves by itself.
    pub fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Adds a longer text below the lines.
    pub fn block(&mut self, title: impl Into<String>, text: impl Into<String>) {
        self.blocks.push(PreviewBlock { title: title.into(), text: text.into() });
    }

    /// Says how people are shown the arguments, where some of them may not be seen.
    pub fn arguments(&mut self, arguments: Option<String>) {
        self.arguments = arguments;
    }

    /// Says that so many characters of something are not shown, and why.
    pub fn withhold(&mut self, characters: usize, what: impl std::fmt::Display) {
        self.withheld.push(hidden_characters(characters, what));
    }

    /// Says that something is not shown whose length nobody may know.
    pub fn withhold_value(&mut self, what: impl std::fmt::Display) {
        self.withheld.push(format!("a value is hidden: {what}"));
    }

    /// The lines so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The longer texts so far.
    pub fn blocks(&self) -> &[PreviewBlock] {
        &self.blocks
    }

    /// The digest of all that is judged.
    pub fn digest(&self) -> String {
        digest(&self.judged())
    }

    /// All that is judged.
    pub fn judged(&self) -> Value {
        json!({ "judged": self.facts, "warnings": self.warnings })
    }

    /// All that the text shows without its secrets.
    pub fn all_hidden(&self) -> Value {
        Value::Array(self.hidden.clone())
    }

    /// The finished preview, with lines and blocks as this text.
    pub fn build(self, summary: impl Into<String>, text: String, fingerprint: String) -> ToolPreview {
        let PreviewBuilder { warnings, arguments, withheld: hidden, .. } = self;
        ToolPreview { summary: summary.into(), text, warnings, arguments, hidden, fingerprint }
    }
}

/// How people are told that something is not shown.
pub fn hidden_characters(characters: usize, what: impl std::fmt::Display) -> String {
    let plural = if characters == 1 { "" } else { "s" };
    format!("{characters} character{plural} hidden: {what}")
}

/// The digest of a value in its one form.
pub fn digest(value: &Value) -> String {
    sha256_hex(canonical(value).as_bytes())
}

/// As much of a digest as is shown.
pub fn short(digest: &str) -> &str {
    digest.get(..DIGEST).unwrap_or(digest)
}

/// The last line of a text that does not say all that was judged: two such texts are the same only if what was judged is.
pub fn judged_line(digest: &str) -> String {
    format!("judged: sha256 {}", short(digest))
}

/// How a target is named where it would be changed.
pub fn target_name(name: &str, simulated: bool) -> String {
    format!("{name}{}", if simulated { " (simulated)" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_judged_makes_the_digest_and_what_moves_does_not() {
        let drawn = |change: fn(&mut PreviewBuilder)| {
            let mut preview = PreviewBuilder::new("cluster a");
            preview.judge("replicas: 3 -> 0");
            change(&mut preview);
            preview.digest()
        };
        let plain = drawn(|_| {});
        assert_eq!(plain, drawn(|preview| preview.line("ready now: 2")));
        assert_eq!(plain, drawn(|preview| preview.block("change x", "+a")));
        assert_ne!(plain, drawn(|preview| preview.fact(json!({ "uid": "u" }))));
        assert_ne!(plain, drawn(|preview| preview.warn("It goes away.")));
    }

    #[test]
    fn a_warning_is_said_once_and_all_parts_arrive() {
        let mut preview = PreviewBuilder::new(format!("cluster {}", target_name("a", true)));
        preview.warn("It goes away.");
        preview.warn("It goes away.");
        preview.arguments(Some("{}".to_owned()));
        preview.withhold(1, "value of Secret a/b, key c");
        assert_eq!(preview.lines(), ["cluster a (simulated)"]);
        let built = preview.build("scale", "text".to_owned(), "k8s:0".to_owned());
        assert_eq!(built.warnings, ["It goes away."]);
        assert_eq!(built.hidden, ["1 character hidden: value of Secret a/b, key c"]);
        assert_eq!((built.arguments.as_deref(), built.fingerprint.as_str()), (Some("{}"), "k8s:0"));
        assert_eq!(judged_line(&"0123456789abcdef".repeat(4)), "judged: sha256 0123456789abcdef");
    }
}
