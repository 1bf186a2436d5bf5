//! A tenant with a sandbox where a canary waits, and changes made the way the service makes them.
//!
//! Where `QUARTERMASTER_TEST_KUBECONFIG` names a real cluster with Argo Rollouts, [`World::under_test`] is on that one.

use catalog::{CatalogEntry, ParsedCall, ProbeResult, Progress, ToolPreview};
use domain::{Effect, Failure, Moment, RunId};
use kubernetes::argo::list;
use kubernetes::client::{
    ClusterConfig, ClusterEndpoint, ClusterReach, Clusters, DeleteCascade, DeleteOptions, MaskDetail, NamespacePattern,
    ObjectPatch, ResourceRef, SecretText, Wildcard, WorkloadBounds,
};
use kubernetes::k8s::K8sDeps;
use policy::{Decision, Permit, PermitApproval};
use sandbox::{Sandbox, Seed};
use serde_json::Value;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use target::Cursors;
use testkit::bench::{call, call_of, fits, judged, looking, tenant};

/// A tenant `acme` with one cluster, and a default namespace in it.
pub(crate) struct World {
    sandbox: Option<Sandbox>,
    namespace: String,
    /// As somebody else sees it, whom the tenant's bounds do not hold.
    clusters: Clusters,
    entries: Vec<Arc<CatalogEntry>>,
}

pub(crate) fn run() -> RunId {
    RunId::from_random([3; 16])
}

pub(crate) fn now() -> Moment {
    Moment::from_secs(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs())
}

/// Somebody's yes, given now.
pub(crate) fn approval(run: RunId) -> PermitApproval {
    PermitApproval { run, by: Vec::new(), at: now() }
}

impl World {
    /// The shop, where the canary `search` waits at its third step.
    pub(crate) async fn shop() -> World {
        World::with(Seed::shop(), |_| {}).await
    }

    pub(crate) async fn with(seed: Seed, adjust: impl FnOnce(&mut ClusterConfig)) -> World {
        let sandbox = Sandbox::start(seed).await.unwrap();
        let source = ClusterEndpoint::KubeconfigText(SecretText::new(sandbox.kubeconfig()));
        let mut config = ClusterConfig {
            default_namespace: "shop".to_owned(),
            simulated: true,
            ..ClusterConfig::new("main", source)
        };
        adjust(&mut config);
        World::of(Some(sandbox), config)
    }

