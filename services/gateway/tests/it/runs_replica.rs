//! A replica of the crash matrix: a process of its own, built like `serve` builds one, whose tenant `yard` has tools
//! that act on the test's target.
//!
//! The product has no tool that may not be repeated yet, and a tool that exists only to be counted has no place in it.
//! So the test program starts itself once more as the replica. Everything but the three tools is the product's.

use crate::runs_target::Target;
use catalog::{
    BoxedFuture, CatalogEntry, ErasedCall, ErasedTool, ParseResult, ProbeResult, Progress, ToolDefinition, ToolFuture,
    ToolPreview, ToolSource,
};
use domain::{Code, Effect, Failure, Tenant, ToolName, ToolOutput, ToolsetName};
use gateway::app::Gateway;
use gateway::server;
use gateway::settings::Settings;
use policy::{Permit, PermitMode};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{Process, Request, Setup, Start};
use tokio::signal::unix::{SignalKind, signal};

/// The tenant whose tools these are.
pub(crate) const TENANT: &str = "yard";
const CONFIG: &str = "YARD_CONFIG";
const TARGET: &str = "YARD_TARGET";

/// What can be done in the yard: one tool for each class of promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Idempotent; nobody can tell afterwards who did it.
    Put,
    /// Not idempotent; the target knows by run id whether it was done.
    Add,
    /// Not idempotent, and nobody can tell afterwards.
    Cast,
}

impl Errand {
    /// All of them.
    pub(crate) const ALL: [Errand; 3] = [Errand::Put, Errand::Add, Errand::Cast];

    /// The tool.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Errand::Put => "yard_put",
            Errand::Add => "yard_add",
            Errand::Cast => "yard_cast",
        }
    }

    fn entry(self, target: SocketAddr) -> Arc<CatalogEntry> {
        let schema = json!({
            "type": "object", "properties": { "lot": { "type": "string" }, "n": { "type": "integer" } },
            "required": ["lot", "n"], "additionalProperties": false,
        });
        let definition = ToolDefinition {
            name: ToolName::parse(self.name()).unwrap(),
            toolset: ToolsetName::parse(TENANT).unwrap(),
            title: self.name().to_owned(),
            description: "A tool of the crash matrix.".to_owned(),
            hint: None,
            source: ToolSource::BuiltIn,
            most: Effect::Change,
            idempotent: self == Errand::Put,
            open_world: true,
            deadline: Duration::from_secs(60),
            outside_text: false,
            reviewed: None,
            waits: false,
            wire: schema.to_string(),
            strict: schema,
            output: None,
            needs_client: None,
        };
        Arc::new(CatalogEntry::new(definition, Arc::new(Tool { errand: self, target })).unwrap())
    }
}

#[derive(Clone, Copy)]
struct Tool {
    errand: Errand,
    target: SocketAddr,
}

impl ErasedTool for Tool {
    fn understand(self: Arc<Self>, arguments: Value) -> ParseResult {
        let lot = arguments["lot"].as_str().unwrap_or_default().to_owned();
        let n = arguments["n"].as_i64().unwrap_or_default();
        Ok((Effect::Change, Some(lot.clone()), Box::new(Job { tool: *self, lot, n })))
    }
}

struct Job {
    tool: Tool,
    lot: String,
    n: i64,
}

impl Job {
    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, Failure> {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let answer = Request::new(method, path).body(body).try_send(self.tool.target).await;
        let lost = || Failure::new(Code::OutcomeUnknown, "the yard did not answer");
        Ok(answer.ok_or_else(lost)?.json())
    }
}

