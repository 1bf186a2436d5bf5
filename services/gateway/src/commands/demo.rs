//! `demo`: plays the tutorial as an agent would, against a running `dev`.
//!
//! It finds the broken deployment of the sandbox, asks for the fix, waits until a person approves it, and watches the
//! deployment recover. It acts on a simulated cluster only: of a real one it reads that it is real, and stops.

use crate::cli::{AGENT_TOKEN, APPROVER_TOKEN, DemoCommand, OutputFormat};
use crate::commands::api_client::{self, AnswerFields, ApiClient, ApiRefusal, ApiRequest, plain_segment};
use crate::commands::{CommandOutcome, one_line, print, print_json, runtime, say};
use anyhow::{Context, bail};
use serde_json::{Value, json};

/// The deployment that is broken in a fresh sandbox.
const BROKEN: &str = "checkout";
/// Shorter than the time that a request of a command may take.
const POLL_MS: u64 = 5_000;
/// How often the rollout is waited for, five seconds each.
const LOOKS: usize = 24;

pub(super) fn run(args: &DemoCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let (url, token_file) = api_client::service(args.url.as_deref(), args.token_file.as_deref(), AGENT_TOKEN);
    let no_dev = {
        let url = url.clone();
        move || format!("there is no `dev` at {url}: start `quartermaster dev` in this folder, in another terminal")
    };
    let agent = ApiClient::open(Some(&url), Some(&token_file), AGENT_TOKEN).with_context(&no_dev)?;
    let approver = args.approve.then(|| {
        let beside = token_file.with_file_name(APPROVER_TOKEN);
        ApiClient::open(Some(&url), Some(&beside), APPROVER_TOKEN)
    });
    let approver = approver.transpose().context("--approve decides with the approver's token of `dev`")?;
    runtime()?.block_on(async {
        let opened = agent.send(ApiRequest::post("/v1/sessions", json!({ "mode": "write" }))).await;
        let session: Value = match opened.with_context(&no_dev)? {
            Ok(session) => session,
            Err(refusal) => return refusal.finish(output),
        };
        let session = plain_segment("a session's id", session["id"].as_str().unwrap_or_default())?.to_owned();
        let demo = Demo { agent, approver, session, url, output };
        match demo.play().await? {
            Ok(ended) => demo.finish(&ended),
            Err(refusal) => refusal.finish(output),
        }
    })
}

/// One performance.
struct Demo {
    agent: ApiClient,
    approver: Option<ApiClient>,
    session: String,
    url: String,
    output: OutputFormat,
}

/// How it ended.
struct DemoEnding {
    healed: bool,
    run: Option<String>,
    state: String,
}

impl DemoEnding {
    fn without_run(state: &str) -> DemoEnding {
        DemoEnding { healed: false, run: None, state: state.to_owned() }
    }
}

