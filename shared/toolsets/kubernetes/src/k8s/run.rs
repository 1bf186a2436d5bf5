//! `k8s_run`: a one-off Job, or a debug container in a pod; both end by themselves.
//!
//! What is made carries the name of the run, so making it twice makes one. The cluster ends and removes a Job by itself,
//! whatever becomes of this service. How a program ended is the result and no failure; once it was started, nothing that
//! goes wrong in looking at it turns into one either.
//!
//! Reading order: [`spec`] (what is made), [`shown`] (the preview), [`follow`] (what came of it).

mod follow;
mod shown;
mod spec;

use super::argv::Argv;
use super::at;
use super::grammar::{Image, Label, ObjectName};
use super::judged::unprotected;
use super::reply::ClusterReplyFields;
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, MaskDetail, ResourceRef, SealedValue, marker};
use crate::codes;
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How long it may take, and how long it is kept, unless the call says otherwise.
const TIMEOUT_S: u32 = 60;
const TTL_S: u32 = 600;
/// What the looks before and after may take.
const MARGIN: Duration = Duration::from_secs(25);
/// The name things have in a preview, when there is no run yet.
const NO_RUN_YET: &str = "qm-preview";

pub(super) struct RunTool {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    image: Option<Image>,
    command: Option<Argv>,
    from_cronjob: Option<ObjectName>,
    debug_pod: Option<ObjectName>,
    namespace: Option<Label>,
    #[schemars(range(min = 1, max = 300), extend("x-wire" = ["maximum"]))]
    timeout_s: Option<u32>,
    #[schemars(range(min = 60, max = 86_400), extend("x-wire" = ["maximum"]))]
    ttl_s: Option<u32>,
    cluster: Option<Label>,
}

