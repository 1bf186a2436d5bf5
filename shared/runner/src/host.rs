//! What this host gives to every command, whatever the job says.

use runbook::variables;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// This host, as commands find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Where commands begin if their job names no directory; relative directories of jobs count from here.
    pub directory: PathBuf,
    /// The environment besides the job's: by default `PATH`, `HOME` and `LANG`. A job cannot replace these.
    pub env: BTreeMap<String, String>,
    /// How long a group of processes that was asked to end may take before it is killed.
    pub grace: Duration,
}

impl Host {
    /// A host whose commands begin here, with an ordinary `PATH` and nothing of this process's environment.
    pub fn new(directory: impl Into<PathBuf>) -> Host {
        let directory = directory.into();
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let home = directory.display().to_string();
        let env = [("PATH", path.to_owned()), ("HOME", home), ("LANG", "C.UTF-8".to_owned())];
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Host { directory, env, grace: Duration::from_secs(10) }
    }

    /// Gives every command a variable, in the place of the one of that name. `false`: it is no variable.
    #[must_use]
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        let fits = variables::is_name(name) && !value.contains('\0');
        if fits {
            self.env.insert(name.to_owned(), value.to_owned());
        }
        fits
    }
}
