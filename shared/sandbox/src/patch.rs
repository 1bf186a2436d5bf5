//! The four ways to say a change: merge, strategic merge, JSON Patch and server-side apply.

pub(crate) mod apply;
pub(crate) mod json_patch;
pub(crate) mod merge;
pub(crate) mod strategic;

use serde_json::Value;

use crate::schema::{Place, Types};
use crate::status::Status;

/// How the body of a PATCH is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Merge,
    Strategic,
    Json,
    Apply,
}

impl Form {
    /// The form that a content type names.
    pub(crate) fn of_content_type(content_type: &str) -> Result<Form, Status> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Ok(Form::Merge),
            "application/strategic-merge-patch+json" => Ok(Form::Strategic),
            "application/json-patch+json" => Ok(Form::Json),
            "application/apply-patch+yaml" => Ok(Form::Apply),
            _ => Err(Status::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, \
                 application/strategic-merge-patch+json",
            )),
        }
    }
}

/// Applies a patch other than server-side apply to a copy of the live object.
pub(crate) fn patched(form: Form, live: &Value, patch: &Value, types: &Types, place: &Place) -> Result<Value, Status> {
    let mut object = live.clone();
    match form {
        Form::Merge => merge::apply(&mut object, patch),
        Form::Strategic => strategic::apply(&mut object, patch, types, place)?,
        Form::Json => json_patch::apply(&mut object, patch)?,
        Form::Apply => return Err(Status::internal("server-side apply does not come this way")),
    }
    Ok(object)
}
