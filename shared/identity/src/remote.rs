//! Keys an issuer publishes: fetched when needed, kept in memory, and never asked for too often.
//!
//! At most one fetch is under way per issuer, and at most one begins per `refetch_every`, whatever tokens arrive.
//! The fetch is a shared future that stays here when whoever began it goes away; the next one in need carries it on.
//! So a client that hangs up cannot keep new keys from being learnt.
//!
//! A fetch that fails leaves the old keys in place. Once they are older than `max_stale` nothing is verified by them.
//! Ages are distances between moments, so a clock set back makes keys old instead of young for ever.

use crate::config::Algorithm;
use crate::jwks::{self, JwksError};
use crate::keys::{Fingerprint, KeySet, VerifyingKey};
use crate::refused::TokenRefused;
use arc_swap::ArcSwapOption;
use domain::Moment;
use domain::text::error_chain;
use egress::FetchError;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Keys older than this are fetched again even if every token fits, so that withdrawn ones are noticed.
const REFRESH_AFTER: Duration = Duration::from_secs(5 * 60);
/// How long a request that could do without waits for fresher keys.
const PATIENCE: Duration = Duration::from_millis(500);
/// A key set of 64 keys with certificate chains stays well below.
const MOST_BYTES: usize = 256 * 1024;

pub(crate) struct RemoteKeys {
    source: Arc<KeySource>,
    refetch_every: Duration,
    refresh_after: Duration,
    pub(crate) max_stale: Duration,
    last_fetch: Mutex<Option<Fetch>>,
}

/// Where the keys come from and where they are kept; shared with the fetch under way.
pub(crate) struct KeySource {
    pub(crate) issuer: String,
    pub(crate) url: String,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) http: egress::HttpClient,
    pub(crate) held: ArcSwapOption<FetchedKeys>,
}

/// The keys as they were at one time.
pub(crate) struct FetchedKeys {
    keys: KeySet,
    asked_at: Moment,
}

struct Fetch {
    began: Moment,
    ended: Shared<BoxFuture<'static, ()>>,
}

/// Whether a fetch is waited for by one who cannot go on without, or looked after in passing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FetchUrgency {
    Urgent,
    Passing,
}

#[derive(Debug, thiserror::Error)]
enum RefreshError {
    #[error("could not fetch the key set")]
    Fetch(#[source] FetchError),
    #[error("could not read the key set")]
    Read(#[source] JwksError),
}

impl RemoteKeys {
    pub(crate) fn new(source: KeySource, refetch_every: Duration, max_stale: Duration) -> RemoteKeys {
        let refresh_after = REFRESH_AFTER.min(max_stale / 2);
        RemoteKeys { source: Arc::new(source), refetch_every, refresh_after, max_stale, last_fetch: Mutex::new(None) }
    }

    /// The key for a token, fetching once if it is not among those we have.
    pub(crate) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        now: Moment,
    ) -> Result<Arc<VerifyingKey>, TokenRefused> {
        self.freshen(now).await;
        let mut found = self.look_up(kid, algorithm, now);
        // Twice, because a fetch that was left lying may be past its time and fail as soon as it is picked up.
        for _ in 0..2 {
            if !matches!(found, Err(TokenRefused::UnknownKey | TokenRefused::KeysUnavailable)) {
                break;
            }
            let Some(ended) = self.fetch(now, FetchUrgency::Urgent) else { break };
            ended.await;
            found = self.look_up(kid, algorithm, now);
        }
        found
    }

    /// Whether a key that once verified a token still may. Refreshes what is old; never waits long.
    pub(crate) async fn still_holds(&self, fingerprint: Fingerprint, now: Moment) -> bool {
        self.freshen(now).await;
        let held = self.source.held.load();
        held.as_ref().is_some_and(|held| self.is_believed(held, now) && held.keys.holds(fingerprint))
    }

    /// Whether there is a key to verify anything with.
    pub(crate) fn usable(&self, now: Moment) -> bool {
        let held = self.source.held.load();
        held.as_ref().is_some_and(|held| self.is_believed(held, now) && held.keys.len() > 0)
    }

    /// Fetches ahead of need: at half the age at which a request would have to.
    pub(crate) async fn warm(&self, now: Moment) {
        if self.age(now).is_none_or(|age| age >= self.refresh_after / 2)
            && let Some(ended) = self.fetch(now, FetchUrgency::Urgent)
        {
            ended.await;
        }
    }

    async fn freshen(&self, now: Moment) {
        if self.age(now).is_some_and(|age| age >= self.refresh_after)
            && let Some(ended) = self.fetch(now, FetchUrgency::Passing)
        {
            // Out of patience is fine: the old keys are still believed, and the fetch stays where it is.
            tokio::time::timeout(PATIENCE, ended).await.ok();
        }
    }

    /// How long ago the keys that are held were asked for.
    pub(crate) fn age(&self, now: Moment) -> Option<Duration> {
        self.source.held.load().as_ref().map(|held| distance(now, held.asked_at))
    }

    fn is_believed(&self, held: &FetchedKeys, now: Moment) -> bool {
        distance(now, held.asked_at) < self.max_stale
    }

    fn look_up(&self, kid: Option<&str>, algorithm: Algorithm, now: Moment) -> Result<Arc<VerifyingKey>, TokenRefused> {
        match self.source.held.load().as_ref() {
            Some(held) if self.is_believed(held, now) => held.keys.find(kid, algorithm).cloned(),
            Some(_) | None => Err(TokenRefused::KeysUnavailable),
        }
    }

    /// The fetch to wait for: the one under way, or a new one unless the last began too recently.
    fn fetch(&self, now: Moment, need: FetchUrgency) -> Option<Shared<BoxFuture<'static, ()>>> {
        let mut last = self.last_fetch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fetch) = last.as_ref() {
            let recent = distance(now, fetch.began) < self.refetch_every;
            let under_way = fetch.ended.peek().is_none();
            // In passing, a recent fetch is left to whoever began it; an old one was abandoned and is carried on.
            if under_way && (need == FetchUrgency::Urgent || !recent) {
                return Some(fetch.ended.clone());
            }
            if recent {
                return None;
            }
        }
        let ended = Arc::clone(&self.source).refresh(now).boxed().shared();
        *last = Some(Fetch { began: now, ended: ended.clone() });
        Some(ended)
    }
}

impl KeySource {
    async fn refresh(self: Arc<Self>, now: Moment) {
        match self.ask().await {
            Ok(keys) => {
                tracing::debug!(issuer = %self.issuer, keys = keys.len(), "fetched the issuer's keys");
                self.held.store(Some(Arc::new(FetchedKeys { keys, asked_at: now })));
            }
            Err(error) => {
                tracing::warn!(issuer = %self.issuer, error = %error_chain(&error), "the issuer's keys could not be refreshed");
            }
        }
    }

    async fn ask(&self) -> Result<KeySet, RefreshError> {
        let document = egress::get_capped(&self.http, &self.url, MOST_BYTES).await.map_err(RefreshError::Fetch)?;
        jwks::parse(&document, &self.algorithms).map_err(RefreshError::Read)
    }
}

fn distance(a: Moment, b: Moment) -> Duration {
    a.since(b).max(b.since(a))
}
