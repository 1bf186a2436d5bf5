//! Starting builds: judged before anything is sent, sent once, and settled by the run's own mark.

use crate::world::{World, run};
use catalog::ProbeResult;
use domain::{Code, RunId};
use sandbox::jenkins::{JenkinsFault, JenkinsHarm, JenkinsSeed, Permission};
use serde_json::{Value, json};
use std::time::Duration;

const DEPLOY: &str = "shop/deploy";

fn deploy() -> Value {
    json!({ "job": DEPLOY, "parameters": { "ENVIRONMENT": "production", "VERSION": "2.0", "DRY_RUN": true }, "wait_s": 20 })
}

#[tokio::test]
async fn a_build_is_started_with_its_parameters_and_the_mark_of_its_run() {
    let world = World::shop().await;
    let told = world.run("jenkins_trigger", deploy()).await.unwrap();
    assert_eq!((&told["state"], &told["build"]), (&json!("running"), &json!(4)));
    assert_eq!(told["url"], format!("{}/job/shop/job/deploy/4/", world.jenkins.url()));
    assert_eq!(world.jenkins.writes(), ["POST /job/shop/job/deploy/buildWithParameters"]);
    assert_eq!(world.jenkins.effects("QM_RUN_ID", &run().to_string()), 1);
    let build = world.run("jenkins_build", json!({ "job": DEPLOY })).await.unwrap();
    assert_eq!(
        (&build["parameters"]["ENVIRONMENT"], &build["parameters"]["DRY_RUN"]),
        (&json!("production"), &json!("true"))
    );
}

#[tokio::test]
async fn a_job_without_parameters_is_started_by_the_other_address() {
    let world = World::shop().await;
    let told = world.run("jenkins_trigger", json!({ "job": "smoke", "wait_s": 0 })).await.unwrap();
    assert_eq!(told["state"], "queued");
    assert!(told["hint"].as_str().unwrap().contains(&format!("jenkins_queue id={}", told["queue_id"])));
    assert_eq!(world.jenkins.writes(), ["POST /job/smoke/build"]);
    // The second equal one is joined to the first, as long as that waits.
    let again = world.run("jenkins_trigger", json!({ "job": "smoke", "wait_s": 0 })).await.unwrap();
    assert_eq!(again["queue_id"], told["queue_id"]);
    assert!(again["warnings"][0].as_str().unwrap().contains("joined"), "{again}");
}

#[tokio::test]
async fn what_jenkins_would_drop_or_refuse_is_refused_before_anything_is_sent() {
    let world = World::shop().await;
    for (args, code) in [
        (json!({ "job": DEPLOY, "parameters": { "ENVIROMENT": "staging" } }), jenkins::codes::UNKNOWN_PARAMETER),
        (json!({ "job": "smoke", "parameters": { "A": 1 } }), jenkins::codes::UNKNOWN_PARAMETER),
        (json!({ "job": DEPLOY, "parameters": { "ENVIRONMENT": "prod" } }), jenkins::codes::INVALID_CHOICE),
        (json!({ "job": DEPLOY, "parameters": { "DRY_RUN": "yes" } }), jenkins::codes::INVALID_CHOICE),
        (json!({ "job": DEPLOY, "parameters": { "QM_RUN_ID": "mine" } }), Code::InvalidArgument),
        (json!({ "job": "shop/legacy-sync" }), jenkins::codes::JOB_DISABLED),
        (json!({ "job": "shop" }), Code::InvalidArgument),
        (json!({ "job": "shop/checkout" }), Code::InvalidArgument),
        (json!({ "job": "shop/deplyo" }), jenkins::codes::JOB_NOT_FOUND),
    ] {
        let shown = world.preview("jenkins_trigger", args.clone()).await.map(|drawn| drawn.summary).unwrap_err();
        assert_eq!(shown.code, code, "{args}: {shown}");
        assert_eq!(world.run("jenkins_trigger", args.clone()).await.unwrap_err().code, code, "{args}");
    }
    assert_eq!((world.sent("POST"), world.jenkins.writes().len()), (0, 0));
    let failure =
        world.run("jenkins_trigger", json!({ "job": DEPLOY, "parameters": { "ENVIROMENT": "x" } })).await.unwrap_err();
    assert_eq!(failure.did_you_mean, ["ENVIRONMENT"]);
}

