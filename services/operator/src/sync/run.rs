//! The loop of `sync`: what the resources say, what the gateway says of it, and what is therefore in the folder.
//!
//! Nothing is written before the first whole list of every kind is there, and an API server that is away changes nothing:
//! the folder stays as it was.

use super::folder::{FileContents, SyncFolders, is_file_name};
use super::offer::TenantOffer;
use super::presence::ReplicaLease;
use super::report::{FolderReport, ReportFile};
use crate::resources::{LanguageTool, ServerEntry, TenantResource, TokenReference};
use crate::serve::Reached;
use crate::tenant::sources::resolve;
use crate::tenant::tenant_of;
use crate::tenant::text::{TenantFileText, render, secrets_of, text_digest};
use futures_util::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use telemetry::metrics;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How often the gateway's report is looked at.
const REPORT_EVERY: Duration = Duration::from_millis(200);
/// The largest secret that is written.
const LARGEST_SECRET: usize = 256 << 10;

/// What `sync` is told when it starts.
#[derive(Debug, Clone)]
pub struct SyncSettings {
    /// The one namespace that it looks at; all of them without it.
    pub watch: Option<String>,
    /// The namespace it runs in: where its lease is.
    pub namespace: String,
    /// Which replica it stands beside.
    pub identity: String,
    /// The pod that its lease goes with.
    pub pod_uid: Option<String>,
    /// The domain of the cluster's own names.
    pub cluster_domain: String,
    /// What the namespaces of tenants begin with.
    pub namespace_prefix: String,
    /// How often Secrets are read again.
    pub secrets_every: Duration,
    /// How long its lease lasts without being renewed.
    pub lease: Duration,
    /// The gateway's folders.
    pub folders: SyncFolders,
    /// The gateway's report.
    pub report: PathBuf,
}

/// Everything of the cluster that texts are made of.
struct ClusterView {
    tenants: Store<TenantResource>,
    entries: Store<ServerEntry>,
    tools: Store<LanguageTool>,
}

/// Keeps the folder until told to stop. Fails if the folder is somebody else's.
pub async fn run(
    client: Client,
    settings: SyncSettings,
    reached: &Reached,
    stopping: CancellationToken,
) -> std::io::Result<()> {
    settings.folders.claim()?;
    let changed = Arc::new(Notify::new());
    let (tenants, tenant_watch) = watch::<TenantResource>(&client, &settings, &changed);
    let (entries, entry_watch) = watch::<ServerEntry>(&client, &settings, &changed);
    let (tools, tool_watch) = watch::<LanguageTool>(&client, &settings, &changed);
    let view = ClusterView { tenants, entries, tools };
    let work = async {
        let ready = async {
            view.tenants.wait_until_ready().await.is_ok()
                && view.entries.wait_until_ready().await.is_ok()
                && view.tools.wait_until_ready().await.is_ok()
        };
        if !ready.await {
            return;
        }
        let lease = ReplicaLease::new(&client, &settings);
        let report = ReportFile::at(settings.report.clone());
        let mut state = SyncState {
            client: client.clone(),
            lease,
            report,
            settings: settings.clone(),
            offers: BTreeMap::new(),
            wanted_secrets: BTreeMap::new(),
            secrets: HashMap::new(),
            process: String::new(),
        };
        let mut reports = tokio::time::interval(REPORT_EVERY);
        reports.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut is_changed, mut is_pending) = (true, true);
        loop {
            if is_changed {
                state.gather(&view);
            }
            is_pending |= state.read_report() | is_changed | state.has_due_secrets();
            if is_pending {
                // What could not be written is tried again.
                is_pending = !state.write().await;
            }
            state.renew().await;
            reached.store(true, Ordering::Relaxed);
            is_changed = tokio::select! {
                () = changed.notified() => true,
                _ = reports.tick() => false,
            };
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = work => {}
        () = tenant_watch => {}
        () = entry_watch => {}
        () = tool_watch => {}
    }
    let lease = ReplicaLease::new(&client, &settings);
    if let Err(error) = lease.remove().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "the lease could not be removed; it ends by itself");
    }
    Ok(())
}

