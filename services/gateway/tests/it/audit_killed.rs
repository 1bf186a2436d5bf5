//! A replica that is killed by SIGKILL under load: whatever call was answered is in the audit log.

use crate::audit::quartermaster;
use crate::here::processes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use testkit::{Plan, Process, World, until};

/// How many callers call at once.
const CALLERS: usize = 24;
/// How many answers there are before the replica is killed, each time.
const ANSWERS: usize = 200;

/// Calls the first replica until it does not answer any more. Each call has a trace of its own, by which it is found.
async fn call_until_killed(world: &World<Process>, next: &AtomicUsize, answered: &Mutex<Vec<String>>) {
    let agent = world.tenant("acme").agent();
    let client = agent.modern();
    loop {
        let trace = format!("{:032x}", next.fetch_add(1, Ordering::Relaxed) + 1);
        let request = client.prepare("tools/call", json!({ "name": "memory_list", "arguments": {} }));
        let request = request.with("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
        let Some(answer) = request.try_send(world.address(0)).await else { return };
        // Half an answer is none.
        let Ok(told) = serde_json::from_str::<Value>(&answer.text()) else { return };
        assert_eq!((answer.status, told["result"]["isError"].as_bool().unwrap_or_default()), (200, false), "{told}");
        answered.lock().unwrap().push(trace);
    }
}

/// The traces of the entries of a phase, as another replica exports them.
fn traces<'a>(export: &'a str, phase: &'a str) -> BTreeSet<String> {
    let entries = export.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_phase = entries.filter(|line| line["entry"]["phase"] == phase);
    of_phase.filter_map(|line| line["entry"]["trace"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_killed_under_load_loses_no_record_of_a_call_that_was_answered() {
    let limits = "limits: { calls_per_minute: 1000000, calls_in_flight: 1000 }";
    let mut world = Plan::redis(2).tenant("acme", limits).start(processes()).await;
    let (next, answered) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    for round in 1..=3 {
        let calling = futures_util::future::join_all((0..CALLERS).map(|_| call_until_killed(&world, &next, &answered)));
        let killing = async {
            until("calls to be answered", async || (answered.lock().unwrap().len() >= round * ANSWERS).then_some(()))
                .await;
            world.part(0).kill();
        };
        tokio::join!(calling, killing);
        drop(world.take(0));
        world.begin(0).await;
    }

    let folder = tempfile::tempdir().unwrap();
    let (token, file) = (folder.path().join("token"), folder.path().join("audit.jsonl"));
    let auditor = world.tenant("acme").approver().scoped("audit:read");
    std::fs::write(&token, auditor.token()).unwrap();
    let (url, token, file) =
        (format!("http://{}", world.address(1)), token.display().to_string(), file.display().to_string());
    let service = ["audit", "--url", &url, "--token-file", &token];
    let exported = quartermaster(&[&service[..], &["export", "--out", &file]].concat()).await;
    assert_eq!(exported.code, 0, "{}", exported.said);
    let export = std::fs::read_to_string(&file).unwrap();
    let (opened, closed) = (traces(&export, "open"), traces(&export, "close"));
    let answered = answered.into_inner().unwrap();
    let lost: Vec<&String> = answered.iter().filter(|trace| !opened.contains(*trace)).collect();
    assert!(lost.is_empty(), "of {} answered calls {} have no record: {lost:?}", answered.len(), lost.len());
    // What came of a read may follow its answer: at most what was under way or had just been answered stays open.
    let unclosed = answered.iter().filter(|trace| !closed.contains(*trace)).count();
    println!("{} calls were answered, {} of them have no closing entry", answered.len(), unclosed);
    assert!(unclosed < answered.len() / 4, "{unclosed} of {}", answered.len());
    let verified = quartermaster(&[&service[..], &["verify"]].concat()).await;
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.said);
}
