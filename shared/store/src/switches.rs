//! The kill switches of all tenants, in one record of the service.
//!
//! One record, so that a replica that looks whether anything changed reads one key, however many tenants there are. It is
//! sealed like every record by which something is done. What a replica has read holds until it reads something newer:
//! while the store is away, and if the store has lost the last changes, which are then written back.
//!
//! A record that is not authentic, or cannot be read, leaves what is known in force and lets only reads through besides:
//! nobody can tell what else was switched.
//!
//! Not here: who may set and lift what, and the audit log (see the gateway); what a call is answered (see `policy`).

use crate::guard::GuardedRead;
use crate::ops::Op;
use crate::{Commit, Committed, RecordKey, RecordVersion, Store, StoreError, TenantStore, TenantWatch, Topic};
use domain::{KnownSwitches, Moment, Principal, Switch, SwitchMode, SwitchOwner, SwitchSubject, Tenant};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, PoisonError, RwLock};

/// So many switches the admins of one tenant may have set at once.
pub const MOST_OF_TENANT: usize = 20;
/// So many the operator may have set at once.
pub const MOST_OF_OPERATOR: usize = 500;
/// The record may grow to this size by switches of tenants; the operator can always set more.
const MOST_BYTES: usize = 1024 * 1024;
/// How often a change is folded again.
const TRIES: usize = 16;
const UNREADABLE: StoreError = StoreError::Corrupt { what: "the kill switches" };

