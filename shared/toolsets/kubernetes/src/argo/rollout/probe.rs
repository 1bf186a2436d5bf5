//! Whether an action whose answer was lost has happened, from one look. Nothing: nobody can tell.

use super::super::history::find as find_revision;
use super::super::tree;
use super::super::view::RolloutView;
use super::promote::{RolloutMove, moved_since};
use super::template::TemplateHolder;
use super::{ArgoRolloutAction, Args};
use crate::client::Cluster;
use crate::k8s::images;
use crate::k8s::one::LoadedObject;
use domain::Moment;

pub(super) async fn settled(
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    args: &Args,
    decided: Option<Moment>,
) -> Option<bool> {
    let view = RolloutView::of(&seen.live);
    let as_wished = match args.action {
        ArgoRolloutAction::Promote => return promoted(view, decided?),
        ArgoRolloutAction::Pause => view.is_paused(),
        ArgoRolloutAction::Resume => !view.is_paused(),
        ArgoRolloutAction::PromoteFull => view.is_promoting_fully() || view.is_promoted(),
        ArgoRolloutAction::Abort => view.is_aborted(),
        ArgoRolloutAction::Retry => !view.is_aborted(),
        ArgoRolloutAction::Restart => view.restart_at() == Some(decided?.to_string().as_str()),
        ArgoRolloutAction::Undo => {
            let holder = TemplateHolder::of(cluster, seen).await.ok()?;
            let known = tree::revisions(cluster, &seen.target, &seen.live).await.ok()?;
            // Without a number, the one before the current is another one by now.
            find_revision(&known, u64::from(args.to_revision?)).ok()?.template == holder.template
        }
        ArgoRolloutAction::SetImage => {
            let holder = TemplateHolder::of(cluster, seen).await.ok()?;
            images::chosen(&holder.template, args.images.as_ref()?).ok()?.changes.is_empty()
        }
    };
    as_wished.then_some(true)
}

/// A pause that stands since before the decision was not lifted. Where a pause began or ended since, or none is left to
/// lift, somebody went on. Between two steps nobody can tell.
fn promoted(view: RolloutView<'_>, decided: Moment) -> Option<bool> {
    if view.is_aborted() || view.is_paused() {
        return None;
    }
    match moved_since(view, decided) {
        RolloutMove::Surely => Some(true),
        RolloutMove::Perhaps | RolloutMove::Not if view.is_unpausing() || view.is_promoted() => Some(true),
        RolloutMove::Not if !view.holds().is_empty() => Some(false),
        RolloutMove::Perhaps | RolloutMove::Not => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_pause_that_stands_since_before_the_decision_was_not_lifted() {
        let decided = Moment::parse("2026-01-02T03:04:05Z").unwrap();
        let told = |status: Value| promoted(RolloutView::of(&json!({ "status": status })), decided);
        let held = |began: &str| json!({ "controllerPause": true, "pauseConditions": [{ "startTime": began }], "currentPodHash": "b" });
        assert_eq!(told(held("2026-01-02T03:04:00Z")), Some(false));
        assert_eq!(told(held("2026-01-02T03:04:09Z")), Some(true));
        assert_eq!(told(json!({ "controllerPause": true, "currentPodHash": "b" })), Some(true), "lifted just now");
        assert_eq!(told(json!({ "currentPodHash": "b", "stableRS": "b" })), Some(true));
        assert_eq!(told(json!({ "currentPodHash": "b", "stableRS": "a" })), None, "between two steps");
        assert_eq!(told(json!({ "currentPodHash": "b", "stableRS": "a", "abort": true })), None);
    }
}
