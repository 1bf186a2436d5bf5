//! A tenant with a sandbox, and calls made the way the service makes them: parsed, judged, run, checked.

use catalog::validate::Arguments;
use catalog::{CatalogEntry, Progress};
use domain::run::OnReject;
use domain::{
    Call, CallId, Caller, Code, Effect, Failure, Level, Moment, Principal, RunId, Scopes, SessionId, SessionMode,
    Tenant, ToolName, ToolUse, ToolsetName,
};
use kubernetes::client::{ClusterConfig, ClusterEndpoint, Clusters, Force, NamespacePattern, SecretText, Wildcard};
use kubernetes::k8s::{K8sDeps, TOOLSET, list};
use policy::{CallEvidence, Decision, Gate, Pattern, Permit, PermitApproval, Policy, decide};
use sandbox::{Sandbox, Seed};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use target::Cursors;
use testkit::bench::{Opened, evidence_of};

/// A tenant `acme` whose one cluster is a sandbox.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) clusters: Clusters,
    entries: Vec<Arc<CatalogEntry>>,
    /// Seconds that were added to the clock.
    pub(crate) later: Arc<AtomicU64>,
    /// Rules of the tenant, as they stand in its file.
    pub(crate) deny: Vec<&'static str>,
    pub(crate) ask: Vec<&'static str>,
    /// What the caller's token may be used for.
    pub(crate) scopes: &'static str,
}

impl World {
    pub(crate) async fn new(seed: Seed) -> World {
        World::limited(seed, None).await
    }

    /// The shop, with its namespace as the default one.
    pub(crate) async fn shop() -> World {
        World::new(Seed::shop()).await
    }

