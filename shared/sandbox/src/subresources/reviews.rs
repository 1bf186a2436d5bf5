//! Reviews: questions about permissions, answered from the table.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::access::AccessRequest;
use crate::json;
use crate::reply::{self, SandboxReply};
use crate::resources::ResourceRequest;
use crate::status::ApiStatus;

/// The answer, if this is a review at all.
pub(crate) fn answer(ask: &ResourceRequest) -> Result<Option<SandboxReply>, ApiStatus> {
    let target = &ask.target;
    if target.group != "authorization.k8s.io" || target.version != "v1" || ask.method != Method::POST {
        return Ok(None);
    }
    let mut review: Value = serde_json::from_slice(&ask.body).map_err(|why| ApiStatus::bad_request(why.to_string()))?;
    let status = match target.plural.as_str() {
        "selfsubjectaccessreviews" => access(ask, &review),
        "selfsubjectrulesreviews" => rules(ask),
        _ => return Ok(None),
    };
    json::set(&mut review, "/status", status);
    json::set_default(&mut review, "/apiVersion", "authorization.k8s.io/v1");
    let kind =
        if target.plural == "selfsubjectaccessreviews" { "SelfSubjectAccessReview" } else { "SelfSubjectRulesReview" };
    json::set_default(&mut review, "/kind", kind);
    json::set_default(&mut review, "/metadata/creationTimestamp", Value::Null);
    Ok(Some(reply::object(StatusCode::CREATED, &review)))
}

fn access(ask: &ResourceRequest, review: &Value) -> Value {
    let text = |at: &str| json::text_or_empty(review, &format!("/spec/resourceAttributes/{at}")).to_owned();
    let (verb, group, resource, subresource) = (text("verb"), text("group"), text("resource"), text("subresource"));
    let wish = AccessRequest { verb: &verb, group: &group, resource: &resource, subresource: &subresource };
    if ask.user.may(&wish) {
        return json!({ "allowed": true, "reason": format!("RBAC: allowed by the sandbox's rule for {:?}", ask.user.name) });
    }
    json!({ "allowed": false })
}

fn rules(ask: &ResourceRequest) -> Value {
    let rules = ask
        .user
        .rules()
        .map(|rule| json!({ "verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources }));
    let paths = json!([{ "verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"] }]);
    json!({ "resourceRules": rules.collect::<Vec<_>>(), "nonResourceRules": paths, "incomplete": false })
}
