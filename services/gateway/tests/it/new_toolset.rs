//! A new kind of target is one crate and one line. This is such a crate, in small: clocks that run ahead or behind, as
//! [adding-a-toolset](../../../../docs/adding-a-toolset.md) walks through it. TenantRegistry configure them in their own file,
//! and each tenant's tool reads its own clocks.

use crate::error_log::ErrorLog;
use catalog::{CatalogEntry, CompiledTools, Progress, TargetNames, Tool, ToolSpec};
use domain::{Caller, Code, Effect, Failure, Moment, Outcome, Principal, Scopes, Tenant};
use executor::{CallRequest, ClientEra, Executor, Handle, Leases, ServiceKeys, Tasks};
use external::CuratedSources;
use gateway::reach::EgressPolicy;
use gateway::readiness;
use gateway::tenants::{TenantRegistry, TenantsParts};
use gateway::toolsets::Toolsets;
use memory::documents::Documents;
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{SessionConfig, Store};
use target::{NamedTarget, TargetWords, Targets};
use tenancy::{Section, SectionProblem, TenantConfig};
use tokio_util::sync::CancellationToken;
use toolset::{AttachContext, AttachError, AttachedToolset, HealthFuture, TargetHealth, Toolset};
use vault::{Environment, Sealer, Vault};

const TOOLSET: &str = "clocks";
/// No clock on Earth is further from UTC.
const MOST_HOURS: i32 = 14;

mod codes {
    domain::tool_codes! {
        /// The tenant has several clocks, and none was named.
        CLOCK_REQUIRED = "clock_required": Invalid,
        /// The tenant has no clock of that name.
        CLOCK_UNKNOWN = "clock_unknown": NotFound,
    }
}

/// What a tenant configures.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ClockConfig {
    name: String,
    hours: i32,
}

/// The target itself: it counts how often it was read, as a connection would be kept.
struct Clock {
    config: ClockConfig,
    reads: AtomicU64,
}

impl NamedTarget for Clock {
    type Config = ClockConfig;
    const WORDS: TargetWords = TargetWords {
        one: "clock",
        several: "clocks",
        argument: "clock",
        required: codes::CLOCK_REQUIRED,
        unknown: codes::CLOCK_UNKNOWN,
    };

    fn config(&self) -> &ClockConfig {
        &self.config
    }

    fn name(config: &ClockConfig) -> &str {
        &config.name
    }

    fn is_default(_: &ClockConfig) -> bool {
        false
    }
}

/// `clocks_read`: what a clock shows.
struct Read {
    clocks: Targets<Clock>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    clock: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    hours: i32,
    reads: u64,
}

impl Tool for Read {
    const SPEC: ToolSpec =
        ToolSpec::new("clocks_read", TOOLSET, Effect::Read).says("Read a clock", "What a clock shows.");
    type Args = Args;
    type Output = Output;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Output, Failure> {
        let clock = self.clocks.choose(permit, args.clock.as_deref())?;
        Ok(Output { hours: clock.config.hours, reads: clock.reads.fetch_add(1, Ordering::SeqCst) + 1 })
    }
}

/// The toolset.
#[derive(Default)]
struct Clocks {
    shapes: CompiledTools,
    /// The tenants it was told to forget.
    detached: Mutex<Vec<Tenant>>,
}

/// The clocks of one tenant.
struct TenantClocks {
    clocks: Targets<Clock>,
    entries: Vec<Arc<CatalogEntry>>,
}

impl Clocks {
    fn entries(&self, clocks: &Targets<Clock>) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        let named = clocks.clone();
        let name = move |named_by_call: Option<&str>| named.meant(named_by_call).map(|name| format!("clock/{name}"));
        let entry = self.shapes.entry(Read { clocks: clocks.clone() }).map_err(AttachError::new)?;
        Ok(vec![Arc::new(entry.aimed_at(TargetNames { argument: "clock", name: Arc::new(name) }))])
    }
}

