//! What is asked of helm, as values: a known subcommand, flags that are ours by name, and positionals behind `--`.
//!
//! A flag is always one element with its value behind `=`, so no value can become a flag, and what stands behind `--` is
//! never read as one. Names of flags are literals of this program.

use crate::client::version::{HelmVersion, MajorSpelling};
use std::fmt::Display;
use std::time::Duration;

/// The subcommands there are for us. There is no other way to name one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are helm's own words")]
pub enum Subcommand {
    GetHooks,
    GetManifest,
    GetMetadata,
    GetNotes,
    GetValues,
    History,
    Install,
    Lint,
    List,
    Pull,
    RegistryLogin,
    Rollback,
    SearchRepo,
    ShowChart,
    ShowCrds,
    ShowReadme,
    ShowValues,
    Status,
    Template,
    Test,
    Uninstall,
    Upgrade,
    Version,
}

impl Subcommand {
    /// As helm spells it.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Subcommand::GetHooks => &["get", "hooks"],
            Subcommand::GetManifest => &["get", "manifest"],
            Subcommand::GetMetadata => &["get", "metadata"],
            Subcommand::GetNotes => &["get", "notes"],
            Subcommand::GetValues => &["get", "values"],
            Subcommand::History => &["history"],
            Subcommand::Install => &["install"],
            Subcommand::Lint => &["lint"],
            Subcommand::List => &["list"],
            Subcommand::Pull => &["pull"],
            Subcommand::RegistryLogin => &["registry", "login"],
            Subcommand::Rollback => &["rollback"],
            Subcommand::SearchRepo => &["search", "repo"],
            Subcommand::ShowChart => &["show", "chart"],
            Subcommand::ShowCrds => &["show", "crds"],
            Subcommand::ShowReadme => &["show", "readme"],
            Subcommand::ShowValues => &["show", "values"],
            Subcommand::Status => &["status"],
            Subcommand::Template => &["template"],
            Subcommand::Test => &["test"],
            Subcommand::Uninstall => &["uninstall"],
            Subcommand::Upgrade => &["upgrade"],
            Subcommand::Version => &["version"],
        }
    }

    /// The name in telemetry.
    pub(in crate::client) fn verb(self) -> &'static str {
        self.words().last().copied().unwrap_or_default()
    }

    /// Whether it changes a cluster, unless it is a dry run.
    fn changes(self) -> bool {
        match self {
            Subcommand::Install
            | Subcommand::Rollback
            | Subcommand::Test
            | Subcommand::Uninstall
            | Subcommand::Upgrade => true,
            Subcommand::GetHooks
            | Subcommand::GetManifest
            | Subcommand::GetMetadata
            | Subcommand::GetNotes
            | Subcommand::GetValues
            | Subcommand::History
            | Subcommand::Lint
            | Subcommand::List
            | Subcommand::Pull
            | Subcommand::RegistryLogin
            | Subcommand::SearchRepo
            | Subcommand::ShowChart
            | Subcommand::ShowCrds
            | Subcommand::ShowReadme
            | Subcommand::ShowValues
            | Subcommand::Status
            | Subcommand::Template
            | Subcommand::Version => false,
        }
    }
}

/// How long a call that says nothing else may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// One call of helm.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub(in crate::client) subcommand: Subcommand,
    flags: Vec<Flag>,
    positionals: Vec<String>,
    pub(in crate::client) stdin: Option<Vec<u8>>,
    pub(in crate::client) files: Vec<(&'static str, Vec<u8>)>,
    pub(in crate::client) out: Option<&'static str>,
    pub(in crate::client) deadline: Duration,
    dry: bool,
}

#[derive(Debug, Clone)]
enum Flag {
    Plain(String),
    Spelled(MajorSpelling),
}

impl Invocation {
    /// A call of this subcommand, done within 30 seconds.
    pub fn new(subcommand: Subcommand) -> Invocation {
        let (flags, positionals, files) = (Vec::new(), Vec::new(), Vec::new());
        let (stdin, out, deadline, dry) = (None, None, DEADLINE, false);
        Invocation { subcommand, flags, positionals, stdin, files, out, deadline, dry }
    }

    /// A flag with its value, in one element.
    #[must_use]
    pub fn flag(mut self, name: &'static str, value: impl Display) -> Invocation {
        debug_assert!(name.starts_with("--") && !name.contains('='), "a flag is named alone");
        self.flags.push(Flag::Plain(format!("{name}={value}")));
        self
    }

