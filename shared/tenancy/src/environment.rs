//! `env:NAME` is refused wherever it stands: what a file takes from an environment nobody can see in the file.

use crate::problem::{ProblemReport, shown};
use crate::yaml::{YamlNode, YamlValue};

/// Texts for people, in which anything may be talked about.
const WORDS: &str = "description";

/// Reports each `env:NAME` and takes it out, so that nothing else is said about it.
pub fn refuse(node: &mut YamlNode, report: &mut ProblemReport) {
    match &mut node.value {
        YamlValue::Scalar { text, .. } => {
            let Some(name) = named(text) else { return };
            let message = format!("{} is refused: what it stands for cannot be seen or checked here", shown(name));
            let hint = "declare a parameter with `secret: true`, write `{{ params.NAME }}` in its place, and let its value \
                        come from the tenant's secrets (a mounted file, the operator's environment, or the API)";
            report.add(node.at, "env_refused", message, Some(hint.to_owned()));
            node.value = YamlValue::Refused;
        }
        YamlValue::List(items) => items.iter_mut().for_each(|item| refuse(item, report)),
        YamlValue::Map(entries) => {
            let checked = entries.iter_mut().filter(|(key, _)| key.text != WORDS);
            checked.for_each(|(_, value)| refuse(value, report));
        }
        YamlValue::Refused => {}
    }
}

/// The first `env:NAME` that is not the end of another word.
fn named(text: &str) -> Option<&str> {
    text.match_indices("env:").find_map(|(at, found)| {
        let alone = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let name = &text[at + found.len()..];
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        (alone && begins).then(|| &text[at..at + found.len() + end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reference_is_meant() {
        for (text, found) in
            [("env:TOKEN", "env:TOKEN"), ("Bearer env:_T x", "env:_T"), ("https://h/{env:A}/b", "env:A")]
        {
            assert_eq!(named(text), Some(found));
        }
        for fine in ["k8s_env:FOO", "tenant-env:x", "env:", "env: x", "env:8080", "environment", "myenv:X"] {
            assert_eq!(named(fine), None, "{fine}");
        }
    }
}
