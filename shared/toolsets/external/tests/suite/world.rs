//! A server, the replicas that use it, and the people and agents of one tenant.

use crate::double::{Asked, Double, Reply, Speaks};
use catalog::{CatalogEntry, ParsedCall, Progress};
use domain::run::{self, Run, Verdict};
use domain::{
    Assignment, Call, CallId, Caller, Effect, Failure, Moment, Principal, RunId, Scopes, SessionMode, Tenant,
    ToolOutput, ToolUse,
};
use egress::{AddressGuard, Url};
use external::{
    Accept, ExternalServerConfig, HttpTransport, LinkTarget, ServerLimits, ServerStanding, TargetReach, ToolStanding,
    TrustedEffects, Upstreams, UpstreamsConfig,
};
use policy::{CallEvidence, Decision, Permit, Policy, decide};
use redact::{Scrubber, SecretText};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Store;
use testkit::bench::Opened;

pub(crate) const SECRET: &str = "canary-correct-horse";
/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(30);

type Answer = Box<dyn Fn(&Asked) -> Option<Reply> + Send + Sync>;

/// A server whose list a test can change.
pub(crate) struct Server {
    pub(crate) double: Double,
    tools: Arc<Mutex<Vec<Value>>>,
    answer: Arc<Mutex<Answer>>,
}

impl Server {
    pub(crate) async fn offering(tools: Vec<Value>) -> Server {
        Server::speaking(Speaks::Legacy, tools).await
    }

    pub(crate) async fn speaking(speaks: Speaks, tools: Vec<Value>) -> Server {
        let tools = Arc::new(Mutex::new(tools));
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(Box::new(|_| None)));
        let (listed, answered) = (Arc::clone(&tools), Arc::clone(&answer));
        let double = Double::start(speaks, move |asked| {
            if let Some(reply) = answered.lock().unwrap()(asked) {
                return Some(reply);
            }
            let list = || json!({ "resultType": "complete", "tools": *listed.lock().unwrap() });
            (asked.method() == "tools/list").then(|| Reply::result(asked, &list()))
        })
        .await;
        Server { double, tools, answer }
    }

    pub(crate) fn offer(&self, tools: Vec<Value>) {
        *self.tools.lock().unwrap() = tools;
    }

    pub(crate) fn answer(&self, answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Box::new(answer);
    }

    pub(crate) fn lists(&self) -> usize {
        self.double.count("tools/list")
    }

    pub(crate) fn calls(&self) -> Vec<Value> {
        let asked = self.double.asked().into_iter().filter(|asked| asked.method() == "tools/call");
        asked.map(|asked| asked.body["params"].clone()).collect()
    }

    /// The server as a tenant uses it, before a test says otherwise.
    pub(crate) fn config(&self) -> ExternalServerConfig {
        let port = self.double.port;
        let target = move |assignment: &Assignment| {
            let given = assignment.params.get("wiki").cloned().unwrap_or_default();
            Ok(LinkTarget {
                reach: TargetReach::Http {
                    url: Url::parse(&format!("http://127.0.0.1:{port}/mcp")).unwrap(),
                    transport: HttpTransport::Streamable,
                },
                headers: vec![(egress::header::AUTHORIZATION, SecretText::new(format!("Bearer {SECRET}")))],
                params: BTreeMap::from([("space".to_owned(), "docs".to_owned())]).into_iter().chain(given).collect(),
                guard: AddressGuard { private: true, ports: vec![port] },
                credentials: None,
            })
        };
        let scrubber = Arc::new(Scrubber::new([SecretText::new(SECRET)]));
        ExternalServerConfig {
            id: "wiki".into(),
            description: Some("The wiki.".into()),
            target: Arc::new(target),
            scrubber: Arc::new(move || Arc::clone(&scrubber)),
            limits: ServerLimits::default(),
            allow: None,
            vouch: TrustedEffects { annotations: true, effects: Vec::new() },
            accept: Accept::First,
            own: false,
        }
    }
}

/// One replica.
pub(crate) struct Replica {
    pub(crate) store: Store,
    pub(crate) upstreams: Upstreams,
}

impl Replica {
    pub(crate) async fn alone() -> Replica {
        Replica::on("memory:").await
    }

    pub(crate) async fn on(url: &str) -> Replica {
        Replica::opened(url, false).await
    }

    /// One whose records are sealed, as in the service.
    pub(crate) async fn sealed_on(url: &str) -> Replica {
        Replica::opened(url, true).await
    }

    async fn opened(url: &str, sealed: bool) -> Replica {
        // Whoever comes first in this process installs the same provider.
        rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
        let config = store::Config::at(url);
        let cipher = || Arc::new(vault::RecordSealer::new(&[7; 32], &[]).unwrap());
        let store = match sealed {
            true => Store::open_sealed(&config, cipher()).await.unwrap(),
            false => Store::open(&config).await.unwrap(),
        };
        let upstreams =
            Upstreams::new(UpstreamsConfig { store: store.clone(), reserved: BTreeSet::new(), lookup: None });
        Replica { store, upstreams }
    }

