//! The steps of a canary: what one asks for, and when it is done.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::{Occurrence, analysis_runs};
use super::RolloutTurn;
use crate::clock;
use crate::json;
use crate::world::ClusterWorld;

/// The steps of a rollout; none for another strategy.
pub(super) fn all(rollout: &Value) -> &[Value] {
    json::list(rollout, "/spec/strategy/canary/steps")
}

/// Where a rollout is.
pub(super) fn index(turn: &RolloutTurn) -> usize {
    let index = usize::try_from(json::int(&turn.status, "/currentStepIndex", 0)).unwrap_or_default();
    index.min(all(&turn.rollout).len())
}

/// The weight of the new template at a step: the last one that was set.
pub(super) fn weight(turn: &RolloutTurn) -> i64 {
    let (steps, index) = (all(&turn.rollout), index(turn));
    if index >= steps.len() {
        return 100;
    }
    let set = steps[..=index].iter().rev().find_map(|step| step.get("setWeight")?.as_i64());
    set.unwrap_or(0)
}

/// What becomes of the current step once the pods are where it wants them.
pub(super) enum StepOutcome {
    /// On to the next one.
    Done,
    /// Not yet.
    Waits,
    /// It will not do.
    Failed(String),
}

/// Looks at the current step.
pub(super) fn look(world: &mut ClusterWorld, turn: &mut RolloutTurn) -> StepOutcome {
    let rollout = turn.rollout.clone();
    let Some(step) = all(&rollout).get(index(turn)) else { return StepOutcome::Waits };
    if let Some(pause) = step.get("pause") {
        return pause_step(world, turn, pause);
    }
    match step.get("analysis") {
        Some(analysis) => analysis_step(world, turn, analysis),
        None => StepOutcome::Done,
    }
}

/// Goes on to the next step.
pub(super) fn advance(world: &mut ClusterWorld, turn: &mut RolloutTurn) {
    let (count, next) = (all(&turn.rollout).len(), index(turn) + 1);
    json::set(&mut turn.status, "/currentStepIndex", next);
    json::take(&mut turn.status, "/canary/currentStepAnalysisRunStatus");
    let message = format!("Rollout step {next}/{count} completed");
    let what =
        Occurrence { warning: false, reason: "RolloutStepCompleted", message: &message, source: "rollouts-controller" };
    let rollout = turn.rollout.clone();
    world.note(&rollout, what);
}

fn pause_step(world: &ClusterWorld, turn: &mut RolloutTurn, pause: &Value) -> StepOutcome {
    let Some(started) = started(turn, "CanaryPauseStep") else {
        if turn.is("/controllerPause") {
            json::set(&mut turn.status, "/controllerPause", false);
            return StepOutcome::Done;
        }
        hold(turn, "CanaryPauseStep", &world.stamp());
        return StepOutcome::Waits;
    };
    let Some(lasts) = pause.get("duration").and_then(span) else { return StepOutcome::Waits };
    let over = clock::after(started, lasts);
    if over > world.now() {
        turn.wake(over);
        return StepOutcome::Waits;
    }
    json::take(&mut turn.status, "/pauseConditions");
    json::set(&mut turn.status, "/controllerPause", false);
    StepOutcome::Done
}

/// When a pause for this reason began, if one stands.
pub(super) fn started(turn: &RolloutTurn, reason: &str) -> Option<Timestamp> {
    let standing = json::list(&turn.status, "/pauseConditions").iter().find(|one| one["reason"] == reason)?;
    json::text(standing, "/startTime").and_then(clock::read)
}

/// Waits for a person.
pub(super) fn hold(turn: &mut RolloutTurn, reason: &str, now: &str) {
    json::list_mut(&mut turn.status, "/pauseConditions").push(json!({ "reason": reason, "startTime": now }));
    json::set(&mut turn.status, "/controllerPause", true);
}

/// How long a pause lasts: whole seconds, or a text with its unit.
fn span(duration: &Value) -> Option<Duration> {
    duration.as_u64().map(Duration::from_secs).or_else(|| clock::span(duration.as_str()?))
}

fn analysis_step(world: &mut ClusterWorld, turn: &mut RolloutTurn, analysis: &Value) -> StepOutcome {
    let known = json::text(&turn.status, "/canary/currentStepAnalysisRunStatus/name").map(str::to_owned);
    let namespace = json::namespace(&turn.rollout).to_owned();
    let run = known.and_then(|name| world.find(analysis_runs::RUNS, &namespace, &name));
    let run = run.or_else(|| {
        let origin = analysis_runs::AnalysisOrigin {
            rollout: &turn.rollout,
            hash: &turn.hash,
            revision: turn.revision,
            step: index(turn),
        };
        analysis_runs::begin(world, &origin, analysis)
    });
    let Some(run) = run else { return StepOutcome::Failed("a template of the analysis is not there".to_owned()) };
    let phase = json::text(&run, "/status/phase").unwrap_or("Running").to_owned();
    let message = json::text_or_empty(&run, "/status/message").to_owned();
    let mut told = json!({ "name": json::name(&run), "status": phase });
    if !message.is_empty() {
        told["message"] = json!(message);
    }
    json::set(&mut turn.status, "/canary/currentStepAnalysisRunStatus", told);
    match phase.as_str() {
        "Successful" => StepOutcome::Done,
        "Failed" | "Error" => StepOutcome::Failed(format!("Step-based analysis phase error/failed: {message}")),
        "Inconclusive" => {
            if started(turn, "InconclusiveAnalysisRun").is_none() {
                hold(turn, "InconclusiveAnalysisRun", &world.stamp());
            }
            StepOutcome::Waits
        }
        _ => StepOutcome::Waits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_seconds_or_what_its_unit_says() {
        let secs = |duration: Value| span(&duration).map(|span| span.as_secs());
        assert_eq!(
            [json!(5), json!("7"), json!("30s"), json!("2m"), json!("1h")].map(secs),
            [Some(5), Some(7), Some(30), Some(120), Some(3_600)]
        );
        assert_eq!(secs(json!("soon")), None);
    }
}
