//! The HTTP side: a loopback port, the token, and what reaches the verbs.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OnceCell;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::access::User;
use crate::controllers;
use crate::discovery;
use crate::fault::{ClusterFault, ClusterFaults, ClusterHarm};
use crate::openapi;
use crate::query::UrlQuery;
use crate::reply::{self, SandboxReply};
use crate::resources::{self, ResourceRequest};
use crate::route::{self, ClusterRoute};
use crate::seed::Seed;
use crate::status::ApiStatus;
use crate::subresources::exec;
use crate::world::{ClusterWorld, random};

/// The largest body that is read, as on the real server.
const LARGEST_BODY: usize = 3 * 1024 * 1024;
/// The controllers look at least this often, for deadlines that nobody writes down.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// How many requests are remembered.
const REMEMBERED: usize = 10_000;

/// A running simulated cluster. Dropping it stops the server and everything in it.
#[derive(Debug)]
pub struct Sandbox {
    address: SocketAddr,
    shared: Arc<ClusterShared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct ClusterShared {
    seed: Seed,
    /// Told when the first request comes: weeks of life take a moment, and not everybody who starts a cluster uses it.
    world: OnceCell<Arc<Mutex<ClusterWorld>>>,
    border: Mutex<RequestGate>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ClusterShared {
    /// The world, which begins with whoever asks first.
    async fn world(&self) -> Arc<Mutex<ClusterWorld>> {
        let begin = async || {
            let seed = self.seed.clone();
            let planted = tokio::task::spawn_blocking(move || seed.plant()).await;
            let world = Arc::new(Mutex::new(planted.unwrap_or_else(|_| self.seed.plant())));
            self.tasks.spawn(work(Arc::clone(&world), self.stop.clone()));
            world
        };
        Arc::clone(self.world.get_or_init(begin).await)
    }
}

/// What stands at the border: the token, planted faults, and the requests that came by.
#[derive(Debug, Default)]
struct RequestGate {
    token: String,
    faults: ClusterFaults,
    requests: Vec<String>,
    writes: Vec<String>,
}

/// A lock whose holder never panics half-way through a change that matters: the state is only a simulation.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sandbox {
    /// Starts a cluster with the given content on a free loopback port.
    ///
    /// # Errors
    /// If no port can be opened.
    pub async fn start(seed: Seed) -> io::Result<Sandbox> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let shared = Arc::new(ClusterShared {
            seed,
            world: OnceCell::new(),
            border: Mutex::new(RequestGate { token: new_token(), ..RequestGate::default() }),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        });
        shared.tasks.spawn(accept(shared.clone(), listener));
        Ok(Sandbox { address, shared, _stop: stop.drop_guard() })
    }

    /// Where the server listens: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bearer token that opens it.
    pub fn token(&self) -> String {
        lock(&self.shared.border).token.clone()
    }

    /// A kubeconfig for this server, as YAML.
    pub fn kubeconfig(&self) -> String {
        config(&self.url(), &self.token())
    }

    /// A kubeconfig for programs written in Go, kubectl and helm among them.
    ///
    /// Their library never sends a token over plain HTTP, so here the token is part of the address.
    pub fn kubeconfig_for_go(&self) -> String {
        let token = self.token();
        config(&format!("{}/{token}", self.url()), &token)
    }

    /// Makes the old token worthless and gives the new one.
    pub fn rotate_token(&self) -> String {
        let token = new_token();
        lock(&self.shared.border).token.clone_from(&token);
        token
    }

    /// Plants trouble for matching requests.
    pub fn plant(&self, fault: ClusterFault) {
        lock(&self.shared.border).faults.plant(fault);
    }

    /// The writes that were carried out, dry runs left out: `PATCH shop/deployments/cart/scale`.
    pub fn writes(&self) -> Vec<String> {
        lock(&self.shared.border).writes.clone()
    }

    /// Every request with its query, in the order they came.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.shared.border).requests.clone()
    }

    /// Forgets the history of changes, so that running watches and pages meet `410 Gone`.
    pub fn compact(&self) {
        if let Some(world) = self.shared.world.get() {
            lock(world).objects.compact();
        }
    }
}

