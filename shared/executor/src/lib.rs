//! The executor: the one path of a call, whichever door it came in by.
//!
//! Reading order: [`snapshot`] (what a call is judged against), [`call`] (the path), `invoke` (the tool itself, under
//! its deadline), `clean` (no secret of the tenant in what comes back), `virtuals` (calls the service answers itself), [`runs`] (calls that wait for a person),
//! [`sessions`] (opening and reading them), [`tasks`].
//!
//! Not here: HTTP, JSON-RPC, and which tools exist.

pub mod call;
mod clean;
mod failpoint;
mod invoke;
pub mod keys;
pub mod runs;
pub mod sessions;
pub mod snapshot;
pub mod tasks;
mod virtuals;

pub use call::{CallRequest, Era, Executor, Handle};
pub use keys::Keys;
pub use runs::{Approvals, Leases, Said, may_decide};
pub use sessions::OpenError;
pub use snapshot::{Secrets, Snapshot};
pub use tasks::Tasks;