/// What this process knows of the switches.
#[derive(Default)]
pub(crate) struct SwitchMemory {
    state: RwLock<Arc<SwitchState>>,
    /// Held while the record is read or written, so that an older answer never comes last.
    busy: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct SwitchState {
    /// Whether the record was read, and is what this service wrote.
    standing: RecordStanding,
    version: u64,
    switches: Vec<Switch>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum RecordStanding {
    #[default]
    Unread,
    Good,
    /// Why it is not used.
    Bad(&'static str),
}

#[derive(Serialize, Deserialize)]
struct SwitchRecord {
    v: u32,
    switches: Vec<Switch>,
}

/// The switches in force for one tenant at one moment, as far as this process knows.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchesInForce(Vec<Switch>);

impl KnownSwitches for SwitchesInForce {
    fn switches(&self) -> &[Switch] {
        &self.0
    }
}

impl SwitchesInForce {
    /// Those that let not even reads through.
    #[must_use]
    pub fn stops(mut self) -> SwitchesInForce {
        self.0.retain(|switch| switch.mode == SwitchMode::Stop);
        self
    }
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` changed something"]
pub enum SwitchChange {
    /// It is so now, in this process and soon in every other.
    Done,
    /// There is no such switch.
    Absent,
    /// As many are set as may be.
    TooMany,
}

/// The kill switches of all tenants.
#[derive(Debug, Clone)]
pub struct SwitchStore(Store);

impl SwitchStore {
    pub(crate) fn new(store: Store) -> SwitchStore {
        SwitchStore(store)
    }

    /// Reads the record if this process never did: no call is judged before.
    pub async fn ensure_read(&self) -> Result<(), StoreError> {
        // In a box, because every call asks and one reads.
        if self.is_unread() { Box::pin(self.read_first()).await } else { Ok(()) }
    }

    async fn read_first(&self) -> Result<(), StoreError> {
        // Of many that come at once, one reads.
        let _busy = self.0.switch_memory().busy.lock().await;
        if self.is_unread() { self.look().await.map(drop) } else { Ok(()) }
    }

    fn is_unread(&self) -> bool {
        let state = self.0.switch_memory().state.read().unwrap_or_else(PoisonError::into_inner);
        state.standing == RecordStanding::Unread
    }

    /// Reads the record. A store that does not answer leaves everything as it is. Tells whether anything is different.
    pub async fn refresh(&self) -> Result<bool, StoreError> {
        let _busy = self.0.switch_memory().busy.lock().await;
        self.look().await
    }

    /// The same for whoever holds the lock.
    async fn look(&self) -> Result<bool, StoreError> {
        let before = self.state();
        let (version, next) = match self.read().await {
            Ok((version, switches)) => {
                (version, SwitchState { standing: RecordStanding::Good, version: version.number(), switches })
            }
            Err(StoreError::NotAuthentic { why, version }) => {
                (version, SwitchState { standing: RecordStanding::Bad(why), ..SwitchState::clone(&before) })
            }
            Err(StoreError::Corrupt { .. }) => {
                let standing = RecordStanding::Bad("it cannot be read");
                (RecordVersion::NONE, SwitchState { standing, ..SwitchState::clone(&before) })
            }
            Err(error) => return Err(error),
        };
        let lost = next.standing == RecordStanding::Good && next.version < before.version;
        if lost && !before.switches.is_empty() {
            // Another server has forgotten the last changes by itself; within one server the guard refuses this.
            tracing::error!(
                read = next.version,
                known = before.version,
                "the store lost kill switches; they are written back"
            );
            self.write(version, &before.switches).await?;
            return Ok(false);
        }
        Ok(self.keep(next))
    }

    /// Those in force for a tenant. While nobody can tell what is switched, the service lets only reads through.
    pub fn in_force(&self, tenant: &Tenant, now: Moment) -> SwitchesInForce {
        let state = self.state();
        let held = state.switches.iter().filter(|switch| switch.is_in_force(tenant, now));
        let doubt = match state.standing {
            RecordStanding::Good => None,
            RecordStanding::Unread => Some("the kill switches were not read yet"),
            RecordStanding::Bad(_) => Some("the record of the kill switches is not authentic or cannot be read"),
        };
        let cautious = doubt.map(|reason| Switch {
            tenant: None,
            on: SwitchSubject::Tenant,
            mode: SwitchMode::ReadOnly,
            reason: reason.to_owned(),
            owner: SwitchOwner::Service,
            by: Principal::new("quartermaster", self.0.replica()),
            from: Tenant::of_service(),
            at: now,
            until: None,
        });
        SwitchesInForce(held.cloned().chain(cautious).collect())
    }

    /// Every switch that this process knows, ended ones included until they are taken out.
    pub fn all(&self) -> Vec<Switch> {
        self.state().switches.clone()
    }

    /// Whether the record was read and is what this service wrote.
    pub fn is_good(&self) -> bool {
        self.state().standing == RecordStanding::Good
    }

    /// Whether the record was read and is not what this service wrote, or cannot be understood.
    pub fn is_doubted(&self) -> bool {
        matches!(self.state().standing, RecordStanding::Bad(_))
    }

    /// Hears when the record changes.
    pub fn watch(&self) -> TenantWatch {
        self.shelf().watch()
    }

    /// Sets a switch, in the place of one of the same name. With `over`, also over a record that is not authentic: then
    /// what this process knows stands, and the new one.
    pub async fn set(&self, switch: Switch, over: bool) -> Result<SwitchChange, StoreError> {
        self.change(over, |switches| {
            let id = switch.id();
            switches.retain(|other| other.id() != id);
            let of_side = |other: &&Switch| match switch.owner {
                SwitchOwner::TenantAdmin => other.owner == switch.owner && other.tenant == switch.tenant,
                SwitchOwner::Operator | SwitchOwner::Service => other.owner == switch.owner,
            };
            let most = if switch.owner == SwitchOwner::TenantAdmin { MOST_OF_TENANT } else { MOST_OF_OPERATOR };
            if switches.iter().filter(of_side).count() >= most {
                return SwitchChange::TooMany;
            }
            switches.push(switch.clone());
            let bytes = to_bytes(switches).map_or(usize::MAX, |bytes| bytes.len());
            let full = switch.owner == SwitchOwner::TenantAdmin && bytes > MOST_BYTES;
            if full { SwitchChange::TooMany } else { SwitchChange::Done }
        })
        .await
    }

    /// Lifts a switch.
    pub async fn lift(&self, id: &str, over: bool) -> Result<SwitchChange, StoreError> {
        self.change(over, |switches| {
            let before = switches.len();
            switches.retain(|switch| switch.id() != id);
            if switches.len() < before { SwitchChange::Done } else { SwitchChange::Absent }
        })
        .await
    }

    /// Takes out the switches whose end has passed by the store's clock, and gives those that no other replica took out.
    pub async fn take_ended(&self) -> Result<Vec<Switch>, StoreError> {
        if self.state().switches.iter().all(|switch| switch.until.is_none()) {
            return Ok(Vec::new());
        }
        let now = self.0.now().await?;
        let ended: Vec<Switch> = self.all().into_iter().filter(|switch| switch.has_ended(now)).collect();
        let mut taken = Vec::new();
        for switch in ended {
            let (id, until) = (switch.id(), switch.until);
            // Set again meanwhile, it has another end.
            let taken_out = self.change(false, |switches| {
                let before = switches.len();
                switches.retain(|other| other.id() != id || other.until != until);
                if switches.len() < before { SwitchChange::Done } else { SwitchChange::Absent }
            });
            if taken_out.await? == SwitchChange::Done {
                taken.push(switch);
            }
        }
        Ok(taken)
    }

    async fn change(
        &self,
        over: bool,
        edit: impl Fn(&mut Vec<Switch>) -> SwitchChange,
    ) -> Result<SwitchChange, StoreError> {
        let _busy = self.0.switch_memory().busy.lock().await;
        for _ in 0..TRIES {
            let (version, mut switches) = match self.read().await {
                Err(StoreError::NotAuthentic { version, .. }) if over => (version, self.all()),
                read => read?,
            };
            match edit(&mut switches) {
                SwitchChange::Done => {}
                refused @ (SwitchChange::Absent | SwitchChange::TooMany) => return Ok(refused),
            }
            if self.write(version, &switches).await? {
                return Ok(SwitchChange::Done);
            }
        }
        Err(StoreError::unavailable("the kill switches change all the time"))
    }

    async fn read(&self) -> Result<(RecordVersion, Vec<Switch>), StoreError> {
        let shelf = self.shelf();
        let reading: GuardedRead = shelf.reading(&RecordKey::switches());
        let get = Op::Get { key: shelf.space.record(&RecordKey::switches()) };
        // Not by `Store::run`: nobody who made a call waits for it.
        let record = self.0.run_apart(&[get]).await?.record()?;
        match reading.open(record)? {
            None => Ok((RecordVersion::NONE, Vec::new())),
            Some(record) => {
                let read: SwitchRecord = serde_json::from_slice(&record.body).map_err(|_| UNREADABLE)?;
                if read.v == 1 { Ok((record.version, read.switches)) } else { Err(UNREADABLE) }
            }
        }
    }

    /// Writes the record in the place of this version, and keeps what was written. `false`: another version stands there.
    async fn write(&self, expect: RecordVersion, switches: &[Switch]) -> Result<bool, StoreError> {
        let body = to_bytes(switches)?;
        let commit = Commit { wake: Some(Topic::Switches), ..Commit::write(RecordKey::switches(), expect, body) };
        match self.shelf().commit(commit).await? {
            Committed::Done(version, _) => {
                let (standing, version) = (RecordStanding::Good, version.number());
                self.keep(SwitchState { standing, version, switches: switches.to_vec() });
                Ok(true)
            }
            Committed::Conflict(..) => Ok(false),
            Committed::Late(_) | Committed::NoRoom(_) => Err(UNREADABLE),
        }
    }

    fn shelf(&self) -> TenantStore {
        self.0.of(&Tenant::of_service())
    }

    fn state(&self) -> Arc<SwitchState> {
        Arc::clone(&self.0.switch_memory().state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells whether it is something else than before.
    fn keep(&self, next: SwitchState) -> bool {
        let mut state = self.0.switch_memory().state.write().unwrap_or_else(PoisonError::into_inner);
        let different = **state != next;
        if different {
            *state = Arc::new(next);
        }
        different
    }
}

fn to_bytes(switches: &[Switch]) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(&SwitchRecord { v: 1, switches: switches.to_vec() }).map_err(|_| UNREADABLE)
}
