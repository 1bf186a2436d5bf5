//! Waiting until one object is as wished. A watch only says when to look again: whenever it breaks, falls behind or
//! cannot be had, the object is read anew, so nothing that happened in between is missed.
//!
//! The look is a list of one: it tells the version of the whole collection, from which a watch can begin. The version
//! of an object that has not changed for long is older than what a server remembers.

use crate::client::answer::ClusterResponse;
use crate::client::cluster::Cluster;
use crate::client::connection::ClientLane;
use crate::client::mask::MaskDetail;
use crate::client::place::ResourceRef;
use crate::client::request::ClusterRequest;
use domain::{Code, Failure};
use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// What waiting came to.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitResult {
    /// Whether the object became as wished in time.
    pub met: bool,
    /// The object as last seen; `None` if it was not there.
    pub object: Option<Value>,
    /// How often the watch was lost and the object read anew.
    pub relists: u32,
}

/// A watch without a word for this long is taken for dead; a live one sends bookmarks.
const IDLE: Duration = Duration::from_secs(90);
/// The first and the longest pause before looking again.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long a watch without a version is believed.
const UNVERSIONED: Duration = Duration::from_secs(10);
/// The longest event we take.
const EVENT_MAX: usize = 4 * 1024 * 1024;

impl Cluster<'_> {
    /// Waits until the object (`None`: it is not there) is as wished, or the time of this handle is over.
    pub async fn wait(
        &self,
        target: &ResourceRef,
        mut wished: impl FnMut(Option<&Value>) -> bool + Send,
    ) -> Result<WaitResult, Failure> {
        let (mut last, mut pause, mut relists) = (None, PAUSE, 0);
        let mut seen = false;
        loop {
            let began = Instant::now();
            match self.look(target).await {
                Ok((object, version)) => {
                    seen = true;
                    if wished(object.as_ref()) {
                        return Ok(WaitResult { met: true, object, relists });
                    }
                    last = object;
                    if let Some(object) = self.watch(target, version.as_deref(), &mut last, &mut wished).await {
                        return Ok(WaitResult { met: true, object, relists });
                    }
                }
                // A first look that fails is told; later ones are part of waiting.
                Err(failure) if !seen || !failure.code.retryable() => return Err(failure),
                Err(_) => {}
            }
            // A watch that lived for a while was worth having; one that breaks at once is not hammered.
            pause = if began.elapsed() > LONGEST_PAUSE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            if Instant::now() + pause >= self.deadline {
                sleep_until(self.deadline).await;
                return Ok(WaitResult { met: false, object: last, relists });
            }
            sleep_until(Instant::now() + pause).await;
            relists += 1;
        }
    }

    /// The object as it is, and the version to watch from. Who may not list may still look, and has no version.
    async fn look(&self, target: &ResourceRef) -> Result<(Option<Value>, Option<String>), Failure> {
        match self.read_masked(&one(target, "list"), MaskDetail::Clean).await {
            Ok(list) => {
                let items = list["items"].as_array().into_iter().flatten();
                let object = items.into_iter().find(|item| item["metadata"]["name"] == target.name()).cloned();
                Ok((object, list["metadata"]["resourceVersion"].as_str().map(str::to_owned)))
            }
            Err(failure) if failure.code == target::codes::FORBIDDEN => {
                Ok((self.find(target, MaskDetail::Clean).await?, None))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Follows one watch to its end. `Some`: the wish came true. `None`: look again.
    async fn watch(
        &self,
        target: &ResourceRef,
        version: Option<&str>,
        last: &mut Option<Value>,
        wished: &mut (impl FnMut(Option<&Value>) -> bool + Send),
    ) -> Option<Option<Value>> {
        // Without a version a deletion before the watch began goes unseen, so such a watch is kept short.
        let time = if version.is_some() { self.time_left() } else { self.time_left().min(UNVERSIONED) };
        let request = one(target, "watch")
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("timeoutSeconds", time.as_secs().max(1).to_string())
            .maybe("resourceVersion", version);
        let answer = match self.connection.send(ClientLane::Stream, &request, self.deadline).await {
            Ok(answer) if answer.status.is_success() => answer,
            // 410, 429 and all others alike: the next look tells the truth, and fails if there is something to tell.
            Ok(_) | Err(_) => return None,
        };
        let mut events = WatchEvents { answer, buffer: Vec::new() };
        while let Some(event) = events.next(self.deadline).await {
            let object = match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => {
                    let mut object = event["object"].clone();
                    self.masker().object(&mut object, MaskDetail::Clean);
                    Some(object)
                }
                Some("DELETED") => None,
                Some("BOOKMARK") => continue,
                _ => return None,
            };
            // The selector is a wish; the server's answer is checked.
            if object.as_ref().is_some_and(|object| object["metadata"]["name"] != target.name()) {
                continue;
            }
            if wished(object.as_ref()) {
                return Some(object);
            }
            *last = object;
        }
        None
    }
}

/// The one object as a collection.
fn one(target: &ResourceRef, verb: &'static str) -> ClusterRequest {
    ClusterRequest::collection(Method::GET, verb, target.kind(), target.namespace())
        .query("fieldSelector", format!("metadata.name={}", target.name()))
}

/// The lines of a watch, one event each.
struct WatchEvents {
    answer: ClusterResponse,
    buffer: Vec<u8>,
}

impl WatchEvents {
    async fn next(&mut self, deadline: Instant) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&line).ok();
            }
            if self.buffer.len() > EVENT_MAX {
                return None;
            }
            let idle = deadline.min(Instant::now() + IDLE);
            let frame = timeout_at(idle, self.answer.body.frame()).await.ok()??.ok()?;
            self.buffer.extend(frame.into_data().unwrap_or_default());
        }
    }
}

impl WaitResult {
    /// Whether the object was there when last seen.
    pub fn exists(&self) -> bool {
        self.object.is_some()
    }

    /// The failure for a target that never was there, where that is one.
    pub fn or_not_found(self, target: &ResourceRef) -> Result<WaitResult, Failure> {
        if self.met || self.exists() {
            return Ok(self);
        }
        Err(Failure::new(Code::NotFound, format!("{target} is not there")).next("check name and namespace"))
    }
}
