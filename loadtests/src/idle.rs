//! What a service costs whose tenants do nothing: commands of Redis in a second, memory for each tenant, the time a start
//! takes, and the time until a changed file is served.
//!
//! Commands are counted by Redis itself. Counting begins when the service has looked at every tenant once, which it does
//! after its start; the slow walk over all tenants that goes on from then on is counted. Neither figure is a time, so one
//! of this machine holds for others, and the aims are absolute.

use crate::contender::{OwnRedis, token};
use crate::floor::healthy;
use crate::http::KeptConnection;
use crate::operations;
use crate::options::LoadOptions;
use crate::plan::quartermaster;
use crate::process::{Process, free_port};
use crate::report;
use anyhow::{Context, ensure};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// How many tenants there are.
const TENANTS: [u32; 4] = [1, 100, 1_000, 10_000];
/// The most commands of Redis in a second, with the most tenants.
const MOST_COMMANDS: f64 = 50.0;
/// The most memory for each tenant, in KiB, with the most tenants.
const MOST_KIB: f64 = 8.0;
/// How long the service may take to have looked at every tenant once.
const LOOKED_WITHIN: Duration = Duration::from_secs(600);
/// What the service says then.
const LOOKED: &str = "every tenant was looked at once";

/// What was measured with so many tenants.
struct IdleFigures {
    tenants: u32,
    start: Duration,
    commands: f64,
    resident: u64,
    reloaded: Duration,
}

/// Measures, prints the table, and tells how many aims were missed.
pub(crate) async fn run(options: &LoadOptions, span: Duration) -> anyhow::Result<usize> {
    let program = quartermaster(options)?;
    report::print(
        "| tenants | start, s | commands of Redis/s | resident, MiB | KiB for each tenant | changed file served, ms |\n\
         |--:|--:|--:|--:|--:|--:|",
    );
    let mut all: Vec<IdleFigures> = Vec::new();
    for tenants in TENANTS {
        let figures = measure(&program, &options.redis, tenants, span).await?;
        let each = all.first().map(|one| each(one, &figures));
        let each = each.map_or_else(|| "-".to_owned(), |each| format!("{each:.1}"));
        let IdleFigures { start, commands, resident, reloaded, .. } = &figures;
        let (start, resident, reloaded) = (start.as_secs_f64(), resident / 1024, reloaded.as_millis());
        report::print(&format!("| {tenants} | {start:.1} | {commands:.1} | {resident} | {each} | {reloaded} |"));
        all.push(figures);
    }
    let (Some(one), Some(most)) = (all.first(), all.last()) else { return Ok(0) };
    let aims = [
        (format!("at most {MOST_COMMANDS} commands of Redis a second"), most.commands <= MOST_COMMANDS),
        (format!("at most {MOST_KIB} KiB for each tenant"), each(one, most) <= MOST_KIB),
    ];
    let mut text = format!("\nwith {} tenants:", most.tenants);
    for (aim, ok) in &aims {
        write!(text, "\n- {aim}: {}", if *ok { "ok" } else { "MISSED" })?;
    }
    report::print(&text);
    Ok(aims.iter().filter(|(_, ok)| !ok).count())
}

/// What a tenant adds to the memory of one.
fn each(one: &IdleFigures, many: &IdleFigures) -> f64 {
    let more = i64::try_from(many.resident).unwrap_or(i64::MAX) - i64::try_from(one.resident).unwrap_or_default();
    more as f64 / f64::from((many.tenants - one.tenants).max(1))
}

