//! The nouns of Quartermaster and their pure state machines.
//!
//! Reading order: [`tenant`], [`ids`], [`caller`], [`effect`], [`toolset`], [`assignment`], [`session`], [`call`], [`outcome`],
//! [`code`], [`run`], [`job`], [`switch`], [`usage`], then the small servants [`json`], [`digest`], [`text`], [`moment`] and [`tokens`].
//!
//! Not here: I/O, clocks, randomness, async. Whoever needs the time or a random id is handed one.

pub mod assignment;
pub mod call;
pub mod caller;
pub mod code;
pub mod digest;
pub mod effect;
pub mod ids;
pub mod job;
pub mod json;
pub mod moment;
pub mod outcome;
pub mod run;
pub mod session;
pub mod switch;
pub mod tenant;
pub mod text;
pub mod tokens;
pub mod toolset;
pub mod usage;

pub use assignment::Assignment;
pub use call::{Call, OpenedCall, RateExceeded, ToolName, ToolUse};
pub use caller::{Caller, Principal, Scopes, TokenDigest, TokenScope};
pub use code::{Class, Code, ToolCode};
pub use digest::KeyedDigest;
pub use effect::{Effect, SessionMode};
pub use ids::{AuditId, CallId, JobId, RunId, RunnerId, SessionId};
pub use job::Job;
pub use moment::Moment;
pub use outcome::{Content, Failure, Outcome, ToolOutput, WaitingRun};
pub use run::Run;
pub use session::{Session, SessionDoor};
pub use switch::{KnownSwitches, Switch, SwitchMode, SwitchOwner, SwitchSubject};
pub use tenant::Tenant;
pub use toolset::{Level, LoadedToolsets, ToolsetName};
