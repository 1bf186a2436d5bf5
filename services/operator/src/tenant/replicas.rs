//! What the gateway's replicas report, each in the annotation of its own lease.
//!
//! A replica whose lease was not renewed for its whole time is gone, and so is what it reported. That is judged by this
//! process's own clock, from when it last saw the lease change.

use crate::resources::ConfigMistake;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// On the lease of a replica.
pub const REPLICA_LABEL: &str = "quartermaster.dev/replica";
/// The annotation with its report.
pub const REPORT: &str = "quartermaster.dev/report";

/// What a replica reports, by tenant.
pub type ReplicaReport = BTreeMap<String, ReplicaVerdict>;

/// What a replica reports of one tenant.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaVerdict {
    /// The text that it judged last, of those that the resources say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<String>,
    /// The text that it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
    /// What is wrong with the text that it judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ConfigMistake>,
}

/// The report on a lease; an unreadable one is none.
pub fn report_of(lease: &Lease) -> ReplicaReport {
    let text = lease.annotations().get(REPORT);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Since when each lease looks as it does.
#[derive(Debug, Default)]
pub struct ReplicaWatch {
    seen: HashMap<String, (String, Instant)>,
}

impl ReplicaWatch {
    /// The reports of the replicas that are there.
    pub fn live(&mut self, leases: &[Lease], now: Instant) -> Vec<ReplicaReport> {
        self.seen.retain(|name, _| leases.iter().any(|lease| lease.name_any() == *name));
        leases.iter().filter(|lease| self.is_live(lease, now)).map(report_of).collect()
    }

    fn is_live(&mut self, lease: &Lease, now: Instant) -> bool {
        let spec = lease.spec.clone().unwrap_or_default();
        let lasts = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
        let version = format!("{:?}", spec.renew_time);
        let (seen, since) = self.seen.entry(lease.name_any()).or_insert_with(|| (version.clone(), now));
        if *seen != version {
            (*seen, *since) = (version, now);
        }
        now.saturating_duration_since(*since) <= Duration::from_secs(lasts)
    }
}

/// What the replicas say of one tenant, together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplicaSummary {
    /// How many there are.
    pub total: u32,
    /// How many have judged the text that is wanted, and taken it.
    pub accepted: u32,
    /// What is wrong with it, as the first one says that refused it.
    pub errors: Option<Vec<ConfigMistake>>,
    /// The text in force: the one that is wanted if anybody serves it, else the one that most serve.
    pub in_force: Option<String>,
    /// How many serve exactly that.
    pub serving: u32,
}

/// Adds up what replicas report of a tenant whose wanted text has this digest.
pub fn summarize(reports: &[ReplicaReport], tenant: &str, wanted: Option<&str>) -> ReplicaSummary {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let of_tenant: Vec<&ReplicaVerdict> = reports.iter().filter_map(|report| report.get(tenant)).collect();
    let is_about_it = |verdict: &&&ReplicaVerdict| wanted.is_some() && verdict.judged.as_deref() == wanted;
    let judged: Vec<&&ReplicaVerdict> = of_tenant.iter().filter(is_about_it).collect();
    let refused = judged.iter().find(|verdict| !verdict.errors.is_empty());
    let mut served: BTreeMap<&str, u32> = BTreeMap::new();
    for digest in of_tenant.iter().filter_map(|verdict| verdict.in_force.as_deref()) {
        *served.entry(digest).or_default() += 1;
    }
    let most = served.iter().max_by_key(|(_, number)| **number).map(|(digest, _)| *digest);
    let in_force = wanted.filter(|wanted| served.contains_key(wanted)).or(most);
    ReplicaSummary {
        total: count(reports.len()),
        accepted: count(judged.iter().filter(|verdict| verdict.errors.is_empty()).count()),
        errors: refused.map(|verdict| verdict.errors.clone()),
        serving: in_force.and_then(|digest| served.get(digest)).copied().unwrap_or_default(),
        in_force: in_force.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lease(name: &str, renewed: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": { "name": name, "annotations": { REPORT: "{\"shop\":{\"judged\":\"a\",\"inForce\":\"a\"}}" } },
            "spec": { "leaseDurationSeconds": 10, "renewTime": renewed },
        }))
        .unwrap()
    }

    #[test]
    fn a_replica_that_is_silent_for_its_whole_time_is_gone() {
        let (mut watch, now) = (ReplicaWatch::default(), Instant::now());
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        let (first, later) = ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:05.000000Z");
        let both = [lease("a", first), lease("b", first)];
        assert_eq!(watch.live(&both, at(0)).len(), 2);
        assert_eq!(watch.live(&[lease("a", later), lease("b", first)], at(9)).len(), 2);
        assert_eq!(watch.live(&[lease("a", later), lease("b", first)], at(12)).len(), 1);
        assert_eq!(watch.live(&[lease("a", later)], at(30)).len(), 0);
    }

    #[test]
    fn what_is_wanted_counts_before_what_most_serve() {
        let verdict = |judged: &str, in_force: &str| ReplicaVerdict {
            judged: Some(judged.to_owned()),
            in_force: Some(in_force.to_owned()),
            errors: Vec::new(),
        };
        let report = |verdict: ReplicaVerdict| ReplicaReport::from([("shop".to_owned(), verdict)]);
        let reports = [report(verdict("new", "new")), report(verdict("old", "old")), report(verdict("old", "old"))];
        let summary = summarize(&reports, "shop", Some("new"));
        assert_eq!((summary.total, summary.accepted, summary.serving), (3, 1, 1));
        assert_eq!(summary.in_force.as_deref(), Some("new"));
        let summary = summarize(&reports, "shop", Some("newer"));
        assert_eq!((summary.accepted, summary.serving, summary.in_force.as_deref()), (0, 2, Some("old")));
        assert_eq!(summarize(&reports, "other", None).serving, 0);
    }
}
