//! `doctor`: checks everything that this service needs, one line each, with what to do about it.
//!
//! It changes nothing: it executes no runs, and it only asks targets for their version or their list of tools. Nothing of
//! what an external server lists is kept or accepted.

use crate::app;
use crate::cli::{Doctor, OutputFormat};
use crate::clock::SystemClock;
use crate::commands::{CommandOutcome, one_line, print, print_json, runtime};
use crate::settings::Settings;
use crate::tenants::{ConfigOrigin, TenantRegistry, TenantsParts};
use crate::toolsets::{self, ExternalServers, Toolsets};
use domain::{Failure, Tenant};
use executor::ServiceKeys;
use helm::client::Helm;
use identity::Verifier;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use toolset::TargetHealth;

/// How far the clocks of host and store may be apart before leases and expiries become unreliable.
const APART: Duration = Duration::from_secs(5);
/// Fewer open files than this are used up by a few hundred clients.
const OPEN_FILES: u64 = 4_096;

/// The result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Well,
    Doubtful,
    Bad,
}

/// One line.
#[derive(Debug, Serialize)]
struct DoctorLine {
    what: String,
    how: CheckState,
    says: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    todo: Option<String>,
}

/// The results of all checks.
#[derive(Default)]
struct Chart(Vec<DoctorLine>);

impl Chart {
    fn note(&mut self, what: impl Into<String>, how: CheckState, says: impl Into<String>, todo: Option<&str>) {
        self.0.push(DoctorLine { what: what.into(), how, says: says.into(), todo: todo.map(str::to_owned) });
    }

    fn well(&mut self, what: impl Into<String>, says: impl Into<String>) {
        self.note(what, CheckState::Well, says, None);
    }

    fn bad(&mut self, what: impl Into<String>, says: impl Into<String>, todo: &str) {
        self.note(what, CheckState::Bad, says, Some(todo));
    }
}

pub(super) fn run(args: &Doctor, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let settings = Settings::read(Some(&args.config), std::env::vars())?;
    let chart = runtime()?.block_on(check(settings))?;
    let bad = chart.0.iter().any(|line| line.how == CheckState::Bad);
    match output {
        OutputFormat::Json => print_json(&chart.0)?,
        OutputFormat::Text => chart.0.iter().for_each(|line| {
            let mark = match line.how {
                CheckState::Well => "ok  ",
                CheckState::Doubtful => "WARN",
                CheckState::Bad => "FAIL",
            };
            // A target's message may have lines of its own; they must not look like ours.
            let says = line.says.replace('\n', "\n       ");
            let todo = line.todo.as_ref().map(|todo| format!("\n       {}", one_line(todo))).unwrap_or_default();
            print(&format!("{mark} {}: {says}{todo}\n", line.what));
        }),
    }
    Ok(if bad { CommandOutcome::Negative } else { CommandOutcome::Done })
}

async fn check(settings: Settings) -> anyhow::Result<Chart> {
    let mut chart = Chart::default();
    chart.well("settings", "valid");
    open_files(&mut chart);
    issuers(&mut chart, &settings).await;
    let keys = keys(&mut chart, &settings);
    let store = store(&mut chart, &settings).await;
    let (Some(keys), Some(store)) = (keys, store) else { return Ok(chart) };
    let helm = app::helm(&settings).await;
    match helm.available() {
        Ok(version) => chart.well("helm", version.to_string()),
        Err(why) => {
            let todo = "install helm 3.20.2 or 4.1.4 or newer and set upstreams.helm, if tenants use it";
            chart.note("helm", CheckState::Doubtful, why.to_string(), Some(todo));
        }
    }
    tenants(&mut chart, settings, store, &keys, helm).await?;
    Ok(chart)
}

fn open_files(chart: &mut Chart) {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    match soft.map(str::parse::<u64>) {
        Some(Ok(most)) if most < OPEN_FILES => {
            let todo = format!("raise the limit to {OPEN_FILES} or more (ulimit -n)");
            chart.note("open files", CheckState::Doubtful, format!("at most {most}"), Some(&todo));
        }
        Some(Ok(most)) => chart.well("open files", format!("at most {most}")),
        // `unlimited`, or a system that does not report it.
        Some(Err(_)) | None => chart.well("open files", "no limit is reported"),
    }
}

async fn issuers(chart: &mut Chart, settings: &Settings) {
    let todo = "check identity.issuers, and that this host reaches their jwks_url";
    let Ok(http) = egress::operator_client(&egress::Config::default()) else {
        return chart.bad("issuers", "the HTTP client cannot be built", todo);
    };
    match Verifier::new(settings.identity.clone(), http).await {
        Ok(verifier) => {
            verifier.warm(SystemClock.now()).await;
            let names: Vec<&str> = verifier.issuers().collect();
            if verifier.usable(SystemClock.now()) {
                chart.well("issuers", names.join(", "));
            } else {
                chart.bad("issuers", format!("no usable keys of {}", names.join(", ")), todo);
            }
        }
        Err(error) => chart.bad("issuers", format!("{:#}", anyhow::Error::from(error)), todo),
    }
    if let Ok(Some(open)) = settings.tokenless.listener() {
        let says = format!("{} serves the tenant {} to whoever reaches it", open.address, open.tenant);
        let todo = "let only agents reach it: loopback, or a NetworkPolicy in front (docs/languagetool.md)";
        chart.note("listener without tokens", CheckState::Doubtful, says, Some(todo));
    }
    for warning in settings.identity.warnings() {
        let todo = "set tenants and person_claim of each entry of identity.issuers";
        chart.note("bounds of issuers", CheckState::Doubtful, warning.to_string(), Some(todo));
    }
}

