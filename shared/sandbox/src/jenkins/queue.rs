//! The queue: what waits, why it waits, and what became of what left.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::build::Order;
use super::exports::{Bean, Site};
use super::job::SimulatedJob;
use super::tree::Pruner;
use super::world::JenkinsWorld;
use crate::clock;

/// How long an item can be asked for after it left the queue.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);
/// How many of those are kept at most.
const REMEMBERED: usize = 1_000;

/// A build that was asked for and has not begun.
#[derive(Debug, Clone)]
pub(super) struct QueuedBuild {
    pub(super) id: u64,
    pub(super) job: String,
    since: Timestamp,
    /// When the quiet period is over.
    quiet_until: Timestamp,
    pub(super) order: Order,
}

/// An item that left the queue.
#[derive(Debug, Clone)]
pub(super) struct DequeuedItem {
    item: QueuedBuild,
    at: Timestamp,
    /// The build it became; none if it was cancelled.
    build: Option<u64>,
}

/// Why an item waits.
enum WaitReason {
    Quiet,
    /// A build of the same job runs.
    Busy(u64),
    Agent(String),
    Nothing,
}

/// What came of asking to cancel.
pub(super) enum Cancelled {
    Yes,
    TooLate,
    Unknown,
}

impl JenkinsWorld {
    /// Puts a build into the queue, or joins one that waits for the same. Gives the item's number.
    pub(super) fn schedule(&mut self, path: &str, quiet: Duration, order: Order) -> u64 {
        let same = |item: &&mut QueuedBuild| {
            item.job == path && item.order.settings == order.settings && item.order.script == order.script
        };
        if let Some(item) = self.waiting.iter_mut().find(same) {
            let new = order.causes.into_iter().filter(|cause| !item.order.causes.contains(cause));
            item.order.causes.extend(new.collect::<Vec<_>>());
            return item.id;
        }
        let (id, now) = (self.next_id, self.now());
        self.next_id += 1;
        let quiet_until = clock::after(now, quiet);
        self.waiting.push(QueuedBuild { id, job: path.to_owned(), since: now, quiet_until, order });
        self.settle();
        id
    }

    /// The moment an item can start, if nothing but time holds it.
    pub(super) fn starts_at(&self, item: &QueuedBuild) -> Option<Timestamp> {
        let job = self.jobs.get(&item.job)?;
        let busy = job.runs() && !job.concurrent;
        (job.label.is_none() && !busy).then(|| item.quiet_until.max(job.free_since))
    }

    pub(super) fn leave(&mut self, item: QueuedBuild, at: Timestamp, build: Option<u64>) {
        if self.left.len() == REMEMBERED {
            self.left.pop_front();
        }
        self.left.push_back(DequeuedItem { item, at, build });
    }

    pub(super) fn forget_left(&mut self, now: Timestamp) {
        self.left.retain(|left| clock::since(left.at, now) < REMEMBERED_FOR);
    }

    pub(super) fn cancel(&mut self, id: u64) -> Cancelled {
        let now = self.now();
        match self.waiting.iter().position(|item| item.id == id) {
            Some(found) => {
                let item = self.waiting.remove(found);
                self.leave(item, now, None);
                Cancelled::Yes
            }
            None if self.left.iter().any(|left| left.item.id == id) => Cancelled::TooLate,
            None => Cancelled::Unknown,
        }
    }

    fn hold(&self, item: &QueuedBuild) -> WaitReason {
        let Some(job) = self.jobs.get(&item.job) else { return WaitReason::Nothing };
        let running = job.builds.values().rev().find(|build| !build.over);
        match (&job.label, running) {
            _ if self.now() < item.quiet_until => WaitReason::Quiet,
            (_, Some(build)) if !job.concurrent => WaitReason::Busy(build.number),
            (Some(label), _) => WaitReason::Agent(label.clone()),
            (None, _) => WaitReason::Nothing,
        }
    }
}

/// The whole queue.
pub(super) fn list(world: &JenkinsWorld, site: &Site, pruner: Pruner<'_>) -> Value {
    Bean::new("hudson.model.Queue", pruner)
        .plain("discoverableItems", 1, json!([]))
        .with("items", 1, |pruner| pruner.list(world.waiting.iter(), |item| waiting(world, site, item, pruner)))
        .done()
}

