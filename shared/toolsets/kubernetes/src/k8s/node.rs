//! `k8s_node`: takes a node out of use or back into it.
//!
//! A drain cordons the node and asks every pod to go elsewhere, by eviction only: a disruption budget that says no is
//! asked again until the time is over, and nothing is ever deleted instead. What would lose data or never come back is
//! refused before the node is touched, unless the call allows it. Repeating a drain goes on where it stopped.
//!
//! Reading order: [`pods`] (which pods go, stay or are refused), [`drain`] (asking them), [`shown`] (the preview).

mod drain;
mod pods;
mod shown;

use super::at;
use super::grammar::{Label, ObjectName};
use super::reply::{ClusterNote, ClusterReplyFields};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, MaskDetail, ObjectPatch, ResourceRef};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use pods::DrainAllowance;
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a drain takes unless the call says otherwise.
const TIMEOUT_S: u32 = 300;
/// What is left for a last look when that time is over.
const MARGIN: Duration = Duration::from_secs(25);

pub(super) struct NodeTool {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    action: NodeAction,
    name: ObjectName,
    delete_emptydir: Option<bool>,
    force: Option<bool>,
    #[schemars(range(min = 0, max = 3_600))]
    grace_s: Option<u32>,
    #[schemars(range(min = 10, max = 900), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    dry_run: Option<bool>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeAction {
    Cordon,
    Uncordon,
    Drain,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NodeOutput {
    unschedulable: bool,
    evicted: Vec<String>,
    skipped: Vec<String>,
    blocked: Vec<BlockedPod>,
    remaining: u64,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BlockedPod {
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pdb: Option<String>,
    reason: String,
}

/// A node as it was read.
struct ReadNode {
    place: KindScope,
    target: ResourceRef,
    live: Value,
}

impl ReadNode {
    fn unschedulable(&self) -> bool {
        self.live["spec"]["unschedulable"] == true
    }
}

async fn look(cluster: &Cluster<'_>, args: &Args) -> Result<ReadNode, Failure> {
    args.check()?;
    if cluster.allowed().is_some() {
        return Err(Failure::new(
            crate::codes::NAMESPACE_DENIED,
            "a Node belongs to the whole cluster, and the tenant to some namespaces",
        )
        .next("do not retry; ask an admin of the cluster"));
    }
    let kind = cluster.kind("v1/Node").await?;
    let place = at::place(cluster, &kind, None).await?;
    let target = at::target(&place, &args.name)?;
    let live = at::get(cluster, &place, &target, MaskDetail::Clean).await?;
    Ok(ReadNode { place, target, live })
}

impl Args {
    fn check(&self) -> Result<(), Failure> {
        let of_drain = self.delete_emptydir.is_some()
            || self.force.is_some()
            || self.grace_s.is_some()
            || self.timeout_s.is_some()
            || self.dry_run.is_some();
        match self.action {
            NodeAction::Cordon | NodeAction::Uncordon if of_drain => Err(Failure::new(
                Code::InvalidArgument,
                "delete_emptydir, force, grace_s, timeout_s and dry_run belong to drain",
            )
            .next("leave them out, or use action=drain")),
            NodeAction::Cordon | NodeAction::Uncordon | NodeAction::Drain => Ok(()),
        }
    }

    /// What a drain may take away for good.
    fn allowed(&self) -> DrainAllowance {
        DrainAllowance { emptydir: self.delete_emptydir.unwrap_or_default(), unmanaged: self.force.unwrap_or_default() }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s.unwrap_or(TIMEOUT_S).into())
    }

    /// How long a handle lives for this call: the executor's deadline is that of the longest drain.
    fn time(&self) -> Duration {
        match self.action {
            NodeAction::Cordon | NodeAction::Uncordon => Duration::from_secs(30),
            NodeAction::Drain => self.timeout() + MARGIN,
        }
    }
}

impl NodeAction {
    /// How the node is to be marked.
    const fn unschedulable(self) -> bool {
        match self {
            NodeAction::Cordon | NodeAction::Drain => true,
            NodeAction::Uncordon => false,
        }
    }
}

/// The patch that marks a node.
fn mark(action: NodeAction) -> ObjectPatch {
    ObjectPatch::Merge(json!({ "spec": { "unschedulable": action.unschedulable() } }).into())
}

impl Tool for NodeTool {
    const SPEC: ToolSpec = ToolSpec::new("k8s_node", TOOLSET, Effect::Disrupt)
        .says(
            "Cordon or drain a node",
            "Cordon, uncordon or drain a node. Drain evicts pods and respects disruption budgets.",
        )
        .hint(
            "For agents that help with maintenance of nodes; it needs a cluster entry without a list of namespaces, \
             and a drain touches workloads of everybody on the node.",
        )
        .idempotent()
        .deadline(Duration::from_secs(900 + 30));
    type Args = Args;
    type Output = NodeOutput;

