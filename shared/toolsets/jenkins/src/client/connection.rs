//! The connection to one server: its client, how many requests may be under way, and what is sent over it.
//!
//! A request goes out once. Two answers send it a second time, because a server that gives them has done nothing yet:
//! a 401 after the token was replaced, and a 403 for a missing crumb.
//!
//! Redirects are answers like any other. Nothing but the base address is ever asked.

use crate::client::config::JenkinsServerConfig;
use crate::client::credential::{self, BadSecret, Credential};
use crate::client::request::{MissingSubject, ServerRequest, Verb};
use domain::Tenant;
use egress::header::{HeaderMap, HeaderName, HeaderValue};
use egress::{Config, Guarded, GuardedResponse, Method, SendError, Url};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use target::{Connection, ConnectionLoad, NoAnswer, connection};
use tokio::time::Instant;

/// How many requests of one tenant may be under way to one server.
const SLOTS: usize = 16;
/// How long one request may take.
const EACH: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(5);
/// The largest answer we take.
pub(in crate::client) const MOST_BYTES: usize = 8 * 1024 * 1024;

/// Why there is no answer.
pub(in crate::client) type NoServerAnswer = NoAnswer<BadSecret>;

/// How much of an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum BodyLimit {
    /// All of it; one that is larger than this is an error.
    Whole(usize),
    /// The beginning; the rest is left.
    Part(usize),
}

pub(in crate::client) struct JenkinsConnection {
    pub(in crate::client) tenant: Tenant,
    pub(in crate::client) config: JenkinsServerConfig,
    connection: Connection,
    /// The client, with the certificates it was built with.
    client: Mutex<Option<(Option<String>, Guarded)>>,
    crumb: Mutex<Option<Arc<Crumb>>>,
}

/// What a server that guards against forged requests wants to see, besides the token.
struct Crumb {
    field: HeaderName,
    value: HeaderValue,
    /// The session it belongs to.
    cookie: Option<HeaderValue>,
    /// Whose it is.
    owner: Credential,
}

impl JenkinsConnection {
    pub(in crate::client) fn new(tenant: Tenant, config: JenkinsServerConfig) -> JenkinsConnection {
        let connection = Connection::new("jenkins", &config.name, SLOTS);
        JenkinsConnection { tenant, config, connection, client: Mutex::new(None), crumb: Mutex::new(None) }
    }

    pub(in crate::client) fn pressure(&self) -> ConnectionLoad {
        self.connection.load()
    }

    /// Sends a request and reads its answer.
    pub(in crate::client) async fn send(
        &self,
        request: &ServerRequest,
        take: BodyLimit,
        deadline: Instant,
    ) -> Result<GuardedResponse, NoServerAnswer> {
        let method = match request.verb {
            Verb::Get => "GET",
            Verb::Post => "POST",
        };
        let span = target::request_span!("jenkins", method, request.route, self.tenant);
        let status = |answer: &GuardedResponse| answer.status;
        connection::in_span(span, status, self.attempt(request, take, deadline)).await
    }

    async fn attempt(
        &self,
        request: &ServerRequest,
        take: BodyLimit,
        deadline: Instant,
    ) -> Result<GuardedResponse, NoServerAnswer> {
        let _slot = self.connection.slot(deadline).await?;
        let credential = Credential::read(&self.config).await.map_err(NoServerAnswer::Credential)?;
        let answer = self.once(request, take, &credential, deadline).await?;
        if answer.status == 401 {
            let fresh = Credential::read(&self.config).await.map_err(NoServerAnswer::Credential)?;
            if fresh != credential {
                return self.once(request, take, &fresh, deadline).await;
            }
        }
        if request.verb == Verb::Post && wants_crumb(&answer) && self.fetch_crumb(&credential, deadline).await? {
            return self.once(request, take, &credential, deadline).await;
        }
        Ok(answer)
    }

    async fn once(
        &self,
        request: &ServerRequest,
        take: BodyLimit,
        credential: &Credential,
        deadline: Instant,
    ) -> Result<GuardedResponse, NoServerAnswer> {
        let client = self.client().await?;
        let url = self.url(request)?;
        let method = match request.verb {
            Verb::Get => Method::GET,
            Verb::Post => Method::POST,
        };
        let mut outgoing = egress::GuardedRequest::new(method, &url).authorized(&credential.header);
        self.add_headers(request, credential, &mut outgoing.headers);
        outgoing.body = request.body();
        let sending = async {
            let sent = match take {
                BodyLimit::Whole(most) => client.send(outgoing, most).await,
                BodyLimit::Part(most) => client.send_for_part(outgoing, most).await,
            };
            sent.map_err(|error| of_error(&error))
        };
        let mut answer = self.connection.send_once(deadline.min(Instant::now() + EACH), sending).await?;
        credential.scrub(&mut answer);
        Ok(answer)
    }

