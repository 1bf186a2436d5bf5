//! The client for addresses that tenants name. Every request goes through one function, `Guarded::begin`.
//!
//! A name is resolved once per connection, by `Vetting`; if one of its addresses is refused, all are. The connector
//! dials only what came back from there. A literal address never reaches a resolver, so it is judged by
//! [`AddressGuard::check`] in the same function. Who answered is looked at once more before a byte of the answer is read.

use crate::client::{ClientError, Config, base};
use crate::guard::{AddressGuard, AddressRefused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Turns a name into addresses. The system's own unless a test brings another.
pub type Lookup = Arc<dyn Fn(String) -> LookupFuture + Send + Sync>;
/// A look-up under way.
pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A client that reaches nothing its [`AddressGuard`] refuses. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Guarded {
    guard: Arc<AddressGuard>,
    https: reqwest::Client,
    plain: reqwest::Client,
}

/// One request. No redirect is followed and nothing is sent a second time.
#[derive(Debug)]
pub struct GuardedRequest<'a> {
    /// What to do.
    pub method: Method,
    /// Where.
    pub url: &'a Url,
    /// Headers; mark those that carry secrets as sensitive, or use [`GuardedRequest::authorized`].
    pub headers: HeaderMap,
    /// What is sent along.
    pub body: Option<Vec<u8>>,
}

