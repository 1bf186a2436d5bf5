//! The HTTP side: a loopback port, planted faults, and what reaches the server.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::exports::Site;
use super::fault::{JenkinsFault, JenkinsFaults, JenkinsHarm};
use super::page;
use super::record::{RecordedRequest, RequestRecord};
use super::route::{self, JenkinsRequest, RouteContext};
use super::seed::JenkinsSeed;
use crate::query::UrlQuery;
use crate::reply::{self, ReplyBody, SandboxReply};
use crate::server::lock;

/// The largest body that is read.
const LARGEST_BODY: usize = 3 * 1024 * 1024;
/// The version it says of itself.
const VERSION: &str = "2.541.1";

/// A running simulated Jenkins. Dropping it stops the server and everything in it.
#[derive(Debug)]
pub struct SimulatedJenkins {
    address: SocketAddr,
    shared: Arc<JenkinsShared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct JenkinsShared {
    server: Mutex<RouteContext>,
    faults: Mutex<JenkinsFaults>,
    record: Mutex<RequestRecord>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl SimulatedJenkins {
    /// Starts a server with the given content on a free loopback port.
    ///
    /// # Errors
    /// If no port can be opened.
    pub async fn start(seed: JenkinsSeed) -> io::Result<SimulatedJenkins> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let site = Site { root: format!("http://{address}{}", seed.context), context: seed.context.clone() };
        let stop = CancellationToken::new();
        let shared = Arc::new(JenkinsShared {
            server: Mutex::new(seed.plant(site)),
            faults: Mutex::default(),
            record: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        });
        shared.tasks.spawn(accept(shared.clone(), listener));
        Ok(SimulatedJenkins { address, shared, _stop: stop.drop_guard() })
    }

    /// Where the server is: `http://127.0.0.1:PORT`, and its path if the seed gave it one.
    pub fn url(&self) -> String {
        lock(&self.shared.server).site.root.clone()
    }

    /// The port it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The user the token belongs to.
    pub fn user(&self) -> String {
        lock(&self.shared.server).access.user.clone()
    }

    /// The API token that opens it, as the password of Basic authentication.
    pub fn token(&self) -> String {
        lock(&self.shared.server).access.token.clone()
    }

    /// Makes the old token worthless and gives the new one.
    pub fn rotate_token(&self) -> String {
        let mut server = lock(&self.shared.server);
        server.access.rotate_token();
        server.access.token.clone()
    }

    /// Whether requests that change something need a crumb though they carry a token.
    pub fn require_crumbs(&self, required: bool) {
        lock(&self.shared.server).access.crumbs = required;
    }

    /// Ends all sessions, and with them their crumbs.
    pub fn expire_sessions(&self) {
        lock(&self.shared.server).access.forget_sessions();
    }

    /// Plants trouble for matching requests.
    pub fn plant(&self, fault: JenkinsFault) {
        lock(&self.shared.faults).plant(fault);
    }

    /// Moves time on: quiet periods pass, builds start, go on and end, each at its moment.
    pub fn advance(&self, by: Duration) {
        lock(&self.shared.server).world.advance(by);
    }

    /// Every request in the order they came; the first ten thousand.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.shared.record).requests.clone()
    }

    /// The writes that were carried out: `POST /job/shop/job/deploy/build`.
    pub fn writes(&self) -> Vec<String> {
        lock(&self.shared.record).writes.clone()
    }

    /// How many builds, waiting ones included, have this value for a parameter: what a run really did.
    pub fn effects(&self, parameter: &str, value: &str) -> usize {
        let mut server = lock(&self.shared.server);
        server.world.settle();
        server.world.orders().filter(|order| order.has(parameter, value)).count()
    }
}

async fn accept(shared: Arc<JenkinsShared>, listener: TcpListener) {
    let stop = shared.stop.clone();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => drop(shared.tasks.spawn(connection(shared.clone(), stream))),
            Err(why) => tracing::warn!(%why, "a connection to the simulated Jenkins was not accepted"),
        }
    }
}

async fn connection(shared: Arc<JenkinsShared>, stream: TcpStream) {
    let stop = shared.stop.clone();
    if let Err(why) = stream.set_nodelay(true) {
        tracing::debug!(%why, "small answers may wait");
    }
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { serve(&shared, request).await }
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Some(Err(why)) = stop.run_until_cancelled(serving).await {
        tracing::debug!(%why, "a connection to the simulated Jenkins broke");
    }
}

