//! The connection to one cluster: its clients, how many requests may be under way, and what is sent over it.
//!
//! Clients are built by [`crate::client::connect`] and nowhere else.
//! A request goes out once. Only a 401 sends it a second time, with a credential read afresh: a server that does not
//! know us has done nothing for us.

use crate::client::answer::ClusterResponse;
use crate::client::config::{ClusterConfig, ClusterEndpoint};
use crate::client::connect::{Clients, connect, is_unconnected};
use crate::client::kinds::ClusterKinds;
use crate::client::kubeconfig::{self, BadSource, LoadedKubeconfig, SourceStamp};
use crate::client::mask::Masker;
use crate::client::request::ClusterRequest;
use domain::Tenant;
use futures_util::TryFutureExt;
use http::StatusCode;
use kube::client::Body;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use target::{Connection, ConnectionLoad, NoAnswer, TargetSlot, TargetSlots, connection};
use tokio::time::Instant;

/// How many requests of one tenant may be under way to one cluster.
const SLOTS: usize = 32;
/// How many watches, log streams and executions besides.
const STREAM_SLOTS: usize = 64;
/// How often the files of a source are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which client a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum ClientLane {
    Read,
    Write,
    /// No limit on silence: watches, logs and executions have deadlines of their own.
    Stream,
}

/// Why there is no answer.
pub(in crate::client) type NoClusterAnswer = NoAnswer<BadSource>;

pub(in crate::client) struct ClusterConnection {
    pub(in crate::client) tenant: Tenant,
    pub(in crate::client) config: ClusterConfig,
    pub(in crate::client) masker: Masker,
    connection: Connection,
    /// Besides, so that those who listen take no slot from those who ask.
    streams: TargetSlots,
    clients: Mutex<Option<CachedClients>>,
    /// Held while the source is read, so that a hundred waiting calls read it once.
    loading: tokio::sync::Mutex<()>,
    pub(in crate::client) kinds: tokio::sync::Mutex<Option<(Instant, Arc<ClusterKinds>)>>,
}

struct CachedClients {
    clients: Arc<Clients>,
    fingerprint: [u8; 32],
    place: [u8; 32],
    stamp: SourceStamp,
    looked: Instant,
}

impl ClusterConnection {
    pub(in crate::client) fn new(tenant: Tenant, config: ClusterConfig, masker: Masker) -> ClusterConnection {
        ClusterConnection {
            connection: Connection::new("cluster", &config.name, SLOTS),
            tenant,
            config,
            masker,
            streams: TargetSlots::new(STREAM_SLOTS),
            clients: Mutex::new(None),
            loading: tokio::sync::Mutex::new(()),
            kinds: tokio::sync::Mutex::new(None),
        }
    }

    pub(in crate::client) fn pressure(&self) -> ConnectionLoad {
        self.connection.load()
    }