    /// The same, where there is a value.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Display>) -> Invocation {
        match value {
            Some(value) => self.flag(name, value),
            None => self,
        }
    }

    /// A flag that is on.
    #[must_use]
    pub fn switch(self, name: &'static str) -> Invocation {
        self.flag(name, true)
    }

    /// The same, if it is to be on.
    #[must_use]
    pub fn switch_if(self, on: bool, name: &'static str) -> Invocation {
        if on { self.switch(name) } else { self }
    }

    /// What is not a flag; stands behind `--`.
    #[must_use]
    pub fn positional(mut self, value: impl Display) -> Invocation {
        self.positionals.push(value.to_string());
        self
    }

    /// The values document, JSON or YAML, on the standard input.
    #[must_use]
    pub fn values(mut self, document: impl Into<Vec<u8>>) -> Invocation {
        self.stdin = Some(document.into());
        self.flag("--values", "-")
    }

    /// Some other text for the standard input, such as a password.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Invocation {
        self.stdin = Some(text.into());
        self
    }

    /// Changes nothing, and only says what would be. It is rendered here, so that a chart's `lookup` finds nothing; there
    /// is no way to ask for a rehearsal with the cluster's help.
    #[must_use]
    pub fn dry_run(mut self) -> Invocation {
        self.dry = true;
        self.flag("--dry-run", "client")
    }

    /// Waits until what was changed is ready.
    #[must_use]
    pub fn wait(self, wait: bool) -> Invocation {
        if wait { self.spelled(MajorSpelling::Wait) } else { self }
    }

    /// Goes back by itself if it fails.
    #[must_use]
    pub fn rollback_on_failure(self, back: bool) -> Invocation {
        if back { self.spelled(MajorSpelling::RollbackOnFailure) } else { self }
    }

    /// Lists releases in every state.
    #[must_use]
    pub fn all_states(self) -> Invocation {
        self.spelled(MajorSpelling::AllStates)
    }

    fn spelled(mut self, said: MajorSpelling) -> Invocation {
        self.flags.push(Flag::Spelled(said));
        self
    }

    /// A file that only this call of helm can read; the flag gets its path.
    #[must_use]
    pub fn private_file(mut self, name: &'static str, contents: impl Into<Vec<u8>>) -> Invocation {
        self.files.push((name, contents.into()));
        self
    }

    /// An empty folder for what helm writes; the flag gets its path. See [`HelmResult::folder`](crate::client::HelmResult::folder).
    #[must_use]
    pub fn out_folder(mut self, name: &'static str) -> Invocation {
        self.out = Some(name);
        self
    }

    /// How long it may take before it is ended.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Invocation {
        self.deadline = deadline;
        self
    }

    /// Whether it would change a cluster.
    pub fn changes(&self) -> bool {
        self.subcommand.changes() && !self.dry
    }

    /// The elements behind the name of the program. `more` are flags made at the start, such as paths.
    pub(in crate::client) fn argv(&self, version: Option<HelmVersion>, more: &[String]) -> Vec<String> {
        let mut argv: Vec<String> = self.subcommand.words().iter().map(|word| (*word).to_owned()).collect();
        for flag in &self.flags {
            match flag {
                Flag::Plain(flag) => argv.push(flag.clone()),
                Flag::Spelled(said) => {
                    argv.extend(version.and_then(|version| version.spell(*said)).map(str::to_owned));
                }
            }
        }
        argv.extend(more.iter().cloned());
        if !self.positionals.is_empty() {
            argv.push("--".to_owned());
            argv.extend(self.positionals.iter().cloned());
        }
        argv
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_one_element_and_positionals_stand_behind_two_dashes() {
        let asked = Invocation::new(Subcommand::Upgrade)
            .flag("--namespace", "shop")
            .flag("--description", "--kubeconfig=/etc/passwd -- x")
            .wait(true)
            .rollback_on_failure(true)
            .values("{}")
            .positional("--post-renderer=sh")
            .positional("/charts/a.tgz");
        let argv = asked.argv(HelmVersion::judge("4.3.1").ok(), &["--kubeconfig=/private/k".to_owned()]);
        assert_eq!(
            argv,
            [
                "upgrade",
                "--namespace=shop",
                "--description=--kubeconfig=/etc/passwd -- x",
                "--wait=watcher",
                "--rollback-on-failure=true",
                "--values=-",
                "--kubeconfig=/private/k",
                "--",
                "--post-renderer=sh",
                "/charts/a.tgz",
            ]
        );
        assert!(asked.changes());
        assert!(!asked.dry_run().changes());
        assert!(!Invocation::new(Subcommand::GetValues).changes());
    }
}
