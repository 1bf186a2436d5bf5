//! The stage view of a pipeline build, as the plugin `pipeline-rest-api` shows it.
//!
//! A stage is a block and has no log of its own: its steps have, and the stage's description names them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::build::SimulatedBuild;
use super::exports::{Site, below};
use super::job::SimulatedJob;
use super::log;
use super::page;
use super::plan::BuildResult;
use super::reports;
use crate::clock;

/// How much of a step's log is given.
const LONGEST_LOG: usize = 10 * 1024;
/// The numbers of stages and steps begin here, and are this far apart.
const FIRST_NODE: usize = 6;
const NODES_EACH: usize = 7;

/// A build seen by its stages.
pub(super) struct PipelineView<'a> {
    pub(super) site: &'a Site,
    pub(super) job: &'a SimulatedJob,
    pub(super) build: &'a SimulatedBuild,
    pub(super) now: Timestamp,
}

impl PipelineView<'_> {
    /// `wfapi/describe`.
    pub(super) fn describe(&self) -> Value {
        let path = self.path();
        let stages: Vec<Value> = (0..self.build.plan.stages.len())
            .filter(|number| self.has_begun(*number))
            .map(|number| self.stage(number))
            .collect();
        json!({
            "_links": { "self": { "href": format!("{path}/wfapi/describe") } },
            "id": self.build.number.to_string(), "name": self.build.name(),
            "status": if self.build.over { self.build.outcome.stage_status() } else { "IN_PROGRESS" },
            "startTimeMillis": self.build.began.as_millisecond(),
            "endTimeMillis": if self.build.over { self.build.due } else { self.now }.as_millisecond(),
            "durationMillis": self.millis(), "queueDurationMillis": 0, "pauseDurationMillis": 0, "stages": stages,
        })
    }

    /// `wfapi/artifacts`.
    pub(super) fn artifacts(&self) -> Value {
        let path = self.path();
        let shown = reports::archived(self.build).iter().enumerate().map(|(number, (file, content))| {
            let name = file.rsplit('/').next().unwrap_or(file);
            json!({
                "id": format!("n{}", number + 1), "name": name, "path": file,
                "url": format!("{path}/artifact/{file}"), "size": content.len(),
            })
        });
        shown.collect()
    }

    /// `execution/node/N/wfapi/describe`: a stage with its steps, or a step.
    pub(super) fn node(&self, id: usize) -> Option<Value> {
        let (number, is_step) = self.find(id)?;
        if is_step {
            return Some(self.step(number));
        }
        let mut stage = self.stage(number);
        stage["stageFlowNodes"] = json!([self.step(number)]);
        Some(stage)
    }

    /// `execution/node/N/wfapi/log`.
    pub(super) fn log(&self, id: usize) -> Option<Value> {
        let (number, is_step) = self.find(id)?;
        let mut shown = json!({
            "nodeId": id.to_string(), "nodeStatus": self.status(number), "length": 0, "hasMore": false, "consoleUrl": null,
        });
        if is_step {
            let lines = log::said(self.build, number, self.now).unwrap_or_default();
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let longest = text.len().saturating_sub(LONGEST_LOG);
            let from = (longest..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            shown["length"] = json!(text.len() - from);
            shown["hasMore"] = json!(from > 0);
            shown["consoleUrl"] = json!(format!("{}/execution/node/{id}/log", self.path()));
            if !text.is_empty() {
                // It is meant for a browser.
                shown["text"] = json!(page::escaped(&text[from..]));
            }
        }
        Some(shown)
    }

    fn path(&self) -> String {
        format!("{}{}/{}", self.site.context, below(self.job), self.build.number)
    }

    fn millis(&self) -> u64 {
        self.build.elapsed(self.now).as_millis() as u64
    }

    fn has_begun(&self, number: usize) -> bool {
        log::said(self.build, number, self.now).is_some()
    }

    /// The stage a node belongs to, and whether the node is its step.
    fn find(&self, id: usize) -> Option<(usize, bool)> {
        let at = id.checked_sub(FIRST_NODE)?;
        let (number, rest) = (at / NODES_EACH, at % NODES_EACH);
        (rest <= 1 && self.has_begun(number)).then_some((number, rest == 1))
    }

    fn status(&self, number: usize) -> &'static str {
        let is_last = !self.has_begun(number + 1);
        match (log::stage_is_over(self.build, number, self.now), self.build.over && is_last) {
            (false, _) => "IN_PROGRESS",
            (true, true) => self.build.outcome.stage_status(),
            (true, false) => BuildResult::Success.stage_status(),
        }
    }

    fn stage(&self, number: usize) -> Value {
        let id = FIRST_NODE + number * NODES_EACH;
        self.shown(number, id, &self.build.plan.stages[number].name)
    }

    fn step(&self, number: usize) -> Value {
        let id = FIRST_NODE + number * NODES_EACH + 1;
        let mut step = self.shown(number, id, "Shell Script");
        let path = self.path();
        step["_links"]["log"] = json!({ "href": format!("{path}/execution/node/{id}/wfapi/log") });
        step["_links"]["console"] = json!({ "href": format!("{path}/execution/node/{id}/log") });
        step["parentNodes"] = json!([(id - 1).to_string()]);
        step
    }

    fn shown(&self, number: usize, id: usize, name: &str) -> Value {
        let (build, path) = (self.build, self.path());
        let begins = log::begins(build, number);
        let so_far = build.elapsed(self.now).saturating_sub(begins).min(build.plan.stages[number].lasts);
        json!({
            "_links": { "self": { "href": format!("{path}/execution/node/{id}/wfapi/describe") } },
            "id": id.to_string(), "name": name, "execNode": "", "status": self.status(number),
            "startTimeMillis": clock::after(build.began, begins).as_millisecond(),
            "durationMillis": so_far.as_millis() as u64, "pauseDurationMillis": 0,
        })
    }
}