    /// Where requests go and whom they act as, once one was sent: see [`LoadedKubeconfig::place`].
    pub(in crate::client) fn place(&self) -> Option<[u8; 32]> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|known| known.place)
    }

    /// Sends a request and waits for the head of its answer.
    pub(in crate::client) async fn send(
        &self,
        lane: ClientLane,
        request: &ClusterRequest,
        deadline: Instant,
    ) -> Result<ClusterResponse, NoClusterAnswer> {
        let span = target::request_span!("kubernetes", request.method.as_str(), request.route, self.tenant);
        let status = |answer: &ClusterResponse| answer.status.as_u16();
        let exchange = async {
            let slot = self.slot(lane, deadline).await?;
            let mut clients = self.clients().await?;
            let mut renewed = false;
            loop {
                let sending = clients.of(lane).send(http_request(request)?);
                let answer = self.connection.send_once(deadline, sending.map_err(lost)).await?;
                if answer.status() == StatusCode::UNAUTHORIZED
                    && !renewed
                    && let Some(fresh) = self.renew(&clients).await
                {
                    (clients, renewed) = (fresh, true);
                    continue;
                }
                return Ok(ClusterResponse::new(answer, slot));
            }
        };
        // On the heap: every tool's future holds this one, and futures are moved about.
        connection::in_span(span, status, Box::pin(exchange)).await
    }

    async fn slot(&self, lane: ClientLane, deadline: Instant) -> Result<TargetSlot, NoClusterAnswer> {
        match lane {
            ClientLane::Read | ClientLane::Write => self.connection.slot(deadline).await,
            ClientLane::Stream => self.streams.take(deadline).await.map_err(|_| NoClusterAnswer::Crowded),
        }
    }

    /// A client for what is not one request and one answer (WebSocket), with the slot it holds.
    pub(in crate::client) async fn stream_client(
        &self,
        deadline: Instant,
    ) -> Result<(kube::Client, TargetSlot), NoClusterAnswer> {
        let slot = self.slot(ClientLane::Stream, deadline).await?;
        Ok((self.clients().await?.streams.clone(), slot))
    }

    /// The clients, built on first use and again when a file of the source has changed.
    async fn clients(&self) -> Result<Arc<Clients>, NoClusterAnswer> {
        let looked_at = {
            let mut known = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            match known.as_mut() {
                Some(known) if known.looked.elapsed() < LOOK_EVERY => return Ok(Arc::clone(&known.clients)),
                Some(known) => {
                    // Others go on with what is known while this call looks.
                    known.looked = Instant::now();
                    Some((known.stamp.clone(), Arc::clone(&known.clients)))
                }
                None => None,
            }
        };
        let Some((stamp, clients)) = looked_at else {
            return self.load(None).await.map_err(NoClusterAnswer::Credential);
        };
        if stamp.now().await == stamp {
            return Ok(clients);
        }
        match self.load(Some(&clients)).await {
            Ok(fresh) => Ok(fresh),
            // Somebody took it away, and means it.
            Err(BadSource::Gone) => {
                *self.clients.lock().unwrap_or_else(PoisonError::into_inner) = None;
                Err(NoClusterAnswer::Credential(BadSource::Gone))
            }
            // A file in the middle of being replaced is looked at again in a second; until then the old one serves.
            Err(_) => Ok(clients),
        }
    }

    /// Reads the source, unless somebody else did so while this call waited: then theirs is as fresh.
    async fn load(&self, before: Option<&Arc<Clients>>) -> Result<Arc<Clients>, BadSource> {
        let _one = self.loading.lock().await;
        if let Some(known) = &*self.clients.lock().unwrap_or_else(PoisonError::into_inner)
            && before.is_none_or(|before| !Arc::ptr_eq(before, &known.clients))
        {
            return Ok(Arc::clone(&known.clients));
        }
        let loaded = kubeconfig::load(&self.config).await.inspect_err(|error| {
            let (tenant, cluster) = (self.tenant.as_str(), self.config.name.as_str());
            tracing::warn!(quartermaster.tenant = tenant, cluster, %error, "the credential of a cluster cannot be used");
        })?;
        self.keep(loaded)
    }

    fn keep(&self, loaded: LoadedKubeconfig) -> Result<Arc<Clients>, BadSource> {
        let mut known = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = Instant::now();
        let clients = match known.take() {
            Some(known) if known.fingerprint == loaded.fingerprint => known.clients,
            Some(_) | None => {
                Arc::new(connect(&loaded.config, loaded.reach.as_ref()).map_err(|_| BadSource::NotAKubeconfig)?)
            }
        };
        let (fingerprint, place) = (loaded.fingerprint, loaded.place(&self.config));
        *known = Some(CachedClients { clients: Arc::clone(&clients), fingerprint, place, stamp: loaded.stamp, looked });
        Ok(clients)
    }

    /// After a 401: reads the source again and gives clients with what it holds now. `None`: nothing new to try.
    async fn renew(&self, refused: &Arc<Clients>) -> Option<Arc<Clients>> {
        match self.config.source {
            ClusterEndpoint::KubeconfigText(_) | ClusterEndpoint::Loopback(_) => return None,
            ClusterEndpoint::Kubeconfig(_)
            | ClusterEndpoint::SecretFile { .. }
            | ClusterEndpoint::Kept(_)
            | ClusterEndpoint::InCluster => {}
        }
        let fresh = self.load(Some(refused)).await.ok()?;
        (!Arc::ptr_eq(&fresh, refused)).then_some(fresh)
    }
}

fn http_request(request: &ClusterRequest) -> Result<http::Request<Body>, NoClusterAnswer> {
    let mut built = http::Request::builder().method(request.method.clone()).uri(request.uri());
    built = built.header(http::header::ACCEPT, request.accept);
    if let Some(content_type) = request.content_type {
        built = built.header(http::header::CONTENT_TYPE, content_type);
    }
    for (name, value) in &egress::trace_headers() {
        built = built.header(name, value);
    }
    // An address that cannot be built goes nowhere; our own parts make it, so this does not happen.
    built.body(Body::from(request.body.clone())).map_err(|_| NoClusterAnswer::Unconnected)
}

fn lost(error: kube::Error) -> NoClusterAnswer {
    if is_unconnected(&error) { NoClusterAnswer::Unconnected } else { NoClusterAnswer::Broken }
}
