//! Running a pipeline again.

use crate::world::{World, run};
use catalog::ProbeResult;
use domain::Code;
use sandbox::jenkins::{JenkinsFault, JenkinsHarm, JenkinsSeed, Permission};
use serde_json::{Value, json};
use std::time::Duration;

const JOB: &str = "shop/deploy";

#[tokio::test]
async fn a_build_runs_again_as_it_was() {
    let world = World::shop().await;
    let drawn = world.preview("jenkins_replay", json!({ "job": JOB, "build": 2 })).await.unwrap();
    assert_eq!((drawn.summary.as_str(), drawn.warnings.len()), ("run build 2 of shop/deploy again", 0));
    assert!(drawn.text.contains("ENVIRONMENT: \"staging\" (as it was)"), "{}", drawn.text);
    let told = world.run("jenkins_replay", json!({ "job": JOB, "build": 2 })).await.unwrap();
    assert_eq!((&told["build"], &told["replay_of"]), (&json!(4), &json!(2)));
    assert_eq!(world.jenkins.writes(), ["POST /job/shop/job/deploy/2/replay/rebuild"]);
}

#[tokio::test]
async fn an_edited_script_is_shown_as_a_difference_and_run() {
    let world = World::shop().await;
    let script = world.run("jenkins_build", json!({ "job": JOB, "build": "2", "show": "script" })).await.unwrap();
    let script = script["text"].as_str().unwrap().replace("&& deploy/verify", "&& deploy/verify --slow");
    let args = json!({ "job": JOB, "build": 2, "script": script });
    let drawn = world.preview("jenkins_replay", args.clone()).await.unwrap();
    assert!(drawn.text.contains("+    stage('Roll out')") && drawn.text.contains("--slow"), "{}", drawn.text);
    assert!(!drawn.text.contains("+    stage('Render')"), "only what differs: {}", drawn.text);
    assert_eq!(drawn.warnings, ["An edited script is new code that runs on the CI server."]);
    let told = world.run("jenkins_replay", args).await.unwrap();
    let ran = world
        .run("jenkins_build", json!({ "job": JOB, "build": told["build"].to_string(), "show": "script" }))
        .await
        .unwrap();
    assert_eq!(ran["text"], script);
    let other = json!({ "job": JOB, "build": 2, "script": format!("{script}// x\n") });
    assert_ne!(world.preview("jenkins_replay", other).await.unwrap().fingerprint, drawn.fingerprint);
}

#[tokio::test]
async fn what_jenkins_would_refuse_is_refused_before() {
    let world = World::shop().await;
    for (args, code) in [
        (json!({ "job": "smoke", "build": 1 }), jenkins::codes::NOT_A_PIPELINE),
        (json!({ "job": "shop/publish", "build": 1 }), jenkins::codes::PASSWORD_PARAMETERS),
        (json!({ "job": JOB, "build": 99 }), jenkins::codes::BUILD_NOT_FOUND),
    ] {
        assert_eq!(world.preview("jenkins_replay", args.clone()).await.map(drop).unwrap_err().code, code, "{args}");
        assert_eq!(world.run("jenkins_replay", args.clone()).await.unwrap_err().code, code, "{args}");
    }
    assert_eq!(world.sent("POST"), 0);
    let closed = World::of(JenkinsSeed::shop().without(Permission::Replay)).await;
    let edited = json!({ "job": JOB, "build": 2, "script": "x" });
    assert_eq!(closed.preview("jenkins_replay", edited).await.map(drop).unwrap_err().code, target::codes::FORBIDDEN);
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_the_cause_of_the_new_build() {
    let world = World::shop().await;
    let args = json!({ "job": JOB, "build": 2 });
    world.jenkins.plant(JenkinsFault::once("replay/rebuild", JenkinsHarm::CutAfter));
    assert_eq!(world.run("jenkins_replay", args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!(world.sent("POST"), 1);
    world.jenkins.advance(Duration::from_secs(5));
    let ProbeResult::Done(Some(found)) = world.probe("jenkins_replay", args, run()).await else {
        panic!("it happened")
    };
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!((&found["build"], &found["replay_of"]), (&json!(4), &json!(2)));

    let other = json!({ "job": JOB, "build": 1 });
    world.jenkins.plant(JenkinsFault::once("replay/rebuild", JenkinsHarm::Cut));
    assert_eq!(world.run("jenkins_replay", other.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    for _ in 0..3 {
        assert_eq!(
            world.probe("jenkins_replay", other.clone(), run()).await,
            ProbeResult::Unknown,
            "never said not to be so"
        );
        world.wait(Duration::from_secs(120));
    }
}
