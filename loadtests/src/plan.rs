//! The whole run: both stores, every operation, every floor it is compared with.

use crate::contender::{self, Contender, OwnRedis};
use crate::floor::{Floor, FloorKind};
use crate::http::{HttpAnswer, KeptConnection};
use crate::load::{LoadExchange, start_of};
use crate::operations::{self, Operation};
use crate::options::LoadOptions;
use crate::report::{self, Aim, ReportRow};
use crate::versus::{self, Effort, Side};
use anyhow::{Context, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the control row answers with: as much as a short list.
const CONTROL: [u8; 2_048] = [b' '; 2_048];

/// The row of calls that are refused.
const REFUSED: &str = "tools/call memory_list over the rate, modern";
/// The rate of a tenant whose next call is over it: the one call is made when its session is opened.
const ONE_CALL: u32 = 1;
/// How much of a served call's CPU time a refused one may cost.
const A_QUARTER: f64 = 0.25;
/// The row of calls of which one in ten is traced.
const TRACED: &str = "tools/call no-op, modern, tracing 10 %";
/// Tracing may cost a twentieth.
const NEARLY_ALL: f64 = 0.95;

/// What the contender stands on, in the order of the table.
const STORES: [&str; 2] = ["embedded", "redis"];

/// Measures everything, prints the table, and gives how many aims were missed.
pub(crate) async fn run(options: &LoadOptions) -> anyhow::Result<usize> {
    let program = quartermaster(options)?;
    let more = [REFUSED, TRACED];
    let none = STORES.iter().all(|store| {
        chosen(store, &options.only).is_empty() && !more.iter().any(|row| named(row, store, &options.only))
    });
    ensure!(!none, "no row holds `{}`", options.only);
    let effort = Effort { span: Duration::from_secs(options.seconds), connections: options.connections };
    let redis = OwnRedis::start(&options.redis).await?;
    if cfg!(debug_assertions) {
        report::print("This is a debug build: its floors are slow, and the ratios say nothing. Use --profile dist.\n");
    }
    report::print(report::HEAD);
    control(&redis, effort).await?;
    let mut missed = 0;
    for (store, url) in STORES.into_iter().zip([None, Some(redis.url.as_str())]) {
        let operations = chosen(store, &options.only);
        let (refuses, traces) = (named(REFUSED, store, &options.only), named(TRACED, store, &options.only));
        if operations.is_empty() && !refuses && !traces {
            continue;
        }
        let contender = Contender::start(&program, url, contender::UNLIMITED).await?;
        if let Some(former) = &options.former {
            let former = Contender::start(former, url, contender::UNLIMITED).await.context("the former build")?;
            for operation in operations {
                let row = against_former(&contender, &former, operation, store, effort).await;
                report::print(&row.with_context(|| format!("{} on {store}", operation.name))?.line());
            }
            continue;
        }
        for operation in operations {
            let exchange = sample(&contender, operation).await.with_context(|| operation.name)?;
            for &(kind, aim) in operation.against {
                let floor = Floor::start(kind, &exchange.answer, &redis.url).await?;
                let ours = side("service", &contender, &exchange);
                let (address, processes) = (floor.address, vec![&floor.process]);
                let theirs = Side { name: "floor", address, processes, exchange: &exchange };
                let compared = versus::compare(&ours, &theirs, effort).await;
                let verdict = compared.with_context(|| format!("{} on {store}", operation.name))?;
                let (floor, aim) = (kind.as_str(), aim.map(Aim::Ratio));
                let row = ReportRow { operation: operation.name, store, floor, aim, verdict };
                report::print(&row.line());
                missed += usize::from(row.missed());
            }
        }
        if traces {
            let row = traced(&program, url, &contender, &redis, effort).await.with_context(|| TRACED)?;
            report::print(&row.line());
            missed += usize::from(row.missed());
        }
        if refuses {
            let own = url.map(|_| &redis);
            let row = refused(&program, own, &contender, effort).await.with_context(|| REFUSED)?;
            report::print(&row.line());
            missed += usize::from(row.missed());
        }
    }
    report::print(report::FOOT);
    Ok(missed)
}

/// The operations on this store whose row holds the text.
fn chosen(store: &str, only: &str) -> Vec<&'static Operation> {
    operations::ALL.iter().filter(|operation| named(operation.name, store, only)).collect()
}

