//! A cluster that is busy, slow, silent or gone, and credentials that change: what the caller is told, and who else
//! feels it. Faults are planted at the border of a sandbox, whatever the other tests run against.

use crate::k8s_yard::{Draft, SECRET, TENANT, Yard, config_map, file_of, loaded, manifest};
use crate::runs_desk::show;
use sandbox::{ClusterFault, ClusterHarm, Sandbox, Seed};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::until;

async fn yard() -> Yard {
    Draft::simulated(Seed::empty()).await.start().await
}

fn fault(method: &str, path: &str, times: u32, harm: ClusterHarm) -> ClusterFault {
    ClusterFault { method: Some(method.to_owned()), path: path.to_owned(), times, harm }
}

/// How many requests of that kind have come since.
fn since(sandbox: &Sandbox, begun: usize, wanted: impl Fn(&str) -> bool) -> usize {
    sandbox.requests()[begun..].iter().filter(|request| wanted(request)).count()
}

fn settings() -> Value {
    json!({ "kind": "cm", "name": "settings" })
}

#[tokio::test(flavor = "multi_thread")]
async fn k1_a_busy_cluster_is_asked_again_as_it_says_and_no_more() {
    let yard = yard().await;
    yard.make(&[config_map("settings", "hello")]).await;
    let sandbox = yard.sandbox();
    let reads = |request: &str| request.starts_with("GET") && request.contains("/configmaps/settings");

    let begun = sandbox.requests().len();
    sandbox.plant(fault("GET", "/configmaps/settings", 1, ClusterHarm::Answer(429, Some(1))));
    assert_eq!(yard.read("k8s_get", settings()).await["object"]["name"], "settings");
    assert_eq!(since(sandbox, begun, reads), 2, "once refused, once answered");

    let begun = sandbox.requests().len();
    sandbox.plant(fault("GET", "/configmaps/settings", 100, ClusterHarm::Answer(429, Some(600))));
    let refusal = yard.refused("k8s_get", settings()).await;
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("target_busy"), &json!(true)), "{refusal}");
    assert_eq!(refusal["retry_after_ms"], 600_000, "{refusal}");
    assert_eq!(since(sandbox, begun, reads), 1, "ten minutes are not waited for, and it is not asked again before");
}

