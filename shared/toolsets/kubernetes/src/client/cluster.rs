//! One cluster, for one permit: what reads go through, and where a writer is had.

use crate::client::answer::ClusterResponse;
use crate::client::bounds::WorkloadBounds;
use crate::client::config::ClusterConfig;
use crate::client::connection::{ClientLane, ClusterConnection, NoClusterAnswer};
use crate::client::fault;
use crate::client::fields::FieldTree;
use crate::client::kinds::{ClusterKinds, Kind};
use crate::client::mask::{MaskDetail, Masker};
use crate::client::request::ClusterRequest;
use crate::codes;
use domain::{Code, Failure};
use http::Method;
use policy::Permit;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use target::BusyRetries;
use tokio::time::{Instant, sleep, timeout_at};

/// How long the calls through one handle may take together, unless said otherwise.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long discovery is believed.
const KINDS_FOR: Duration = Duration::from_secs(300);
/// The largest answer we take.
pub(in crate::client) const MOST_BYTES: usize = 32 * 1024 * 1024;
/// How long before a read is repeated for the first time.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// One cluster of the permit's tenant. Lives no longer than the permit.
pub struct Cluster<'p> {
    pub(in crate::client) connection: Arc<ClusterConnection>,
    pub(in crate::client) permit: &'p Permit,
    pub(in crate::client) deadline: Instant,
    masker: Masker,
}

impl<'p> Cluster<'p> {
    pub(in crate::client) fn new(connection: Arc<ClusterConnection>, permit: &'p Permit) -> Cluster<'p> {
        let masker = connection.masker.for_call();
        Cluster { connection, permit, deadline: Instant::now() + DEADLINE, masker }
    }

    /// The same handle, whose calls must all be done within this time from now.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Cluster<'p> {
        self.deadline = Instant::now() + time;
        self
    }

