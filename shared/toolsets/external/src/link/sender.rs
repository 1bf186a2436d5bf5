//! How requests leave for one server over HTTP: by the guarded client, with the headers that say who we are.
//!
//! Nothing that may have been processed is sent twice, no redirect is followed, nothing is unpacked. A request to which
//! a server said 401, and which it therefore did not process, is sent once more if there is a newer token.

use super::exchange::LinkExchange;
use super::fault::LinkFault;
use super::head::broken;
use super::target::LinkTarget;
use super::token::{AccessToken, TokenSource};
use egress::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue};
use egress::{Guarded, GuardedRequest, StreamBounds, Streaming};
use std::sync::Arc;

const UNAUTHORIZED: u16 = 401;

/// The way to one server. Cheap to clone.
#[derive(Clone)]
pub(super) struct HttpSender {
    client: Guarded,
    headers: HeaderMap,
    tokens: Option<Arc<TokenSource>>,
}

impl HttpSender {
    pub(super) fn new(client: Guarded, target: &LinkTarget, tokens: Option<Arc<TokenSource>>) -> HttpSender {
        let mut headers = HeaderMap::new();
        for (name, value) in &target.headers {
            // A value that no header can hold was refused when it was set; without it the server says no.
            if let Ok(mut value) = HeaderValue::from_str(value.expose()) {
                value.set_sensitive(true);
                headers.insert(name.clone(), value);
            }
        }
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        HttpSender { client, headers, tokens }
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
        let Some(tokens) = &self.tokens else { return self.send(request, bounds, exchange).await };
        let token = tokens.token().await?;
        let answer = self.send(bearing(&request, &token), bounds, exchange).await?;
        if answer.status != UNAUTHORIZED {
            token.note_taken();
            return Ok(answer);
        }
        let Some(newer) = tokens.instead_of(&token).await? else { return Ok(answer) };
        let answer = self.send(bearing(&request, &newer), bounds, exchange).await?;
        if answer.status == UNAUTHORIZED {
            // One that was never taken is not replaced again, whoever asks next.
            tokens.instead_of(&newer).await?;
        } else {
            newer.note_taken();
        }
        Ok(answer)
    }

    async fn send(
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

/// A request that says who we are by this token.
fn bearing<'a>(request: &GuardedRequest<'a>, token: &AccessToken) -> GuardedRequest<'a> {
    let (mut headers, body) = (request.headers.clone(), request.body.clone());
    headers.insert(AUTHORIZATION, token.header());
    GuardedRequest { headers, body, ..GuardedRequest::new(request.method.clone(), request.url) }
}