#[tokio::test]
async fn a_server_that_was_moved_is_another_one() {
    let (world, moved) = (World::shop().await, World::shop().await);
    let drawn = async |world: &World| world.preview("jenkins_trigger", deploy()).await.unwrap();
    let (one, other) = (drawn(&world).await, drawn(&moved).await);
    assert_ne!(one.fingerprint, other.fingerprint);
    assert_ne!(one.text, other.text, "or a yes to the one would cover the other");
}

#[tokio::test]
async fn an_approver_sees_what_is_given_against_what_is_usual() {
    let world = World::shop().await;
    let drawn = world.preview("jenkins_trigger", deploy()).await.unwrap();
    assert_eq!(drawn.summary, "start a build of shop/deploy");
    for part in [
        "Jenkins server main, as robot",
        "ENVIRONMENT: \"production\" (default \"staging\")",
        "DRY_RUN: \"true\" (default \"false\")",
        "newest builds: #3 SUCCESS, #2 FAILURE, #1 SUCCESS",
    ] {
        assert!(drawn.text.contains(part), "{part} in {}", drawn.text);
    }
    assert_eq!(world.sent("POST"), 0, "a preview sends nothing");
    assert_eq!(world.preview("jenkins_trigger", deploy()).await.unwrap().fingerprint, drawn.fingerprint);
    world.run("jenkins_trigger", deploy()).await.unwrap();
    let again = world.preview("jenkins_trigger", deploy()).await.unwrap();
    assert_eq!(again.fingerprint, drawn.fingerprint, "another build of the job is no drift");
    let checkout = world.preview("jenkins_trigger", json!({ "job": "shop/checkout/main" })).await.unwrap();
    assert!(checkout.text.contains("builds */main of https://git.shop.example/shop/checkout.git"), "{}", checkout.text);
    assert!(checkout.text.contains("nobody can tell"), "{}", checkout.text);
}

#[tokio::test]
async fn a_rehearsal_sends_nothing() {
    let world = World::shop().await;
    for (tool, args) in [
        ("jenkins_trigger", deploy()),
        ("jenkins_replay", json!({ "job": DEPLOY, "build": 3 })),
        ("jenkins_update_build", json!({ "job": DEPLOY, "build": 3, "keep": true })),
        ("jenkins_stop", json!({ "job": DEPLOY, "build": 3 })),
    ] {
        assert_eq!(world.rehearse(tool, args).await.unwrap_err().code, Code::PolicyDenied, "{tool}");
    }
    assert_eq!(world.sent("POST"), 0);
}

#[tokio::test]
async fn a_lost_answer_is_never_sent_again_and_settled_by_the_mark() {
    for harm in [
        JenkinsHarm::CutAfter,
        JenkinsHarm::LateAnswer(502),
        JenkinsHarm::LateAnswer(504),
        JenkinsHarm::LateAnswer(500),
    ] {
        let world = World::shop().await;
        world.jenkins.plant(JenkinsFault::once("buildWithParameters", harm.clone()));
        let failure = world.run("jenkins_trigger", deploy()).await.unwrap_err();
        assert_eq!(failure.code, Code::OutcomeUnknown, "{harm:?}: {failure}");
        assert_eq!(world.sent("POST"), 1, "{harm:?}");
        assert_eq!(world.jenkins.effects("QM_RUN_ID", &run().to_string()), 1);
        let ProbeResult::Done(Some(found)) = world.probe("jenkins_trigger", deploy(), run()).await else {
            panic!("{harm:?}: it happened")
        };
        let found: Value = serde_json::from_str(&found).unwrap();
        assert!(found["queue_id"].is_u64() || found["build"].is_u64(), "{found}");
        world.jenkins.advance(Duration::from_secs(60));
        let ProbeResult::Done(Some(found)) = world.probe("jenkins_trigger", deploy(), run()).await else {
            panic!("{harm:?}: it still happened")
        };
        assert_eq!(serde_json::from_str::<Value>(&found).unwrap()["build"], 4);
        assert_eq!(world.sent("POST"), 1, "a probe sends nothing");
    }
}

