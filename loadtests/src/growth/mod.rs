//! How cost and memory grow with what there is: sessions, waiting runs, audit records, tenants, tools, replicas.
//!
//! What is many is written by the store's own code, sealed as the service seals it, and not by as many requests. Then one
//! replica is asked: a list for a session, the smallest call, and where runs wait, the list of those. Commands are counted
//! by Redis, CPU time by the system for each process, memory by both; these hold on a busy machine. Times do not.
//!
//! Reading order: [`fill`] (how it becomes many), [`probe`] (what is asked), [`table`] (what comes out).

mod fill;
mod probe;
mod table;

use crate::contender::OwnRedis;
use crate::figures;
use crate::installation::{Installation, Replica};
use crate::options::LoadOptions;
use crate::plan::quartermaster;
use crate::proxied::server::CalledServer;
use crate::report;
use anyhow::Context;
use fill::Filler;
use probe::Probe;
use std::path::{Path, PathBuf};
use std::time::Duration;
use table::GrowthRow;

/// From how many seconds on the largest steps are made, which take minutes.
const PATIENT: u64 = 10;
/// As many tools as one server may offer.
const TOOLS_OF_A_SERVER: usize = 200;

/// What a measurement needs to begin.
struct Study<'a> {
    program: PathBuf,
    redis: &'a Path,
    span: Duration,
    patient: bool,
    rows: Vec<GrowthRow>,
}

/// Measures all of it, prints the table, and gives how many aims were missed.
pub(crate) async fn run(options: &LoadOptions) -> anyhow::Result<usize> {
    let (span, patient) = (Duration::from_secs(options.seconds.min(5)), options.seconds >= PATIENT);
    let mut study = Study { program: quartermaster(options)?, redis: &options.redis, span, patient, rows: Vec::new() };
    report::print(table::HEAD);
    let wanted = |name: &str| name.contains(&options.only);
    if wanted("sessions") {
        study.sessions().await.context("sessions")?;
    }
    if wanted("waiting runs") {
        study.waiting_runs().await.context("waiting runs")?;
    }
    if wanted("audit records") {
        study.audit_records().await.context("audit records")?;
    }
    if wanted("tenants") {
        study.tenants().await.context("tenants")?;
    }
    if wanted("tools") {
        study.tools().await.context("tools")?;
    }
    if wanted("replicas") {
        study.replicas().await.context("replicas")?;
    }
    report::print(table::FOOT);
    let missed = table::judge(&study.rows);
    missed.iter().for_each(|line| report::print(line));
    let (json, chart) = (options.json.as_deref(), options.chart.as_deref());
    figures::keep(json, &table::json(&study.rows), chart, &table::chart(&study.rows))?;
    Ok(missed.iter().filter(|line| line.contains("MISSED")).count())
}

