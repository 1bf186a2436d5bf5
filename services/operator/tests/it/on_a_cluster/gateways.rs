//! Real replicas of the gateway, each with a `sync` beside it, as in the pods of the chart.
//!
//! The gateway is the program itself, on one Redis; nobody starts containers here, so the test starts it in place of a
//! kubelet. `sync` runs in the test's own process, with exactly the rights that the chart gives it.

use crate::on_a_cluster::yard::Yard;
use operator::discover::{DiscoverError, ToolAddress, list_tools};
use operator::sync::folder::SyncFolders;
use operator::sync::{SyncSettings, run};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{Plan, Process, World};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The replicas of one test.
pub(crate) struct Gateways {
    pub(crate) world: World<Process>,
    /// Which replica is started next.
    next: Arc<Mutex<VecDeque<usize>>>,
    syncs: Vec<Option<RunningSync>>,
    folder: PathBuf,
    namespace: String,
}

/// A `sync` in the test's process.
pub(crate) struct RunningSync {
    task: JoinSet<()>,
    stopping: CancellationToken,
}

impl RunningSync {
    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.task.abort_all();
    }

    /// Stops it in order.
    pub(crate) async fn stop(mut self) {
        self.stopping.cancel();
        self.task.join_next().await.unwrap().unwrap();
    }
}

/// The gateway's program: beside this one, or where the environment says.
pub(crate) fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("QUARTERMASTER_TEST_BIN").filter(|path| !path.is_empty()) {
        return path.into();
    }
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("quartermaster")
}

/// Where a replica's files are.
pub(crate) fn folder_of(folder: &Path, replica: usize) -> SyncFolders {
    let place = folder.join(format!("replica-{replica}"));
    SyncFolders { tenants: place.join("tenants"), secrets: place.join("secrets") }
}

pub(crate) fn report_of(folder: &Path, replica: usize) -> PathBuf {
    folder.join(format!("replica-{replica}/report.json"))
}

/// Begins a `sync` for a folder.
pub(crate) async fn sync(yard: &Yard, folder: &Path, replica: usize) -> RunningSync {
    sync_from(yard, &yard.namespace, folder, replica).await
}

/// The texts in the folder of a replica.
pub(crate) fn texts_in(folder: &SyncFolders) -> usize {
    let names =
        std::fs::read_dir(&folder.tenants).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".yaml")).count()
}

/// The same, which looks at another namespace than the one it stands in.
pub(crate) async fn sync_from(yard: &Yard, watch: &str, folder: &Path, replica: usize) -> RunningSync {
    start_sync(yard, sync_settings(yard, watch, folder, replica)).await
}

pub(crate) fn sync_settings(yard: &Yard, watch: &str, folder: &Path, replica: usize) -> SyncSettings {
    SyncSettings {
        watch: Some(watch.to_owned()),
        namespace: yard.namespace.clone(),
        identity: format!("gateway-{replica}"),
        pod_uid: None,
        cluster_domain: "cluster.local".to_owned(),
        namespace_prefix: String::new(),
        secrets_every: Duration::from_secs(1),
        lease: Duration::from_secs(300),
        folders: folder_of(folder, replica),
        report: report_of(folder, replica),
    }
}

/// Begins a `sync` with these settings.
pub(crate) async fn start_sync(yard: &Yard, settings: SyncSettings) -> RunningSync {
    let client = yard.sync_client(&settings.identity).await;
    let stopping = CancellationToken::new();
    let (stop, mut task) = (stopping.clone(), JoinSet::new());
    task.spawn(async move { run(client, settings, &Arc::default(), stop).await.unwrap() });
    RunningSync { task, stopping }
}

impl Gateways {
    /// Starts so many replicas for the tenant of the yard.
    pub(crate) async fn start(yard: &Yard, replicas: usize, settings: &[(&str, &str)]) -> Gateways {
        let folder = std::env::temp_dir().join(format!("quartermaster-gateways-{}", yard.namespace));
        let next = Arc::new(Mutex::new((0..replicas).collect::<VecDeque<usize>>()));
        let mut plan = Plan::redis(replicas).setting("QM_TENANTS__RELOAD_EVERY", "1m");
        for (key, value) in settings {
            plan = plan.setting(key, value);
        }
        let (place, order) = (folder.clone(), Arc::clone(&next));
        #[expect(clippy::disallowed_methods, reason = "a test's own process, never part of the service")]
        let start = Process::started_by(move |setup| {
            let replica = order.lock().unwrap().pop_front().expect("the test should say which replica");
            let folders = folder_of(&place, replica);
            std::fs::create_dir_all(&folders.tenants).unwrap();
            std::fs::create_dir_all(&folders.secrets).unwrap();
            let mut command = Command::new(program());
            command.args(["serve", "--config"]).arg(&setup.config);
            command.env("QM_TENANTS__DIR", &folders.tenants).env("QM_TENANTS__SECRETS", &folders.secrets);
            command.env("QM_TENANTS__REPORT", report_of(&place, replica));
            command
        });
        let world = plan.start(start).await;
        let mut gateways = Gateways { world, next, syncs: Vec::new(), folder, namespace: yard.namespace.clone() };
        for replica in 0..replicas {
            let sync = sync(yard, &gateways.folder, replica).await;
            gateways.syncs.push(Some(sync));
        }
        gateways
    }

    /// The files of a replica.
    pub(crate) fn folders(&self, replica: usize) -> SyncFolders {
        folder_of(&self.folder, replica)
    }

    /// What an agent of the tenant sees at a replica.
    pub(crate) async fn tools(&self, replica: usize) -> Result<Vec<String>, DiscoverError> {
        let token = self.world.tenant(&self.namespace).agent().token().to_owned();
        let url = format!("http://{}/mcp", self.world.address(replica));
        let tools = list_tools(&ToolAddress { url, token: Some(token), lookup: None }).await?;
        Ok(tools.into_iter().map(|tool| tool.name).collect())
    }

    /// Kills the process of a replica and starts it anew, with the files that it had.
    pub(crate) async fn restart(&mut self, replica: usize) {
        self.world.part(replica).kill();
        drop(self.world.take(replica));
        self.next.lock().unwrap().push_back(replica);
        self.world.begin(replica).await;
    }

    /// Stops a replica's `sync`, forgets its files, and begins anew: as a new pod.
    pub(crate) async fn replace(&mut self, yard: &Yard, replica: usize) {
        self.syncs[replica].take().unwrap().stop().await;
        self.world.part(replica).kill();
        drop(self.world.take(replica));
        std::fs::remove_dir_all(self.folder.join(format!("replica-{replica}"))).unwrap();
        self.next.lock().unwrap().push_back(replica);
        self.world.begin(replica).await;
        self.syncs[replica] = Some(sync(yard, &self.folder, replica).await);
    }

    /// Stops a replica's `sync` alone.
    pub(crate) async fn leave(&mut self, replica: usize) {
        self.syncs[replica].take().unwrap().stop().await;
    }

    /// Starts it again.
    pub(crate) async fn come_back(&mut self, yard: &Yard, replica: usize) {
        self.syncs[replica] = Some(sync(yard, &self.folder, replica).await);
    }

    /// Stops everything.
    pub(crate) async fn stop(mut self) {
        for sync in self.syncs.drain(..).flatten() {
            sync.stop().await;
        }
        let folder = self.folder.clone();
        drop(self);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
