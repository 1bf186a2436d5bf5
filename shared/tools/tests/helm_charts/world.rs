//! A tenant whose charts come from servers on this machine, and calls made the way the service makes them.

use crate::archives::{chart, sha256};
use crate::server::{Answer, Server};
use catalog::validate::Arguments;
use catalog::{Drawn, Entry, Parsed, Probe, Progress};
use cluster::{ClusterConfig, Clusters, SecretText, Source};
use domain::{
    Call, CallId, Caller, Code, Effect, Failure, Level, Mode, Moment, Principal, RunId, Scopes, Tenant, ToolName,
    ToolsetName,
};
use egress::Guard;
use helm::charts::{Charts, ChartsConfig, Hosts, Repository, TenantCharts};
use helm::{Helm, HelmConfig};
use policy::{Approval, Approved, Decision, Evidence, Policy, decide};
use sandbox::{Sandbox, Seed};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::Store;
use tempfile::TempDir;
use tools::Cursors;
use tools::helm::{HelmKit, TOOLSET, list};

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) other: Server,
    pub(crate) charts: Charts,
    pub(crate) folder: TempDir,
    /// Seconds that were added to the clock of cursors.
    pub(crate) later: Arc<AtomicU64>,
    tenant: Tenant,
    entries: Vec<Arc<Entry>>,
    _sandbox: Sandbox,
}

impl World {
    /// A tenant `acme` with the repository `stable` on one server; charts may come from another one as well.
    pub(crate) async fn new() -> World {
        let (server, other) = (Server::start().await, Server::at("127.0.0.2").await);
        let world = World::with(server.clone(), other, &["127.0.0.1", "127.0.0.2"]).await;
        world.configure(vec![repository("stable", &server.url("/stable"))]);
        world
    }

    pub(crate) async fn with(server: Server, other: Server, hosts: &[&str]) -> World {
        // Several tests of one process may come first; whoever does installs the same provider.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("secrets")).unwrap();
        std::fs::write(folder.path().join("secrets/pull"), "robot:canary-secret\n").unwrap();
        let config = store::Config {
            url: "memory:".to_owned(),
            prefix: "t".to_owned(),
            deadline: Duration::from_secs(5),
            accept_unsafe: false,
            confirm_replicas: store::Confirm::Auto,
        };
        let store = Store::open(&config).await.unwrap();
        let guard = Guard { private: true, ports: vec![server.port, other.port] };
        let hosts = Hosts::new(hosts.iter().copied());
        let charts = ChartsConfig { cache: folder.path().join("charts"), guard, hosts };
        let charts = Charts::new(charts, store.clone()).unwrap();
        let sandbox = Sandbox::start(Seed::shop()).await.unwrap();
        let tenant = Tenant::parse("acme").unwrap();
        let clusters = Clusters::new([9; 32]);
        let source = Source::KubeconfigText(SecretText::new(sandbox.kubeconfig()));
        let cluster = ClusterConfig {
            default_namespace: "shop".to_owned(),
            simulated: true,
            ..ClusterConfig::new("main", source)
        };
        clusters.replace(&tenant, vec![cluster]).unwrap();
        let binary = std::env::var_os("QUARTERMASTER_TEST_HELM").map(PathBuf::from);
        let helm = Helm::new(HelmConfig { binary, ..HelmConfig::new(folder.path().join("helm")) }).await;
        let later = Arc::new(AtomicU64::new(0));
        let added = Arc::clone(&later);
        let clock = move || Moment::from_secs(1_800_000_000 + added.load(Ordering::Relaxed));
        let cursors = Cursors::with_clock([7; 32], Arc::new(clock));
        let kit = HelmKit::new(helm, charts.clone(), clusters, store, cursors);
        let entries = list(&kit, false).unwrap();
        World { server, other, charts, folder, later, tenant, entries, _sandbox: sandbox }
    }

    /// What the tenant's file says.
    pub(crate) fn configure(&self, repositories: Vec<Repository>) {
        let secrets = helm::charts::Secrets::Folder(self.folder.path().join("secrets"));
        self.charts.replace(&self.tenant, TenantCharts { repositories, secrets });
    }

    /// The same world, seen by another tenant.
    pub(crate) fn as_tenant(&mut self, slug: &str) {
        self.tenant = Tenant::parse(slug).unwrap();
    }

