//! `/console/live`: a stream that says when to look again. It holds no meaning; losing one costs the page a look.
//!
//! The server speaks at least every ten seconds, so that a page knows when it may be old. A stream ends with the session
//! of its person, on whichever replica they signed out.

use super::person::ConsolePerson;
use super::reply;
use crate::app::Gateway;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use bytes::Bytes;
use domain::Tenant;
use executor::SlotGuard;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::{BrowserTimes, TenantWatch, Topic, WakeUp};
use tokio::sync::mpsc;

/// How often the server speaks at least.
const BEAT: Duration = Duration::from_secs(10);
/// Several changes within this time are one.
const GATHER: Duration = Duration::from_millis(250);

/// `GET /console/live`.
pub(super) async fn follow(person: ConsolePerson, gateway: Data<Gateway>) -> HttpResponse {
    let trace_id = person.authed.trace_id.clone();
    let place = match gateway.executor.admit_stream(&person.authed.caller) {
        Ok(place) => place,
        Err(failure) => {
            let refused = reply::start(StatusCode::TOO_MANY_REQUESTS, &trace_id).finish();
            return reply::with_retry(refused, &failure);
        }
    };
    let Some(times) = gateway.console.as_ref().map(|console| console.times) else {
        return reply::start(StatusCode::NOT_FOUND, &trace_id).finish();
    };
    let (sender, receiver) = mpsc::channel(8);
    let tenant = person.authed.caller.tenant.clone();
    let watch = gateway.store.of(&tenant).watch();
    let follower = PageFollower {
        gateway: Arc::clone(&gateway),
        tenant,
        digest: person.key.digest(),
        times,
        sender,
        _place: place,
    };
    gateway.tasks.spawn("console stream", follower.run(watch));
    let frames = futures_util::stream::unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async move {
        receiver.recv().await.map(|frame| (Ok::<Bytes, Infallible>(frame), receiver))
    });
    reply::start(StatusCode::OK, &trace_id).content_type("text/event-stream").streaming(frames)
}

/// The last words to somebody who is no longer signed in.
const OUT: &str = "event: out\ndata: out\n\n";

enum LiveEvent {
    Beat,
    Changed,
    SignedOut,
}

struct PageFollower {
    gateway: Arc<Gateway>,
    tenant: Tenant,
    digest: String,
    times: BrowserTimes,
    sender: mpsc::Sender<Bytes>,
    _place: SlotGuard,
}

impl PageFollower {
    async fn run(self, mut watch: TenantWatch) {
        let _open = telemetry::metrics::STREAMS_OPEN.enter(["console"]);
        let stopping = self.gateway.tasks.stopping().clone();
        let mut beat = tokio::time::interval(BEAT);
        let mut fresh = true; // every watch begins with a resync, and at the beginning there is nothing to tell
        loop {
            let event = tokio::select! {
                () = self.sender.closed() => return,
                () = stopping.cancelled() => return,
                _ = beat.tick() => LiveEvent::Beat,
                wake = watch.next() => match wake {
                    WakeUp::Topic(Topic::Run(_)) => LiveEvent::Changed,
                    WakeUp::Topic(Topic::SignedOut) => LiveEvent::SignedOut,
                    WakeUp::Topic(_) => continue,
                    WakeUp::Resync if std::mem::take(&mut fresh) => continue,
                    WakeUp::Resync => LiveEvent::Changed,
                },
            };
            let frame = match event {
                LiveEvent::Changed => {
                    gather(&mut watch).await;
                    "event: changed\ndata: runs\n\n".to_owned()
                }
                LiveEvent::Beat | LiveEvent::SignedOut if !self.alive().await => OUT.to_owned(),
                LiveEvent::Beat => format!("event: beat\ndata: {}\n\n", self.gateway.clock.now().millis()),
                LiveEvent::SignedOut => continue,
            };
            let ends = frame == OUT;
            if self.sender.send(Bytes::from(frame)).await.is_err() || ends {
                return;
            }
        }
    }

    /// Whether the person is still signed in; asking does not keep them so. A store that does not answer proves nothing.
    async fn alive(&self) -> bool {
        let browsers = self.gateway.store.of(&self.tenant).browsers();
        browsers.find(&self.digest, self.times, false).await.map_or(true, |found| found.is_some())
    }
}

/// Lets what comes at once be one change. Sign-outs are not lost by it: the next beat finds them.
async fn gather(watch: &mut TenantWatch) {
    let until = tokio::time::Instant::now() + GATHER;
    while tokio::time::timeout_at(until, watch.next()).await.is_ok() {}
}
