//! Requests at a fixed rate, whatever the answers do: an answer that is late does not put off the next request, and its time
//! counts from when it should have been sent.

use crate::http::KeptConnection;
use crate::load::{Slice, summed};
use anyhow::Context;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What came back, by what it was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PacedSlice {
    /// Times and rate of the good answers, if there was one.
    pub(crate) served: Option<Slice>,
    /// Answers that were refused for their rate.
    pub(crate) refused: usize,
    /// All others.
    pub(crate) failed: usize,
    /// The share of requests that were sent more than a millisecond late: then the generator is what was measured.
    pub(crate) late: f64,
}

impl PacedSlice {
    /// The good answers; without one there is nothing to tell.
    pub(crate) fn good(&self) -> anyhow::Result<&Slice> {
        let PacedSlice { refused, failed, .. } = self;
        self.served.as_ref().with_context(|| format!("not one good answer, {refused} refused and {failed} failed"))
    }
}

/// How much, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Requests a second, of all connections together.
    pub(crate) rate: f64,
    pub(crate) connections: usize,
    pub(crate) span: Duration,
}

/// Sends at that rate.
pub(crate) async fn run(address: SocketAddr, request: &[u8], pace: Pace) -> anyhow::Result<PacedSlice> {
    let request: Arc<[u8]> = request.into();
    let apart = Duration::from_secs_f64(pace.connections as f64 / pace.rate);
    let mut loops = JoinSet::new();
    let start = Instant::now() + Duration::from_millis(5);
    for number in 0..pace.connections {
        let mut connection = KeptConnection::open(address).await?;
        let request = Arc::clone(&request);
        // Spread evenly, so that connections do not send in step.
        let first = start + apart.mul_f64(number as f64 / pace.connections as f64);
        loops.spawn(async move {
            let (mut times, mut refused, mut failed, mut late, mut due) = (Vec::new(), 0, 0, 0, first);
            while due < start + pace.span {
                tokio::time::sleep_until(due.into()).await;
                late += usize::from(due.elapsed() > Duration::from_millis(1));
                let answer = connection.send(&request).await?;
                let bad = answer.status != 200 || holds(answer.body, br#""isError":true"#);
                match bad {
                    false => times.push(due.elapsed()),
                    true if answer.status == 429 || holds(answer.body, b"rate_limited") => refused += 1,
                    true => failed += 1,
                }
                due += apart;
            }
            Ok::<_, anyhow::Error>((times, refused, failed, late))
        });
    }
    let (mut times, mut refused, mut failed, mut late) = (Vec::new(), 0, 0, 0);
    while let Some(ended) = loops.join_next().await {
        let mut one = ended.context("a loop broke")??;
        times.append(&mut one.0);
        (refused, failed, late) = (refused + one.1, failed + one.2, late + one.3);
    }
    let all = times.len() + refused + failed;
    let served = summed(times, start.elapsed()).ok();
    Ok(PacedSlice { served, refused, failed, late: late as f64 / all.max(1) as f64 })
}

fn holds(body: &[u8], wanted: &[u8]) -> bool {
    body.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::tests::{floor, post};

    #[tokio::test]
    async fn so_many_are_sent_as_the_rate_says() {
        let floor = floor("{}", None);
        let pace = Pace { rate: 100.0, connections: 4, span: Duration::from_millis(200) };
        let slice = run(floor.address, &post("{}"), pace).await.unwrap();
        assert_eq!((slice.good().unwrap().answers, slice.refused, slice.failed), (20, 0, 0));
    }

    #[tokio::test]
    async fn refusals_are_no_answers() {
        let floor = floor(r#"{"result":{"isError":true,"code":"rate_limited"}}"#, None);
        let pace = Pace { rate: 50.0, connections: 1, span: Duration::from_millis(100) };
        let slice = run(floor.address, &post("{}"), pace).await.unwrap();
        assert_eq!((slice.refused, slice.failed), (5, 0));
        assert!(slice.good().unwrap_err().to_string().contains("5 refused"));
    }
}
