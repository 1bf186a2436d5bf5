//! The arguments of a call as people are shown them: as they are, but for the contents of Secrets, which are hidden by
//! their kind. Nothing is hidden for its looks, because whoever decides signs for the exact words.

use super::manifest::ObjectManifest;
use super::preview::tell_contents;
use crate::client::{Cluster, HiddenText, hide_all};
use catalog::PreviewBuilder;
use serde_json::Value;
pub(super) use target::shown_arguments::shown;

/// A manifest without the contents of its Secrets, and what is told about them; `None` if it holds none.
pub(super) fn manifest(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    manifest: &ObjectManifest,
) -> Option<String> {
    let objects = manifest.objects().ok()?;
    let mut any = false;
    let mut texts = Vec::new();
    for object in objects {
        let mut shown = object.value.clone();
        let hidden = cluster.hide_contents(&object.kind, &mut shown);
        any |= !hidden.is_empty();
        let name = match &object.namespace {
            Some(namespace) => format!("{} {namespace}/{}", object.kind, object.name),
            None => format!("{} {}", object.kind, object.name),
        };
        tell_contents(preview, &name, &hidden);
        texts.push(serde_json::to_string_pretty(&shown).unwrap_or_default());
    }
    any.then(|| texts.join("\n---\n"))
}

/// A patch without what it puts into a Secret; `None` if it puts nothing there.
pub(super) fn patch(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    (kind, what): (&str, &str),
    text: &str,
) -> Option<String> {
    let mut shown: Value = serde_json::from_str(text).ok()?;
    let hidden = match shown.as_array_mut() {
        Some(operations) if cluster.is_secret_kind(kind) => {
            let mut hidden = Vec::new();
            operations.iter_mut().for_each(|operation| hide_operation(operation, &mut hidden));
            hidden
        }
        Some(_) => Vec::new(),
        None => cluster.hide_contents(kind, &mut shown),
    };
    tell_contents(preview, what, &hidden);
    (!hidden.is_empty()).then(|| shown.to_string())
}

/// One step of a JSON Patch of a Secret.
fn hide_operation(operation: &mut Value, hidden: &mut Vec<HiddenText>) {
    let path = operation["path"].as_str().unwrap_or_default().replace("~1", "/").replace("~0", "~");
    let within = |field: &str| path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if (within("/data") || within("/stringData"))
        && let Some(value) = operation.get_mut("value")
    {
        hide_all(value, &mut path.clone(), hidden);
    }
}