impl ErasedCall for Job {
    fn run<'a>(self: Box<Self>, permit: &'a Permit, _: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move {
            assert_eq!(permit.extent(), PermitMode::Act, "a rehearsal changes nothing");
            let order = json!({
                "tool": self.tool.errand.name(), "lot": self.lot, "n": self.n,
                "run": permit.run().map(|run| run.to_string()), "digest": permit.call().digest(),
            });
            Ok(ToolOutput::structured(self.ask("POST", "/do/it", Some(order)).await?.to_string()))
        })
    }

    fn preview<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, Result<Option<ToolPreview>, Failure>> {
        Box::pin(async move {
            assert_eq!(permit.extent(), PermitMode::Rehearse, "whoever only looks can only look");
            self.ask("GET", &format!("/lots/{}", self.lot), None).await?;
            // Says what is done and not what comes of it, so doing it makes no other picture.
            let summary = format!("{} {} in {}", self.tool.errand.name(), self.n, self.lot);
            Ok(Some(ToolPreview {
                text: summary.clone(),
                fingerprint: summary.clone(),
                summary,
                warnings: Vec::new(),
                arguments: None,
                hidden: Vec::new(),
            }))
        })
    }

    fn probe<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, ProbeResult> {
        Box::pin(async move {
            let Some(run) = permit.run().filter(|_| self.tool.errand == Errand::Add) else {
                return ProbeResult::Unknown;
            };
            match self.ask("GET", &format!("/jobs/{run}"), None).await.ok().as_ref().and_then(Value::as_str) {
                Some("done") => ProbeResult::Done(None),
                Some("absent") => ProbeResult::NotDone,
                Some(_) | None => ProbeResult::Unknown,
            }
        })
    }
}

/// Starts such replicas. Each start takes the next of `stops`, the failpoints that process has; further ones have none.
#[expect(clippy::disallowed_methods, reason = "a test's own process, never part of the service")]
pub(crate) fn replicas(target: &Target, stops: &[&str]) -> Start<Process> {
    let address = target.address();
    let started = Process::started_by(move |setup| {
        // By its inode, so that a build that goes on meanwhile cannot take it away or put another in its place.
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "runs_replica::a_replica_of_the_crash_matrix", "--nocapture"]);
        command.env(CONFIG, &setup.config).env(TARGET, address.to_string());
        command
    });
    stopping(started, stops)
}

/// The same for any way to start a replica.
pub(crate) fn stopping(start: Start<Process>, stops: &[&str]) -> Start<Process> {
    let stops: Mutex<VecDeque<String>> = Mutex::new(stops.iter().map(|&stop| stop.to_owned()).collect());
    Arc::new(move |mut setup: Setup| {
        let stop = stops.lock().unwrap().pop_front().unwrap_or_default();
        setup.environment.push(("FAILPOINTS".to_owned(), stop));
        start(setup)
    })
}

/// The entry of a replica's process. Among the tests, where nobody says what to serve, it sees to it that the errands
/// are of the classes the matrix takes them for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_of_the_crash_matrix() {
    let told = |key: &str| std::env::vars().find(|(known, _)| known == key).map(|(_, value)| value);
    let (Some(config), Some(target)) = (told(CONFIG), told(TARGET)) else {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let repeatable = Errand::ALL.map(|errand| errand.entry(nowhere).definition().idempotent);
        return assert_eq!(repeatable, [true, false, false]);
    };
    let _stops = fail::FailScenario::setup();
    rustls::crypto::aws_lc_rs::default_provider().install_default().unwrap();
    let settings = Settings::read(Some(&PathBuf::from(config)), std::env::vars()).unwrap();
    let telemetry = telemetry::start(&settings.telemetry, "yard", &egress::telemetry_sender().unwrap()).unwrap();
    let gateway = Gateway::build(settings).await.unwrap();
    let target: SocketAddr = target.parse().unwrap();
    assert!(target.ip().is_loopback(), "these tools act on the test's own target only");
    let tools = Errand::ALL.map(|errand| errand.entry(target));
    gateway.tenants.set_fixed(&Tenant::parse(TENANT).unwrap(), tools.to_vec());
    let running = server::start(&gateway).unwrap();
    tracing::info!(address = %running.address, "serving");
    signal(SignalKind::terminate()).unwrap().recv().await;
    running.stop().await;
    drop(telemetry);
}