impl Toolset for Clocks {
    fn names(&self) -> &'static [&'static str] {
        &[TOOLSET]
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section::of::<Vec<ClockConfig>>(TOOLSET, |clocks| check(clocks))]
    }

    fn tools(&self, _: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        self.entries(&Targets::none())
    }

    fn is_configured(&self, config: &TenantConfig) -> bool {
        config.sections.has(TOOLSET)
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let configs = attach.config.section::<Vec<ClockConfig>>(TOOLSET).map_err(AttachError::new)?;
        let configs = configs.cloned().unwrap_or_default();
        let before = attach.before::<TenantClocks>();
        let make = |config| Clock { config, reads: AtomicU64::new(0) };
        let clocks = Targets::build(attach.tenant, configs, before.as_ref().map(|before| &before.clocks), make);
        let clocks = clocks.map_err(|taken| AttachError::new(format!("two clocks are named {}", taken.0)))?;
        let entries = if attach.offers(self) { self.entries(&clocks)? } else { Vec::new() };
        Ok(Arc::new(TenantClocks { clocks, entries }))
    }

    fn detach(&self, tenant: &Tenant) {
        self.detached.lock().unwrap().push(tenant.clone());
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

fn check(clocks: &[ClockConfig]) -> Vec<SectionProblem> {
    let wrong = clocks.iter().enumerate().filter(|(_, clock)| clock.hours.abs() > MOST_HOURS);
    wrong
        .map(|(n, clock)| SectionProblem {
            at: format!("/{n}/hours"),
            message: format!("{} hours is no time zone", clock.hours),
            hint: Some(format!("use -{MOST_HOURS} to {MOST_HOURS}")),
        })
        .collect()
}

impl AttachedToolset for TenantClocks {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.entries.clone()
    }

    fn health(&self) -> HealthFuture<'_> {
        let well = |name: &str| TargetHealth { kind: "clock", name: name.to_owned(), state: Ok(None) };
        Box::pin(std::future::ready(self.clocks.names().into_iter().map(well).collect()))
    }
}

/// A service with this one toolset, and the files of its tenants.
struct Fixture {
    folder: tempfile::TempDir,
    clocks: Arc<Clocks>,
    tenants: Arc<TenantRegistry>,
    executor: Executor,
}

