//! The reconciler: from the tenants' configurations to what is served.
//!
//! Everything here runs outside of requests, one at a time, under the lock of the [`ReconcileState`].

use super::snapshot::{SnapshotInputs, build, open_config, suspended_config};
use super::{
    AttachedToolsets, ConfigOrigin, ReconcileState, RefusedConfig, ServedTenant, StoredConfig, TenantRegistry,
    TenantUse, TenantsState, dormancy, known_names, lock, over_http,
};
use crate::clock::SystemClock;
use catalog::CatalogEntry;
use catalog::catalog::CatalogError;
use domain::Tenant;
use executor::SecretsNow;
use external::{ServerCatalog, TenantExternal};
use memory::TenantMemory;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use store::TenantText;
use telemetry::metrics;
use tenancy::{ConfiguredTenant, Problem, TenantConfig, TenantFiles};

impl TenantRegistry {
    /// Reads what has changed in the folder. The store's earlier answers stay valid. Tells whether some file has to be
    /// looked at once more.
    pub(super) fn reload(&self) -> bool {
        let mut reading = lock(&self.reading);
        let (curated, mut problems) = ServerCatalog::read(&self.parts.curated);
        if curated != reading.curated {
            // Files may name what it has, so each of them may be right or wrong now.
            reading.folder.clear();
            reading.curated = curated.clone();
        }
        let files = known_names::with_known_names(&self.parts.toolsets, &self.parts.reach, &curated, |names| {
            TenantFiles::read_changed(&self.parts.dir, names, &mut reading.folder)
        });
        let unsettled = reading.folder.is_unsettled();
        let mut reconcile = lock(&self.reconcile);
        let Some(mut files) = files else {
            // Nothing is different; what could not be put to use is tried again.
            if !self.state.load().refused.is_empty() {
                self.reconcile_all(&reconcile);
            }
            return unsettled;
        };
        files.keep_from(&reconcile.files, &self.parts.dir);
        problems.extend(files.problems.iter().cloned());
        if **self.problems.load() != problems {
            problems.iter().for_each(|problem| tracing::warn!(%problem, "a file is not used"));
            metrics::CONFIG_RELOAD_FAILED.add([], problems.len() as u64);
            self.problems.store(Arc::new(problems));
        }
        (reconcile.files, reconcile.curated) = (files, curated);
        let ReconcileState { files, stored, .. } = &mut *reconcile;
        stored.retain(|tenant, _| files.tenants.contains_key(tenant));
        self.reconcile_all(&reconcile);
        unsettled
    }

    /// Applies the store's answer about a tenant. `true` if it is another one than before.
    pub(super) fn apply_stored(&self, tenant: &Tenant, stored: StoredConfig) -> bool {
        let mut reconcile = lock(&self.reconcile);
        let old = self.state.load_full();
        let is_same = reconcile.stored.get(tenant) == Some(&stored) && old.served.contains_key(tenant);
        // Its file may have gone meanwhile, and the tenant with it.
        if is_same || !reconcile.files.tenants.contains_key(tenant) {
            return false;
        }
        reconcile.stored.insert(tenant.clone(), stored);
        let mut next = TenantsState::clone(&old);
        self.reconcile_tenant(&mut next, &old, &reconcile, tenant);
        self.publish(&old, next);
        true
    }

    /// Gives a tenant that no file configures exactly these tools, all of them by default (the conformance fixture).
    pub fn set_fixed(&self, tenant: &Tenant, tools: Vec<Arc<CatalogEntry>>) {
        let mut reconcile = lock(&self.reconcile);
        reconcile.fixed.insert(tenant.clone(), tools);
        self.reconcile_all(&reconcile);
    }