#[tokio::test]
async fn what_never_arrived_is_said_not_to_have_happened_only_after_a_while() {
    let world = World::shop().await;
    world.jenkins.plant(JenkinsFault::once("buildWithParameters", JenkinsHarm::Cut));
    assert_eq!(world.run("jenkins_trigger", deploy()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!(world.probe("jenkins_trigger", deploy(), run()).await, ProbeResult::Unknown);
    world.wait(Duration::from_secs(59));
    assert_eq!(world.probe("jenkins_trigger", deploy(), run()).await, ProbeResult::Unknown);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.probe("jenkins_trigger", deploy(), run()).await, ProbeResult::NotDone);
    assert_eq!((world.sent("POST"), world.jenkins.effects("QM_RUN_ID", &run().to_string())), (1, 0));
}

#[tokio::test]
async fn a_job_that_does_not_declare_the_mark_cannot_be_probed() {
    let world = World::shop().await;
    let args = json!({ "job": "smoke" });
    world.jenkins.plant(JenkinsFault::once("/job/smoke/build", JenkinsHarm::CutAfter));
    assert_eq!(world.run("jenkins_trigger", args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    for _ in 0..3 {
        assert_eq!(world.probe("jenkins_trigger", args.clone(), run()).await, ProbeResult::Unknown);
        world.wait(Duration::from_secs(120));
    }
    let other = RunId::from_random([9; 16]);
    assert_eq!(
        world.probe("jenkins_trigger", deploy(), other).await,
        ProbeResult::Unknown,
        "and nobody takes another's for his"
    );
}

#[tokio::test]
async fn silence_ends_at_our_deadline_and_nothing_is_repeated() {
    let world = World::shop().await;
    world.jenkins.plant(JenkinsFault::once("buildWithParameters", JenkinsHarm::SilenceAfter));
    let failure = world.run("jenkins_trigger", deploy()).await.unwrap_err();
    assert_eq!((failure.code, world.sent("POST")), (Code::OutcomeUnknown, 1));
    assert!(matches!(world.probe("jenkins_trigger", deploy(), run()).await, ProbeResult::Done(Some(_))));
}

#[tokio::test]
async fn what_is_certain_not_to_have_begun_is_no_unknown() {
    let world = World::of(JenkinsSeed::shop().without(Permission::Build)).await;
    let failure = world.run("jenkins_trigger", deploy()).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN);
    assert!(failure.details.unwrap()["permission"].as_str().unwrap().contains("Item.Build"));
    let world = World::shop().await;
    world.jenkins.plant(JenkinsFault::once("buildWithParameters", JenkinsHarm::Answer(503, Some(7))));
    let failure = world.run("jenkins_trigger", deploy()).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.retry_after_ms, world.sent("POST")),
        (target::codes::TARGET_BUSY, Some(7_000), 1)
    );
}

#[tokio::test]
async fn an_answer_without_an_item_or_with_somebody_elses_is_not_believed() {
    let world = World::shop().await;
    for to in ["https://evil.example/queue/item/1/", "/", "https://evil.example/login"] {
        world.jenkins.plant(JenkinsFault::once("buildWithParameters", JenkinsHarm::Redirect(to.to_owned())));
        let before = world.jenkins.requests().len();
        let failure = world.run("jenkins_trigger", deploy()).await.unwrap_err();
        assert!(matches!(failure.code, Code::OutcomeUnknown | target::codes::CREDENTIALS_REFUSED), "{to}: {failure}");
        let after: Vec<String> =
            world.jenkins.requests()[before..].iter().map(|request| request.path.clone()).collect();
        assert!(after.iter().all(|path| !path.contains("item")), "{after:?}");
    }
}

#[tokio::test]
async fn a_build_that_is_cancelled_while_it_waits_is_told_as_such() {
    let world = World::shop().await;
    let waiting = world.run("jenkins_trigger", json!({ "job": "platform/load-test", "wait_s": 0 })).await.unwrap();
    let (waited, cancelled) = tokio::join!(
        world.run("jenkins_trigger", json!({ "job": "platform/load-test", "wait_s": 20 })),
        world.run("jenkins_stop", json!({ "queue_id": waiting["queue_id"] })),
    );
    assert_eq!(cancelled.unwrap()["stopped"], true);
    assert!(matches!(waited.unwrap()["state"].as_str(), Some("cancelled" | "queued")));
}
