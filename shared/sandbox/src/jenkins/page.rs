//! Answers for people: error pages and redirects.

use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::exports::Site;
use crate::reply::{self, SandboxReply};

/// An object of the remote API.
pub(super) fn json(value: &Value) -> SandboxReply {
    reply::with_type(StatusCode::OK, "application/json;charset=utf-8", value.to_string())
}

/// An error page with a sentence on it.
pub(super) fn error(status: StatusCode, message: &str) -> SandboxReply {
    let title = format!("Error {} {}", status.as_u16(), status.canonical_reason().unwrap_or_default());
    let text = format!(
        "<html><head><title>{title} - Jenkins</title></head><body><h1>{title}</h1><p>{}</p></body></html>\n",
        escaped(message)
    );
    reply::with_type(status, "text/html;charset=utf-8", text)
}

pub(super) fn not_found() -> SandboxReply {
    error(StatusCode::NOT_FOUND, "Not Found")
}

/// The method is not for this path.
pub(super) fn post_only() -> SandboxReply {
    let message = "This URL requires POST. The URL you're trying to access requires that requests be sent using POST.";
    with(error(StatusCode::METHOD_NOT_ALLOWED, message), header::ALLOW, "POST")
}

/// Somebody else's permission is needed.
pub(super) fn forbidden(user: &str, permission: &str, group: &str) -> SandboxReply {
    let short = permission.rsplit('.').next().unwrap_or(permission);
    let page = error(StatusCode::FORBIDDEN, &format!("{user} is missing the {group}/{short} permission"));
    let page = with(page, HeaderName::from_static("x-you-are-authenticated-as"), user);
    with(page, HeaderName::from_static("x-required-permission"), permission)
}

/// Sends the browser to a path below the root of the server.
pub(super) fn redirect(status: StatusCode, site: &Site, path: &str) -> SandboxReply {
    with(reply::with_type(status, "text/html;charset=utf-8", ""), header::LOCATION, &format!("{}{path}", site.root))
}

pub(super) fn with(mut reply: SandboxReply, name: HeaderName, value: &str) -> SandboxReply {
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().append(name, value);
    }
    reply
}

/// Text inside HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#039;")
}
