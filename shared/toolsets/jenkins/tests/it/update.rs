//! Labelling builds.

use crate::world::{World, run};
use catalog::ProbeResult;
use domain::Code;
use sandbox::jenkins::{JenkinsFault, JenkinsHarm, JenkinsSeed, Permission};
use serde_json::json;
use std::time::Duration;

const JOB: &str = "shop/deploy";

#[tokio::test]
async fn what_is_not_given_stays_as_it_is() {
    let world = World::shop().await;
    let both = json!({ "job": JOB, "build": 3, "display_name": "release 2", "description": "good\nvery good" });
    let told = world.run("jenkins_update_build", both).await.unwrap();
    assert_eq!(
        (&told["display_name"], &told["description"], &told["keep"]),
        (&json!("release 2"), &json!("good\nvery good"), &json!(false))
    );
    let name = json!({ "job": JOB, "build": 3, "display_name": "release 3" });
    let told = world.run("jenkins_update_build", name).await.unwrap();
    assert_eq!((&told["display_name"], &told["description"]), (&json!("release 3"), &json!("good\nvery good")));
    let keep = json!({ "job": JOB, "build": 3, "keep": true });
    assert_eq!(world.run("jenkins_update_build", keep.clone()).await.unwrap()["keep"], true);
    let before = world.jenkins.writes().len();
    assert_eq!(
        world.run("jenkins_update_build", keep).await.unwrap()["keep"],
        true,
        "once more is not the other way round"
    );
    assert_eq!(world.jenkins.writes().len(), before);
    let text = json!({ "job": JOB, "build": 2, "description": "only this" });
    let told = world.run("jenkins_update_build", text).await.unwrap();
    assert_eq!((&told["display_name"], &told["description"]), (&json!("#2"), &json!("only this")));
}

#[tokio::test]
async fn a_secret_in_a_description_is_kept_where_it_is_and_shown_to_whoever_decides() {
    let world = World::shop().await;
    let secret = "password = correcthorsebattery";
    let first = json!({ "job": JOB, "build": 3, "description": secret });
    let drawn = world.preview("jenkins_update_build", first.clone()).await.unwrap();
    assert!(drawn.text.contains("→ \"password = correcthorsebattery\"") && drawn.arguments.is_none(), "{drawn:?}");
    let told = world.run("jenkins_update_build", first).await.unwrap();
    assert!(!told.to_string().contains("correcthorse"), "{told}");
    world.run("jenkins_update_build", json!({ "job": JOB, "build": 3, "display_name": "x" })).await.unwrap();
    let sent = world.jenkins.requests();
    let last = sent.iter().rev().find(|request| request.method == "POST").unwrap();
    assert!(last.body.contains("correcthorsebattery"), "what is kept is not replaced by its mask");
}

#[tokio::test]
async fn an_approver_sees_old_and_new() {
    let world = World::shop().await;
    let args = json!({ "job": JOB, "build": 3, "display_name": "release", "keep": true });
    let drawn = world.preview("jenkins_update_build", args).await.unwrap();
    assert!(
        drawn.text.contains("name: \"#3\" → \"release\"") && drawn.text.contains("kept for ever: false → true"),
        "{}",
        drawn.text
    );
    assert_eq!(world.sent("POST"), 0);
    let failure = world.preview("jenkins_update_build", json!({ "job": JOB, "build": 3 })).await.map(drop).unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument);
    let failure =
        world.run("jenkins_update_build", json!({ "job": JOB, "build": 99, "keep": true })).await.unwrap_err();
    assert_eq!(failure.code, jenkins::codes::BUILD_NOT_FOUND);
    let closed = World::of(JenkinsSeed::shop().without(Permission::Update)).await;
    let failure =
        closed.run("jenkins_update_build", json!({ "job": JOB, "build": 3, "keep": true })).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN);
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_what_the_build_says() {
    let world = World::shop().await;
    let args = json!({ "job": JOB, "build": 3, "display_name": "release", "keep": true });
    world.jenkins.plant(JenkinsFault::once("toggleLogKeep", JenkinsHarm::CutAfter));
    assert_eq!(world.run("jenkins_update_build", args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert!(matches!(world.probe("jenkins_update_build", args, run()).await, ProbeResult::Done(Some(_))));
    let args = json!({ "job": JOB, "build": 2, "display_name": "other" });
    world.jenkins.plant(JenkinsFault::once("configSubmit", JenkinsHarm::Cut));
    assert_eq!(world.run("jenkins_update_build", args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!(world.probe("jenkins_update_build", args.clone(), run()).await, ProbeResult::Unknown);
    world.wait(Duration::from_secs(60));
    assert_eq!(world.probe("jenkins_update_build", args, run()).await, ProbeResult::NotDone);
}
