//! The executor itself: what every step of a call needs. The steps are in modules of their own.

use crate::active_sessions::ActiveSessions;
use crate::keys::ServiceKeys;
use crate::limits::{CallAdmission, CallLimits, SlotGuard};
use crate::notice::RunEvents;
use crate::snapshot::Snapshot;
use crate::taint_refresh::TaintRefresh;
use crate::tasks::Tasks;
use crate::unrecorded::UnrecordedTally;
use crate::usage::UsageRecorder;
use domain::{Caller, Code, Failure, TokenScope};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{Actor, ActorKind, SessionConfig, Store};

/// How replicas share the work of carrying runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    /// How long an owner may be silent.
    pub lease: Duration,
    /// How often it says that it lives.
    pub renew_every: Duration,
}

/// Carries out calls. A clone is another handle to the same one, since every call takes some.
#[derive(Clone)]
pub struct Executor(Arc<ExecutorParts>);

/// What it is made of. Only the modules of this crate see it.
#[derive(Clone)]
pub struct ExecutorParts {
    pub(crate) store: Store,
    pub(crate) tasks: Tasks,
    pub(crate) lives: SessionConfig,
    pub(crate) keys: Arc<ServiceKeys>,
    pub(crate) leases: Leases,
    pub(crate) notices: RunEvents,
    /// The codes that toolsets raise, to read the record of a failed run back.
    pub(crate) codes: Arc<[Code]>,
    /// Where people find the pages of runs, if they have any; the run's id follows.
    pub(crate) pages: Option<Arc<str>>,
    /// When sessions last said that they read text from outside.
    pub(crate) taints: Arc<TaintRefresh>,
    /// Whether nothing new may be recorded for a person to decide.
    pub(crate) closed: Arc<AtomicBool>,
    /// What callers use of this process at the moment.
    pub(crate) admission: Arc<CallAdmission>,
    /// The sessions that call.
    pub(crate) sessions_seen: Arc<ActiveSessions>,
    /// What callers used since it was last written down.
    pub(crate) usage: Arc<UsageRecorder>,
    /// How many bytes the audit log keeps of arguments, and of a result.
    pub(crate) audited_bytes: usize,
    /// Reads that ran without an audit entry and are still to be noted.
    pub(crate) unrecorded: Arc<UnrecordedTally>,
}

impl std::ops::Deref for Executor {
    type Target = ExecutorParts;

    fn deref(&self) -> &ExecutorParts {
        &self.0
    }
}

impl Executor {
    /// An executor on this store; sessions live this long, and what is digested is keyed with these keys.
    pub fn new(store: Store, tasks: Tasks, lives: SessionConfig, keys: Arc<ServiceKeys>, leases: Leases) -> Executor {
        Executor(Arc::new(ExecutorParts {
            store,
            tasks,
            lives,
            keys,
            leases,
            notices: RunEvents::default(),
            codes: Arc::default(),
            pages: None,
            taints: Arc::default(),
            closed: Arc::default(),
            admission: Arc::new(CallAdmission::new(CallLimits::default())),
            sessions_seen: Arc::default(),
            usage: Arc::default(),
            audited_bytes: 64 << 10,
            unrecorded: Arc::default(),
        }))
    }

    fn with(self, change: impl FnOnce(&mut ExecutorParts)) -> Executor {
        let mut parts = Arc::unwrap_or_clone(self.0);
        change(&mut parts);
        Executor(Arc::new(parts))
    }

    /// The same executor, whose audit log keeps at most so many bytes of arguments, and of a result.
    #[must_use]
    pub fn with_audited_bytes(self, audited_bytes: usize) -> Executor {
        self.with(|parts| parts.audited_bytes = audited_bytes)
    }

    /// The same executor, telling of its runs.
    #[must_use]
    pub fn telling(self, notices: RunEvents) -> Executor {
        self.with(|parts| parts.notices = notices)
    }

    /// The same executor, whose runs have pages for people below this address.
    #[must_use]
    pub fn with_pages(self, address: Option<String>) -> Executor {
        self.with(|parts| parts.pages = address.map(Into::into))
    }

    /// The same executor, for toolsets that raise these codes.
    #[must_use]
    pub fn with_codes(self, codes: Vec<Code>) -> Executor {
        self.with(|parts| parts.codes = codes.into())
    }

    /// The same executor, with these limits for each caller and tenant.
    #[must_use]
    pub fn with_limits(self, limits: CallLimits) -> Executor {
        self.with(|parts| parts.admission = Arc::new(CallAdmission::new(limits)))
    }

    /// Admits a request that is no call: it has a rate of its own, and as many at once as calls, counted apart from them.
    /// A decision of a person is held to that person's own rate alone.
    pub fn admit_request(&self, snapshot: &Snapshot, caller: &Caller, decides: bool) -> Result<SlotGuard, Failure> {
        self.admission.request(caller, snapshot.in_flight, decides)
    }

    /// Admits a request that waits, which holds none of the slots of those that do not.
    pub fn admit_waiting(&self, caller: &Caller) -> Result<SlotGuard, Failure> {
        self.admission.waiting(caller)
    }

    /// Admits an event stream.
    pub fn admit_stream(&self, caller: &Caller) -> Result<SlotGuard, Failure> {
        self.admission.stream(caller)
    }

    /// Closes or opens the gate: while the store is nearly full, or may forget, nobody is asked to sign anything new.
    /// Decisions and outcomes of what was recorded before go on.
    pub fn close_gate(&self, closed: bool) {
        self.closed.store(closed, Ordering::Relaxed);
    }

    /// What callers used since it was last written down.
    pub fn usage(&self) -> &UsageRecorder {
        &self.usage
    }

    /// A person who does something besides calling tools, as the audit log names them.
    pub fn person(&self, caller: &Caller) -> Actor {
        Actor { kind: ActorKind::Person, ..self.actor(caller) }
    }

    /// A runner that takes jobs or reports on them, as the audit log names it.
    pub fn runner(&self, caller: &Caller) -> Actor {
        Actor { kind: ActorKind::Runner, ..self.actor(caller) }
    }

    /// Who acts, as the audit log names them.
    pub(crate) fn actor(&self, caller: &Caller) -> Actor {
        let (principal, kind, token) = (caller.principal.clone(), kind_of(caller), self.token_mark(caller));
        Actor { principal, kind, scopes: caller.scopes, token }
    }

    /// What stands in the audit log for the token a caller came in with.
    pub(crate) fn token_mark(&self, caller: &Caller) -> Option<String> {
        caller.token.map(|token| self.keys.token_digest(&caller.tenant, &token))
    }
}

/// Agents call tools; a token that decides runs and calls nothing is a person's.
pub(crate) fn kind_of(caller: &Caller) -> ActorKind {
    if !caller.scopes.allow(TokenScope::ToolsRead) && caller.scopes.allow(TokenScope::RunsDecide) {
        ActorKind::Person
    } else {
        ActorKind::Agent
    }
}
