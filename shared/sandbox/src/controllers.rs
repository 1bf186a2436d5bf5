//! The simulated control plane: reconcilers that look at the world and move it one step.
//!
//! None of them remembers anything that is not in an object, except when a pod's next step is due.
//! They run under the world's lock, whenever something was written or a moment they asked for has come.

mod analysis_runs;
mod autoscalers;
pub(crate) mod budgets;
mod claims;
mod collector;
mod conditions;
mod cron_jobs;
mod daemon_sets;
pub(crate) mod definitions;
mod deployments;
pub(crate) mod endpoints;
pub(crate) mod events;
mod jobs;
mod namespaces;
mod nodes;
mod pods;
mod quotas;
mod replica_sets;
mod revisions;
mod rollouts;
mod scheduler;
mod stateful_sets;

use jiff::Timestamp;

pub(crate) use self::events::Occurrence;
use crate::world::ClusterWorld;

/// One look of every controller. Says when the next one is wanted even if nobody writes.
pub(crate) fn look(world: &mut ClusterWorld) -> Option<Timestamp> {
    namespaces::look(world);
    collector::look(world);
    definitions::look(world);
    quotas::look(world);
    claims::look(world);
    autoscalers::look(world);
    deployments::look(world);
    let rollouts = rollouts::look(world);
    let analyses = analysis_runs::look(world);
    replica_sets::look(world);
    stateful_sets::look(world);
    daemon_sets::look(world);
    let cron_jobs = cron_jobs::look(world);
    let jobs = jobs::look(world);
    scheduler::look(world);
    let pods = pods::look(world);
    endpoints::look(world);
    budgets::look(world);
    events::look(world);
    [rollouts, analyses, jobs, cron_jobs, pods].into_iter().flatten().min()
}

/// Fills in what nodes report about themselves.
pub(crate) use self::nodes::node;
