//! What is made: a Job with no rights, one from a CronJob's own template, or a debug container.

use super::Args;
use crate::client::SealedValue;
use crate::k8s::grammar::Image;
use domain::Failure;
use serde_json::{Value, json};

/// The container of a Job that we specify.
const CONTAINER: &str = "job";
/// The cluster ends a Job a little after we stopped waiting, since its pod and its logs go with it.
const AFTER_TIMEOUT: u64 = 5;

/// Nothing a program could use to become more than it is.
fn harmless() -> Value {
    json!({
        "privileged": false, "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

fn container(name: &str, image: &Image, args: &Args) -> Value {
    let mut container = json!({
        "name": name, "image": image.as_str(), "securityContext": harmless(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    if !args.words().is_empty() {
        container["command"] = json!(args.words());
    }
    container
}

/// A Job of one container, without the cluster's rights and without the node's.
pub(super) fn job(name: &str, image: &Image, args: &Args) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": args.timeout().as_secs() + AFTER_TIMEOUT,
            "ttlSecondsAfterFinished": args.ttl_s(),
            "template": { "spec": {
                "restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
                "hostNetwork": false, "hostPID": false, "hostIPC": false,
                "containers": [container(CONTAINER, image, args)],
            } },
        },
    })
}

/// A Job as the CronJob itself would make one, only now. Its template is somebody's considered choice, so it stays as it
/// is, time limits included; only its removal is ours.
pub(super) fn from_cronjob(
    name: &str,
    cronjob: &SealedValue,
    live: &Value,
    args: &Args,
) -> Result<SealedValue, Failure> {
    let parts = cronjob.part("/spec/jobTemplate").and_then(|template| Some((template.part("/spec")?, template)));
    let Some((spec, template)) = parts else {
        return Err(
            Failure::new(crate::codes::UNSUPPORTED_KIND, "the CronJob has no template").next("use image instead")
        );
    };
    let meta = &live["metadata"];
    let mut job: SealedValue = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name,
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": meta["name"], "uid": meta["uid"],
            }],
        },
    })
    .into();
    for field in ["labels", "annotations"] {
        if let Some(part) = template.part(&format!("/metadata/{field}")) {
            job.set(&format!("/metadata/{field}"), part);
        }
    }
    job.set("/metadata/annotations/cronjob.kubernetes.io~1instantiate", json!("manual"));
    job.set("/spec", spec);
    job.set("/spec/ttlSecondsAfterFinished", json!(args.ttl_s()));
    Ok(job)
}

/// A container beside those of a pod. It has neither probes nor ports, and ends when its command does.
pub(super) fn debugger(name: &str, image: &Image, args: &Args) -> Value {
    container(name, image, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(value: Value) -> Args {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_job_has_no_rights_and_an_end() {
        let args = args(json!({ "image": "busybox:1", "command": ["sh", "-c", "$(id); rm -rf /"], "timeout_s": 20 }));
        let job = job("qm-x", args.image.as_ref().unwrap(), &args);
        let (spec, pod) = (&job["spec"], &job["spec"]["template"]["spec"]);
        assert_eq!((&spec["backoffLimit"], &spec["ttlSecondsAfterFinished"]), (&json!(0), &json!(600)));
        assert_eq!(spec["activeDeadlineSeconds"], 25);
        assert_eq!((&pod["restartPolicy"], &pod["automountServiceAccountToken"]), (&json!("Never"), &json!(false)));
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            assert_eq!(pod[field], false);
        }
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["capabilities"], json!({ "drop": ["ALL"] }));
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
        assert_eq!(container["command"], json!(["sh", "-c", "$(id); rm -rf /"]), "words stay words");
    }

    #[test]
    fn without_a_command_the_image_brings_its_own() {
        let args = args(json!({ "image": "busybox:1" }));
        assert_eq!(debugger("qm-x", args.image.as_ref().unwrap(), &args).get("command"), None);
    }
}
