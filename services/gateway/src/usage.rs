//! Writes down what callers use, every few seconds and once more when the process leaves; and reads it, for the REST API
//! and the console.
//!
//! A kill loses what was noted since the last time. A tenant that is idle is not written.

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, audits};
use domain::usage::{UsageCount, UsageDay, UsageGroup};
use domain::{Code, Failure, Tenant};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::{StoreError, UsageBatch, UsageDate};
use tokio::sync::Mutex;

/// How often it is written down.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// The most days in one answer.
const MOST_DAYS: usize = 92;

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
        noted: &mut HashMap<Tenant, UsageDay>,
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

/// What a tenant used, day by day.
pub(crate) struct UsedDays {
    /// The first day.
    pub(crate) from: UsageDate,
    /// The last day.
    pub(crate) to: UsageDate,
    /// Every day between them, both included.
    pub(crate) days: Vec<(UsageDate, UsageDay)>,
}

impl UsedDays {
    /// All days added up.
    pub(crate) fn together(&self) -> UsageDay {
        self.days.iter().fold(UsageDay::default(), |mut all, (_, day)| {
            all.merge(day);
            all
        })
    }
}

/// What the caller's tenant used from one day to another, as they are written; today where none is given.
pub(crate) async fn days(
    gateway: &Gateway,
    authed: &AuthedRequest,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<UsedDays, Failure> {
    audits(authed)?;
    let invalid = |message: &str| Failure::new(Code::InvalidRequest, message);
    let away =
        |error: StoreError| Failure::new(error.code(), "the usage cannot be read at the moment").retry_after_ms(1_000);
    let read = |text: &str| UsageDate::parse(text).ok_or_else(|| invalid("a day is written as 2026-11-18"));
    let to = match to {
        Some(text) => read(text)?,
        None => UsageDate::of(gateway.store.now().await.map_err(away)?),
    };
    let from = from.map_or_else(|| Ok(to.clone()), read)?;
    let dates: Vec<UsageDate> = std::iter::successors(Some(from.clone()), |day| Some(day.next()))
        .take(MOST_DAYS + 1)
        .take_while(|day| *day <= to)
        .collect();
    if dates.is_empty() || dates.len() > MOST_DAYS {
        return Err(invalid("from is not after to, and at most 92 days are asked for at once"));
    }
    // What this replica has noted and not written yet is in the answer too, once it is written.
    gateway.usage.write(gateway).await;
    let found = gateway.store.of(&authed.caller.tenant).used().days(&dates).await.map_err(away)?;
    Ok(UsedDays { from, to, days: dates.into_iter().zip(found).collect() })
}

/// The rows of a kind, what cost a model most first.
pub(crate) fn by_cost(used: &UsageDay, by: UsageGroup) -> Vec<(&str, &UsageCount)> {
    let mut rows: Vec<(&str, &UsageCount)> = used.rows(by).iter().map(|(name, count)| (name.as_str(), count)).collect();
    rows.sort_by_key(|(name, count)| (Reverse(count.result_tokens.saturating_add(count.schema_tokens)), *name));
    rows
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