fn config(url: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\nclusters:\n- name: sandbox\n  cluster:\n    server: {url}\n\
         contexts:\n- name: sandbox\n  context:\n    cluster: sandbox\n    user: sandbox\n    namespace: default\n\
         users:\n- name: sandbox\n  user:\n    token: {token}\n"
    )
}

fn new_token() -> String {
    random::<24>().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The controllers' loop.
async fn work(world: Arc<Mutex<ClusterWorld>>, stop: CancellationToken) {
    let tick = lock(&world).pace.tick;
    let mut seen = 0;
    let mut due = None;
    let mut rested = Duration::ZERO;
    while stop.run_until_cancelled(tokio::time::sleep(tick)).await.is_some() {
        rested += tick;
        let mut world = lock(&world);
        let is_due = due.is_some_and(|due| due <= world.now());
        if world.objects.version() == seen && !is_due && rested < LONGEST_REST {
            continue;
        }
        rested = Duration::ZERO;
        seen = world.objects.version();
        due = controllers::look(&mut world);
    }
}

async fn accept(shared: Arc<ClusterShared>, listener: TcpListener) {
    let stop = shared.stop.clone();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => drop(shared.tasks.spawn(connection(shared.clone(), stream))),
            Err(why) => tracing::warn!(%why, "a connection to the sandbox was not accepted"),
        }
    }
}

async fn connection(shared: Arc<ClusterShared>, stream: TcpStream) {
    let stop = shared.stop.clone();
    if let Err(why) = stream.set_nodelay(true) {
        tracing::debug!(%why, "small answers may wait");
    }
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { serve(&shared, request).await }
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades();
    if let Some(Err(why)) = stop.run_until_cancelled(serving).await {
        tracing::debug!(%why, "a connection to the sandbox broke");
    }
}

/// One request: faults first, then the token, then what it asks for. An error cuts the connection.
async fn serve(shared: &Arc<ClusterShared>, request: Request<Incoming>) -> io::Result<SandboxReply> {
    let whole = request.uri().path_and_query().map(|path| path.as_str()).unwrap_or_default();
    let whole = whole.replace(&format!("/{}", lock(&shared.border).token), "");
    let method = request.method().clone();
    let harm = {
        let mut border = lock(&shared.border);
        if border.requests.len() < REMEMBERED {
            border.requests.push(format!("{method} {whole}"));
        }
        border.faults.meet(method.as_str(), &whole)
    };
    match harm {
        Some(ClusterHarm::Answer(code, retry)) => return Ok(planted(code, retry)),
        Some(ClusterHarm::Cut) => return Err(io::Error::from(io::ErrorKind::ConnectionReset)),
        Some(ClusterHarm::Silence) => {
            shared.stop.cancelled().await;
            return Err(io::Error::from(io::ErrorKind::ConnectionReset));
        }
        Some(ClusterHarm::Delay(by)) => tokio::time::sleep(by).await,
        Some(ClusterHarm::CutAfter | ClusterHarm::LateAnswer(_)) | None => {}
    }
    let reply = answer(shared, request).await.unwrap_or_else(|status| reply::refusal(&status));
    match harm {
        Some(ClusterHarm::CutAfter) => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
        Some(ClusterHarm::LateAnswer(code)) => Ok(planted(code, None)),
        Some(ClusterHarm::Answer(..) | ClusterHarm::Cut | ClusterHarm::Silence | ClusterHarm::Delay(_)) | None => {
            Ok(reply)
        }
    }
}

fn planted(code: u16, retry: Option<u64>) -> SandboxReply {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut status = ApiStatus::unavailable("the server is currently unable to handle the request");
    status.code = code;
    (status.reason, status.message) = match code.as_u16() {
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later".to_owned(),
        ),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned(),
        ),
        500 => ("InternalError", "an error on the server has prevented the request from succeeding".to_owned()),
        _ => (status.reason, status.message),
    };
    let mut reply = reply::object(code, &status.body());
    if let Some(value) = retry.and_then(|seconds| header::HeaderValue::from_str(&seconds.to_string()).ok()) {
        reply.headers_mut().insert(header::RETRY_AFTER, value);
    }
    reply
}

