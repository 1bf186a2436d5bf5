//! What tests of runners share: a service, jobs that append a line to a file, and the real program as a runner.

use crate::here::{World, in_process};
use domain::job::{JobEnding, JobHolder, JobSpec, JobStanding, JobVariable, RunnerLabel};
use domain::{Job, JobId, RunnerId, Tenant};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use store::{JobChange, JobNews, JobStore, JobSubmission};
use testkit::{Answer, Plan, Process, until};

pub(crate) const LABEL: &str = "shop-hosts";
/// Short, so that a test sees the end of one.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// A service, and a folder in which commands work.
pub(crate) struct RunnerDesk {
    pub(crate) world: World,
    pub(crate) folder: tempfile::TempDir,
}

/// How a runner is started.
#[derive(Default)]
pub(crate) struct RunnerPlan<'a> {
    /// The port at which the service is reached; its own if there is none.
    pub(crate) port: Option<u16>,
    /// Another address altogether.
    pub(crate) url: Option<&'a str>,
    /// The line at which the process stops.
    pub(crate) failpoint: Option<&'a str>,
    /// Further arguments.
    pub(crate) arguments: Vec<String>,
    /// The environment.
    pub(crate) environment: Vec<(&'a str, String)>,
}

impl RunnerDesk {
    pub(crate) async fn open() -> RunnerDesk {
        RunnerDesk::on(Plan::embedded()).await
    }