    /// The cluster under test, and a namespace of the test's own in it.
    pub(crate) async fn under_test() -> World {
        let namespace = format!("argo-{:016x}", RandomState::new().hash_one(0));
        #[expect(clippy::disallowed_methods, reason = "asks whoever runs the test, not the service's settings")]
        let real = std::env::var("QUARTERMASTER_TEST_KUBECONFIG").ok().filter(|path| !path.is_empty());
        let world = match real {
            None => World::with(Seed::empty(), |config| config.default_namespace.clone_from(&namespace)).await,
            Some(path) => {
                let source = ClusterEndpoint::SecretFile { path: path.into(), reach: ClusterReach::of_operator(true) };
                let config =
                    ClusterConfig { default_namespace: namespace.clone(), ..ClusterConfig::new("main", source) };
                World::of(None, config)
            }
        };
        let metadata = serde_json::json!({ "name": namespace });
        world.make(serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })).await;
        world
    }

    fn of(sandbox: Option<Sandbox>, config: ClusterConfig) -> World {
        let namespace = config.default_namespace.clone();
        let clusters = |config| Clusters::build(&tenant(), &[9; 32], vec![config], None).unwrap();
        let kit = K8sDeps { clusters: clusters(config.clone()), cursors: Cursors::with_clock([7; 32], Arc::new(now)) };
        let clusters = clusters(ClusterConfig { bounds: WorkloadBounds::default(), ..config });
        World { sandbox, namespace, clusters, entries: list(&kit, &catalog::CompiledTools::default(), false).unwrap() }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        self.sandbox.as_ref().expect("this world has a sandbox")
    }

    /// Takes the namespace away from a cluster that stays.
    pub(crate) async fn tidy(&self) {
        let permit = self.insider();
        let cluster = self.clusters.of(&permit, None).unwrap();
        let kind = cluster.kind("v1/Namespace").await.unwrap();
        let target = cluster.place(&kind, None, Wildcard::Refused).await.unwrap().object(&self.namespace).unwrap();
        let how = DeleteOptions { uid: None, cascade: DeleteCascade::Background, grace_s: None };
        cluster.write().unwrap().delete(&target, &how).await.unwrap();
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
        Ok(parsed.work.preview(&rehearsal).await?.expect("a preview"))
    }

    /// Carries it out: approved now, or at once if it only looks.
    pub(crate) async fn run(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        self.run_by(tool, args, approval(run())).await
    }

    /// Carries it out by this yes. The answer is held to its schema and its bound.
    pub(crate) async fn run_by(&self, tool: &str, args: Value, approval: PermitApproval) -> Result<Value, Failure> {
        let (entry, parsed) = self.parsed(tool, args)?;
        let approved = (parsed.effect != Effect::Read).then_some(approval);
        let Decision::Permit(permit) = judged(call(tool, &parsed), approved) else { panic!("it is permitted") };
        let text = parsed.work.run(&permit, &Progress::default()).await?.structured.expect("a structured result");
        assert!(text.len() <= 24 * 1024, "{tool} answered {} bytes", text.len());
        fits(entry, &text);
        Ok(serde_json::from_str(&text).unwrap())
    }

    /// What a look says about a run whose answer was lost. A result it tells is held to the schema.
    pub(crate) async fn probe(&self, tool: &str, args: Value, approval: PermitApproval) -> ProbeResult {
        let (entry, parsed) = self.parsed(tool, args).unwrap();
        let probe = parsed.work.probe(&looking(call(tool, &parsed), approval)).await;
        if let ProbeResult::Done(Some(text)) = &probe {
            fits(entry, text);
        }
        probe
    }

    /// One object, masked but whole.
    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        let permit = self.insider();
        let cluster = self.clusters.of(&permit, None).unwrap();
        let target = target(&cluster, kind, name).await;
        cluster.get(&target, MaskDetail::Full).await.unwrap()
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

    /// Makes an object in the default namespace.
    pub(crate) async fn make(&self, object: Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let permit = self.insider();
        let cluster = self.clusters.of(&permit, None).unwrap();
        let kind = cluster.kind(&format!("{}/{}", text("/apiVersion"), text("/kind"))).await.unwrap();
        let place = cluster.place(&kind, None, Wildcard::Refused).await.unwrap();
        cluster.write().unwrap().create(&place, object).await.unwrap();
    }

    /// A Rollout as `argo_get` shows it.
    pub(crate) async fn rollout(&self, name: &str) -> Value {
        self.run("argo_get", serde_json::json!({ "name": name })).await.unwrap()
    }

    /// Waits until a Rollout is in a phase, and the second it got there is over.
    pub(crate) async fn becomes(&self, name: &str, phase: &str) -> Value {
        let mut shown = Value::Null;
        until(phase, async || {
            shown = self.rollout(name).await;
            shown["phase"] == phase
        })
        .await;
        let came = now();
        until("the next second", async || now() > came).await;
        shown
    }

    fn insider(&self) -> Permit {
        let approved = approval(RunId::from_random([200; 16]));
        match judged(call_of("argo_any", Effect::Change, None), Some(approved)) {
            Decision::Permit(permit) => permit,
            other @ (Decision::Ask(..) | Decision::Deny(_)) => panic!("{other:?}"),
        }
    }

    /// What was changed in the cluster from outside since a number of changes.
    pub(crate) fn writes_since(&self, before: usize) -> Vec<String> {
        self.sandbox().writes().split_off(before)
    }

    pub(crate) fn writes(&self) -> usize {
        self.sandbox().writes().len()
    }
}

/// Only these namespaces.
pub(crate) fn only(namespaces: &[&str]) -> Option<Vec<NamespacePattern>> {
    Some(namespaces.iter().map(|name| NamespacePattern::parse(name).unwrap()).collect())
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !look().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

async fn target(cluster: &kubernetes::client::Cluster<'_>, kind: &str, name: &str) -> ResourceRef {
    let kind = cluster.kind(kind).await.unwrap();
    cluster.place(&kind, None, Wildcard::Refused).await.unwrap().object(name).unwrap()
}
