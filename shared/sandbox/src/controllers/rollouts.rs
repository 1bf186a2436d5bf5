//! Rollouts of Argo: a ReplicaSet per template, exchanged step by step, with people and analyses in between.
//!
//! What moves a real one moves this one: `pauseConditions` that somebody clears, a `currentStepIndex` that somebody
//! sets, `abort`, `promoteFull` and `restartAt`. A pause is over when its condition is gone and `controllerPause` is
//! still set, so a controller that looks late cannot mistake it for one that never began.
//!
//! Not here: traffic routing and experiments; steps of these kinds are passed over.

mod blue_green;
mod canary;
mod phase;
mod restart;
mod sizes;
mod steps;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::json;
use crate::world::{self, ClusterWorld};

pub(super) const ROLLOUTS: &str = "rollouts.argoproj.io";
const REVISION: &str = "rollout.argoproj.io/revision";
const HASH: &str = "rollouts-pod-template-hash";

/// Looks at every rollout; says when the next pause is over.
pub(super) fn look(world: &mut ClusterWorld) -> Option<Timestamp> {
    let rollouts = world.all(ROLLOUTS, "");
    rollouts.iter().filter(|one| !json::is_going(one)).filter_map(|one| reconcile(world, one)).min()
}

/// One look at one rollout: what there is, and the status as it is being rewritten.
struct RolloutTurn {
    rollout: Arc<Value>,
    status: Value,
    /// The label value of the wanted template.
    hash: String,
    revision: i64,
    /// Why it was given up in this very look.
    given_up: Option<String>,
    due: Option<Timestamp>,
}

impl RolloutTurn {
    fn wanted(&self) -> i64 {
        json::int(&self.rollout, "/spec/replicas", 1)
    }

    fn is_paused(&self) -> bool {
        json::is_true(&self.rollout, "/spec/paused")
    }

    fn is(&self, flag: &str) -> bool {
        json::is_true(&self.status, flag)
    }

    fn stable(&self) -> &str {
        json::text_or_empty(&self.status, "/stableRS")
    }

    fn is_promoted(&self) -> bool {
        self.stable() == self.hash
    }

    /// The strategy's own section.
    fn strategy(&self, name: &str) -> Option<&Value> {
        self.rollout.pointer("/spec/strategy")?.get(name)
    }

    fn sets(&self, world: &ClusterWorld) -> Vec<Arc<Value>> {
        world.owned("replicasets.apps", &self.rollout)
    }

    /// The wanted template serves everybody from now on.
    fn promote(&mut self) {
        let hash = self.hash.clone();
        json::set(&mut self.status, "/stableRS", hash);
        json::take(&mut self.status, "/promoteFull");
    }

    fn abort(&mut self, why: String, now: String) {
        json::set(&mut self.status, "/abort", true);
        json::set(&mut self.status, "/abortedAt", now);
        self.given_up = Some(why);
    }

    fn wake(&mut self, at: Timestamp) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }
}

fn reconcile(world: &mut ClusterWorld, rollout: &Arc<Value>) -> Option<Timestamp> {
    let template = template_of(world, rollout)?;
    let mut turn = begin(world, rollout, &template);
    if !turn.is_paused() {
        keep_set(world, &mut turn, &template);
    }
    if turn.strategy("blueGreen").is_some() {
        blue_green::move_on(world, &mut turn);
    } else {
        canary::move_on(world, &mut turn);
    }
    restart::move_on(world, &mut turn);
    phase::write(world, &turn);
    turn.due
}

/// The template of the rollout itself, or of the workload it refers to.
fn template_of(world: &ClusterWorld, rollout: &Value) -> Option<Value> {
    let own = rollout.pointer("/spec/template").cloned();
    let referred = || {
        let reference = rollout.pointer("/spec/workloadRef")?;
        let name = json::text(reference, "/name")?;
        let find = |resource: &str| world.find(resource, json::namespace(rollout), name);
        match json::text(reference, "/kind")? {
            "Deployment" => find("deployments.apps")?.pointer("/spec/template").cloned(),
            "ReplicaSet" => find("replicasets.apps")?.pointer("/spec/template").cloned(),
            _ => None,
        }
    };
    let mut template = own.or_else(referred)?;
    json::take(&mut template, &format!("/metadata/labels/{HASH}"));
    json::take(&mut template, "/metadata/creationTimestamp");
    Some(template)
}

