//! The console: from its end, by windows, by stage, and never with a secret in it.

use crate::world::World;
use domain::Code;
use sandbox::jenkins::{BuildScript, JenkinsSeed, SimulatedJob};
use serde_json::{Value, json};
use std::time::Duration;

async fn with_log(lines: &[String]) -> World {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let plan = BuildScript::new().stage("Work", Duration::from_secs(5), &lines);
    let job = SimulatedJob::pipeline("long").past(Duration::from_secs(900), plan);
    World::of(JenkinsSeed::empty().job(job)).await
}

/// Every page of a log, oldest first.
async fn pages(world: &World, mut args: Value) -> Vec<String> {
    let mut pages = Vec::new();
    loop {
        let page = world.run("jenkins_log", args.clone()).await.unwrap();
        assert_eq!((&page["number"], &page["running"]), (&json!(1), &json!(false)));
        let text = page["text"].as_str().unwrap();
        assert_eq!(json!(text.lines().count()), page["lines"]);
        pages.push(text.to_owned());
        match page["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    pages.reverse();
    pages
}

#[tokio::test]
async fn a_log_is_read_from_its_end_and_older_lines_follow() {
    // Short of one window, and longer than two.
    for many in [3_000, 16_000] {
        let lines: Vec<String> = (0..many).map(|n| format!("line {n:05} {}", "x".repeat(60))).collect();
        let world = with_log(&lines).await;
        let pages = pages(&world, json!({ "job": "long", "tail": 2_000 })).await;
        assert!(pages.last().unwrap().ends_with("Finished: SUCCESS\n"), "the newest come first");
        let all = pages.concat();
        let seen: Vec<&str> = all.lines().filter(|line| line.starts_with("line ")).collect();
        assert!(seen == lines, "no line is lost or told twice");
        assert!(!all.contains("ha:////"), "nor is a hidden note told");
    }
}

#[tokio::test]
async fn a_start_beyond_the_end_is_never_sent() {
    let world = with_log(&["only".to_owned()]).await;
    world.run("jenkins_log", json!({ "job": "long" })).await.unwrap();
    let starts: Vec<u64> = world
        .jenkins
        .requests()
        .iter()
        .filter_map(|request| request.query.strip_prefix("start=")?.parse().ok())
        .collect();
    assert!(!starts.is_empty() && starts.iter().all(|start| *start == 0), "{starts:?}");
}

#[tokio::test]
async fn a_search_goes_through_the_log_and_sees_no_secret() {
    let mut lines: Vec<String> = (0..2_000).map(|n| format!("step {n}")).collect();
    lines[700] = "ERROR: it broke".to_owned();
    lines[800] = "export TOKEN token: abcdefgh12345".to_owned();
    let world = with_log(&lines).await;
    let found = world.run("jenkins_log", json!({ "job": "long", "grep": "^ERROR" })).await.unwrap();
    assert_eq!((&found["text"], &found["lines"]), (&json!("ERROR: it broke\n"), &json!(1)));
    let none = world.run("jenkins_log", json!({ "job": "long", "grep": "abcdefgh" })).await.unwrap();
    assert_eq!(none["lines"], 0);
    let failure = world.run("jenkins_log", json!({ "job": "long", "grep": "(" })).await.unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument);
}

#[tokio::test]
async fn a_key_is_gone_whole_wherever_a_page_begins() {
    let mut lines: Vec<String> = (0..300).map(|n| format!("before {n}")).collect();
    lines.push("-----BEGIN PRIVATE KEY-----".to_owned());
    lines.extend((0..40).map(|n| format!("MIIEsecret{n:02}AAAA")));
    lines.push("-----END PRIVATE KEY-----".to_owned());
    lines.extend((0..30).map(|n| format!("after {n}")));
    let world = with_log(&lines).await;
    // Some of these pages begin in the middle of the key.
    for tail in [20, 45, 60, 75, 100] {
        let mut args = json!({ "job": "long", "tail": tail });
        loop {
            let page = world.run("jenkins_log", args.clone()).await.unwrap();
            assert!(!page["text"].as_str().unwrap().contains("MIIE"), "{page}");
            match page["next_cursor"].as_str() {
                Some(cursor) => args["cursor"] = json!(cursor),
                None => break,
            }
        }
    }
}

#[tokio::test]
async fn a_stage_has_a_log_of_its_own() {
    let world = World::shop().await;
    let job = "shop/checkout/main";
    let stages = world.run("jenkins_build", json!({ "job": job, "show": "stages" })).await.unwrap();
    let id = stages["stages"][1]["id"].clone();
    let log = world.run("jenkins_log", json!({ "job": job, "stage": id })).await.unwrap();
    let text = log["text"].as_str().unwrap();
    assert!(text.contains("> Task :compileJava") && !text.contains("Cloning"), "{text}");
    let failure = world.run("jenkins_log", json!({ "job": job, "stage": "999" })).await.unwrap_err();
    assert_eq!(failure.code, Code::NotFound);
    let failure = world.run("jenkins_log", json!({ "job": "smoke", "stage": "6" })).await.unwrap_err();
    assert_eq!(failure.code, jenkins::codes::NOT_A_PIPELINE);
}

#[tokio::test]
async fn a_running_build_says_so() {
    let world = World::of(JenkinsSeed::shop().still()).await;
    world.run("jenkins_trigger", json!({ "job": "smoke", "wait_s": 0 })).await.unwrap();
    world.jenkins.advance(Duration::from_secs(2));
    let log = world.run("jenkins_log", json!({ "job": "smoke" })).await.unwrap();
    assert_eq!((&log["number"], &log["running"]), (&json!(3), &json!(true)));
}