/// Ends the scene if the service refuses a step.
macro_rules! step {
    ($step:expr) => {
        match $step {
            Ok(value) => value,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
}

impl Demo {
    /// The whole scene. A refusal of the service ends it.
    async fn play(&self) -> anyhow::Result<Result<DemoEnding, ApiRefusal>> {
        let facts = step!(self.call("k8s_discover", json!({ "ask": "cluster" })).await?);
        if facts["simulated"] != json!(true) {
            bail!("the cluster behind {} is a real one; the demo changes only the sandbox of `dev`", self.url);
        }
        self.tell("I am an agent. I opened a session and look at the cluster.");
        let listed = step!(self.call("k8s_get", json!({ "kind": "deployments" })).await?);
        for row in AnswerFields(&listed).list("items") {
            self.tell(&format!("    {:<14} ready {}", row.text("name"), row.text("ready")));
        }
        let status = step!(self.call("k8s_rollout_status", deployment()).await?);
        if status["failed"] != json!(true) {
            self.tell(&format!("{BROKEN} is well already. Restart `dev` for a sandbox with something broken in it."));
            return Ok(Ok(DemoEnding::without_run("nothing_to_do")));
        }
        self.tell(&format!("{BROKEN} is broken: {}", AnswerFields(&status).text("message")));
        let events = json!({ "kind": "events", "field_selector": "type=Warning" });
        let events = step!(self.call("k8s_get", events).await?);
        if let Some(event) = AnswerFields(&events).list("items").find(|row| row.0.to_string().contains(BROKEN)) {
            self.tell(&format!("    {}", one_line(&event.0.to_string())));
        }
        self.tell("Undoing the last rollout would mend it. I load the write tools and ask for that.");
        step!(self.call("load_toolset", json!({ "toolset": "k8s", "include_write_tools": true })).await?);
        let undo = json!({ "action": "undo", "kind": "Deployment", "name": BROKEN });
        let asked = step!(self.call("k8s_rollout", undo).await?);
        let Some(run) = asked["run"]["id"].as_str() else {
            bail!("the service executed the change without a person's approval, which it must not");
        };
        let run = plain_segment("a run's id", run)?.to_owned();
        let decided = step!(self.decided(&run).await?);
        let state = AnswerFields(&decided["run"]).text("state");
        if state != "succeeded" {
            let reason = AnswerFields(&decided["run"]).text_or("reason", "no reason was given");
            self.tell(&format!("The run is {state}: {reason}. I change nothing."));
            return Ok(Ok(DemoEnding { healed: false, run: Some(run), state }));
        }
        self.tell("Approved and done, exactly as it was shown. I watch the rollout.");
        let healed = step!(self.healed().await?);
        Ok(Ok(DemoEnding { healed, run: Some(run), state }))
    }

    /// Waits until a person has decided and the service has acted; with `--approve` it is the approver's token that decides.
    async fn decided(&self, run: &str) -> anyhow::Result<Result<Value, ApiRefusal>> {
        match &self.approver {
            Some(approver) => {
                self.tell(&format!(
                    "It waits for a person as {run}. --approve: I decide it with the approver's token."
                ));
                let path = format!("/v1/runs/{run}/approve");
                let reason = json!({ "reason": "approved by `quartermaster demo --approve`" });
                step!(approver.send::<Value>(ApiRequest::post(&path, reason)).await?);
            }
            None => self.tell(&format!(
                "It waits for a person. You are that person: read it and decide, in another terminal.\n\n    \
                 quartermaster runs show {run}\n    \
                 quartermaster runs approve {run} --reason \"2.8.0 was never pushed\"\n\n\
                 (Or reject it, and see what I do.)"
            )),
        }
        loop {
            let waited = self.call("await_run", json!({ "run_id": run, "wait_ms": POLL_MS })).await?;
            let waited = match waited {
                // A run that ended badly is an answer to this question, with the run in its details.
                Err(refusal) if refusal.details["run"].is_object() => {
                    return Ok(Ok(json!({ "run": refusal.details["run"] })));
                }
                other => step!(other),
            };
            let state = waited["run"]["state"].as_str().unwrap_or_default();
            if !matches!(state, "pending_approval" | "approved" | "executing") {
                return Ok(Ok(waited));
            }
        }
    }

    async fn healed(&self) -> anyhow::Result<Result<bool, ApiRefusal>> {
        for _ in 0..LOOKS {
            let mut wait = deployment();
            wait["until"] = json!("rollout");
            wait["timeout_s"] = json!(5);
            if step!(self.call("k8s_wait", wait).await?)["met"] == json!(true) {
                let now = step!(self.call("k8s_rollout_status", deployment()).await?);
                let (ready, revision) = (&now["ready"], &now["revision"]);
                self.tell(&format!("{BROKEN} is well again: {ready} pods are ready, at revision {revision}."));
                return Ok(Ok(true));
            }
        }
        self.tell(&format!("{BROKEN} has not recovered in two minutes."));
        Ok(Ok(false))
    }

    /// Calls a tool; its structured result.
    async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<Result<Value, ApiRefusal>> {
        let path = format!("/v1/sessions/{}/calls", self.session);
        let body = json!({ "tool": tool, "arguments": arguments });
        let answer: Result<Value, ApiRefusal> = self.agent.send(ApiRequest::post(&path, body)).await?;
        Ok(answer.map(|mut answer| answer["result"].take()))
    }

    /// A line for whoever watches. With `--output json` standard output is for the ending alone.
    fn tell(&self, line: &str) {
        match self.output {
            OutputFormat::Text => print(&format!("{line}\n")),
            OutputFormat::Json => say(&format!("{line}\n")),
        }
    }

    fn finish(&self, ending: &DemoEnding) -> anyhow::Result<CommandOutcome> {
        let DemoEnding { healed, run, state } = ending;
        match self.output {
            OutputFormat::Json => {
                print_json(&json!({ "session": self.session, "run": run, "state": state, "healed": healed }))?;
            }
            OutputFormat::Text if *healed => {
                print("Every step is in the audit log: quartermaster audit search\n");
            }
            OutputFormat::Text => {}
        }
        Ok(if *healed { CommandOutcome::Done } else { CommandOutcome::Negative })
    }
}

fn deployment() -> Value {
    json!({ "kind": "Deployment", "name": BROKEN })
}