    /// How much of that time is left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.connection.config.name
    }

    /// Whether it is the sandbox.
    pub fn simulated(&self) -> bool {
        self.connection.config.simulated
    }

    /// Where a call without a namespace goes.
    pub fn default_namespace(&self) -> &str {
        &self.connection.config.default_namespace
    }

    /// The namespaces the tenant may use, as configured; `None` if it has no list.
    pub fn allowed(&self) -> Option<Vec<String>> {
        self.connection.config.namespaces.as_ref().map(|list| list.iter().map(ToString::to_string).collect())
    }

    /// Whether nothing may be changed in this namespace, whoever signs.
    pub fn protects(&self, namespace: &str) -> bool {
        self.connection.config.protects(namespace)
    }

    /// What workloads the tenant lets there be.
    pub fn bounds(&self) -> &WorkloadBounds {
        &self.connection.config.bounds
    }

    /// The kind a caller means: `Deployment`, `deployments`, `deploy`, `rollouts.argoproj.io`, `apps/v1/Deployment`.
    pub async fn kind(&self, text: &str) -> Result<Kind, Failure> {
        let (kinds, fresh) = self.discovered(false).await?;
        if let Some(found) = kinds.find(text) {
            return found;
        }
        // A kind may have been installed since we looked.
        let kinds = if fresh { kinds } else { self.discovered(true).await?.0 };
        kinds.find(text).unwrap_or_else(|| Err(kinds.unknown(text)))
    }

    /// Every kind the cluster knows.
    pub async fn kinds(&self) -> Result<Vec<Kind>, Failure> {
        Ok(self.discovered(false).await?.0.all().to_vec())
    }

    /// Fails unless the server of this kind takes dry runs: one that does not know the word would do what it is only asked
    /// to try. The API server's own kinds do, and those of its extensions if their OpenAPI document says so.
    pub(in crate::client) async fn takes_dry_runs(&self, kind: &Kind) -> Result<(), Failure> {
        if kind.is_built_in() {
            return Ok(());
        }
        let kinds = self.discovered(false).await?.0;
        if kinds.has_dry_runs(kind) {
            return Ok(());
        }
        if !kind.takes_dry_runs(&self.openapi(kind).await?) {
            let message = format!("the server of {} does not say that it takes dry runs", kind.full_name());
            return Err(Failure::new(codes::DRY_RUN_UNSUPPORTED, message)
                .next("do not retry; nothing of this kind can be tried or changed through this service"));
        }
        kinds.note_dry_runs(kind);
        Ok(())
    }

    pub(in crate::client) fn config(&self) -> &ClusterConfig {
        &self.connection.config
    }

    pub(in crate::client) fn masker(&self) -> &Masker {
        &self.masker
    }

    /// What discovery says, and whether it was asked just now.
    async fn discovered(&self, anew: bool) -> Result<(Arc<ClusterKinds>, bool), Failure> {
        // Whoever asks a silent cluster holds this for as long as it may; others wait no longer than they may.
        let lock = timeout_at(self.deadline, self.connection.kinds.lock()).await;
        let mut known = lock.map_err(|_| fault::of_read(&NoClusterAnswer::Late))?;
        if let Some((at, kinds)) = &*known
            && !anew
            && at.elapsed() < KINDS_FOR
        {
            return Ok((Arc::clone(kinds), false));
        }
        let kinds = Arc::new(self.discover().await?);
        *known = Some((Instant::now(), Arc::clone(&kinds)));
        Ok((kinds, true))
    }

    /// Asks for everything in two answers; an old server that answers in the old form is walked group by group.
    async fn discover(&self) -> Result<ClusterKinds, Failure> {
        const BOTH: &str = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json";
        let mut kinds = ClusterKinds::default();
        for root in ["/api", "/apis"] {
            let list = self.read_json(&ClusterRequest::fixed(Method::GET, root, root).accept(BOTH)).await?;
            if list["kind"] == "APIGroupDiscoveryList" {
                kinds.read_aggregated(&list);
            } else if root == "/api" {
                self.discover_plain(&mut kinds, "", "v1", true).await?;
            } else {
                for group in list["groups"].as_array().into_iter().flatten() {
                    let name = group["name"].as_str().unwrap_or_default();
                    let preferred = group["preferredVersion"]["version"].as_str().unwrap_or_default();
                    if crate::client::grammar::is_subdomain(name) && crate::client::grammar::is_label(preferred) {
                        self.discover_plain(&mut kinds, name, preferred, true).await?;
                    }
                }
            }
        }
        Ok(kinds)
    }

    async fn discover_plain(
        &self,
        kinds: &mut ClusterKinds,
        group: &str,
        version: &str,
        first: bool,
    ) -> Result<(), Failure> {
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match self.read_json(&ClusterRequest::fixed(Method::GET, path, "/apis/{group}/{version}")).await {
            Ok(list) => kinds.read_plain(group, version, first, &list),
            // An extension whose server is down hides its own kinds and nobody else's.
            Err(failure) if matches!(failure.code, target::codes::TARGET_BUSY | Code::NotFound) => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// A GET whose answer is JSON, not yet masked.
    pub(in crate::client) async fn read_json(&self, request: &ClusterRequest) -> Result<Value, Failure> {
        self.read_fields(request, &FieldTree::default()).await
    }

    /// A GET of whose JSON only some fields are read, not yet masked.
    pub(in crate::client) async fn read_fields(
        &self,
        request: &ClusterRequest,
        fields: &FieldTree,
    ) -> Result<Value, Failure> {
        let answer = self.read(ClientLane::Read, request).await?;
        let bytes = answer.bytes(MOST_BYTES, self.deadline).await.map_err(|lost| fault::of_read(&lost))?;
        fields.read(&bytes).map_err(|_| {
            let failure =
                Failure::new(target::codes::TARGET_UNREACHABLE, "the address answers, but not like a Kubernetes API");
            failure.next("ask an admin to check the cluster's address")
        })
    }

    /// A GET whose answer is masked JSON.
    pub(in crate::client) async fn read_masked(
        &self,
        request: &ClusterRequest,
        detail: MaskDetail,
    ) -> Result<Value, Failure> {
        let mut value = self.read_json(request).await?;
        self.masker().object(&mut value, detail);
        Ok(value)
    }

    /// A GET, repeated while the server is busy and the deadline allows. Anything but a 2xx is a failure.
    pub(in crate::client) async fn read(
        &self,
        lane: ClientLane,
        request: &ClusterRequest,
    ) -> Result<ClusterResponse, Failure> {
        let mut retries = if request.is_get() { BusyRetries::new(FIRST_WAIT) } else { BusyRetries::none() };
        loop {
            let answer =
                self.connection.send(lane, request, self.deadline).await.map_err(|lost| fault::of_read(&lost))?;
            let status = answer.status;
            if status.is_success() {
                return Ok(answer);
            }
            let asked = answer.retry_after;
            let Some(wait) = retries.next_wait(status.as_u16(), asked, self.deadline) else {
                let body = answer.bytes(64 * 1024, self.deadline).await.unwrap_or_default();
                return Err(fault::of_status(self.masker(), &request.about, status, asked, &body));
            };
            // The slot is for others while this call waits.
            drop(answer);
            sleep(wait).await;
        }
    }
}

impl std::fmt::Debug for Cluster<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster({} of {})", self.name(), self.permit.tenant())
    }
}
