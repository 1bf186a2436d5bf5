//! Stopping builds and cancelling what waits.

use crate::world::{World, run};
use catalog::ProbeResult;
use domain::Code;
use sandbox::jenkins::{BuildScript, JenkinsFault, JenkinsHarm, JenkinsSeed, Permission, SimulatedJob, StopResistance};
use serde_json::json;
use std::time::Duration;

/// A server on which a build of each of two jobs runs.
async fn busy(stubborn: StopResistance) -> World {
    let long = BuildScript::new().stage("Work", Duration::from_secs(3_600), &["at it"]).stubborn(stubborn);
    let seed = JenkinsSeed::shop()
        .job(SimulatedJob::pipeline("long").plan(long.clone()).quiet(Duration::ZERO))
        .job(SimulatedJob::freestyle("plain").plan(long).quiet(Duration::ZERO));
    let world = World::of(seed).await;
    for job in ["long", "plain"] {
        let started = world.run("jenkins_trigger", json!({ "job": job, "wait_s": 20 })).await.unwrap();
        assert_eq!(started["state"], "running");
    }
    world
}

#[tokio::test]
async fn a_build_is_stopped_and_looked_at_until_it_is_over() {
    let world = busy(StopResistance::Never).await;
    let stopped = world.run("jenkins_stop", json!({ "job": "long", "build": 1 })).await.unwrap();
    assert_eq!(
        (&stopped["stopped"], &stopped["result"], &stopped["running"]),
        (&json!(true), &json!("ABORTED"), &json!(false))
    );
    assert_eq!(world.jenkins.writes().last().unwrap(), "POST /job/long/1/stop");
    let again = world.run("jenkins_stop", json!({ "job": "long", "build": 1 })).await.unwrap_err();
    assert_eq!(again.code, target::codes::ALREADY_FINISHED);
    let plain = world.run("jenkins_stop", json!({ "job": "plain", "build": 1 })).await.unwrap();
    assert_eq!(plain["result"], "ABORTED");
}

#[tokio::test]
async fn a_stubborn_pipeline_is_stopped_harder() {
    let world = busy(StopResistance::UntilKill).await;
    let told = world.run("jenkins_stop", json!({ "job": "long", "build": 1, "mode": "term" })).await.unwrap();
    assert_eq!((&told["stopped"], &told["running"]), (&json!(false), &json!(true)));
    assert!(told["hint"].as_str().unwrap().contains("kill"));
    let drawn = world.preview("jenkins_stop", json!({ "job": "long", "build": 1, "mode": "kill" })).await.unwrap();
    assert_eq!(drawn.warnings, ["No cleanup steps are run."]);
    let told = world.run("jenkins_stop", json!({ "job": "long", "build": 1, "mode": "kill" })).await.unwrap();
    assert_eq!(told["stopped"], true);
    let failure = world.run("jenkins_stop", json!({ "job": "plain", "build": 1, "mode": "kill" })).await.unwrap_err();
    assert_eq!(failure.code, jenkins::codes::NOT_A_PIPELINE);
}

#[tokio::test]
async fn an_approver_sees_what_runs_and_since_when() {
    let world = busy(StopResistance::Never).await;
    let drawn = world.preview("jenkins_stop", json!({ "job": "long", "build": 1 })).await.unwrap();
    for part in ["build 1 of long", "Started by user robot", "in progress: Work"] {
        assert!(drawn.text.contains(part), "{part} in {}", drawn.text);
    }
    world.jenkins.advance(Duration::from_secs(5));
    let later = world.preview("jenkins_stop", json!({ "job": "long", "build": 1 })).await.unwrap();
    assert_eq!(later.fingerprint, drawn.fingerprint, "time alone changes nothing about a yes");
    let over = world.preview("jenkins_stop", json!({ "job": "smoke", "build": 1 })).await.unwrap_err();
    assert_eq!(over.code, target::codes::ALREADY_FINISHED);
}

#[tokio::test]
async fn an_item_is_cancelled_once() {
    let world = World::shop().await;
    let waiting = world.run("jenkins_trigger", json!({ "job": "platform/load-test", "wait_s": 0 })).await.unwrap();
    let args = json!({ "queue_id": waiting["queue_id"] });
    let drawn = world.preview("jenkins_stop", args.clone()).await.unwrap();
    assert!(drawn.summary.contains("platform/load-test"));
    assert_eq!(world.run("jenkins_stop", args.clone()).await.unwrap()["stopped"], true);
    assert_eq!(world.jenkins.writes().last().unwrap(), "POST /queue/cancelItem");
    assert_eq!(world.run("jenkins_stop", args).await.unwrap_err().code, jenkins::codes::QUEUE_ITEM_GONE);
    let started = world.run("jenkins_trigger", json!({ "job": "smoke", "wait_s": 20 })).await.unwrap();
    let failure = world.run("jenkins_stop", json!({ "queue_id": started["queue_id"] })).await.unwrap_err();
    assert_eq!(failure.code, jenkins::codes::QUEUE_ITEM_GONE);
    assert!(failure.next.unwrap().contains("jenkins_stop job=smoke build=3"));
}

#[tokio::test]
async fn what_may_not_be_stopped_is_not() {
    let world = World::of(JenkinsSeed::shop().without(Permission::Cancel)).await;
    let waiting = world.run("jenkins_trigger", json!({ "job": "platform/load-test", "wait_s": 0 })).await.unwrap();
    let failure = world.run("jenkins_stop", json!({ "queue_id": waiting["queue_id"] })).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN);
    let running = world.run("jenkins_trigger", json!({ "job": "smoke", "wait_s": 20 })).await.unwrap();
    let failure = world.run("jenkins_stop", json!({ "job": "smoke", "build": running["build"] })).await.unwrap_err();
    assert!(matches!(failure.code, target::codes::FORBIDDEN | target::codes::ALREADY_FINISHED), "{failure}");
}

#[tokio::test]
async fn only_one_thing_is_stopped() {
    let world = World::shop().await;
    for args in [
        json!({}),
        json!({ "job": "smoke" }),
        json!({ "build": 1 }),
        json!({ "job": "smoke", "build": 1, "queue_id": 1 }),
        json!({ "queue_id": 1, "mode": "kill" }),
    ] {
        assert_eq!(world.run("jenkins_stop", args.clone()).await.unwrap_err().code, Code::InvalidArgument, "{args}");
    }
    assert_eq!(world.jenkins.requests(), []);
}

#[tokio::test]
async fn a_lost_answer_is_settled_by_the_build_itself() {
    let world = busy(StopResistance::Never).await;
    let args = json!({ "job": "long", "build": 1 });
    world.jenkins.plant(JenkinsFault::once("/stop", JenkinsHarm::CutAfter));
    let before = world.sent("POST");
    assert_eq!(world.run("jenkins_stop", args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!(world.sent("POST"), before + 1);
    assert!(matches!(world.probe("jenkins_stop", args, run()).await, ProbeResult::Done(Some(_))));

    let args = json!({ "job": "plain", "build": 1 });
    world.jenkins.plant(JenkinsFault::once("/stop", JenkinsHarm::Cut));
    assert_eq!(world.run("jenkins_stop", args.clone()).await.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!(world.probe("jenkins_stop", args.clone(), run()).await, ProbeResult::Unknown);
    world.wait(Duration::from_secs(60));
    assert_eq!(world.probe("jenkins_stop", args, run()).await, ProbeResult::NotDone);
}
