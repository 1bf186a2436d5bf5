//! What a manifest comes to in one cluster: the order, where each object goes, and what the server says to a try.

use super::AppliedObject;
use crate::client::{Cluster, ClusterWriter, Force, MaskDetail, ResourceRef, Wildcard, marker};
use crate::codes;
use crate::k8s::grammar::Label;
use crate::k8s::manifest::ManifestObject;
use domain::{Code, Failure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often, and how far apart, it is looked whether a kind that was just defined is known.
const LOOKS: usize = 20;
const BETWEEN: Duration = Duration::from_millis(250);

/// The objects of a manifest in the order in which they are applied.
pub(super) struct ApplyPlan<'m> {
    pub(super) steps: Vec<ApplyStep<'m>>,
    namespace: Option<&'m str>,
}

/// One object and where it goes.
pub(super) struct ApplyStep<'m> {
    pub(super) object: &'m ManifestObject,
    /// `None`: its kind is only defined by the same manifest.
    pub(super) target: Option<ResourceRef>,
}

/// What the server says to one object without doing it.
pub(super) enum DryRunResult {
    /// It would be made.
    Create { target: ResourceRef, then: Value },
    /// It is there; with the managers whose fields would be taken over.
    Change { target: ResourceRef, live: Value, then: Value, managers: Vec<String> },
    /// Its kind or namespace is only made by the same manifest, so the server cannot try it.
    Untried,
}

impl<'m> ApplyPlan<'m> {
    /// Judges every object: its kind, its namespace, and that no two are one.
    pub(super) async fn of(
        cluster: &Cluster<'_>,
        objects: &'m [ManifestObject],
        namespace: Option<&'m Label>,
    ) -> Result<ApplyPlan<'m>, Failure> {
        let namespace = namespace.map(Label::as_str);
        let mut steps: Vec<ApplyStep<'m>> = Vec::new();
        for object in objects {
            let target = Box::pin(resolve(cluster, objects, object, namespace)).await?;
            if target.is_some() && steps.iter().any(|step| step.target == target) {
                let message = format!("{} {} is in the manifest twice", object.kind, object.name);
                return Err(Failure::new(codes::INVALID_MANIFEST, message).next("keep one of them"));
            }
            steps.push(ApplyStep { object, target });
        }
        steps.sort_by_key(|step| rank(step.object));
        Ok(ApplyPlan { steps, namespace })
    }

    /// How many objects of which kinds.
    pub(super) fn kinds(&self) -> String {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for step in &self.steps {
            *kinds.entry(&step.object.kind).or_default() += 1;
        }
        let kinds: Vec<String> = kinds.into_iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        format!("{} objects: {}", self.steps.len(), kinds.join(", "))
    }

    /// Where a step goes, now that everything before it is there.
    pub(super) async fn target(&self, cluster: &Cluster<'_>, step: &ApplyStep<'_>) -> Result<ResourceRef, Failure> {
        if let Some(target) = &step.target {
            return Ok(target.clone());
        }
        // The definition is served before it is announced everywhere.
        for _ in 0..LOOKS {
            match Box::pin(resolve(cluster, &[], step.object, self.namespace)).await {
                Ok(Some(target)) => return Ok(target),
                Ok(None) => {}
                Err(failure) if failure.code == codes::UNKNOWN_KIND => {}
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(BETWEEN).await;
        }
        Err(Failure::new(target::codes::TARGET_BUSY, "the kind is defined, but the cluster does not offer it yet")
            .next("wait, then apply again"))
    }

    /// Asks the server what applying one object would give.
    pub(super) async fn attempt(
        &self,
        cluster: &Cluster<'_>,
        writer: &ClusterWriter<'_>,
        step: &ApplyStep<'_>,
        force: Force,
    ) -> Result<DryRunResult, Failure> {
        let Some(target) = step.target.clone() else { return Ok(DryRunResult::Untried) };
        let live = cluster.find(&target, MaskDetail::Full).await?;
        // First without force, so that whoever would lose fields is known by name.
        let (tried, managers) = match writer.apply(&target, body(step.object), Force::No).await {
            Err(failure) if failure.code == codes::FIELD_CONFLICT && force == Force::Yes => {
                let managers = managers(&failure);
                (writer.apply(&target, body(step.object), Force::Yes).await, managers)
            }
            other => (other, Vec::new()),
        };
        match (tried, live) {
            (Ok(written), Some(live)) => Ok(DryRunResult::Change { target, live, then: written.object, managers }),
            (Ok(written), None) => Ok(DryRunResult::Create { target, then: written.object }),
            (Err(failure), None) if failure.code == Code::NotFound && self.makes_namespace(target.namespace()) => {
                Ok(DryRunResult::Untried)
            }
            (Err(mut failure), _) => {
                failure.message = format!("{}: {}", step.name(), failure.message);
                Err(failure)
            }
        }
    }

    /// Whether the same manifest brings the namespace.
    fn makes_namespace(&self, namespace: Option<&str>) -> bool {
        self.steps.iter().any(|step| is_namespace(step.object) && Some(step.object.name.as_str()) == namespace)
    }
}

