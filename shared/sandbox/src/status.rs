//! Refusals in the form of the API: a `Status` object with reason, code, details and the server's wording.

use http::StatusCode;
use serde_json::{Value, json};

/// A refused request, ready to be sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiStatus {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Value,
}

/// One field that is wrong.
#[derive(Debug, Clone)]
pub(crate) struct FieldCause {
    reason: &'static str,
    field: String,
    message: String,
}

impl FieldCause {
    /// A field that has to be there and is not.
    pub(crate) fn required(field: impl Into<String>, why: &str) -> FieldCause {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        FieldCause { reason: "FieldValueRequired", field: field.into(), message }
    }

    /// A field whose value cannot stand.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> FieldCause {
        let shown = value.to_string();
        FieldCause {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {shown}: {why}"),
        }
    }

    /// A field that may not be set here.
    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> FieldCause {
        FieldCause { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {why}") }
    }

    /// A value outside the closed list.
    pub(crate) fn not_supported(field: impl Into<String>, value: &str, allowed: &[&str]) -> FieldCause {
        let allowed = allowed.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
        let message = format!("Unsupported value: {value:?}: supported values: {allowed}");
        FieldCause { reason: "FieldValueNotSupported", field: field.into(), message }
    }

    /// A name that stands twice.
    pub(crate) fn duplicate(field: impl Into<String>, value: &str) -> FieldCause {
        FieldCause {
            reason: "FieldValueDuplicate",
            field: field.into(),
            message: format!("Duplicate value: {value:?}"),
        }
    }

    /// A name that is referred to and does not exist.
    pub(crate) fn not_found(field: impl Into<String>, value: &str) -> FieldCause {
        FieldCause { reason: "FieldValueNotFound", field: field.into(), message: format!("Not found: {value:?}") }
    }

    fn line(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}

/// A kind as refusals name it: `deployments.apps` or `pods`, and `Deployment.apps` or `Pod`.
#[derive(Debug, Clone)]
pub(crate) struct KindNames {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
}

impl KindNames {
    fn qualified(&self, what: &str) -> String {
        if self.group.is_empty() { what.to_owned() } else { format!("{what}.{}", self.group) }
    }

    fn resource(&self) -> String {
        self.qualified(&self.plural)
    }
}

impl ApiStatus {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> ApiStatus {
        ApiStatus { code, reason, message: message.into(), details: Value::Null }
    }

    fn about(mut self, of: &KindNames, name: &str) -> ApiStatus {
        self.details = json!({ "kind": of.plural });
        if !name.is_empty() {
            self.details["name"] = json!(name);
        }
        if !of.group.is_empty() {
            self.details["group"] = json!(of.group);
        }
        self
    }

    pub(crate) fn not_found(of: &KindNames, name: &str) -> ApiStatus {
        ApiStatus::new(StatusCode::NOT_FOUND, "NotFound", format!("{} {name:?} not found", of.resource()))
            .about(of, name)
    }

    /// What an unknown path is answered with.
    pub(crate) fn no_such_path() -> ApiStatus {
        let message = "the server could not find the requested resource";
        let mut status = ApiStatus::new(StatusCode::NOT_FOUND, "NotFound", message);
        status.details = json!({});
        status
    }

    pub(crate) fn already_exists(of: &KindNames, name: &str) -> ApiStatus {
        let message = format!("{} {name:?} already exists", of.resource());
        ApiStatus::new(StatusCode::CONFLICT, "AlreadyExists", message).about(of, name)
    }

    pub(crate) fn conflict(of: &KindNames, name: &str, why: &str) -> ApiStatus {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", of.resource());
        ApiStatus::new(StatusCode::CONFLICT, "Conflict", message).about(of, name)
    }

    /// Somebody else wrote first.
    pub(crate) fn moved(of: &KindNames, name: &str) -> ApiStatus {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        ApiStatus::conflict(of, name, why)
    }

    /// Server-side apply met fields of other managers.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Value>) -> ApiStatus {
        let mut status = ApiStatus::new(StatusCode::CONFLICT, "Conflict", message);
        status.details = json!({ "causes": causes });
        status
    }

    pub(crate) fn invalid(of: &KindNames, name: &str, causes: &[FieldCause]) -> ApiStatus {
        let lines: Vec<String> = causes.iter().map(FieldCause::line).collect();
        let joined = if lines.len() == 1 { lines[0].clone() } else { format!("[{}]", lines.join(", ")) };
        let message = format!("{} {name:?} is invalid: {joined}", of.qualified(&of.kind));
        let mut status = ApiStatus::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(of, name);
        status.details["kind"] = json!(of.kind);
        let causes = causes.iter();
        let causes = causes.map(|one| json!({ "reason": one.reason, "message": one.message, "field": one.field }));
        status.details["causes"] = causes.collect();
        status
    }

    /// A JSON Patch that does not apply; the real server does not say which step failed.
    pub(crate) fn unprocessable() -> ApiStatus {
        let message = "the server rejected our request due to an error in our request";
        let mut status = ApiStatus::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        status.details = json!({});
        status
    }

    /// An apply that names no manager.
    pub(crate) fn apply_without_manager() -> ApiStatus {
        let of = KindNames { group: "meta.k8s.io".into(), plural: String::new(), kind: "PatchOptions".into() };
        ApiStatus::invalid(&of, "", &[FieldCause::required("fieldManager", "is required for apply patch")])
    }

    pub(crate) fn forbidden(of: &KindNames, name: &str, why: &str) -> ApiStatus {
        let thing = if name.is_empty() { of.resource() } else { format!("{} {name:?}", of.resource()) };
        let message = format!("{thing} is forbidden: {why}");
        ApiStatus::new(StatusCode::FORBIDDEN, "Forbidden", message).about(of, name)
    }

    /// A path that is no resource, refused to this user.
    pub(crate) fn path_forbidden(user: &str, verb: &str, path: &str) -> ApiStatus {
        let message = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
        let mut status = ApiStatus::new(StatusCode::FORBIDDEN, "Forbidden", message);
        status.details = json!({});
        status
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> ApiStatus {
        ApiStatus::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> ApiStatus {
        ApiStatus::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// A failure the real server does not classify either; its reason stays empty.
    pub(crate) fn unclassified(message: impl Into<String>) -> ApiStatus {
        ApiStatus::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> ApiStatus {
        let message = message.into();
        let mut status = ApiStatus::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        status.details = json!({ "causes": [{ "message": message }] });
        status
    }

    pub(crate) fn expired(message: impl Into<String>) -> ApiStatus {
        ApiStatus::new(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn method_not_supported(of: &KindNames, action: &str) -> ApiStatus {
        let message = format!("{action} is not supported on resources of kind {:?}", of.resource());
        ApiStatus::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(of, "")
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> ApiStatus {
        ApiStatus::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(crate) fn not_acceptable() -> ApiStatus {
        let message = "only the following media types are accepted: application/json";
        ApiStatus::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub(crate) fn too_large() -> ApiStatus {
        ApiStatus::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            "Request entity too large: limit is 3145728",
        )
    }

    /// An eviction that a disruption budget does not allow now.
    pub(crate) fn budget_exceeded(why: &str) -> ApiStatus {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut status = ApiStatus::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        status.details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": why }] });
        status
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> ApiStatus {
        ApiStatus::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// Adds one machine-readable cause without a field.
    pub(crate) fn because(mut self, reason: &str, message: &str) -> ApiStatus {
        self.details["causes"] = json!([{ "reason": reason, "message": message }]);
        self
    }

    /// The object on the wire.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            body["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            body["details"] = self.details.clone();
        }
        body
    }
}
