//! The state of the server, and how it moves in time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::build::{Order, SimulatedBuild, SimulatedCause};
use super::job::{SimulatedJob, SimulatedJobKind};
use super::plan::BuildResult;
use super::queue::{DequeuedItem, QueuedBuild};
use crate::clock;

/// How many builds of a job are kept, unless marked to be kept.
const KEPT: usize = 1_000;

/// Everything there is on the server.
#[derive(Debug)]
pub(super) struct JenkinsWorld {
    pub(super) jobs: BTreeMap<String, SimulatedJob>,
    pub(super) waiting: Vec<QueuedBuild>,
    pub(super) left: VecDeque<DequeuedItem>,
    running: BTreeSet<(String, u64)>,
    pub(super) next_id: u64,
    time: Time,
}

/// What time it is on the server.
#[derive(Debug, Clone, Copy)]
enum Time {
    /// The wall clock, and how far it was moved on.
    Flowing(Duration),
    /// Stands still unless it is moved.
    Still(Timestamp),
}

/// What comes next.
enum NextEvent {
    Start(u64),
    End(String, u64),
}

impl JenkinsWorld {
    pub(super) fn new(still: bool) -> JenkinsWorld {
        let time = if still { Time::Still(Timestamp::now()) } else { Time::Flowing(Duration::ZERO) };
        JenkinsWorld {
            jobs: BTreeMap::new(),
            waiting: Vec::new(),
            left: VecDeque::new(),
            running: BTreeSet::new(),
            next_id: 1,
            time,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        match self.time {
            Time::Flowing(ahead) => clock::after(Timestamp::now(), ahead),
            Time::Still(at) => at,
        }
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.time = match self.time {
            Time::Flowing(ahead) => Time::Flowing(ahead + by),
            Time::Still(at) => Time::Still(clock::after(at, by)),
        };
        self.settle();
    }

    /// Lets everything happen that should have happened by now, each thing at its own moment.
    pub(super) fn settle(&mut self) {
        let now = self.now();
        while let Some((at, event)) = self.next_event().filter(|(at, _)| *at <= now) {
            match event {
                NextEvent::Start(id) => self.start(id, at),
                NextEvent::End(job, number) => self.end(&job, number),
            }
        }
        self.forget_left(now);
    }

    fn next_event(&self) -> Option<(Timestamp, NextEvent)> {
        let starts = self.waiting.iter().filter_map(|item| Some((self.starts_at(item)?, NextEvent::Start(item.id))));
        let ends = self.running.iter().filter_map(|(path, number)| {
            let build = self.jobs.get(path)?.builds.get(number)?;
            Some((build.due, NextEvent::End(path.clone(), *number)))
        });
        starts.chain(ends).min_by_key(|(at, _)| *at)
    }

    fn start(&mut self, id: u64, at: Timestamp) {
        let Some(found) = self.waiting.iter().position(|item| item.id == id) else { return };
        let item = self.waiting.remove(found);
        let number = self.begin(&item.job, item.order.clone(), at, id);
        self.leave(item, at, number);
    }

    /// Begins a build at a moment, in the past too.
    pub(super) fn begin(&mut self, path: &str, order: Order, at: Timestamp, queue_id: u64) -> Option<u64> {
        let job = self.jobs.get_mut(path)?;
        let number = job.next;
        job.next += 1;
        let plan = job.plan.clone();
        let build = SimulatedBuild {
            number,
            queue_id,
            began: at,
            due: clock::after(at, plan.lasts()),
            over: false,
            outcome: plan.outcome,
            plan,
            revision: order.revision.clone().unwrap_or_else(|| commit(path, number)),
            order,
            display_name: None,
            description: None,
            keep: false,
            stopped: Vec::new(),
        };
        job.builds.insert(number, build);
        if job.builds.len() > KEPT {
            let oldest = job.builds.values().find(|build| build.over && !build.keep).map(|build| build.number);
            oldest.and_then(|number| job.builds.remove(&number));
        }
        self.running.insert((path.to_owned(), number));
        Some(number)
    }

    fn end(&mut self, path: &str, number: u64) {
        self.running.remove(&(path.to_owned(), number));
        let Some(job) = self.jobs.get_mut(path) else { return };
        if let Some(build) = job.builds.get_mut(&number) {
            build.over = true;
            job.free_since = build.due;
        }
    }

    /// Cuts a running build short, now.
    pub(super) fn abort(&mut self, path: &str, number: u64, line: String) {
        let now = self.now();
        if let Some(build) = self.jobs.get_mut(path).and_then(|job| job.builds.get_mut(&number)) {
            build.stopped.push(line);
            build.outcome = BuildResult::Aborted;
            build.due = now;
        }
        self.settle();
    }

    /// Puts a job there with its past.
    pub(super) fn plant(&mut self, mut job: SimulatedJob) {
        let (path, plan) = (job.path.clone(), job.plan.clone());
        let past = std::mem::take(&mut job.past);
        let order = Order {
            causes: vec![if job.kind == SimulatedJobKind::Pipeline {
                SimulatedCause::Commit
            } else {
                SimulatedCause::Timer
            }],
            settings: job.parameters.iter().map(super::job::JobParameter::default).collect(),
            ..Order::default()
        };
        self.jobs.insert(path.clone(), job);
        let now = self.now();
        for (ago, plan) in past {
            let id = self.next_id;
            self.next_id += 1;
            if let Some(job) = self.jobs.get_mut(&path) {
                job.plan = plan;
            }
            self.begin(&path, order.clone(), clock::before(now, ago), id);
        }
        if let Some(job) = self.jobs.get_mut(&path) {
            job.plan = plan;
        }
        self.settle();
    }

    /// What is directly in a folder; the root is the empty path.
    pub(super) fn children<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a SimulatedJob> {
        self.jobs.values().filter(move |job| job.parent() == folder)
    }

    /// Everything that was ordered and is remembered, waiting or built.
    pub(super) fn orders(&self) -> impl Iterator<Item = &Order> {
        let built = self.jobs.values().flat_map(|job| job.builds.values().map(|build| &build.order));
        self.waiting.iter().map(|item| &item.order).chain(built)
    }

    pub(super) fn busy(&self) -> usize {
        self.running.len()
    }
}

/// A made-up commit, the same for the same build.
fn commit(path: &str, number: u64) -> String {
    let digest = Sha256::digest(format!("{path}#{number}"));
    digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}