impl ApplyStep<'_> {
    /// What it is called in a sentence.
    pub(super) fn name(&self) -> String {
        match &self.target {
            Some(target) => target.to_string(),
            None => format!("{} {}", self.object.kind, self.object.name),
        }
    }

    /// Its line in the answer.
    pub(super) fn line(&self, action: &str) -> AppliedObject {
        let namespace = match &self.target {
            Some(target) => target.namespace(),
            None => self.object.namespace.as_deref(),
        };
        AppliedObject {
            kind: self.object.kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: self.object.name.clone(),
            action: action.to_owned(),
            error: None,
        }
    }

    /// Whether it defines a kind.
    pub(super) fn is_definition(&self) -> bool {
        is_definition(self.object)
    }
}

/// What is sent of an object. The mark of a run is ours to set.
pub(super) fn body(object: &ManifestObject) -> Value {
    let mut value = object.value.clone();
    if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(marker::RUN);
    }
    value
}

/// Where an object goes. `None`: its kind is defined by the same manifest and not yet known.
async fn resolve(
    cluster: &Cluster<'_>,
    all: &[ManifestObject],
    object: &ManifestObject,
    namespace: Option<&str>,
) -> Result<Option<ResourceRef>, Failure> {
    let wanted = object.namespace_or(namespace)?;
    let kind = match cluster.kind(&object.kind_text()).await {
        Ok(kind) => kind,
        Err(failure) if failure.code == codes::UNKNOWN_KIND && defines(all, object) => {
            cluster.namespace(wanted)?;
            return Ok(None);
        }
        Err(failure) if failure.code == codes::UNKNOWN_KIND => {
            return Err(in_another_version(cluster, object, failure).await);
        }
        Err(failure) => return Err(failure),
    };
    object.agrees(kind.plural())?;
    // A namespace argument is for those objects that can have one.
    let wanted = if kind.namespaced() { wanted } else { object.namespace.as_deref() };
    let place = cluster.place(&kind, wanted, Wildcard::Refused).await?;
    place.object(&object.name).map(Some)
}

/// A kind that the cluster offers in another version is not sent in that one: its fields may mean something else.
async fn in_another_version(cluster: &Cluster<'_>, object: &ManifestObject, failure: Failure) -> Failure {
    let Some((group, _)) = object.api_version.split_once('/') else { return failure };
    match cluster.kind(&format!("{}.{group}", object.kind)).await {
        Ok(known) => failure.next(format!("write it as apiVersion: {}", known.api_version())),
        Err(_) => failure,
    }
}

/// Namespaces, then definitions, then everything else in the order of the text.
fn rank(object: &ManifestObject) -> u8 {
    match (is_namespace(object), is_definition(object)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

fn is_namespace(object: &ManifestObject) -> bool {
    object.kind == "Namespace" && object.api_version == "v1"
}

fn is_definition(object: &ManifestObject) -> bool {
    object.kind == "CustomResourceDefinition" && object.api_version.starts_with("apiextensions.k8s.io/")
}

/// Whether the same manifest brings the kind.
fn defines(all: &[ManifestObject], object: &ManifestObject) -> bool {
    let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
    let fits = |other: &&ManifestObject| {
        let spec = &other.value["spec"];
        spec["group"] == group && spec["names"]["kind"] == object.kind.as_str()
    };
    all.iter().filter(|other| is_definition(other)).any(|other| fits(&other))
}

fn managers(failure: &Failure) -> Vec<String> {
    let managers = failure.details.as_ref().and_then(|details| details["managers"].as_array());
    managers.into_iter().flatten().filter_map(|manager| manager.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::manifest::ObjectManifest;

    fn manifest() -> ObjectManifest {
        ObjectManifest::from(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {quartermaster/run: forged, b: c}}\n---\n\
             apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n---\n\
             apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
             spec: {group: example.com, names: {kind: Widget, plural: widgets}}\n---\n\
             apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n"
                .to_owned(),
        )
    }

    #[test]
    fn namespaces_and_definitions_go_first_and_the_rest_as_given() {
        let manifest = manifest();
        let objects = manifest.objects().unwrap();
        let mut steps: Vec<ApplyStep<'_>> = objects.iter().map(|object| ApplyStep { object, target: None }).collect();
        steps.sort_by_key(|step| rank(step.object));
        let order: Vec<&str> = steps.iter().map(|step| step.object.name.as_str()).collect();
        assert_eq!(order, ["n", "widgets.example.com", "a", "w"]);
        let plan = ApplyPlan { steps, namespace: None };
        assert_eq!(plan.kinds(), "4 objects: 1 ConfigMap, 1 CustomResourceDefinition, 1 Namespace, 1 Widget");
        assert!(plan.makes_namespace(Some("n")) && !plan.makes_namespace(Some("other")) && !plan.makes_namespace(None));
        assert!(defines(objects, &objects[1]) && !defines(objects, &objects[0]));
    }

    #[test]
    fn a_forged_mark_is_not_sent() {
        let manifest = manifest();
        let sent = body(&manifest.objects().unwrap()[0]);
        assert_eq!(sent["metadata"]["annotations"], serde_json::json!({ "b": "c" }));
    }
}
