//! A canary: some pods of the new template beside the stable ones, more with every step.

use super::super::analysis_runs;
use super::steps::{self, StepOutcome};
use super::{RolloutTurn, sizes};
use crate::json;
use crate::world::ClusterWorld;

pub(super) fn move_on(world: &mut ClusterWorld, turn: &mut RolloutTurn) {
    if turn.is_paused() {
        return;
    }
    let (wanted, count) = (turn.wanted(), steps::all(&turn.rollout).len());
    if turn.stable().is_empty() || turn.is_promoted() {
        json::set(&mut turn.status, "/currentStepIndex", count);
        if sizes::exchange(world, turn, wanted, 0) {
            turn.promote();
        }
        return;
    }
    if turn.is("/promoteFull") {
        lift(turn);
        json::take(&mut turn.status, "/abort");
        json::take(&mut turn.status, "/abortedAt");
        json::set(&mut turn.status, "/currentStepIndex", count);
    }
    end_other_analyses(world, turn);
    if turn.is("/abort") {
        lift(turn);
        json::set_default(&mut turn.status, "/abortedAt", world.stamp());
        json::set(&mut turn.status, "/currentStepIndex", 0);
        json::take(&mut turn.status, "/canary/currentStepAnalysisRunStatus");
        sizes::exchange(world, turn, 0, wanted);
        return;
    }
    json::take(&mut turn.status, "/abortedAt");
    if steps::started(turn, "InconclusiveAnalysisRun").is_some() {
        return;
    }
    let (new, stable) = sizes::shares(wanted, steps::weight(turn));
    let settled = sizes::exchange(world, turn, new, stable);
    if !settled {
        return;
    }
    if steps::index(turn) >= count {
        turn.promote();
        return;
    }
    match steps::look(world, turn) {
        StepOutcome::Done => steps::advance(world, turn),
        StepOutcome::Waits => {}
        StepOutcome::Failed(why) => turn.abort(why, world.stamp()),
    }
}

/// Ends every pause.
fn lift(turn: &mut RolloutTurn) {
    json::take(&mut turn.status, "/pauseConditions");
    json::set(&mut turn.status, "/controllerPause", false);
}

/// Analyses of a step that is no longer the current one are asked to end, and forgotten.
fn end_other_analyses(world: &mut ClusterWorld, turn: &mut RolloutTurn) {
    let current = (!turn.is("/abort")).then(|| steps::index(turn));
    analysis_runs::end_all_but(world, &turn.rollout, &turn.hash, current);
    let name = json::text_or_empty(&turn.status, "/canary/currentStepAnalysisRunStatus/name");
    let run = world.find(analysis_runs::RUNS, json::namespace(&turn.rollout), name);
    let step = run.as_ref().and_then(|run| json::text(run, "/metadata/labels/step-index"));
    if step.map(str::to_owned) != current.map(|step| step.to_string()) {
        json::take(&mut turn.status, "/canary/currentStepAnalysisRunStatus");
    }
}
