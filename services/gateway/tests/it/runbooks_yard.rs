//! A tenant with runbooks and a runner that executes them here, for tests.
//!
//! The commands are real processes on this machine, executed by the crate `runner` for a runner that works on the store of
//! the test; effects are counted in files.

use crate::here::{World, in_process};
use crate::runs_desk::{acme, approve, await_run, pending};
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

/// How long a runner has a job.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// The tool of the first runbook.
pub(crate) const SEED: &str = "runbook__shop__seed-data";

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
pub(crate) struct RunbookYard {
    pub(crate) agent: Legacy,
    pub(crate) ana: Actor,
    pub(crate) folder: tempfile::TempDir,
    runners: JoinSet<()>,
    pub(crate) world: World,
}

impl RunbookYard {
    pub(crate) async fn open() -> RunbookYard {
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
    pub(crate) async fn with_runner(mut self) -> RunbookYard {
        let jobs = self.world.part(0).store.of(&acme()).jobs();
        let (label, folder) = (RunnerLabel::parse("shop-hosts").unwrap(), self.folder.path().to_owned());
        self.runners.spawn(work(jobs.clone(), label.clone(), folder));
        until("the runner", async || jobs.has_runner(&label).await.unwrap().then_some(())).await;
        self
    }

    /// Calls a runbook, approves it, and gives what the agent learns.
    pub(crate) async fn approved(&self, tool: &str, arguments: Value) -> testkit::Outcome {
        let run = pending(&self.agent.call(tool, arguments).await);
        approve(&self.ana, &run).await;
        await_run(&self.agent, &run).await
    }

    /// How often the seed was written.
    pub(crate) fn effects(&self, key: &str) -> usize {
        let text = std::fs::read_to_string(self.folder.path().join(format!("seeded-{key}"))).unwrap_or_default();
        text.lines().count()
    }
}

/// The tenant's file, with its effects in this folder.
pub(crate) fn file(folder: &Path) -> String {
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

/// The tool of this name as the agent reads it.
pub(crate) async fn listed(agent: &Legacy, name: &str) -> Value {
    let list = agent.ask("tools/list", json!({})).await;
    let tools = list.result()["tools"].as_array().unwrap().clone();
    tools.into_iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name} should be listed"))
}
