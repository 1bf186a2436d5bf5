//! A quiet tenant beside one that does not stop: at 20 times its limit the other one may cost the quiet one a fifth of its
//! slowest answers and no more. And what a read costs at half of peak load, against a server that asks Redis once.
//!
//! The quiet tenant calls at a fixed rate, alone and beside the other, in turns. The other has a thread and a runtime of its
//! own here, so that the quiet one's clock is not held up by the other's requests before they are sent.

use crate::contender::OwnRedis;
use crate::figures;
use crate::floor::{Floor, FloorKind};
use crate::installation::{Installation, Replica};
use crate::load::{self, LoadExchange};
use crate::operations;
use crate::options::LoadOptions;
use crate::paced::{self, Pace, PacedSlice};
use crate::plan::{self, quartermaster};
use crate::report;
use crate::{http::KeptConnection, process::Process};
use anyhow::Context;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;

/// What the noisy tenant may call in a minute, and how many times as often it does.
const LIMIT: u32 = 6_000;
const TIMES: f64 = 20.0;
/// What the quiet tenant calls in a second.
const QUIET: f64 = 50.0;
/// The most that the quiet tenant's p99 may grow.
const MOST: f64 = 1.2;
/// The most that the p99 of a read at half of peak may be of the floor's.
const MOST_AT_HALF: f64 = 2.0;
const ROUNDS: u32 = 5;

/// Measures both, prints them, and gives how many aims were missed.
pub(crate) async fn run(options: &LoadOptions) -> anyhow::Result<usize> {
    let (program, redis) = (quartermaster(options)?, OwnRedis::start(&options.redis).await?);
    let tenants = [("quiet", 1_000_000), ("noisy", LIMIT)].map(|(name, limit)| (name.to_owned(), tenant(name, limit)));
    let installation = Installation::new(&program, &redis.url, &tenants)?;
    let replica = installation.replica(&[]).await?;
    let span = Duration::from_secs(options.seconds) / ROUNDS;
    let call = |name: &str| {
        let token = installation.token(name, "agent", "tools:read")?;
        Ok::<_, anyhow::Error>(operations::memory_list_of(&token))
    };
    let (quiet, noisy) = (call("quiet")?, call("noisy")?);
    let (missed_beside, beside) = fairness(&replica, &quiet, &noisy, span).await?;
    let (missed_half, half) = half_of_peak(&replica, &redis, &quiet, options, span).await?;
    let all = json!({ "neighbour": beside, "half_of_peak": half });
    figures::keep(options.json.as_deref(), &all, None, "")?;
    Ok(usize::from(missed_beside) + usize::from(missed_half))
}

fn tenant(name: &str, calls_per_minute: u32) -> String {
    format!(
        "tenant: {name}\nmode: read\ndefault_toolsets: [memory]\n\
         limits: {{ calls_in_flight: 100, calls_per_minute: {calls_per_minute} }}\n"
    )
}

async fn fairness(
    replica: &Replica,
    quiet: &[u8],
    noisy: &[u8],
    span: Duration,
) -> anyhow::Result<(bool, serde_json::Value)> {
    let address = replica.address;
    let pace = Pace { rate: QUIET, connections: 4, span };
    paced::run(address, quiet, Pace { span: Duration::from_millis(500), ..pace }).await.context("warming up")?;
    // Its limit counts for a minute: used up first, so that every round meets the same tenant.
    let up = Pace { rate: 4_000.0, connections: 8, span: Duration::from_secs(2) };
    noise(address, noisy, up)?.join().map_err(|_| anyhow::anyhow!("the noise broke"))??;
    let (mut ratios, mut rows) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let alone_first = round % 2 == 0;
        let before = replica.process.ticks();
        let early = if alone_first { Some(paced::run(address, quiet, pace).await?) } else { None };
        let spent_alone = spent(&replica.process, before);
        let rate = f64::from(LIMIT) / 60.0 * TIMES;
        let beside_noise =
            noise(address, noisy, Pace { rate, connections: 32, span: span + Duration::from_millis(100) })?;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let beside = paced::run(address, quiet, pace).await.context("the quiet tenant beside the other")?;
        let other = beside_noise.join().map_err(|_| anyhow::anyhow!("the noise broke"))??;
        let alone = match early {
            Some(alone) => alone,
            None => paced::run(address, quiet, pace).await?,
        };
        let millis =
            |slice: &PacedSlice| slice.good().map(|good| (good.p50.as_secs_f64() * 1e3, good.p99.as_secs_f64() * 1e3));
        let ((alone_p50, alone_p99), (beside_p50, beside_p99)) = (millis(&alone)?, millis(&beside)?);
        ratios.push(beside_p99 / alone_p99);
        rows.push(json!({
            "alone_p99_ms": alone_p99, "beside_p99_ms": beside_p99, "alone_p50_ms": alone_p50, "beside_p50_ms": beside_p50,
            "quiet_failed": alone.failed + beside.failed + beside.refused, "late": beside.late,
            "noisy_served": other.0, "noisy_refused": other.1, "noisy_failed": other.2,
            "cpu_ticks_alone": spent_alone,
        }));
    }
    ratios.sort_by(f64::total_cmp);
    let (middle, last) = (ratios[ratios.len() / 2], ratios.len() - 1);
    let missed = middle > MOST;
    report::print(
        "| the quiet tenant, 50 calls/s | p99 alone, ms | p99 beside, ms | the other: served, refused, failed | quiet failed |\n|---|--:|--:|--:|--:|",
    );
    for (round, row) in rows.iter().enumerate() {
        report::print(&format!(
            "| round {} | {:.2} | {:.2} | {}, {}, {} | {} |",
            round + 1,
            row["alone_p99_ms"].as_f64().unwrap_or(0.0),
            row["beside_p99_ms"].as_f64().unwrap_or(0.0),
            row["noisy_served"],
            row["noisy_refused"],
            row["noisy_failed"],
            row["quiet_failed"],
        ));
    }
    report::print(&format!(
        "\np99 beside a tenant at {TIMES} times its limit, against alone: {middle:.2} ({:.2} to {:.2}), at most {MOST}: {}\n",
        ratios[0],
        ratios[last],
        if missed { "MISSED" } else { "ok" },
    ));
    Ok((missed, json!({ "ratio": middle, "lowest": ratios[0], "highest": ratios[last], "aim": MOST, "rounds": rows })))
}