async fn answer(shared: &Arc<ClusterShared>, mut request: Request<Incoming>) -> Result<SandboxReply, ApiStatus> {
    let token = lock(&shared.border).token.clone();
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bears = bearer.and_then(|value| value.strip_prefix("Bearer ")) == Some(&token);
    let path = request.uri().path();
    let inside = path.strip_prefix('/').and_then(|path| path.strip_prefix(token.as_str()));
    if !bears && inside.is_none() {
        // A body that stays unread would cut the line before the client has seen the answer.
        drop(read_body(request.into_body()).await);
        return Err(ApiStatus::unauthorized());
    }
    let path = inside.unwrap_or(path).to_owned();
    let world = shared.world().await;
    let user = User::of(request.headers());
    let query = UrlQuery::parse(request.uri().query().unwrap_or_default());
    let route = route::of(&path);
    let ClusterRoute::Resource(target) = route else {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Err(ApiStatus::path_forbidden(&user.name, &request.method().as_str().to_lowercase(), &path));
        }
        return fixed(&lock(&world), &route, &query, request.headers());
    };
    let upgrade = (target.subresource == "exec").then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let body = read_body(body).await?;
    let write = note_write(&parts.method, &target, &query, &body);
    let ask = ResourceRequest { method: parts.method, target, query, headers: parts.headers, body, user };
    let reply = match upgrade {
        Some(upgrade) => exec::answer(&world, &ask, upgrade, &shared.tasks)?,
        None => resources::answer(&world, ask).await?,
    };
    if let Some(write) = write.filter(|_| reply.status().is_success() || reply.status().is_informational()) {
        let mut border = lock(&shared.border);
        if border.writes.len() < REMEMBERED {
            border.writes.push(write);
        }
    }
    Ok(reply)
}

/// How a write is remembered; reads and dry runs are not.
fn note_write(method: &Method, target: &route::RouteTarget, query: &UrlQuery, body: &Bytes) -> Option<String> {
    let reads = matches!(method.as_str(), "GET" | "HEAD") && target.subresource != "exec";
    let asks = target.group == "authorization.k8s.io" || target.group == "authentication.k8s.io";
    let in_body = || String::from_utf8_lossy(body).replace(' ', "").contains("\"dryRun\":[\"All\"]");
    let dry = query.get("dryRun") == Some("All") || in_body();
    if reads || asks || dry {
        return None;
    }
    let parts = [&target.namespace, &target.plural, &target.name, &target.subresource];
    let path: Vec<&str> = parts.iter().map(|part| part.as_str()).filter(|part| !part.is_empty()).collect();
    Some(format!("{method} {}", path.join("/")))
}

async fn read_body(body: Incoming) -> Result<Bytes, ApiStatus> {
    let collected = Limited::new(body, LARGEST_BODY).collect().await.map_err(|_| ApiStatus::too_large())?;
    Ok(collected.to_bytes())
}

/// Paths that are no resources.
fn fixed(
    world: &ClusterWorld,
    route: &ClusterRoute,
    query: &UrlQuery,
    headers: &http::HeaderMap,
) -> Result<SandboxReply, ApiStatus> {
    match route {
        ClusterRoute::Version => Ok(reply::object(StatusCode::OK, &discovery::version())),
        ClusterRoute::Health(check) => discovery::health(check, query.get("verbose").is_some()),
        ClusterRoute::Api => Ok(discovery::core(world, headers)),
        ClusterRoute::Apis => Ok(discovery::groups(world, headers)),
        ClusterRoute::Group(group) => discovery::group(world, group),
        ClusterRoute::GroupVersion(group, version) => discovery::resources(world, group, version),
        ClusterRoute::OpenApi2 => Ok(openapi::second(world)),
        ClusterRoute::OpenApi3(path) => openapi::third(world, path),
        ClusterRoute::Resource(_) | ClusterRoute::Unknown => Err(ApiStatus::no_such_path()),
    }
}
