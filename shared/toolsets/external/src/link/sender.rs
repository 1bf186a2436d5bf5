//! How requests leave for one server over HTTP: by the guarded client, with the headers that say who we are.
//!
//! Nothing is sent twice, no redirect is followed, nothing is unpacked.

use super::exchange::LinkExchange;
use super::fault::LinkFault;
use super::head::broken;
use super::target::LinkTarget;
use egress::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use egress::{Guarded, GuardedRequest, StreamBounds, Streaming};

/// The way to one server. Cheap to clone.
#[derive(Clone)]
pub(super) struct HttpSender {
    client: Guarded,
    headers: HeaderMap,
}

impl HttpSender {
    pub(super) fn new(client: Guarded, target: &LinkTarget) -> HttpSender {
        let mut headers = HeaderMap::new();
        for (name, value) in &target.headers {
            // A value that no header can hold was refused when it was set; without it the server says no.
            if let Ok(mut value) = HeaderValue::from_str(value.expose()) {
                value.set_sensitive(true);
                headers.insert(name.clone(), value);
            }
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        HttpSender { client, headers }
    }

    /// The headers that every request has.
    pub(super) fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    /// Sends a request and gives its answer as soon as the head is there. The exchange is told whether any of it left.
    pub(super) async fn open(
        &self,
        request: GuardedRequest<'_>,
        bounds: StreamBounds,
        exchange: Option<&LinkExchange>,
    ) -> Result<Streaming, LinkFault> {
        if let Some(exchange) = exchange {
            exchange.note_sent(true);
        }
        self.client.open(request, bounds).await.map_err(|error| {
            if let Some(exchange) = exchange.filter(|_| error.nothing_was_sent()) {
                exchange.note_sent(false);
            }
            broken(error)
        })
    }
}