/// Whether a row on this store holds the text.
fn named(operation: &str, store: &str, only: &str) -> bool {
    format!("{operation}, {store}").contains(only)
}

/// An operation against the same one of an earlier build. Their answers may differ; each must stay like its own first one.
async fn against_former(
    contender: &Contender,
    former: &Contender,
    operation: &'static Operation,
    store: &'static str,
    effort: Effort,
) -> anyhow::Result<ReportRow> {
    let (ours, theirs) = (sample(contender, operation).await?, sample(former, operation).await?);
    let (ours, theirs) = (side("service", contender, &ours), side("former build", former, &theirs));
    let verdict = versus::compare(&ours, &theirs, effort).await?;
    Ok(ReportRow { operation: operation.name, store, floor: "former build", aim: None, verdict })
}

/// A service that sends one trace in ten to a collector, against the same one that sends none. The collector takes
/// everything and keeps nothing.
async fn traced(
    program: &Path,
    url: Option<&str>,
    untraced: &Contender,
    redis: &OwnRedis,
    effort: Effort,
) -> anyhow::Result<ReportRow> {
    let collector = Floor::start(FloorKind::Bare, b"", &redis.url).await?;
    let settings = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address)),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".to_owned()),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio".to_owned()),
        ("OTEL_TRACES_SAMPLER_ARG", "0.1".to_owned()),
    ];
    let tracing = Contender::start_in(program, url, contender::UNLIMITED, &settings).await?;
    let (ours, theirs) = (sample(&tracing, &operations::NO_OP).await?, sample(untraced, &operations::NO_OP).await?);
    let (ours, theirs) = (side("tracing service", &tracing, &ours), side("service", untraced, &theirs));
    let verdict = versus::compare(&ours, &theirs, effort).await?;
    let store = if url.is_some() { "redis" } else { "embedded" };
    Ok(ReportRow { operation: TRACED, store, floor: "untraced", aim: Some(Aim::Ratio(NEARLY_ALL)), verdict })
}

/// A call over the rate against the same call that is served, each by a service of its own: what somebody costs who does
/// not stop. Redis works for both, so its time counts as well.
async fn refused(
    program: &Path,
    redis: Option<&OwnRedis>,
    served: &Contender,
    effort: Effort,
) -> anyhow::Result<ReportRow> {
    let refusing = Contender::start(program, redis.map(|redis| redis.url.as_str()), ONE_CALL).await?;
    let serving = sample(served, &operations::LOOK).await?;
    let request = (operations::LOOK.request)(&refusing.tickets);
    let mut connection = KeptConnection::open(refusing.address).await?;
    let answer = connection.send(&request).await?;
    let told = start_of(answer.body);
    ensure!(answer.status == 200 && told.contains("rate_limited"), "this was not refused for its rate: {told}");
    let refusal = LoadExchange::new(&request, answer.body);
    let side = |name, address, process, exchange| {
        let processes = [Some(process), redis.map(|redis| &redis.process)].into_iter().flatten().collect();
        Side { name, address, processes, exchange }
    };
    let ours = side("refusing service", refusing.address, &refusing.process, &refusal);
    let theirs = side("service", served.address, &served.process, &serving);
    // The refused minute must not end before the measurement.
    let effort = Effort { span: effort.span.min(Duration::from_secs(10)), ..effort };
    let verdict = versus::compare(&ours, &theirs, effort).await?;
    let store = if redis.is_some() { "redis" } else { "embedded" };
    Ok(ReportRow { operation: REFUSED, store, floor: "served", aim: Some(Aim::Cpu(A_QUARTER)), verdict })
}

/// A floor against its twin: what is left between equals is the noise of this run.
async fn control(redis: &OwnRedis, effort: Effort) -> anyhow::Result<()> {
    let request = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n";
    let exchange = LoadExchange::new(request.as_bytes(), &CONTROL);
    let one = Floor::start(FloorKind::Bare, &CONTROL, &redis.url).await?;
    let two = Floor::start(FloorKind::Bare, &CONTROL, &redis.url).await?;
    let [ours, theirs] = [&one, &two].map(|floor| Side {
        name: "floor",
        address: floor.address,
        processes: vec![&floor.process],
        exchange: &exchange,
    });
    let verdict = versus::compare(&ours, &theirs, effort).await.context("the control")?;
    let (store, floor) = ("-", FloorKind::Bare.as_str());
    report::print(
        &ReportRow { operation: "control: a floor against its twin", store, floor, aim: None, verdict }.line(),
    );
    Ok(())
}

