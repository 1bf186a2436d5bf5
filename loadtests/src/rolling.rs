//! Two replicas restarted one after the other under load: nobody who follows two rules sees a failure.
//!
//! The rules are those of any balancer: a connection that is refused is tried at the other replica, and a kept connection
//! that the server has closed before the first byte of an answer is opened anew, at the other one. Nothing else is repeated:
//! an answer with another status than 200, or one that is cut in its middle, is a failure and is counted.
//! Two kinds of clients do that side by side: one opens a connection for each request, one keeps its connection.

use crate::contender::OwnRedis;
use crate::figures;
use crate::http::KeptConnection;
use crate::installation::Installation;
use crate::load::start_of;
use crate::operations;
use crate::options::LoadOptions;
use crate::plan::quartermaster;
use crate::report;
use anyhow::{Context, ensure};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How many clients of each kind.
const CLIENTS: usize = 4;
/// How long each of them rests between two requests: not throughput is measured.
const REST: Duration = Duration::from_millis(2);
/// How often one request may be tried: both replicas, and once more while one is just leaving and the other just there.
const TRIES: usize = 4;

/// What all clients of one kind saw.
#[derive(Default)]
struct Tally {
    requests: AtomicUsize,
    /// Connections that were refused.
    refused: AtomicUsize,
    /// Kept connections that were closed without an answer.
    closed: AtomicUsize,
    failures: std::sync::Mutex<Vec<String>>,
}

/// Restarts both replicas again and again, prints what clients saw, and gives 1 if any request failed.
pub(crate) async fn run(options: &LoadOptions) -> anyhow::Result<usize> {
    let (program, redis) = (quartermaster(options)?, OwnRedis::start(&options.redis).await?);
    let tenant = "tenant: dev\nmode: read\ndefault_toolsets: [memory]\n\
                  limits: { calls_in_flight: 1000, calls_per_minute: 1000000 }\n";
    let installation = Installation::new(&program, &redis.url, &[("dev".to_owned(), tenant.to_owned())])?;
    let mut replicas = vec![installation.replica(&[]).await?, installation.replica(&[]).await?];
    let addresses: Arc<[SocketAddr]> = replicas.iter().map(|replica| replica.address).collect();
    let token = installation.token("dev", "agent", "tools:read")?;
    let requests: Arc<[Vec<u8>]> = [operations::list_tools(&token), operations::memory_list_of(&token)].into();
    let tallies: [Arc<Tally>; 2] = Default::default();
    let over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS * 2 {
        let keeps = number % 2 == 1;
        let (tally, over) = (Arc::clone(&tallies[usize::from(keeps)]), Arc::clone(&over));
        let (addresses, requests) = (Arc::clone(&addresses), Arc::clone(&requests));
        clients.spawn(async move { client(number, keeps, &addresses, &requests, &tally, &over).await });
    }
    let until = Instant::now() + Duration::from_secs(options.seconds);
    let (mut restarts, mut longest) = (0, Duration::ZERO);
    // Each of them at least once.
    while restarts < replicas.len() || Instant::now() < until {
        let place = restarts % replicas.len();
        let mut leaving = replicas.remove(place);
        let begun = Instant::now();
        leaving.process.terminate()?;
        let status = leaving.process.left().await?;
        longest = longest.max(begun.elapsed());
        ensure!(status == Some(0), "a replica left with {status:?}: {}", leaving.process.tail());
        replicas.insert(place, installation.replica_at(leaving.address, &[]).await.context("a restart")?);
        restarts += 1;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    over.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.context("a client broke")?;
    }
    report::print(&format!("{restarts} restarts, the longest took {:.1} s to leave\n", longest.as_secs_f64()));
    report::print(
        "| clients | requests | refused, tried at the other | closed before an answer, opened anew | failed |\n|---|--:|--:|--:|--:|",
    );
    let (mut failed, mut rows) = (0, Vec::new());
    for (name, tally) in ["a connection for each request", "kept connections"].into_iter().zip(&tallies) {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        let failures = tally.failures.lock().map_or_else(|broken| broken.into_inner().clone(), |list| list.clone());
        let (requests, refused, closed) = (read(&tally.requests), read(&tally.refused), read(&tally.closed));
        report::print(&format!("| {name} | {requests} | {refused} | {closed} | {} |", failures.len()));
        failures.iter().take(5).for_each(|why| report::print(&format!("  {why}")));
        failed += failures.len();
        rows.push(json!({ "clients": name, "requests": requests, "refused": refused, "closed": closed, "failures": failures }));
    }
    report::print(&format!("\nno request fails: {}", if failed > 0 { "MISSED" } else { "ok" }));
    let all = json!({ "restart": { "restarts": restarts, "longest_s": longest.as_secs_f64(), "clients": rows } });
    figures::keep(options.json.as_deref(), &all, None, "")?;
    Ok(usize::from(failed > 0))
}

async fn client(
    number: usize,
    keeps: bool,
    addresses: &[SocketAddr],
    requests: &[Vec<u8>],
    tally: &Tally,
    over: &AtomicBool,
) {
    let (mut place, mut kept, mut turn) = (number / 2, None::<KeptConnection>, number);
    while !over.load(Ordering::Relaxed) {
        tokio::time::sleep(REST).await;
        let request = &requests[turn % requests.len()];
        turn += 1;
        tally.requests.fetch_add(1, Ordering::Relaxed);
        if let Err(why) = ask(request, keeps, addresses, &mut place, &mut kept, tally).await {
            tally
                .failures
                .lock()
                .map_or_else(|broken| broken.into_inner().push(why.clone()), |mut list| list.push(why.clone()));
            kept = None;
        }
    }
}

/// One request by the rules of a balancer.
async fn ask(
    request: &[u8],
    keeps: bool,
    addresses: &[SocketAddr],
    place: &mut usize,
    kept: &mut Option<KeptConnection>,
    tally: &Tally,
) -> Result<(), String> {
    let mut why = "both replicas refuse".to_owned();
    for _ in 0..TRIES {
        let (mut connection, used) = match kept.take() {
            Some(connection) => (connection, true),
            None => match KeptConnection::open(addresses[*place % addresses.len()]).await {
                Ok(connection) => (connection, false),
                Err(_) => {
                    tally.refused.fetch_add(1, Ordering::Relaxed);
                    *place += 1;
                    continue;
                }
            },
        };
        let answered = connection.send(request).await.map(|answer| {
            let closes = answer.header("connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
            let wrong = (answer.status != 200).then(|| format!("status {}: {}", answer.status, start_of(answer.body)));
            (closes, wrong)
        });
        match answered {
            Ok((closes, None)) => {
                *kept = (keeps && !closes).then_some(connection);
                return Ok(());
            }
            Ok((_, Some(wrong))) => return Err(wrong),
            // The server closed it between two requests, before it read this one.
            Err(error) if used && connection.is_untouched() => {
                tally.closed.fetch_add(1, Ordering::Relaxed);
                *place += 1;
                why = format!("{error:#}");
            }
            Err(error) => return Err(format!("{error:#}")),
        }
    }
    Err(why)
}
