//! The store as a whole: opened once, cloned freely, and of no use without a tenant.

use crate::audit_writer::AuditWriter;
use crate::config::StoreLocation;
use crate::duties::DutyStore;
use crate::embedded::Embedded;
use crate::error::{StoreError, StoreOpenError};
use crate::guard::{RecordCipher, RecordGuard, UnauthenticRecord};
use crate::health::HealthReport;
use crate::hub::Notifier;
use crate::keys::KeySpace;
use crate::lineage::{StoreEpoch, StoreEpochs};
use crate::measure;
use crate::ops::{HeldRecord, Op, OpResults, RawCommit};
use crate::redis::RedisBackend;
use crate::seal::Unsealed;
use crate::switches::{SwitchMemory, SwitchStore};
use crate::{Committed, Config, StoreLimits, TenantStore};
use domain::{Moment, Tenant, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use telemetry::metrics;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The state store. A clone is another handle to the same one.
#[derive(Clone)]
pub struct Store(Arc<StoreParts>);

struct StoreParts {
    backend: Arc<Backend>,
    writer: AuditWriter,
    unsealed: Arc<Unsealed>,
    tasks: TaskTracker,
    /// Ends the background tasks, on closing or with the last handle.
    stop: DropGuard,
    config: Config,
    limits: StoreLimits,
    replica: String,
    round_trips: Arc<AtomicU64>,
    open_receipts: Arc<AtomicI64>,
    guard: RecordGuard,
    switches: SwitchMemory,
}

/// The two backends, closed: everything above sees only this.
pub(crate) enum Backend {
    Redis(Box<RedisBackend>),
    Embedded(Embedded),
}

impl Backend {
    pub(crate) async fn run(&self, ops: &[Op]) -> Result<OpResults, StoreError> {
        let began = Instant::now();
        let results = match self {
            Backend::Redis(redis) => redis.run(ops).await,
            Backend::Embedded(embedded) => embedded.run(ops).await,
        };
        self.measured(measure::operation(ops), began, results.as_ref().err());
        results.map(OpResults::new)
    }

    /// Notes how long a round trip took, and why it failed.
    fn measured(&self, operation: &'static str, began: Instant, error: Option<&StoreError>) {
        let took = began.elapsed();
        metrics::STORE_DURATION.observe([self.name(), operation], took.as_secs_f64());
        let kind = error.and_then(measure::kind);
        if let Some(kind) = kind {
            metrics::STORE_ERRORS.add([kind], 1);
        }
        telemetry::store_round_trip(self.name(), operation, took, kind);
    }

    fn name(&self) -> &'static str {
        match self {
            Backend::Redis(_) => "redis",
            Backend::Embedded(_) => "redb",
        }
    }

    /// How long entries that nobody waits for may gather.
    pub(crate) fn gathers(&self) -> Duration {
        match self {
            // Long enough for a pipeline that is worth its round trip, short enough that it holds nobody up.
            Backend::Redis(_) => Duration::from_millis(5),
            // A sync is dear, and under load one for others comes along soon.
            Backend::Embedded(_) => Duration::from_millis(50),
        }
    }

    async fn commit(&self, commit: RawCommit) -> Result<Committed, StoreError> {
        let began = Instant::now();
        let committed = match self {
            Backend::Redis(redis) => redis.commit(&commit).await,
            Backend::Embedded(embedded) => embedded.commit(commit).await,
        };
        self.measured("cas", began, committed.as_ref().err());
        if let Ok(Committed::Conflict(..)) = &committed {
            metrics::STORE_ERRORS.add(["conflict"], 1);
        }
        committed
    }
}

impl Store {
    /// Opens the store. A Redis that is away is waited for in the background; a file that is locked or damaged is an
    /// error, a missing one is made. Nothing is sealed: this is for tests, and for looking whether the store answers.
    pub async fn open(config: &Config) -> Result<Store, StoreOpenError> {
        Store::open_with(config, StoreLimits::default()).await
    }

    /// The same, with these limits.
    pub async fn open_with(config: &Config, limits: StoreLimits) -> Result<Store, StoreOpenError> {
        Store::start(config, RecordGuard::new(None), limits).await
    }

