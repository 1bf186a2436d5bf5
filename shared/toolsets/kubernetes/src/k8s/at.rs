//! From the words of a call to the thing they mean: cluster, kind, place, and near names where nothing is found.

use super::grammar::{KindText, Label, Namespaces, ObjectName};
use super::kind_name::agree;
use crate::client::{Cluster, Clusters, Kind, KindScope, ListQuery, MaskDetail, ResourceRef, Wildcard};
use domain::outcome::near;
use domain::{Code, Failure};
use policy::Permit;
use serde_json::Value;

/// How many names are looked through for one that was meant.
const NAMES: u32 = 500;

/// The cluster a call means.
pub fn cluster<'p>(clusters: &Clusters, permit: &'p Permit, name: Option<&Label>) -> Result<Cluster<'p>, Failure> {
    clusters.of(permit, name.map(Label::as_str))
}

/// The kind a call means, provided that it is the one that was judged.
pub async fn kind(cluster: &Cluster<'_>, permit: &Permit, text: &KindText) -> Result<Kind, Failure> {
    let kind = cluster.kind(text.as_str()).await?;
    agree(permit, kind.plural())?;
    Ok(kind)
}

/// Where objects of a kind are looked for; `*` is understood.
pub async fn places(cluster: &Cluster<'_>, kind: &Kind, namespace: Option<&Namespaces>) -> Result<KindScope, Failure> {
    cluster.place(kind, namespace.map(Namespaces::as_str), Wildcard::Allowed).await
}

/// The one namespace where objects of a kind are looked for.
pub async fn place(cluster: &Cluster<'_>, kind: &Kind, namespace: Option<&Label>) -> Result<KindScope, Failure> {
    cluster.place(kind, namespace.map(Label::as_str), Wildcard::Refused).await
}

/// One object of a place.
pub fn target(place: &KindScope, name: &ObjectName) -> Result<ResourceRef, Failure> {
    place.object(name.fits(place.kind().group())?)
}

/// An object, or a failure that names near ones among those the caller may list.
pub async fn get(
    cluster: &Cluster<'_>,
    place: &KindScope,
    target: &ResourceRef,
    detail: MaskDetail,
) -> Result<Value, Failure> {
    match cluster.get(target, detail).await {
        Err(failure) if failure.code == Code::NotFound => Err(not_found(cluster, place, target).await),
        other => other,
    }
}

/// The failure for an object that is not there.
pub async fn not_found(cluster: &Cluster<'_>, place: &KindScope, target: &ResourceRef) -> Failure {
    let kind = place.kind().kind();
    let where_ = target.namespace().map(|ns| format!(" in {ns}")).unwrap_or_default();
    let names = names(cluster, place).await;
    let meant = near(target.name(), names.iter().map(String::as_str));
    let next = match meant.is_empty() {
        true => format!("list what is there with k8s_get kind={kind}"),
        false => format!("use did_you_mean, or list with k8s_get kind={kind}"),
    };
    Failure::new(Code::NotFound, format!("{kind} {} not found{where_}", target.name()))
        .next(next)
        .did_you_mean(meant)
        .details(serde_json::json!({ "kind": kind, "namespace": target.namespace() }))
}

/// Refuses an empty list if it is empty because its namespace does not exist, and names near namespaces.
///
/// The cluster answers such a list like any other empty one, so the namespace is looked up, but only for empty lists.
pub async fn explain_empty(cluster: &Cluster<'_>, place: &KindScope) -> Result<(), Failure> {
    let Some(namespace) = place.namespace() else { return Ok(()) };
    if !cluster.lacks_namespace(place).await {
        return Ok(());
    }
    let names = cluster.visible_namespaces().await;
    let meant = near(namespace, names.iter().map(String::as_str));
    let next = match meant.is_empty() {
        true => "list the namespaces with k8s_get kind=Namespace",
        false => "use did_you_mean, or list the namespaces with k8s_get kind=Namespace",
    };
    Err(Failure::new(Code::NotFound, format!("there is no namespace {namespace}"))
        .next(next)
        .did_you_mean(meant)
        .details(serde_json::json!({ "kind": "Namespace", "namespace": namespace })))
}

/// The first names of a place. Whoever may not list is told none.
async fn names(cluster: &Cluster<'_>, place: &KindScope) -> Vec<String> {
    let query = ListQuery { limit: NAMES, ..ListQuery::default() };
    let page = cluster.list(place, &query, MaskDetail::Clean).await.unwrap_or_default();
    page.items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

/// The selector of a workload as text, to list what it selects. Nothing if it selects nothing.
pub fn selector_text(selector: &Value) -> Option<String> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut terms: Vec<String> = labels.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str()?;
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        terms.push(match expression["operator"].as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!terms.is_empty()).then(|| terms.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_is_written_out() {
        let selector = json!({ "matchLabels": { "app": "web" }, "matchExpressions": [
            { "key": "tier", "operator": "In", "values": ["a", "b"] }, { "key": "x", "operator": "DoesNotExist" } ] });
        assert_eq!(selector_text(&selector).as_deref(), Some("app=web,tier in (a,b),!x"));
        assert_eq!(selector_text(&json!({})), None, "an empty selector would select everything");
        assert_eq!(selector_text(&json!({ "matchExpressions": [{ "key": "a", "operator": "Gt" }] })), None);
    }
}