async fn measure(program: &Path, redis: &Path, tenants: u32, span: Duration) -> anyhow::Result<IdleFigures> {
    let redis = OwnRedis::start(redis).await?;
    let store: SocketAddr = redis.url.strip_prefix("redis://").context("an address")?.parse()?;
    let folder = tempfile::tempdir().context("no temporary folder for the service")?;
    let data = folder.path().join("data");
    let files = data.join("tenants");
    std::fs::create_dir_all(&files).context("the data folder could not be made")?;
    std::fs::write(files.join("dev.yaml"), first("")).context("a tenant could not be written")?;
    for number in 1..tenants {
        std::fs::write(files.join(format!("t{number}.yaml")), other(number))
            .context("a tenant could not be written")?;
    }
    let address = free_port()?;
    let arguments =
        ["dev", "--listen", &address.to_string(), "--data", &data.display().to_string(), "--store", &redis.url];
    let arguments = arguments.map(str::to_owned);
    let began = Instant::now();
    // `dev` says less by itself; that every tenant was looked at is what is waited for.
    let told = [("QM_TELEMETRY__LOG", "info".to_owned())];
    let mut process = Process::start_in("quartermaster", program, &arguments, folder.path(), &told)?;
    process.up(async || healthy(address).await).await?;
    let start = began.elapsed();
    while !process.said(LOOKED) {
        ensure!(began.elapsed() < LOOKED_WITHIN, "the service did not look at every tenant:\n{}", process.tail());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (before, counted) = (commands(store).await?, Instant::now());
    tokio::time::sleep(span).await;
    let more = commands(store).await?.saturating_sub(before);
    let commands = more as f64 / counted.elapsed().as_secs_f64();
    let resident = process.memory().context("this system does not tell how much memory a process has")?.resident;
    let reloaded = change(address, &data).await.with_context(|| process.tail())?;
    Ok(IdleFigures { tenants, start, commands, resident, reloaded })
}

/// The tenant whose agent asks.
fn first(more: &str) -> String {
    format!("tenant: dev\nmode: write\ndefault_toolsets: [memory]\n{more}")
}

/// One of the others: a cluster and a Jenkins server of its own, rules and limits, as tenants have them.
fn other(number: u32) -> String {
    format!(
        "tenant: t{number}\nmode: write\ndefault_toolsets: [k8s, memory]\n\
         clusters:\n  - {{ name: prod, kubeconfig: {{ secret: kubeconfig }}, namespaces: [team-{number}] }}\n\
         toolsets:\n  jenkins: {{ url: 'https://ci-{number}.example.com', user: robot, token: {{ secret: ci }} }}\n\
         policy:\n  deny: [k8s_exec]\n  require_approval: [memory_read]\n\
         limits: {{ calls_per_minute: {}, calls_in_flight: 20 }}\n",
        600 + number % 100
    )
}

/// Changes the first tenant's file, and tells how long it takes until its list is another one.
async fn change(address: SocketAddr, data: &Path) -> anyhow::Result<Duration> {
    let token = token(&data.join("agent.token"))?;
    let mut connection = KeptConnection::open(address).await?;
    let request = operations::list_tools(&token);
    let before = connection.send(&request).await?.body.to_vec();
    std::fs::write(data.join("tenants").join("dev.yaml"), first("policy:\n  deny: [memory_history]\n"))?;
    let began = Instant::now();
    // A trace id may differ from answer to answer; the name of the tool tells.
    let names = |body: &[u8]| String::from_utf8_lossy(body).contains("memory_history");
    ensure!(names(&before), "the list of the first tenant is not as expected");
    while names(connection.send(&request).await?.body) {
        ensure!(began.elapsed() < Duration::from_secs(120), "the changed file is not served");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(began.elapsed())
}

/// How many commands Redis has carried out, without those that ask for it.
async fn commands(address: SocketAddr) -> anyhow::Result<u64> {
    let mut stream = BufReader::new(TcpStream::connect(address).await.context("Redis does not answer")?);
    stream.write_all(b"INFO commandstats\r\n").await?;
    let mut length = String::new();
    stream.read_line(&mut length).await?;
    let length: usize = length.trim_start_matches('$').trim_end().parse().context("Redis gave no figures")?;
    let mut text = vec![0; length];
    stream.read_exact(&mut text).await?;
    Ok(calls(&String::from_utf8_lossy(&text)))
}

fn calls(text: &str) -> u64 {
    let lines = text.lines().filter(|line| !line.starts_with("cmdstat_info:"));
    lines.filter_map(|line| line.split_once("calls=")?.1.split(',').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_counts_but_the_one_that_asks() {
        let text = "# Commandstats\r\ncmdstat_get:calls=3,usec=1\r\ncmdstat_info:calls=9,usec=1\r\ncmdstat_zadd:calls=2,usec=4\r\n";
        assert_eq!(calls(text), 5);
    }

    #[test]
    fn memory_is_told_for_each_tenant_above_the_first() {
        let figures = |tenants, resident| IdleFigures {
            tenants,
            start: Duration::ZERO,
            commands: 0.0,
            resident,
            reloaded: Duration::ZERO,
        };
        assert!((each(&figures(1, 1_000), &figures(101, 1_800)) - 8.0).abs() < 1e-9);
        assert!(each(&figures(1, 1_000), &figures(101, 900)) < 0.0, "less is no error");
    }
}
