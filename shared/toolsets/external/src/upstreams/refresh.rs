//! Bringing one server up to date: the store first, the server only with the lease, one flight at a time.

use super::{Upstreams, UpstreamsParts};
use crate::answer::scrubbed;
use crate::config::{Accept, ExternalServerConfig};
use crate::link::{LinkKey, LinkLimits, ServerEra};
use crate::member::{AcceptedState, Member, ServerReading};
use crate::offer::ToolOffer;
use crate::pins;
use crate::tool::{DEPTH, NODES, place};
use domain::{Assignment, Code, Failure, KnownSwitches, Moment, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use store::{
    Actor, ActorKind, AuditEntry, FetchFailure, FetchLease, FetchedList, ListFacts, Phase, PinOutcome, RecordVersion,
    ServerStore, StoreError, VersionedListing,
};
use tokio::sync::broadcast;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long a whole list may take.
const LIST_WITHIN: Duration = Duration::from_secs(10);
/// How long the right to fetch lasts: longer than a fetch, so that it is not fetched twice, and short enough that a
/// replica that died holding it is soon forgotten.
const LEASE: Duration = Duration::from_secs(12);
/// How soon a server is asked again that gave no list.
const RETRY: Duration = Duration::from_secs(15);
/// How soon to look again while another replica fetches, or the store does not answer.
const SOON: Duration = Duration::from_secs(1);
/// A server that says again and again that its tools changed is asked no more often than this.
const CALM: Duration = Duration::from_secs(5);

/// Whether the server itself may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefreshPolicy {
    /// Only what is kept is read.
    No,
    /// If the list is too old, or was never fetched.
    IfDue,
    /// It said that its list is another.
    Now,
}

