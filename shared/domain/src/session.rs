//! A session: our handle for a line of work across calls. Not the transport's session, and not a proof.
//!
//! The record lives in the store and moves only through the transitions here, each of which returns the next
//! session or nothing at all when there is nothing to write.

use crate::{Assignment, Level, LoadedToolsets, Moment, Principal, SessionId, SessionMode, ToolsetName};
use std::sync::Arc;

/// How a session was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionDoor {
    /// By `initialize`, over the older era of the protocol.
    Legacy,
    /// By the first toolset that was loaded, over the newer era.
    Modern,
    /// Over the REST API.
    Rest,
}

impl SessionDoor {
    /// Every one.
    pub const ALL: [SessionDoor; 3] = [SessionDoor::Legacy, SessionDoor::Modern, SessionDoor::Rest];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            SessionDoor::Legacy => "legacy",
            SessionDoor::Modern => "modern",
            SessionDoor::Rest => "rest",
        }
    }
}

/// One line of work of one principal in one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its name.
    pub id: SessionId,
    /// The only principal it serves.
    pub owner: Principal,
    /// What it is for.
    pub mode: SessionMode,
    /// What has been issued to it.
    pub loaded: LoadedToolsets,
    /// Whether a toolset was ever loaded on demand; from then on the tools to manage that are listed.
    pub grown: bool,
    /// The digest of the catalog its list was last drawn from.
    pub catalog: String,
    /// Whether it has read text from outside; then every change asks, whatever the policy says.
    pub tainted: bool,
    /// What it was opened for.
    pub assignment: Assignment,
    /// The program that opened it, as it named itself; for the audit log.
    pub client: Option<Arc<str>>,
    /// How it was opened; `None` for one that an older service opened.
    pub door: Option<SessionDoor>,
    /// When it was opened.
    pub opened_at: Moment,
}

impl Session {
    /// Loads toolsets. Monotone and idempotent: `None` means that nothing changed and nothing need be written.
    #[must_use]
    pub fn load(&self, wanted: &[(ToolsetName, Level)]) -> Option<Session> {
        let mut next = self.clone();
        let mut moved = !self.grown;
        next.grown = true;
        for (name, level) in wanted {
            moved |= next.loaded.raise(name.clone(), *level);
        }
        moved.then_some(next)
    }

    /// Takes toolsets out of the session; `None` if none of them was loaded.
    #[must_use]
    pub fn unload(&self, names: &[ToolsetName]) -> Option<Session> {
        let mut next = self.clone();
        let mut moved = false;
        for name in names {
            moved |= next.loaded.remove(name);
        }
        moved.then_some(next)
    }

    /// Notes that text from outside was read. For good: what a model has read it cannot be made to forget.
    #[must_use]
    pub fn taint(&self) -> Option<Session> {
        (!self.tainted).then(|| Session { tainted: true, ..self.clone() })
    }

    /// Notes the catalog the session now draws from.
    #[must_use]
    pub fn pin(&self, catalog: &str) -> Option<Session> {
        (self.catalog != catalog).then(|| Session { catalog: catalog.to_owned(), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn session() -> Session {
        Session {
            id: SessionId::from_random([1; 16]),
            owner: Principal::new("https://login.example", "agent"),
            mode: SessionMode::Write,
            loaded: LoadedToolsets::default(),
            grown: false,
            catalog: "c1".into(),
            tainted: false,
            assignment: Assignment::default(),
            client: None,
            door: None,
            opened_at: Moment::from_secs(1),
        }
    }

    fn step() -> impl Strategy<Value = (bool, Vec<(ToolsetName, Level)>)> {
        let set = (0..4usize, any::<bool>()).prop_map(|(n, write)| {
            let name = ToolsetName::parse(["k8s", "helm", "argo", "memory"][n]).expect("a name");
            (name, if write { Level::Write } else { Level::Read })
        });
        (any::<bool>(), prop::collection::vec(set, 0..4))
    }

    proptest! {
        #[test]
        fn loading_twice_is_loading_once(steps in prop::collection::vec(step(), 0..12)) {
            let mut now = session();
            for (load, sets) in steps {
                let names: Vec<_> = sets.iter().map(|(name, _)| name.clone()).collect();
                let next = if load { now.load(&sets) } else { now.unload(&names) };
                if let Some(next) = next {
                    prop_assert_ne!(&next, &now);
                    prop_assert_eq!((next.id, &next.owner, next.mode), (now.id, &now.owner, now.mode));
                    let again = if load { next.load(&sets) } else { next.unload(&names) };
                    prop_assert_eq!(again, None);
                    now = next;
                }
            }
        }
    }

    #[test]
    fn a_session_is_tainted_once_and_for_good() {
        let tainted = session().taint().expect("it was clean");
        assert_eq!(tainted, Session { tainted: true, ..session() });
        assert_eq!(tainted.taint(), None);
        assert!(tainted.pin("c2").expect("another catalog").tainted);
    }

    #[test]
    fn pinning_the_same_catalog_writes_nothing() {
        assert_eq!(session().pin("c1"), None);
        assert_eq!(session().pin("c2").map(|s| s.catalog), Some("c2".to_owned()));
    }
}
