//! One step on: which patch of the status that is, read from where the Rollout is. Pure.

use super::super::view::{RolloutView, Strategy};
use domain::{Code, Failure, Moment};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// What a promote comes to.
#[derive(Debug, Default, PartialEq)]
pub(super) struct PromoteResult {
    /// The patch of the status, if one is needed.
    pub(super) status: Option<Value>,
    pub(super) step_to: Option<usize>,
    /// Another promote was just sent, and the controller has yet to act on it.
    pub(super) under_way: bool,
}

/// The next step. A pause is either lifted, and the controller goes on by itself, or the step is counted up; doing both
/// would skip one, except after an analysis without conclusion, which the controller would only run into again.
pub(super) fn next(view: RolloutView<'_>) -> Result<PromoteResult, Failure> {
    if view.is_aborted() {
        return Err(nothing("the Rollout was aborted", "start it again with argo_rollout action=retry"));
    }
    let step_to = view.step().map(|step| (step + 1).min(view.steps().len()));
    if view.is_unpausing() {
        return Ok(PromoteResult { status: None, step_to, under_way: true });
    }
    if !view.is_observed() {
        let next = "wait a moment, look with argo_get, then call again";
        return Err(nothing("the controller has not seen the latest change yet", next));
    }
    let is_canary = view.strategy() == Strategy::Canary;
    let held = !view.holds().is_empty();
    let status = match step_to {
        Some(step) if is_canary && held && view.is_inconclusive() => {
            Some(json!({ "pauseConditions": null, "controllerPause": false, "currentStepIndex": step }))
        }
        _ if held => Some(json!({ "pauseConditions": null })),
        Some(step) if is_canary && !view.is_promoted() && view.step() != Some(step) => {
            Some(json!({ "pauseConditions": null, "currentStepIndex": step }))
        }
        _ => None,
    };
    if status.is_none() && !view.is_paused() {
        let message = match view.is_promoted() {
            true => "the newest version serves already",
            false => "the Rollout waits for nobody",
        };
        return Err(nothing(message, "look at it with argo_get"));
    }
    let step_to = step_to.filter(|_| status.is_some());
    Ok(PromoteResult { status, step_to, under_way: false })
}

fn nothing(message: &str, next: &str) -> Failure {
    Failure::new(crate::codes::NOTHING_TO_PROMOTE, message).next(next)
}

/// Whether the Rollout moved after a decision, told by what it notes to the second: when a pause began, and when the
/// last one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RolloutMove {
    /// It stands where it stood.
    Not,
    /// It moved in the very second of the decision, before or after.
    Perhaps,
    Surely,
}

pub(super) fn moved_since(view: RolloutView<'_>, decided: Moment) -> RolloutMove {
    let began = |hold: &Value| hold["startTime"].as_str().and_then(Moment::parse);
    let last = match view.holds() {
        [] => view.lifted(),
        holds => holds.iter().filter_map(began).max(),
    };
    let second = |moment: Moment| moment.millis() / 1000;
    match last.map(|last| second(last).cmp(&second(decided))) {
        None | Some(Ordering::Less) => RolloutMove::Not,
        Some(Ordering::Equal) => RolloutMove::Perhaps,
        Some(Ordering::Greater) => RolloutMove::Surely,
    }
}