/// A list that follows the cluster, and what makes it follow.
fn watch<K>(
    client: &Client,
    settings: &SyncSettings,
    changed: &Arc<Notify>,
) -> (Store<K>, impl Future<Output = ()> + use<K>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    let api: Api<K> = match &settings.watch {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let (reader, writer) = store();
    let changed = Arc::clone(changed);
    let events = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
    let following = events.for_each(move |event| {
        match event {
            Ok(_) => changed.notify_one(),
            Err(error) => {
                let kind = K::kind(&());
                tracing::warn!(%kind, error = error.to_string(), "a watch was interrupted, and begins anew");
            }
        }
        std::future::ready(())
    });
    (reader, following)
}

/// A Secret's value, as it was last read.
struct ReadSecret {
    at: Instant,
    value: Option<Vec<u8>>,
}

/// A secret of a tenant: the name of its file, and where it is.
type WantedSecret = (String, SecretKey);
/// A namespace, and a key of a Secret in it.
type SecretKey = (String, TokenReference);

struct SyncState {
    client: Client,
    settings: SyncSettings,
    lease: ReplicaLease,
    report: ReportFile,
    offers: BTreeMap<String, TenantOffer>,
    wanted_secrets: BTreeMap<String, Vec<WantedSecret>>,
    secrets: HashMap<SecretKey, ReadSecret>,
    /// The process of the gateway whose report was read last.
    process: String,
}

impl SyncState {
    /// Takes in what the resources say.
    fn gather(&mut self, view: &ClusterView) {
        let entries = by_namespace(&view.entries);
        let tools = by_namespace(&view.tools);
        let mut seen = BTreeSet::new();
        self.wanted_secrets.clear();
        for resource in view.tenants.state() {
            let namespace = resource.namespace().unwrap_or_default();
            let name = tenant_of(&namespace, &self.settings.namespace_prefix);
            let Some(tenant) = name.filter(|name| *name == resource.name_any()) else { continue };
            if resource.metadata.deletion_timestamp.is_some() {
                continue;
            }
            let (entries, tools) = (entries.get(&namespace), tools.get(&namespace));
            let entries = entries.map_or(&[][..], Vec::as_slice);
            let servers = resolve(entries, tools.map_or(&[][..], Vec::as_slice), &self.settings.cluster_domain).servers;
            seen.insert(tenant.to_owned());
            let accepted = resource.status.as_ref().and_then(|status| status.accepted.as_ref());
            match (render(tenant, &resource.spec, &servers), self.offers.get_mut(tenant)) {
                (Ok(text), Some(offer)) => offer.want(text),
                (Ok(text), None) => drop(self.offers.insert(tenant.to_owned(), TenantOffer::new(text, accepted))),
                // The operator says so in its status. What was offered before stays, or what replicas took last.
                (Err(_), Some(_)) => {}
                (Err(_), None) => {
                    let last = accepted.filter(|last| text_digest(&last.text) == last.digest);
                    let offer = last.map(|last| TenantOffer::new(TenantFileText::of_text(&last.text), None));
                    self.offers.extend(offer.map(|offer| (tenant.to_owned(), offer)));
                }
            }
            let secrets = secrets_of(&resource.spec, &servers).into_iter().filter(|(name, _)| is_file_name(name));
            let secrets = secrets.map(|(name, reference)| (name, (namespace.clone(), reference)));
            self.wanted_secrets.insert(tenant.to_owned(), secrets.collect());
        }
        self.offers.retain(|tenant, _| seen.contains(tenant));
    }

    /// Makes the folders be what is wanted. `false` if some of it could not be done.
    async fn write(&mut self) -> bool {
        // Secrets first: a tenant that appears has them.
        let secrets = self.write_secrets().await;
        let texts = self.offers.iter().map(|(tenant, offer)| (tenant.clone(), offer.text().to_owned())).collect();
        match self.settings.folders.write_texts(&texts) {
            Ok(0) => {}
            Ok(changes) => {
                metrics::OPERATOR_WRITES.add(["file"], changes as u64);
                tracing::info!(changes, tenants = texts.len(), "the folder of the gateway was changed");
            }
            Err(error) => {
                tracing::error!(%error, "the folder of the gateway cannot be written");
                return false;
            }
        }
        secrets
    }

    /// Tells the cluster that this replica is there, and what became of its tenants.
    async fn renew(&mut self) {
        let report = self.offers.iter().map(|(tenant, offer)| (tenant.clone(), offer.verdict())).collect();
        if let Err(error) = self.lease.renew(&report).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the lease of this replica cannot be written");
        }
    }

    /// Takes in what the gateway says; `true` if it is something else than before.
    fn read_report(&mut self) -> bool {
        let Some(FolderReport { process, tenants }) = self.report.changed() else { return false };
        for (tenant, report) in &tenants {
            if let Some(offer) = self.offers.get_mut(tenant) {
                offer.judge(report);
            }
        }
        // A process that has just begun serves what it found; now it is asked about what is wanted.
        if std::mem::replace(&mut self.process, process.clone()) != process {
            let refused = self.offers.values_mut().filter(|offer| !offer.verdict().errors.is_empty());
            refused.for_each(TenantOffer::ask_again);
        }
        true
    }

    /// Whether some secret is to be read again.
    fn has_due_secrets(&self) -> bool {
        let mut wanted = self.wanted_secrets.values().flatten();
        wanted.any(|(_, key)| !self.secrets.get(key).is_some_and(|read| self.is_fresh(read)))
    }

    fn is_fresh(&self, read: &ReadSecret) -> bool {
        read.at.elapsed() < self.settings.secrets_every
    }

    async fn write_secrets(&mut self) -> bool {
        let wanted = self.wanted_secrets.clone();
        let mut files: BTreeMap<String, FileContents> = BTreeMap::new();
        for (tenant, secrets) in &wanted {
            let of_tenant = files.entry(tenant.clone()).or_default();
            for (name, key) in secrets {
                if let Some(value) = self.secret(key).await {
                    of_tenant.insert(name.clone(), value);
                }
            }
        }
        let used: HashSet<&SecretKey> = wanted.values().flatten().map(|(_, key)| key).collect();
        self.secrets.retain(|key, _| used.contains(key));
        match self.settings.folders.write_secrets(&files) {
            Ok(0) => {}
            Ok(changes) => metrics::OPERATOR_WRITES.add(["secret_file"], changes as u64),
            Err(error) => {
                tracing::error!(%error, "the secrets of tenants cannot be written");
                return false;
            }
        }
        true
    }

    /// The value of a secret; read again every so often. One that cannot be asked for stays as it was, one that is gone is
    /// gone.
    async fn secret(&mut self, key: &SecretKey) -> Option<Vec<u8>> {
        if let Some(read) = self.secrets.get(key).filter(|read| self.is_fresh(read)) {
            return read.value.clone();
        }
        let (namespace, TokenReference { name, key: entry }) = key;
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let value = match api.get_opt(name).await {
            Ok(secret) => {
                let value = secret.and_then(|secret| secret.data?.remove(entry)).map(|value| value.0);
                value.filter(|value| !value.is_empty() && value.len() <= LARGEST_SECRET)
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a Secret cannot be read");
                self.secrets.get(key).and_then(|read| read.value.clone())
            }
        };
        self.secrets.insert(key.clone(), ReadSecret { at: Instant::now(), value: value.clone() });
        value
    }
}

/// The objects of each namespace.
fn by_namespace<K: Resource<DynamicType = ()> + Clone>(store: &Store<K>) -> HashMap<String, Vec<K>> {
    let mut all: HashMap<String, Vec<K>> = HashMap::new();
    for object in store.state() {
        all.entry(object.namespace().unwrap_or_default()).or_default().push(K::clone(&object));
    }
    all
}
