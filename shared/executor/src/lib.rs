//! The executor: the one path of a call, whichever door it came in by.
//!
//! Reading order: [`request`] (what a transport hands in), [`snapshot`] (what a call is judged against), [`call`] (the
//! path), `open_call` (the open audit entry), `perform` (the one place where a tool runs), `clean` (no secret of the
//! tenant in what comes back), `virtuals` (calls the service answers itself), `run_record` and [`runs`] (calls that wait
//! for a person), [`sessions`] (opening and reading them), and what all of them stand on: [`executor`], [`limits`],
//! [`keys`], [`notice`], [`tasks`], `taint_refresh`, `usage`, `failures`; and what metrics are read from: `call_count`,
//! `active_sessions`, `measure`.
//!
//! Modules import downwards in this order and never in a circle: `call`, `virtuals`, `runs`, `perform`, then
//! `open_call`, `run_record` and `sessions`, then the rest.
//!
//! Not here: HTTP, JSON-RPC, and which tools exist.

mod active_sessions;
pub mod call;
mod call_count;
mod clean;
pub mod executor;
mod failpoint;
mod failures;
pub mod keys;
pub mod limits;
mod measure;
pub mod notice;
mod open_call;
mod perform;
pub mod request;
mod run_record;
pub mod runs;
pub mod sessions;
pub mod snapshot;
mod taint_refresh;
pub mod tasks;
mod unrecorded;
mod usage;
mod virtuals;

pub use executor::{Executor, Leases};
pub use keys::ServiceKeys;
pub use limits::{CallLimits, SlotGuard, TokenBuckets};
pub use request::{CallRequest, ClientEra, Handle};
pub use run_record::RunError;
pub use runs::{RunDecision, may_decide};
pub use sessions::{OpenedSession, SessionOpenError, SessionOrigin};
pub use snapshot::{ApprovalRules, AuditRules, RuleLine, SecretsNow, Snapshot};
pub use tasks::Tasks;
pub use usage::UsageRecorder;
