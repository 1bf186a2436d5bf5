//! A tenant with a cluster and a chart repository, and changes made the way the service makes them: shown, signed for,
//! carried out, probed.

use crate::charts::archives::{chart, sha256};
use crate::charts::server::{Answer, Server};
use crate::releases::chart::files;
use catalog::{CatalogEntry, ParsedCall, ProbeResult, Progress, ToolPreview};
use domain::{Effect, Failure, Moment, RunId};
use egress::AddressGuard;
use helm::client::charts::{ChartRepository, Charts, ChartsConfig, Hosts, TenantCharts};
use helm::client::{Helm, HelmConfig};
use helm::tools::{HelmDeps, list};
use kubernetes::client::{ClusterConfig, ClusterEndpoint, Clusters, NamespacePattern, SecretText, Wildcard};
use policy::{Decision, PermitApproval};
use sandbox::{Sandbox, Seed};
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::Store;
use target::Cursors;
use tempfile::TempDir;
use testkit::bench::{call, call_of, fits, judged, looking, tenant};

pub(crate) struct World {
    _sandbox: Option<Sandbox>,
    pub(crate) namespace: String,
    pub(crate) server: Server,
    pub(crate) folder: TempDir,
    clusters: Clusters,
    /// Seconds that were added to the clock.
    later: Arc<AtomicU64>,
    pub(crate) entries: Vec<Arc<CatalogEntry>>,
    kit: HelmDeps,
}

fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|name| !name.is_empty()).map(PathBuf::from)
}

impl World {
    /// A namespace of the test's own, and nothing in it; nothing at all without a helm binary.
    pub(crate) async fn new() -> Option<World> {
        World::with(|_, _| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut ClusterConfig, &str)) -> Option<World> {
        let Some(binary) = named("QUARTERMASTER_TEST_HELM") else {
            eprintln!("SKIPPED: QUARTERMASTER_TEST_HELM names no helm binary; see `deploy/testbed helm`");
            return None;
        };
        // Several tests of one process may come first; whoever does installs the same provider.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let folder = TempDir::new().unwrap();
        let namespace = format!("helm-{:016x}", RandomState::new().hash_one(0));
        let (source, sandbox) = match named("QUARTERMASTER_TEST_KUBECONFIG") {
            Some(file) => (ClusterEndpoint::Kubeconfig(file), None),
            None => {
                let sandbox = Sandbox::start(Seed::empty()).await.unwrap();
                (ClusterEndpoint::KubeconfigText(SecretText::new(sandbox.kubeconfig())), Some(sandbox))
            }
        };
        let plain = ClusterConfig {
            default_namespace: namespace.clone(),
            simulated: sandbox.is_some(),
            ..ClusterConfig::new("main", source)
        };
        let clusters = Clusters::build(&tenant(), &[9; 32], vec![plain.clone()], None).unwrap();
        let server = Server::start().await;
        let store = Store::open(&memory()).await.unwrap();
        let guard = AddressGuard { private: true, ports: vec![server.port] };
        let charts = ChartsConfig { cache: folder.path().join("charts"), guard, hosts: Hosts::new(["127.0.0.1"]) };
        let charts = Charts::new(charts, store.clone()).unwrap();
        let repository = ChartRepository { name: "stable".into(), url: server.url("/stable"), credential: None };
        let own = TenantCharts { repositories: vec![repository], ..TenantCharts::default() };
        let helm = HelmConfig { binary: Some(binary), ..HelmConfig::new(folder.path().join("helm")) };
        let helm = Helm::new(helm).await;
        helm.available().unwrap();
        let later = Arc::new(AtomicU64::new(0));
        let added = Arc::clone(&later);
        let clock = move || now().plus(Duration::from_secs(added.load(Ordering::Relaxed)));
        let cursors = Cursors::with_clock([7; 32], Arc::new(clock));
        let kit = HelmDeps::new(helm, charts, store, cursors);
        let entries = Vec::new();
        let mut world = World { _sandbox: sandbox, namespace, server, folder, clusters, later, entries, kit };
        world.make("v1", "Namespace", json!({ "metadata": { "name": world.namespace } })).await;
        let mut adjusted = plain;
        adjust(&mut adjusted, &world.namespace);
        world.clusters = Clusters::build(&tenant(), &[9; 32], vec![adjusted], Some(&world.clusters)).unwrap();
        world.kit = world.kit.for_tenant(&tenant(), world.clusters.clone(), own);
        world.entries = list(&world.kit, &catalog::CompiledTools::default(), false).unwrap();
        world.publish(&["1.0.0"]);
        Some(world)
    }

    /// The same tenant, whose values may hold templates.
    pub(crate) fn with_templates_in_values(mut self) -> World {
        self.kit = self.kit.clone().with_templates_in_values(true);
        self.entries = list(&self.kit, &catalog::CompiledTools::default(), false).unwrap();
        self
    }

    /// A tenant that may use its own namespace only.
    pub(crate) async fn fenced() -> Option<World> {
        World::with(|config, namespace| config.namespaces = Some(vec![NamespacePattern::parse(namespace).unwrap()]))
            .await
    }

