//! Which versions are used, and how each spells what it is asked for.
//!
//! Below the floors helm has advisories: plugins outside their folder, unchecked signatures, archives that unpack outside
//! theirs. Above the known majors nobody knows what a flag means.

/// A version of helm that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HelmVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

/// Why helm is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No binary.
    #[error("there is no helm binary")]
    Missing,
    /// The binary cannot be started or does not say its version.
    #[error("the helm binary does not run")]
    Broken,
    /// A version that is not used.
    #[error("helm {found} is not used; it takes 3.20.2 or newer, or 4.1.4 or newer")]
    Outside {
        /// What it says it is.
        found: String,
    },
    /// The folder for its private places cannot be written.
    #[error("the folder helm works in cannot be used")]
    NoFolder,
}

/// The lowest of each major version that is used.
const FLOORS: [HelmVersion; 2] =
    [HelmVersion { major: 3, minor: 20, patch: 2 }, HelmVersion { major: 4, minor: 1, patch: 4 }];

impl HelmVersion {
    /// Reads what `helm version` prints. A version before a release (`4.2.0-rc.1`) is none.
    pub fn judge(text: &str) -> Result<HelmVersion, Unavailable> {
        let text = text.trim();
        let outside = || Unavailable::Outside { found: text.chars().filter(|c| !c.is_control()).take(40).collect() };
        let plain = text.strip_prefix('v').unwrap_or(text);
        let plain = plain.split_once('+').map_or(plain, |(plain, _)| plain);
        let mut parts = plain.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(outside());
        };
        let version = HelmVersion { major, minor, patch };
        match FLOORS.iter().find(|floor| floor.major == major) {
            Some(floor) if version >= *floor => Ok(version),
            Some(_) | None => Err(outside()),
        }
    }

    /// The spelling of a flag whose name or value changed between majors.
    pub(in crate::client) fn spell(self, said: MajorSpelling) -> Option<&'static str> {
        match (said, self.major) {
            (MajorSpelling::RollbackOnFailure, 3) => Some("--atomic=true"),
            (MajorSpelling::RollbackOnFailure, _) => Some("--rollback-on-failure=true"),
            (MajorSpelling::Wait, 3) => Some("--wait=true"),
            (MajorSpelling::Wait, _) => Some("--wait=watcher"),
            // The newer one lists every state unless told otherwise, and does not know the flag any more.
            (MajorSpelling::AllStates, 3) => Some("--all=true"),
            (MajorSpelling::AllStates, _) => None,
        }
    }
}

/// What majors spell differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum MajorSpelling {
    RollbackOnFailure,
    Wait,
    AllStates,
}

impl std::fmt::Display for HelmVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cve_2026_35204_helm_floor() {
        for fine in ["v3.20.2", "3.20.2", "v3.21.0+g1234", "v4.1.4\n", "4.2.0", "v4.10.0"] {
            assert!(HelmVersion::judge(fine).is_ok(), "{fine}");
        }
        for not in ["v3.20.1", "v3.9.9", "v4.1.3", "v4.0.0", "v2.17.0", "v5.0.0", "v4.2.0-rc.1", "", "4.2", "4.2.0.1"] {
            assert!(matches!(HelmVersion::judge(not), Err(Unavailable::Outside { .. })), "{not}");
        }
    }

    #[test]
    fn flags_are_spelled_as_the_version_knows_them() {
        let (three, four) = (HelmVersion::judge("3.20.2").unwrap(), HelmVersion::judge("4.3.1").unwrap());
        assert_eq!(three.spell(MajorSpelling::RollbackOnFailure), Some("--atomic=true"));
        assert_eq!(four.spell(MajorSpelling::RollbackOnFailure), Some("--rollback-on-failure=true"));
        assert_eq!(
            (three.spell(MajorSpelling::Wait), four.spell(MajorSpelling::Wait)),
            (Some("--wait=true"), Some("--wait=watcher"))
        );
    }
}