type Noise = std::thread::JoinHandle<anyhow::Result<(usize, usize, usize)>>;

/// The other tenant, on a thread of its own. Gives how many were served, refused and failed.
fn noise(address: SocketAddr, request: &[u8], pace: Pace) -> anyhow::Result<Noise> {
    let request = request.to_vec();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let slice = runtime.block_on(paced::run(address, &request, pace))?;
        Ok((slice.served.map_or(0, |served| served.answers), slice.refused, slice.failed))
    };
    std::thread::Builder::new().name("noise".to_owned()).spawn(work).context("no thread for the noise")
}

fn spent(process: &Process, before: Option<u64>) -> Option<u64> {
    process.ticks().zip(before).map(|(after, before)| after.saturating_sub(before))
}

/// Each at half of what it can do at most.
async fn half_of_peak(
    replica: &Replica,
    redis: &OwnRedis,
    request: &[u8],
    options: &LoadOptions,
    span: Duration,
) -> anyhow::Result<(bool, serde_json::Value)> {
    let exchange = plan::settled(&mut KeptConnection::open(replica.address).await?, request).await?;
    let floor = Floor::start(FloorKind::RoundTrip, &exchange.answer, &redis.url).await?;
    let sides = [("service", replica.address, exchange.clone()), ("one round trip", floor.address, exchange)];
    let mut peaks = Vec::new();
    for (name, address, exchange) in &sides {
        let peak = load::slice(*address, exchange, options.connections, span).await;
        peaks.push(peak.with_context(|| format!("the peak of {name}"))?.rate);
    }
    let mut ratios = Vec::new();
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        let mut figures = [0.0; 2];
        for turn in 0..2 {
            let place = usize::from((turn + round) % 2 == 1);
            let (name, address, LoadExchange { request, .. }) = &sides[place];
            let pace = Pace { rate: peaks[place] / 2.0, connections: options.connections, span };
            let slice = paced::run(*address, request, pace).await.with_context(|| (*name).to_owned())?;
            figures[place] = slice.good()?.p99.as_secs_f64() * 1e3;
        }
        ratios.push(figures[0] / figures[1]);
        rounds.push(json!({ "service_p99_ms": figures[0], "floor_p99_ms": figures[1] }));
    }
    ratios.sort_by(f64::total_cmp);
    let middle = ratios[ratios.len() / 2];
    let missed = middle > MOST_AT_HALF;
    report::print(&format!(
        "p99 of a read at half of peak ({:.0}/s; one round trip: {:.0}/s), against one round trip at half of its own: \
         {middle:.2} ({:.2} to {:.2}), at most {MOST_AT_HALF}: {}",
        peaks[0],
        peaks[1],
        ratios[0],
        ratios[ratios.len() - 1],
        if missed { "MISSED" } else { "ok" },
    ));
    Ok((missed, json!({ "ratio": middle, "aim": MOST_AT_HALF, "peaks": peaks, "rounds": rounds })))
}