    /// Puts these versions of the chart into the repository.
    pub(crate) fn publish(&self, versions: &[&str]) {
        self.publish_with(&versions.iter().map(|version| (*version, &[][..])).collect::<Vec<_>>());
    }

    /// Puts versions into the repository that have these files besides the chart's own.
    pub(crate) fn publish_with(&self, versions: &[(&str, &[(&str, &str)])]) {
        let mut lines = String::new();
        for (version, more) in versions {
            let archive = chart("web", version, &[files().as_slice(), more].concat());
            let digest = sha256(&archive);
            self.server.put(&format!("/stable/web-{version}.tgz"), Answer::ok(archive));
            lines.push_str(&format!(
                "  - {{name: web, version: {version}, appVersion: '7.0', urls: [web-{version}.tgz], digest: {digest}}}\n"
            ));
        }
        self.server.put("/stable/index.yaml", Answer::ok(format!("apiVersion: v1\nentries:\n  web:\n{lines}")));
    }

    /// Lets time go by, by the clock of ages.
    pub(crate) fn pass(&self, seconds: u64) {
        self.later.fetch_add(seconds, Ordering::Relaxed);
    }

    fn parsed(&self, tool: &str, args: Value) -> Result<(&CatalogEntry, ParsedCall), Failure> {
        let entry = self.entries.iter().find(|entry| entry.name().as_str() == tool).expect("a tool of that name");
        let Value::Object(args) = args else { panic!("arguments are an object") };
        Ok((entry, entry.parse(args)?))
    }

    /// What an approver would be shown.
    pub(crate) async fn preview(&self, tool: &str, args: Value) -> Result<ToolPreview, Failure> {
        let (_, parsed) = self.parsed(tool, args)?;
        let Decision::Ask(_, rehearsal) = judged(call(tool, &parsed), None) else { panic!("a change is asked about") };
        let drawn = parsed.work.preview(&rehearsal).await.inspect_err(clean)?.expect("a preview");
        // What a new release would hold is shown as it will run; what the standing one holds is known to be secret.
        let known = tool == "helm_install" || !format!("{drawn:?}").contains("canary");
        assert!(known, "a secret is shown: {drawn:?}");
        Ok(drawn)
    }

    /// Carries it out: approved, or at once if it only looks. The answer is held to its schema and its bound.
    pub(crate) async fn run(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        self.run_as(tool, args, RunId::from_random([3; 16])).await
    }

    pub(crate) async fn run_as(&self, tool: &str, args: Value, run: RunId) -> Result<Value, Failure> {
        let (entry, parsed) = self.parsed(tool, args)?;
        let approved = (parsed.effect != Effect::Read).then(|| approval(run));
        let Decision::Permit(permit) = judged(call(tool, &parsed), approved) else { panic!("it is permitted") };
        let output = parsed.work.run(&permit, &Progress::default()).await.inspect_err(clean)?;
        let text = output.structured.expect("a structured result");
        assert!(text.len() <= 24 * 1024, "{tool} answered {} bytes", text.len());
        assert!(!text.contains("canary"), "a secret is shown: {text}");
        fits(entry, &text);
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// What a look says about a run whose answer was lost.
    pub(crate) async fn probe(&self, tool: &str, args: Value, run: RunId) -> ProbeResult {
        let (_, parsed) = self.parsed(tool, args).unwrap();
        parsed.work.probe(&looking(call(tool, &parsed), approval(run))).await
    }

    /// Makes an object, as somebody else would.
    pub(crate) async fn make(&self, version: &str, kind: &str, object: Value) {
        let approved = approval(RunId::from_random([200; 16]));
        let Decision::Permit(permit) = judged(call_of("helm_any", Effect::Change, None), Some(approved)) else {
            panic!()
        };
        let cluster = self.clusters.of(&permit, None).unwrap();
        let found = cluster.kind(&format!("{version}/{kind}")).await.unwrap();
        let place = cluster.place(&found, None, Wildcard::Refused).await.unwrap();
        cluster.write().unwrap().create(&place, object).await.unwrap();
    }

    /// The helm processes this world started that are about this subcommand.
    pub(crate) fn children(&self, subcommand: &str) -> Vec<i32> {
        let ours = self.folder.path().canonicalize().unwrap();
        let about = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<String> = line.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
            words.get(1).is_some_and(|word| word == subcommand)
                && words.iter().any(|word| word.contains(&*ours.to_string_lossy()))
        };
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(about).collect()
    }
}

/// No failure tells a secret.
fn clean(failure: &Failure) {
    assert!(!format!("{failure:?}").contains("canary"), "a secret is told: {failure:?}");
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut look: impl FnMut() -> bool) {
    let waiting = async {
        while !look() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Moment::from_millis(u64::try_from(since.as_millis()).unwrap())
}

fn approval(run: RunId) -> PermitApproval {
    PermitApproval { run, by: Vec::new(), at: Moment::from_secs(1_700_000_000) }
}

fn memory() -> store::Config {
    store::Config::at("memory:")
}
