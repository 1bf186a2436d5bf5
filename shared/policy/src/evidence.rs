//! What is known at the moment of deciding. Policy itself looks nothing up, and takes nobody's word for it either: each
//! constructor wants to see what only the right path has.

use crate::PermitApproval;
use domain::run::{Run, Verdict};
use domain::{KnownSwitches, Level, LoadedToolsets, OpenedCall, SessionMode, Switch};

/// What is known about a call besides the call itself.
#[derive(Debug, Clone)]
pub struct CallEvidence {
    pub(crate) loaded: LoadedToolsets,
    pub(crate) mode: SessionMode,
    pub(crate) calls_this_minute: u64,
    pub(crate) stopped: bool,
    pub(crate) switches: Vec<Switch>,
    pub(crate) approved: Option<ApprovedCall>,
    /// Whether the audit log has an open entry for what is judged.
    pub(crate) recorded: bool,
}

/// An approval and the digest of the call it was given to; another call gains nothing from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApprovedCall {
    pub(crate) approval: PermitApproval,
    pub(crate) digest: String,
}

impl CallEvidence {
    /// Of a call whose audit entry is open, made in a session; `None` if it has no live session.
    pub fn of_session(opened: &impl OpenedCall) -> Option<CallEvidence> {
        let session = opened.session()?;
        Some(CallEvidence {
            loaded: session.loaded.clone(),
            mode: session.mode,
            calls_this_minute: opened.calls_this_minute(),
            stopped: opened.is_stopped(),
            switches: opened.switches().to_vec(),
            approved: None,
            recorded: true,
        })
    }

    /// Of a call whose audit entry is open, made without a session at an address that has loaded this. What an address
    /// may load was judged when the address was read, so it may be for writing.
    pub fn of_address(opened: &impl OpenedCall, loaded: LoadedToolsets) -> CallEvidence {
        let (mode, stopped, approved) = (SessionMode::Write, opened.is_stopped(), None);
        let switches = opened.switches().to_vec();
        let calls_this_minute = opened.calls_this_minute();
        CallEvidence { loaded, mode, calls_this_minute, stopped, switches, approved, recorded: true }
    }

    /// Of a call that the audit log could not take an entry of, by a session or an address that has loaded this. It is good
    /// for a read and nothing else: the call counts as one of a session for reading whose step a rejection has ended.
    /// Nobody counted it; the rate was judged by the process it came to.
    pub fn of_unrecorded_read(known: &impl KnownSwitches, loaded: LoadedToolsets) -> CallEvidence {
        let (mode, stopped, approved) = (SessionMode::Read, true, None);
        let switches = known.switches().to_vec();
        CallEvidence { loaded, mode, calls_this_minute: 0, stopped, switches, approved, recorded: false }
    }

    /// Of a run that as many people have approved as it wants; `None` of any other. What was loaded and how often was
    /// called was judged when the run was asked for; today's rules and switches are judged now.
    pub fn of_approved_run(run: &Run, known: &impl KnownSwitches) -> Option<CallEvidence> {
        let approval = PermitApproval::of(run)?;
        Some(CallEvidence {
            loaded: LoadedToolsets::from_iter([(run.asked.toolset.clone(), Level::Write)]),
            mode: SessionMode::Write,
            calls_this_minute: 0,
            stopped: false,
            switches: known.switches().to_vec(),
            approved: Some(ApprovedCall { approval, digest: run.asked.digest.clone() }),
            // The claim of a run and its entry are one commit, and nothing is executed without it.
            recorded: true,
        })
    }

    /// What the session, or the address the call came in by, has loaded.
    pub fn loaded(&self) -> &LoadedToolsets {
        &self.loaded
    }
}

impl PermitApproval {
    /// The approval of a run, if enough people gave theirs. The moment is that of the last one, so every attempt to
    /// carry the run out finds the same.
    fn of(run: &Run) -> Option<PermitApproval> {
        let approvals = run.answers.iter().filter(|answer| answer.verdict == Verdict::Approve);
        let enough = run.yeses() >= usize::try_from(run.asked.deciders.max(1)).unwrap_or(usize::MAX);
        let at = approvals.clone().map(|answer| answer.at).max().filter(|_| enough)?;
        Some(PermitApproval { run: run.id, by: approvals.map(|answer| answer.by.clone()).collect(), at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Assignment, Moment, Principal, Session, SessionId, ToolsetName};
    use std::path::Path;

    struct Opened(Option<Session>);

    impl KnownSwitches for Opened {
        fn switches(&self) -> &[Switch] {
            &[]
        }
    }

    impl OpenedCall for Opened {
        fn session(&self) -> Option<&Session> {
            self.0.as_ref()
        }

        fn calls_this_minute(&self) -> u64 {
            3
        }

        fn is_stopped(&self) -> bool {
            true
        }
    }

    fn loaded() -> LoadedToolsets {
        LoadedToolsets::from_iter([(ToolsetName::parse("k8s").unwrap(), Level::Read)])
    }

    #[test]
    fn what_is_known_of_a_call_is_what_its_session_or_its_address_has() {
        let session = Session {
            id: SessionId::from_random([1; 16]),
            owner: Principal::new("i", "agent"),
            mode: SessionMode::Read,
            loaded: loaded(),
            grown: false,
            catalog: String::new(),
            tainted: false,
            assignment: Assignment::default(),
            client: None,
            door: None,
            opened_at: Moment::from_secs(1),
        };
        let known = CallEvidence::of_session(&Opened(Some(session))).unwrap();
        assert_eq!(*known.loaded(), loaded());
        assert_eq!((known.mode, known.calls_this_minute, known.stopped), (SessionMode::Read, 3, true));
        assert!(CallEvidence::of_session(&Opened(None)).is_none(), "nothing is known without a live session");
        let known = CallEvidence::of_address(&Opened(None), loaded());
        assert_eq!(*known.loaded(), loaded());
        assert_eq!((known.mode, known.calls_this_minute, known.stopped), (SessionMode::Write, 3, true));
    }

    #[test]
    fn only_the_store_proves_that_a_call_is_open() {
        assert_eq!(places("impl OpenedCall for"), ["shared/store/src/begin.rs"]);
    }

    #[test]
    fn only_the_store_says_which_switches_are_set() {
        assert_eq!(places("impl KnownSwitches for"), ["shared/store/src/begin.rs", "shared/store/src/switches.rs"]);
    }

    /// Where the product's own sources say this; tests aside.
    fn places(text: &str) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let mut folders = vec![root.join("shared"), root.join("services")];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
                if path.is_dir() && name != "tests" && name != "testkit" {
                    folders.push(path);
                } else if name.ends_with(".rs") && name != "tests.rs" {
                    let source = std::fs::read_to_string(&path).unwrap();
                    if source.split("#[cfg(test)]").next().is_some_and(|source| source.contains(text)) {
                        found.push(path.strip_prefix(&root).unwrap().display().to_string());
                    }
                }
            }
        }
        found
    }
}