impl Fixture {
    async fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let config = store::Config::at("memory:");
        let store = Store::open(&config).await.unwrap();
        let clocks = Arc::new(Clocks::default());
        // The one line.
        let toolsets =
            Toolsets::of(vec![Arc::clone(&clocks) as Arc<dyn Toolset>], Documents::new(store.clone())).unwrap();
        let vault = Vault::new(
            store.clone(),
            Sealer::new(&[7; 32], &[]).unwrap(),
            folder.path().join("secrets"),
            Environment::default(),
        );
        let codes = toolsets.codes();
        let tenants = Arc::new(TenantRegistry::new(TenantsParts {
            dir: folder.path().join("tenants"),
            curated: CuratedSources::default(),
            report: None,
            over_http: false,
            store: store.clone(),
            toolsets,
            vault,
            reach: EgressPolicy::unknown(),
        }));
        std::fs::create_dir_all(folder.path().join("tenants")).unwrap();
        let sessions = SessionConfig {
            idle: Duration::from_secs(60),
            longest: Duration::from_secs(600),
            carry_over: Duration::ZERO,
        };
        let leases = Leases { lease: Duration::from_secs(30), renew_every: Duration::from_secs(10) };
        let keys = Arc::new(ServiceKeys::derive(&[7; 32]).unwrap());
        let executor = Executor::new(store, Tasks::default(), sessions, keys, leases).with_codes(codes);
        Fixture { folder, clocks, tenants, executor }
    }

    async fn write(&self, tenant: &str, clocks: &str) {
        let text = format!("tenant: {tenant}\ndefault_toolsets: [clocks]\ntoolsets:\n  clocks:\n{clocks}");
        std::fs::write(self.folder.path().join(format!("tenants/{tenant}.yaml")), text).unwrap();
        self.tenants.look().await;
    }

    async fn read(&self, tenant: &str, arguments: Value) -> Result<Value, Code> {
        let tenant = Tenant::parse(tenant).unwrap();
        let snapshot = self.tenants.find(&tenant).expect("a tenant that is served");
        let Value::Object(arguments): Value = arguments else { panic!("arguments are an object") };
        let request = CallRequest {
            caller: Arc::new(Caller {
                tenant,
                principal: Principal::new("https://login.example", "agent"),
                scopes: Scopes::parse("tools:read"),
                expires_at: Moment::from_secs(4_000_000_000),
                token: None,
                labels: Vec::new(),
            }),
            tool: "clocks_read".to_owned(),
            arguments: Map::from_iter(arguments),
            handle: Handle::None,
            selection: None,
            era: ClientEra::Modern,
            progress: Progress::default(),
            cancel: CancellationToken::new(),
            hold: None,
            idempotency_key: None,
            trace: None,
            client: None,
        };
        match self.executor.call(&snapshot, request).await {
            Outcome::Done(output) => Ok(serde_json::from_str(output.structured.as_deref().unwrap()).unwrap()),
            Outcome::Failed(failure) => Err(failure.code),
            Outcome::Waiting(run) => panic!("a read waits for nobody: {}", run.json),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_kind_of_target_is_one_crate_and_one_line() {
    let service = Fixture::new().await;
    service.write("acme", "    - { name: office, hours: 2 }\n").await;
    service.write("globex", "    - { name: office, hours: -5 }\n    - { name: plant, hours: 9 }\n").await;

    assert_eq!(service.read("acme", json!({})).await, Ok(json!({ "hours": 2, "reads": 1 })));
    assert_eq!(service.read("globex", json!({ "clock": "plant" })).await, Ok(json!({ "hours": 9, "reads": 1 })));
    assert_eq!(service.read("globex", json!({})).await, Err(codes::CLOCK_REQUIRED));
    assert_eq!(service.read("acme", json!({ "clock": "plant" })).await, Err(codes::CLOCK_UNKNOWN));

    // What stays as it was is taken over; what changed is another target.
    service.write("acme", "    - { name: office, hours: 2 }\n    - { name: home, hours: 1 }\n").await;
    let office = json!({ "clock": "office" });
    assert_eq!(service.read("acme", office).await, Ok(json!({ "hours": 2, "reads": 2 })));
    let health = service.tenants.all_attached(&Tenant::parse("acme").unwrap())[0].health().await;
    assert_eq!(health.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["office", "home"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_toolset_checks_its_own_section_and_the_mistake_has_its_position() {
    let service = Fixture::new().await;
    service.write("acme", "    - { name: office, hours: 2 }\n").await;
    service.write("acme", "    - { name: office, hours: 99 }\n").await;
    let problems = service.tenants.problems();
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!((problem.line, problem.column, problem.code), (5, 30, "bad_value"), "{problem}");
    assert_eq!(problem.message, "`clocks`: 99 hours is no time zone");
    // A file that is wrong keeps what its tenant had.
    assert_eq!(service.read("acme", json!({})).await, Ok(json!({ "hours": 2, "reads": 1 })));
    let schema = tenancy::json_schema(&service.tenants.sections());
    let clocks = &schema["$defs"]["ToolsetsPart"]["properties"]["clocks"];
    assert_eq!(clocks["items"]["$ref"], "#/$defs/ClockConfig");
    assert!(schema["$defs"]["ClockConfig"]["properties"]["hours"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_cannot_be_attached_keeps_what_it_had_and_one_that_is_gone_is_detached() {
    let service = Fixture::new().await;
    service.write("acme", "    - { name: office, hours: 2 }\n").await;
    service.write("globex", "    - { name: office, hours: 3 }\n").await;

    // No check of the file finds this: only attaching does.
    let twice = "    - { name: office, hours: 7 }\n    - { name: office, hours: 8 }\n";
    service.write("acme", twice).await;
    assert_eq!(service.read("acme", json!({})).await, Ok(json!({ "hours": 2, "reads": 1 })));
    service.write("initech", twice).await;
    let initech = service.tenants.find(&Tenant::parse("initech").unwrap()).expect("its people get in");
    assert!(initech.catalog.entries().is_empty(), "and its agents get no tool");

    std::fs::remove_file(service.folder.path().join("tenants/globex.yaml")).unwrap();
    service.tenants.look().await;
    let globex = Tenant::parse("globex").unwrap();
    assert!(service.tenants.find(&globex).is_none());
    assert_eq!(*service.clocks.detached.lock().unwrap(), [globex]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_a_toolset_refuses_is_reported_once_and_stays_visible() {
    let (service, log) = (Fixture::new().await, ErrorLog::start());
    let tenant = Tenant::parse("hooli").unwrap();
    let twice = "    - { name: office, hours: 7 }\n    - { name: office, hours: 8 }\n";
    service.write("hooli", "    - { name: office, hours: 2 }\n").await;
    assert_eq!(service.tenants.problems_of(&tenant), []);
    service.write("hooli", twice).await;
    for _ in 0..3 {
        service.tenants.look().await;
    }
    let problems = service.tenants.problems_of(&tenant);
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!(problem.code, "attach_failed");
    assert!(problem.file.ends_with("hooli.yaml"), "{problem}");
    assert!(problem.message.contains("two clocks are named office"), "{problem}");
    assert_eq!(readiness::tenant_warnings(&service.tenants), ["config_attach_failed"]);
    assert_eq!(log.about("hooli"), 1, "looking again is no news");

    // The reason is the same, the configuration is another.
    service.write("hooli", &twice.replace("hours: 8", "hours: 9")).await;
    assert_eq!(log.about("hooli"), 2);
    service.write("hooli", "    - { name: office, hours: 3 }\n").await;
    assert_eq!((service.tenants.problems_of(&tenant), log.about("hooli")), (vec![], 2));
    assert_eq!(readiness::tenant_warnings(&service.tenants), [] as [&str; 0]);
    assert_eq!(service.read("hooli", json!({})).await, Ok(json!({ "hours": 3, "reads": 1 })));
}