/// One request: it is noted, faults come first, then what it asks for. An error cuts the connection.
async fn serve(shared: &JenkinsShared, request: http::Request<Incoming>) -> io::Result<SandboxReply> {
    let (parts, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LARGEST_BODY).collect().await else {
        return Ok(page::error(StatusCode::PAYLOAD_TOO_LARGE, "Form is larger than max length"));
    };
    let body = body.to_bytes();
    lock(&shared.record).note(&parts.method, &parts.uri, &parts.headers, &body);
    let whole = parts.uri.path_and_query().map(|path| path.as_str()).unwrap_or_default();
    let harm = lock(&shared.faults).meet(parts.method.as_str(), whole);
    let cut = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
    match &harm {
        Some(JenkinsHarm::Answer(code, retry)) => return Ok(planted(*code, *retry)),
        Some(JenkinsHarm::NoCrumb) => {
            return Ok(page::error(StatusCode::FORBIDDEN, "No valid crumb was included in the request"));
        }
        Some(JenkinsHarm::Redirect(to)) => {
            let reply = reply::with_type(StatusCode::FOUND, "text/html;charset=utf-8", "");
            return Ok(page::with(reply, header::LOCATION, to));
        }
        Some(JenkinsHarm::NotJson) => {
            let page = "<!DOCTYPE html><html><head><title>Sign in</title></head><body></body></html>";
            return Ok(reply::with_type(StatusCode::OK, "application/json;charset=utf-8", page));
        }
        Some(JenkinsHarm::Huge(bytes)) => {
            let text = format!("{{\"_class\":\"hudson.model.Hudson\",\"description\":\"{}\"}}", "x".repeat(*bytes));
            return Ok(reply::with_type(StatusCode::OK, "application/json;charset=utf-8", text));
        }
        Some(JenkinsHarm::Endless) => return Ok(endless()),
        Some(JenkinsHarm::Cut) => return cut(),
        Some(JenkinsHarm::Silence) => {
            shared.stop.cancelled().await;
            return cut();
        }
        Some(JenkinsHarm::Delay(by)) => tokio::time::sleep(*by).await,
        Some(
            JenkinsHarm::CutAfter
            | JenkinsHarm::SilenceAfter
            | JenkinsHarm::LateAnswer(_)
            | JenkinsHarm::CutMidway
            | JenkinsHarm::Gzip,
        )
        | None => {}
    }
    let reply = answer(shared, &parts, &body);
    match harm {
        Some(JenkinsHarm::CutAfter) => cut(),
        Some(JenkinsHarm::SilenceAfter) => {
            shared.stop.cancelled().await;
            cut()
        }
        Some(JenkinsHarm::LateAnswer(code)) => Ok(planted(code, None)),
        Some(JenkinsHarm::CutMidway) => half(reply).await,
        Some(JenkinsHarm::Gzip) => gzipped(reply).await,
        Some(
            JenkinsHarm::Answer(..)
            | JenkinsHarm::Silence
            | JenkinsHarm::Cut
            | JenkinsHarm::Delay(_)
            | JenkinsHarm::NoCrumb
            | JenkinsHarm::Redirect(_)
            | JenkinsHarm::NotJson
            | JenkinsHarm::Huge(_)
            | JenkinsHarm::Endless,
        )
        | None => Ok(reply),
    }
}

fn answer(shared: &JenkinsShared, parts: &http::request::Parts, body: &Bytes) -> SandboxReply {
    let mut server = lock(&shared.server);
    let is_form = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_form = is_form.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let form = if is_form { UrlQuery::parse(&String::from_utf8_lossy(body)) } else { UrlQuery::default() };
    let (mut reply, changed) = match JenkinsRequest::segments(parts.uri.path(), &server.site.context) {
        None => (page::not_found(), false),
        Some(path) => {
            let ask = JenkinsRequest {
                method: parts.method.clone(),
                path,
                query: UrlQuery::parse(parts.uri.query().unwrap_or_default()),
                form,
                headers: parts.headers.clone(),
                caller: server.access.caller(&parts.headers),
            };
            route::answer(&mut server, &ask)
        }
    };
    if changed {
        lock(&shared.record).note_write(format!("{} {}", parts.method, parts.uri.path()));
    }
    reply.headers_mut().insert("X-Jenkins", HeaderValue::from_static(VERSION));
    reply.headers_mut().insert("X-Hudson", HeaderValue::from_static("1.395"));
    reply.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    reply
}

fn planted(code: u16, retry: Option<u64>) -> SandboxReply {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reply = page::error(code, "The server is not able to answer now.");
    match retry {
        Some(seconds) => page::with(reply, header::RETRY_AFTER, &seconds.to_string()),
        None => reply,
    }
}

/// A body that goes on for as long as somebody reads it.
fn endless() -> SandboxReply {
    let block = Bytes::from_static(&[b' '; 16 * 1024]);
    let frames = stream::repeat_with(move || Ok(Frame::data(block.clone())));
    let mut reply = http::Response::new(StreamBody::new(frames).boxed_unsync());
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json;charset=utf-8"));
    reply
}

/// The head says how long the body is, and half of it comes.
async fn half(reply: SandboxReply) -> io::Result<SandboxReply> {
    let (mut parts, body) = reply.into_parts();
    let whole = body.collect().await?.to_bytes();
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let first = stream::iter([Ok(Frame::data(whole.slice(..whole.len() / 2)))]);
    let then = stream::once(async {
        // What was given so far is sent only when there is nothing more to take at once.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    let body: ReplyBody = StreamBody::new(first.chain(then)).boxed_unsync();
    Ok(http::Response::from_parts(parts, body))
}

async fn gzipped(reply: SandboxReply) -> io::Result<SandboxReply> {
    let (mut parts, body) = reply.into_parts();
    let whole = body.collect().await?.to_bytes();
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(http::Response::from_parts(parts, reply::body(super::gzip::packed(&whole))))
}
