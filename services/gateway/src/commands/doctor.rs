//! `doctor`: looks at everything this service needs, one line each, with what to do about it.
//!
//! It looks and changes nothing: no runs are carried out, nothing is loaded, and targets are only asked who they are.

use crate::app;
use crate::cli::{Doctor, Output};
use crate::clock::Clock;
use crate::commands::{Ended, print, runtime};
use crate::settings::Settings;
use crate::tenants::{Origin, Parts, Tenants};
use catalog::{Entry, Progress};
use domain::{Call, CallId, Caller, Effect, Failure, Level, Loaded, Mode, Moment, Principal, Scopes, Tenant};
use executor::Keys;
use identity::Verifier;
use policy::{Decision, Evidence, Permit, Policy};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tools::{Kit, Toolbox};

/// How far the clocks of host and store may be apart before leases and expiries become a matter of luck.
const APART: Duration = Duration::from_secs(5);
/// Fewer open files than this are used up by a few hundred clients.
const OPEN_FILES: u64 = 4_096;
/// How long one target may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum How {
    Well,
    Doubtful,
    Bad,
}

/// One line.
#[derive(Debug, Serialize)]
struct Line {
    what: String,
    how: How,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    todo: Option<String>,
}

/// Everything that was looked at.
#[derive(Default)]
struct Chart(Vec<Line>);

impl Chart {
    fn note(&mut self, what: impl Into<String>, how: How, says: impl Into<String>, todo: Option<&str>) {
        self.0.push(Line { what: what.into(), how, says: says.into(), todo: todo.map(str::to_owned) });
    }

    fn well(&mut self, what: impl Into<String>, says: impl Into<String>) {
        self.note(what, How::Well, says, None);
    }

    fn bad(&mut self, what: impl Into<String>, says: impl Into<String>, todo: &str) {
        self.note(what, How::Bad, says, Some(todo));
    }
}

pub(super) fn run(args: &Doctor, output: Output) -> anyhow::Result<Ended> {
    let settings = Settings::read(Some(&args.config), std::env::vars())?;
    let chart = runtime()?.block_on(look(settings))?;
    let bad = chart.0.iter().any(|line| line.how == How::Bad);
    match output {
        Output::Json => print(&format!("{}\n", serde_json::to_string_pretty(&chart.0)?)),
        Output::Text => chart.0.iter().for_each(|line| {
            let mark = match line.how {
                How::Well => "ok  ",
                How::Doubtful => "look",
                How::Bad => "BAD ",
            };
            let todo = line.todo.as_ref().map(|todo| format!("\n       {todo}")).unwrap_or_default();
            print(&format!("{mark} {}: {}{todo}\n", line.what, line.says));
        }),
    }
    Ok(if bad { Ended::WithNo } else { Ended::Well })
}

async fn look(settings: Settings) -> anyhow::Result<Chart> {
    let mut chart = Chart::default();
    chart.well("settings", "read");
    open_files(&mut chart);
    issuers(&mut chart, &settings).await;
    let keys = keys(&mut chart, &settings);
    let store = store(&mut chart, &settings).await;
    let (Some(keys), Some(store)) = (keys, store) else { return Ok(chart) };
    let kit = app::kit(&settings, &store, &keys).await?;
    match kit.helm.available() {
        Ok(version) => chart.well("helm", version.to_string()),
        Err(why) => {
            let todo = "install helm 3.20.2 or 4.1.4 or newer and name it in upstreams.helm, if tenants shall use it";
            chart.note("helm", How::Doubtful, why.to_string(), Some(todo));
        }
    }
    tenants(&mut chart, settings, kit).await?;
    Ok(chart)
}

fn open_files(chart: &mut Chart) {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    match soft.map(str::parse::<u64>) {
        Some(Ok(most)) if most < OPEN_FILES => {
            let todo = format!("raise the limit to {OPEN_FILES} or more (ulimit -n)");
            chart.note("open files", How::Doubtful, format!("at most {most}"), Some(&todo));
        }
        Some(Ok(most)) => chart.well("open files", format!("at most {most}")),
        // `unlimited`, or a system that does not tell.
        Some(Err(_)) | None => chart.well("open files", "no limit is told"),
    }
}

async fn issuers(chart: &mut Chart, settings: &Settings) {
    let todo = "check identity.issuers, and that this host reaches their jwks_url";
    let Ok(http) = egress::operator_client(&egress::Config::default()) else {
        return chart.bad("issuers", "the HTTP client cannot be built", todo);
    };
    match Verifier::new(settings.identity.clone(), http).await {
        Ok(verifier) => {
            verifier.warm(Clock.now()).await;
            let names: Vec<&str> = verifier.issuers().collect();
            if verifier.usable(Clock.now()) {
                chart.well("issuers", names.join(", "));
            } else {
                chart.bad("issuers", format!("no keys of {}", names.join(", ")), todo);
            }
        }
        Err(error) => chart.bad("issuers", format!("{:#}", anyhow::Error::from(error)), todo),
    }
}

fn keys(chart: &mut Chart, settings: &Settings) -> Option<Keys> {
    let todo = "put at least 32 random bytes there, the same on every replica";
    let derived = std::fs::read(&settings.calls.key_file).map_err(|error| error.to_string());
    match derived.and_then(|secret| Keys::derive(&secret).map_err(|error| error.to_string())) {
        Ok(keys) => {
            chart.well("service key", "usable");
            Some(keys)
        }
        Err(why) => {
            chart.bad("service key", format!("calls.key_file: {why}"), todo);
            None
        }
    }
}

