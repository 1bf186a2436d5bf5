//! What a Secret holds is shown to nobody: by no spelling, view, path, difference or preview, in no record and no log.
//!
//! The service runs as a process of its own, so that its log can be searched as well.

use crate::here::processes;
use crate::k8s_yard::{Draft, Yard, manifest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Process, Request, until};

/// Nothing about it looks secret, so only what it stands in can give it away.
const PLANTED: &str = "harbour-lantern-5521";
const ALSO_PLANTED: &str = "quiet-meadow-8034";
const PROPOSED: &str = "copper-orchard-7719";
const ALSO_PROPOSED: &str = "winter-ferry-2206";

const SPELLINGS: [&str; 7] = ["Secret", "secret", "secrets", "v1/Secret", "SECRETS", "secrets.v1", "v1/secrets"];

fn secret(password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "vault", "labels": { "app": "vault" } },
        "type": "Opaque", "data": { "password": STANDARD.encode(password) }, "stringData": { "note": ALSO_PLANTED },
    })
}

/// The same as a client keeps it that applies on its own side, and once more inside an object of another kind.
fn keepsakes() -> [Value; 2] {
    let kept = |name: &str| {
        let mut kept = secret(PLANTED);
        kept["metadata"] = json!({ "name": name });
        json!({ "kubectl.kubernetes.io/last-applied-configuration": kept.to_string() })
    };
    let mut applied = secret(PLANTED);
    applied["metadata"] = json!({ "name": "applied", "annotations": kept("applied") });
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "copy", "annotations": kept("vault") } });
    [applied, map]
}

/// The planted values, as they are and as the API carries them.
fn traces() -> Vec<String> {
    [PLANTED, ALSO_PLANTED].into_iter().flat_map(|text| [text.to_owned(), STANDARD.encode(text)]).collect()
}

fn clean(place: &str, text: &str) {
    for trace in traces() {
        assert!(!text.contains(&trace), "{trace} in {place}: {text}");
    }
}

async fn planted() -> Yard<Process> {
    let draft = Draft::new().await.setting("QM_TELEMETRY__LOG", "debug");
    let yard = draft.start_as(processes()).await;
    let [applied, map] = keepsakes();
    yard.make(&[secret(PLANTED), applied, map]).await;
    yard
}

/// Every look at a Secret that there is.
async fn look(yard: &Yard<Process>) {
    let mut answered = 0;
    for kind in SPELLINGS {
        for more in [
            json!({}),
            json!({ "view": "full" }),
            json!({ "namespace": "*", "selector": "app=vault", "view": "full" }),
            json!({ "field_selector": "metadata.name=vault", "view": "full" }),
            json!({ "path": "data" }),
            json!({ "name": "vault" }),
            json!({ "name": "vault", "view": "full" }),
            json!({ "name": "vault", "view": "describe" }),
            json!({ "name": "vault", "path": "data.password" }),
            json!({ "name": "vault", "path": "metadata", "view": "full" }),
            json!({ "name": "applied", "path": "metadata.annotations", "view": "full" }),
            json!({ "name": "applied", "view": "full" }),
        ] {
            let mut args = json!({ "kind": kind });
            args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            answered += usize::from(yard.call("k8s_get", args).await.code() == "ok");
        }
    }
    assert!(answered >= 40, "most of these are answered: {answered}");
    for view in ["summary", "full", "describe"] {
        yard.read("k8s_get", json!({ "kind": "cm", "name": "copy", "view": view })).await;
    }
    let shown = yard.field("Secret", "vault", "data.password").await;
    assert!(shown.as_str().unwrap().starts_with("masked:"), "{shown}");
}

/// Every way to compare with one, and to propose a change of one.
async fn propose(yard: &Yard<Process>) {
    let other = manifest(&[secret(PROPOSED)]).replace(ALSO_PLANTED, ALSO_PROPOSED);
    let diff = yard.read("k8s_diff", json!({ "manifest": other })).await;
    assert_eq!(diff["objects"][0]["action"], "change", "{diff:#}");
    yard.read("k8s_apply", json!({ "manifest": other, "dry_run": true })).await;
    let patch = json!({ "stringData": { "password": PROPOSED } }).to_string();
    let mut last = String::new();
    for (tool, wish) in [
        ("k8s_apply", json!({ "manifest": other })),
        ("k8s_delete", json!({ "kind": "Secret", "name": "vault" })),
        ("k8s_patch", json!({ "kind": "secrets", "name": "vault", "patch": patch, "type": "strategic" })),
        ("k8s_patch", json!({ "kind": "Secret", "name": "vault", "patch": patch })),
    ] {
        last = yard.ask(tool, wish).await;
        let shown = yard.shown(&last).await;
        // Neither is what the agent proposes: whoever signs judges that it changes, not what it is.
        for value in [PROPOSED, &STANDARD.encode(PROPOSED), ALSO_PROPOSED] {
            assert!(!shown.to_string().contains(value), "{value} in {shown:#}");
        }
    }
    let told = yard.sign(&last).await;
    assert_eq!(told["state"], "succeeded", "{told:#}");
}

/// Guessing: a right guess is told the same as a wrong one.
async fn guess(yard: &Yard<Process>) {
    let places = ["data.password", "data.note"];
    let guesses = traces().into_iter().flat_map(|right| places.map(|path| format!("{path}={right}")));
    let wait = |until: String| json!({ "kind": "Secret", "name": "vault", "until": until, "timeout_s": 1 });
    for told in join_all(guesses.map(|until| yard.call("k8s_wait", wait(until)))).await {
        assert_eq!(told.ok()["met"], false, "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_record_or_log_holds_what_a_secret_holds() {
    let yard = planted().await;
    look(&yard).await;
    guess(&yard).await;
    propose(&yard).await;
    for answer in yard.heard() {
        clean("an answer", &answer);
    }

    let token = yard.world.mint().token(|claims| claims.scope = "audit:read".to_owned());
    let audit_log = until("the audit log to be read", async || {
        let request = Request::new("GET", "/v1/audit?limit=1000").header("Authorization", format!("Bearer {token}"));
        Some(request.send(yard.world.address(0)).await).filter(|answer| answer.status == 200)
    });
    let mut audit_log = audit_log.await.json();
    let entries = audit_log["entries"].as_array_mut().unwrap();
    let waits = |item: &Value| item["entry"]["phase"] == "open" && item["entry"]["tool"] == "k8s_wait";
    for guess in entries.iter_mut().filter(|item| waits(item)) {
        // What the caller itself wrote is in the log; that it was right is not.
        assert!(guess["contents"].take().is_object());
    }
    let audit_log = audit_log.to_string();
    assert!(audit_log.contains("k8s_patch"), "the audit log knows what was done");
    clean("the audit log", &audit_log);
    let log = yard.world.part(0).log();
    assert!(log.len() > 1_000, "there is a log");
    clean("the log", &log);
}
