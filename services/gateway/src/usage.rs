//! Writes down what callers use: every few seconds, and once more when the process leaves.
//!
//! A kill loses what was noted since the last time. A tenant that is idle is not written.

use crate::app::Gateway;
use domain::Tenant;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::{StoreError, UsageBatch, UsageDate};
use tokio::sync::Mutex;

/// How often it is written down.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// What is on its way into the store.
#[derive(Default)]
pub struct UsageWriter {
    /// The last batch of each tenant, for as long as nobody knows whether it was added: it is sent again under its number.
    unanswered: Mutex<HashMap<Tenant, UsageBatch>>,
    next: std::sync::atomic::AtomicU64,
}

impl UsageWriter {
    /// Writes down everything that was noted. What cannot be written stays for the next time.
    pub async fn write(&self, gateway: &Gateway) {
        let mut unanswered = self.unanswered.lock().await;
        let mut noted = gateway.executor.usage().take();
        if noted.is_empty() && unanswered.is_empty() {
            return;
        }
        let written = self.write_each(gateway, &mut unanswered, &mut noted).await;
        noted.iter().for_each(|(tenant, usage)| gateway.executor.usage().put_back(tenant, usage));
        if let Err(error) = written {
            tracing::debug!(%error, "usage stays in memory until the store answers");
        }
    }

    async fn write_each(
        &self,
        gateway: &Gateway,
        unanswered: &mut HashMap<Tenant, UsageBatch>,
        noted: &mut HashMap<Tenant, domain::usage::UsageDay>,
    ) -> Result<(), StoreError> {
        let again: Vec<Tenant> = unanswered.keys().cloned().collect();
        for tenant in again {
            if let Some(batch) = unanswered.get(&tenant) {
                gateway.store.of(&tenant).used().add(batch).await?;
            }
            unanswered.remove(&tenant);
        }
        let day = UsageDate::of(gateway.store.now().await?);
        let tenants: Vec<Tenant> = noted.keys().cloned().collect();
        for tenant in tenants {
            let Some(usage) = noted.remove(&tenant) else { continue };
            let number = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            let batch = UsageBatch { day: day.clone(), number, usage };
            let added = gateway.store.of(&tenant).used().add(&batch).await;
            if let Err(error) = added {
                unanswered.insert(tenant, batch);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Writes again and again until the process stops.
pub(crate) fn watch(gateway: &Arc<Gateway>) {
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("usage", async move {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(WRITE_EVERY) => watched.usage.write(&watched).await,
            }
        }
    });
}
