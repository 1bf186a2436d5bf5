//! `k8s_diff`: what applying manifests would change, by a dry run of the server itself.

use super::at;
use super::diff_text::unified;
use super::grammar::Label;
use super::manifest::{ManifestObject, ObjectManifest};
use super::reply::{ClusterNote, ClusterReplyFields, ROOM, size_of};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, Force, MaskDetail, ResourceRef, Wildcard};
use crate::codes;
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::cursor::{Cursor, RowOffset};

pub(super) struct Diff {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    manifest: ObjectManifest,
    namespace: Option<Label>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiffOutput {
    objects: Vec<DiffRow>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiffRow {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
    action: DiffAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Who owns fields that the manifest sets differently.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<String>,
}

/// What applying would do to one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DiffAction {
    Create,
    Change,
    None,
    /// Its namespace or its kind is only made by the same manifest, so the server cannot try it.
    Unverified,
    /// Nothing else would change; whether masked values would is told only to those who may write.
    Masked,
}

impl Tool for Diff {
    const SPEC: ToolSpec = ToolSpec::new("k8s_diff", TOOLSET, Effect::Read)
        .says("Diff manifests", "Server-side dry run of YAML manifests and the diff against live objects.")
        .hint(
            "For agents that prepare changes and leave them to people or pipelines; the dry run asks for the rights \
             of a write, so the credential in the cluster's entry decides whether it answers.",
        )
        .idempotent();
    type Args = Args;
    type Output = DiffOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        args.manifest.about()
    }

    async fn run(&self, permit: &Permit, args: Args, progress: &Progress) -> Result<DiffOutput, Failure> {
        let spot: RowOffset = self.kit.cursors.resume(permit, &args, args.cursor.as_ref())?.unwrap_or_default();
        let objects = args.manifest.objects()?;
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let named = (args.cluster.is_some(), args.namespace.is_some() || objects.iter().all(|o| o.namespace.is_some()));
        let mut common = ClusterNote::answer(&cluster, Some(cluster.default_namespace()), named);
        let (mut lines, mut used) = (Vec::new(), 0);
        for object in objects.iter().skip(spot.o) {
            let namespace = args.namespace.as_ref().map(Label::as_str);
            let line = Box::pin(compare(&cluster, objects, object, namespace)).await?;
            let size = size_of(&line);
            if used + size > ROOM && !lines.is_empty() {
                let shown = spot.o + lines.len();
                common.next_cursor = Some(self.kit.cursors.seal(permit, &args, &RowOffset { o: shown })?);
                common.cut_items(objects.len() - shown, "go on with next_cursor, or diff fewer objects");
                break;
            }
            used += size;
            lines.push(line);
            let done = u64::try_from(spot.o + lines.len()).unwrap_or_default();
            progress.report(done, u64::try_from(objects.len()).ok(), None);
        }
        Ok(DiffOutput { objects: lines, common })
    }
}

/// What applying one object would do.
async fn compare(
    cluster: &Cluster<'_>,
    all: &[ManifestObject],
    object: &ManifestObject,
    namespace: Option<&str>,
) -> Result<DiffRow, Failure> {
    let wanted = object.namespace_or(namespace)?;
    let line = |action, diff, conflicts, namespace: Option<&str>| DiffRow {
        kind: object.kind.clone(),
        namespace: namespace.map(str::to_owned),
        name: object.name.clone(),
        action,
        diff,
        conflicts,
    };
    let kind = match cluster.kind(&object.kind_text()).await {
        Ok(kind) => kind,
        Err(failure) if failure.code == codes::UNKNOWN_KIND && defines(all, object) => {
            return Ok(line(DiffAction::Unverified, None, Vec::new(), wanted));
        }
        Err(failure) => return Err(failure),
    };
    object.agrees(kind.plural())?;
    // A namespace argument is for those objects that can have one.
    let wanted = if kind.namespaced() { wanted } else { object.namespace.as_deref() };
    let place = cluster.place(&kind, wanted, Wildcard::Refused).await?;
    let target = place.object(&object.name)?;
    let live = cluster.find(&target, MaskDetail::Full).await?;
    match dry(cluster, &target, object).await {
        Ok((then, conflicts)) => {
            let pair = cluster.compared(live.as_ref(), Some(&then));
            let diff = unified(pair.now.as_ref(), pair.then.as_ref());
            let hides = !cluster.compares_secrets() && cluster.masks(&object.value);
            let action = match (&live, &diff) {
                (None, _) => DiffAction::Create,
                (Some(_), Some(_)) => DiffAction::Change,
                (Some(_), None) if hides => DiffAction::Masked,
                (Some(_), None) => DiffAction::None,
            };
            Ok(line(action, diff, conflicts, target.namespace()))
        }
        Err(failure) if failure.code == Code::NotFound && makes_namespace(all, target.namespace()) => {
            Ok(line(DiffAction::Unverified, None, Vec::new(), target.namespace()))
        }
        Err(failure) => Err(failure),
    }
}

/// The object as it would be, and who stands against it. With conflicts the server is asked once more what taking over
/// would give, so that the difference can still be shown.
async fn dry(
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    object: &ManifestObject,
) -> Result<(Value, Vec<String>), Failure> {
    let writer = cluster.dry_run();
    match writer.apply(target, object.value.clone(), Force::No).await {
        Ok(written) => Ok((written.object, Vec::new())),
        Err(failure) if failure.code == codes::FIELD_CONFLICT => {
            let managers = failure.details.as_ref().and_then(|details| details["managers"].as_array());
            let managers = managers.into_iter().flatten().filter_map(|m| m.as_str().map(str::to_owned)).collect();
            let written = writer.apply(target, object.value.clone(), Force::Yes).await?;
            Ok((written.object, managers))
        }
        Err(failure) => Err(about(failure, object)),
    }
}

/// Of several objects the one that failed is named.
fn about(mut failure: Failure, object: &ManifestObject) -> Failure {
    failure.message = format!("{} {}: {}", object.kind, object.name, failure.message);
    failure
}

/// Whether the same manifest brings the kind.
fn defines(all: &[ManifestObject], object: &ManifestObject) -> bool {
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    all.iter().any(|other| {
        other.kind == "CustomResourceDefinition"
            && other.value["spec"]["group"] == group
            && other.value["spec"]["names"]["kind"] == object.kind.as_str()
    })
}

/// Whether the same manifest brings the namespace.
fn makes_namespace(all: &[ManifestObject], namespace: Option<&str>) -> bool {
    all.iter()
        .any(|other| other.kind == "Namespace" && other.api_version == "v1" && Some(other.name.as_str()) == namespace)
}
