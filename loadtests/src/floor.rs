//! The floors: the least a server could do to give the same answer.
//!
//! The bare floor reads the request and returns ready-made bytes. The other one asks Redis once before it does: one `GET`
//! of a value as large as a session's record, over one multiplexed connection. Neither knows tokens, tenants or JSON.
//! The server is set up like the service's own, so that only the handler differs.

use crate::http::KeptConnection;
use crate::options::FloorOptions;
use crate::process::{Process, free_port};
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer, error::ErrorBadGateway};
use anyhow::Context;
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use tempfile::TempDir;

/// How large the value is that a round trip fetches.
const VALUE: usize = 300;
const KEY: &str = "loadtests:floor";
/// The settings of the service's own server.
const CONNECTIONS: usize = 25_000;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A request without a body, answered by anybody who is up.
const KNOCK: &[u8] = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/// Which floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloorKind {
    /// The same bytes, at once.
    Bare,
    /// The same bytes, after one round trip to Redis.
    RoundTrip,
}

impl FloorKind {
    /// Its name in the table.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            FloorKind::Bare => "bare",
            FloorKind::RoundTrip => "one round trip",
        }
    }
}

/// A floor in a process of its own.
pub(crate) struct Floor {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// The process.
    pub(crate) process: Process,
    _folder: TempDir,
}

impl Floor {
    /// Starts this very program as a floor that gives this answer.
    pub(crate) async fn start(kind: FloorKind, answer: &[u8], redis: &str) -> anyhow::Result<Floor> {
        let folder = tempfile::tempdir().context("no temporary folder for a floor")?;
        let file = folder.path().join("answer");
        std::fs::write(&file, answer).context("the answer of a floor could not be kept")?;
        let address = free_port()?;
        let mut arguments = vec!["floor".to_owned(), "--port".to_owned(), address.port().to_string()];
        arguments.extend(["--bytes-file".to_owned(), file.display().to_string()]);
        match kind {
            FloorKind::Bare => {}
            FloorKind::RoundTrip => arguments.extend(["--redis".to_owned(), redis.to_owned()]),
        }
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let mut process = Process::start("floor", &program, &arguments, folder.path())?;
        process.up(async || healthy(address).await).await?;
        Ok(Floor { address, process, _folder: folder })
    }
}

/// Whether somebody there says that it is ready.
pub(crate) async fn healthy(address: SocketAddr) -> bool {
    let Ok(mut connection) = KeptConnection::open(address).await else { return false };
    connection.send(KNOCK).await.is_ok_and(|answer| answer.status == 200)
}

/// Is a floor, until somebody ends the process.
pub(crate) fn serve(options: &FloorOptions) -> anyhow::Result<()> {
    let answer = std::fs::read(&options.bytes_file).context("the answer of this floor cannot be read")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))
        .with_context(|| format!("port {} is taken", options.port))?;
    actix_web::rt::System::new().block_on(listen(listener, answer.into(), options.redis.as_deref()))
}

async fn listen(listener: TcpListener, answer: Bytes, redis: Option<&str>) -> anyhow::Result<()> {
    let redis = match redis {
        Some(url) => Some(connect(url).await.context("the Redis of this floor does not answer")?),
        None => None,
    };
    let server = HttpServer::new(move || {
        let app = App::new()
            .app_data(Data::new(answer.clone()))
            .route("/health", web::get().to(async || HttpResponse::Ok().finish()));
        match &redis {
            // Under any address: a collector of spans is nothing else.
            None => app.default_service(web::post().to(bare)),
            Some(redis) => app.app_data(Data::new(redis.clone())).route("/mcp", web::post().to(round_trip)),
        }
    })
    .workers(std::thread::available_parallelism().map_or(2, usize::from))
    .max_connections(CONNECTIONS)
    .client_request_timeout(REQUEST_TIMEOUT)
    .h1_allow_half_closed(false)
    .disable_signals()
    .listen(listener)
    .context("this floor cannot listen")?;
    server.run().await.context("this floor ended")
}

#[expect(clippy::disallowed_methods, reason = "the door: what a bare round trip costs, without the service's store")]
async fn connect(url: &str) -> redis::RedisResult<MultiplexedConnection> {
    let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    let () = connection.set(KEY, vec![b'v'; VALUE]).await?;
    Ok(connection)
}

async fn bare(_: Bytes, answer: Data<Bytes>) -> HttpResponse {
    reply(&answer)
}

async fn round_trip(
    _: Bytes,
    answer: Data<Bytes>,
    redis: Data<MultiplexedConnection>,
) -> actix_web::Result<HttpResponse> {
    let value: Vec<u8> = MultiplexedConnection::clone(&redis).get(KEY).await.map_err(ErrorBadGateway)?;
    if value.len() != VALUE {
        return Err(ErrorBadGateway("the value is not there"));
    }
    Ok(reply(&answer))
}

fn reply(answer: &Bytes) -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(answer.clone())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use testkit::redis::RedisServer;

    /// A floor in a thread of the test, which ends with it.
    pub(crate) struct Here {
        pub(crate) address: SocketAddr,
    }

    pub(crate) fn floor(answer: &'static str, redis: Option<String>) -> Here {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let floor = listen(listener, Bytes::from_static(answer.as_bytes()), redis.as_deref());
            actix_web::rt::System::new().block_on(floor)
        });
        Here { address }
    }

    pub(crate) fn post(body: &str) -> Vec<u8> {
        let length = body.len();
        format!("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
    }

    async fn answers(floor: &Here) -> (u16, String) {
        let mut connection = KeptConnection::open(floor.address).await.unwrap();
        let answer = connection.send(&post("{}")).await.unwrap();
        (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn both_floors_give_the_very_same_bytes() {
        let redis = RedisServer::start();
        for floor in [floor(r#"{"id":1}"#, None), floor(r#"{"id":1}"#, Some(redis.url()))] {
            assert_eq!(answers(&floor).await, (200, r#"{"id":1}"#.to_owned()));
            assert!(healthy(floor.address).await);
        }
    }

    #[tokio::test]
    async fn the_round_trip_really_asks_redis() {
        let redis = RedisServer::start();
        let floor = floor("same", Some(redis.url()));
        assert_eq!(answers(&floor).await.0, 200);
        assert_eq!(redis.command(&["DEL", KEY]), ":1");
        assert_eq!(answers(&floor).await.0, 502);
    }

    #[tokio::test]
    async fn nobody_is_not_healthy() {
        assert!(!healthy(free_port().unwrap()).await);
    }
}