/// Hears the servers say that their tools changed.
pub(super) async fn listen(
    parts: Weak<UpstreamsParts>,
    mut heard: broadcast::Receiver<LinkKey>,
    stop: CancellationToken,
) {
    loop {
        let said = tokio::select! {
            () = stop.cancelled() => return,
            said = heard.recv() => said,
        };
        let Some(upstreams) = parts.upgrade().map(Upstreams) else { return };
        match said {
            Ok(LinkKey { tenant, server }) => {
                if let Some(member) = upstreams.members_of(&tenant).get(&server) {
                    upstreams.kick(member, RefreshPolicy::Now);
                }
            }
            // Some were missed; every list has its time, so none stays wrong for longer than that.
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

impl Upstreams {
    /// Starts a look in the background unless one is under way.
    pub(super) fn kick(&self, member: &Arc<Member>, asking: RefreshPolicy) {
        let Ok(flight) = Arc::clone(&member.flight).try_lock_owned() else {
            // What is under way may have asked before the change: it is to ask again.
            member.again.fetch_or(asking == RefreshPolicy::Now, Ordering::Relaxed);
            return;
        };
        let (upstreams, member) = (self.clone(), Arc::clone(member));
        let stop = self.0.stop.token().clone();
        let work = async move {
            let _flight = flight;
            let mut asking = asking;
            loop {
                upstreams.look_or_tell(&member, asking).await;
                if !member.again.swap(false, Ordering::Relaxed) {
                    return;
                }
                asking = RefreshPolicy::Now;
            }
        };
        let work = async move { stop.run_until_cancelled(work).await };
        self.0.tasks.spawn_on(work, &self.0.home);
    }

    pub(super) async fn look_or_tell(&self, member: &Arc<Member>, asking: RefreshPolicy) {
        if let Err(error) = self.look(member, asking).await {
            let (tenant, server) = (&member.tenant, member.id.as_str());
            let error = &error as &dyn std::error::Error;
            tracing::warn!(%tenant, server, error, "what is kept of an external server cannot be read");
        }
    }

    /// Reads what is kept, asks the server where that is due and nobody else does, and takes over what came of it.
    /// The caller holds the flight.
    pub(super) async fn look(&self, member: &Arc<Member>, asking: RefreshPolicy) -> Result<(), StoreError> {
        let looked = self.look_once(member, asking).await;
        if looked.is_err() {
            member.look_again(Instant::now() + SOON);
        }
        looked
    }

    async fn look_once(&self, member: &Arc<Member>, asking: RefreshPolicy) -> Result<(), StoreError> {
        let config = member.config();
        let servers = self.0.store.of(&member.tenant).servers();
        let (mut held, mut now) = servers.listing(&member.id).await?;
        let place = (config.target)(&Assignment::default()).ok().map(|target| place(&target));
        let fetched = held.listing.fetched.as_ref();
        if let (RefreshPolicy::Now, Some(rest)) = (asking, fetched.and_then(|f| CALM.checked_sub(now.since(f.at)))) {
            tokio::time::sleep(rest).await;
            (held, now) = servers.listing(&member.id).await?;
        }
        let jittered = self.jittered(&member.id, config.limits.refresh);
        let is_stopped = self.is_stopped(member, now).await?;
        if !is_stopped && is_due(&held.listing, now, asking, jittered, place.as_deref()) {
            let lease = FetchLease { owner: self.0.store.replica().to_owned(), until: now.plus(LEASE) };
            if let Some(mine) = servers.lease(&member.id, &held, lease).await? {
                self.fetch(member, &config, &servers, mine, now).await?;
            }
            (held, now) = servers.listing(&member.id).await?;
        }
        let offer = offered(member, &servers, &held.listing).await?;
        let pins = accepted(member, &servers).await;
        let pins = match (&pins, &offer) {
            (AcceptedState::Nothing, Some(offer)) if config.accept == Accept::First => {
                self.accept_first(member, &servers, offer, now).await?
            }
            _ => pins,
        };
        if asking != RefreshPolicy::No {
            // Whoever only reads must not put off those who may ask.
            let rest = if is_stopped { RETRY } else { Duration::ZERO };
            member.look_again(Instant::now() + next_look(&held.listing, now, jittered).max(rest));
        }
        self.take_over(member, ServerReading { listing: held.listing, offer, pins }).await;
        Ok(())
    }

    /// Whether a kill switch stops everything that would be asked of a server; then what is kept of its list stays.
    async fn is_stopped(&self, member: &Member, now: Moment) -> Result<bool, StoreError> {
        let switches = self.0.store.switches();
        switches.ensure_read().await?;
        let stops = switches.in_force(&member.tenant, now).stops();
        Ok(stops.switches().iter().any(|switch| switch.on.covers_server(&member.id)))
    }

    async fn take_over(&self, member: &Arc<Member>, known: ServerReading) {
        let (shared, drawn) = (Arc::clone(&self.0.shared), Arc::clone(member));
        // Compiling a server's schemas takes a while, and other work waits on this thread.
        let other = tokio::task::spawn_blocking(move || drawn.know(known, &shared)).await.unwrap_or(false);
        if other {
            // An error means that nobody listens at this moment, which is no loss.
            drop(self.0.changes.send(member.tenant.clone()));
        }
    }

    /// Asks the server and writes down what it said, or that it said nothing.
    async fn fetch(
        &self,
        member: &Member,
        config: &Arc<ExternalServerConfig>,
        servers: &ServerStore,
        mine: VersionedListing,
        now: Moment,
    ) -> Result<(), StoreError> {
        let began = Instant::now();
        let deadline = began + LIST_WITHIN;
        let key = LinkKey { tenant: member.tenant.clone(), server: member.id.clone() };
        let limits = LinkLimits { deadline, bytes: config.limits.result_bytes, nodes: NODES, depth: DEPTH };
        let asked = async {
            let target = (config.target)(&Assignment::default())?;
            let listed = self.0.shared.links.list(&key, &target, &limits).await?;
            Ok((listed, place(&target)))
        };
        let late = |_| Failure::new(Code::Deadline, "the external server did not list its tools in time");
        let answer = timeout_at(deadline, asked).await.map_err(late).and_then(|answer| answer);
        let scrubber = self.0.shared.scrubber(&member.tenant, config);
        let at = now.plus(began.elapsed());
        let (tenant, server) = (&member.tenant, member.id.as_str());
        let written = match answer {
            Ok((listed, target)) => {
                let era = match listed.era {
                    ServerEra::Legacy => "legacy",
                    ServerEra::Modern => "modern",
                };
                let tools = listed.tools.into_iter().map(|tool| scrubbed(tool, &scrubber)).collect();
                let read = move || {
                    let offer = ToolOffer::of(tools);
                    offer.to_bytes().map(|list| (offer, list))
                };
                // Only a panic while reading leaves nothing; then the lease runs out and the next one tries.
                let Ok(Some((offer, list))) = tokio::task::spawn_blocking(read).await else { return Ok(()) };
                tracing::info!(%tenant, server, tools = offer.tools.len(), "an external server was listed");
                let fetched = FetchedList { at, digest: offer.digest, era: era.to_owned(), target };
                servers.fetched(&member.id, &mine, fetched, list).await?
            }
            Err(failure) => {
                let message = scrubber.scrub(&failure.message).into_owned();
                tracing::warn!(%tenant, server, code = failure.code.as_str(), "an external server gave no list");
                let trouble = FetchFailure { code: failure.code.as_str().to_owned(), message, since: at, at };
                servers.failed(&member.id, &mine, trouble).await?
            }
        };
        if !written {
            tracing::warn!(%tenant, server, "the right to list an external server ran out before its answer came");
        }
        Ok(())
    }

    /// Accepts the first list as it is, unless somebody was quicker.
    async fn accept_first(
        &self,
        member: &Member,
        servers: &ServerStore,
        offer: &ToolOffer,
        now: Moment,
    ) -> Result<AcceptedState, StoreError> {
        let usable: Vec<_> = offer.tools.iter().filter(|listed| listed.tool.is_ok()).collect();
        if usable.is_empty() {
            return Ok(AcceptedState::Nothing);
        }
        let many = usable.len();
        let pins = pins::accepted(None, offer, usable, None, now);
        let service = Actor {
            principal: domain::Principal::new("quartermaster", self.0.store.replica()),
            kind: ActorKind::Service,
            scopes: domain::Scopes::default(),
            token: None,
        };
        let entry = AuditEntry {
            actor: Some(service),
            toolset: Some(member.toolset.clone()),
            target: Some(format!("server {}: first list {} with {many} tools accepted", member.id, offer.digest)),
            ..AuditEntry::new(Phase::Admin)
        };
        match servers.pin(&member.id, RecordVersion::NONE, &pins, &entry).await? {
            PinOutcome::Done => Ok(AcceptedState::Pins(Arc::new(pins))),
            PinOutcome::Conflict => Ok(accepted(member, servers).await),
        }
    }

    /// The time a list is good for, a little different on every replica, so that they do not all look at once.
    fn jittered(&self, server: &str, refresh: Duration) -> Duration {
        let digest = json::sha256_hex(format!("{}\n{server}", self.0.store.replica()).as_bytes());
        let share = u32::from_str_radix(&digest[..4], 16).unwrap_or_default();
        refresh * 9 / 10 + refresh / 5 * share / u32::from(u16::MAX)
    }
}

/// Whether the server is to be asked now.
fn is_due(listing: &ListFacts, now: Moment, asking: RefreshPolicy, good_for: Duration, place: Option<&str>) -> bool {
    let leased = listing.lease.as_ref().is_some_and(|lease| now < lease.until);
    let failed_lately = listing.trouble.as_ref().is_some_and(|trouble| now.since(trouble.at) < peace(trouble));
    // What an address answered says nothing about another one.
    let elsewhere = |fetched: &FetchedList| place.is_some_and(|place| place != fetched.target);
    let old = match (&listing.fetched, asking) {
        (Some(fetched), RefreshPolicy::IfDue) => now.since(fetched.at) >= good_for || elsewhere(fetched),
        (Some(fetched), RefreshPolicy::Now) => now.since(fetched.at) >= CALM || elsewhere(fetched),
        (None, RefreshPolicy::IfDue | RefreshPolicy::Now) => true,
        (_, RefreshPolicy::No) => false,
    };
    old && !leased && !failed_lately
}

/// How long a server is left in peace that gave no list. One that was never asked, because its credential is missing, need
/// not be: whoever sets it expects to see the tools.
fn peace(trouble: &FetchFailure) -> Duration {
    if trouble.code == Code::UnknownCredential.as_str() { SOON } else { RETRY }
}

/// How long until the next look is worth its while.
fn next_look(listing: &ListFacts, now: Moment, good_for: Duration) -> Duration {
    let left = |since: Moment, span: Duration| span.saturating_sub(now.since(since));
    let fresh = listing.fetched.as_ref().map_or(Duration::ZERO, |fetched| left(fetched.at, good_for));
    let retry = listing.trouble.as_ref().map_or(Duration::ZERO, |trouble| left(trouble.at, peace(trouble)));
    fresh.max(retry).max(SOON)
}

/// The list that is kept; from memory where it is the same.
async fn offered(
    member: &Member,
    servers: &ServerStore,
    listing: &ListFacts,
) -> Result<Option<Arc<ToolOffer>>, StoreError> {
    let Some(fetched) = &listing.fetched else { return Ok(member.view().known.offer.clone()) };
    let known = member.view().known.offer.clone();
    if known.as_ref().is_some_and(|offer| offer.digest == fetched.digest) {
        return Ok(known);
    }
    let bytes = servers.list(&member.id).await?;
    let read = tokio::task::spawn_blocking(move || bytes.and_then(|bytes| ToolOffer::from_bytes(&bytes))).await;
    // A cache that is lost or unreadable is no reason to offer less; the next fetch writes it anew.
    Ok(read.ok().flatten().map(Arc::new).or(known))
}

/// What was accepted. What cannot be read means that nothing is offered; a store that is away for a moment, or holds what
/// this service did not write, takes back nothing that was read before, since a pin only ever holds for its own definition.
async fn accepted(member: &Member, servers: &ServerStore) -> AcceptedState {
    match servers.pins(&member.id).await {
        Ok((Some(pins), _)) => AcceptedState::Pins(Arc::new(pins)),
        Ok((None, _)) => AcceptedState::Nothing,
        Err(error @ StoreError::Corrupt { .. }) => {
            let (tenant, server) = (&member.tenant, member.id.as_str());
            let error = &error as &dyn std::error::Error;
            tracing::error!(%tenant, server, error, "what was accepted of an external server cannot be read: it is offered no more");
            AcceptedState::Unreadable
        }
        // Told by the store. Before anything was read, nothing is offered.
        Err(_) => member.view().known.pins.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Moment {
        Moment::from_secs(secs)
    }

    fn due(listing: &ListFacts, secs: u64, asking: RefreshPolicy) -> bool {
        is_due(listing, at(secs), asking, Duration::from_secs(600), Some("here"))
    }

    fn trouble(code: Code) -> ListFacts {
        let trouble =
            FetchFailure { code: code.as_str().to_owned(), message: String::new(), since: at(1), at: at(100) };
        ListFacts { trouble: Some(trouble), ..ListFacts::default() }
    }

    #[test]
    fn the_lease_of_a_replica_that_died_is_in_nobodys_way_for_long() {
        let lease = FetchLease { owner: "rep_dead".into(), until: at(100).plus(LEASE) };
        let listing = ListFacts { lease: Some(lease), ..ListFacts::default() };
        assert!(!due(&listing, 111, RefreshPolicy::IfDue) && !due(&listing, 111, RefreshPolicy::Now));
        assert!(due(&listing, 112, RefreshPolicy::IfDue));
        assert!(LIST_WITHIN < LEASE, "whoever is at work keeps it to the end");
    }

    #[test]
    fn a_server_that_failed_is_left_in_peace_and_one_that_was_never_asked_is_not() {
        let (failed, missing) = (trouble(crate::codes::UPSTREAM_UNAVAILABLE), trouble(Code::UnknownCredential));
        assert!(!due(&failed, 114, RefreshPolicy::Now) && due(&failed, 115, RefreshPolicy::IfDue));
        assert!(!due(&missing, 100, RefreshPolicy::IfDue) && due(&missing, 101, RefreshPolicy::IfDue));
    }

    #[test]
    fn a_list_is_good_for_its_time_and_for_its_address() {
        let fetched =
            FetchedList { at: at(100), digest: String::new(), era: "modern".into(), target: "here".to_owned() };
        let listing = ListFacts { fetched: Some(fetched), ..ListFacts::default() };
        assert!(!due(&listing, 699, RefreshPolicy::IfDue) && due(&listing, 700, RefreshPolicy::IfDue));
        assert!(
            !due(&listing, 104, RefreshPolicy::Now)
                && due(&listing, 105, RefreshPolicy::Now)
                && !due(&listing, 9_999, RefreshPolicy::No)
        );
        assert!(is_due(&listing, at(101), RefreshPolicy::IfDue, Duration::from_secs(600), Some("elsewhere")));
    }
}
