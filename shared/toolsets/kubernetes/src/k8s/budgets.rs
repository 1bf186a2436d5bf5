//! The disruption budgets of many namespaces at once: which one guards a pod, and whether it lets one go now.
//!
//! Not here: what a budget over one workload demands (see [`radius`](super::radius)).

use super::pages;
use crate::client::{Cluster, ListQuery, Wildcard};
use domain::Failure;
use serde_json::Value;

/// One budget.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DisruptionBudget {
    pub(super) namespace: String,
    pub(super) name: String,
    /// How many pods it lets go now.
    pub(super) allowed: u64,
    selector: Value,
}

/// The budgets of all namespaces.
pub(super) async fn everywhere(cluster: &Cluster<'_>) -> Result<Vec<DisruptionBudget>, Failure> {
    let kind = cluster.kind("policy/v1/PodDisruptionBudget").await?;
    let place = cluster.place(&kind, Some("*"), Wildcard::Allowed).await?;
    Ok(pages::all(cluster, &place, ListQuery::default()).await?.iter().map(DisruptionBudget::read).collect())
}

/// The budget that guards pods with these labels in this namespace.
pub(super) fn guarding<'a>(
    budgets: &'a [DisruptionBudget],
    namespace: &str,
    labels: &Value,
) -> Option<&'a DisruptionBudget> {
    let mut found = budgets.iter().filter(|b| b.namespace == namespace && selects(&b.selector, labels));
    // Of several the strictest decides.
    let first = found.next()?;
    Some(found.fold(first, |least, budget| if budget.allowed < least.allowed { budget } else { least }))
}

impl DisruptionBudget {
    fn read(object: &Value) -> DisruptionBudget {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        DisruptionBudget {
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
            allowed: object["status"]["disruptionsAllowed"].as_u64().unwrap_or_default(),
            selector: object["spec"]["selector"].clone(),
        }
    }
}

impl std::fmt::Display for DisruptionBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "budget {} lets {} go now", self.name, self.allowed)
    }
}

/// Whether a selector of an object means these labels. An empty one means all, a missing one none.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let Some(fields) = selector.as_object() else { return false };
    let equal = |(key, value): (&String, &Value)| labels.get(key).is_some_and(|label| label == value);
    let by_label = fields.get("matchLabels").and_then(Value::as_object).is_none_or(|all| all.iter().all(equal));
    let by_term = fields.get("matchExpressions").and_then(Value::as_array).is_none_or(|all| {
        all.iter().all(|term| {
            let label = term["key"].as_str().and_then(|key| labels.get(key));
            let listed = || label.is_some_and(|label| term["values"].as_array().is_some_and(|all| all.contains(label)));
            match term["operator"].as_str() {
                Some("In") => listed(),
                Some("NotIn") => !listed(),
                Some("Exists") => label.is_some(),
                Some("DoesNotExist") => label.is_none(),
                Some(_) | None => false,
            }
        })
    });
    by_label && by_term
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_means_what_it_means_in_a_cluster() {
        let labels = json!({ "app": "web", "tier": "front" });
        for (selector, means) in [
            (json!({}), true),
            (Value::Null, false),
            (json!({ "matchLabels": { "app": "web" } }), true),
            (json!({ "matchLabels": { "app": "web", "tier": "back" } }), false),
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["front"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["front"] }] }), false),
            (json!({ "matchExpressions": [{ "key": "zone", "operator": "NotIn", "values": ["a"] }] }), true),
            (json!({ "matchExpressions": [{ "key": "zone", "operator": "Exists" }] }), false),
            (json!({ "matchExpressions": [{ "key": "zone", "operator": "DoesNotExist" }] }), true),
            (json!({ "matchExpressions": [{ "key": "zone", "operator": "Near" }] }), false),
        ] {
            assert_eq!(selects(&selector, &labels), means, "{selector}");
        }
    }

    #[test]
    fn of_several_budgets_the_strictest_guards() {
        let budget = |namespace: &str, name: &str, allowed: u64| {
            DisruptionBudget::read(
                &json!({ "metadata": { "namespace": namespace, "name": name }, "spec": { "selector": {} },
                "status": { "disruptionsAllowed": allowed } }),
            )
        };
        let all = [budget("shop", "a", 2), budget("shop", "b", 0), budget("else", "c", 0)];
        let found = guarding(&all, "shop", &json!({})).map(ToString::to_string);
        assert_eq!(found.as_deref(), Some("budget b lets 0 go now"));
        assert_eq!(guarding(&all, "none", &json!({})), None);
    }
}