/// Refuses to go on from where the Rollout came to only after the decision: nobody has looked at that.
pub(super) fn is_where_it_was_decided(view: RolloutView<'_>, decided: Moment) -> Result<(), Failure> {
    match moved_since(view, decided) {
        RolloutMove::Not => Ok(()),
        // A pause that was just lifted is no other place, but the same promote once more.
        RolloutMove::Perhaps | RolloutMove::Surely if view.is_unpausing() => Ok(()),
        RolloutMove::Perhaps | RolloutMove::Surely => {
            Err(Failure::new(Code::Stale, "the Rollout has moved on since this was decided, and nothing was changed")
                .next("look at it with argo_get, then call again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canary(status: Value) -> Value {
        let mut whole =
            json!({ "observedGeneration": "1", "currentPodHash": "b", "stableRS": "a", "currentStepIndex": 1 });
        whole.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        let steps = json!([{ "setWeight": 20 }, { "pause": {} }, { "analysis": {} }]);
        json!({ "metadata": { "generation": 1 }, "spec": { "strategy": { "canary": { "steps": steps } } }, "status": whole })
    }

    fn told(object: &Value) -> Result<PromoteResult, Code> {
        next(RolloutView::of(object)).map_err(|failure| failure.code)
    }

    const HELD: &str = "2026-01-02T03:04:05Z";

    fn held() -> Value {
        json!({ "controllerPause": true, "pauseConditions": [{ "reason": "CanaryPauseStep", "startTime": HELD }] })
    }

    #[test]
    fn a_pause_is_lifted_and_the_controller_counts() {
        let next = told(&canary(held())).unwrap();
        assert_eq!((next.status, next.step_to), (Some(json!({ "pauseConditions": null })), Some(2)));
    }

    #[test]
    fn a_second_promote_finds_the_first_under_way() {
        let mut lifted = held();
        lifted["pauseConditions"] = Value::Null;
        assert_eq!(told(&canary(lifted)).unwrap(), PromoteResult { status: None, step_to: Some(2), under_way: true });
    }

    #[test]
    fn a_step_without_a_pause_is_counted_up_to_the_last() {
        let at = |step: u64| told(&canary(json!({ "currentStepIndex": step }))).map(|next| next.status);
        assert_eq!(at(2).unwrap(), Some(json!({ "pauseConditions": null, "currentStepIndex": 3 })));
        assert_eq!(at(3), Err(crate::codes::NOTHING_TO_PROMOTE), "all steps are done; the pods are on their way");
    }

    #[test]
    fn an_analysis_without_conclusion_is_passed_over() {
        let mut status = held();
        status["canary"] = json!({ "currentStepAnalysisRunStatus": { "status": "Inconclusive" } });
        let patch = json!({ "pauseConditions": null, "controllerPause": false, "currentStepIndex": 2 });
        assert_eq!(told(&canary(status)).unwrap().status, Some(patch));
    }

    #[test]
    fn what_serves_already_or_was_given_up_is_not_promoted() {
        assert_eq!(
            told(&canary(json!({ "stableRS": "b", "currentStepIndex": 3 }))),
            Err(crate::codes::NOTHING_TO_PROMOTE)
        );
        assert_eq!(told(&canary(json!({ "abort": true }))), Err(crate::codes::NOTHING_TO_PROMOTE));
        assert_eq!(told(&canary(json!({ "observedGeneration": "0" }))), Err(crate::codes::NOTHING_TO_PROMOTE));
    }

    #[test]
    fn blue_and_green_switch_when_the_pause_is_lifted() {
        let object = |status: Value| json!({ "metadata": { "generation": 1 }, "spec": { "strategy": { "blueGreen": {} } }, "status": status });
        let next = told(&object(held())).unwrap();
        assert_eq!((next.status, next.step_to), (Some(json!({ "pauseConditions": null })), None));
        assert_eq!(
            told(&object(json!({ "currentPodHash": "b", "stableRS": "a" }))),
            Err(crate::codes::NOTHING_TO_PROMOTE)
        );
    }

    #[test]
    fn a_person_s_own_pause_is_lifted_too() {
        let mut object = canary(json!({ "stableRS": "b", "currentStepIndex": 3 }));
        object["spec"]["paused"] = json!(true);
        assert_eq!(told(&object).unwrap(), PromoteResult::default(), "nothing but the pause");
    }

    #[test]
    fn a_pause_that_began_after_the_decision_was_not_decided_on() {
        let object = canary(held());
        let began = Moment::parse(HELD).unwrap().millis();
        let judge = |decided: u64| is_where_it_was_decided(RolloutView::of(&object), Moment::from_millis(decided));
        assert!(judge(began + 1_000).is_ok() && judge(began + 60_000).is_ok());
        for decided in [began + 999, began, began - 1, began - 60_000] {
            assert_eq!(judge(decided).unwrap_err().code, Code::Stale, "{decided}");
        }
    }

    #[test]
    fn a_pause_that_ended_after_the_decision_was_ended_by_somebody_else() {
        let lifted = |status: &str| {
            let condition = json!({ "type": "Paused", "status": status, "lastTransitionTime": HELD });
            canary(json!({ "currentStepIndex": 2, "conditions": [condition] }))
        };
        let ended = Moment::parse(HELD).unwrap().millis();
        let judge = |object: &Value, decided: u64| moved_since(RolloutView::of(object), Moment::from_millis(decided));
        assert_eq!(judge(&lifted("False"), ended - 1), RolloutMove::Surely);
        assert_eq!(judge(&lifted("False"), ended + 500), RolloutMove::Perhaps);
        assert_eq!(judge(&lifted("False"), ended + 1_000), RolloutMove::Not);
        assert_eq!(judge(&lifted("True"), ended - 1), RolloutMove::Not);
        let mut again = held();
        again["pauseConditions"] = Value::Null;
        again["conditions"] = lifted("False")["status"]["conditions"].clone();
        assert!(
            is_where_it_was_decided(RolloutView::of(&canary(again)), Moment::from_millis(0)).is_ok(),
            "under way already"
        );
    }
}