/// What is run, of the combinations the arguments allow.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunContent<'a> {
    Job(&'a Image),
    FromCronJob(&'a ObjectName),
    Debug { pod: &'a ObjectName, image: &'a Image },
}

impl Args {
    /// Exactly one of the three.
    pub(super) fn what(&self) -> Result<RunContent<'_>, Failure> {
        match (&self.image, &self.from_cronjob, &self.debug_pod) {
            (Some(image), None, None) => Ok(RunContent::Job(image)),
            (None, Some(cronjob), None) => Ok(RunContent::FromCronJob(cronjob)),
            (Some(image), None, Some(pod)) => Ok(RunContent::Debug { pod, image }),
            (_, _, _) => Err(Failure::new(
                Code::InvalidArgument,
                "give image, or from_cronjob, or debug_pod together with image",
            )
            .next("call again with one of these three")),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    logs: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

/// What would be made, and where.
struct PlannedRun {
    place: KindScope,
    /// What it is made for: the CronJob or the pod; for an image, the Job itself.
    of: ResourceRef,
    /// That object, if there is one.
    live: Value,
    made: CreatedKind,
}

/// What is made.
enum CreatedKind {
    Job(SealedValue),
    Debugger(Value),
}

async fn plan(cluster: &Cluster<'_>, args: &Args, name: &str) -> Result<PlannedRun, Failure> {
    let what = args.what()?;
    let kind = match &what {
        RunContent::Job(_) | RunContent::FromCronJob(_) => cluster.kind("batch/v1/Job").await?,
        RunContent::Debug { .. } => cluster.kind("v1/Pod").await?,
    };
    let place = at::place(cluster, &kind, args.namespace.as_ref()).await?;
    let planned = match what {
        RunContent::Job(image) => {
            let (of, made) = (place.object(name)?, CreatedKind::Job(spec::job(name, image, args).into()));
            PlannedRun { place, of, live: Value::Null, made }
        }
        RunContent::FromCronJob(cronjob) => {
            if args.command.is_some() {
                let failure = Failure::new(Code::InvalidArgument, "a CronJob brings its own command");
                return Err(failure.next("leave command out, or use image"));
            }
            let kind = cluster.kind("batch/v1/CronJob").await?;
            let from = at::place(cluster, &kind, args.namespace.as_ref()).await?;
            let of = at::target(&from, cronjob)?;
            let sealed = match cluster.sealed(&of).await {
                Err(failure) if failure.code == Code::NotFound => {
                    return Err(at::not_found(cluster, &from, &of).await);
                }
                read => read?,
            };
            let live = sealed.shown(cluster, MaskDetail::Full);
            let made = CreatedKind::Job(spec::from_cronjob(name, &sealed, &live, args)?);
            PlannedRun { place, of, live, made }
        }
        RunContent::Debug { pod, image } => {
            let of = at::target(&place, pod)?;
            let live = at::get(cluster, &place, &of, MaskDetail::Full).await?;
            PlannedRun { place, of, live, made: CreatedKind::Debugger(spec::debugger(name, image, args)) }
        }
    };
    unprotected(cluster, &planned.of)?;
    Ok(planned)
}

impl Args {
    fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s.unwrap_or(TIMEOUT_S).into())
    }

    fn ttl_s(&self) -> u32 {
        self.ttl_s.unwrap_or(TTL_S)
    }

    fn words(&self) -> &[String] {
        self.command.as_ref().map(Argv::words).unwrap_or_default()
    }
}

/// What things of a run are called.
fn name(permit: &Permit) -> String {
    let id = permit.run().map_or_else(|| permit.call().id.to_string(), |run| run.to_string());
    let letters = id.split_once('_').map_or(id.as_str(), |(_, letters)| letters);
    format!("qm-{}", letters.to_ascii_lowercase())
}

impl Tool for RunTool {
    const SPEC: ToolSpec = ToolSpec::new("k8s_run", TOOLSET, Effect::Disrupt)
    .says(
        "Run a one-off job",
        "Run a one-off Job from image or from_cronjob, or attach a debug container to debug_pod; returns logs. Removed after ttl_s.",
    )
    .hint(
        "For agents that need a throw-away program near the workload, such as a database check; the image is theirs \
         to choose, so bound it by admission rules in the cluster.",
    )
    .idempotent()
    .deadline(Duration::from_secs(300 + 30))
    .outside_text();
    type Args = Args;
    type Output = RunOutput;

    /// A debug container joins a pod that others use, and stays until the pod goes.
    fn effect(args: &Args) -> Effect {
        match args.debug_pod {
            Some(_) => Effect::Disrupt,
            None => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        let word = match (&args.debug_pod, &args.from_cronjob) {
            (Some(_), _) => "debug",
            (None, Some(_)) => "cronjob",
            (None, None) => "image",
        };
        Some(word.to_owned())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let planned = plan(&cluster, args, NO_RUN_YET).await?;
        // The server's own rules are asked before a person is: admission, quota, a pod that takes no more containers.
        match &planned.made {
            CreatedKind::Job(body) => cluster.write()?.create(&planned.place, body.clone()).await?,
            CreatedKind::Debugger(container) => {
                cluster.write()?.add_ephemeral(&planned.of, container.clone(), None).await?
            }
        };
        Ok(Some(shown::drawn(&cluster, &planned, args)))
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let Ok(cluster) = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref()) else {
            return ProbeResult::Unknown;
        };
        let name = name(permit);
        let Ok(planned) = plan(&cluster, args, &name).await else { return ProbeResult::Unknown };
        match is_there(&cluster, &planned, permit, &name).await {
            Ok(true) => {
                let ran = follow::told(&cluster, &planned, &name, args).await;
                ProbeResult::Done(serde_json::to_string(&ran).ok())
            }
            Ok(false) => ProbeResult::NotDone,
            Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, progress: &Progress) -> Result<RunOutput, Failure> {
        let named = args.cluster.as_ref();
        let cluster = at::cluster(&self.kit.clusters, permit, named)?.within(args.timeout() + MARGIN);
        let name = name(permit);
        let planned = plan(&cluster, &args, &name).await?;
        if !is_there(&cluster, &planned, permit, &name).await? {
            start(&cluster, &planned, permit, &name).await?;
        }
        progress.report(0, None, Some("started"));
        let waiting = at::cluster(&self.kit.clusters, permit, named)?.within(args.timeout());
        let waited = follow::wait(&waiting, &planned, &name).await;
        let mut ran = follow::told(&cluster, &planned, &name, &args).await;
        ran.common.warnings.extend(waited);
        Ok(ran)
    }
}

/// Whether this run has made it already. Something of that name that another made is in the way.
async fn is_there(cluster: &Cluster<'_>, planned: &PlannedRun, permit: &Permit, name: &str) -> Result<bool, Failure> {
    match &planned.made {
        CreatedKind::Debugger(_) => {
            let mut known = planned.live["spec"]["ephemeralContainers"].as_array().into_iter().flatten();
            Ok(known.any(|container| container["name"] == name))
        }
        CreatedKind::Job(_) => {
            let found = cluster.find(&planned.place.object(name)?, MaskDetail::Full).await?;
            let ours = |job: &Value| permit.run().is_some_and(|run| marker::carries(job, run));
            match found {
                None => Ok(false),
                Some(job) if ours(&job) => Ok(true),
                Some(_) => Err(Failure::new(
                    codes::ALREADY_EXISTS,
                    format!("there is a Job {name} that this run did not make"),
                )
                .next("do not retry; look at it with k8s_get kind=Job")),
            }
        }
    }
}

async fn start(cluster: &Cluster<'_>, planned: &PlannedRun, permit: &Permit, name: &str) -> Result<(), Failure> {
    let writer = cluster.write()?;
    let made = match &planned.made {
        CreatedKind::Job(body) => writer.create(&planned.place, body.clone()).await,
        CreatedKind::Debugger(container) => writer.add_ephemeral(&planned.of, container.clone(), None).await,
    };
    match made {
        Ok(_) => Ok(()),
        // Another attempt of this very run was faster.
        Err(failure) if failure.code == codes::ALREADY_EXISTS => {
            is_there(cluster, planned, permit, name).await.and_then(|there| if there { Ok(()) } else { Err(failure) })
        }
        Err(failure) => Err(failure),
    }
}