    /// Serves every tenant that is not dormant by its current configuration.
    fn reconcile_all(&self, reconcile: &ReconcileState) {
        let old = self.state.load_full();
        let mut next = TenantsState { files: files_of(&old, reconcile), ..TenantsState::default() };
        for (tenant, tools) in &reconcile.fixed {
            let config = Arc::new(open_config(tenant, tools));
            match build(&config, tools, SnapshotInputs::default()) {
                Ok(snapshot) => {
                    let (snapshot, used) = (Arc::new(snapshot), Arc::default());
                    next.served.insert(
                        tenant.clone(),
                        ServedTenant { snapshot, config, attached: Arc::from([]), origin: ConfigOrigin::Fixed, used },
                    );
                }
                Err(error) => tracing::error!(%tenant, %error, "the tenant's catalog cannot be built"),
            }
        }
        for tenant in reconcile.files.tenants.keys() {
            let awake = old.served.contains_key(tenant) || old.waiting.contains(tenant);
            let has_room = next.served.len() + next.waiting.len() < dormancy::READY_AT_ONCE;
            if awake || (has_room && !old.files.contains_key(tenant)) {
                self.reconcile_tenant(&mut next, &old, reconcile, tenant);
            } else {
                // What was found out about it holds until its next use.
                next.unusable
                    .extend(old.unusable.get_key_value(tenant).map(|(tenant, why)| (tenant.clone(), why.clone())));
                next.refused
                    .extend(old.refused.get_key_value(tenant).map(|(tenant, why)| (tenant.clone(), why.clone())));
            }
        }
        let is_gone = |tenant: &&Tenant| !next.served.contains_key(*tenant) && !next.files.contains_key(*tenant);
        let gone: BTreeSet<&Tenant> = old.served.keys().chain(old.files.keys()).filter(is_gone).collect();
        for tenant in gone {
            self.parts.toolsets.detach(tenant);
            self.parts.vault.drop_tenant(tenant);
            if let Some(ended) = lock(&self.listeners).remove(tenant) {
                ended.cancel();
            }
        }
        lock(&self.refresh_locks).retain(|tenant, _| reconcile.files.tenants.contains_key(tenant));
        self.publish(&old, next);
    }

    /// Chooses the configuration of one tenant, and serves the tenant by it.
    fn reconcile_tenant(
        &self,
        next: &mut TenantsState,
        old: &TenantsState,
        reconcile: &ReconcileState,
        tenant: &Tenant,
    ) {
        let Some(file) = reconcile.files.tenants.get(tenant) else { return };
        next.waiting.remove(tenant);
        next.unusable.remove(tenant);
        next.refused.remove(tenant);
        let before = old.files.get(tenant).filter(|before| Arc::ptr_eq(before, file) || ***before == **file);
        let stored = if self.parts.over_http { reconcile.stored.get(tenant) } else { Some(&StoredConfig::Text(None)) };
        let chosen = match stored {
            None => return self.keep_served_or(next, old, tenant, |next| next.wait_for(tenant)),
            Some(StoredConfig::Unreadable) => Err(vec![over_http::unreadable()]),
            Some(StoredConfig::NotAuthentic(why)) => Err(vec![over_http::not_authentic(why)]),
            Some(StoredConfig::Text(Some(TenantText { version, text: Some(text), .. }))) => {
                let read = over_http::read(self, &reconcile.curated, file, text);
                read.map(|config| (Arc::new(config), ConfigOrigin::Http(*version)))
            }
            Some(StoredConfig::Text(Some(_) | None)) => Ok((Arc::clone(&file.config), ConfigOrigin::File)),
        };
        match chosen {
            Ok((config, origin)) => {
                if matches!(origin, ConfigOrigin::Http(_)) && before.is_none() && old.files.contains_key(tenant) {
                    tracing::info!(%tenant, "the tenant's file changed; the configuration set over HTTP still applies");
                }
                let is_same = |served: &&ServedTenant| served.origin == origin && served.config == config;
                let same = old.served.get(tenant).filter(is_same);
                match same {
                    Some(same) => drop(next.served.insert(tenant.clone(), same.clone())),
                    None => self.serve(next, old, config, origin),
                }
            }
            Err(problems) => {
                if old.unusable.get(tenant) != Some(&problems) {
                    metrics::CONFIG_RELOAD_FAILED.add([], 1);
                    let first = problems.first().map(ToString::to_string).unwrap_or_default();
                    tracing::error!(%tenant, problems = problems.len(), first, "the configuration set over HTTP cannot be used");
                }
                // The operator has narrowed the file: what was served before grants what the file does not give any more.
                let narrowed = over_http::is_beyond(&problems);
                next.unusable.insert(tenant.clone(), problems);
                if narrowed {
                    self.parts.toolsets.detach(tenant);
                    self.suspend(next, tenant);
                } else {
                    self.keep_served_or(next, old, tenant, |next| self.suspend(next, tenant));
                }
            }
        }
    }