fn keys(chart: &mut Chart, settings: &Settings) -> Option<ServiceKeys> {
    let todo = "put at least 32 random bytes there, the same on every replica";
    let derived = std::fs::read(&settings.calls.key_file).map_err(|error| error.to_string());
    match derived.and_then(|secret| ServiceKeys::derive(&secret).map_err(|error| error.to_string())) {
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
    let opened = match std::fs::read(&settings.calls.key_file) {
        Ok(secret) => app::store(settings, &secret).await,
        // Told above. Whether the store answers can be seen without the key.
        Err(_) => Store::open(&settings.store).await.map_err(anyhow::Error::from),
    };
    let store = match opened {
        Ok(store) => store,
        Err(error) => {
            let todo = "check store.url; only one process at a time can use a store file";
            chart.bad("store", format!("{error:#}"), todo);
            return None;
        }
    };
    let health = store.health().await;
    let names = |findings: &[store::HealthFinding]| findings.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(", ");
    if !health.ready() {
        let todo = if health.reasons.contains(&store::HealthFinding::StoreWrongTopology) {
            "redis:// is for one node, redis+cluster:// for a cluster, redis+sentinel:// for the addresses of sentinels"
        } else {
            "see \"The data in the store\" in docs/ARCHITECTURE.md"
        };
        chart.bad("store", names(&health.reasons), todo);
    } else if health.warnings.is_empty() {
        chart.well("store", store.backend());
    } else {
        chart.note(
            "store",
            CheckState::Doubtful,
            [names(&health.warnings), health.shards_down.join("; ")].join(" ").trim_end().to_owned(),
            Some("check the settings of the Redis server; docs/operations.md says which matter"),
        );
    }
    if let Ok(theirs) = store.now().await {
        let ours = SystemClock.now();
        let apart = ours.since(theirs).max(theirs.since(ours));
        if apart > APART {
            let says = format!("differs from the store's clock by {} s", apart.as_secs());
            chart.bad("clock", says, "synchronise both clocks; this one decides whether a token has expired");
        } else {
            chart.well("clock", "agrees with the store's clock");
        }
    }
    Some(store)
}

async fn tenants(
    chart: &mut Chart,
    settings: Settings,
    store: Store,
    keys: &ServiceKeys,
    helm: Helm,
) -> anyhow::Result<()> {
    let secret = std::fs::read(&settings.calls.key_file)?;
    let vault = app::vault(&settings, &store, &secret)?;
    let parts = toolsets::ToolsetsParts {
        settings: &settings,
        store: &store,
        keys,
        vault: &vault,
        helm,
        local: toolsets::LocalParts::default(),
    };
    let toolsets = Toolsets::build(parts, ExternalServers::HealthOnly)?;
    let tenants = Arc::new(TenantRegistry::new(TenantsParts::of(&settings, store.clone(), toolsets, vault)));
    tenants.look().await;
    tenants.wake_all().await;
    for (tenant, problems) in tenants.unusable() {
        let says = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        chart.bad(format!("tenant {tenant}"), says, "correct or remove the configuration that was set over HTTP");
    }
    for (tenant, problem) in tenants.refused() {
        let todo = "correct the configuration; until then the tenant keeps what it had";
        chart.bad(format!("tenant {tenant}"), problem.message, todo);
    }
    for problem in tenants.problems().iter() {
        chart.bad(
            "tenant file",
            problem.to_string(),
            "correct the file; until then the tenant keeps its last good one",
        );
    }
    let mut served: Vec<Tenant> = tenants.all().into_iter().map(|(tenant, _)| tenant).collect();
    served.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    if served.is_empty() {
        chart.bad("tenants", "no tenant is configured", "put a file into tenants.dir");
    }
    for tenant in &served {
        let says = match tenants.origin_of(tenant) {
            Some(ConfigOrigin::Http(version)) => {
                format!("uses the configuration that was set over HTTP, version {version}")
            }
            Some(ConfigOrigin::Fixed | ConfigOrigin::File | ConfigOrigin::Suspended) | None => {
                "uses its file".to_owned()
            }
        };
        chart.well(format!("tenant {tenant}"), says);
        for toolset in tenants.all_attached(tenant).iter() {
            for TargetHealth { kind, name, state } in toolset.health().await {
                target(chart, format!("tenant {tenant}, {kind} {name}"), state);
            }
        }
    }
    if store.unauthentic() > 0 {
        let says = format!("{} records were not written by this service", store.unauthentic());
        chart.bad("store", says, "find out who writes into the store; the log of this command names the records");
    }
    Ok(())
}

fn target(chart: &mut Chart, what: String, version: Result<Option<String>, Failure>) {
    match version {
        Ok(version) => chart.well(what, version.unwrap_or_else(|| "answers".to_owned())),
        Err(failure) => {
            let todo =
                failure.next.as_deref().unwrap_or("check its address, its secret and its permissions").to_owned();
            chart.bad(what, format!("{}: {}", failure.code.as_str(), failure.message), &todo);
        }
    }
}
