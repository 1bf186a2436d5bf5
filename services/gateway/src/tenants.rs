//! Tenants as calls see them: one immutable snapshot each, swapped whole when its file changes.
//!
//! A reconciler: it takes no input, reads the folder, compares, and swaps. A bad file keeps what its tenant had before
//! and is reported; a file that is gone takes its tenant along.

use crate::stores;
use crate::targets::Targets;
use arc_swap::ArcSwap;
use catalog::{Catalog, Entry};
use domain::{Tenant, ToolsetName};
use executor::Snapshot;
use memory::Notebook;
use policy::Policy;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tenancy::{Book, Known, Problem, TenantConfig};
use tokio::sync::{Semaphore, broadcast};
use tools::{Has, Toolbox};

/// How many changes a slow stream may be behind before it is told once for all of them.
const BACKLOG: usize = 64;

/// What the tenants of this process are, now.
#[derive(Default)]
struct State {
    snapshots: HashMap<Tenant, Arc<Snapshot>>,
}

/// The tenants of this process.
pub struct Tenants {
    state: ArcSwap<State>,
    book: Mutex<Book>,
    problems: ArcSwap<Vec<Problem>>,
    tools: Toolbox,
    targets: Targets,
    notebook: Notebook,
    fixed: Mutex<HashMap<Tenant, Vec<Arc<Entry>>>>,
    dir: PathBuf,
    changes: broadcast::Sender<Tenant>,
}

impl Tenants {
    /// Tenants configured in a folder, who can be issued these tools.
    pub fn new(dir: &Path, tools: Toolbox, targets: Targets, notebook: Notebook) -> Tenants {
        Tenants {
            state: ArcSwap::default(),
            book: Mutex::default(),
            problems: ArcSwap::default(),
            tools,
            targets,
            notebook,
            fixed: Mutex::default(),
            dir: dir.to_owned(),
            changes: broadcast::Sender::new(BACKLOG),
        }
    }

    /// One tenant as it is now; `None` if it is not served here.
    pub fn find(&self, tenant: &Tenant) -> Option<Arc<Snapshot>> {
        self.state.load().snapshots.get(tenant).cloned()
    }

