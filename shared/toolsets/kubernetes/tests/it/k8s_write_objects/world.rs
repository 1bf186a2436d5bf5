//! A tenant with a sandbox, and changes made the way the service makes them: shown, signed for, carried out, probed.

use catalog::{CatalogEntry, ParsedCall, ProbeResult, Progress, ToolPreview};
use domain::{Effect, Failure, Moment, RunId};
use kubernetes::client::{
    ClusterConfig, ClusterEndpoint, Clusters, MaskDetail, NamespacePattern, ObjectPatch, ResourceRef, SecretText,
    Wildcard,
};
use kubernetes::k8s::{K8sDeps, list};
use policy::{Decision, Permit};
use sandbox::{ClusterFault, ClusterHarm, Sandbox, Seed};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use target::Cursors;
use testkit::bench::{call, call_of, fits, judged, looking, tenant};

/// A tenant `acme` whose one cluster is a sandbox, and whose default namespace is the shop.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    clusters: Clusters,
    entries: Vec<Arc<CatalogEntry>>,
}

/// The run that is signed for, unless a test says otherwise.
pub(crate) fn run() -> RunId {
    RunId::from_random([3; 16])
}

pub(crate) fn another_run() -> RunId {
    RunId::from_random([4; 16])
}

impl World {
    pub(crate) async fn shop() -> World {
        World::with(|_| {}).await
    }

    /// A tenant that may use only these namespaces.
    pub(crate) async fn limited(namespaces: &[&str]) -> World {
        let patterns = namespaces.iter().map(|name| NamespacePattern::parse(name).unwrap()).collect();
        World::with(|config| config.namespaces = Some(patterns)).await
    }