/// One item, also some time after it left.
pub(super) fn item(world: &JenkinsWorld, site: &Site, id: u64, pruner: Pruner<'_>) -> Option<Value> {
    if let Some(item) = world.waiting.iter().find(|item| item.id == id) {
        return Some(waiting(world, site, item, pruner));
    }
    let left = world.left.iter().find(|left| left.item.id == id)?;
    let executable = left.build.and_then(|number| {
        let job = world.jobs.get(&left.item.job)?;
        job.builds.get(&number).map(|build| (job, build))
    });
    let bean = common("hudson.model.Queue$LeftItem", (world, site), &left.item, pruner)
        .plain("blocked", 1, json!(false))
        .plain("buildable", 1, json!(false))
        .plain("stuck", 1, json!(false))
        .plain("why", 1, Value::Null)
        .plain("cancelled", 1, json!(left.build.is_none()))
        .with("executable", 1, |pruner| match executable {
            Some((job, build)) => super::exports::build(world, site, (job, build), pruner),
            None => Value::Null,
        });
    Some(bean.done())
}

/// The item of a job, for its own page.
pub(super) fn of_job(world: &JenkinsWorld, site: &Site, job: &SimulatedJob, pruner: Pruner<'_>) -> Value {
    let found = world.waiting.iter().find(|item| item.job == job.path);
    found.map_or(Value::Null, |item| waiting(world, site, item, pruner))
}

fn waiting(world: &JenkinsWorld, site: &Site, item: &QueuedBuild, pruner: Pruner<'_>) -> Value {
    let millis = item.quiet_until.as_millisecond();
    let (class, why, stuck) = match world.hold(item) {
        WaitReason::Quiet => {
            let left = clock::since(world.now(), item.quiet_until).as_millis();
            let time = if left < 1_000 { format!("{left} ms") } else { format!("{} sec", left / 1_000) };
            ("hudson.model.Queue$WaitingItem", format!("In the quiet period. Expires in {time}"), false)
        }
        WaitReason::Busy(number) => {
            let why = format!("Build #{number} is already in progress (ETA: N/A)");
            ("hudson.model.Queue$BlockedItem", why, false)
        }
        WaitReason::Agent(label) => {
            let why = format!("There are no nodes with the label ‘{label}’");
            ("hudson.model.Queue$BuildableItem", why, true)
        }
        WaitReason::Nothing => {
            ("hudson.model.Queue$BuildableItem", "Waiting for next available executor".to_owned(), false)
        }
    };
    let bean = common(class, (world, site), item, pruner)
        .plain("blocked", 1, json!(class.ends_with("BlockedItem")))
        .plain("buildable", 1, json!(class.ends_with("BuildableItem")))
        .plain("stuck", 1, json!(stuck))
        .plain("why", 1, json!(why));
    let bean = match class.rsplit('$').next() {
        Some("WaitingItem") => bean.plain("timestamp", 1, json!(millis)),
        Some("BuildableItem") => {
            bean.plain("buildableStartMilliseconds", 1, json!(millis)).plain("pending", 1, json!(false))
        }
        _ => bean.plain("buildableStartMilliseconds", 1, json!(millis)),
    };
    bean.done()
}

fn common<'t>(class: &str, (world, site): (&JenkinsWorld, &Site), item: &QueuedBuild, pruner: Pruner<'t>) -> Bean<'t> {
    let lines: Vec<String> = item.order.settings.iter().map(|setting| format!("\n{}", setting.line())).collect();
    Bean::new(class, pruner)
        .plain("actions", 3, super::reports::order_actions(&item.order))
        .plain("id", 3, json!(item.id))
        .plain("inQueueSince", 3, json!(item.since.as_millisecond()))
        .plain("params", 3, json!(lines.concat()))
        .plain("url", 3, json!(format!("queue/item/{}/", item.id)))
        .with("task", 3, |pruner| match world.jobs.get(&item.job) {
            Some(job) => super::exports::job(world, site, job, pruner),
            None => Value::Null,
        })
}