/// Reads the status, and begins anew where another template or other steps are wanted.
fn begin(world: &mut ClusterWorld, rollout: &Arc<Value>, template: &Value) -> RolloutTurn {
    let mut status = rollout.get("status").cloned().unwrap_or_else(|| json!({}));
    let kept = set_of(world, rollout, template);
    let hash = kept.as_ref().map_or_else(|| world::short_hash(template), |set| hash_of(set).to_owned());
    let steps = steps::all(rollout);
    let step_hash = world::short_hash(&Value::from(steps.to_vec()));
    let known = json::text_or_empty(&status, "/currentPodHash");
    let changed = !known.is_empty() && known != hash;
    let others = json::text(&status, "/currentStepHash").is_some_and(|known| known != step_hash);
    if changed || others {
        for field in ["pauseConditions", "controllerPause", "abort", "abortedAt", "promoteFull", "canary"] {
            json::take(&mut status, &format!("/{field}"));
        }
        let back = json::text_or_empty(&status, "/stableRS") == hash;
        json::set(&mut status, "/currentStepIndex", if back { steps.len() } else { 0 });
    }
    json::set(&mut status, "/currentPodHash", hash.clone());
    json::set(&mut status, "/currentStepHash", step_hash);
    let revision = kept.as_ref().map_or(0, |set| revision_of(set));
    RolloutTurn { rollout: rollout.clone(), status, hash, revision, given_up: None, due: None }
}

fn bare(set: &Value) -> Value {
    let mut template = set.pointer("/spec/template").cloned().unwrap_or_default();
    json::take(&mut template, &format!("/metadata/labels/{HASH}"));
    json::take(&mut template, "/metadata/creationTimestamp");
    template
}

/// The set that was made of this template. A set's template has been filled in with defaults, so the wanted one is too.
fn set_of(world: &ClusterWorld, rollout: &Value, template: &Value) -> Option<Arc<Value>> {
    let wanted = world::short_hash(template);
    world.owned("replicasets.apps", rollout).into_iter().find(|set| hash_of(set) == wanted || bare(set) == *template)
}

fn hash_of(set: &Value) -> &str {
    set.pointer(&format!("/metadata/labels/{HASH}")).and_then(Value::as_str).unwrap_or_default()
}

fn revision_of(object: &Value) -> i64 {
    json::annotation(object, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn mark_revision(object: &mut Value, revision: i64) {
    json::set(object, &format!("/metadata/annotations/{}", json::escaped(REVISION)), revision.to_string());
}

/// Makes the set of the wanted template, or the newest revision of one that came back.
fn keep_set(world: &mut ClusterWorld, turn: &mut RolloutTurn, template: &Value) {
    let sets = turn.sets(world);
    let kept = sets.iter().find(|set| hash_of(set) == turn.hash);
    let newest = sets.iter().filter(|set| hash_of(set) != turn.hash).map(|set| revision_of(set)).max().unwrap_or(0);
    let revision = kept.map_or(0, |set| revision_of(set)).max(newest + 1);
    match kept {
        Some(kept) => drop(world.change("replicasets.apps", kept, |set| mark_revision(set, revision))),
        None => make_set(world, turn, template, revision),
    }
    turn.revision = revision;
    let rollout = turn.rollout.clone();
    world.change(ROLLOUTS, &rollout, |rollout| mark_revision(rollout, revision));
    forget_history(world, turn);
}

fn make_set(world: &mut ClusterWorld, turn: &RolloutTurn, template: &Value, revision: i64) {
    let rollout = &turn.rollout;
    let mut set = json!({
        "metadata": {
            "name": format!("{}-{}", json::name(rollout), turn.hash), "namespace": json::namespace(rollout),
            "labels": template["metadata"]["labels"], "ownerReferences": [world::owner_reference(rollout)],
        },
        "spec": { "replicas": 0, "selector": rollout["spec"]["selector"], "template": template },
    });
    mark_revision(&mut set, revision);
    for at in ["/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        json::set(&mut set, &format!("{at}/{HASH}"), turn.hash.clone());
    }
    world.make("replicasets.apps", set);
}

/// Removes the oldest empty sets beyond the limit.
fn forget_history(world: &mut ClusterWorld, turn: &RolloutTurn) {
    let limit = usize::try_from(json::int(&turn.rollout, "/spec/revisionHistoryLimit", 10)).unwrap_or_default();
    let in_use = |set: &Value| hash_of(set) == turn.hash || hash_of(set) == turn.stable();
    let is_empty = |set: &Value| json::int(set, "/spec/replicas", 0) == 0 && json::int(set, "/status/replicas", 0) == 0;
    let mut spare: Vec<_> = turn.sets(world).into_iter().filter(|set| is_empty(set) && !in_use(set)).collect();
    spare.sort_by_key(|set| revision_of(set));
    let surplus = spare.len().saturating_sub(limit);
    for set in spare.into_iter().take(surplus) {
        world.objects.remove("replicasets.apps", json::namespace(&set), json::name(&set));
    }
}