    /// Puts a chart into the repository and its line into the index, which then has only this.
    pub(crate) fn publish(&self, name: &str, version: &str, files: &[(&str, &str)]) -> Vec<u8> {
        let archive = chart(name, version, files);
        self.server.put(&format!("/stable/{name}-{version}.tgz"), Answer::ok(archive.clone()));
        let digest = sha256(&archive);
        self.index(&format!(
            "  {name}:\n  - {{name: {name}, version: {version}, appVersion: '7.0', description: A {name}, urls: [{name}-{version}.tgz], digest: {digest}}}\n"
        ));
        archive
    }

    /// The index of the repository.
    pub(crate) fn index(&self, entries: &str) {
        self.server.put("/stable/index.yaml", Answer::ok(format!("apiVersion: v1\nentries:\n{entries}")));
    }

    fn parsed(&self, tool: &str, args: Value) -> Result<(&Entry, Parsed), Failure> {
        let entry = self.entries.iter().find(|entry| entry.name().as_str() == tool).expect("a tool of that name");
        let Value::Object(args) = args else { panic!("arguments are an object") };
        Ok((entry, entry.parse(args)?))
    }

    /// Carries a call out, approved if it is a change. The answer is held to its schema and its bound.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        let (entry, parsed) = self.parsed(tool, args)?;
        let approved =
            (parsed.effect != Effect::Read).then(|| Approved { approval: approval(), digest: "d".to_owned() });
        let Decision::Permit(permit) = self.judged(tool, &parsed, approved) else { panic!("it is permitted") };
        let text = parsed.work.run(&permit, &Progress::default()).await?.structured.expect("a structured result");
        assert!(text.len() <= 24 * 1024, "{tool} answered {} bytes", text.len());
        assert!(!text.contains("canary"), "a secret is shown: {text}");
        let answer: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let schema = entry.definition().output.as_ref().expect("an output schema");
        let checked = Arguments::compile(tool, schema).unwrap().check(answer.clone());
        assert!(checked.is_ok(), "{tool} broke its schema: {:?}\n{text}", checked.unwrap_err());
        Ok(Value::Object(answer))
    }

    /// A call that must fail, with a next step.
    pub(crate) async fn refused(&self, tool: &str, args: Value) -> Failure {
        let failure = self.call(tool, args).await.expect_err("it is refused");
        assert!(failure.next.is_some() || failure.code == Code::InvalidArgument, "no next step: {failure}");
        assert!(!format!("{failure:?}").contains("canary"), "a secret is told: {failure:?}");
        failure
    }

    /// What an approver would be shown.
    pub(crate) async fn preview(&self, tool: &str, args: Value) -> Result<Drawn, Failure> {
        let (_, parsed) = self.parsed(tool, args)?;
        let Decision::Ask(_, rehearsal) = self.judged(tool, &parsed, None) else { panic!("a change is asked about") };
        Ok(parsed.work.preview(&rehearsal).await?.expect("a preview"))
    }

    /// What a look says about a run whose answer was lost.
    pub(crate) async fn probe(&self, tool: &str, args: Value) -> Probe {
        let (_, parsed) = self.parsed(tool, args).unwrap();
        parsed.work.probe(&policy::look(self.call_of(tool, &parsed), approval())).await
    }

    fn call_of(&self, tool: &str, parsed: &Parsed) -> Call {
        Call {
            id: CallId::from_random([1; 16]),
            caller: Arc::new(Caller {
                tenant: self.tenant.clone(),
                principal: Principal { issuer: "https://login.example".into(), subject: "agent".into() },
                scopes: Scopes::parse("tools:write"),
                expires_at: Moment::from_secs(9),
            }),
            session: None,
            tool: ToolName::parse(tool).unwrap(),
            toolset: ToolsetName::parse(TOOLSET).unwrap(),
            needs: Level::Write,
            effect: parsed.effect,
            about: parsed.about.clone(),
            digest: "d".to_owned(),
            tainted: false,
            assignment: std::sync::Arc::default(),
        }
    }

    fn judged(&self, tool: &str, parsed: &Parsed, approved: Option<Approved>) -> Decision {
        let policy = Policy { mode: Mode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
        let evidence = Evidence {
            loaded: [(ToolsetName::parse(TOOLSET).unwrap(), Level::Write)].into_iter().collect(),
            mode: Mode::Write,
            tainted: false,
            calls_this_minute: 1,
            stopped: false,
            approved,
        };
        decide(&policy, self.call_of(tool, parsed), &evidence)
    }
}

pub(crate) fn repository(name: &str, url: &str) -> Repository {
    Repository { name: name.to_owned(), url: url.to_owned(), credential: None }
}

fn approval() -> Approval {
    Approval { run: RunId::from_random([3; 16]), by: Vec::new(), at: Moment::from_secs(1_763_280_000) }
}
