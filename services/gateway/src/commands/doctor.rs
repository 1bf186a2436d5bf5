//! `doctor`: looks at everything this service needs, one line each, with what to do about it.
//!
//! It looks and changes nothing: no runs are carried out, nothing is loaded, and targets are only asked who they are.

use crate::app;
use crate::cli::{Doctor, OutputFormat};
use crate::clock::SystemClock;
use crate::commands::{CommandOutcome, print, runtime};
use crate::settings::Settings;
use crate::tenants::{ConfigOrigin, TenantRegistry, TenantsParts};
use crate::toolsets::{self, Toolsets};
use domain::{Failure, Tenant};
use executor::ServiceKeys;
use helm::client::Helm;
use identity::Verifier;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use toolset::TargetHealth;

/// How far the clocks of host and store may be apart before leases and expiries become a matter of luck.
const APART: Duration = Duration::from_secs(5);
/// Fewer open files than this are used up by a few hundred clients.
const OPEN_FILES: u64 = 4_096;

/// How something is.
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

/// Everything that was looked at.
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
    let chart = runtime()?.block_on(look(settings))?;
    let bad = chart.0.iter().any(|line| line.how == CheckState::Bad);
    match output {
        OutputFormat::Json => print(&format!("{}\n", serde_json::to_string_pretty(&chart.0)?)),
        OutputFormat::Text => chart.0.iter().for_each(|line| {
            let mark = match line.how {
                CheckState::Well => "ok  ",
                CheckState::Doubtful => "look",
                CheckState::Bad => "BAD ",
            };
            let todo = line.todo.as_ref().map(|todo| format!("\n       {todo}")).unwrap_or_default();
            print(&format!("{mark} {}: {}{todo}\n", line.what, line.says));
        }),
    }
    Ok(if bad { CommandOutcome::WithNo } else { CommandOutcome::Well })
}

async fn look(settings: Settings) -> anyhow::Result<Chart> {
    let mut chart = Chart::default();
    chart.well("settings", "read");
    open_files(&mut chart);
    issuers(&mut chart, &settings).await;
    let keys = keys(&mut chart, &settings);
    let store = store(&mut chart, &settings).await;
    let (Some(keys), Some(store)) = (keys, store) else { return Ok(chart) };
    let helm = app::helm(&settings).await;
    match helm.available() {
        Ok(version) => chart.well("helm", version.to_string()),
        Err(why) => {
            let todo = "install helm 3.20.2 or 4.1.4 or newer and name it in upstreams.helm, if tenants shall use it";
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
            verifier.warm(SystemClock.now()).await;
            let names: Vec<&str> = verifier.issuers().collect();
            if verifier.usable(SystemClock.now()) {
                chart.well("issuers", names.join(", "));
            } else {
                chart.bad("issuers", format!("no keys of {}", names.join(", ")), todo);
            }
        }
        Err(error) => chart.bad("issuers", format!("{:#}", anyhow::Error::from(error)), todo),
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
            chart.bad("store", format!("{error:#}"), "check store.url; a file serves one process at a time");
            return None;
        }
    };
    let health = store.health().await;
    let names = |found: &[store::HealthFinding]| found.iter().map(|f| f.as_str()).collect::<Vec<_>>().join(", ");
    if !health.ready() {
        chart.bad("store", names(&health.reasons), "see \"The data in the store\" in docs/ARCHITECTURE.md");
    } else if health.warnings.is_empty() {
        chart.well("store", store.backend());
    } else {
        chart.note("store", CheckState::Doubtful, names(&health.warnings), Some("look at the server's settings"));
    }
    if let Ok(theirs) = store.now().await {
        let ours = SystemClock.now();
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

async fn tenants(
    chart: &mut Chart,
    settings: Settings,
    store: Store,
    keys: &ServiceKeys,
    helm: Helm,
) -> anyhow::Result<()> {
    let secret = std::fs::read(&settings.calls.key_file)?;
    let vault = app::vault(&settings, &store, &secret)?;
    let parts = toolsets::ToolsetsParts { settings: &settings, store: &store, keys, vault: &vault, helm };
    // Asking an external server for its tools may accept them, which is not for `doctor` to do.
    let toolsets = Toolsets::build(parts, false)?;
    let tenants = Arc::new(TenantRegistry::new(TenantsParts::of(&settings, store.clone(), toolsets, vault)));
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
            Some(ConfigOrigin::Http(version)) => format!("what was set over HTTP is in use, version {version}"),
            Some(ConfigOrigin::Fixed | ConfigOrigin::File | ConfigOrigin::Held) | None => {
                "its file is in use".to_owned()
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
                failure.next.as_deref().unwrap_or("look at its address, its secret and what it allows").to_owned();
            chart.bad(what, format!("{}: {}", failure.code.as_str(), failure.message), &todo);
        }
    }
}
