//! `k8s_delete`: deletes one object.
//!
//! The deletion names the uid that was read, so an object made anew under the same name is left alone.

use super::at;
use super::grammar::{KindText, Label, ObjectName};
use super::one::LoadedObject;
use super::reply::{ClusterNote, ClusterReplyFields};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, ClusterWriter, DeleteOptions, MaskDetail};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

mod reach;

/// Counting a whole namespace takes a request for each kind.
const DEADLINE: Duration = Duration::from_secs(60);
/// What is left of it to say what came of it.
const MARGIN: Duration = Duration::from_secs(5);

pub(super) struct Delete {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: KindText,
    name: ObjectName,
    namespace: Option<Label>,
    cascade: Option<CascadeArg>,
    #[schemars(range(min = 0, max = 3_600))]
    grace_s: Option<u32>,
    dry_run: Option<bool>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CascadeArg {
    Background,
    Foreground,
    Orphan,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DeleteOutput {
    deleted: bool,
    uid: String,
    terminating: bool,
    finalizers: Vec<String>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl Tool for Delete {
    const SPEC: ToolSpec = ToolSpec::new("k8s_delete", TOOLSET, Effect::Disrupt)
        .says("Delete an object", "Delete one object.")
        .hint(
            "Only for agents that clean up after themselves or after others on request; what the object owns goes \
             with it unless the call says otherwise, and no backup is made.",
        )
        .idempotent()
        .deadline(DEADLINE);
    type Args = Args;
    type Output = DeleteOutput;

    fn effect(args: &Args) -> Effect {
        match args.dry_run {
            Some(true) => Effect::Read,
            Some(false) | None => Effect::Disrupt,
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.kind.about())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = self.cluster(permit, args)?;
        let one = find(&cluster, permit, args).await?;
        args.send(&cluster.write()?, &one).await?;
        Box::pin(reach::drawn(&cluster, &one, args.cascade(), args.grace_s)).await.map(Some)
    }

    /// Gone, or on its way. An object that stands there untouched was not deleted, unless somebody makes it anew under
    /// its old name as a controller does: then nobody can tell.
    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let looked = async {
            let cluster = self.cluster(permit, args)?;
            let (_, target) =
                LoadedObject::name(&cluster, permit, &args.kind, &args.name, args.namespace.as_ref()).await?;
            cluster.find(&target, MaskDetail::Clean).await
        };
        match looked.await {
            Ok(None) => ProbeResult::Done(None),
            Ok(Some(live)) if is_terminating(&live) => ProbeResult::Done(None),
            Ok(Some(live)) if super::radius::controller(&live).is_none() => ProbeResult::NotDone,
            Ok(Some(_)) | Err(_) => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<DeleteOutput, Failure> {
        let cluster = self.cluster(permit, &args)?;
        let one = find(&cluster, permit, &args).await?;
        let mut common =
            ClusterNote::answer_at(&cluster, &one.place, (args.cluster.is_some(), args.namespace.is_some()));
        let uid = one.uid().to_owned();
        if args.dry_run == Some(true) {
            args.send(&cluster.dry_run(), &one).await?;
            let drawn = Box::pin(reach::drawn(&cluster, &one, args.cascade(), args.grace_s)).await?;
            common.warnings = drawn.text.lines().map(str::to_owned).chain(drawn.warnings).collect();
            let finalizers = finalizers(&one.live);
            return Ok(DeleteOutput {
                deleted: false,
                uid,
                terminating: is_terminating(&one.live),
                finalizers,
                common,
            });
        }
        let answer = args.send(&cluster.write()?, &one).await?;
        // It is done; a second look that fails leaves what the cluster answered.
        let left = match cluster.find(&one.target, MaskDetail::Clean).await {
            Ok(left) => left,
            Err(_) => Some(answer).filter(is_terminating),
        };
        let left = left.filter(|left| left["metadata"]["uid"] == uid.as_str());
        Ok(DeleteOutput {
            deleted: left.is_none(),
            terminating: left.is_some(),
            finalizers: left.as_ref().map(finalizers).unwrap_or_default(),
            uid,
            common,
        })
    }
}

impl Delete {
    fn cluster<'p>(&self, permit: &'p Permit, args: &Args) -> Result<Cluster<'p>, Failure> {
        Ok(at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?.within(DEADLINE - MARGIN))
    }
}

impl Args {
    fn cascade(&self) -> CascadeArg {
        self.cascade.unwrap_or(CascadeArg::Background)
    }

    /// Deletes exactly the object that was found.
    async fn send(&self, writer: &ClusterWriter<'_>, one: &LoadedObject) -> Result<Value, Failure> {
        let cascade = match self.cascade() {
            CascadeArg::Background => crate::client::DeleteCascade::Background,
            CascadeArg::Foreground => crate::client::DeleteCascade::Foreground,
            CascadeArg::Orphan => crate::client::DeleteCascade::Orphan,
        };
        let how = DeleteOptions { uid: Some(one.uid().to_owned()), cascade, grace_s: self.grace_s };
        Ok(writer.delete(&one.target, &how).await?.object)
    }
}

async fn find(cluster: &Cluster<'_>, permit: &Permit, args: &Args) -> Result<LoadedObject, Failure> {
    LoadedObject::find(cluster, permit, &args.kind, &args.name, args.namespace.as_ref()).await
}

fn is_terminating(live: &Value) -> bool {
    live["metadata"]["deletionTimestamp"].is_string()
}

fn finalizers(live: &Value) -> Vec<String> {
    let finalizers = live["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(|finalizer| finalizer.as_str().map(str::to_owned)).collect()
}