    fn effect(args: &Args) -> Effect {
        match (args.action, args.dry_run) {
            (_, Some(true)) => Effect::Read,
            (NodeAction::Drain, _) => Effect::Disrupt,
            (NodeAction::Cordon | NodeAction::Uncordon, _) => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(
            match args.action {
                NodeAction::Cordon => "cordon",
                NodeAction::Uncordon => "uncordon",
                NodeAction::Drain => "drain",
            }
            .to_owned(),
        )
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = look(&cluster, args).await?;
        if NodeTool::effect(args) != Effect::Read {
            // The server's own rules for the node are asked before a person is.
            cluster.write()?.patch(&seen.target, mark(args.action), None).await?;
        }
        match args.action {
            NodeAction::Cordon | NodeAction::Uncordon => Ok(Some(shown::marked(&cluster, &seen, args))),
            NodeAction::Drain => {
                let sorted = pods::on(&cluster, args.name.as_str(), args.allowed()).await?;
                sorted.none_refused(args.name.as_str())?;
                shown::drained(&cluster, &seen, args, &sorted).await.map(Some)
            }
        }
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let Ok(cluster) = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref()) else {
            return ProbeResult::Unknown;
        };
        let Ok(seen) = look(&cluster, args).await else { return ProbeResult::Unknown };
        let marked = seen.unschedulable() == args.action.unschedulable();
        let remaining = match args.action {
            NodeAction::Cordon | NodeAction::Uncordon => 0,
            NodeAction::Drain => match pods::on(&cluster, args.name.as_str(), args.allowed()).await {
                Ok(sorted) => sorted.remaining(),
                Err(_) => return ProbeResult::Unknown,
            },
        };
        if !marked || remaining > 0 {
            return ProbeResult::NotDone;
        }
        let tended = NodeOutput::new(seen.unschedulable(), common(&cluster, &seen, args));
        ProbeResult::Done(serde_json::to_string(&tended).ok())
    }

    async fn run(&self, permit: &Permit, args: Args, progress: &Progress) -> Result<NodeOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?.within(args.time());
        let seen = look(&cluster, &args).await?;
        let common = common(&cluster, &seen, &args);
        if NodeTool::effect(&args) == Effect::Read {
            return drain::rehearsed(&cluster, &args, NodeOutput::new(seen.unschedulable(), common)).await;
        }
        if args.action == NodeAction::Drain {
            // Before the node is touched: whoever is refused finds it as it was.
            pods::on(&cluster, args.name.as_str(), args.allowed()).await?.none_refused(args.name.as_str())?;
        }
        if seen.unschedulable() != args.action.unschedulable() {
            cluster.write()?.patch(&seen.target, mark(args.action), None).await?;
        }
        let tended = NodeOutput::new(args.action.unschedulable(), common);
        match args.action {
            NodeAction::Cordon | NodeAction::Uncordon => Ok(tended),
            NodeAction::Drain => drain::drain(&cluster, &args, tended, progress).await,
        }
    }
}

fn common(cluster: &Cluster<'_>, seen: &ReadNode, args: &Args) -> ClusterReplyFields {
    ClusterNote::answer_at(cluster, &seen.place, (args.cluster.is_some(), true))
}

impl NodeOutput {
    fn new(unschedulable: bool, common: ClusterReplyFields) -> NodeOutput {
        NodeOutput {
            unschedulable,
            evicted: Vec::new(),
            skipped: Vec::new(),
            blocked: Vec::new(),
            remaining: 0,
            common,
        }
    }
}
