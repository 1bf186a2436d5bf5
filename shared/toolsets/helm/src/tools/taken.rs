//! Which objects of a chart are in the cluster already and belong to somebody else.
//!
//! helm refuses to take them over, and would say so in a rehearsal with the cluster's help. Nobody asks it for one before
//! an approval, so they are looked for here.

use super::objects::identity;
use super::release::ReleaseRef;
use kubernetes::client::{MaskDetail, Wildcard};
use serde_json::Value;

/// How many objects are looked for.
const MOST: usize = 32;

/// Those of the objects that are there and are not of this release. What cannot be looked at is left to helm.
pub(super) async fn taken(spot: &ReleaseRef<'_>, objects: impl Iterator<Item = &Value>) -> Vec<String> {
    let mut found = Vec::new();
    for object in objects.take(MOST) {
        if let Some(live) = standing(spot, object).await
            && !is_ours(spot, &live)
        {
            found.push(identity(object));
        }
    }
    found
}

async fn standing(spot: &ReleaseRef<'_>, object: &Value) -> Option<Value> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = spot.cluster.kind(&format!("{}/{}", text("/apiVersion")?, text("/kind")?)).await.ok()?;
    let namespace = kind.namespaced().then(|| text("/metadata/namespace").unwrap_or(&spot.namespace));
    let place = spot.cluster.place(&kind, namespace, Wildcard::Refused).await.ok()?;
    spot.cluster.find(&place.object(text("/metadata/name")?).ok()?, MaskDetail::Clean).await.ok()?
}

/// As helm knows what it made.
fn is_ours(spot: &ReleaseRef<'_>, live: &Value) -> bool {
    let annotation = |name: &str| live["metadata"]["annotations"][name].as_str();
    annotation("meta.helm.sh/release-name") == Some(&spot.name)
        && annotation("meta.helm.sh/release-namespace") == Some(&spot.namespace)
}
