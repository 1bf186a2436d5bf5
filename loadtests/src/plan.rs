//! The whole run: both stores, every operation, every floor it is compared with.

use crate::contender::{Contender, Redis};
use crate::floor::{Floor, Kind};
use crate::http::Connection;
use crate::load::{Exchange, start_of};
use crate::operations::{self, Operation};
use crate::options::Options;
use crate::report::{self, Row};
use crate::versus::{self, Effort, Side};
use anyhow::{Context, ensure};
use std::path::PathBuf;
use std::time::Duration;

/// What the control row answers with: as much as a short list.
const CONTROL: [u8; 2_048] = [b' '; 2_048];

/// Measures everything, prints the table, and gives how many aims were missed.
pub(crate) async fn run(options: &Options) -> anyhow::Result<usize> {
    let program = quartermaster(options)?;
    let effort = Effort { span: Duration::from_secs(options.seconds), connections: options.connections };
    let redis = Redis::start(&options.redis).await?;
    if cfg!(debug_assertions) {
        report::print("This is a debug build: its floors are slow, and the ratios say nothing. Use --release.\n");
    }
    report::print(report::HEAD);
    control(&redis, effort).await?;
    let mut missed = 0;
    for (store, url) in [("embedded", None), ("redis", Some(redis.url.as_str()))] {
        let contender = Contender::start(&program, url).await?;
        for operation in &operations::ALL {
            let exchange = sample(&contender, operation).await.with_context(|| operation.name)?;
            for &(kind, aim) in operation.against {
                let floor = Floor::start(kind, &exchange.answer, &redis.url).await?;
                let ours = Side { name: "service", address: contender.address, process: &contender.process };
                let theirs = Side { name: "floor", address: floor.address, process: &floor.process };
                let compared = versus::compare(&ours, &theirs, &exchange, effort).await;
                let verdict = compared.with_context(|| format!("{} on {store}", operation.name))?;
                let row = Row { operation: operation.name, store, floor: kind.as_str(), aim, verdict };
                report::print(&row.line());
                missed += usize::from(row.missed());
            }
        }
    }
    report::print(report::FOOT);
    Ok(missed)
}

/// A floor against its twin: what is left between equals is the noise of this run.
async fn control(redis: &Redis, effort: Effort) -> anyhow::Result<()> {
    let request = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n";
    let exchange = Exchange { request: request.as_bytes().into(), answer: CONTROL.into() };
    let one = Floor::start(Kind::Bare, &CONTROL, &redis.url).await?;
    let two = Floor::start(Kind::Bare, &CONTROL, &redis.url).await?;
    let [ours, theirs] =
        [&one, &two].map(|floor| Side { name: "floor", address: floor.address, process: &floor.process });
    let verdict = versus::compare(&ours, &theirs, &exchange, effort).await.context("the control")?;
    let (store, floor) = ("-", Kind::Bare.as_str());
    report::print(&Row { operation: "control: a floor against its twin", store, floor, aim: None, verdict }.line());
    Ok(())
}

/// Asks until the answer is settled: the first may still change something, the next two must be equal.
async fn sample(contender: &Contender, operation: &Operation) -> anyhow::Result<Exchange> {
    let request = (operation.request)(&contender.tickets);
    let mut connection = Connection::open(contender.address).await?;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let answer = connection.send(&request).await?;
        let body = start_of(answer.body);
        ensure!(answer.status == 200, "answered with status {}: {body}", answer.status);
        let told: serde_json::Value = serde_json::from_slice(answer.body).context("the answer is not JSON")?;
        let fine = told.get("result").is_some_and(|result| result["isError"] != serde_json::json!(true));
        ensure!(fine, "answered with an error: {body}");
        answers.push(answer.body.to_vec());
    }
    ensure!(answers[1] == answers[2], "two answers differ, so none can stand for all");
    Ok(Exchange { request: request.into(), answer: answers.swap_remove(2).into() })
}

/// The program to measure: the one that was told, or the one built beside this one.
fn quartermaster(options: &Options) -> anyhow::Result<PathBuf> {
    let beside = || anyhow::Ok(std::env::current_exe()?.with_file_name("quartermaster"));
    let program = match &options.quartermaster {
        Some(told) => told.clone(),
        None => beside().context("this program does not know where it is")?,
    };
    ensure!(
        program.is_file(),
        "there is no program {}; build it with `cargo build --release -p gateway`, or say --quartermaster PATH",
        program.display()
    );
    Ok(program)
}
