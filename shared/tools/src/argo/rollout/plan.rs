//! What an action writes: patches, in their order, and what they mean. Looks, and changes nothing.

use super::super::kinds::Seen;
use super::super::view::View;
use super::{Action, Args, promote, template};
use crate::k8s::images::Images;
use cluster::{Cluster, Patch, Target};
use domain::{Code, Failure, Moment};
use serde_json::{Value, json};

/// Which part of an object a patch goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Status,
    Object,
}

/// One patch.
#[derive(Debug)]
pub(super) struct Send {
    pub(super) door: Door,
    pub(super) target: Target,
    /// The version it was made for.
    pub(super) version: Option<String>,
    pub(super) patch: Patch,
}

impl Send {
    fn merge(seen: &Seen, door: Door, patch: Value) -> Send {
        let version = seen.version().map(str::to_owned);
        Send { door, target: seen.target.clone(), version, patch: Patch::Merge(patch.into()) }
    }
}

/// What would be written.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// None: everything is as wished already.
    pub(super) sends: Vec<Send>,
    pub(super) step_from: Option<usize>,
    pub(super) step_to: Option<usize>,
    /// The revision that is gone back to.
    pub(super) revision: Option<u64>,
    /// Whether that one serves already.
    pub(super) is_stable: bool,
    pub(super) images: Option<Images>,
    /// The template now and then.
    pub(super) templates: Option<(Value, Value)>,
}

impl Plan {
    /// The plan for an action. `decided` is when it was.
    pub(super) async fn of(cluster: &Cluster<'_>, seen: &Seen, args: &Args, decided: Moment) -> Result<Plan, Failure> {
        let view = View::of(&seen.live);
        match args.action {
            Action::Pause => Ok(pause(seen, view, true)),
            Action::Resume => Ok(pause(seen, view, false)),
            Action::Promote => promote(seen, view),
            Action::PromoteFull => promote_full(seen, view),
            Action::Abort => abort(seen, view),
            Action::Retry => retry(seen, view),
            Action::Restart => Ok(restart(seen, view, decided)),
            Action::Undo => template::undo(cluster, seen, args.to_revision.map(u64::from)).await,
            Action::SetImage => template::set_images(cluster, seen, args).await,
        }
    }
}

fn pause(seen: &Seen, view: View<'_>, wanted: bool) -> Plan {
    let send = Send::merge(seen, Door::Object, json!({ "spec": { "paused": wanted } }));
    Plan { sends: (view.is_paused() != wanted).then_some(send).into_iter().collect(), ..Plan::default() }
}

/// The patch that lifts a person's pause, if there is one.
fn unpause(seen: &Seen, view: View<'_>) -> Option<Send> {
    view.is_paused().then(|| Send::merge(seen, Door::Object, json!({ "spec": { "paused": false } })))
}

fn promote(seen: &Seen, view: View<'_>) -> Result<Plan, Failure> {
    let next = promote::next(view)?;
    let status = next.status.map(|status| Send::merge(seen, Door::Status, json!({ "status": status })));
    let unpause = unpause(seen, view).filter(|_| !next.under_way);
    let sends = status.into_iter().chain(unpause).collect();
    Ok(Plan { sends, step_from: view.step(), step_to: next.step_to, ..Plan::default() })
}

fn promote_full(seen: &Seen, view: View<'_>) -> Result<Plan, Failure> {
    if view.is_promoted() {
        return Err(Failure::new(Code::AlreadyStable, "the newest version serves already").next(unseen(view)));
    }
    let status = json!({ "status": { "promoteFull": true } });
    let status = (!view.is_promoting_fully()).then(|| Send::merge(seen, Door::Status, status));
    let step_to = view.step().map(|_| view.steps().len());
    let sends = status.into_iter().chain(unpause(seen, view)).collect();
    Ok(Plan { sends, step_from: view.step(), step_to, ..Plan::default() })
}

fn abort(seen: &Seen, view: View<'_>) -> Result<Plan, Failure> {
    if view.is_promoted() {
        return Err(Failure::new(Code::NotInProgress, "no new version is on its way").next(unseen(view)));
    }
    let send = Send::merge(seen, Door::Status, json!({ "status": { "abort": true } }));
    let sends = (!view.is_aborted()).then_some(send).into_iter().collect();
    Ok(Plan { sends, step_from: view.step(), step_to: view.step().map(|_| 0), ..Plan::default() })
}

fn retry(seen: &Seen, view: View<'_>) -> Result<Plan, Failure> {
    if !view.is_aborted() {
        return Err(Failure::new(Code::NotAborted, "the Rollout was not aborted")
            .next("look at it with argo_get; a pause is lifted with action=promote or action=resume"));
    }
    let send = Send::merge(seen, Door::Status, json!({ "status": { "abort": false } }));
    Ok(Plan { sends: vec![send], step_from: view.step(), step_to: view.step().map(|_| 0), ..Plan::default() })
}

fn restart(seen: &Seen, view: View<'_>, decided: Moment) -> Plan {
    // To the second: the controller compares it with what it noted, and keeps no fractions.
    let at = decided.to_string();
    let send = Send::merge(seen, Door::Object, json!({ "spec": { "restartAt": at } }));
    Plan { sends: (view.restart_at() != Some(at.as_str())).then_some(send).into_iter().collect(), ..Plan::default() }
}

/// The next step where there seems to be nothing to do.
fn unseen(view: View<'_>) -> &'static str {
    match view.is_observed() {
        true => "look at it with argo_get",
        false => "the controller has not seen the latest change yet; wait a moment, then look with argo_get",
    }
}