    fn add_headers(&self, request: &ServerRequest, credential: &Credential, headers: &mut HeaderMap) {
        if request.verb == Verb::Get {
            return;
        }
        const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(egress::header::CONTENT_TYPE, FORM);
        let crumb = self.crumb.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(crumb) = crumb.filter(|crumb| crumb.owner == *credential) {
            headers.insert(crumb.field.clone(), crumb.value.clone());
            if let Some(cookie) = &crumb.cookie {
                headers.insert(egress::header::COOKIE, cookie.clone());
            }
        }
    }

    /// Asks for a crumb and keeps it, with the session it belongs to. `false`: the server gives none.
    async fn fetch_crumb(&self, credential: &Credential, deadline: Instant) -> Result<bool, NoServerAnswer> {
        let request = ServerRequest::get("/crumbIssuer/api/json", "/crumbIssuer/api/json", MissingSubject::Server)
            .tree("crumb,crumbRequestField");
        *self.crumb.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let answer = self.once(&request, BodyLimit::Whole(64 * 1024), credential, deadline).await?;
        let crumb = crumb_of(&answer, credential);
        let found = crumb.is_some();
        *self.crumb.lock().unwrap_or_else(PoisonError::into_inner) = crumb.map(Arc::new);
        Ok(found)
    }

    /// The client, built on first use and again when the trusted certificates have changed.
    async fn client(&self) -> Result<Guarded, NoServerAnswer> {
        let authorities = credential::authorities(&self.config).await.map_err(NoServerAnswer::Credential)?;
        let mut known = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((built_with, client)) = &*known
            && *built_with == authorities
        {
            return Ok(client.clone());
        }
        let config = Config { connect_within: CONNECT, answer_within: EACH, authorities: authorities.clone() };
        let client =
            self.config.guard.client(&config).map_err(|_| NoServerAnswer::Credential(BadSecret::Certificates))?;
        *known = Some((authorities, client.clone()));
        Ok(client)
    }

    /// The base address and what follows it. Nothing that follows can change the host: it begins with a slash.
    fn url(&self, request: &ServerRequest) -> Result<Url, NoServerAnswer> {
        let base = self.config.url.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}{}", request.target())).map_err(|_| NoServerAnswer::Refused)
    }
}

fn of_error(error: &SendError) -> NoServerAnswer {
    match error {
        SendError::Refused(_) => NoServerAnswer::Refused,
        SendError::TooLong { .. } => NoServerAnswer::TooLarge,
        SendError::NoAnswer(cause) if cause.is_connect() => NoServerAnswer::Unconnected,
        SendError::NoAnswer(cause) if cause.is_timeout() => NoServerAnswer::Late,
        SendError::NoAnswer(_) => NoServerAnswer::Broken,
    }
}

/// Whether a refusal is about a missing or outdated crumb. It is given before anything is done.
fn wants_crumb(answer: &GuardedResponse) -> bool {
    answer.status == 403 && String::from_utf8_lossy(&answer.body).to_ascii_lowercase().contains("crumb")
}

fn crumb_of(answer: &GuardedResponse, owner: &Credential) -> Option<Crumb> {
    let said: Value = serde_json::from_slice(&answer.body).ok().filter(|_| answer.status == 200)?;
    let field = HeaderName::try_from(said["crumbRequestField"].as_str()?).ok()?;
    // A server does not get to set whatever header it likes.
    if !field.as_str().contains("crumb") {
        return None;
    }
    let mut value = HeaderValue::from_str(said["crumb"].as_str()?).ok()?;
    value.set_sensitive(true);
    let cookies: Vec<&str> = answer
        .headers
        .get_all(egress::header::SET_COOKIE)
        .iter()
        .filter_map(|cookie| cookie.to_str().ok()?.split(';').next())
        .collect();
    let cookie = (!cookies.is_empty()).then(|| HeaderValue::from_str(&cookies.join("; ")).ok()).flatten();
    let cookie = cookie.map(|mut cookie| {
        cookie.set_sensitive(true);
        cookie
    });
    Some(Crumb { field, value, cookie, owner: owner.clone() })
}
