//! Eviction: deleting a pod if no disruption budget forbids it.

use http::StatusCode;
use serde_json::{Value, json};

use crate::controllers::budgets;
use crate::json;
use crate::kinds::ApiKind;
use crate::query::UrlQuery;
use crate::reply::{self, SandboxReply};
use crate::resources::{self, ResourceRequest};
use crate::selector::Labels;
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

pub(super) fn answer(
    world: &mut ClusterWorld,
    kind: &ApiKind,
    ask: &ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    if ask.method != http::Method::POST {
        return Err(ApiStatus::method_not_supported(&kind.named(), &ask.method.as_str().to_lowercase()));
    }
    let body: Value = serde_json::from_slice(&ask.body).map_err(|why| ApiStatus::bad_request(why.to_string()))?;
    let (namespace, name) = (ask.target.namespace.as_str(), ask.target.name.as_str());
    let said = json::name(&body);
    if !said.is_empty() && said != name {
        return Err(ApiStatus::bad_request("name in URL does not match name in Eviction object"));
    }
    let pod = world.get(kind, namespace, name)?;
    let options = body.get("deleteOptions").cloned().unwrap_or(Value::Null);
    let query = if ask.query.get("dryRun").is_some() { ask.query.clone() } else { UrlQuery::default() };
    let how = resources::deletion(&options, &query)?;
    // Pods that do not run yet, or no longer, are nobody's loss.
    let idle = matches!(json::text(&pod, "/status/phase"), Some("Pending" | "Succeeded" | "Failed"));
    if !idle && !json::is_going(&pod) {
        check_budgets(world, &pod)?;
    }
    world.delete(kind, (namespace, name), &how)?;
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(reply::object(StatusCode::CREATED, &status))
}

fn check_budgets(world: &ClusterWorld, pod: &Value) -> Result<(), ApiStatus> {
    let budgets = world.all("poddisruptionbudgets.policy", json::namespace(pod));
    let selects =
        |budget: &Value| Labels::of_object(budget.pointer("/spec/selector").unwrap_or(&Value::Null)).matches(pod);
    let mine: Vec<_> = budgets.iter().filter(|budget| selects(budget)).collect();
    if mine.len() > 1 {
        return Err(ApiStatus::internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    let Some(budget) = mine.first() else { return Ok(()) };
    let counts = budgets::assess(world, budget);
    let ready =
        json::list(pod, "/status/conditions").iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    let (healthy, wanted) = (json::int(&counts, "/currentHealthy", 0), json::int(&counts, "/desiredHealthy", 0));
    // A pod that is not healthy may go as long as the healthy ones suffice.
    if !ready && healthy >= wanted && wanted > 0 {
        return Ok(());
    }
    if json::int(&counts, "/disruptionsAllowed", 0) > 0 {
        return Ok(());
    }
    let name = json::name(budget);
    let why = format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently");
    Err(ApiStatus::budget_exceeded(&why))
}
