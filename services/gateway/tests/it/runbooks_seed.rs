//! Runbooks as agents and approvers meet them: declared, listed, approved, executed, repeated, failed.
//!
//! On a runner the commands are real processes on this machine, executed by the crate `runner` for a runner that works on
//! the store of the test; effects are counted in files. In a cluster they are simulated programs, unless
//! `QUARTERMASTER_TEST_KUBECONFIG` names a real control plane (`runbooks_cluster`).

use crate::here::{World, in_process};
use crate::runs_desk::{acme, approve, await_run, ended, pending, show};
use domain::job::{JobHolder, RunnerLabel};
use domain::{Principal, RunnerId};
use runner::{Execution, Host, execute};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{AuditEntry, JobStore, OutputPiece, Phase, RunnerPresence};
use testkit::{Actor, Legacy, Plan, until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const LEASE: Duration = Duration::from_secs(10);
const SEED: &str = "runbook__shop__seed-data";

/// The runbooks of the test's tenant; `DIR` is a folder of its own.
const RUNBOOKS: &str = r#"params:
  shop_token: { secret: true }
runbooks:
  - name: seed-data
    group: shop
    description: "Write the seed marker file from `key`"
    where: { runner: shop-hosts }
    arguments:
      key: { type: string, required: true, description: "value written to the marker", pattern: "^[a-z0-9-]{1,40}$" }
      times: { type: number, default: 1, min: 1, max: 9 }
      loud: { type: bool, default: false }
    env: { REGION: eu-west-1, TOKEN: "{{ params.shop_token }}" }
    check: ["test", "-f", "DIR/seeded-{{ args.key }}"]
    run: ["sh", "-c", "echo \"$QM_ARG_KEY\" >> \"DIR/seeded-$QM_ARG_KEY\"; echo \"times=$QM_ARG_TIMES loud=$QM_ARG_LOUD region=$REGION token=$TOKEN\""]
    verify: ["test", "-s", "DIR/seeded-{{ args.key }}"]
    timeout: 1m
  - name: fail
    group: shop
    where: { runner: shop-hosts }
    run: ["sh", "-c", "echo out; echo err >&2; exit 3"]
  - name: show
    group: shop
    where: { runner: shop-hosts }
    arguments: { text: { required: true } }
    env: { MARK: "[{{ args.text }}]" }
    run: ["printf", "%s|%s\\n", "<{{ args.text }}>", "end"]
    verify: ["sh", "-c", "test \"$MARK\" = \"[$QM_ARG_TEXT]\""]
  - name: status
    group: shop
    effect: read
    where: { runner: shop-hosts }
    run: ["echo", "all is well"]
"#;

/// A tenant with runbooks, an agent that may ask for them, a person, and a folder where effects land.
struct RunbookYard {
    agent: Legacy,
    ana: Actor,
    folder: tempfile::TempDir,
    runners: JoinSet<()>,
    world: World,
}

impl RunbookYard {
    async fn open() -> RunbookYard {
        let folder = tempfile::tempdir().unwrap();
        let world = Plan::embedded()
            .tenant("acme", &file(folder.path()))
            .secret("acme", "shop_token", "hunter2-hunter2-hunter2")
            .setting("QM_RUNBOOKS__READS", r#"["acme/shop/status"]"#)
            .setting("QM_APPROVALS__SWEEP_EVERY", "50ms")
            .start(in_process())
            .await;
        let agent = world.tenant("acme").agent().legacy().await;
        agent.load("runbooks:write").await;
        let ana = world.tenant("acme").approver();
        RunbookYard { agent, ana, folder, runners: JoinSet::new(), world }
    }

    /// Starts a runner, and waits until it is there.
    async fn with_runner(mut self) -> RunbookYard {
        let jobs = self.world.part(0).store.of(&acme()).jobs();
        let (label, folder) = (RunnerLabel::parse("shop-hosts").unwrap(), self.folder.path().to_owned());
        self.runners.spawn(work(jobs.clone(), label.clone(), folder));
        until("the runner", async || jobs.has_runner(&label).await.unwrap().then_some(())).await;
        self
    }

    /// Calls a runbook, approves it, and gives what the agent learns.
    async fn approved(&self, tool: &str, arguments: Value) -> testkit::Outcome {
        let run = pending(&self.agent.call(tool, arguments).await);
        approve(&self.ana, &run).await;
        await_run(&self.agent, &run).await
    }

    /// How often the seed was written.
    fn effects(&self, key: &str) -> usize {
        let text = std::fs::read_to_string(self.folder.path().join(format!("seeded-{key}"))).unwrap_or_default();
        text.lines().count()
    }
}

fn file(folder: &Path) -> String {
    RUNBOOKS.replace("DIR", &folder.display().to_string())
}

/// A runner: takes jobs of the label from the store, executes them here, and reports.
async fn work(jobs: JobStore, label: RunnerLabel, folder: PathBuf) {
    let holder = JobHolder { runner: RunnerId::from_random([7; 16]), principal: Principal::new("test", "runner") };
    let labels = vec![label];
    let here = RunnerPresence { id: holder.runner, name: "test".to_owned(), labels: labels.clone(), slots: 1 };
    let entry = AuditEntry::new(Phase::Transition);
    loop {
        jobs.announce(&here, Duration::from_secs(30)).await.unwrap();
        let Some(job) = jobs.claim(&labels, &holder, LEASE, &entry).await.unwrap() else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let epoch = job.claim.as_ref().unwrap().epoch;
        drop(jobs.start(job.id, &holder, epoch, LEASE, &entry).await.unwrap());
        let execution = Execution::new(&job.spec, Host::new(&folder), CancellationToken::new());
        let ending = execute(&job.spec, &execution).await;
        let (output, dropped_bytes) = execution.output.take(usize::MAX);
        let piece = OutputPiece { number: 0, output, dropped_bytes };
        drop(jobs.renew(job.id, &holder, epoch, LEASE, Some(&piece)).await.unwrap());
        drop(jobs.end(job.id, &holder, epoch, &ending, &entry).await.unwrap());
    }
}

async fn listed(agent: &Legacy, name: &str) -> Value {
    let list = agent.ask("tools/list", json!({})).await;
    let tools = list.result()["tools"].as_array().unwrap().clone();
    tools.into_iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name} should be listed"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runbook_is_one_tool_with_typed_arguments_and_is_listed_without_a_runner() {
    let yard = RunbookYard::open().await;
    let tool = listed(&yard.agent, SEED).await;
    let schema = &tool["inputSchema"];
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["key"]));
    assert_eq!(schema["properties"]["key"]["type"], "string");
    assert_eq!(schema["properties"]["key"]["description"], "value written to the marker");
    assert_eq!(
        (&schema["properties"]["times"]["type"], &schema["properties"]["times"]["default"]),
        (&json!("number"), &json!(1))
    );
    assert_eq!(schema["properties"]["loud"]["type"], "boolean");
    assert_eq!(schema["properties"]["env"]["type"], "object", "the generic overlay is on every runbook");
    assert_eq!(listed(&yard.agent, "runbook__shop__fail").await["inputSchema"]["properties"]["env"]["type"], "object");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_leads_then_the_command_the_variables_and_what_a_failure_means() {
    let yard = RunbookYard::open().await;
    let tool = listed(&yard.agent, SEED).await;
    let words = tool["description"].as_str().unwrap();
    assert!(words.starts_with("Write the seed marker file from `key`\n"), "{words}");
    for part in
        ["run: sh -c ", "check: test -f ", "env: REGION, TOKEN", "A failure is reported and stops nothing else."]
    {
        assert!(words.contains(part), "{part} in\n{words}");
    }
    assert!(!words.contains("hunter2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_runner_a_call_is_an_error_that_says_how_to_start_one() {
    let yard = RunbookYard::open().await;
    let refusal = yard.agent.call(SEED, json!({ "key": "a" })).await.refusal().clone();
    assert_eq!(refusal["code"], "runner_offline", "{refusal}");
    assert!(refusal["next"].as_str().unwrap().contains("quartermaster runner --label shop-hosts"), "{refusal}");
    let yard = yard.with_runner().await;
    yard.approved(SEED, json!({ "key": "a" })).await.ok();
    assert_eq!(yard.effects("a"), 1, "found, then started, then called");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_runbook_runs_once_and_a_second_call_is_ended_by_its_check() {
    let yard = RunbookYard::open().await.with_runner().await;
    let first = yard.approved(SEED, json!({ "key": "k1", "times": "3", "loud": true })).await;
    let result = &first.ok()["result"];
    assert_eq!((&result["outcome"], &result["runbook"]), (&json!("succeeded"), &json!("shop/seed-data")), "{first:?}");
    assert_eq!(result["untrusted"], true);
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("times=3 loud=true region=eu-west-1"), "{output}");
    let again = yard.approved(SEED, json!({ "key": "k1", "times": "3", "loud": true })).await;
    assert_eq!(again.ok()["result"]["outcome"], "already_done", "{again:?}");
    assert_eq!(yard.effects("k1"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_runbook_is_an_error_with_its_output_and_everything_goes_on() {
    let yard = RunbookYard::open().await.with_runner().await;
    let failed = yard.approved("runbook__shop__fail", json!({})).await.refusal().clone();
    assert_eq!(failed["code"], "runbook_failed", "{failed}");
    let message = failed["message"].as_str().unwrap();
    for part in ["shop/fail failed", "`run` exited with 3", "out", "err"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!((&failed["details"]["step"], &failed["details"]["exit_code"]), (&json!("run"), &json!(3)), "{failed}");
    // The same runner and the same session take the next one.
    yard.approved(SEED, json!({ "key": "after" })).await.ok();
    assert_eq!(yard.effects("after"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_checked_against_their_rules_before_anybody_is_asked() {
    let yard = RunbookYard::open().await.with_runner().await;
    for (arguments, code, words) in [
        (json!({}), "invalid_argument", "key"),
        (json!({ "key": "UPPER" }), "invalid_argument", "must match"),
        (json!({ "key": "a", "times": 10 }), "invalid_argument", "times"),
        (json!({ "key": "a", "times": true }), "invalid_argument", "times"),
        (json!({ "key": "a", "loud": "perhaps" }), "invalid_argument", "loud"),
        (json!({ "key": "a", "colour": "red" }), "unknown_argument", "colour"),
        (json!({ "key": "a", "env": { "PATH": "/tmp" } }), "invalid_argument", "PATH"),
        (json!({ "key": "a", "env": { "LD_PRELOAD": "/tmp/x.so" } }), "invalid_argument", "LD_PRELOAD"),
        (json!({ "key": "a", "env": { "QM_ARG_KEY": "../../x" } }), "invalid_argument", "QM_ARG_KEY"),
        (json!({ "key": "a", "env": { "A": 1 } }), "invalid_argument", "env"),
    ] {
        let outcome = yard.agent.call(SEED, arguments.clone()).await;
        assert_eq!(outcome.code(), code, "{arguments}: {outcome:?}");
        assert!(outcome.answer.text().contains(words), "{arguments}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overlay_of_a_call_comes_last_and_the_approver_sees_it() {
    let yard = RunbookYard::open().await.with_runner().await;
    let call = json!({ "key": "over", "env": { "REGION": "us-east-1", "DEBUG": "1" } });
    let run = pending(&yard.agent.call(SEED, call).await);
    let shown = show(&yard.ana, &run).await["preview"]["text"].as_str().unwrap().to_owned();
    for part in [
        "where: a runner of shop-hosts",
        "time: 60 s",
        "check, one word each",
        "seeded-over\"",
        "  QM_ARG_KEY=\"over\" (argument)",
        "  REGION=\"us-east-1\" (given by the caller, instead of the runbook's)",
        "  DEBUG=\"1\" (given by the caller)",
        "  TOKEN: the tenant's secret shop_token, which is not shown",
        "nothing runs before an approval",
        "runbook sha256: ",
    ] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(yard.effects("over"), 0, "not even its check has run");
    approve(&yard.ana, &run).await;
    let done = await_run(&yard.agent, &run).await;
    let output = done.ok()["result"]["output"].as_str().unwrap().to_owned();
    assert!(output.contains("region=us-east-1"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_the_command_and_nobody_else() {
    let yard = RunbookYard::open().await.with_runner().await;
    let done = yard.approved(SEED, json!({ "key": "secret" })).await;
    let text = done.answer.text();
    assert!(text.contains("token=") && !text.contains("hunter2"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_runbook_voids_what_was_approved() {
    let yard = RunbookYard::open().await.with_runner().await;
    let run = pending(&yard.agent.call(SEED, json!({ "key": "stale" })).await);
    let changed = file(yard.folder.path()).replace("echo \\\"times=", "echo \\\"other=");
    assert_ne!(changed, file(yard.folder.path()));
    yard.world.configure("acme", &changed);
    until("the changed runbook", async || {
        let tool = listed(&yard.agent, SEED).await;
        tool["description"].as_str().unwrap().contains("other=").then_some(())
    })
    .await;
    approve(&yard.ana, &run).await;
    let told = ended(&yard.ana, &run).await;
    assert_eq!((&told["state"], &told["outcome"]["code"]), (&json!("failed"), &json!("stale")), "{told:#}");
    assert_eq!(yard.effects("stale"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_the_operator_vouches_for_runs_at_once() {
    let yard = RunbookYard::open().await.with_runner().await;
    let done = yard.agent.call("runbook__shop__status", json!({})).await;
    assert_eq!(
        (&done.ok()["outcome"], &done.ok()["output"]),
        (&json!("succeeded"), &json!("all is well\n")),
        "{done:?}"
    );
    let tool = listed(&yard.agent, "runbook__shop__status").await;
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_shell_sees_an_argument_as_code() {
    let yard = RunbookYard::open().await.with_runner().await;
    let trap = yard.folder.path().join("pwned");
    let touch = format!("touch {}", trap.display());
    let corpus = [
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("; {touch}"),
        format!("&& {touch} &"),
        format!("| {touch}"),
        format!("'; {touch}; '"),
        format!("\"; {touch}; \""),
        format!("a\n{touch}\n"),
        format!("${{IFS}}{touch}"),
        "$(TOKEN) ${TOKEN} %s%n \\x00".to_owned(),
        "{{ args.text }} {{ params.shop_token }}".to_owned(),
        "*?[a-z]~!#".to_owned(),
        "../../../etc/passwd".to_owned(),
    ];
    for text in corpus {
        let done = yard.approved("runbook__shop__show", json!({ "text": text, "env": { "OVER": text } })).await;
        let output = done.ok()["result"]["output"].as_str().unwrap().to_owned();
        let expected = format!("<{text}>|end\n");
        assert_eq!(output.replace("\r", ""), expected, "{text:?}");
        assert!(!trap.exists(), "{text:?} was executed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_has_none_of_it() {
    let yard = RunbookYard::open().await;
    let other = yard.world.tenant("other").agent().legacy().await;
    let called = other.call(SEED, json!({ "key": "a" })).await;
    assert_eq!(called.code(), "unknown_tool");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_named_after_its_run_so_submitting_it_again_changes_nothing() {
    let yard = RunbookYard::open().await.with_runner().await;
    let run = pending(&yard.agent.call(SEED, json!({ "key": "once" })).await);
    approve(&yard.ana, &run).await;
    assert_eq!(ended(&yard.ana, &run).await["state"], "succeeded");
    let jobs = yard.world.part(0).store.of(&acme()).jobs();
    let id = domain::JobId::of(&run);
    let (found, _) = jobs.find(id).await.unwrap();
    let job = found.expect("the job of the run").job;
    assert!(job.spec.env.values().all(|variable| variable.value.is_empty()), "no secret is left in the store");
    let again = jobs.submit(id, &run, job.spec.clone(), LEASE).await.unwrap();
    assert!(matches!(again, store::JobSubmission::Existing(_)), "{again:?}");
    assert_eq!(yard.effects("once"), 1);
}