async fn store(chart: &mut Chart, settings: &Settings) -> Option<Store> {
    let store = match Store::open(&settings.store).await {
        Ok(store) => store,
        Err(error) => {
            let todo = "check store.url; a file serves one process at a time";
            chart.bad("store", format!("{:#}", anyhow::Error::from(error)), todo);
            return None;
        }
    };
    let health = store.health().await;
    let names = |found: &[store::Finding]| found.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(", ");
    if !health.ready() {
        chart.bad("store", names(&health.reasons), "see \"The data in the store\" in docs/ARCHITECTURE.md");
    } else if health.warnings.is_empty() {
        chart.well("store", store.backend());
    } else {
        chart.note("store", How::Doubtful, names(&health.warnings), Some("look at the server's settings"));
    }
    if let Ok(theirs) = store.now().await {
        let ours = Clock.now();
        let apart = ours.since(theirs).max(theirs.since(ours));
        if apart > APART {
            let says = format!("{} s apart from the store's", apart.as_secs());
            chart.bad("clock", says, "let both keep time by the same source; tokens are judged by this one");
        } else {
            chart.well("clock", "agrees with the store's");
        }
    }
    Some(store)
}

async fn tenants(chart: &mut Chart, settings: Settings, kit: Kit) -> anyhow::Result<()> {
    let toolbox = Toolbox::new(&kit)?;
    let asked = ["k8s_discover", "jenkins_whoami"].map(|name| {
        let found = toolbox.every().iter().find(|entry| entry.name().as_str() == name);
        found.cloned()
    });
    let [Some(cluster), Some(server)] = asked else { anyhow::bail!("the tools that look are not there") };
    let secret = std::fs::read(&settings.calls.key_file)?;
    let vault = app::vault(&settings, &kit.store, &secret)?;
    // Asking an external server for its tools may accept them, which is not a doctor's to do.
    let tenants = Arc::new(Tenants::new(Parts::of(&settings, &kit, toolbox, vault, None)));
    tenants.look().await;
    for (tenant, problems) in tenants.unusable() {
        let says = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        chart.bad(format!("tenant {tenant}"), says, "mend or remove what was set over HTTP");
    }
    for problem in tenants.problems().iter() {
        chart.bad("tenant file", problem.to_string(), "mend it; until then the tenant keeps what it had");
    }
    let mut served: Vec<Tenant> = tenants.all().into_iter().map(|(tenant, _)| tenant).collect();
    served.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    if served.is_empty() {
        chart.bad("tenants", "there are none", "put a file into tenants.dir");
    }
    for tenant in &served {
        let says = match tenants.origin_of(tenant) {
            Some(Origin::Http(version)) => format!("what was set over HTTP is in use, version {version}"),
            Some(Origin::Fixed | Origin::File | Origin::Held) | None => "its file is in use".to_owned(),
        };
        chart.well(format!("tenant {tenant}"), says);
        for name in kit.clusters.names_of(tenant) {
            let arguments = json!({ "ask": "cluster", "cluster": name });
            let told = ask(&cluster, tenant, arguments).await;
            target(chart, format!("tenant {tenant}, cluster {name}"), told, "version");
        }
        for name in kit.servers.names_of(tenant) {
            let told = ask(&server, tenant, json!({ "server": name })).await;
            target(chart, format!("tenant {tenant}, Jenkins {name}"), told, "version");
        }
    }
    Ok(())
}

fn target(chart: &mut Chart, what: String, told: Result<Value, Failure>, field: &str) {
    match told {
        Ok(told) => chart.well(what, told[field].as_str().unwrap_or("answers").to_owned()),
        Err(failure) => {
            let todo =
                failure.next.as_deref().unwrap_or("look at its address, its secret and what it allows").to_owned();
            chart.bad(what, format!("{}: {}", failure.code.as_str(), failure.message), &todo);
        }
    }
}

/// Calls a tool that only reads, as an agent of the tenant would, through the same decision.
async fn ask(entry: &Entry, tenant: &Tenant, arguments: Value) -> Result<Value, Failure> {
    let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
    let parsed = entry.parse(arguments)?;
    let permit = permit(entry, tenant, parsed.about.clone())?;
    let silence = || Failure::new(domain::Code::Deadline, format!("no answer within {} s", PATIENCE.as_secs()));
    let progress = Progress::default();
    let ran = tokio::time::timeout(PATIENCE, parsed.work.run(&permit, &progress)).await.map_err(|_| silence())??;
    Ok(ran.structured.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

fn permit(entry: &Entry, tenant: &Tenant, about: Option<String>) -> Result<Permit, Failure> {
    let definition = entry.definition();
    let caller = Caller {
        tenant: tenant.clone(),
        principal: Principal { issuer: "quartermaster".into(), subject: "doctor".into() },
        scopes: Scopes::parse("tools:read"),
        expires_at: Moment::from_secs(u64::from(u32::MAX)),
    };
    let call = Call {
        id: CallId::from_random([0; 16]),
        caller: Arc::new(caller),
        session: None,
        tool: definition.name.clone(),
        toolset: definition.toolset.clone(),
        needs: Level::Read,
        effect: Effect::Read,
        about,
        digest: String::new(),
        tainted: false,
        assignment: std::sync::Arc::default(),
    };
    let evidence = Evidence {
        loaded: Loaded::from_iter([(definition.toolset.clone(), Level::Read)]),
        mode: Mode::Read,
        tainted: false,
        calls_this_minute: 0,
        stopped: false,
        approved: None,
    };
    let policy =
        Policy { mode: Mode::Read, deny: Vec::new(), require_approval: Vec::new(), calls_per_minute: u64::MAX };
    match policy::decide(&policy, call, &evidence) {
        Decision::Permit(permit) => Ok(permit),
        Decision::Ask(..) => Err(Failure::new(domain::Code::Internal, "looking would need a person")),
        Decision::Deny(reason) => Err(reason.0),
    }
}
