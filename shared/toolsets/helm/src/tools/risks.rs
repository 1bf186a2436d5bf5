//! What a chart would do beyond its own workloads, judged object by object before anybody is asked.
//!
//! An object in a namespace the tenant may not use is refused, whatever the cluster's own rules say, and so is one in a
//! protected namespace. What belongs to the whole cluster is refused to a tenant with a list of namespaces, since it is
//! nobody's alone, and is a warning otherwise. What is dangerous about an object is for the risk rules of every write
//! ([`kubernetes::risks`]).

use super::objects::identity;
use super::release::{ReleaseRef, protected};
use domain::Failure;
use kubernetes::client::Cluster;
use serde_json::Value;
use std::collections::BTreeSet;

/// How many names a warning holds.
const NAMES: usize = 8;
/// How many dangers are named one by one.
const DANGERS: usize = 24;

/// What is risky about a set of objects.
#[derive(Debug, Default)]
pub(super) struct Risks {
    wide: BTreeSet<String>,
    elsewhere: BTreeSet<String>,
    unknown: BTreeSet<String>,
    dangers: BTreeSet<String>,
}

/// Judges objects a release would make, change or remove.
pub(super) async fn judge(spot: &ReleaseRef<'_>, objects: &[Value]) -> Result<Risks, Failure> {
    let mut risks = Risks::default();
    for object in objects {
        place(spot, object, &mut risks).await?;
        // The chart's own service accounts are no news; what the rules of every write call disruptive is.
        let dangers = kubernetes::risks::of_change(None, object).into_iter().filter(|risk| risk.rule.disrupts());
        risks.dangers.extend(dangers.map(|risk| format!("{}: {}", identity(object), risk.detail)));
    }
    Ok(risks)
}

/// Refuses objects a release would make or change if the tenant's policy does not let them be.
pub(super) fn within_bounds(spot: &ReleaseRef<'_>, objects: &[Value]) -> Result<(), Failure> {
    objects.iter().try_for_each(|object| {
        spot.cluster.bounds().check(object).map_err(|failure| {
            let message = format!("{}: {}", identity(object), failure.message);
            Failure { message, ..failure }
        })
    })
}

async fn place(spot: &ReleaseRef<'_>, object: &Value, risks: &mut Risks) -> Result<(), Failure> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let own = Some(text("/metadata/namespace")).filter(|namespace| !namespace.is_empty());
    match spot.cluster.kind(&format!("{}/{}", text("/apiVersion"), text("/kind"))).await {
        Ok(kind) if kind.namespaced() => namespaced(spot, own, object, risks),
        Ok(_) => wide(&spot.cluster, object, risks),
        // Its kind may come with the same chart. What it says of its place is judged all the same.
        Err(failure) if matches!(failure.code, kubernetes::codes::UNKNOWN_KIND | kubernetes::codes::AMBIGUOUS_KIND) => {
            risks.unknown.insert(identity(object));
            namespaced(spot, own, object, risks)
        }
        Err(failure) => Err(failure),
    }
}

fn namespaced(spot: &ReleaseRef<'_>, own: Option<&str>, object: &Value, risks: &mut Risks) -> Result<(), Failure> {
    let namespace = own.unwrap_or(&spot.namespace);
    if let Err(failure) = spot.cluster.namespace(Some(namespace)) {
        let message = format!("{}: {}", identity(object), failure.message);
        return Err(Failure { message, ..failure });
    }
    if spot.cluster.protects(namespace) {
        return Err(protected(namespace));
    }
    if namespace != spot.namespace {
        risks.elsewhere.insert(identity(object));
    }
    Ok(())
}

fn wide(cluster: &Cluster<'_>, object: &Value, risks: &mut Risks) -> Result<(), Failure> {
    if cluster.allowed().is_some() {
        let message = format!("{} belongs to the whole cluster, and the tenant to some namespaces", identity(object));
        return Err(Failure::new(kubernetes::codes::NAMESPACE_DENIED, message)
            .next("switch it off in the chart's values, or ask an admin to install it"));
    }
    risks.wide.insert(identity(object));
    Ok(())
}

impl Risks {
    /// What an approver is warned of.
    pub(super) fn warnings(&self) -> Vec<String> {
        let told = |set: &BTreeSet<String>, what: &str| {
            let names: Vec<&str> = set.iter().take(NAMES).map(String::as_str).collect();
            let more = set.len().saturating_sub(NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!set.is_empty()).then(|| format!("{what}: {}{more}.", names.join(", ")))
        };
        let dangers = self.dangers.iter().take(DANGERS).map(|danger| format!("{danger}."));
        let more = self.dangers.len().saturating_sub(DANGERS);
        let more = (more > 0).then(|| format!("{more} more dangers of this kind stand in the manifest."));
        let places = [
            told(&self.wide, "Objects that belong to the whole cluster"),
            told(&self.elsewhere, "Objects outside the release's namespace"),
            told(&self.unknown, "Objects of kinds the cluster does not know yet"),
        ];
        dangers.chain(more).chain(places.into_iter().flatten()).collect()
    }
}
