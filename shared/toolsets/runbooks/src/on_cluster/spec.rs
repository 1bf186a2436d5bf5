//! What is made in a cluster: a Job without rights, and a Secret that goes with it.
//!
//! The kubelet replaces `$(NAME)` in commands and variables. A dollar sign is therefore doubled everywhere, which is how
//! Kubernetes spells one that means itself: no argument can read a variable of the container that way.

use crate::resolved::ResolvedCall;
use domain::Failure;
use domain::job::{JobStep, JobVariable};
use domain::json::sha256_hex;
use kubernetes::client::SealedValue;
use redact::KeptSecret;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the cluster keeps a Job that is over, in seconds.
pub(super) const TTL_S: u64 = 2 * 24 * 60 * 60;
/// The cluster ends a Job a little after its time, so that a command that ends by itself is seen to.
pub(super) const AFTER_TIMEOUT: Duration = Duration::from_secs(5);
/// The annotation that says what a Job executes.
const DIGEST: &str = "quartermaster/runbook-digest";
/// The annotation that names the runbook.
const RUNBOOK: &str = "quartermaster/runbook";

/// A Job that is to be made.
pub(super) struct PlannedJob {
    /// Its name.
    pub(super) name: String,
    commands: Vec<(JobStep, Vec<String>)>,
}

impl PlannedJob {
    pub(super) fn new(name: String, commands: Vec<(JobStep, Vec<String>)>) -> PlannedJob {
        PlannedJob { name, commands }
    }

    /// Its steps, in the order in which they run.
    pub(super) fn steps(&self) -> Vec<JobStep> {
        self.commands.iter().map(|(step, _)| *step).collect()
    }

    /// Names everything that it executes, secrets by their names.
    fn digest(&self, call: &ResolvedCall) -> String {
        let steps = self.commands.iter().map(|(step, words)| json!([step.as_str(), words]));
        let env = call.resolved.env.iter().map(|(name, variable)| json!([name, variable.value, call.secret_of(name)]));
        let whole = json!([call.runbook.digest(), steps.collect::<Vec<_>>(), env.collect::<Vec<_>>()]);
        sha256_hex(whole.to_string().as_bytes())
    }

    /// Whether a Job that is there executes this.
    pub(super) fn is(&self, job: &Value, call: &ResolvedCall) -> bool {
        job["metadata"]["annotations"][DIGEST].as_str() == Some(self.digest(call).as_str())
    }

    /// The Job, without the cluster's rights and without the node's.
    pub(super) fn body(&self, call: &ResolvedCall, image: &str) -> Value {
        let containers: Vec<Value> =
            self.commands.iter().map(|(step, words)| self.container(*step, words, call, image)).collect();
        let (last, first) =
            containers.split_last().map_or((Value::Null, &[][..]), |(last, first)| (last.clone(), first));
        let mut pod = json!({
            "restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
            "hostNetwork": false, "hostPID": false, "hostIPC": false, "containers": [last],
        });
        if !first.is_empty() {
            pod["initContainers"] = json!(first);
        }
        let labels = json!({ "app.kubernetes.io/managed-by": "quartermaster" });
        let timeout = Duration::from_millis(call.runbook.text.timeout_ms) + AFTER_TIMEOUT;
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": self.name, "labels": labels,
                "annotations": { RUNBOOK: call.runbook.id(), DIGEST: self.digest(call) },
            },
            "spec": {
                "backoffLimit": 0, "completions": 1, "parallelism": 1,
                "activeDeadlineSeconds": timeout.as_secs(),
                "ttlSecondsAfterFinished": TTL_S,
                "template": { "metadata": { "labels": labels }, "spec": pod },
            },
        })
    }

    fn container(&self, step: JobStep, words: &[String], call: &ResolvedCall, image: &str) -> Value {
        let env: Vec<Value> =
            call.resolved.env.iter().map(|(name, variable)| self.variable(name, variable, call)).collect();
        let mut container = json!({
            "name": step.as_str(), "image": image,
            "command": words.iter().map(|word| literal(word)).collect::<Vec<_>>(),
            "env": env,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "privileged": false, "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
                "seccompProfile": { "type": "RuntimeDefault" },
            },
        });
        if let Some(directory) = &call.runbook.text.directory {
            container["workingDir"] = json!(directory);
        }
        container
    }

    fn variable(&self, name: &str, variable: &JobVariable, call: &ResolvedCall) -> Value {
        match call.secret_of(name) {
            Some(_) => json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": self.name, "key": name } } }),
            None => json!({ "name": name, "value": literal(&variable.value) }),
        }
    }

    /// The Secret with the values that no spec may hold; `None` if there are none.
    pub(super) fn secret(
        &self,
        call: &ResolvedCall,
        secrets: &BTreeMap<String, KeptSecret>,
        uid: &str,
    ) -> Result<Option<SealedValue>, Failure> {
        let env = call.environment(secrets)?;
        let values: Map<String, Value> = env
            .into_iter()
            .filter(|(name, _)| call.secret_of(name).is_some())
            .map(|(name, variable)| (name, json!(variable.value)))
            .collect();
        if values.is_empty() {
            return Ok(None);
        }
        let owner = json!({
            "apiVersion": "batch/v1", "kind": "Job", "name": self.name, "uid": uid,
        });
        let labels = json!({ "app.kubernetes.io/managed-by": "quartermaster" });
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
            "metadata": { "name": self.name, "labels": labels, "ownerReferences": [owner] },
            "stringData": values,
        });
        Ok(Some(body.into()))
    }
}

/// A text that the kubelet passes on as it is.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the kubelet makes of a text, by the rules of Kubernetes: `$$` is a dollar sign, `$(NAME)` a variable.
    fn expanded(text: &str, env: &[(&str, &str)]) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
            } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
                match env.iter().find(|(known, _)| *known == name) {
                    Some((_, value)) => out.push_str(value),
                    None => out.push_str(&format!("$({name})")),
                }
                rest = after;
            } else {
                out.push('$');
            }
        }
        out + rest
    }

    #[test]
    fn no_word_reads_a_variable_of_the_container() {
        assert_eq!(expanded("$(TOKEN)", &[("TOKEN", "s3cret")]), "s3cret", "this is what must not happen");
        for word in
            ["$(TOKEN)", "$$(TOKEN)", "$$$(TOKEN)", "a$(TOKEN)b$", "$($(TOKEN))", "$", "$$", "${TOKEN}", "$(", "$()"]
        {
            assert_eq!(expanded(&literal(word), &[("TOKEN", "s3cret")]), word);
        }
    }

    proptest! {
        #[test]
        fn any_word_reaches_the_program_as_it_is(word in "[$()A-Z{}]{0,30}|\\PC{0,30}") {
            prop_assert_eq!(expanded(&literal(&word), &[("A", "x"), ("", "y")]), word);
        }
    }
}
