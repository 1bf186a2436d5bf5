//! Requests to repositories and registries: past the guard, to listed hosts, bounded in bytes, tries and number.
//!
//! Open and closed ports, silence and refusals of the resolver all read as `repo_unreachable`, so that nobody can look
//! around in a network by adding repositories.

use super::place::ChartLimits;
use domain::{Code, Failure, Tenant};
use egress::header::{ACCEPT, HeaderValue, LOCATION};
use egress::{Guarded, GuardedRequest, GuardedResponse, SendError, Url};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use target::{Breaker, TargetSlots};
use tokio::time::{Instant, sleep};

/// How many requests of one tenant to one host may be under way.
const AT_ONCE: usize = 4;
/// How often a request is tried.
const TRIES: usize = 2;
/// How long between tries.
const PAUSE: Duration = Duration::from_millis(250);
/// How many times an archive may be said to be somewhere else.
const HOPS: usize = 3;
/// How many pairs of tenant and host are remembered; those at rest are forgotten first.
const LINES: usize = 4_096;

pub(in crate::client) struct ChartWeb {
    pub(in crate::client) limits: ChartLimits,
    client: Guarded,
    lines: Mutex<HashMap<(Tenant, String), Arc<HostConnection>>>,
}

/// One tenant's way to one host.
struct HostConnection {
    breaker: Breaker,
    slots: TargetSlots,
}

/// One question.
pub(in crate::client) struct ChartRequest<'a> {
    pub(in crate::client) url: &'a Url,
    pub(in crate::client) accept: Option<&'static str>,
    /// The value of the `Authorization` header.
    pub(in crate::client) authorization: Option<&'a str>,
    pub(in crate::client) cap: usize,
}

impl ChartWeb {
    pub(in crate::client) fn new(limits: ChartLimits, client: Guarded) -> ChartWeb {
        ChartWeb { limits, client, lines: Mutex::default() }
    }

    /// Asks once, or again where that may help. Any status is an answer.
    pub(in crate::client) async fn ask(
        &self,
        tenant: &Tenant,
        ask: &ChartRequest<'_>,
    ) -> Result<GuardedResponse, Failure> {
        self.limits.check(ask.url)?;
        let line = self.line(tenant, ask.url);
        let deadline = Instant::now() + Duration::from_secs(5);
        let _slot = line.slots.take(deadline).await.map_err(|_| unreachable(ask.url).retry_after_ms(1_000))?;
        let mut tried = 0;
        loop {
            tried += 1;
            let go = line.breaker.enter(Instant::now()).map_err(|pause| unreachable(ask.url).retry_after(pause))?;
            let answer = self.client.send(request(ask), ask.cap).await;
            let now = Instant::now();
            match answer {
                Ok(answer) if answer.status >= 500 || answer.status == 429 => {
                    go.lost(now);
                    if tried == TRIES {
                        return Ok(answer);
                    }
                }
                Ok(answer) => {
                    go.answered(now);
                    return Ok(answer);
                }
                Err(SendError::TooLong { cap }) => {
                    go.answered(now);
                    let message = format!("the repository's answer is longer than {cap} bytes");
                    return Err(Failure::new(Code::TooLarge, message).next("ask an admin for another repository"));
                }
                Err(error @ (SendError::NoAnswer(_) | SendError::Refused(_))) => {
                    go.lost(now);
                    let refused = matches!(error, SendError::Refused(_));
                    if refused || tried == TRIES {
                        tracing::info!(
                            host = ask.url.host_str(),
                            error = &error as &dyn std::error::Error,
                            "no answer"
                        );
                        return Err(unreachable(ask.url));
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks for an archive, which may be said to be somewhere else: only at a listed host, never less protected, and
    /// without the credential unless it is the same host.
    pub(in crate::client) async fn download(
        &self,
        tenant: &Tenant,
        ask: &ChartRequest<'_>,
    ) -> Result<GuardedResponse, Failure> {
        let (mut url, mut authorization) = (ask.url.clone(), ask.authorization);
        for _ in 0..=HOPS {
            let answer =
                self.ask(tenant, &ChartRequest { url: &url, authorization, accept: ask.accept, cap: ask.cap }).await?;
            let moved = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            let Some(location) = answer.headers.get(LOCATION).filter(|_| moved) else { return Ok(answer) };
            let next = location.to_str().ok().and_then(|text| url.join(text).ok()).ok_or_else(|| unreachable(&url))?;
            self.limits.check(&next)?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(unreachable(&url));
            }
            if next.origin() != url.origin() {
                authorization = None;
            }
            url = next;
        }
        Err(unreachable(&url))
    }

    fn line(&self, tenant: &Tenant, url: &Url) -> Arc<HostConnection> {
        let key = (tenant.clone(), url.authority().to_owned());
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.retain(|_, line| Arc::strong_count(line) > 1);
        }
        let fresh = || Arc::new(HostConnection { breaker: Breaker::default(), slots: TargetSlots::new(AT_ONCE) });
        Arc::clone(lines.entry(key).or_insert_with(fresh))
    }
}

fn request<'a>(ask: &ChartRequest<'a>) -> GuardedRequest<'a> {
    let mut request = GuardedRequest::get(ask.url);
    if let Some(accept) = ask.accept {
        request.headers.insert(ACCEPT, HeaderValue::from_static(accept));
    }
    match ask.authorization {
        Some(value) => request.authorized(value),
        None => request,
    }
}

/// What every failure to reach a repository reads like.
pub(in crate::client) fn unreachable(url: &Url) -> Failure {
    let message = format!("{} does not answer as a chart repository or registry", url.host_str().unwrap_or_default());
    Failure::new(crate::codes::REPO_UNREACHABLE, message)
        .next("try again later, or ask an admin to check the repository")
}

/// What a status other than the wanted one means.
pub(in crate::client) fn refused(status: u16, url: &Url) -> Failure {
    match status {
        401 | 403 => {
            let message = format!("{} does not accept the tenant's credential", url.host_str().unwrap_or_default());
            Failure::new(target::codes::CREDENTIALS_REFUSED, message)
                .next("ask an admin to set or renew the repository's credential")
        }
        _ => unreachable(url),
    }
}
