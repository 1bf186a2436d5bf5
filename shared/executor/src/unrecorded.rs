//! Reads that ran while the audit log could not be written: counted, and noted as one entry once it can be.
//!
//! One task for each tenant that has some tries to write the entry until the store takes it. What a process has not noted
//! when it is killed is in its log and its metrics alone.
//!
//! Not here: which reads may run so (see `open_call`), and what they are judged by (see `policy`).

use crate::executor::Executor;
use domain::{Moment, Principal, Scopes, Tenant};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::{Actor, ActorKind, AuditEntry, Phase, UnrecordedReads};
use telemetry::metrics;

/// How often the store is asked to take the entry.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The reads of each tenant that are not noted yet. A tenant stands here as long as somebody works on its entry.
#[derive(Default)]
pub(crate) struct UnrecordedTally(Mutex<BTreeMap<Tenant, Option<UnrecordedReads>>>);

impl UnrecordedTally {
    /// Adds reads; tells whether somebody has to begin to work on the entry.
    fn add(&self, tenant: &Tenant, more: UnrecordedReads) -> bool {
        let mut tenants = self.tenants();
        let begins = !tenants.contains_key(tenant);
        let tally = tenants.entry(tenant.clone()).or_default();
        *tally = Some(match *tally {
            None => more,
            Some(known) => UnrecordedReads {
                reads: known.reads.saturating_add(more.reads),
                from: known.from.min(more.from),
                to: known.to.max(more.to),
            },
        });
        begins
    }

    /// Takes what is to be noted; `None` if nothing is, and then nobody works on it any more.
    fn take(&self, tenant: &Tenant) -> Option<UnrecordedReads> {
        let mut tenants = self.tenants();
        let reads = tenants.get_mut(tenant).and_then(Option::take);
        if reads.is_none() {
            tenants.remove(tenant);
        }
        reads
    }

    fn tenants(&self) -> MutexGuard<'_, BTreeMap<Tenant, Option<UnrecordedReads>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor {
    /// Counts a read that runs without an entry, which began then.
    pub(crate) fn count_unrecorded(&self, tenant: &Tenant, at: Moment) {
        metrics::AUDIT_UNRECORDED_READS.add([metrics::tenant_label(tenant.as_str())], 1);
        if self.unrecorded.add(tenant, UnrecordedReads { reads: 1, from: at, to: at }) {
            tracing::warn!(quartermaster.tenant = %tenant, "reads run unrecorded: the store takes no audit entries");
            let (executor, tenant) = (self.clone(), tenant.clone());
            self.tasks.spawn_lasting("unrecorded reads", async move { executor.note_unrecorded(&tenant).await });
        }
    }

    /// Writes the entry as soon as the store takes it. If only the answer of the store got lost, the next entry has the same
    /// reads once more: too many rather than too few.
    async fn note_unrecorded(&self, tenant: &Tenant) {
        let audit = self.store.of(tenant).audit();
        loop {
            tokio::select! {
                () = tokio::time::sleep(AGAIN_AFTER) => {}
                () = self.tasks.stopping().cancelled() => {}
            }
            let last = self.tasks.stopping().is_cancelled();
            let Some(noted) = self.unrecorded.take(tenant) else { return };
            let UnrecordedReads { reads, from, to } = noted;
            let entry = AuditEntry {
                actor: Some(self.service()),
                unrecorded: Some(noted),
                ..AuditEntry::new(Phase::Unrecorded)
            };
            match audit.note(&entry).await {
                Ok(_) => {
                    tracing::warn!(quartermaster.tenant = %tenant, reads, %from, %to, "unrecorded reads were noted");
                }
                Err(error) if last => {
                    tracing::error!(quartermaster.tenant = %tenant, reads, %from, %to, %error, "unrecorded reads could not be noted before the end");
                    return;
                }
                Err(_) => {
                    self.unrecorded.add(tenant, noted);
                }
            }
        }
    }

    /// This service, as the audit log names it.
    fn service(&self) -> Actor {
        let principal = Principal::new("quartermaster", self.store.replica());
        Actor { principal, kind: ActorKind::Service, scopes: Scopes::default(), token: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_add_up_until_they_are_taken_and_one_worker_is_enough() {
        let (tally, acme) = (UnrecordedTally::default(), Tenant::parse("acme").unwrap());
        let read = |at| UnrecordedReads { reads: 1, from: Moment::from_millis(at), to: Moment::from_millis(at) };
        assert!(tally.add(&acme, read(20)), "somebody begins");
        assert!(!tally.add(&acme, read(10)) && !tally.add(&acme, read(30)), "one is enough");
        let all = UnrecordedReads { reads: 3, from: Moment::from_millis(10), to: Moment::from_millis(30) };
        assert_eq!(tally.take(&acme), Some(all));
        assert!(!tally.add(&acme, read(40)), "whoever took them is still at work");
        assert!(!tally.add(&acme, all), "and may give them back");
        let reads = UnrecordedReads { reads: 4, to: Moment::from_millis(40), ..all };
        assert_eq!((tally.take(&acme), tally.take(&acme)), (Some(reads), None));
        assert!(tally.add(&acme, read(50)), "it has ended, so somebody begins again");
    }
}
