//! The four ways to say a change: merge, strategic merge, JSON Patch and server-side apply.

pub(crate) mod apply;
pub(crate) mod json_patch;
pub(crate) mod merge;
pub(crate) mod strategic;

use serde_json::Value;

use crate::schema::{SchemaNode, Types};
use crate::status::ApiStatus;

/// How the body of a PATCH is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchBodyForm {
    Merge,
    Strategic,
    Json,
    Apply,
}

impl PatchBodyForm {
    /// The form that a content type names.
    pub(crate) fn of_content_type(content_type: &str) -> Result<PatchBodyForm, ApiStatus> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Ok(PatchBodyForm::Merge),
            "application/strategic-merge-patch+json" => Ok(PatchBodyForm::Strategic),
            "application/json-patch+json" => Ok(PatchBodyForm::Json),
            "application/apply-patch+yaml" => Ok(PatchBodyForm::Apply),
            _ => Err(ApiStatus::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, \
                 application/strategic-merge-patch+json",
            )),
        }
    }
}

/// Applies a patch other than server-side apply to a copy of the live object.
pub(crate) fn patched(
    form: PatchBodyForm,
    live: &Value,
    patch: &Value,
    types: &Types,
    place: &SchemaNode,
) -> Result<Value, ApiStatus> {
    let mut object = live.clone();
    match form {
        PatchBodyForm::Merge => merge::apply(&mut object, patch),
        PatchBodyForm::Strategic => strategic::apply(&mut object, patch, types, place)?,
        PatchBodyForm::Json => json_patch::apply(&mut object, patch)?,
        PatchBodyForm::Apply => return Err(ApiStatus::internal("server-side apply does not come this way")),
    }
    Ok(object)
}
