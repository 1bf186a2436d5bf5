//! Keeps the tenants up to date: a periodic look at everything, and one listener for each tenant.
//!
//! A wake-up only tells when to look. If one is lost, the next periodic look makes up for it.

use super::TenantRegistry;
use domain::Tenant;
use executor::Tasks;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use store::{StoreError, Topic, WakeUp};
use tokio_util::sync::CancellationToken;

/// How often the store is asked about every tenant without a wake-up.
const REFRESH_EVERY: Duration = Duration::from_secs(30);
/// How soon a store that did not answer is asked again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl TenantRegistry {
    /// Looks at the folder this often, and listens to the store, until the process stops.
    pub fn watch(self: &Arc<TenantRegistry>, tasks: &Tasks, every: Duration) {
        let (tenants, tasks, stopping) = (Arc::clone(self), tasks.clone(), tasks.stopping().clone());
        tasks.clone().spawn("tenants", async move {
            let mut listeners: HashMap<Tenant, CancellationToken> = HashMap::new();
            let mut refreshing = tokio::time::interval(REFRESH_EVERY);
            refreshing.reset();
            loop {
                tenants.listen(&tasks, &mut listeners);
                tokio::select! {
                    () = stopping.cancelled() => return,
                    () = tokio::time::sleep(every) => tenants.look().await,
                    _ = refreshing.tick() => tenants.refresh_all().await,
                }
            }
        });
    }

    /// One listener for each tenant that has a file, and none for others.
    fn listen(self: &Arc<TenantRegistry>, tasks: &Tasks, listeners: &mut HashMap<Tenant, CancellationToken>) {
        let state = self.state.load();
        listeners.retain(|tenant, ended| {
            let stays = state.files.contains_key(tenant);
            if !stays {
                ended.cancel();
            }
            stays
        });
        for tenant in state.files.keys() {
            if !listeners.contains_key(tenant) {
                let ended = tasks.stopping().child_token();
                listeners.insert(tenant.clone(), ended.clone());
                tasks.spawn("tenant", Arc::clone(self).listen_to(tenant.clone(), ended));
            }
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