fn side<'a>(name: &'static str, contender: &'a Contender, exchange: &'a LoadExchange) -> Side<'a> {
    Side { name, address: contender.address, processes: vec![&contender.process], exchange }
}

/// What an operation sends to this service, and what it answers.
pub(crate) async fn sample(contender: &Contender, operation: &Operation) -> anyhow::Result<LoadExchange> {
    let request = (operation.request)(&contender.tickets);
    settled(&mut KeptConnection::open(contender.address).await?, &request).await
}

/// Asks until the answer is settled: the first may still change something, the next two must be alike.
pub(crate) async fn settled(connection: &mut KeptConnection, request: &[u8]) -> anyhow::Result<LoadExchange> {
    fine(&connection.send(request).await?)?;
    let exchange = LoadExchange::new(request, fine(&connection.send(request).await?)?);
    let again = connection.send(request).await?;
    let (one, two) = (start_of(&exchange.answer), start_of(again.body));
    ensure!(exchange.admits(fine(&again)?), "two answers differ, so none can stand for all:\n{one}\n{two}");
    Ok(exchange)
}

/// The body of an answer that is neither an error of HTTP nor one of the protocol nor one of a tool.
fn fine<'a>(answer: &HttpAnswer<'a>) -> anyhow::Result<&'a [u8]> {
    let (status, start) = (answer.status, start_of(answer.body));
    ensure!(status == 200, "answered with status {status}: {start}");
    let told: serde_json::Value = serde_json::from_slice(answer.body).context("an answer is not JSON")?;
    let done = told.get("result").is_some_and(|result| result["isError"] != serde_json::json!(true));
    ensure!(done, "answered with an error: {start}");
    Ok(answer.body)
}

/// The program to measure: the one that was told, or the one built beside this one.
pub(crate) fn quartermaster(options: &LoadOptions) -> anyhow::Result<PathBuf> {
    let beside = || anyhow::Ok(std::env::current_exe()?.with_file_name("quartermaster"));
    let program = match &options.quartermaster {
        Some(told) => told.clone(),
        None => beside().context("this program does not know where it is")?,
    };
    ensure!(
        program.is_file(),
        "there is no program {}; build it with `cargo build --profile dist -p gateway`, or say --quartermaster PATH",
        program.display()
    );
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(store: &str, only: &str) -> Vec<&'static str> {
        chosen(store, only).into_iter().map(|operation| operation.name).collect()
    }

    #[test]
    fn a_text_chooses_rows_by_operation_and_store() {
        assert_eq!(names("redis", "").len(), operations::ALL.len());
        assert_eq!(names("redis", "no-op, modern, redis"), ["tools/call no-op, modern"]);
        assert_eq!(names("embedded", "no-op, modern, redis"), [""; 0]);
    }

    #[tokio::test]
    async fn a_text_no_row_holds_is_refused_before_anything_starts() {
        let beside = Some(std::env::current_exe().unwrap());
        let options = LoadOptions { only: "tools/lost".into(), quartermaster: beside, ..LoadOptions::default() };
        assert_eq!(run(&options).await.unwrap_err().to_string(), "no row holds `tools/lost`");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named_with_the_way_to_build_it() {
        let options = LoadOptions { quartermaster: Some("/nowhere/quartermaster".into()), ..LoadOptions::default() };
        let error = run(&options).await.unwrap_err().to_string();
        assert!(error.contains("/nowhere/quartermaster") && error.contains("cargo build"), "{error}");
    }

    #[tokio::test]
    async fn refusals_of_every_kind_are_no_sample() {
        for (body, why) in [
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}"#, "answered with an error"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#, "answered with an error"),
            ("plain", "not JSON"),
        ] {
            let floor = crate::floor::tests::floor(body, None);
            let mut connection = KeptConnection::open(floor.address).await.unwrap();
            let answer = connection.send(&crate::floor::tests::post("{}")).await.unwrap();
            let error = fine(&answer).unwrap_err().to_string();
            assert!(error.contains(why), "{body}: {error}");
        }
    }
}
