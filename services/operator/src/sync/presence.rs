//! The lease of a replica: that it is there, and what it reports.

use super::run::SyncSettings;
use crate::names::FIELD_MANAGER;
use crate::tenant::replicas::{REPLICA_LABEL, REPORT, ReplicaReport};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use std::time::{Duration, Instant};

/// The most that an annotation holds of a report; the API server takes 256 KiB of them.
const MOST_BYTES: usize = 200 << 10;

/// One replica's lease.
#[derive(Debug)]
pub struct ReplicaLease {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The pod that takes the lease along when it goes.
    pod_uid: Option<String>,
    lasts: Duration,
    written: Option<(String, Instant)>,
}

impl ReplicaLease {
    /// The lease of the replica that these settings are about.
    pub fn new(client: &Client, settings: &SyncSettings) -> ReplicaLease {
        ReplicaLease {
            api: Api::namespaced(client.clone(), &settings.namespace),
            name: format!("quartermaster-sync-{}", settings.identity),
            identity: settings.identity.clone(),
            pod_uid: settings.pod_uid.clone(),
            lasts: settings.lease,
            written: None,
        }
    }

    /// Writes the lease if the report is another one, or a third of its time is over.
    pub async fn renew(&mut self, report: &ReplicaReport) -> Result<(), kube::Error> {
        let text = fitting(report);
        let is_fresh = |(before, at): &(String, Instant)| *before == text && at.elapsed() < self.lasts / 3;
        if self.written.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        let pod = |uid: &String| json!([{ "apiVersion": "v1", "kind": "Pod", "name": self.identity, "uid": uid }]);
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name, "labels": { REPLICA_LABEL: "gateway" }, "annotations": { REPORT: text } },
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self.lasts.as_secs(),
                "renewTime": format!("{:.6}", Timestamp::now()),
            },
        });
        if let Some(owner) = self.pod_uid.as_ref().map(pod) {
            lease["metadata"]["ownerReferences"] = owner;
        }
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.api.patch(&self.name, &params, &Patch::Apply(&lease)).await?;
        self.written = Some((text, Instant::now()));
        Ok(())
    }

    /// Removes the lease, so that nobody waits for its end.
    pub async fn remove(&self) -> Result<(), kube::Error> {
        match self.api.delete(&self.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(drop),
        }
    }
}

/// As much of a report as fits: first what is wrong goes, then whole tenants, and the log says so.
fn fitting(report: &ReplicaReport) -> String {
    let text = |report: &ReplicaReport| serde_json::to_string(report).unwrap_or_default();
    let whole = text(report);
    if whole.len() <= MOST_BYTES {
        return whole;
    }
    tracing::warn!(tenants = report.len(), "the report of this replica does not fit into its lease; it is cut");
    let mut short = report.clone();
    for verdict in short.values_mut() {
        verdict.errors.truncate(1);
    }
    while text(&short).len() > MOST_BYTES {
        let keep = short.len() / 2;
        short = short.into_iter().take(keep).collect();
    }
    text(&short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tenant::replicas::ReplicaVerdict;

    #[test]
    fn a_report_fits_into_its_lease() {
        let verdict =
            ReplicaVerdict { judged: Some("x".repeat(71)), in_force: Some("y".repeat(71)), errors: Vec::new() };
        let report = |count: usize| -> ReplicaReport {
            (0..count).map(|number| (format!("tenant-{number}"), verdict.clone())).collect()
        };
        assert_eq!(serde_json::from_str::<ReplicaReport>(&fitting(&report(500))).unwrap().len(), 500);
        let cut = fitting(&report(50_000));
        assert!(cut.len() <= MOST_BYTES && serde_json::from_str::<ReplicaReport>(&cut).unwrap().len() > 500);
    }
}