/// What came back, whatever its status.
#[derive(Debug)]
pub struct GuardedResponse {
    /// The status; 3xx included, since redirects are not followed.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it travelled: nothing is decompressed.
    pub body: Vec<u8>,
    /// Whether the body went on beyond what was asked for.
    pub cut: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The address may not be dialled, by what is written or by what it resolves to.
    #[error("the address is refused")]
    Refused(#[source] AddressRefused),
    /// No complete answer came. An open, a closed and a filtered port read the same here.
    #[error("no complete answer")]
    NoAnswer(#[source] reqwest::Error),
    /// More than was allowed for.
    #[error("the answer is longer than {cap} bytes")]
    TooLong {
        /// The most that would have been read.
        cap: usize,
    },
}

impl AddressGuard {
    /// A client that holds every request to this guard.
    pub fn client(&self, config: &Config) -> Result<Guarded, ClientError> {
        self.client_resolving(config, Arc::new(|name| Box::pin(system(name))))
    }

    /// The same with a look-up of the caller's own. What it answers is vetted like any other.
    pub fn client_resolving(&self, config: &Config, lookup: Lookup) -> Result<Guarded, ClientError> {
        let guard = Arc::new(self.clone());
        let built = |in_the_clear| {
            let vetting = Vetting { guard: Arc::clone(&guard), lookup: Arc::clone(&lookup), in_the_clear };
            base(config)?
                .dns_resolver(vetting)
                .https_only(!in_the_clear)
                .retry(reqwest::retry::never())
                .no_gzip()
                .no_brotli()
                .no_zstd()
                .no_deflate()
                .build()
                .map_err(ClientError::from)
        };
        Ok(Guarded { https: built(false)?, plain: built(true)?, guard })
    }
}

impl<'a> GuardedRequest<'a> {
    /// A request without headers or body.
    pub fn new(method: Method, url: &'a Url) -> GuardedRequest<'a> {
        GuardedRequest { method, url, headers: HeaderMap::new(), body: None }
    }

    /// A plain `GET`.
    pub fn get(url: &'a Url) -> GuardedRequest<'a> {
        GuardedRequest::new(Method::GET, url)
    }

    /// Adds an `Authorization` header that prints nowhere. A value no header can hold leaves the request without one.
    #[must_use]
    pub fn authorized(mut self, value: &str) -> GuardedRequest<'a> {
        if let Ok(mut value) = HeaderValue::from_str(value) {
            value.set_sensitive(true);
            self.headers.insert(reqwest::header::AUTHORIZATION, value);
        }
        self
    }
}

impl Guarded {
    /// Sends a request and reads its whole answer; one longer than `cap` is an error.
    pub async fn send(&self, request: GuardedRequest<'_>, cap: usize) -> Result<GuardedResponse, SendError> {
        let answer = self.send_for_part(request, cap).await?;
        if answer.cut { Err(SendError::TooLong { cap }) } else { Ok(answer) }
    }

    /// Sends a request and reads at most `cap` bytes of its answer; the rest is left and counted as cut.
    pub async fn send_for_part(&self, request: GuardedRequest<'_>, cap: usize) -> Result<GuardedResponse, SendError> {
        let mut response = self.begin(request, None).await?;
        let mut answer = GuardedResponse {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: Vec::new(),
            cut: false,
        };
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            // Counted as it arrives: a declared length proves nothing, and a chunked body declares none.
            let room = cap - answer.body.len();
            answer.cut = chunk.len() > room;
            answer.body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if answer.cut {
                break;
            }
        }
        Ok(answer)
    }

    /// Sends a request to where the guard lets it and gives the answer once its head is there and its sender is vetted.
    /// `within` replaces the time the client was built with.
    pub(crate) async fn begin(
        &self,
        request: GuardedRequest<'_>,
        within: Option<Duration>,
    ) -> Result<reqwest::Response, SendError> {
        self.guard.check(request.url).map_err(SendError::Refused)?;
        let in_the_clear = request.url.scheme() == "http";
        let client = if in_the_clear { &self.plain } else { &self.https };
        let outgoing = client.request(request.method, request.url.clone()).headers(request.headers);
        let outgoing = outgoing.headers(trace_headers());
        let outgoing = match request.body {
            Some(body) => outgoing.body(body),
            None => outgoing,
        };
        let outgoing = match within {
            Some(within) => outgoing.timeout(within),
            None => outgoing,
        };
        let response = outgoing.send().await.map_err(failed)?;
        let peer = response.remote_addr().ok_or(SendError::Refused(AddressRefused::Range))?;
        self.guard.vet(peer.ip(), in_the_clear).map_err(SendError::Refused)?;
        Ok(response)
    }
}

/// The headers by which whoever is asked can continue our trace; none where no spans are sent.
pub fn trace_headers() -> HeaderMap {
    let header = |(name, value): (&'static str, String)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(&value).ok()?))
    };
    telemetry::trace_headers().into_iter().filter_map(header).collect()
}

impl SendError {
    /// Whether it is certain that nothing was sent: there was nobody to send it to.
    pub fn nothing_was_sent(&self) -> bool {
        match self {
            SendError::Refused(_) => true,
            SendError::NoAnswer(error) => error.is_connect() || error.is_builder(),
            SendError::TooLong { .. } => false,
        }
    }
}

/// The resolver given to the connector: what it lets through is what is dialled.
struct Vetting {
    guard: Arc<AddressGuard>,
    lookup: Lookup,
    in_the_clear: bool,
}

impl Resolve for Vetting {
    fn resolve(&self, name: Name) -> Resolving {
        let (guard, in_the_clear) = (Arc::clone(&self.guard), self.in_the_clear);
        let name = name.as_str().to_owned();
        let checked = guard.check_name(&name);
        let looking = checked.map(|()| (self.lookup)(name));
        Box::pin(async move {
            let addresses = looking?.await?;
            // One bad address among good ones is an attempt, so none of them is dialled.
            addresses.iter().try_for_each(|address| guard.vet(*address, in_the_clear))?;
            // The connector puts the port of the address in.
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

async fn system(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

/// A refusal by [`Vetting`] arrives wrapped as a failed connection; it is taken out again.
pub(crate) fn failed(error: reqwest::Error) -> SendError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(current) = cause {
        if let Some(refused) = current.downcast_ref::<AddressRefused>() {
            return SendError::Refused(refused.clone());
        }
        cause = current.source();
    }
    SendError::NoAnswer(error.without_url())
}
