//! The generator: a closed loop on each of a few kept connections, the same for whoever is measured.
//!
//! Each connection sends the same request, waits for the answer and sends again until the slice is over. Every answer is
//! compared with the expected bytes, so that a refusal is never counted as a quick success. Only the trace id may differ.

use crate::http::KeptConnection;
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The most requests of one connection in one slice, whatever the time says: what is remembered has a bound.
const MOST: usize = 1_000_000;
/// How much longer than its slice the slowest answer may take.
const GRACE: Duration = Duration::from_secs(10);
/// How much of a wrong answer is shown.
const SHOWN: usize = 400;

/// What stands before the parts of an answer that are new each time, and how long such a part is. An error tells
/// it twice more, once in JSON that is a text.
const TRACES: [&[u8]; 3] = [br#""quartermaster/trace_id":""#, br#""trace_id":""#, br#"\"trace_id\":\""#];
const TRACE_ID: usize = 32;

/// What is sent, and what must come back.
#[derive(Debug, Clone)]
pub(crate) struct LoadExchange {
    /// The request, head and body.
    pub(crate) request: Arc<[u8]>,
    /// The body of a right answer.
    pub(crate) answer: Arc<[u8]>,
    /// Where it holds trace ids, in this order.
    varies: Vec<Range<usize>>,
}

impl LoadExchange {
    /// A request, and an answer all others must be like.
    pub(crate) fn new(request: &[u8], answer: &[u8]) -> LoadExchange {
        let mut varies = Vec::new();
        for mark in TRACES {
            let found = answer.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len());
            varies.extend(found.filter(|at| at + TRACE_ID <= answer.len()).map(|at| at..at + TRACE_ID));
        }
        varies.sort_by_key(|part| part.start);
        LoadExchange { request: request.into(), answer: answer.into(), varies }
    }

    /// Whether a body is the right answer too.
    pub(crate) fn admits(&self, body: &[u8]) -> bool {
        let mut from = 0;
        let same = |part: &Range<usize>| {
            let fixed = std::mem::replace(&mut from, part.end)..part.start;
            body[fixed.clone()] == self.answer[fixed]
        };
        body.len() == self.answer.len() && self.varies.iter().all(same) && body[from..] == self.answer[from..]
    }
}

/// What one slice showed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Slice {
    /// Right answers a second.
    pub(crate) rate: f64,
    /// Right answers in all.
    pub(crate) answers: usize,
    /// How long the middle answer took.
    pub(crate) p50: Duration,
    /// How long all but one in a hundred took at most.
    pub(crate) p99: Duration,
}

/// The threads of the generator: half of the cores, the other half is for whoever is measured.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).div_euclid(2).max(1)
}

/// Loads a server for a while.
pub(crate) async fn slice(
    address: SocketAddr,
    exchange: &LoadExchange,
    connections: usize,
    span: Duration,
) -> anyhow::Result<Slice> {
    let mut opened = Vec::with_capacity(connections);
    for _ in 0..connections {
        opened.push(KeptConnection::open(address).await?);
    }
    let start = Instant::now();
    let mut loops = JoinSet::new();
    for connection in opened {
        loops.spawn(repeat(connection, exchange.clone(), start + span));
    }
    let gather = async {
        let mut times = Vec::new();
        while let Some(ended) = loops.join_next().await {
            times.append(&mut ended.context("a connection's loop broke")??);
        }
        Ok::<_, anyhow::Error>((times, start.elapsed()))
    };
    let (times, took) = tokio::time::timeout(span + GRACE, gather).await.context("an answer never came")??;
    summed(times, took)
}

/// One connection, one request after the other and at least one. Gives how long each took.
async fn repeat(mut connection: KeptConnection, exchange: LoadExchange, end: Instant) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(4_096);
    let mut sent = Instant::now();
    loop {
        let answer = connection.send(&exchange.request).await?;
        let came = Instant::now();
        let right = answer.status == 200 && exchange.admits(answer.body);
        ensure!(right, "an answer differs from the first one: status {}, {}", answer.status, start_of(answer.body));
        times.push(came - sent);
        if came >= end || times.len() >= MOST {
            return Ok(times);
        }
        sent = came;
    }
}

/// The beginning of a body, for a message.
pub(crate) fn start_of(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned()
}

pub(crate) fn summed(mut times: Vec<Duration>, took: Duration) -> anyhow::Result<Slice> {
    ensure!(!times.is_empty(), "not one answer came");
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    let answers = times.len();
    Ok(Slice { rate: answers as f64 / took.as_secs_f64(), answers, p50: at(0.50), p99: at(0.99) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::tests::{floor, post};

    fn exchange(answer: &str) -> LoadExchange {
        LoadExchange::new(&post("{}"), answer.as_bytes())
    }

    #[tokio::test]
    async fn a_slice_counts_the_right_answers_of_all_connections() {
        let floor = floor("same", None);
        let slice = slice(floor.address, &exchange("same"), 3, Duration::from_millis(50)).await.unwrap();
        assert!(slice.answers >= 3, "{slice:?}");
        assert!(slice.p50 <= slice.p99 && slice.rate > 0.0, "{slice:?}");
    }

    #[tokio::test]
    async fn an_answer_that_differs_ends_the_measurement_and_is_shown() {
        let floor = floor("too many calls", None);
        let error = slice(floor.address, &exchange("fine"), 2, Duration::from_millis(50)).await.unwrap_err();
        assert!(error.to_string().contains("status 200, too many calls"), "{error}");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_cannot_be_measured() {
        let nobody = crate::process::free_port().unwrap();
        let error = slice(nobody, &exchange("fine"), 1, Duration::from_millis(50)).await.unwrap_err();
        assert!(error.to_string().contains("nobody listens"), "{error}");
    }

    #[test]
    fn only_the_trace_id_of_an_answer_may_differ() {
        let told = |documents: u8, trace: char| {
            let trace = String::from(trace).repeat(TRACE_ID);
            format!(r#"{{"documents":{documents},"_meta":{{"quartermaster/trace_id":"{trace}"}}}}"#).into_bytes()
        };
        let exchange = LoadExchange::new(b"", &told(0, 'a'));
        assert!(exchange.admits(&told(0, 'b')));
        assert!(!exchange.admits(&told(1, 'a')));
        assert!(!exchange.admits(&told(0, 'a')[1..]));
        let failed = |trace: char| format!(r#"{{\"trace_id\":\"{}\"}}"#, String::from(trace).repeat(TRACE_ID));
        assert!(LoadExchange::new(b"", failed('a').as_bytes()).admits(failed('b').as_bytes()));
        let plain = LoadExchange::new(b"", b"plain");
        assert!(plain.admits(b"plain") && !plain.admits(b"plaid") && !plain.admits(b""));
        let cut = LoadExchange::new(b"", br#""quartermaster/trace_id":"ab"#);
        assert!(!cut.admits(br#""quartermaster/trace_id":"cd"#));
    }

    #[test]
    fn rate_and_percentiles_come_from_all_times() {
        let times = (1..=100).rev().map(Duration::from_millis).collect();
        let slice = summed(times, Duration::from_secs(2)).unwrap();
        assert_eq!((slice.answers, slice.rate), (100, 50.0));
        assert_eq!((slice.p50, slice.p99), (Duration::from_millis(51), Duration::from_millis(99)));
        assert!(summed(Vec::new(), Duration::from_secs(1)).is_err());
    }
}