impl Study<'_> {
    fn steps(&self, steps: [usize; 4]) -> Vec<usize> {
        steps[..if self.patient { 4 } else { 3 }].to_vec()
    }

    async fn installed(&self, tenants: &[(String, String)]) -> anyhow::Result<(OwnRedis, Installation)> {
        let redis = OwnRedis::start(self.redis).await?;
        let installation = Installation::new(&self.program, &redis.url, tenants)?;
        Ok((redis, installation))
    }

    fn keep(&mut self, row: GrowthRow) {
        report::print(&row.line());
        self.rows.push(row);
    }

    async fn grow(
        &mut self,
        what: &'static str,
        steps: [usize; 4],
        fill: impl AsyncFn(&Filler, std::ops::Range<usize>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (redis, installation) = self.installed(&[("dev".to_owned(), tenant("dev", ""))]).await?;
        let replica = installation.replica(&most()).await?;
        let filler = Filler::open(installation.redis()).await?;
        let probe = Probe::new(&installation, &replica, &redis, "dev").await?;
        let empty = probe.measure(self.span).await?;
        self.keep(GrowthRow { what, size: 0, added: None, figures: empty });
        let mut written = 0;
        for step in self.steps(steps) {
            // Calls that are measured leave audit records too, so they are on neither side of what was added.
            probe.settle().await?;
            let before = probe.held().await?;
            fill(&filler, written..step).await?;
            probe.settle().await?;
            let added = Some((probe.held().await? - before) / (step - written) as f64);
            written = step;
            let figures = probe.measure(self.span).await?;
            self.keep(GrowthRow { what, size: step, added, figures });
        }
        Ok(())
    }

    async fn sessions(&mut self) -> anyhow::Result<()> {
        let fill = async |filler: &Filler, range| filler.sessions(range).await;
        self.grow("sessions", [1_000, 10_000, 100_000, 1_000_000], fill).await
    }

    async fn waiting_runs(&mut self) -> anyhow::Result<()> {
        let fill = async |filler: &Filler, range| filler.waiting_runs(range).await;
        self.grow("waiting runs", [100, 1_000, 10_000, 100_000], fill).await
    }

    async fn audit_records(&mut self) -> anyhow::Result<()> {
        let fill = async |filler: &Filler, range| filler.audit_records(range).await;
        self.grow("audit records", [1_000, 10_000, 100_000, 1_000_000], fill).await
    }

    async fn tenants(&mut self) -> anyhow::Result<()> {
        for many in self.steps([1, 100, 1_000, 10_000]) {
            let all: Vec<(String, String)> = (0..many)
                .map(|number| if number == 0 { "dev".to_owned() } else { format!("t{number}") })
                .map(|name| (name.clone(), tenant(&name, "")))
                .collect();
            let (redis, installation) = self.installed(&all).await?;
            let replica = installation.replica(&most()).await?;
            let probe = Probe::new(&installation, &replica, &redis, "dev").await?;
            let figures = probe.measure(self.span).await?;
            self.keep(GrowthRow { what: "tenants", size: many, added: None, figures });
        }
        Ok(())
    }

    async fn tools(&mut self) -> anyhow::Result<()> {
        for many in [50, 500, 5_000] {
            let server = CalledServer::start_with(Duration::ZERO, many.min(TOOLS_OF_A_SERVER)).await?;
            let servers = many.div_ceil(TOOLS_OF_A_SERVER);
            let used: String = (0..servers).map(|number| format!("- {{ use: s{number} }}\n")).collect();
            let (redis, installation) =
                self.installed(&[("dev".to_owned(), tenant("dev", &format!("servers:\n{used}")))]).await?;
            let catalog = installation.folder().join("catalog");
            std::fs::create_dir_all(&catalog).context("no folder for the catalog")?;
            let entry = |number| format!("- {{ name: s{number}, url: \"{}\" }}\n", server.called.url);
            let text: String = std::iter::once("servers:\n".to_owned()).chain((0..servers).map(entry)).collect();
            std::fs::write(catalog.join("servers.yaml"), text).context("the catalog could not be written")?;
            let mut settings = most();
            settings.push(("QM_UPSTREAMS__CATALOG", catalog.display().to_string()));
            settings.push(("QM_UPSTREAMS__PRIVATE", "true".to_owned()));
            settings.push(("QM_UPSTREAMS__PORTS", format!("[{}]", server.called.address.port())));
            let replica = installation.replica(&settings).await?;
            let mut probe = Probe::new(&installation, &replica, &redis, "dev").await?;
            probe.load_all(servers).await?;
            let figures = probe.measure(self.span).await?;
            self.keep(GrowthRow { what: "tools", size: many, added: None, figures });
        }
        Ok(())
    }

    async fn replicas(&mut self) -> anyhow::Result<()> {
        let (redis, installation) = self.installed(&[("dev".to_owned(), tenant("dev", ""))]).await?;
        let mut running: Vec<Replica> = Vec::new();
        for many in 1..=4 {
            running.push(installation.replica(&most()).await?);
            let figures = probe::together(&installation, &running, &redis, self.span).await?;
            self.keep(GrowthRow { what: "replicas", size: many, added: None, figures });
        }
        Ok(())
    }
}

/// Limits of sessions and runs are out of the way: not they are measured.
fn most() -> Vec<(&'static str, String)> {
    [
        ("QM_LIMITS__SESSIONS_PER_CALLER", "10000000"),
        ("QM_LIMITS__SESSIONS_PER_TENANT", "10000000"),
        ("QM_LIMITS__RUN_BYTES_PER_CALLER", "1099511627776"),
        ("QM_LIMITS__RUN_BYTES_PER_TENANT", "1099511627776"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

fn tenant(name: &str, more: &str) -> String {
    format!(
        "tenant: {name}\nmode: write\ndefault_toolsets: [memory]\n{more}\
         limits: {{ calls_in_flight: 10000, calls_per_minute: 1000000, result_bytes: 262144 }}\n\
         policy: {{ approval: {{ most_waiting: 1000 }} }}\n"
    )
}