    /// A tenant that may use only these namespaces.
    pub(crate) async fn limited(seed: Seed, namespaces: Option<&[&str]>) -> World {
        let sandbox = Sandbox::start(seed).await.unwrap();
        let source = ClusterEndpoint::KubeconfigText(SecretText::new(sandbox.kubeconfig()));
        let patterns = |list: &[&str]| list.iter().map(|name| NamespacePattern::parse(name).unwrap()).collect();
        let config = ClusterConfig {
            namespaces: namespaces.map(patterns),
            default_namespace: "shop".to_owned(),
            simulated: true,
            ..ClusterConfig::new("main", source)
        };
        let clusters = Clusters::build(&tenant(), &[9; 32], vec![config], None).unwrap();
        let later = Arc::new(AtomicU64::new(0));
        let added = Arc::clone(&later);
        let clock = move || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            Moment::from_secs(now.as_secs() + added.load(Ordering::Relaxed))
        };
        let kit = K8sDeps { clusters: clusters.clone(), cursors: Cursors::with_clock([7; 32], Arc::new(clock)) };
        let entries = list(&kit, &catalog::CompiledTools::default(), false).unwrap();
        World { sandbox, clusters, entries, later, deny: Vec::new(), ask: Vec::new(), scopes: "tools:write" }
    }

    /// Calls a tool and holds its answer to its schema and to its bound.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Value, Failure> {
        let entry = self.entries.iter().find(|e| e.name().as_str() == tool).expect("a tool of that name");
        let Value::Object(args) = args else { panic!("arguments are an object") };
        let parsed = entry.parse(args)?;
        let definition = entry.definition();
        assert_eq!(parsed.effect, Effect::Read, "{tool} only reads");
        let permit = match self.judged(tool, parsed.effect, parsed.about, None) {
            Decision::Permit(permit) => permit,
            Decision::Deny(reason) => return Err(reason.0),
            Decision::Ask(..) => return Err(Failure::new(Code::PreviewUnavailable, "a person is asked").next("wait")),
        };
        let text = parsed.work.run(&permit, &Progress::default()).await?.structured.expect("a structured result");
        assert!(text.len() <= 24 * 1024, "{tool} answered {} bytes", text.len());
        let answer: Map<String, Value> = serde_json::from_str(&text).unwrap();
        let schema = definition.output.as_ref().expect("an output schema");
        let checked = Arguments::compile(tool, schema).unwrap().check(answer.clone());
        assert!(checked.is_ok(), "{tool} broke its schema: {:?}\n{text}", checked.unwrap_err());
        Ok(Value::Object(answer))
    }

    /// Calls a tool that must fail.
    pub(crate) async fn refused(&self, tool: &str, args: Value) -> Failure {
        match self.call(tool, args).await {
            Err(failure) => {
                assert!(failure.next.is_some() || failure.code == Code::InvalidArgument, "no next step: {failure}");
                failure
            }
            Ok(answer) => panic!("{tool} answered {answer}"),
        }
    }

    fn judged(&self, tool: &str, effect: Effect, about: Option<String>, approval: Option<PermitApproval>) -> Decision {
        let toolset = ToolsetName::parse(TOOLSET).unwrap();
        let caller = Caller {
            tenant: tenant(),
            principal: Principal::new("https://login.example", "agent"),
            scopes: Scopes::parse(self.scopes),
            expires_at: Moment::from_secs(9),
            token: None,
            labels: Vec::new(),
        };
        let used = ToolUse {
            tool: ToolName::parse(tool).unwrap(),
            toolset: toolset.clone(),
            needs: Level::Read,
            effect,
            about,
            schema: "",
            arguments: "{}",
        };
        let session = Some(SessionId::from_random([2; 16]));
        let call = Call::new(CallId::from_random([1; 16]), Arc::new(caller), session, used);
        let evidence = match approval {
            Some(approval) => evidence_of(&call, &approval),
            None => CallEvidence::of_address(&Opened, [(toolset, Level::Write)].into_iter().collect()),
        };
        let pattern = |text: &&str| Pattern::parse(text).unwrap();
        let gate = |text: &&str| Gate { pattern: pattern(text), on_reject: OnReject::Continue };
        let policy = Policy {
            mode: SessionMode::Write,
            deny: self.deny.iter().map(pattern).collect(),
            require_approval: self.ask.iter().map(gate).collect(),
            calls_per_minute: 10,
        };
        decide(&policy, call, &evidence)
    }

    /// Puts an object into the cluster, as an approved run would.
    pub(crate) async fn make(&self, object: Value) {
        let permit = self.approved();
        let cluster = self.clusters.of(&permit, Some("main")).unwrap();
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = cluster.kind(&format!("{}/{}", text("/apiVersion"), text("/kind"))).await.unwrap();
        let namespace = text("/metadata/namespace");
        let namespace = Some(namespace.as_str()).filter(|ns| !ns.is_empty());
        let place = cluster.place(&kind, namespace, Wildcard::Refused).await.unwrap();
        let target = place.object(&text("/metadata/name")).unwrap();
        cluster.write().unwrap().apply(&target, object, Force::Yes).await.unwrap();
    }

    pub(crate) fn approved(&self) -> Permit {
        match self.judged("k8s_apply", Effect::Change, None, Some(approval(RunId::from_random([3; 16])))) {
            Decision::Permit(permit) => permit,
            other @ (Decision::Ask(..) | Decision::Deny(_)) => panic!("{other:?}"),
        }
    }
}

pub(crate) fn tenant() -> Tenant {
    Tenant::parse("acme").unwrap()
}

/// The rows of a list.
pub(crate) fn items(answer: &Value) -> &[Value] {
    answer["items"].as_array().expect("items")
}

/// One text of each row.
pub(crate) fn texts<'a>(answer: &'a Value, key: &str) -> Vec<&'a str> {
    items(answer).iter().filter_map(|row| row[key].as_str()).collect()
}

/// A yes by nobody in particular.
fn approval(run: domain::RunId) -> policy::PermitApproval {
    policy::PermitApproval { run, by: Vec::new(), at: domain::Moment::from_secs(1_763_280_000) }
}
