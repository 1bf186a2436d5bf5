//! The reconciler: what is known of the tenants in, what is served out.
//!
//! Everything here runs apart from requests, one after the other, under the lock of the [`Desk`].

use super::snapshot::{Outside, build, held_config, open_config};
use super::{Desk, Origin, Served, State, Stored, Tenants, known, lock, over_http};
use crate::stores;
use catalog::Entry;
use domain::Tenant;
use executor::Secrets;
use std::sync::Arc;
use store::TenantText;
use tenancy::{Book, Curated, TenantConfig};
use tools::Has;

impl Tenants {
    /// Looks at the folder once. What the store said before goes on to hold.
    pub(super) fn reload(&self) {
        let (curated, mut problems) = Curated::read(&self.parts.curated);
        let mut book =
            known::with(self.tools(), &self.parts.targets.reach, &curated, |known| Book::read(&self.parts.dir, known));
        let mut desk = lock(&self.desk);
        book.keep_from(&desk.book, &self.parts.dir);
        problems.extend(book.problems.iter().cloned());
        if **self.problems.load() != problems {
            problems.iter().for_each(|problem| tracing::warn!(%problem, "a file is not used"));
            self.problems.store(Arc::new(problems));
        }
        (desk.book, desk.curated) = (book, curated);
        let Desk { book, stored, .. } = &mut *desk;
        stored.retain(|tenant, _| book.tenants.contains_key(tenant));
        self.settle(&desk);
    }

    /// Takes note of what the store said. `true` if it said something else before, or nothing.
    pub(super) fn heard_from_store(&self, tenant: &Tenant, stored: Stored) -> bool {
        let mut desk = lock(&self.desk);
        // Its file may have gone meanwhile, and the tenant with it.
        if desk.stored.get(tenant) == Some(&stored) || !desk.book.tenants.contains_key(tenant) {
            return false;
        }
        desk.stored.insert(tenant.clone(), stored);
        let old = self.state.load_full();
        let mut next = State::clone(&old);
        self.settle_one(&mut next, &old, &desk, tenant);
        self.swap(&old, next);
        true
    }

    /// Gives a tenant that no file configures exactly these tools, all of them by default (the conformance fixture).
    pub fn set_fixed(&self, tenant: &Tenant, tools: Vec<Arc<Entry>>) {
        let mut desk = lock(&self.desk);
        desk.fixed.insert(tenant.clone(), tools);
        self.settle(&desk);
    }

    /// Serves everybody as is known now.
    fn settle(&self, desk: &Desk) {
        let old = self.state.load_full();
        let mut next = State::default();
        for (tenant, tools) in &desk.fixed {
            let (config, before) = (Arc::new(open_config(tenant, tools)), old.served.get(tenant));
            match build(&config, tools, Outside::default(), before.map(|before| &before.snapshot)) {
                Ok(snapshot) => {
                    let snapshot = Arc::new(snapshot);
                    next.served.insert(tenant.clone(), Served { snapshot, config, origin: Origin::Fixed });
                }
                Err(error) => tracing::error!(%tenant, %error, "the tenant's catalog cannot be built"),
            }
        }
        for tenant in desk.book.tenants.keys() {
            self.settle_one(&mut next, &old, desk, tenant);
        }
        for tenant in old.served.keys().filter(|tenant| !next.served.contains_key(*tenant)) {
            self.withdraw(tenant);
        }
        lock(&self.turns).retain(|tenant, _| desk.book.tenants.contains_key(tenant));
        self.swap(&old, next);
    }

