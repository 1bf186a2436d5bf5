//! A tenant whose charts come from servers on this machine, and calls made the way the service makes them.

use crate::charts::archives::{chart, sha256};
use crate::charts::server::{Answer, Server};
use catalog::validate::Arguments;
use catalog::{CatalogEntry, ParsedCall, ProbeResult, Progress, ToolPreview};
use domain::{
    Call, CallId, Caller, Code, Effect, Failure, Level, Moment, Principal, RunId, Scopes, SessionMode, Tenant,
    ToolName, ToolUse, ToolsetName,
};
use egress::AddressGuard;
use helm::client::charts::{ChartRepository, Charts, ChartsConfig, Hosts, TenantCharts};
use helm::client::{Helm, HelmConfig};
use helm::tools::{HelmDeps, TOOLSET, list};
use kubernetes::client::{ClusterConfig, ClusterEndpoint, Clusters, SecretText};
use policy::{CallEvidence, Decision, PermitApproval, Policy, decide};
use sandbox::{Sandbox, Seed};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Store;
use target::Cursors;
use tempfile::TempDir;
use testkit::bench::{Opened, evidence_of};

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) other: Server,
    kit: HelmDeps,
    clusters: Clusters,
    pub(crate) folder: TempDir,
    /// Seconds that were added to the clock of cursors.
    pub(crate) later: Arc<AtomicU64>,
    tenant: Tenant,
    entries: Vec<Arc<CatalogEntry>>,
    _sandbox: Sandbox,
}

impl World {
    /// A tenant `acme` with the repository `stable` on one server; charts may come from another one as well.
    pub(crate) async fn new() -> World {
        let (server, other) = (Server::start().await, Server::at("127.0.0.2").await);
        let mut world = World::with(server.clone(), other, &["127.0.0.1", "127.0.0.2"]).await;
        world.configure(vec![repository("stable", &server.url("/stable"))]);
        world
    }

    pub(crate) async fn with(server: Server, other: Server, hosts: &[&str]) -> World {
        // Several tests of one process may come first; whoever does installs the same provider.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("secrets")).unwrap();
        std::fs::write(folder.path().join("secrets/pull"), "robot:canary-secret\n").unwrap();
        let config = store::Config::at("memory:");
        let store = Store::open(&config).await.unwrap();
        let guard = AddressGuard { private: true, ports: vec![server.port, other.port] };
        let hosts = Hosts::new(hosts.iter().copied());
        let charts = ChartsConfig { cache: folder.path().join("charts"), guard, hosts };
        let charts = Charts::new(charts, store.clone()).unwrap();
        let sandbox = Sandbox::start(Seed::shop()).await.unwrap();
        let tenant = Tenant::parse("acme").unwrap();
        let source = ClusterEndpoint::KubeconfigText(SecretText::new(sandbox.kubeconfig()));
        let cluster = ClusterConfig {
            default_namespace: "shop".to_owned(),
            simulated: true,
            ..ClusterConfig::new("main", source)
        };
        let clusters = Clusters::build(&tenant, &[9; 32], vec![cluster], None).unwrap();
        let binary = std::env::var_os("QUARTERMASTER_TEST_HELM").map(PathBuf::from);
        let helm = Helm::new(HelmConfig { binary, ..HelmConfig::new(folder.path().join("helm")) }).await;
        let later = Arc::new(AtomicU64::new(0));
        let added = Arc::clone(&later);
        let clock = move || Moment::from_secs(1_800_000_000 + added.load(Ordering::Relaxed));
        let cursors = Cursors::with_clock([7; 32], Arc::new(clock));
        let kit = HelmDeps::new(helm, charts, store, cursors);
        let mut world =
            World { server, other, kit, clusters, folder, later, tenant, entries: Vec::new(), _sandbox: sandbox };
        world.attach(world.clusters.clone(), TenantCharts::default());
        world
    }

    /// What the tenant's file says.
    pub(crate) fn configure(&mut self, repositories: Vec<ChartRepository>) {
        let secrets = helm::client::charts::SecretsFolder::Folder(self.folder.path().join("secrets"));
        self.attach(self.clusters.clone(), TenantCharts { repositories, secrets });
    }

    fn attach(&mut self, clusters: Clusters, charts: TenantCharts) {
        self.entries =
            list(&self.kit.for_tenant(&self.tenant, clusters, charts), &catalog::CompiledTools::default(), false)
                .unwrap();
    }

    /// The same world, seen by another tenant.
    pub(crate) fn as_tenant(&mut self, slug: &str) {
        self.tenant = Tenant::parse(slug).unwrap();
        self.attach(Clusters::none(), TenantCharts::default());
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

    fn parsed(&self, tool: &str, args: Value) -> Result<(&CatalogEntry, ParsedCall), Failure> {
        let entry = self.entries.iter().find(|entry| entry.name().as_str() == tool).expect("a tool of that name");
        let Value::Object(args) = args else { panic!("arguments are an object") };
        Ok((entry, entry.parse(args)?))
    }

    /// Carries a call out, approved if it is a change. The answer is held to its schema and its bound.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        let (entry, parsed) = self.parsed(tool, args)?;
        let approved = (parsed.effect != Effect::Read).then(approval);
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
    pub(crate) async fn preview(&self, tool: &str, args: Value) -> Result<ToolPreview, Failure> {
        let (_, parsed) = self.parsed(tool, args)?;
        let Decision::Ask(_, rehearsal) = self.judged(tool, &parsed, None) else { panic!("a change is asked about") };
        Ok(parsed.work.preview(&rehearsal).await?.expect("a preview"))
    }

    /// What a look says about a run whose answer was lost.
    pub(crate) async fn probe(&self, tool: &str, args: Value) -> ProbeResult {
        let (_, parsed) = self.parsed(tool, args).unwrap();
        let Decision::Permit(permit) = self.judged(tool, &parsed, Some(approval())) else { panic!("it is permitted") };
        parsed.work.probe(&permit.for_preview()).await
    }

    fn call_of(&self, tool: &str, parsed: &ParsedCall) -> Call {
        let caller = Caller {
            tenant: self.tenant.clone(),
            principal: Principal::new("https://login.example", "agent"),
            scopes: Scopes::parse("tools:write"),
            expires_at: Moment::from_secs(9),
            token: None,
            labels: Vec::new(),
        };
        let used = ToolUse {
            tool: ToolName::parse(tool).unwrap(),
            toolset: ToolsetName::parse(TOOLSET).unwrap(),
            needs: Level::Write,
            effect: parsed.effect,
            about: parsed.about.clone(),
            schema: "",
            arguments: "{}",
        };
        Call::new(CallId::from_random([1; 16]), Arc::new(caller), None, used)
    }

    fn judged(&self, tool: &str, parsed: &ParsedCall, approval: Option<PermitApproval>) -> Decision {
        let policy = Policy { mode: SessionMode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
        let call = self.call_of(tool, parsed);
        let evidence = match approval {
            Some(approval) => evidence_of(&call, &approval),
            None => CallEvidence::of_address(&Opened, [(call.toolset.clone(), Level::Write)].into_iter().collect()),
        };
        decide(&policy, call, &evidence)
    }
}

pub(crate) fn repository(name: &str, url: &str) -> ChartRepository {
    ChartRepository { name: name.to_owned(), url: url.to_owned(), credential: None }
}

fn approval() -> PermitApproval {
    PermitApproval { run: RunId::from_random([3; 16]), by: Vec::new(), at: Moment::from_secs(1_763_280_000) }
}
