//! `/v1/runner`: who may take which jobs, and what a report may say.

use crate::runner_desk::{LABEL, RunnerDesk};
use domain::RunnerId;
use domain::job::{JobEnding, JobStanding};
use serde_json::{Value, json};
use testkit::Plan;

fn runner(n: u8) -> RunnerId {
    RunnerId::from_random([n; 16])
}

fn path(job: &Value, what: &str) -> String {
    format!("/v1/runner/jobs/{}/{what}", job["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_claims_starts_reports_and_ends_a_job() {
    let desk = RunnerDesk::open().await;
    let id = desk.submit("run_1", desk.shell("true")).await;
    let (token, me) = (desk.token(&[LABEL]), runner(1));
    let job = desk.claim(me).await.unwrap();
    assert_eq!(
        (job["id"].as_str(), job["owner"].as_str(), job["epoch"].as_u64()),
        (Some(&*id.to_string()), Some("run_1"), Some(1))
    );
    assert_eq!(job["spec"]["env"]["TOKEN"]["value"], "tok-hunter22-tok");
    assert!(desk.jobs().has_runner(&desk.job(id).await.spec.label).await.unwrap());

    let early = desk
        .ask(&token, &path(&job, "end"), &json!({ "runner": me, "epoch": 1, "ending": { "kind": "succeeded" } }))
        .await;
    assert_eq!((early.status, early.text().contains("not started")), (409, true), "{}", early.text());
    let started = desk.ask(&token, &path(&job, "start"), &json!({ "runner": me, "epoch": 1 })).await;
    assert_eq!(started.status, 200, "{}", started.text());
    assert_eq!(desk.job(id).await.spec.env["TOKEN"].value, "", "nobody needs it any more");
    let output = json!([{ "step": "run", "stream": "stdout", "text": "hello\n" }]);
    let piece = json!({ "runner": me, "epoch": 1, "piece": { "number": 0, "output": output } });
    for _ in 0..2 {
        let renewed = desk.ask(&token, &path(&job, "events"), &piece).await;
        assert_eq!((renewed.status, renewed.text().contains(r#""cancel":false"#)), (200, true), "{}", renewed.text());
    }
    let end = json!({ "runner": me, "epoch": 1, "ending": { "kind": "failed", "step": "run", "exit": { "code": 3 } } });
    assert_eq!(desk.ask(&token, &path(&job, "end"), &end).await.status, 200);
    assert_eq!(desk.ask(&token, &path(&job, "end"), &end).await.status, 200, "said twice is said once");

    let (ending, printed) = desk.outcome(id).await;
    assert!(matches!(ending, Some(JobEnding::Failed { .. })) && printed == "hello\n", "{ending:?} {printed}");
    // Counted by the whole process, whichever test did it.
    let metrics = telemetry::metrics::text(telemetry::metrics::TextFormat::Prometheus);
    for counted in [r#"state="submitted""#, r#"state="claimed""#, r#"state="started""#, r#"state="failed""#] {
        assert!(metrics.contains(&format!("quartermaster_jobs_total{{{counted}}}")), "{counted} is not in {metrics}");
    }
    assert!(metrics.contains("quartermaster_job_wait_seconds_count"));
    let left = desk.ask(&token, "/v1/runner/leave", &json!({ "runner": me })).await;
    assert_eq!(left.status, 200);
    assert!(!desk.jobs().has_runner(&desk.job(id).await.spec.label).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_serves_the_labels_it_names_and_no_others() {
    let desk = RunnerDesk::open().await;
    desk.submit("run_1", desk.shell("true")).await;
    let claim = json!({ "runner": runner(1), "labels": [LABEL] });
    for (labels, status) in [(vec!["other-hosts"], 403), (vec![], 403), (vec!["other-hosts", LABEL], 200)] {
        let answer = desk.ask(&desk.token(&labels), "/v1/runner/claim", &claim).await;
        assert_eq!(answer.status, status, "{labels:?} {}", answer.text());
    }
    let none = desk.ask(&desk.token(&[LABEL]), "/v1/runner/claim", &json!({ "runner": runner(1), "labels": [] })).await;
    assert_eq!(none.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_another_scope_beside_runner_work_takes_no_jobs() {
    let desk = RunnerDesk::open().await;
    for other in ["tools:read", "tools:write", "runs:decide", "tenant:admin", "audit:read"] {
        let token = desk.world.mint().token(|claims| {
            claims.scope = format!("runner:work {other}");
            claims.labels = vec![LABEL.to_owned()];
        });
        let answer = desk.ask(&token, "/v1/runner/claim", &json!({ "runner": runner(1), "labels": [LABEL] })).await;
        assert_eq!(answer.status, 403, "{other} {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_of_another_account_or_tenant_cannot_speak_of_a_job() {
    let desk = RunnerDesk::open().await;
    let id = desk.submit("run_1", desk.shell("true")).await;
    let job = desk.claim(runner(1)).await.unwrap();
    let start = json!({ "runner": runner(1), "epoch": 1 });
    let other = desk.world.mint().token(|claims| {
        claims.sub = "host-2".into();
        claims.scope = "runner:work".into();
        claims.labels = vec![LABEL.to_owned()];
    });
    assert_eq!(desk.ask(&other, &path(&job, "start"), &start).await.status, 409, "the same words from another account");
    let foreign = desk.world.mint().token(|claims| {
        claims.sub = "host-1".into();
        claims.tenant = "other".into();
        claims.scope = "runner:work".into();
        claims.labels = vec![LABEL.to_owned()];
    });
    assert_eq!(desk.ask(&foreign, &path(&job, "start"), &start).await.status, 404);
    let claimed = desk.ask(&foreign, "/v1/runner/claim", &json!({ "runner": runner(3), "labels": [LABEL] })).await;
    assert!(claimed.text().contains(r#""job":null"#), "{}", claimed.text());
    desk.stands(id, JobStanding::Claimed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_stopped_gives_no_jobs() {
    let desk = RunnerDesk::open().await;
    desk.submit("run_1", desk.shell("true")).await;
    let admin = desk.world.tenant("acme").agent().scoped("tenant:admin");
    let switch = json!({ "on": "tenant", "mode": "stop", "reason": "an incident" });
    let set = admin.send(&admin.post("/v1/switches", &switch)).await;
    assert_eq!(set.status, 200, "{}", set.text());
    assert_eq!(desk.claim(runner(1)).await, None);
    let id: Value = serde_json::from_str(&set.text()).unwrap();
    let lifted = admin.send(&admin.request("DELETE", &format!("/v1/switches/{}", id["id"].as_str().unwrap()))).await;
    assert_eq!(lifted.status, 200, "{}", lifted.text());
    assert!(desk.claim(runner(1)).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_runner_gets_a_job_as_soon_as_there_is_one() {
    let desk = RunnerDesk::open().await;
    let (token, body) = (desk.token(&[LABEL]), json!({ "runner": runner(1), "labels": [LABEL], "wait_ms": 20_000 }));
    let submit = async {
        let label = domain::job::RunnerLabel::parse(LABEL).unwrap();
        testkit::until("the runner to wait", async || desk.jobs().has_runner(&label).await.unwrap().then_some(()))
            .await;
        desk.submit("run_1", desk.shell("true")).await
    };
    let (answer, id) = tokio::join!(desk.ask(&token, "/v1/runner/claim", &body), submit);
    assert!(answer.text().contains(&id.to_string()), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_that_are_too_large_or_make_no_sense_are_refused() {
    let desk = RunnerDesk::open().await;
    desk.submit("run_1", desk.shell("true")).await;
    let (token, me) = (desk.token(&[LABEL]), runner(1));
    let job = desk.claim(me).await.unwrap();
    assert_eq!(desk.ask(&token, &path(&job, "start"), &json!({ "runner": me, "epoch": 1 })).await.status, 200);
    let output = json!([{ "step": "run", "stream": "stdout", "text": "x".repeat(70_000) }]);
    for (body, status) in [
        (json!({ "runner": me, "epoch": 1, "piece": { "number": 0, "output": output } }), 413),
        (json!({ "runner": me, "epoch": 1, "piece": { "number": 7, "output": [] } }), 409),
        (json!({ "runner": me, "epoch": 2 }), 409),
        (json!({ "runner": "me", "epoch": 1 }), 400),
        (json!({ "epoch": 1 }), 400),
        (json!({ "runner": me, "epoch": 1, "surprise": 1 }), 400),
    ] {
        let answer = desk.ask(&token, &path(&job, "events"), &body).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    let report = json!({ "runner": me, "epoch": 1 });
    for (path, status) in [("job_0000000000000000000000/events", 404), ("nonsense/events", 404), ("nonsense/end", 400)]
    {
        let answer = desk.ask(&token, &format!("/v1/runner/jobs/{path}"), &report).await;
        assert_eq!(answer.status, status, "{path} {}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runners_claim_and_ending_are_in_the_audit_log_under_its_name() {
    let desk = RunnerDesk::open().await;
    desk.submit("run_1", desk.shell("true")).await;
    let (token, me) = (desk.token(&[LABEL]), runner(1));
    let job = desk.claim(me).await.unwrap();
    let refused = json!({ "runner": me, "epoch": 1, "ending": { "kind": "refused", "reason": "not on the list" } });
    assert_eq!(desk.ask(&token, &path(&job, "end"), &refused).await.status, 200);

    let auditor = desk.world.tenant("acme").agent().scoped("audit:read");
    let answer = auditor.send(&auditor.request("GET", "/v1/audit")).await;
    let log = answer.text();
    for part in [r#""verdict":"claimed""#, r#""verdict":"refused""#, r#""kind":"runner""#, r#""sub":"host-1""#] {
        assert!(log.contains(part), "{part} is not in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_the_store_shows_no_secret() {
    let desk = RunnerDesk::on(Plan::file()).await;
    let id = desk.submit("run_1", desk.shell("true")).await;
    let file = desk.world.settings_file().with_file_name("state.redb");
    let written = std::fs::read(file).unwrap();
    let holds = |text: &str| written.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(&format!("job:{id}")), "it is there");
    assert!(!holds("hunter22") && !holds("shop/seed"), "and unreadable");
}
