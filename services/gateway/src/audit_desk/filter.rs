//! Which entries of the audit log somebody looks for.
//!
//! Every part that is given has to fit. An entry that does not have the part at all does not fit.

use domain::Moment;
use serde::Deserialize;
use serde_json::Value;

/// What is looked for.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct AuditFilter {
    /// The name of the tool.
    pub(crate) tool: Option<String>,
    /// The target, or what it begins with up to a slash: `cluster/prod` finds `cluster/prod/shop` too.
    pub(crate) target: Option<String>,
    /// The subject of whoever acted, or the name of the person.
    pub(crate) principal: Option<String>,
    /// The run.
    pub(crate) run: Option<String>,
    /// The session.
    pub(crate) session: Option<String>,
    /// The call.
    pub(crate) call: Option<String>,
    /// The code of the outcome; `ok` for success.
    pub(crate) code: Option<String>,
    /// A part of the entry as it is stored, or of its arguments or result, whatever the case of its letters.
    pub(crate) text: Option<String>,
    /// The first moment.
    pub(crate) since: Option<Moment>,
    /// The last moment.
    pub(crate) until: Option<Moment>,
}

impl AuditFilter {
    /// Whether an entry, as it is stored, is looked for; `contents` opens its arguments or result.
    pub(crate) fn fits_stored(&self, at: Moment, body: &[u8], contents: impl FnOnce() -> Option<String>) -> bool {
        let within = self.since.is_none_or(|since| since <= at) && self.until.is_none_or(|until| at <= until);
        // What is no JSON has no parts.
        within && self.fits(&serde_json::from_slice(body).unwrap_or_default(), body, contents)
    }

    /// The same of its parts; `body` is the same entry as it is stored.
    fn fits(&self, entry: &Value, body: &[u8], contents: impl FnOnce() -> Option<String>) -> bool {
        let is = |wanted: &Option<String>, found: &[&Value]| {
            wanted.as_ref().is_none_or(|wanted| found.iter().any(|found| found.as_str() == Some(wanted)))
        };
        is(&self.tool, &[&entry["tool"]])
            && self
                .target
                .as_ref()
                .is_none_or(|wanted| entry["target"].as_str().is_some_and(|found| under(found, wanted)))
            && is(&self.principal, &[&entry["actor"]["sub"], &entry["actor"]["person"]])
            && is(&self.run, &[&entry["run"]["id"], &entry["decision"]["basis"]])
            && is(&self.session, &[&entry["session"]])
            && is(&self.call, &[&entry["call"]])
            && is(&self.code, &[&entry["outcome"]["code"]])
            && self.text.as_ref().is_none_or(|wanted| {
                holds(&String::from_utf8_lossy(body), wanted) || contents().is_some_and(|text| holds(&text, wanted))
            })
    }
}

/// Whether a target is this one or below it.
fn under(target: &str, wanted: &str) -> bool {
    target.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || wanted.ends_with('/'))
}

fn holds(text: &str, wanted: &str) -> bool {
    text.to_lowercase().contains(&wanted.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(filter: &Value) -> bool {
        let entry = json!({ "tool": "k8s_get", "target": "cluster/prod/shop", "session": "ses_1", "call": "call_1",
            "actor": { "iss": "i", "sub": "ana", "person": "ana@example.com" }, "outcome": { "code": "ok" },
            "run": { "id": "run_1" }, "decision": { "basis": "run_2" } });
        let filter: AuditFilter = serde_json::from_value(filter.clone()).unwrap();
        filter.fits(&entry, entry.to_string().as_bytes(), || Some(r#"{"name":"Checkout"}"#.to_owned()))
    }

    #[test]
    fn every_part_that_is_given_has_to_fit() {
        assert!(fits(&json!({})));
        for (key, good, bad) in [
            ("tool", "k8s_get", "k8s"),
            ("target", "cluster/prod", "cluster/pro"),
            ("target", "cluster/prod/shop", "cluster/prod/shop/x"),
            ("target", "cluster/", "jenkins"),
            ("principal", "ana", "an"),
            ("principal", "ana@example.com", "bo"),
            ("run", "run_1", "run_3"),
            ("run", "run_2", "run"),
            ("session", "ses_1", "ses_2"),
            ("call", "call_1", "call_2"),
            ("code", "ok", "denied"),
        ] {
            assert!(fits(&json!({ key: good })), "{key} {good}");
            assert!(!fits(&json!({ key: bad })), "{key} {bad}");
            assert!(!fits(&json!({ key: good, "tool": "other" })), "{key} {good} of another tool");
        }
        assert!(
            fits(&json!({ "text": "EXAMPLE.com" }))
                && fits(&json!({ "text": "checkout" }))
                && !fits(&json!({ "text": "example.org" }))
        );
    }
}
