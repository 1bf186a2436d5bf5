//! Tokens, passwords and whatever else nobody may see: looked for in everything that comes back.

use crate::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbox::jenkins::{BuildScript, JenkinsFault, JenkinsHarm, JenkinsSeed, JobParameter, SimulatedJob};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const PASSWORD: &str = "correct-horse-battery";

/// A job that writes secrets everywhere it can.
fn leaky() -> JenkinsSeed {
    let plan = BuildScript::new()
        .stage("Leak", Duration::from_secs(2), &["login with password=correct-horse-battery", "done"])
        .change("Ada", "use token: correct-horse-battery", &["a"])
        .artifact("env.txt", "DB_PASSWORD\npassword: correct-horse-battery\n");
    let job = SimulatedJob::pipeline("leaky")
        .source("https://robot:correct-horse-battery@git.example/a.git", "main")
        .script("sh 'deploy --password=correct-horse-battery'\n")
        .parameter(JobParameter::password("DEPLOY_KEY", PASSWORD))
        .parameter(JobParameter::text("API_TOKEN", PASSWORD))
        .parameter(JobParameter::text("WHERE", "here"))
        .plan(plan.clone())
        .past(Duration::from_secs(900), plan);
    JenkinsSeed::shop().job(job)
}

/// Keeps every field of every span and event, whatever its level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.lock().unwrap().push_str(&format!("\nspan {} ", span.metadata().name()));
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push_str(&format!("\nevent {} ", event.metadata().target()));
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn sides() -> Vec<(&'static str, Value)> {
    let job = "leaky";
    let mut calls = vec![
        ("jenkins_jobs", json!({})),
        ("jenkins_log", json!({ "job": job })),
        ("jenkins_log", json!({ "job": job, "stage": "6" })),
        ("jenkins_build", json!({ "job": job, "artifact": "env.txt" })),
        ("jenkins_queue", json!({})),
        ("jenkins_whoami", json!({})),
    ];
    calls.extend(
        ["summary", "parameters", "scm", "builds"].map(|show| ("jenkins_job", json!({ "job": job, "show": show }))),
    );
    let shows = ["summary", "changes", "scm", "stages", "artifacts", "script"];
    calls.extend(shows.map(|show| ("jenkins_build", json!({ "job": job, "show": show }))));
    calls
}

#[tokio::test]
async fn a_secret_is_in_no_result_no_preview_no_error_and_no_log() {
    let log = Log::default();
    // While one subscriber alone is registered, `tracing` asks only the thread that first reaches a callsite whether
    // somebody listens, and keeps that answer for all. The other tests' threads would answer no; with a second
    // subscriber alive, every registered one is asked.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let _guard = tracing::subscriber::set_default(log.clone());
    let world = World::of(leaky()).await;
    let token = world.jenkins.token();
    let header = STANDARD.encode(format!("{}:{token}", world.jenkins.user()));
    let clean = |what: &str, text: &str| {
        for secret in [PASSWORD, token.as_str(), header.as_str()] {
            assert!(!text.contains(secret), "{what} shows a secret: {text}");
        }
    };
    for (tool, args) in sides() {
        let told = world.run(tool, args.clone()).await.unwrap();
        clean(&format!("{tool} {args}"), &told.to_string());
    }
    let args = json!({ "job": "leaky", "parameters": { "DEPLOY_KEY": PASSWORD, "API_TOKEN": "another", "WHERE": "there" }, "wait_s": 5 });
    let drawn = world.preview("jenkins_trigger", args.clone()).await.unwrap();
    clean("a preview", &format!("{drawn:?}"));
    let shown: Value = serde_json::from_str(drawn.arguments.as_deref().unwrap()).unwrap();
    // What only has the name of a secret is shown to whoever decides: a name is anybody's to choose.
    assert_eq!(shown["parameters"], json!({ "DEPLOY_KEY": "masked", "API_TOKEN": "another", "WHERE": "there" }));
    assert!(drawn.text.contains("API_TOKEN: \"another\""), "{}", drawn.text);
    assert_eq!(drawn.hidden, [format!("{} characters hidden: value of password parameter DEPLOY_KEY", PASSWORD.len())]);
    clean("a result", &world.run("jenkins_trigger", args.clone()).await.unwrap().to_string());
    assert_eq!(world.jenkins.effects("DEPLOY_KEY", PASSWORD), 2, "it did arrive, besides the one that was there");

    for harm in [
        JenkinsHarm::Answer(401, None),
        JenkinsHarm::Answer(403, None),
        JenkinsHarm::Answer(500, None),
        JenkinsHarm::Cut,
        JenkinsHarm::NotJson,
        JenkinsHarm::NoCrumb,
    ] {
        world.jenkins.plant(JenkinsFault::once("/leaky/", harm.clone()));
        let failure = world.run("jenkins_trigger", args.clone()).await.unwrap_err();
        clean(&format!("{harm:?}"), &format!("{failure:?}"));
    }
    clean("a handle", &format!("{:?}", world.kit.servers));
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("span jenkins") && logged.contains("/job/{job}/api/json"), "something was logged at all");
    clean("the log", &logged);
}

#[tokio::test]
async fn a_token_that_is_echoed_is_blotted_out() {
    let world = World::shop().await;
    let token = world.jenkins.token();
    let args = json!({ "job": "smoke", "build": 2, "description": format!("look: {token}"), "display_name": token });
    let told = world.run("jenkins_update_build", args).await.unwrap().to_string();
    let build = world.run("jenkins_build", json!({ "job": "smoke" })).await.unwrap().to_string();
    let builds = world.run("jenkins_job", json!({ "job": "smoke", "show": "builds" })).await.unwrap().to_string();
    for shown in [told, build, builds] {
        assert!(!shown.contains(&token) && shown.contains("****"), "{shown}");
    }
}
