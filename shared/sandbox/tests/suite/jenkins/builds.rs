//! Builds: what they say of themselves while they run and afterwards.

use std::time::Duration;

use sandbox::jenkins::{BuildScript, JenkinsSeed, SimulatedJob};
use serde_json::json;

use super::support::Ci;

const MAIN: &str = "/job/shop/job/checkout/job/main";

#[tokio::test]
async fn a_build_tells_cause_commit_changes_and_test_counts() {
    let ci = Ci::shop().await;

    let build = ci.get(&format!("{MAIN}/lastBuild/api/json")).await;

    assert_eq!(
        (&build["number"], &build["result"], &build["building"]),
        (&json!(3), &json!("UNSTABLE"), &json!(false))
    );
    let action =
        |class: &str| build["actions"].as_array().unwrap().iter().find(|action| action["_class"] == class).unwrap();
    assert_eq!(action("hudson.model.CauseAction")["causes"][0]["shortDescription"], "Started by an SCM change");
    let revision = &action("hudson.plugins.git.util.BuildData")["lastBuiltRevision"];
    assert_eq!(revision["branch"][0]["name"], "refs/remotes/origin/main");
    assert_eq!(revision["SHA1"].as_str().unwrap().len(), 40);
    assert_eq!(action("hudson.tasks.junit.TestResultAction")["failCount"], 1);
    assert_eq!(build["changeSets"][0]["items"][0]["msg"], "Round refunds to the cent");
    assert_eq!(build["artifacts"][0]["relativePath"], "build/libs/checkout.txt");
}

#[tokio::test]
async fn a_test_report_is_there_only_if_tests_ran() {
    let ci = Ci::shop().await;

    let report = ci.get(&format!("{MAIN}/3/testReport/api/json?tree=failCount,suites[cases[name,status]]")).await;

    assert_eq!(report["failCount"], 1);
    assert_eq!(report["suites"][1]["cases"][0], json!({ "name": "roundsToTheCent", "status": "REGRESSION" }));
    assert_eq!(ci.ask("GET", "/job/smoke/2/testReport/api/json", "", &[]).await.status, 404);
}

#[tokio::test]
async fn a_log_is_read_on_from_where_it_stood() {
    let ci = Ci::shop().await;
    ci.post("/job/smoke/build?delay=0sec", "").await;
    let log = |start: usize| format!("/job/smoke/3/logText/progressiveText?start={start}");

    let first = ci.ask("GET", &log(0), "", &[]).await;
    ci.advance(60);
    let size: usize = first.header("x-text-size").unwrap().parse().unwrap();
    let second = ci.ask("GET", &log(size), "", &[]).await;
    let whole = ci.ask("GET", "/job/smoke/3/consoleText", "", &[]).await;
    let beyond = ci.ask("GET", &log(1_000_000), "", &[]).await;

    assert_eq!((first.header("x-more-data"), second.header("x-more-data")), (Some("true"), None));
    assert!(first.text().starts_with("Started by user robot\r\n"));
    assert!(second.text().ends_with("Finished: SUCCESS\r\n"));
    assert_eq!((first.text() + &second.text()).replace("\r\n", "\n"), whole.text());
    assert_eq!(beyond.text().replace("\r\n", "\n"), whole.text());
    assert!(size > first.text().len(), "the notes in it count and are not shown");
}

#[tokio::test]
async fn stages_go_by_and_only_their_steps_have_a_log() {
    let ci = Ci::shop().await;
    ci.post("/job/shop/job/deploy/buildWithParameters?delay=0sec", "").await;
    let describe = "/job/shop/job/deploy/4/wfapi/describe";

    ci.advance(3);
    let midway = ci.get(describe).await;
    ci.advance(60);
    let ended = ci.get(describe).await;

    assert_eq!(midway["status"], "IN_PROGRESS");
    let states: Vec<_> = midway["stages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stage| (stage["name"].as_str().unwrap(), stage["status"].as_str().unwrap()))
        .collect();
    assert_eq!(states, [("Render", "SUCCESS"), ("Roll out", "IN_PROGRESS")]);
    assert_eq!((&ended["status"], &ended["durationMillis"]), (&json!("SUCCESS"), &json!(8_000)));
    let stage = ended["stages"][1]["_links"]["self"]["href"].as_str().unwrap();
    let step = ci.get(stage).await["stageFlowNodes"][0]["_links"]["log"]["href"].as_str().unwrap().to_owned();
    let of_stage = ci.get(&stage.replace("describe", "log")).await;
    let of_step = ci.get(&step).await;
    assert_eq!((&of_stage["length"], of_stage.get("text")), (&json!(0), None));
    assert!(of_step["text"].as_str().unwrap().contains("deployment &quot;cart&quot; successfully rolled out"));
}

#[tokio::test]
async fn a_long_step_log_gives_its_end() {
    let lines: Vec<String> = (0..2_000).map(|number| format!("line {number}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let plan = BuildScript::new().stage("Long", Duration::from_secs(1), &lines);
    let ci = Ci::of(JenkinsSeed::empty().job(SimulatedJob::pipeline("long").past(Duration::from_secs(60), plan))).await;

    let log = ci.get("/job/long/1/execution/node/7/wfapi/log").await;

    assert_eq!((&log["hasMore"], &log["length"]), (&json!(true), &json!(10_240)));
    assert!(log["text"].as_str().unwrap().ends_with("line 1999\n"));
}

#[tokio::test]
async fn artifacts_are_served_and_sized() {
    let ci = Ci::shop().await;

    let file = ci.ask("GET", &format!("{MAIN}/3/artifact/build/libs/checkout.txt"), "", &[]).await;
    let sizes = ci.get(&format!("{MAIN}/3/wfapi/artifacts")).await;

    assert_eq!((file.header("content-type"), file.text().as_str()), (Some("text/plain"), "checkout 1.8.2\n"));
    assert_eq!((&sizes[0]["path"], &sizes[0]["size"]), (&json!("build/libs/checkout.txt"), &json!(15)));
    assert_eq!(ci.ask("GET", &format!("{MAIN}/3/artifact/../../config.xml"), "", &[]).await.status, 404);
}

#[tokio::test]
async fn without_its_plugins_a_server_has_no_stages_replay_and_reports() {
    let ci = Ci::of(JenkinsSeed::shop().without_plugins()).await;

    for path in ["wfapi/describe", "testReport/api/json", "replay/", "execution/node/6/wfapi/log"] {
        assert_eq!(ci.ask("GET", &format!("{MAIN}/3/{path}"), "", &[]).await.status, 404, "{path}");
    }
    assert_eq!(ci.post(&format!("{MAIN}/3/replay/rebuild"), "").await.status, 404);
}
