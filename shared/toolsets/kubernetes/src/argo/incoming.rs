//! What an action of Argo makes run, judged like any other write: the tenant's bounds, then the risk rules.
//!
//! Most actions write one field that says nothing of what runs then: the controller takes that from pod templates and
//! analysis templates. So those are read where they stand. What cannot be read is a warning, so that nobody approves it
//! unknowingly.

use crate::client::{BroughtTexts, Cluster, MaskDetail, Wildcard};
use crate::codes;
use crate::k8s::diff_text::whole;
use crate::k8s::get::visible;
use crate::k8s::preview::{ObjectChange, risky, version};
use crate::risks;
use catalog::PreviewBuilder;
use domain::{Code, Failure};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How many analysis templates are read for one preview.
const MOST_TEMPLATES: usize = 20;

/// An analysis template by its name. The ones of the whole cluster have names of their own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TemplateName {
    name: String,
    is_wide: bool,
}

/// What was read; nothing where it is not there or may not be seen, or the cluster names something that cannot be.
pub(super) fn readable<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match visible(found) {
        Err(failure) if matches!(failure.code, Code::InvalidArgument | codes::UNSUPPORTED_WORKLOAD) => Ok(None),
        found => found,
    }
}

/// Refuses what is beyond the tenant's bounds, and warns of what `after` brings.
pub(super) fn judge(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    what: &str,
    (before, after): (&Value, &Value),
) -> Result<(), Failure> {
    cluster.bounds().check(after).map_err(|failure| {
        let message = format!("{what}: {}", failure.message);
        Failure { message, ..failure }
    })?;
    risky(preview, what, Some(before), after);
    Ok(())
}

/// An object whose pods all start by an action: judged, and shown whole. One without pods, such as an analysis that asks a
/// metrics server, runs nothing.
pub(super) fn starts(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    what: &str,
    object: &Value,
) -> Result<(), Failure> {
    let part = |key: &str| json!({ key: object[key] });
    judge(
        preview,
        cluster,
        what,
        (&part("metadata"), &json!({ "metadata": object["metadata"], "spec": object["spec"] })),
    )?;
    if !risks::images(object).is_empty() {
        let brought = BroughtTexts::default();
        let pair = ObjectChange { cluster, brought: &brought }.pair(preview, what, None, &part("spec"));
        preview.block(format!("{what} runs"), whole(None, pair.then.as_ref()).unwrap_or_default());
    }
    Ok(())
}

/// The analysis templates that a part of an object refers to, and those that these refer to. Gives what was judged.
pub(super) async fn analyses(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    namespace: Option<&str>,
    part: &Value,
) -> Result<Value, Failure> {
    let mut waiting = BTreeSet::new();
    references(part, &mut waiting);
    let (mut seen, mut judged) = (BTreeSet::new(), Vec::new());
    while let Some(template) = waiting.pop_first() {
        if seen.len() == MOST_TEMPLATES {
            preview.warn("Analyses of more templates would run than are looked at here: this service does not see all that would run.");
            break;
        }
        let what = format!("analysis template {}", redact::message(&template.name));
        match readable(read(cluster, namespace, &template).await)? {
            Some(object) => {
                starts(preview, cluster, &what, &object)?;
                judged.push(json!([template.name, template.is_wide, object["metadata"]["uid"], version(&object)]));
                let mut further = BTreeSet::new();
                references(&object["spec"], &mut further);
                waiting.extend(further.into_iter().filter(|one| !seen.contains(one) && *one != template));
            }
            None => {
                preview.warn(format!("The {what} cannot be read: this service does not see what it would run."));
            }
        }
        seen.insert(template);
    }
    Ok(Value::Array(judged))
}

/// Every analysis template that is named in it.
fn references(part: &Value, found: &mut BTreeSet<TemplateName>) {
    match part {
        Value::Object(fields) => {
            if let Some(name) = fields.get("templateName").and_then(Value::as_str) {
                let is_wide = fields.get("clusterScope").and_then(Value::as_bool).unwrap_or(false);
                found.insert(TemplateName { name: name.to_owned(), is_wide });
            }
            fields.values().for_each(|field| references(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn read(cluster: &Cluster<'_>, namespace: Option<&str>, template: &TemplateName) -> Result<Value, Failure> {
    let (kind, namespace) = match template.is_wide {
        true => ("argoproj.io/v1alpha1/ClusterAnalysisTemplate", None),
        false => ("argoproj.io/v1alpha1/AnalysisTemplate", namespace),
    };
    let place = cluster.place(&cluster.kind(kind).await?, namespace, Wildcard::Refused).await?;
    cluster.get(&place.object(&template.name)?, MaskDetail::Full).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_found_wherever_a_strategy_names_them() {
        let strategy = json!({ "canary": {
            "analysis": { "templates": [{ "templateName": "background" }] },
            "steps": [
                { "setWeight": 5 },
                { "analysis": { "templates": [{ "templateName": "step" }, { "templateName": "wide", "clusterScope": true }] } },
                { "experiment": { "templates": [{ "name": "a", "specRef": "canary" }], "analyses": [{ "name": "b", "templateName": "experiment" }] } },
            ],
        } });
        let mut found = BTreeSet::new();
        references(&strategy, &mut found);
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.is_wide)).collect();
        assert_eq!(found, [("background", false), ("experiment", false), ("step", false), ("wide", true)]);
    }
}