    /// Opens the store so that what something is done by is sealed with this cipher, and used only if it was.
    pub async fn open_sealed(config: &Config, cipher: Arc<dyn RecordCipher>) -> Result<Store, StoreOpenError> {
        Store::open_sealed_with(config, cipher, StoreLimits::default()).await
    }

    /// The same, with these limits.
    pub async fn open_sealed_with(
        config: &Config,
        cipher: Arc<dyn RecordCipher>,
        limits: StoreLimits,
    ) -> Result<Store, StoreOpenError> {
        Store::start(config, RecordGuard::new(Some(cipher)), limits).await
    }

    async fn start(config: &Config, guard: RecordGuard, limits: StoreLimits) -> Result<Store, StoreOpenError> {
        let place = config.place()?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let backend = Arc::new(match place {
            StoreLocation::Redis => Backend::Redis(Box::new(RedisBackend::open(config, &tasks, &stop).await?)),
            StoreLocation::File(path) => Backend::Embedded(Embedded::open(Some(path), config).await?),
            StoreLocation::Memory => Backend::Embedded(Embedded::open(None, config).await?),
        });
        let (round_trips, unsealed) = (Arc::<AtomicU64>::default(), Arc::<Unsealed>::default());
        let (backends, trips, seals) = (Arc::clone(&backend), Arc::clone(&round_trips), Arc::clone(&unsealed));
        let writer = AuditWriter::new(backends, config.deadline, trips, seals);
        let mut bits = [0; 8];
        getrandom::fill(&mut bits).map_err(|error| StoreOpenError::System(error.into()))?;
        Ok(Store(Arc::new(StoreParts {
            backend,
            writer,
            unsealed,
            tasks,
            stop: stop.drop_guard(),
            config: config.clone(),
            limits,
            replica: format!("rep_{}", json::hex(&bits)),
            round_trips,
            open_receipts: Arc::default(),
            guard,
            switches: SwitchMemory::default(),
        })))
    }

    /// What belongs to one tenant: the only way to data.
    pub fn of(&self, tenant: &Tenant) -> TenantStore {
        TenantStore::new(self.clone(), tenant.clone(), KeySpace::of(&self.0.config.prefix, tenant))
    }

    /// The store's own time.
    pub async fn now(&self) -> Result<Moment, StoreError> {
        self.run(&[Op::Now]).await?.now()
    }

    /// Looks whether the store answers, takes changes and is set up to keep them.
    pub async fn health(&self) -> HealthReport {
        match self.0.backend.as_ref() {
            Backend::Redis(redis) => redis.health(self.0.config.accept_unsafe).await,
            Backend::Embedded(embedded) => embedded.health().await,
        }
    }

    /// Which store this is, and whether it is still the one it was.
    pub fn lineages(&self) -> StoreEpochs {
        match self.0.backend.as_ref() {
            Backend::Redis(redis) => redis.lineages(),
            Backend::Embedded(_) => StoreEpochs::constant(),
        }
    }

    /// How many records this process has found not to be authentic and has not seen mended since.
    pub fn unauthentic(&self) -> usize {
        self.0.guard.findings()
    }

    /// The records that were found not to be authentic since this was last asked, to be put into the audit log.
    pub fn newly_unauthentic(&self) -> Vec<UnauthenticRecord> {
        self.0.guard.take_new()
    }

    /// What is due in all tenants.
    pub fn duties(&self) -> DutyStore {
        DutyStore::new(self.clone())
    }