    /// Decides what holds for one tenant, and serves it so.
    fn settle_one(&self, next: &mut State, old: &State, desk: &Desk, tenant: &Tenant) {
        let Some(page) = desk.book.tenants.get(tenant) else { return };
        next.waiting.remove(tenant);
        next.unusable.remove(tenant);
        let before = old.files.get(tenant).filter(|before| ***before == *page);
        next.files.insert(tenant.clone(), before.map_or_else(|| Arc::new(page.clone()), Arc::clone));
        let stored = if self.parts.over_http { desk.stored.get(tenant) } else { Some(&Stored::Said(None)) };
        let wanted = match stored {
            None => return self.keep_or(next, old, tenant, |next| next.wait_for(tenant)),
            Some(Stored::Unreadable) => Err(vec![over_http::unreadable()]),
            Some(Stored::Said(Some(TenantText { version, text: Some(text), .. }))) => {
                let read = over_http::read(self, &desk.curated, page, text);
                read.map(|config| (config, Origin::Http(*version)))
            }
            Some(Stored::Said(Some(_) | None)) => Ok((page.config.clone(), Origin::File)),
        };
        match wanted {
            Ok((config, origin)) => {
                if matches!(origin, Origin::Http(_)) && before.is_none() && old.files.contains_key(tenant) {
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
    fn keep_or(&self, next: &mut State, old: &State, tenant: &Tenant, otherwise: impl FnOnce(&mut State)) {
        match old.served.get(tenant).filter(|served| served.origin != Origin::Fixed) {
            Some(before) => drop(next.served.insert(tenant.clone(), before.clone())),
            None => otherwise(next),
        }
    }

    /// Lets a tenant's people in and gives its agents nothing: no tool, no target.
    ///
    /// Its text was good when it was set, and is not any more: the operator took a server out of the catalog, or a
    /// newer build is stricter. The file would be good, but it is not what the tenant's admin wants to hold, and it may
    /// allow what the text forbids. Not to serve the tenant at all would be as safe, and nobody could mend the text.
    fn hold(&self, next: &mut State, tenant: &Tenant) {
        let config = Arc::new(held_config(tenant));
        match build(&config, &[], Outside::default(), None) {
            Ok(snapshot) => {
                let held = Served { snapshot: Arc::new(snapshot), config, origin: Origin::Held };
                next.served.insert(tenant.clone(), held);
            }
            Err(error) => tracing::error!(%tenant, %error, "an empty catalog cannot be built"),
        }
    }

    /// Serves a tenant by another configuration than before.
    fn serve(&self, next: &mut State, old: &State, config: Arc<TenantConfig>, origin: Origin) {
        let tenant = config.tenant.clone();
        self.apply(&config);
        if !self.draw(next, old, config, origin) {
            // Nothing half applied: what tools act on goes back to what the tools are that are listed.
            match old.served.get(&tenant) {
                Some(before) => self.apply(&before.config),
                None => self.withdraw(&tenant),
            }
        }
    }

    /// Draws up the catalog of a tenant. `false` if that cannot be done: then what it had before stays.
    pub(super) fn draw(&self, next: &mut State, old: &State, config: Arc<TenantConfig>, origin: Origin) -> bool {
        let tenant = config.tenant.clone();
        let has = Has { clusters: config.clusters.len(), servers: config.jenkins.len() };
        let mut tools = self.parts.tools.issue(has, &config.default_toolsets);
        tools.extend(self.parts.upstreams.iter().flat_map(|upstreams| upstreams.entries(&tenant)));
        let before = old.served.get(&tenant);
        let (vault, whose) = (self.parts.vault.clone(), tenant.clone());
        let secrets = Secrets::kept_by(move || vault.scrubber_of_all(&whose));
        let withheld = self.parts.upstreams.as_ref().map(|upstreams| upstreams.withheld(&tenant)).unwrap_or_default();
        let outside = Outside { secrets, withheld };
        match build(&config, &tools, outside, before.map(|before| &before.snapshot)) {
            Ok(snapshot) => {
                next.served.insert(tenant, Served { snapshot: Arc::new(snapshot), config, origin });
                true
            }
            Err(error) => {
                tracing::error!(%tenant, %error, "the tenant's catalog cannot be built");
                if let Some(before) = before {
                    next.served.insert(tenant, before.clone());
                }
                false
            }
        }
    }

    /// Sets everything outside the snapshot that a tenant's configuration speaks of.
    fn apply(&self, config: &TenantConfig) {
        self.parts.targets.set(config);
        match stores::of(&config.memory.stores) {
            Ok(stores) => self.parts.notebook.replace(&config.tenant, stores),
            // What was there before still holds, and a tenant that is new has the stores of the product.
            Err(error) => tracing::error!(tenant = %config.tenant, %error, "the tenant's stores cannot be used"),
        }
    }

    /// Takes away what [`Tenants::apply`] has set.
    fn withdraw(&self, tenant: &Tenant) {
        self.parts.targets.remove(tenant);
        self.parts.vault.drop_tenant(tenant);
    }

    /// Puts the new state in place of the old one and tells whose tools are different.
    pub(super) fn swap(&self, old: &State, next: State) {
        let digest = |state: &State, tenant| state.served.get(tenant).map(|s| s.snapshot.catalog.digest().to_owned());
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

impl State {
    fn wait_for(&mut self, tenant: &Tenant) {
        self.waiting.insert(tenant.clone());
    }
}
