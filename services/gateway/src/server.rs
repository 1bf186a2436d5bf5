//! The HTTP server: HTTP/1.1, bounded, drained.

use crate::app::Gateway;
use crate::console;
use crate::http::metrics::scrape;
use crate::http::{caller, tokenless, trace};
use crate::leaving::{self, Doorway};
use crate::routes;
use actix_web::dev::ServerHandle;
use actix_web::middleware::{Condition, from_fn};
use actix_web::web::{self, Data, QueryConfig, ServiceConfig};
use actix_web::{App, HttpServer};
use anyhow::Context;
use futures_util::future::join_all;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

/// Connections one worker may hold: streams are cheap, but not free.
const CONNECTIONS: usize = 25_000;

/// Connections of those who read metrics.
const SCRAPERS: usize = 64;
/// Threads of the console's own listener: people are few.
const CONSOLE_WORKERS: usize = 2;
/// How long what callers used may take to be written down at the end.
const LAST_WORD: Duration = Duration::from_secs(2);

/// A server that listens.
pub struct RunningServer {
    /// Where it listens.
    pub address: SocketAddr,
    gateway: Arc<Gateway>,
    serving: Listening,
    metrics: Option<Listening>,
    console: Option<Listening>,
    /// Where the listener without tokens is, if there is one.
    pub tokenless: Option<SocketAddr>,
    tokenless_serving: Option<Listening>,
}

/// One listener and those who serve it.
struct Listening {
    handle: ServerHandle,
    ended: tokio::task::JoinHandle<Option<std::io::Result<()>>>,
    /// Where those come in who are answered to the last; `None` if nobody minds.
    doorway: Option<Doorway>,
}

impl Listening {
    /// Lets nobody else in.
    async fn close(&self, within: Duration) {
        if let Some(doorway) = &self.doorway {
            doorway.close(&self.handle, within).await;
        }
    }

    /// Waits for the requests of those who are in.
    async fn emptied(&self, within: Duration) {
        if let Some(doorway) = &self.doorway {
            doorway.emptied(within).await;
        }
    }

    async fn stop(self) {
        self.handle.stop(true).await;
        if self.ended.await.is_err() {
            tracing::error!("the server ended without a word");
        }
    }
}

/// Binds and starts to serve.
pub fn start(gateway: &Arc<Gateway>) -> anyhow::Result<RunningServer> {
    let address = gateway.settings.listen.address;
    start_on(gateway, TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?)
}

/// Starts to serve on what is bound already.
pub fn start_on(gateway: &Arc<Gateway>, listener: TcpListener) -> anyhow::Result<RunningServer> {
    let listen = &gateway.settings.listen;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let doorway = Doorway::of(&listener)?;
    let newcomers = doorway.newcomers();
    let data = Data::from(Arc::clone(gateway));
    let workers = match listen.workers {
        0 => std::thread::available_parallelism().map_or(2, usize::from),
        workers => workers,
    };
    let traced = gateway.settings.telemetry.is_traced();
    let beside = gateway.console.is_some() && gateway.settings.console.listen.is_empty();
    let server = HttpServer::new(move || {
        let spans = Condition::new(traced, from_fn(trace::in_span));
        // Routes are tried in this order, and pages have patterns that cost more than a call's own route.
        let pages: fn(&mut ServiceConfig) = if beside { console::routes::all } else { no_pages };
        let app = App::new().app_data(data.clone()).app_data(queries()).wrap(spans).wrap_fn(leaving::answer);
        app.configure(routes::all).configure(pages)
    })
    .workers(workers)
    .on_connect(move |_, connection| newcomers.enter(connection))
    .max_connections(CONNECTIONS)
    .client_request_timeout(listen.request_timeout)
    // Without this a client that went away is not noticed, and what was done for it goes on.
    .h1_allow_half_closed(false)
    .shutdown_timeout(listen.drain.as_secs())
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    let serving = Listening { handle, ended: gateway.tasks.spawn("server", server), doorway: Some(doorway) };
    let (tokenless, tokenless_serving) = without_tokens(gateway, workers)?.unzip();
    let (metrics, console) = (metrics(gateway)?, console_apart(gateway)?);
    let gateway = Arc::clone(gateway);
    Ok(RunningServer { address, gateway, serving, metrics, console, tokenless, tokenless_serving })
}

/// Listens for those who bring no token, if the settings say where.
fn without_tokens(gateway: &Arc<Gateway>, workers: usize) -> anyhow::Result<Option<(SocketAddr, Listening)>> {
    let Some(configured) = gateway.settings.tokenless.listener()? else { return Ok(None) };
    let address = configured.address;
    let listener =
        TcpListener::bind(address).with_context(|| format!("cannot listen on tokenless.listen {address}"))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let doorway = Doorway::of(&listener)?;
    let newcomers = doorway.newcomers();
    tracing::warn!(%address, tenant = %configured.tenant, "whoever reaches this address reads as the tenant, without a token");
    let data = Data::from(Arc::clone(gateway));
    let open = Data::new(tokenless::TokenlessPolicy::new(&configured, address, &gateway.settings.tokenless.hosts));
    let (listen, traced) = (&gateway.settings.listen, gateway.settings.telemetry.is_traced());
    let server = HttpServer::new(move || {
        let spans = Condition::new(traced, from_fn(trace::in_span));
        let app = App::new().app_data(data.clone()).app_data(open.clone()).wrap(spans).wrap_fn(leaving::answer);
        app.configure(tokenless::routes)
    })
    .workers(workers)
    .on_connect(move |_, connection| newcomers.enter(connection))
    .max_connections(CONNECTIONS)
    .client_request_timeout(listen.request_timeout)
    .h1_allow_half_closed(false)
    .shutdown_timeout(listen.drain.as_secs())
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    let serving = Listening { handle, ended: gateway.tasks.spawn("tokenless", server), doorway: Some(doorway) };
    Ok(Some((address, serving)))
}

