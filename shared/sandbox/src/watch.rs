//! Watches: the changes after a version, as they come.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::kinds::ApiKind;
use crate::list::ListFilter;
use crate::query::UrlQuery;
use crate::reply::SandboxReply;
use crate::resources::ObjectForm;
use crate::server::lock;
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

/// How long a watch is held when the client does not say.
const DEFAULT_LENGTH: Duration = Duration::from_secs(1800);
/// How often a client that asked for bookmarks gets one.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

struct ObjectWatch {
    world: Arc<Mutex<ClusterWorld>>,
    kind: Arc<ApiKind>,
    filter: ListFilter,
    form: ObjectForm,
    version: u64,
    waiting: VecDeque<Bytes>,
    moved: tokio::sync::watch::Receiver<u64>,
    until: Instant,
    bookmarks: Option<Instant>,
    over: bool,
}

/// GET with `watch=true`: a stream of events, one JSON object per line.
pub(crate) fn start(
    world: &Arc<Mutex<ClusterWorld>>,
    kind: Arc<ApiKind>,
    filter: ListFilter,
    query: &UrlQuery,
    form: ObjectForm,
) -> Result<SandboxReply, ApiStatus> {
    if query.is_true("sendInitialEvents") {
        let of =
            crate::status::KindNames { group: "meta.k8s.io".into(), plural: String::new(), kind: "ListOptions".into() };
        let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        return Err(ApiStatus::invalid(&of, "", &[crate::status::FieldCause::forbidden("sendInitialEvents", why)]));
    }
    let asked = query.get("resourceVersion").unwrap_or_default();
    let guard = lock(world);
    let mut waiting = VecDeque::new();
    let version = match asked {
        // No version, or any: what is there now comes first, as if it had just been added.
        "" | "0" => {
            let page = guard.list(&kind, &filter, &UrlQuery::default())?;
            waiting.extend(page.items.iter().map(|object| line("ADDED", form.one(&kind, object))));
            guard.objects.version()
        }
        text => text.parse().map_err(|_| {
            ApiStatus::bad_request(format!(
                "invalid resource version {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })?,
    };
    let length = query.number("timeoutSeconds").map_or(DEFAULT_LENGTH, Duration::from_secs);
    let watch = ObjectWatch {
        moved: guard.objects.subscribe(),
        world: world.clone(),
        kind,
        filter,
        form,
        version,
        waiting,
        until: Instant::now() + length,
        bookmarks: query.is_true("allowWatchBookmarks").then(|| Instant::now() + BOOKMARK_EVERY),
        over: false,
    };
    drop(guard);
    let events = stream::unfold(watch, |mut watch| async move {
        let bytes = watch.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), watch))
    });
    let body = StreamBody::new(events).map_err(|never| match never {}).boxed_unsync();
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::OK;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(reply)
}

impl ObjectWatch {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.waiting.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            self.moved.borrow_and_update();
            if !self.gather() {
                self.over = true;
            }
            if !self.waiting.is_empty() || self.over {
                continue;
            }
            let bookmark = self.bookmarks.unwrap_or(self.until).min(self.until);
            tokio::select! {
                changed = self.moved.changed() => self.over |= changed.is_err(),
                () = tokio::time::sleep_until(bookmark) => self.on_time(),
            }
        }
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        self.over |= now >= self.until;
        if let Some(due) = self.bookmarks.filter(|due| *due <= now && !self.over) {
            let metadata = json!({ "resourceVersion": self.version.to_string(), "creationTimestamp": null });
            let object = json!({ "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata });
            self.waiting.push_back(line("BOOKMARK", object));
            self.bookmarks = Some(due + BOOKMARK_EVERY);
        }
    }

    /// Collects what happened since the last look; false if that is no longer known.
    fn gather(&mut self) -> bool {
        let world = lock(&self.world);
        let resource = self.kind.resource();
        let Some(changes) = world.objects.since(self.version) else {
            let message = format!("too old resource version: {} ({})", self.version, world.objects.version());
            self.waiting.push_back(line("ERROR", ApiStatus::expired(message).body()));
            return false;
        };
        for change in changes.filter(|change| change.resource == resource) {
            let was = change.before.as_deref().is_some_and(|object| self.filter.lets(object));
            let is = change.after.as_deref().is_some_and(|object| self.filter.lets(object));
            let (kind, object) = match (was, is) {
                (false, true) => ("ADDED", &change.after),
                (true, true) => ("MODIFIED", &change.after),
                // What no longer matches is told as deleted, with its newest state.
                (true, false) => ("DELETED", if change.gone.is_some() { &change.gone } else { &change.after }),
                (false, false) => continue,
            };
            if let Some(object) = object {
                self.waiting.push_back(line(kind, self.form.one(&self.kind, object)));
            }
        }
        self.version = self.version.max(world.objects.version());
        true
    }
}

fn line(kind: &str, object: Value) -> Bytes {
    let mut text = json!({ "type": kind, "object": object }).to_string();
    text.push('\n');
    Bytes::from(text)
}