/// Has a map applied while its write meets a fault: how often it was sent, and the run when it is settled.
async fn settled(yard: &Yard, name: &str, harm: ClusterHarm) -> (usize, Value) {
    let (sandbox, path) = (yard.sandbox(), format!("/configmaps/{name}?"));
    let run = yard.ask("k8s_apply", json!({ "manifest": manifest(&[config_map(name, "hello")]) })).await;
    let begun = sandbox.requests().len();
    // The last look before the deed tries it without doing it; the second request is the deed.
    sandbox.plant(fault("PATCH", &path, 1, ClusterHarm::Delay(Duration::ZERO)));
    sandbox.plant(fault("PATCH", &path, 1, harm));
    let told = yard.sign(&run).await;
    assert_eq!(
        (&told["state"], &told["outcome"]["code"]),
        (&json!("outcome_unknown"), &json!("outcome_unknown")),
        "{told:#}"
    );
    assert!(told["outcome"]["message"].as_str().unwrap().contains("may have happened"), "{told:#}");
    let told = until("a look at the target to settle it", async || {
        Some(show(&yard.ana, &run).await).filter(|told| told["state"] != "outcome_unknown")
    });
    let told = told.await;
    let sent = |request: &str| request.starts_with("PATCH") && request.contains(&path) && !request.contains("dryRun");
    (since(sandbox, begun, sent), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn k2_a_write_whose_answer_is_lost_is_sent_once_and_settled_by_looking() {
    // That nothing is there proves something only when the lease of whoever sent it is over.
    let draft = Draft::simulated(Seed::empty()).await;
    let yard = draft.setting("QM_APPROVALS__LEASE", "3s").setting("QM_APPROVALS__RENEW_EVERY", "1s").start().await;
    let (late, cut, never) = tokio::join!(
        settled(&yard, "late", ClusterHarm::LateAnswer(504)),
        settled(&yard, "cut", ClusterHarm::CutAfter),
        settled(&yard, "never", ClusterHarm::Answer(504, None)),
    );
    for ((sent, told), name) in [(late, "late"), (cut, "cut")] {
        assert_eq!((sent, &told["state"]), (1, &json!("reconciled_succeeded")), "{name}: {told:#}");
        assert_eq!(yard.field("ConfigMap", name, "data.greeting").await, "hello");
        let made = format!("PATCH {}/configmaps/{name}", yard.namespace);
        assert_eq!(yard.sandbox().writes().iter().filter(|write| **write == made).count(), 1);
    }
    let (sent, told) = never;
    assert_eq!((sent, &told["state"]), (1, &json!("reconciled_failed")), "{told:#}");
    assert_eq!(yard.refused("k8s_get", json!({ "kind": "cm", "name": "never" })).await["code"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn k4_a_silent_cluster_ends_its_own_calls_at_their_deadline_and_nobody_elses() {
    let yard = yard().await;
    yard.make(&[config_map("settings", "hello")]).await;
    let other = Sandbox::start(Seed::empty()).await.unwrap();
    yard.world.write_secret("beta", SECRET, &other.kubeconfig());
    yard.world.configure("beta", &file_of("name: main, kubeconfig: { secret: kubeconfig }"));
    let beta = yard.world.tenant("beta").agent();
    let beta = until("the tenant to be known", async || {
        let opened = beta.plain("tools/list", json!({})).await;
        (opened.answer.status == 200).then(|| beta.modern())
    });
    let beta = beta.await;
    yard.sandbox().plant(ClusterFault {
        method: None,
        path: String::new(),
        times: u32::MAX,
        harm: ClusterHarm::Silence,
    });

    let patient = json!({ "kind": "cm", "name": "settings", "until": "data.greeting=bye", "timeout_s": 3 });
    let silent = futures_util::future::join_all((0..8).map(|_| yard.call("k8s_wait", patient.clone())));
    tokio::pin!(silent);
    let mut answered = 0;
    let ended = loop {
        tokio::select! {
            ended = &mut silent => break ended,
            told = beta.call("k8s_get", json!({ "kind": "namespaces" })) => {
                assert_eq!(told.code(), "ok", "a neighbour is served as ever: {}", told.answer.text());
                answered += 1;
            }
        }
    };
    assert!(answered > 2, "the neighbour was served meanwhile: {answered}");
    for told in ended {
        assert!(["deadline", "target_unreachable"].contains(&told.code()), "{}", told.answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k5_a_watch_that_breaks_or_is_forgotten_is_begun_anew() {
    let yard = yard().await;
    yard.make(&[config_map("settings", "hello")]).await;
    let sandbox = yard.sandbox();
    let watches = || sandbox.requests().iter().filter(|request| request.contains("watch=")).count();
    let before = watches();
    sandbox.plant(fault("GET", "watch=", 1, ClusterHarm::Cut));
    sandbox.plant(fault("GET", "watch=", 1, ClusterHarm::Answer(410, None)));
    sandbox.plant(fault("GET", "watch=", 1, ClusterHarm::Answer(429, Some(1))));
    let goal = json!({ "kind": "cm", "name": "settings", "until": "data.greeting=goodbye", "timeout_s": 30 });
    let (waited, ()) = tokio::join!(yard.read("k8s_wait", goal), async {
        until("a watch to hold", async || (watches() >= before + 4).then_some(())).await;
        yard.make(&[config_map("settings", "goodbye")]).await;
    });
    assert_eq!(waited["met"], true, "{waited:#}");
    assert!(waited["relists"].as_u64().unwrap() >= 3, "{waited:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn k8_credentials_that_change_are_used_without_a_restart() {
    let yard = yard().await;
    yard.make(&[config_map("settings", "hello")]).await;
    let sandbox = yard.sandbox();
    let run = yard.ask("k8s_apply", json!({ "manifest": manifest(&[config_map("settings", "goodbye")]) })).await;

    sandbox.rotate_token();
    let refusal = yard.refused("k8s_get", settings()).await;
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("forbidden"), &json!(false)), "{refusal}");
    assert!(refusal["next"].as_str().unwrap().contains("renew"), "{refusal}");
    yard.world.write_secret(TENANT, SECRET, &sandbox.kubeconfig());
    assert_eq!(
        yard.read("k8s_get", settings()).await["object"]["name"],
        "settings",
        "the next call reads the secret anew"
    );

    sandbox.rotate_token();
    yard.world.write_secret(TENANT, SECRET, &sandbox.kubeconfig());
    let told = yard.sign(&run).await;
    assert_eq!(told["state"], "succeeded", "{told:#}");
    assert_eq!(yard.field("ConfigMap", "settings", "data.greeting").await, "goodbye");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_cannot_be_reached_is_told_as_such() {
    let yard = yard().await;
    let gone = Sandbox::start(Seed::empty()).await.unwrap();
    let kubeconfig = gone.kubeconfig();
    drop(gone);
    yard.world.write_secret("beta", SECRET, &kubeconfig);
    yard.world.configure("beta", &file_of("name: main, kubeconfig: { secret: kubeconfig }"));
    yard.world.configure("gamma", &file_of("name: main, kubeconfig: { secret: nowhere }"));
    for (tenant, code) in [("beta", "target_unreachable"), ("gamma", "toolset_not_configured")] {
        let agent = yard.world.tenant(tenant).agent();
        until("the tenant to be known", async || {
            let told = agent.plain("tools/list", json!({})).await;
            (told.answer.status == 200 && told.message["error"].is_null()).then_some(())
        })
        .await;
        let told = loaded(&agent).await.call("k8s_get", json!({ "kind": "pods" })).await;
        assert_eq!(told.refusal()["code"], code, "{}", told.answer.text());
    }
}
