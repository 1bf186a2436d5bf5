//! `pods/log`: the lines of one container, cut as asked, or followed.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use jiff::Timestamp;
use serde_json::Value;

use super::{container_of, status_of};
use crate::clock;
use crate::json;
use crate::kinds::ApiKind;
use crate::logs::{self, TimedLine};
use crate::query::UrlQuery;
use crate::reply::{self, SandboxReply};
use crate::resources::ResourceRequest;
use crate::server::lock;
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

/// How often a followed log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn answer(
    world: &Arc<Mutex<ClusterWorld>>,
    kind: &ApiKind,
    ask: &ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    let guard = lock(world);
    let pod = guard.get(kind, &ask.target.namespace, &ask.target.name)?;
    let container = container_of(&pod, ask.query.get("container"))?.clone();
    let lines = read(&guard, &pod, &container, &ask.query)?;
    drop(guard);
    let kept = cut(lines, &ask.query);
    let text = render(&kept, ask.query.is_true("timestamps"));
    if !ask.query.is_true("follow") {
        let mut bytes = text.into_bytes();
        if let Some(most) = ask.query.number("limitBytes").and_then(|most| usize::try_from(most).ok()) {
            bytes.truncate(most);
        }
        return Ok(reply::with_type(StatusCode::OK, "text/plain", bytes));
    }
    let last = kept.last().map(|(at, _)| *at);
    let follow = Follow {
        world: world.clone(),
        kind: kind.clone(),
        namespace: ask.target.namespace.clone(),
        name: ask.target.name.clone(),
        container,
        query: ask.query.clone(),
        last,
        first: Some(text),
    };
    Ok(follow.reply())
}

/// All lines of the life that is asked for.
fn read(world: &ClusterWorld, pod: &Value, container: &Value, query: &UrlQuery) -> Result<Vec<TimedLine>, ApiStatus> {
    let name = json::text_or_empty(container, "/name");
    let pod_name = json::name(pod);
    let waiting = |reason: &str| {
        let reason = match reason {
            "ErrImagePull" | "ImagePullBackOff" => "trying and failing to pull image",
            other => other,
        };
        ApiStatus::bad_request(format!("container {name:?} in pod {pod_name:?} is waiting to start: {reason}"))
    };
    let previous = query.is_true("previous");
    let Some(status) = status_of(pod, name) else { return Err(waiting("ContainerCreating")) };
    let Some(life) = logs::life(status, previous) else {
        if previous {
            let message = format!("previous terminated container {name:?} in pod {pod_name:?} not found");
            return Err(ApiStatus::bad_request(message));
        }
        return Err(waiting(json::text(status, "/state/waiting/reason").unwrap_or("ContainerCreating")));
    };
    Ok(logs::lines(world, pod, container, life))
}

fn cut(mut lines: Vec<TimedLine>, query: &UrlQuery) -> Vec<TimedLine> {
    let by_age = query.number("sinceSeconds").map(|by| clock::before(Timestamp::now(), Duration::from_secs(by)));
    let since = by_age.or_else(|| query.get("sinceTime").and_then(clock::read));
    if let Some(since) = since {
        lines.retain(|(at, _)| *at >= since);
    }
    if let Some(tail) = query.number("tailLines").and_then(|tail| usize::try_from(tail).ok()) {
        lines.drain(..lines.len().saturating_sub(tail));
    }
    lines
}

fn render(lines: &[TimedLine], timestamps: bool) -> String {
    let line = |(at, text): &TimedLine| {
        if timestamps { format!("{} {text}\n", at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ")) } else { format!("{text}\n") }
    };
    lines.iter().map(line).collect()
}

struct Follow {
    world: Arc<Mutex<ClusterWorld>>,
    kind: ApiKind,
    namespace: String,
    name: String,
    container: Value,
    query: UrlQuery,
    last: Option<Timestamp>,
    first: Option<String>,
}

impl Follow {
    fn reply(self) -> SandboxReply {
        let chunks = stream::unfold(self, |mut follow| async move {
            let text = follow.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(text))), follow))
        });
        let mut reply = Response::new(StreamBody::new(chunks).map_err(|never| match never {}).boxed_unsync());
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        reply
    }

    /// The next lines; nothing once the container has ended or the pod is gone.
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Some(first);
        }
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let (fresh, running) = {
                let world = lock(&self.world);
                let pod = world.get(&self.kind, &self.namespace, &self.name).ok()?;
                let lines = read(&world, &pod, &self.container, &self.query).ok()?;
                let name = json::text_or_empty(&self.container, "/name");
                let running = status_of(&pod, name).is_some_and(|status| status.pointer("/state/running").is_some());
                let fresh = lines.into_iter().filter(|(at, _)| self.last.is_none_or(|last| *at > last));
                (fresh.collect::<Vec<TimedLine>>(), running)
            };
            if let Some((at, _)) = fresh.last() {
                self.last = Some(*at);
                return Some(render(&fresh, self.query.is_true("timestamps")));
            }
            if !running {
                return None;
            }
        }
    }
}