    /// A tenant in whose shop nothing is changed.
    pub(crate) async fn protected() -> World {
        World::with(|config| config.protected = vec![NamespacePattern::parse("shop").unwrap()]).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut ClusterConfig)) -> World {
        let sandbox = Sandbox::start(Seed::shop()).await.unwrap();
        let source = ClusterEndpoint::KubeconfigText(SecretText::new(sandbox.kubeconfig()));
        let mut config = ClusterConfig {
            default_namespace: "shop".to_owned(),
            simulated: true,
            ..ClusterConfig::new("main", source)
        };
        adjust(&mut config);
        let clusters = Clusters::build(&tenant(), &[9; 32], vec![config], None).unwrap();
        let clock = || Moment::from_secs(1_800_000_000);
        let kit = K8sDeps { clusters: clusters.clone(), cursors: Cursors::with_clock([7; 32], Arc::new(clock)) };
        World { sandbox, clusters, entries: list(&kit, &catalog::CompiledTools::default(), false).unwrap() }
    }

    fn parsed(&self, tool: &str, args: Value) -> Result<(&CatalogEntry, ParsedCall), Failure> {
        let entry = self.entries.iter().find(|entry| entry.name().as_str() == tool).expect("a tool of that name");
        let Value::Object(args) = args else { panic!("arguments are an object") };
        Ok((entry, entry.parse(args)?))
    }

    /// What an approver would be shown.
    pub(crate) async fn preview(&self, tool: &str, args: Value) -> Result<ToolPreview, Failure> {
        let (_, parsed) = self.parsed(tool, args)?;
        assert_ne!(parsed.effect, Effect::Read, "nobody is asked about a look");
        let Decision::Ask(_, rehearsal) = judged(call(tool, &parsed), None) else { panic!("a change is asked about") };
        Ok(parsed.work.preview(&rehearsal).await?.expect("a preview"))
    }

    /// The last look before an approved run is carried out.
    pub(crate) async fn last_look(&self, tool: &str, args: Value) -> Result<ToolPreview, Failure> {
        let (_, parsed) = self.parsed(tool, args)?;
        let look = looking(call(tool, &parsed), approval(run()));
        Ok(parsed.work.preview(&look).await?.expect("a preview"))
    }

    /// Carries it out: approved, or at once if it only looks. The answer is held to its schema and its bound.
    pub(crate) async fn run(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        self.run_as(tool, args, run()).await
    }

    pub(crate) async fn run_as(&self, tool: &str, args: Value, run: RunId) -> Result<Value, Failure> {
        let (entry, parsed) = self.parsed(tool, args)?;
        let approved = (parsed.effect != Effect::Read).then(|| approval(run));
        let Decision::Permit(permit) = judged(call(tool, &parsed), approved) else { panic!("it is permitted") };
        let text = parsed.work.run(&permit, &Progress::default()).await?.structured.expect("a structured result");
        assert!(text.len() <= 24 * 1024, "{tool} answered {} bytes", text.len());
        fits(entry, &text);
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// What a look says about a run whose answer was lost. A result it tells is held to the schema.
    pub(crate) async fn probe(&self, tool: &str, args: Value, run: RunId) -> ProbeResult {
        let (entry, parsed) = self.parsed(tool, args).unwrap();
        let look = looking(call(tool, &parsed), approval(run));
        let probe = parsed.work.probe(&look).await;
        if let ProbeResult::Done(Some(text)) = &probe {
            fits(entry, text);
        }
        probe
    }

    /// One object, masked but whole; nothing if it is not there.
    pub(crate) async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        let permit = self.insider();
        let cluster = self.clusters.of(&permit, None).unwrap();
        let target = target(&cluster, kind, name).await;
        cluster.find(&target, MaskDetail::Full).await.unwrap()
    }

    /// The same, where it must be there.
    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        self.find(kind, name).await.unwrap_or_else(|| panic!("{kind} {name} is there"))
    }

    /// A change by somebody else.
    pub(crate) async fn change(&self, kind: &str, name: &str, patch: Value) {
        let permit = self.insider();
        let cluster = self.clusters.of(&permit, None).unwrap();
        let target = target(&cluster, kind, name).await;
        cluster.write().unwrap().patch(&target, ObjectPatch::Merge(patch.into()), None).await.unwrap();
    }

    /// A change of an object's status, as its controller makes it.
    pub(crate) async fn change_status(&self, kind: &str, name: &str, patch: Value) {
        let permit = self.insider();
        let cluster = self.clusters.of(&permit, None).unwrap();
        let target = target(&cluster, kind, name).await;
        cluster.write().unwrap().patch_status(&target, ObjectPatch::Merge(patch.into()), None).await.unwrap();
    }

    /// Makes an object.
    pub(crate) async fn make(&self, object: Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let permit = self.insider();
        let cluster = self.clusters.of(&permit, None).unwrap();
        let kind = cluster.kind(&format!("{}/{}", text("/apiVersion"), text("/kind"))).await.unwrap();
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let place = cluster.place(&kind, namespace, Wildcard::Refused).await.unwrap();
        cluster.write().unwrap().create(&place, object).await.unwrap();
    }

    /// Lets a write wait at the cluster's door until somebody else has changed something.
    pub(crate) async fn meanwhile<T>(&self, path: &str, write: impl Future<Output = T>, change: impl Future) -> T {
        let harm = ClusterHarm::Delay(Duration::from_secs(3));
        self.sandbox.plant(ClusterFault { method: Some("PATCH".into()), path: path.to_owned(), times: 1, harm });
        let arrived = |request: &String| request.starts_with("PATCH") && request.contains(path);
        let changed = async {
            until("the write arrives", || async { self.sandbox.requests().iter().any(arrived) }).await;
            change.await;
        };
        tokio::join!(write, changed).0
    }

    fn insider(&self) -> Permit {
        let call = call_of("k8s_any", Effect::Change, None);
        let approved = approval(RunId::from_random([200; 16]));
        match judged(call, Some(approved)) {
            Decision::Permit(permit) => permit,
            other @ (Decision::Ask(..) | Decision::Deny(_)) => panic!("{other:?}"),
        }
    }

    /// What was changed in the cluster since a number of changes.
    pub(crate) fn writes_since(&self, before: usize) -> Vec<String> {
        self.sandbox.writes().split_off(before)
    }

    /// How many changes there were.
    pub(crate) fn writes(&self) -> usize {
        self.sandbox.writes().len()
    }
}

/// Waits until something is so.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    let waiting = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

async fn target(cluster: &kubernetes::client::Cluster<'_>, kind: &str, name: &str) -> ResourceRef {
    let kind = cluster.kind(kind).await.unwrap();
    let (namespace, name) = name.split_once('/').map_or((None, name), |(namespace, name)| (Some(namespace), name));
    cluster.place(&kind, namespace, Wildcard::Refused).await.unwrap().object(name).unwrap()
}

/// A yes by nobody in particular, to each run at a moment of its own, all within one second.
pub(crate) fn approval(run: RunId) -> policy::PermitApproval {
    let own = run.to_string().bytes().map(u64::from).sum::<u64>() % 1000;
    policy::PermitApproval { run, by: Vec::new(), at: domain::Moment::from_millis(1_763_280_000_000 + own) }
}