    /// Uses this server and no other, and has looked at it.
    pub(crate) async fn using(self, config: ExternalServerConfig) -> Replica {
        self.upstreams.replace(&tenant(), vec![config]);
        self.look().await;
        self
    }

    pub(crate) async fn look(&self) {
        self.upstreams.refresh(&tenant(), None).await;
    }

    /// Looks with a configuration whose lists are old at once, so that the server is asked.
    pub(crate) async fn relist(&self, config: &ExternalServerConfig) {
        let mut eager = config.clone();
        eager.limits.refresh = Duration::ZERO;
        self.upstreams.replace(&tenant(), vec![eager]);
        self.look().await;
        self.upstreams.replace(&tenant(), vec![config.clone()]);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.upstreams.entries(&tenant()).iter().map(|entry| entry.name().to_string()).collect()
    }

    pub(crate) fn entry(&self, name: &str) -> Arc<CatalogEntry> {
        let found = self.upstreams.entries(&tenant()).into_iter().find(|entry| entry.name().as_str() == name);
        found.unwrap_or_else(|| panic!("{name} should be offered; offered are {:?}", self.names()))
    }

    pub(crate) async fn standing(&self) -> ServerStanding {
        self.upstreams.standing(&tenant()).await.unwrap().remove(0)
    }

    pub(crate) async fn tool(&self, name: &str) -> ToolStanding {
        let tools = self.standing().await.tools;
        tools.iter().find(|tool| tool.upstream_name == name).cloned().unwrap_or_else(|| panic!("{name} in {tools:?}"))
    }
}

pub(crate) fn tenant() -> Tenant {
    Tenant::parse("acme").unwrap()
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "annotations": { "readOnlyHint": true },
        "inputSchema": { "type": "object", "properties": { "q": { "type": "string", "maxLength": 200_000 } } } })
}

pub(crate) fn admin() -> Caller {
    Caller {
        tenant: tenant(),
        principal: Principal::new("https://login.example", "ada"),
        scopes: Scopes::parse("tenant:admin"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    }
}

/// An agent's call as policy lets it through: a read at once, a change with a run behind it.
pub(crate) fn permit(entry: &CatalogEntry, parsed: &ParsedCall, assignment: Assignment) -> Permit {
    granted(entry, parsed, assignment, true)
}

/// The permit a person's preview is drawn with.
pub(crate) fn rehearsal(entry: &CatalogEntry, parsed: &ParsedCall, assignment: Assignment) -> Permit {
    granted(entry, parsed, assignment, false)
}

fn granted(entry: &CatalogEntry, parsed: &ParsedCall, assignment: Assignment, approved: bool) -> Permit {
    let definition = entry.definition();
    let caller = Arc::new(Caller { scopes: Scopes::parse("tools:write"), ..admin() });
    let used = ToolUse {
        tool: definition.name.clone(),
        toolset: definition.toolset.clone(),
        needs: entry.list(),
        effect: parsed.effect,
        about: None,
        schema: "",
        arguments: "{}",
    };
    let call = Call::new(CallId::from_random([1; 16]), caller, None, used);
    let call = call.with_session_facts(false, Arc::new(assignment));
    let evidence = if approved && parsed.effect > Effect::Read {
        let at = Moment::from_secs(7);
        let answer = run::Answer { by: admin().principal, verdict: Verdict::Approve, reason: None, at, span: None };
        let asked = run::RunRequest::new(&call, at);
        let run = Run { answers: vec![answer], ..Run::new(RunId::from_random([2; 16]), asked) };
        CallEvidence::of_approved_run(&run, &Opened).unwrap()
    } else {
        CallEvidence::of_address(&Opened, [(definition.toolset.clone(), domain::Level::Write)].into_iter().collect())
    };
    let policy = Policy { mode: SessionMode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
    match decide(&policy, call, &evidence) {
        Decision::Permit(permit) | Decision::Ask(_, permit) => permit,
        denied @ Decision::Deny(_) => panic!("{denied:?}"),
    }
}

pub(crate) async fn call(entry: &CatalogEntry, arguments: Value) -> Result<ToolOutput, Failure> {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    call_with(entry, arguments, Assignment::default()).await
}

pub(crate) async fn call_with(
    entry: &CatalogEntry,
    arguments: Map<String, Value>,
    assignment: Assignment,
) -> Result<ToolOutput, Failure> {
    let parsed = entry.parse(arguments)?;
    let permit = permit(entry, &parsed, assignment);
    parsed.work.run(&permit, &Progress::default()).await
}

pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !so().await {
        assert!(tokio::time::Instant::now() < end, "waited too long for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
