//! The reconciler: what is known of the tenants in, what is served out.
//!
//! Everything here runs apart from requests, one after the other, under the lock of the [`ReconcileState`].

use super::snapshot::{SnapshotInputs, build, held_config, open_config};
use super::{
    ConfigOrigin, ReconcileState, ServedTenant, StoredConfig, TenantRegistry, TenantsState, known, lock, over_http,
};
use catalog::CatalogEntry;
use domain::Tenant;
use executor::SecretsNow;
use external::TenantExternal;
use std::sync::Arc;
use store::TenantText;
use tenancy::{ServerCatalog, TenantConfig, TenantFiles};
use toolset::AttachedToolset;

impl TenantRegistry {
    /// Looks at the folder once. What the store said before goes on to hold.
    pub(super) fn reload(&self) {
        let (curated, mut problems) = ServerCatalog::read(&self.parts.curated);
        let mut book = known::with(&self.parts.toolsets, &self.parts.reach, &curated, |known| {
            TenantFiles::read(&self.parts.dir, known)
        });
        let mut desk = lock(&self.desk);
        book.keep_from(&desk.book, &self.parts.dir);
        problems.extend(book.problems.iter().cloned());
        if **self.problems.load() != problems {
            problems.iter().for_each(|problem| tracing::warn!(%problem, "a file is not used"));
            self.problems.store(Arc::new(problems));
        }
        (desk.book, desk.curated) = (book, curated);
        let ReconcileState { book, stored, .. } = &mut *desk;
        stored.retain(|tenant, _| book.tenants.contains_key(tenant));
        self.settle(&desk);
    }

    /// Takes note of what the store said. `true` if it said something else before, or nothing.
    pub(super) fn heard_from_store(&self, tenant: &Tenant, stored: StoredConfig) -> bool {
        let mut desk = lock(&self.desk);
        // Its file may have gone meanwhile, and the tenant with it.
        if desk.stored.get(tenant) == Some(&stored) || !desk.book.tenants.contains_key(tenant) {
            return false;
        }
        desk.stored.insert(tenant.clone(), stored);
        let old = self.state.load_full();
        let mut next = TenantsState::clone(&old);
        self.settle_one(&mut next, &old, &desk, tenant);
        self.swap(&old, next);
        true
    }

    /// Gives a tenant that no file configures exactly these tools, all of them by default (the conformance fixture).
    pub fn set_fixed(&self, tenant: &Tenant, tools: Vec<Arc<CatalogEntry>>) {
        let mut desk = lock(&self.desk);
        desk.fixed.insert(tenant.clone(), tools);
        self.settle(&desk);
    }

    /// Serves everybody as is known now.
    fn settle(&self, desk: &ReconcileState) {
        let old = self.state.load_full();
        let mut next = TenantsState::default();
        for (tenant, tools) in &desk.fixed {
            let config = Arc::new(open_config(tenant, tools));
            match build(&config, tools, SnapshotInputs::default()) {
                Ok(snapshot) => {
                    let snapshot = Arc::new(snapshot);
                    next.served.insert(
                        tenant.clone(),
                        ServedTenant { snapshot, config, attached: Arc::from([]), origin: ConfigOrigin::Fixed },
                    );
                }
                Err(error) => tracing::error!(%tenant, %error, "the tenant's catalog cannot be built"),
            }
        }
        for tenant in desk.book.tenants.keys() {
            self.settle_one(&mut next, &old, desk, tenant);
        }
        for tenant in old.served.keys().filter(|tenant| !next.served.contains_key(*tenant)) {
            self.parts.toolsets.detach(tenant);
            self.parts.vault.drop_tenant(tenant);
        }
        lock(&self.turns).retain(|tenant, _| desk.book.tenants.contains_key(tenant));
        self.swap(&old, next);
    }

    /// Decides what holds for one tenant, and serves it so.
    fn settle_one(&self, next: &mut TenantsState, old: &TenantsState, desk: &ReconcileState, tenant: &Tenant) {
        let Some(page) = desk.book.tenants.get(tenant) else { return };
        next.waiting.remove(tenant);
        next.unusable.remove(tenant);
        let before = old.files.get(tenant).filter(|before| ***before == *page);
        next.files.insert(tenant.clone(), before.map_or_else(|| Arc::new(page.clone()), Arc::clone));
        let stored = if self.parts.over_http { desk.stored.get(tenant) } else { Some(&StoredConfig::Said(None)) };
        let wanted = match stored {
            None => return self.keep_or(next, old, tenant, |next| next.wait_for(tenant)),
            Some(StoredConfig::Unreadable) => Err(vec![over_http::unreadable()]),
            Some(StoredConfig::Said(Some(TenantText { version, text: Some(text), .. }))) => {
                let read = over_http::read(self, &desk.curated, page, text);
                read.map(|config| (config, ConfigOrigin::Http(*version)))
            }
            Some(StoredConfig::Said(Some(_) | None)) => Ok((page.config.clone(), ConfigOrigin::File)),
        };
        match wanted {
            Ok((config, origin)) => {
                if matches!(origin, ConfigOrigin::Http(_)) && before.is_none() && old.files.contains_key(tenant) {
                    tracing::info!(%tenant, "the tenant's file changed; what was set over HTTP holds all the same");
                }
                let same = old.served.get(tenant).filter(|served| served.origin == origin && *served.config == config);
                match same {
                    Some(same) => drop(next.served.insert(tenant.clone(), same.clone())),
                    None => self.serve(next, old, Arc::new(config), origin),
                }
            }
            Err(problems) => {
                if old.unusable.get(tenant) != Some(&problems) {
                    let first = problems.first().map(ToString::to_string).unwrap_or_default();
                    tracing::error!(%tenant, problems = problems.len(), first, "what was set over HTTP cannot be used");
                }
                next.unusable.insert(tenant.clone(), problems);
                self.keep_or(next, old, tenant, |next| self.hold(next, tenant));
            }
        }
    }

