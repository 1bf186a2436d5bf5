//! `/metrics`, `/healthz` and `/readyz`, for Prometheus and the kubelet.

use actix_web::http::header::ACCEPT;
use actix_web::web::{self, Data};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use anyhow::Context as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use telemetry::metrics::{self, TextFormat};

/// Connections of those who look.
const CONNECTIONS: usize = 64;

/// Whether the API server was reached: the lease was read once.
pub type Reached = Arc<AtomicBool>;

/// Listens, and returns where and what serves.
pub fn start(address: &str, reached: Reached) -> anyhow::Result<(SocketAddr, actix_web::dev::Server)> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let data = Data::new(reached);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/metrics", web::get().to(scrape))
            .route("/healthz", web::get().to(alive))
            .route("/readyz", web::get().to(ready))
    })
    .workers(1)
    .max_connections(CONNECTIONS)
    .disable_signals()
    .listen(listener)?
    .run();
    Ok((address, server))
}

async fn scrape(request: HttpRequest) -> HttpResponse {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = TextFormat::accepted(accept);
    HttpResponse::Ok().content_type(format.content_type()).body(metrics::text(format))
}

async fn alive() -> HttpResponse {
    HttpResponse::Ok().body("ok\n")
}

/// An operator that waits for the lease is ready: it would act if the other one went.
async fn ready(reached: Data<Reached>) -> HttpResponse {
    if reached.load(Ordering::Relaxed) {
        HttpResponse::Ok().body("ok\n")
    } else {
        HttpResponse::ServiceUnavailable().body("the API server was not reached yet\n")
    }
}
