//! Every request of every tool, looked at: only documented addresses, nothing more asked for than is needed.

use crate::world::World;
use sandbox::jenkins::RecordedRequest;
use serde_json::{Value, json};
use std::time::Duration;

/// A call of every tool from every side.
fn everything() -> Vec<(&'static str, Value)> {
    let main = "shop/checkout/main";
    let mut calls = vec![
        ("jenkins_jobs", json!({})),
        ("jenkins_jobs", json!({ "folder": "shop", "depth": 5 })),
        ("jenkins_jobs", json!({ "folder": "shop/nothing" })),
        ("jenkins_queue", json!({})),
        ("jenkins_queue", json!({ "id": 1 })),
        ("jenkins_whoami", json!({})),
        ("jenkins_build", json!({ "job": main, "artifact": "build/libs/checkout.txt" })),
        ("jenkins_build", json!({ "job": main, "build": "99" })),
        ("jenkins_log", json!({ "job": main, "grep": "Task" })),
        ("jenkins_log", json!({ "job": main, "stage": "6" })),
    ];
    calls.extend(
        ["summary", "parameters", "scm", "builds"].map(|show| ("jenkins_job", json!({ "job": main, "show": show }))),
    );
    let sides = ["summary", "changes", "scm", "stages", "tests", "artifacts", "script"];
    calls.extend(sides.map(|show| ("jenkins_build", json!({ "job": main, "show": show }))));
    calls.extend([
        ("jenkins_trigger", json!({ "job": "shop/deploy", "wait_s": 5 })),
        ("jenkins_trigger", json!({ "job": "platform/load-test", "wait_s": 0 })),
        ("jenkins_trigger", json!({ "job": "smoke", "wait_s": 5 })),
        ("jenkins_stop", json!({ "job": "smoke", "build": 3 })),
        ("jenkins_replay", json!({ "job": main, "build": 1 })),
        ("jenkins_replay", json!({ "job": main, "build": 1, "script": "echo 1" })),
        ("jenkins_update_build", json!({ "job": main, "build": 1, "display_name": "x", "keep": true })),
    ]);
    calls
}

/// The addresses that are documented, with `N` for a number and `J` for the path of a job.
pub(crate) const DOCUMENTED: [&str; 27] = [
    "GET /api/json",
    "GET J/api/json",
    "GET J/config.xml",
    "GET J/N/api/json",
    "GET J/lastBuild/api/json",
    "GET J/N/wfapi/describe",
    "GET J/N/wfapi/artifacts",
    "GET J/N/execution/node/N/wfapi/describe",
    "GET J/N/execution/node/N/wfapi/log",
    "GET J/N/testReport/api/json",
    "GET J/N/artifact/build/libs/checkout.txt",
    "GET J/N/logText/progressiveText",
    "GET J/N/replay/",
    "GET /queue/api/json",
    "GET /queue/item/N/api/json",
    "GET /me/api/json",
    "GET /whoAmI/api/json",
    "GET /computer/api/json",
    "GET /crumbIssuer/api/json",
    "POST J/build",
    "POST J/buildWithParameters",
    "POST J/N/stop",
    "POST /queue/cancelItem",
    "POST J/N/replay/rebuild",
    "POST J/N/replay/run",
    "POST J/N/configSubmit",
    "POST J/N/toggleLogKeep",
];

/// The address with its numbers and its job taken out.
pub(crate) fn shape(request: &RecordedRequest) -> String {
    let mut out = Vec::new();
    let mut rest: Vec<&str> = request.path.split('/').skip(1).collect();
    if rest.first() == Some(&"job") {
        while rest.first() == Some(&"job") {
            rest.drain(..2);
        }
        out.push("J");
    } else {
        out.push("");
    }
    out.extend(rest.iter().map(|segment| if segment.parse::<u64>().is_ok() { "N" } else { segment }));
    format!("{} {}", request.method, out.join("/"))
}

#[tokio::test]
async fn every_request_is_documented_and_asks_for_no_more_than_is_needed() {
    let world = World::shop().await;
    for (tool, args) in everything() {
        if !matches!(tool, "jenkins_trigger" | "jenkins_stop" | "jenkins_replay" | "jenkins_update_build") {
            world.run(tool, args).await.map(drop).unwrap_or_default();
            continue;
        }
        world.preview(tool, args.clone()).await.map(drop).unwrap_or_default();
        let queued = world.run(tool, args).await;
        if let Ok(told) = queued
            && told["state"] == "queued"
        {
            world.run("jenkins_stop", json!({ "queue_id": told["queue_id"] })).await.unwrap();
        }
        world.jenkins.advance(Duration::from_secs(1));
    }
    let requests = world.jenkins.requests();
    let mut seen: Vec<String> = requests.iter().map(shape).collect();
    seen.sort();
    seen.dedup();
    for shape in &seen {
        assert!(DOCUMENTED.contains(&shape.as_str()), "{shape}");
    }
    for wanted in DOCUMENTED.iter().filter(|shape| !shape.contains("crumbIssuer") && !shape.contains("lastBuild")) {
        assert!(seen.iter().any(|shape| shape == wanted), "{wanted} was never asked");
    }
    for request in &requests {
        let line = request.line();
        assert!(request.authorized, "{line}");
        if request.path.ends_with("/api/json") {
            assert!(request.query.starts_with("tree=") && !request.query.contains("depth"), "{line}");
        }
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
        let known = ["accept", "host", "user-agent", "content-type", "content-length"];
        assert!(names.iter().all(|name| known.contains(name)), "{line}: {names:?}");
        assert!(request.method == "POST" || request.body.is_empty(), "{line}");
    }
}