    pub(crate) async fn on(plan: Plan) -> RunnerDesk {
        let plan = plan.setting("QM_RUNNERS__LEASE", &format!("{}s", LEASE.as_secs()));
        RunnerDesk { world: plan.start(in_process()).await, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn jobs(&self) -> JobStore {
        self.world.part(0).store.of(&Tenant::parse("acme").unwrap()).jobs()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A job whose command appends a line to `effects`, waits for the file `go` if it is to, and ends.
    pub(crate) fn spec(&self, waits: bool) -> JobSpec {
        let wait = if waits { "while ! test -e go; do sleep 0.02; done;" } else { "" };
        let script = format!("echo done >> effects; echo begun; {wait} echo over");
        self.shell(&script)
    }

    pub(crate) fn shell(&self, script: &str) -> JobSpec {
        JobSpec {
            label: RunnerLabel::parse(LABEL).unwrap(),
            runbook: "shop/seed".into(),
            text: "{}".into(),
            arguments: BTreeMap::new(),
            check: None,
            run: Some(["sh", "-c", script].map(str::to_owned).to_vec()),
            verify: None,
            env: [("TOKEN".to_owned(), JobVariable { value: "tok-hunter22-tok".into(), secret: true })].into(),
            directory: None,
            timeout_ms: 60_000,
            output_bytes: 64 * 1024,
        }
    }

    pub(crate) async fn submit(&self, owner: &str, spec: JobSpec) -> JobId {
        let id = JobId::of(owner);
        let submitted = self.jobs().submit(id, owner, spec, Duration::from_secs(60)).await.unwrap();
        assert!(matches!(submitted, JobSubmission::New(_)), "{submitted:?}");
        id
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.jobs().find(id).await.unwrap().0.unwrap().job
    }

    pub(crate) async fn stands(&self, id: JobId, standing: JobStanding) {
        until(standing.as_str(), async || {
            let (held, now) = self.jobs().find(id).await.unwrap();
            (held.unwrap().job.standing(now) == standing).then_some(())
        })
        .await;
    }

    /// What became of a job, and what it printed. `None`: its runner was lost.
    pub(crate) async fn outcome(&self, id: JobId) -> (Option<JobEnding>, String) {
        let (mut follower, mut printed) = (self.jobs().follow(id), String::new());
        let follow = async {
            loop {
                match follower.next().await.unwrap() {
                    JobNews::Printed(output) => output.into_iter().for_each(|output| printed.push_str(&output.text)),
                    JobNews::Over(ending) => return Some(ending),
                    JobNews::Lost => return None,
                    JobNews::Moved(_) => {}
                    JobNews::Absent => panic!("the job is gone"),
                }
            }
        };
        let ending = testkit::patience::in_time("a job to end", follow).await;
        (ending, printed)
    }

    /// How often the command has had its effect.
    pub(crate) fn effects(&self) -> usize {
        std::fs::read_to_string(self.file("effects")).unwrap_or_default().lines().count()
    }

    pub(crate) async fn effect(&self) {
        until("the command to begin", async || (self.effects() > 0).then_some(())).await;
    }

    pub(crate) fn go(&self) {
        std::fs::write(self.file("go"), "").unwrap();
    }

    /// The token of a runner.
    pub(crate) fn token(&self, labels: &[&str]) -> String {
        self.world.mint().token(|claims| {
            claims.sub = "host-1".into();
            claims.scope = "runner:work".into();
            claims.labels = labels.iter().map(|label| (*label).to_owned()).collect();
        })
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        let path = self.file("runner.token");
        std::fs::write(&path, self.token(&[LABEL])).unwrap();
        path
    }

    /// Starts the real program as a runner that may execute everything, unless its arguments say otherwise.
    #[expect(clippy::disallowed_methods, reason = "the program under test")]
    pub(crate) fn runner(&self, plan: RunnerPlan<'_>) -> Process {
        let port = plan.port.unwrap_or(self.world.address(0).port());
        let url = plan.url.map_or_else(|| format!("http://127.0.0.1:{port}"), str::to_owned);
        let mut command = Command::new(env!("CARGO_BIN_EXE_quartermaster"));
        command.args(["runner", "--url", &url, "--label", LABEL, "--token-file"]);
        command.arg(self.token_file()).arg("--dir").arg(self.folder.path()).args(&plan.arguments);
        if !plan.arguments.iter().any(|word| word == "--only" || word == "--pin") {
            command.args(["--only", "*"]);
        }
        for proxy in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY"] {
            command.env_remove(proxy);
        }
        command.env("OTEL_SDK_DISABLED", "true").envs(plan.environment.iter().cloned());
        if let Some(failpoint) = plan.failpoint {
            command.env("FAILPOINTS", format!("{failpoint}=return"));
        }
        Process::of(command)
    }

    /// Waits until the runner has stopped at this line.
    pub(crate) async fn stopped_at(&self, runner: &Process, name: &str) {
        let line = format!("at failpoint {name}");
        until(&line, async || runner.log().contains(&line).then_some(())).await;
    }

    /// Asks as a runner with this token.
    pub(crate) async fn ask(&self, token: &str, path: &str, body: &Value) -> Answer {
        testkit::Request::new("POST", path)
            .header("Authorization", format!("Bearer {token}"))
            .header("Content-Type", "application/json")
            .body(body.to_string())
            .send(self.world.address(0))
            .await
    }

    /// Claims by hand.
    pub(crate) async fn claim(&self, runner: RunnerId) -> Option<Value> {
        let body = json!({ "runner": runner, "labels": [LABEL] });
        let answer = self.ask(&self.token(&[LABEL]), "/v1/runner/claim", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let offer: Value = serde_json::from_str(&answer.text()).unwrap();
        (!offer["job"].is_null()).then(|| offer["job"].clone())
    }
}

/// Whether a change was written.
pub(crate) fn done(change: JobChange) -> Job {
    match change {
        JobChange::Done(job) => job,
        other @ (JobChange::Refused(_) | JobChange::Absent) => panic!("{other:?}"),
    }
}

pub(crate) fn holder(n: u8) -> JobHolder {
    JobHolder { runner: RunnerId::from_random([n; 16]), principal: domain::Principal::new("by-hand", "runner") }
}

/// Whether no process works in this folder any more.
pub(crate) fn nobody_works_in(folder: &Path) -> bool {
    let folder = std::fs::canonicalize(folder).unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    !processes.into_iter().any(|process| {
        let is_there = std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == folder);
        // The test itself may have been started there; a runner has another folder of its own.
        is_there && process.file_name().to_string_lossy() != std::process::id().to_string()
    })
}