    /// Keeps what was served before; calls `otherwise` if there was nothing.
    fn keep_served_or(
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

    /// Serves a tenant without tools and targets: its people get in, its agents can do nothing.
    ///
    /// Its configuration was valid when it was set and is not any more: the operator narrowed the file or removed a server
    /// from the catalog, or a newer build is stricter. The file is valid, but the tenant's admin replaced it, and it may allow what the
    /// configuration forbids. Not serving the tenant at all would be as safe, but then nobody could correct it.
    fn suspend(&self, next: &mut TenantsState, tenant: &Tenant) {
        let config = Arc::new(suspended_config(tenant));
        match build(&config, &[], SnapshotInputs::default()) {
            Ok(snapshot) => {
                let suspended = ServedTenant {
                    snapshot: Arc::new(snapshot),
                    config,
                    attached: Arc::from([]),
                    origin: ConfigOrigin::Suspended,
                    used: self.hold(tenant).unwrap_or_default(),
                };
                next.served.insert(tenant.clone(), suspended);
            }
            Err(error) => tracing::error!(%tenant, %error, "an empty catalog cannot be built"),
        }
    }

    /// Serves a tenant by another configuration than before: whole, or as it was. A tenant that was not served before and
    /// cannot be served whole is suspended.
    fn serve(&self, next: &mut TenantsState, old: &TenantsState, config: Arc<TenantConfig>, origin: ConfigOrigin) {
        let tenant = config.tenant.clone();
        let before = old.served.get(&tenant);
        let attached = self.parts.toolsets.attach(&config, before.map_or(&[], |before| &before.attached));
        match attached {
            Ok(attached) => {
                let used = before.map_or_else(Arc::default, |before| Arc::clone(&before.used));
                let parts = (Arc::clone(&config), attached.into(), used);
                if let Err(error) = self.rebuild_catalog(next, parts, origin) {
                    self.restore(&tenant, before);
                    self.refuse(next, old, config, origin, &error);
                }
            }
            Err(error) => self.refuse(next, old, config, origin, &error),
        }
    }

    /// Leaves a tenant as it was, because its configuration cannot be put to use. Every look tries again; the log has it
    /// once for each configuration and reason.
    fn refuse(
        &self,
        next: &mut TenantsState,
        old: &TenantsState,
        config: Arc<TenantConfig>,
        origin: ConfigOrigin,
        error: &(dyn std::error::Error + 'static),
    ) {
        let tenant = config.tenant.clone();
        let file = match origin {
            ConfigOrigin::Http(_) => over_http::LABEL.to_owned(),
            ConfigOrigin::File | ConfigOrigin::Fixed | ConfigOrigin::Suspended => {
                next.files.get(&tenant).map(|configured| configured.file.clone()).unwrap_or_default()
            }
        };
        let causes = std::iter::successors(Some(error), |error| (*error).source());
        let message = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        let hint = Some("until it is corrected, the tenant keeps what it had".to_owned());
        let problem = Problem { file, line: 1, column: 1, code: "attach_failed", message, hint };
        let refused = RefusedConfig { config, problem };
        if old.refused.get(&tenant) != Some(&refused) {
            metrics::CONFIG_RELOAD_FAILED.add([], 1);
            let reason = refused.problem.message.as_str();
            tracing::error!(%tenant, reason, "the tenant's configuration cannot be put to use");
        }
        next.refused.insert(tenant.clone(), refused);
        self.keep_served_or(next, old, &tenant, |next| self.suspend(next, &tenant));
    }

    /// Attaches the previous configuration again, for toolsets that keep state besides their value: a catalog that could
    /// not be built must not leave old tools with new targets.
    fn restore(&self, tenant: &Tenant, before: Option<&ServedTenant>) {
        match before.map(|before| self.parts.toolsets.attach(&before.config, &before.attached)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::error!(%tenant, error = &error as &dyn std::error::Error, "a toolset cannot be attached again");
            }
            None => self.parts.toolsets.detach(tenant),
        }
    }

    /// Builds the catalog of a tenant from its attached toolsets, and serves the tenant by it.
    pub(super) fn rebuild_catalog(
        &self,
        next: &mut TenantsState,
        (config, attached, used): (Arc<TenantConfig>, AttachedToolsets, Arc<TenantUse>),
        origin: ConfigOrigin,
    ) -> Result<(), CatalogError> {
        let tenant = config.tenant.clone();
        let tools: Vec<Arc<CatalogEntry>> = attached.iter().flat_map(|toolset| toolset.entries()).collect();
        let (vault, whose) = (self.parts.vault.clone(), tenant.clone());
        let secrets = SecretsNow::kept_by(move || vault.scrubber_of_all(&whose));
        let withheld = toolset::find::<TenantExternal>(&attached).map(|external| external.withheld());
        let review = toolset::find::<TenantMemory>(&attached).and_then(|memory| memory.review());
        let source = match origin {
            ConfigOrigin::Http(version) => format!("http/{version}"),
            ConfigOrigin::File | ConfigOrigin::Fixed | ConfigOrigin::Suspended => "file".to_owned(),
        };
        let inputs = SnapshotInputs { secrets, withheld: withheld.unwrap_or_default(), review, source };
        let snapshot = Arc::new(build(&config, &tools, inputs)?);
        measure(&tools);
        next.served.insert(tenant, ServedTenant { snapshot, config, attached, origin, used });
        Ok(())
    }

    /// Replaces the old state by the new one, and announces the tenants whose tools changed. Nobody hears that a tenant was
    /// made ready or let go: that changes nothing for it.
    pub(super) fn publish(&self, old: &TenantsState, next: TenantsState) {
        let mut changed = Vec::new();
        for (tenant, before) in &old.served {
            let is_other = match next.served.get(tenant) {
                Some(now) => before.snapshot.catalog.digest() != now.snapshot.catalog.digest(),
                None => !next.files.contains_key(tenant),
            };
            if is_other {
                changed.push(tenant.clone());
            }
            let is_off = |served: Option<&ServedTenant>| served.is_none_or(|now| now.origin == ConfigOrigin::Suspended);
            let is_known = next.files.contains_key(tenant) && !next.served.contains_key(tenant);
            if before.origin != ConfigOrigin::Suspended && is_off(next.served.get(tenant)) && !is_known {
                lock(&self.gone).insert(tenant.clone());
            }
        }
        // A dormant tenant whose file is gone may have runs that wait, too.
        let dormant = old.files.keys().filter(|tenant| !old.served.contains_key(*tenant));
        lock(&self.gone).extend(dormant.filter(|tenant| !next.files.contains_key(*tenant)).cloned());
        let is_new = |tenant: &&Tenant| !old.files.contains_key(*tenant) && !old.served.contains_key(*tenant);
        lock(&self.appeared).extend(next.served.keys().filter(is_new).cloned());
        if !Arc::ptr_eq(&old.files, &next.files) {
            lock(&self.appeared).extend(next.files.keys().filter(is_new).cloned());
        }
        self.state.store(Arc::new(next));
        for tenant in changed {
            tracing::info!(%tenant, "the tenant's tools changed");
            // Nobody has to listen: a change is read from the state, and the message only tells when.
            self.changes.send(tenant).ok();
        }
    }
}

/// The files of all tenants; the same map where nothing is different.
fn files_of(old: &TenantsState, reconcile: &ReconcileState) -> Arc<HashMap<Tenant, Arc<ConfiguredTenant>>> {
    let files = &reconcile.files.tenants;
    let is_same = |(tenant, file)| old.files.get(tenant).is_some_and(|before| Arc::ptr_eq(before, file));
    if files.len() == old.files.len() && files.iter().all(is_same) {
        return Arc::clone(&old.files);
    }
    Arc::new(files.iter().map(|(tenant, file)| (tenant.clone(), Arc::clone(file))).collect())
}

/// Notes what the schemas of the toolsets cost, and that a configuration was taken over.
fn measure(tools: &[Arc<CatalogEntry>]) {
    let mut tokens: BTreeMap<&str, u32> = BTreeMap::new();
    for tool in tools {
        *tokens.entry(tool.definition().toolset.as_str()).or_default() += tool.tokens();
    }
    for (toolset, tokens) in tokens {
        metrics::TOOLSET_TOKENS.set([toolset], f64::from(tokens));
    }
    metrics::CONFIG_LOADED.set([], SystemClock.now().millis() as f64 / 1_000.0);
}

impl TenantsState {
    fn wait_for(&mut self, tenant: &Tenant) {
        self.waiting.insert(tenant.clone());
    }
}