/// Listens for Prometheus, if it is told where.
fn metrics(gateway: &Arc<Gateway>) -> anyhow::Result<Option<Listening>> {
    let address = &gateway.settings.telemetry.metrics_listen;
    if address.is_empty() {
        return Ok(None);
    }
    let listener =
        TcpListener::bind(address).with_context(|| format!("cannot listen on telemetry.metrics_listen {address}"))?;
    listener.set_nonblocking(true)?;
    tracing::info!(address = %listener.local_addr()?, "metrics can be read");
    let data = Data::from(Arc::clone(gateway));
    let server = HttpServer::new(move || App::new().app_data(data.clone()).route("/metrics", web::get().to(scrape)))
        .workers(1)
        .max_connections(SCRAPERS)
        .client_request_timeout(gateway.settings.listen.request_timeout)
        .disable_signals()
        .listen(listener)?
        .run();
    Ok(Some(Listening { handle: server.handle(), ended: gateway.tasks.spawn("metrics", server), doorway: None }))
}

/// What is told of a query that cannot be read: to browsers as a page.
fn queries() -> QueryConfig {
    QueryConfig::default().error_handler(|error, request| match console::bad_query(request) {
        Some(page) => page,
        None => caller::bad_query(&error, request).into(),
    })
}

/// The tool port of a service whose console is off, or elsewhere.
fn no_pages(_: &mut ServiceConfig) {}

/// Listens for browsers, if the console has a listener of its own.
fn console_apart(gateway: &Arc<Gateway>) -> anyhow::Result<Option<Listening>> {
    let address = &gateway.settings.console.listen;
    if gateway.console.is_none() || address.is_empty() {
        return Ok(None);
    }
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on console.listen {address}"))?;
    listener.set_nonblocking(true)?;
    tracing::info!(address = %listener.local_addr()?, "the console is served");
    let doorway = Doorway::of(&listener)?;
    let newcomers = doorway.newcomers();
    let data = Data::from(Arc::clone(gateway));
    let traced = gateway.settings.telemetry.is_traced();
    let server = HttpServer::new(move || {
        let spans = Condition::new(traced, from_fn(trace::in_span));
        let app = App::new().app_data(data.clone()).app_data(queries()).wrap(spans).wrap_fn(leaving::answer);
        app.configure(console::routes::all)
    })
    .workers(CONSOLE_WORKERS)
    .on_connect(move |_, connection| newcomers.enter(connection))
    .max_connections(CONNECTIONS)
    .client_request_timeout(gateway.settings.listen.request_timeout)
    .h1_allow_half_closed(false)
    .shutdown_timeout(gateway.settings.listen.drain.as_secs())
    .disable_signals()
    .listen(listener)?
    .run();
    let handle = server.handle();
    Ok(Some(Listening { handle, ended: gateway.tasks.spawn("console", server), doorway: Some(doorway) }))
}

impl RunningServer {
    /// Stops at once: whoever asks over HTTP is cut off, background work gets a moment, and what callers used and the
    /// audit entries are written down.
    pub async fn stop_now(self, moment: Duration) {
        let RunningServer { gateway, serving, metrics, console, tokenless_serving, .. } = self;
        gateway.readiness.drain();
        gateway.tasks.stopping().cancel();
        for listening in std::iter::once(serving).chain(tokenless_serving).chain(metrics).chain(console) {
            listening.handle.stop(false).await;
        }
        gateway.tasks.drain(moment).await;
        if tokio::time::timeout(moment, gateway.usage.write(&gateway)).await.is_err() {
            tracing::warn!("what callers used in the last seconds could not be written down");
        }
        gateway.store.close().await;
    }

    /// Stops in order: unready first, then the listeners, then streams and background work, then requests, then what callers
    /// used and the queue of audit entries.
    pub async fn stop(self) {
        let RunningServer { gateway, serving, metrics, console, tokenless_serving, .. } = self;
        gateway.readiness.drain();
        let all: Vec<Listening> =
            std::iter::once(serving).chain(tokenless_serving).chain(metrics).chain(console).collect();
        let listen = &gateway.settings.listen;
        let patience = listen.request_timeout.min(listen.drain);
        join_all(all.iter().map(|listening| listening.close(patience))).await;
        // Only now: who is told to reconnect must not come back to this replica.
        gateway.tasks.stopping().cancel();
        join_all(all.iter().map(|listening| listening.emptied(patience))).await;
        for listening in all {
            listening.stop().await;
        }
        if !gateway.tasks.drain(gateway.settings.listen.drain).await {
            tracing::warn!(left = gateway.tasks.len(), "some work was still under way at the end");
        }
        if tokio::time::timeout(LAST_WORD, gateway.usage.write(&gateway)).await.is_err() {
            tracing::warn!("what callers used in the last seconds could not be written down");
        }
        gateway.store.close().await;
    }
}