    /// Starts work in the background that ends with the store.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.0.stop.token().clone();
        self.0.tasks.spawn(async move { stop.run_until_cancelled(work).await });
    }

    /// The kill switches of all tenants.
    pub fn switches(&self) -> SwitchStore {
        SwitchStore::new(self.clone())
    }

    pub(crate) fn switch_memory(&self) -> &SwitchMemory {
        &self.0.switches
    }

    pub(crate) fn guard(&self) -> &RecordGuard {
        &self.0.guard
    }

    pub(crate) fn epoch(&self) -> StoreEpoch {
        match self.0.backend.as_ref() {
            Backend::Redis(redis) => redis.lineages().now(),
            // One file, and never another.
            Backend::Embedded(_) => StoreEpoch { generation: 1, since: None },
        }
    }

    /// Writes what is queued for the audit log, then lets go of connections and files. Calls fail from here on.
    pub async fn close(&self) {
        self.0.writer.close().await;
        self.0.stop.token().cancel();
        if let Backend::Embedded(embedded) = self.0.backend.as_ref() {
            embedded.close().await;
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Which backend this is: `redis` or `redb`.
    pub fn backend(&self) -> &'static str {
        self.0.backend.name()
    }

    /// The name under which this process writes, drawn at opening.
    pub fn replica(&self) -> &str {
        &self.0.replica
    }

    /// How many round trips somebody has waited for, so that tests can hold paths to their number.
    pub fn round_trips(&self) -> u64 {
        self.0.round_trips.load(Ordering::Relaxed)
    }

    /// How many receipts this process has opened and not closed.
    pub fn open_receipts(&self) -> i64 {
        self.0.open_receipts.load(Ordering::Relaxed)
    }

    /// How much is stored for one tenant and one caller at most.
    pub fn limits(&self) -> &StoreLimits {
        &self.0.limits
    }

    pub(crate) fn receipts(&self) -> &AtomicI64 {
        &self.0.open_receipts
    }

    /// Tells the trace of a call of a round trip that the call waited for and others shared.
    pub(crate) fn tell_shared_round_trip(&self, operation: &'static str, began: Instant, error: Option<&StoreError>) {
        let error = error.and_then(measure::kind);
        telemetry::store_round_trip(self.0.backend.name(), operation, began.elapsed(), error);
    }

    pub(crate) fn writer(&self) -> &AuditWriter {
        &self.0.writer
    }

    pub(crate) fn unsealed(&self) -> &Unsealed {
        &self.0.unsealed
    }

    /// Waits until this process has written to the audit log of a tenant that was sealed to its end before.
    pub async fn has_unsealed(&self) {
        self.0.unsealed.added().await;
    }

    /// The tenants whose audit log this process has written to since they were last taken.
    pub fn unsealed_tenants(&self) -> BTreeSet<Tenant> {
        self.0.unsealed.all()
    }

    /// The tenants whose audit log this process has written to since this was last asked, to be sealed.
    pub fn take_unsealed(&self) -> BTreeSet<Tenant> {
        self.0.unsealed.take()
    }

    pub(crate) fn hub(&self) -> &Arc<Notifier> {
        match self.0.backend.as_ref() {
            Backend::Redis(redis) => redis.hub(),
            Backend::Embedded(embedded) => embedded.hub(),
        }
    }

    pub(crate) async fn run(&self, ops: &[Op]) -> Result<OpResults, StoreError> {
        crate::failpoint::round_trip().await?;
        self.0.round_trips.fetch_add(1, Ordering::Relaxed);
        self.0.backend.run(ops).await
    }

    /// The same for what belongs to no call: it is not counted among the round trips that somebody waits for.
    pub(crate) async fn run_apart(&self, ops: &[Op]) -> Result<OpResults, StoreError> {
        self.0.backend.run(ops).await
    }

    pub(crate) async fn commit(&self, commit: RawCommit) -> Result<Committed, StoreError> {
        crate::failpoint::round_trip().await?;
        self.0.round_trips.fetch_add(1, Ordering::Relaxed);
        self.0.backend.commit(commit).await
    }

    /// Whether others have what was written before; `None` where there are none who should.
    pub(crate) async fn confirm(
        &self,
        record: &str,
        ack: &str,
        within: Duration,
    ) -> Result<Option<HeldRecord>, StoreError> {
        match self.0.backend.as_ref() {
            Backend::Redis(redis) if redis.confirms(record) => {
                self.0.round_trips.fetch_add(1, Ordering::Relaxed);
                redis.confirm(record, ack, within).await.map(Some)
            }
            Backend::Redis(_) | Backend::Embedded(_) => Ok(None),
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("backend", &self.backend()).finish_non_exhaustive()
    }
}
