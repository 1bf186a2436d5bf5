//! A build from its start to its label, through the service: an agent asks, a person decides, and Jenkins counts what
//! really happened.

use crate::here::{World, in_process};
use crate::runs_desk::{approve, ended, pending, show};
use sandbox::jenkins::{JenkinsFault, JenkinsHarm, JenkinsSeed, SimulatedJenkins};
use serde_json::{Value, json};
use testkit::{Actor, Legacy, Plan, until};

const DEPLOY: &str = "shop/deploy";

/// A tenant whose one server is simulated, an agent that asks and a person who decides.
pub(crate) struct Bench {
    pub(crate) jenkins: SimulatedJenkins,
    agent: Legacy,
    pub(crate) ana: Actor,
    world: World,
}

impl Bench {
    pub(crate) async fn open() -> Bench {
        let jenkins = SimulatedJenkins::start(JenkinsSeed::shop()).await.unwrap();
        let file = format!(
            "default_toolsets: [jenkins]\nlimits: {{ calls_per_minute: 1000000 }}\ntoolsets:\n  \
             jenkins: {{ url: \"{}\", user: {}, token: {{ secret: ci-token }} }}",
            jenkins.url(),
            jenkins.user()
        );
        let plan = Plan::embedded()
            .setting("QM_APPROVALS__SWEEP_EVERY", "50ms")
            .setting("QM_UPSTREAMS__PRIVATE", "true")
            .setting("QM_UPSTREAMS__PORTS", &format!("[{}]", jenkins.address().port()))
            .tenant("acme", &file)
            .secret("acme", "ci-token", &jenkins.token());
        let world = plan.start(in_process()).await;
        let agent = world.tenant("acme").agent().legacy().await;
        agent.load("jenkins:write").await;
        let ana = world.tenant("acme").approver();
        Bench { jenkins, agent, ana, world }
    }

    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> String {
        pending(&self.agent.call(tool, arguments).await)
    }

    /// Asks, has it signed, and gives what the tool told.
    async fn act(&self, tool: &str, arguments: Value) -> Value {
        let run = self.ask(tool, arguments).await;
        approve(&self.ana, &run).await;
        let told = ended(&self.ana, &run).await;
        assert_eq!(told["state"], "succeeded", "{tool}: {told:#}");
        let outcome = self.agent.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await;
        outcome.ok()["result"].clone()
    }

    fn posts(&self) -> usize {
        self.jenkins.requests().iter().filter(|request| request.method == "POST").count()
    }
}

fn deploy() -> Value {
    json!({ "job": DEPLOY, "parameters": { "ENVIRONMENT": "production", "VERSION": "2.0" }, "wait_s": 20 })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_is_started_by_a_signature_and_by_nothing_else() {
    let bench = Bench::open().await;
    let run = bench.ask("jenkins_trigger", deploy()).await;
    let shown = show(&bench.ana, &run).await.to_string();
    assert!(shown.contains("ENVIRONMENT") && shown.contains("production"), "{shown}");
    assert_eq!(bench.posts(), 0, "nothing is sent before somebody has signed");

    approve(&bench.ana, &run).await;
    let told = ended(&bench.ana, &run).await;
    assert_eq!(told["state"], "succeeded", "{told:#}");
    assert_eq!((bench.posts(), bench.jenkins.effects("QM_RUN_ID", &run)), (1, 1));

    let build = bench.agent.call("jenkins_build", json!({ "job": DEPLOY })).await.ok().clone();
    assert_eq!((&build["number"], &build["parameters"]["ENVIRONMENT"]), (&json!(4), &json!("production")));
    let labelled = bench.act("jenkins_update_build", json!({ "job": DEPLOY, "build": 4, "keep": true })).await;
    assert_eq!(labelled["keep"], true);
    let again = bench.act("jenkins_replay", json!({ "job": DEPLOY, "build": 2 })).await;
    assert_eq!(again["replay_of"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_never_sent_again_and_found_by_its_mark() {
    let bench = Bench::open().await;
    bench.jenkins.plant(JenkinsFault::once("buildWithParameters", JenkinsHarm::CutAfter));
    let run = bench.ask("jenkins_trigger", deploy()).await;
    approve(&bench.ana, &run).await;
    let settled = until("the probe to find it", async || {
        let told = show(&bench.ana, &run).await;
        (told["state"] == "reconciled_succeeded").then_some(told)
    });
    settled.await;
    assert_eq!((bench.posts(), bench.jenkins.effects("QM_RUN_ID", &run)), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_token_counts_without_a_restart_and_is_told_to_nobody() {
    let bench = Bench::open().await;
    let fresh = bench.jenkins.rotate_token();
    let refused = bench.agent.call("jenkins_whoami", json!({})).await;
    assert_eq!(refused.refusal()["code"], "credentials_refused");
    bench.world.write_secret("acme", "ci-token", &fresh);
    let who = bench.agent.call("jenkins_whoami", json!({})).await;
    assert_eq!(who.ok()["user"], bench.jenkins.user().as_str());
    assert!(!who.answer.text().contains(&fresh) && !refused.answer.text().contains(&fresh));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_build_wrote_taints_the_session_that_reads_it() {
    let bench = Bench::open().await;
    let tainted = async || {
        let session = format!("/v1/sessions/{}", bench.agent.session());
        bench.world.tenant("acme").agent().rest().get(&session).await.json()["tainted"].clone()
    };
    bench.agent.call("jenkins_jobs", json!({})).await.ok();
    assert_eq!(tainted().await, false, "names and numbers are no prose");
    bench.agent.call("jenkins_log", json!({ "job": "smoke" })).await.ok();
    assert_eq!(tainted().await, true);
}