    /// All of them, as they are now.
    pub fn all(&self) -> Vec<(Tenant, Arc<Snapshot>)> {
        self.state.load().snapshots.iter().map(|(tenant, s)| (tenant.clone(), Arc::clone(s))).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.state.load().snapshots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is wrong with the files, as of the last look.
    pub fn problems(&self) -> Arc<Vec<Problem>> {
        self.problems.load_full()
    }

    /// Hears which tenant's tools changed.
    pub fn changes(&self) -> broadcast::Receiver<Tenant> {
        self.changes.subscribe()
    }

    /// The built-in tools.
    pub fn tools(&self) -> &[Arc<Entry>] {
        self.tools.every()
    }

    /// Looks at the folder once. `true` if anything is different from before.
    pub fn reload(&self) -> bool {
        let (toolsets, names) = known(self.tools());
        let reach = &self.targets.reach;
        let (server, charts) = (|address: &str| reach.server(address), |address: &str| reach.charts(address));
        let known = Known { toolsets: &toolsets, tools: &names, server: &server, charts: &charts };
        let mut book = Book::read(&self.dir, &known);
        let mut before = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.keep_from(&before, &self.dir);
        if *before == book {
            return false;
        }
        for problem in &book.problems {
            tracing::warn!(%problem, "a tenant's file is not used");
        }
        self.problems.store(Arc::new(book.problems.clone()));
        let configured: Vec<TenantConfig> = book.tenants.values().map(|page| page.config.clone()).collect();
        *before = book;
        drop(before);
        self.swap(&configured);
        true
    }

    /// Gives a tenant that no file configures exactly these tools, all of them by default (the conformance fixture).
    pub fn set_fixed(&self, tenant: &Tenant, tools: Vec<Arc<Entry>>) {
        self.fixed.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), tools);
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let configured: Vec<TenantConfig> = book.tenants.values().map(|page| page.config.clone()).collect();
        drop(book);
        self.swap(&configured);
    }

    fn swap(&self, configured: &[TenantConfig]) {
        let old = self.state.load_full();
        let mut next = State::default();
        let fixed = self.fixed.lock().unwrap_or_else(PoisonError::into_inner);
        for (tenant, tools) in fixed.iter() {
            add(&mut next, &old, &open_config(tenant, tools), tools);
        }
        drop(fixed);
        for config in configured {
            self.targets.set(config);
            match stores::of(&config.memory.stores) {
                Ok(stores) => self.notebook.replace(&config.tenant, stores),
                // What was there before still holds, and a tenant that is new has the stores of the product.
                Err(error) => tracing::error!(tenant = %config.tenant, %error, "the tenant's stores cannot be used"),
            }
            let has = Has { clusters: config.clusters.len(), servers: config.jenkins.len() };
            add(&mut next, &old, config, &self.tools.issue(has, &config.default_toolsets));
        }
        for tenant in old.snapshots.keys().filter(|tenant| !next.snapshots.contains_key(*tenant)) {
            self.targets.remove(tenant);
        }
        let digest = |state: &State, tenant| state.snapshots.get(tenant).map(|s| s.catalog.digest().to_owned());
        let changed: Vec<Tenant> = next
            .snapshots
            .keys()
            .chain(old.snapshots.keys().filter(|t| !next.snapshots.contains_key(*t)))
            .filter(|tenant| digest(&old, tenant) != digest(&next, tenant))
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

/// Names the validator knows.
pub fn known(tools: &[Arc<Entry>]) -> (Vec<&str>, Vec<&str>) {
    let mut toolsets: Vec<&str> = tools.iter().map(|e| e.definition().toolset.as_str()).collect();
    toolsets.dedup();
    (toolsets, tools.iter().map(|e| e.name().as_str()).collect())
}

fn add(next: &mut State, old: &State, config: &TenantConfig, tools: &[Arc<Entry>]) {
    let before = old.snapshots.get(&config.tenant);
    match snapshot(config, tools, before) {
        Ok(snapshot) => {
            next.snapshots.insert(config.tenant.clone(), Arc::new(snapshot));
        }
        Err(error) => {
            tracing::error!(tenant = %config.tenant, %error, "the tenant's catalog cannot be built");
            if let Some(before) = before {
                next.snapshots.insert(config.tenant.clone(), Arc::clone(before));
            }
        }
    }
}

fn snapshot(
    config: &TenantConfig,
    tools: &[Arc<Entry>],
    before: Option<&Arc<Snapshot>>,
) -> Result<Snapshot, catalog::catalog::BuildError> {
    let gates = config.gates();
    let rules = catalog::Rules { deny: &config.deny, gates: &gates };
    let catalog = Catalog::build(&config.tenant, tools.iter().cloned(), &config.default_toolsets, rules)?;
    // The same definitions keep the same catalog, and the same limit keeps the slots that calls are holding.
    let catalog = match before {
        Some(before) if before.catalog.digest() == catalog.digest() => Arc::clone(&before.catalog),
        Some(_) | None => Arc::new(catalog),
    };
    let in_flight = config.limits.calls_in_flight;
    let slots = match before {
        Some(before) if before.in_flight == in_flight => Arc::clone(&before.slots),
        Some(_) | None => Arc::new(Semaphore::new(usize::try_from(in_flight).unwrap_or(Semaphore::MAX_PERMITS))),
    };
    let policy = Policy {
        mode: config.mode,
        deny: config.deny.clone(),
        require_approval: gates,
        calls_per_minute: u64::from(config.limits.calls_per_minute),
    };
    let result_bytes = usize::try_from(config.limits.result_bytes).unwrap_or(usize::MAX);
    let approvals = executor::Approvals {
        expires: config.approval.expires,
        execute_within: config.approval.execute_within,
        deciders: config.approval.deciders,
        most_waiting: usize::try_from(config.approval.most_waiting).unwrap_or(usize::MAX),
        review: config.memory.review,
    };
    Ok(Snapshot { catalog, policy, approvals, result_bytes, slots, in_flight })
}

fn open_config(tenant: &Tenant, tools: &[Arc<Entry>]) -> TenantConfig {
    let mut default_toolsets: Vec<ToolsetName> = tools.iter().map(|e| e.definition().toolset.clone()).collect();
    default_toolsets.dedup();
    let only_read = tools.iter().all(|e| e.definition().most == domain::Effect::Read);
    TenantConfig {
        tenant: tenant.clone(),
        mode: if only_read { domain::Mode::Read } else { domain::Mode::Write },
        default_toolsets,
        clusters: Vec::new(),
        jenkins: Vec::new(),
        repositories: Vec::new(),
        deny: Vec::new(),
        require_approval: Vec::new(),
        approval: tenancy::Approval::default(),
        memory: tenancy::Memory::default(),
        limits: tenancy::Limits { calls_per_minute: 1_000_000, ..tenancy::Limits::default() },
    }
}
