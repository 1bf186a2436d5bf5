//! Leader election by a Lease: of several operators one acts.
//!
//! Two that act at once would do no harm, since every write is what the resources say and not what was there before. They
//! would only fight over status times and write twice.
//! Whether a lease is over is judged by this process's own clock, from when it last saw the lease change, so that clocks
//! need not agree.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The name of the lease.
pub const LEASE: &str = "quartermaster-operator";

/// One candidate.
#[derive(Debug)]
pub struct Candidate {
    api: Api<Lease>,
    identity: String,
    lasts: Duration,
    /// The lease as it was last seen to change, and when.
    seen: Option<(String, Instant)>,
}

/// What an attempt came to.
#[derive(Debug, PartialEq, Eq)]
enum LeaseAttempt {
    Held,
    OfAnother,
}

impl Candidate {
    /// A candidate for the lease in a namespace.
    pub fn new(client: &Client, namespace: &str, identity: &str, lasts: Duration) -> Candidate {
        let api = Api::namespaced(client.clone(), namespace);
        Candidate { api, identity: identity.to_owned(), lasts, seen: None }
    }

    /// Whether the lease can be read, which is whether the API server knows us.
    pub async fn reach(&self) -> Result<(), kube::Error> {
        self.api.get_opt(LEASE).await.map(drop)
    }

    /// Waits until the lease is ours; `false` if the process is to stop first.
    pub async fn win(&mut self, stopping: &CancellationToken) -> bool {
        loop {
            match self.attempt().await {
                Ok(LeaseAttempt::Held) => return true,
                Ok(LeaseAttempt::OfAnother) => {}
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "the lease cannot be read or written");
                }
            }
            tokio::select! {
                () = stopping.cancelled() => return false,
                () = tokio::time::sleep(self.lasts / 5) => {}
            }
        }
    }

    /// Renews the lease until it is lost: another has it, or it could not be renewed for two thirds of its time.
    pub async fn keep(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.lasts / 5).await;
            match self.attempt().await {
                Ok(LeaseAttempt::Held) => renewed = Instant::now(),
                Ok(LeaseAttempt::OfAnother) => return,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "the lease cannot be renewed");
                }
            }
            if renewed.elapsed() > self.lasts * 2 / 3 {
                return;
            }
        }
    }

    /// Lets the lease go, so that another need not wait for its end.
    pub async fn release(&self) -> Result<(), kube::Error> {
        let Some(mut lease) = self.api.get_opt(LEASE).await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.identity.as_str()) {
            return Ok(());
        }
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        self.api.replace(LEASE, &PostParams::default(), &lease).await.map(drop)
    }

    async fn attempt(&mut self) -> Result<LeaseAttempt, kube::Error> {
        let written = match self.api.get_opt(LEASE).await? {
            None => {
                let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(self.ours(None)) };
                self.api.create(&PostParams::default(), &lease).await
            }
            Some(mut lease) => {
                let is_ours = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref())
                    == Some(self.identity.as_str());
                if !is_ours && !self.is_over(&lease) {
                    return Ok(LeaseAttempt::OfAnother);
                }
                // The version that was read is named, so of two that try one wins.
                lease.spec = Some(self.ours(lease.spec.as_ref()));
                self.api.replace(LEASE, &PostParams::default(), &lease).await
            }
        };
        match written {
            Ok(_) => Ok(LeaseAttempt::Held),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(LeaseAttempt::OfAnother),
            Err(error) => Err(error),
        }
    }

    /// Whether nobody holds the lease, or its holder was silent for its whole time.
    fn is_over(&mut self, lease: &Lease) -> bool {
        let spec = lease.spec.clone().unwrap_or_default();
        if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return true;
        }
        let version = lease.resource_version().unwrap_or_default();
        let since = match &self.seen {
            Some((seen, since)) if *seen == version => *since,
            Some(_) | None => {
                let now = Instant::now();
                self.seen = Some((version, now));
                now
            }
        };
        let lasts = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
        since.elapsed() > Duration::from_secs(lasts)
    }

    fn ours(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let is_kept = before.and_then(|spec| spec.holder_identity.as_deref()) == Some(self.identity.as_str());
        let changes = before.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.lasts.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: before.filter(|_| is_kept).and_then(|spec| spec.acquire_time.clone()).or(Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if is_kept { changes } else { changes.saturating_add(1) }),
            ..LeaseSpec::default()
        }
    }
}