    /// Goes on with what was served before; does something else if there was nothing.
    fn keep_or(
        &self,
        next: &mut TenantsState,
        old: &TenantsState,
        tenant: &Tenant,
        otherwise: impl FnOnce(&mut TenantsState),
    ) {
        match old.served.get(tenant).filter(|served| served.origin != ConfigOrigin::Fixed) {
            Some(before) => drop(next.served.insert(tenant.clone(), before.clone())),
            None => otherwise(next),
        }
    }

    /// Lets a tenant's people in and gives its agents nothing: no tool, no target.
    ///
    /// Its text was good when it was set, and is not any more: the operator took a server out of the catalog, or a
    /// newer build is stricter. The file would be good, but it is not what the tenant's admin wants to hold, and it may
    /// allow what the text forbids. Not to serve the tenant at all would be as safe, and nobody could mend the text.
    fn hold(&self, next: &mut TenantsState, tenant: &Tenant) {
        let config = Arc::new(held_config(tenant));
        match build(&config, &[], SnapshotInputs::default()) {
            Ok(snapshot) => {
                let held = ServedTenant {
                    snapshot: Arc::new(snapshot),
                    config,
                    attached: Arc::from([]),
                    origin: ConfigOrigin::Held,
                };
                next.served.insert(tenant.clone(), held);
            }
            Err(error) => tracing::error!(%tenant, %error, "an empty catalog cannot be built"),
        }
    }

    /// Serves a tenant by another configuration than before: whole, or as it was. A tenant that was not served before and
    /// cannot be served whole is held.
    fn serve(&self, next: &mut TenantsState, old: &TenantsState, config: Arc<TenantConfig>, origin: ConfigOrigin) {
        let tenant = config.tenant.clone();
        let before = old.served.get(&tenant);
        let attached = self.parts.toolsets.attach(&config, before.map_or(&[], |before| &before.attached));
        match attached {
            Ok(attached) => {
                if !self.draw(next, old, config, attached.into(), origin) {
                    self.restore(&tenant, before);
                }
            }
            Err(error) => {
                tracing::error!(%tenant, error = &error as &dyn std::error::Error, "a toolset cannot be attached");
                self.keep_or(next, old, &tenant, |next| self.hold(next, &tenant));
            }
        }
    }

    /// Gives a toolset that keeps something besides its value back what the tenant had: a catalog that could not be built
    /// must not leave old tools with new targets.
    fn restore(&self, tenant: &Tenant, before: Option<&ServedTenant>) {
        match before.map(|before| self.parts.toolsets.attach(&before.config, &before.attached)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::error!(%tenant, error = &error as &dyn std::error::Error, "a toolset cannot be attached again");
            }
            None => self.parts.toolsets.detach(tenant),
        }
    }

    /// Draws up the catalog of a tenant from its attached toolsets. `false` if that cannot be done: then what the tenant
    /// had before stays.
    pub(super) fn draw(
        &self,
        next: &mut TenantsState,
        old: &TenantsState,
        config: Arc<TenantConfig>,
        attached: Arc<[Arc<dyn AttachedToolset>]>,
        origin: ConfigOrigin,
    ) -> bool {
        let tenant = config.tenant.clone();
        let tools: Vec<Arc<CatalogEntry>> = attached.iter().flat_map(|toolset| toolset.entries()).collect();
        let (vault, whose) = (self.parts.vault.clone(), tenant.clone());
        let secrets = SecretsNow::kept_by(move || vault.scrubber_of_all(&whose));
        let withheld = toolset::find::<TenantExternal>(&attached).map(|external| external.withheld());
        let outside = SnapshotInputs { secrets, withheld: withheld.unwrap_or_default() };
        match build(&config, &tools, outside) {
            Ok(snapshot) => {
                next.served.insert(tenant, ServedTenant { snapshot: Arc::new(snapshot), config, attached, origin });
                true
            }
            Err(error) => {
                tracing::error!(%tenant, %error, "the tenant's catalog cannot be built");
                self.keep_or(next, old, &tenant, |next| self.hold(next, &tenant));
                false
            }
        }
    }

    /// Puts the new state in place of the old one and tells whose tools are different.
    pub(super) fn swap(&self, old: &TenantsState, next: TenantsState) {
        let digest =
            |state: &TenantsState, tenant| state.served.get(tenant).map(|s| s.snapshot.catalog.digest().to_owned());
        let gone = old.served.keys().filter(|tenant| !next.served.contains_key(*tenant));
        let changed: Vec<Tenant> = next
            .served
            .keys()
            .chain(gone)
            .filter(|tenant| digest(old, tenant) != digest(&next, tenant))
            .cloned()
            .collect();
        self.state.store(Arc::new(next));
        for tenant in changed {
            tracing::info!(%tenant, "the tenant's tools changed");
            // Nobody listening is no fault: a change is read from the state, the message only says when to look.
            self.changes.send(tenant).ok();
        }
    }
}

impl TenantsState {
    fn wait_for(&mut self, tenant: &Tenant) {
        self.waiting.insert(tenant.clone());
    }
}
