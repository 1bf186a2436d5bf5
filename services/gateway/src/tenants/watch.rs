//! Keeps the tenants up to date: a look at the folder whenever a file was written and now and then besides, one listener
//! for each tenant that is awake, and an end for those that nobody uses.
//!
//! A wake-up only tells when to look. If one is lost, the periodic look makes up for it: one read for all tenants tells
//! which of them were changed by a call.

use super::TenantRegistry;
use super::folder::FolderEvents;
use domain::{Moment, Tenant};
use executor::Tasks;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{StoreError, Topic, WakeUp};
use tokio_util::sync::CancellationToken;

/// How often the store is asked without a wake-up which tenants were changed by a call.
const REFRESH_EVERY: Duration = Duration::from_secs(30);
/// A line is written behind the change it tells of, so the time before the last look is looked at once more.
const OVERLAP: Duration = Duration::from_secs(60);
/// How soon a store that did not answer is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Several files are often written at once, and the last event is the one that counts.
const CALM: Duration = Duration::from_millis(20);
/// How soon a file is looked at once more that was written a moment ago, or whose folder tells of no events.
const SOON: Duration = Duration::from_secs(2);

impl TenantRegistry {
    /// Looks at the folder whenever it changes and this often, listens to the store, and lets tenants go that were not used
    /// for so long, until the process stops.
    pub fn watch(self: &Arc<TenantRegistry>, tasks: &Tasks, every: Duration, idle: Duration) {
        if self.tasks.set(tasks.clone()).is_err() {
            return;
        }
        for (tenant, _) in self.all() {
            self.listen(&tenant);
        }
        let (tenants, stopping) = (Arc::clone(self), tasks.stopping().clone());
        tasks.spawn("tenants", async move {
            let events = FolderEvents::begin();
            let mut refreshing = tokio::time::interval(REFRESH_EVERY);
            refreshing.reset();
            let mut resting = tokio::time::interval((idle / 4).clamp(Duration::from_millis(10), SOON * 30));
            resting.reset();
            let mut since = None;
            let mut unsettled = true;
            loop {
                let all_watched = events.as_ref().is_some_and(|events| events.watch(&tenants.folders()));
                // Between the last look and the watch something may have been written, so the first look comes soon.
                let retries = tenants.waiting() > 0 || !tenants.refused().is_empty();
                let wait = if unsettled || retries || !all_watched { every.min(SOON) } else { every };
                let heard = async {
                    match &events {
                        Some(events) => events.changed().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = stopping.cancelled() => return,
                    () = tokio::time::sleep(wait) => unsettled = tenants.look().await,
                    () = heard => {
                        tokio::time::sleep(CALM).await;
                        unsettled = tenants.look().await;
                    }
                    _ = refreshing.tick() => tenants.refresh_moved(&mut since).await,
                    _ = resting.tick() => drop(tenants.let_go(idle).await),
                }
            }
        });
    }

    /// Where the files are that say what is served.
    fn folders(&self) -> Vec<PathBuf> {
        let curated = &self.parts.curated;
        let catalog = curated.dir.iter().flat_map(|dir| [dir.clone(), dir.join("servers")]).filter(|dir| dir.is_dir());
        let config = curated.config.as_deref().and_then(|file| file.parent()).map(PathBuf::from);
        std::iter::once(self.parts.dir.clone()).chain(catalog).chain(config).collect()
    }

    /// Reads again what is awake and was changed by a call.
    async fn refresh_moved(self: &Arc<TenantRegistry>, since: &mut Option<Moment>) {
        // What was awake at the beginning was read from the store then, so the first look only learns the time.
        let overlap = u64::try_from(OVERLAP.as_millis()).unwrap_or_default();
        let from =
            since.map_or(store::NEVER_DUE, |at: Moment| Moment::from_millis(at.millis().saturating_sub(overlap)));
        // That the store is away is reported elsewhere; the next look tries again.
        let Ok((moved, now)) = self.parts.store.moved_since(from).await else { return };
        let state = self.state.load_full();
        for tenant in moved.iter().filter(|tenant| state.served.contains_key(*tenant)) {
            if let Err(error) = self.handle_wake_up(tenant, &WakeUp::Resync).await {
                tracing::debug!(%tenant, %error, "what was changed by a call cannot be read");
                return;
            }
        }
        *since = Some(now);
    }

    /// Listens for a tenant that is awake, unless somebody does already.
    pub(super) fn listen(self: &Arc<TenantRegistry>, tenant: &Tenant) {
        let Some(tasks) = self.tasks.get() else { return };
        let state = self.state.load();
        if !state.served.contains_key(tenant) || !state.files.contains_key(tenant) {
            return;
        }
        let mut listeners = super::lock(&self.listeners);
        if listeners.get(tenant).is_none_or(CancellationToken::is_cancelled) {
            let ended = tasks.stopping().child_token();
            listeners.insert(tenant.clone(), ended.clone());
            // A request's own runtime may end before the tenant does.
            tasks.spawn_lasting("tenant", Arc::clone(self).listen_to(tenant.clone(), ended));
        }
    }

    async fn listen_to(self: Arc<TenantRegistry>, tenant: Tenant, ended: CancellationToken) {
        let mut watch = self.parts.store.of(&tenant).watch();
        loop {
            let wake = tokio::select! {
                () = ended.cancelled() => return,
                wake = watch.next() => wake,
            };
            while let Err(error) = self.handle_wake_up(&tenant, &wake).await {
                tracing::debug!(%tenant, %error, "what a wake-up is about cannot be read");
                tokio::select! {
                    () = ended.cancelled() => return,
                    () = tokio::time::sleep(RETRY_AFTER) => {}
                }
            }
        }
    }

    /// Reads again what a wake-up is about.
    async fn handle_wake_up(self: &Arc<TenantRegistry>, tenant: &Tenant, wake: &WakeUp) -> Result<(), StoreError> {
        match wake {
            WakeUp::Topic(Topic::Config) => self.refresh(tenant).await.map(drop),
            WakeUp::Topic(Topic::Secrets) => {
                self.parts.vault.refresh(tenant).await?;
                self.refresh_servers(tenant).await;
                Ok(())
            }
            WakeUp::Topic(Topic::Servers) => {
                self.refresh_servers(tenant).await;
                Ok(())
            }
            WakeUp::Resync => {
                self.refresh(tenant).await?;
                self.refresh_servers(tenant).await;
                Ok(())
            }
            WakeUp::Topic(
                Topic::Session(_)
                | Topic::Run(_)
                | Topic::Catalog
                | Topic::Cancel { .. }
                | Topic::StreamOwner { .. }
                | Topic::Document
                | Topic::Switches
                | Topic::SignedOut
                | Topic::Job(_)
                | Topic::Jobs(_),
            ) => Ok(()),
        }
    }

    /// External servers announce their own changes, so nothing is done with the result here.
    async fn refresh_servers(&self, tenant: &Tenant) {
        if let Some(upstreams) = &self.parts.toolsets.upstreams {
            upstreams.refresh(tenant, None).await;
        }
    }
}
