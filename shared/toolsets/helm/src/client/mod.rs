//! The real helm binary, started with typed arguments in a private place, and the charts it is given.
//!
//! Reading order: [`config`] (which binary), [`version`] (whether it is one we use, and how it spells things),
//! [`invocation`] (what is asked of it), [`runner`] (how it is started and ended), `group`, `output` and `private`
//! (the processes, what they print, where they live), [`charts`] (what it installs).
//!
//! # The face
//! ```text
//! Helm::new(HelmConfig).await                        one per process, cheap to clone; reads the version once
//!   .available() -> Result<&Version, Unavailable>    why the toolset is not there
//!   .run(Invocation) -> Result<Finished, Failure>                without a cluster: pull, show, lint
//!   .run_at(&cluster, Invocation) -> Result<Finished, Failure>   with the credentials of that cluster handle
//!
//! Invocation::new(Subcommand)                        one `--flag=value` element each, `--` before positionals, no shell
//!   .flag("--namespace", ns) .switch("--all") .positional(x) .values(json) .within(duration)
//!   .private_file("--registry-config", bytes) .out_folder("--destination")
//! Finished { ended, stdout, stderr, .. }
//!   .success() .text() -> Result<&str, Failure> .folder() -> Option<&Path>
//! ```
//! Whatever would change a cluster is refused unless the permit behind the cluster handle may act.
//! What helm prints is as it came: it is parsed and masked by whoever asked, before anything is shown.

pub mod charts;
pub mod config;
mod group;
pub mod invocation;
mod output;
mod private;
pub mod runner;
pub mod version;

pub use config::HelmConfig;
pub use invocation::{Invocation, Subcommand};
pub use output::CapturedOutput;
pub use runner::{Helm, HelmExit, HelmResult};
pub use version::{HelmVersion, Unavailable};
