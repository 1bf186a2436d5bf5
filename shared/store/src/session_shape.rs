//! A session as it is stored: a shape of our own with a number, so that the noun may change without the records.
//!
//! The digest of its owner stands in front and is not sealed: by it the store moves the expiry of a session for its owner
//! alone, without a key and without another round trip.

use crate::StoreError;
use crate::keys::{FINGERPRINT_LENGTH, fingerprint};
use domain::{Assignment, Level, Moment, Principal, Session, SessionDoor, SessionId, SessionMode, ToolsetName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const UNREADABLE: StoreError = StoreError::Corrupt { what: "a session record" };

#[derive(Serialize, Deserialize)]
struct StoredSession {
    v: u8,
    iss: String,
    sub: String,
    mode: String,
    loaded: BTreeMap<String, String>,
    grown: bool,
    catalog: String,
    tainted: bool,
    #[serde(default, skip_serializing_if = "Assignment::is_empty")]
    assignment: Assignment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    door: Option<String>,
    opened: u64,
}

pub(crate) fn to_bytes(session: &Session) -> Result<Vec<u8>, StoreError> {
    let shape = StoredSession {
        v: 1,
        iss: session.owner.issuer.clone(),
        sub: session.owner.subject.clone(),
        mode: session.mode.as_str().to_owned(),
        loaded: session.loaded.iter().map(|(name, level)| (name.to_string(), level.as_str().to_owned())).collect(),
        grown: session.grown,
        catalog: session.catalog.clone(),
        tainted: session.tainted,
        assignment: session.assignment.clone(),
        client: session.client.as_deref().map(str::to_owned),
        door: session.door.map(|door| door.as_str().to_owned()),
        opened: session.opened_at.millis(),
    };
    let mut bytes = owner_mark(&session.owner);
    serde_json::to_writer(&mut bytes, &shape).map_err(|_| UNREADABLE)?;
    Ok(bytes)
}

/// What the record of every session of this principal begins with, and of no one else's.
pub(crate) fn owner_mark(owner: &Principal) -> Vec<u8> {
    fingerprint(owner).into_bytes()
}

pub(crate) fn from_bytes(id: SessionId, bytes: &[u8]) -> Result<Session, StoreError> {
    // The mark only says whose lifetime the store may move; who owns the session stands in the sealed part.
    let sealed = bytes.get(FINGERPRINT_LENGTH..).ok_or(UNREADABLE)?;
    let shape: StoredSession = serde_json::from_slice(sealed).map_err(|_| UNREADABLE)?;
    let set = |(name, level): (String, String)| {
        let level = [Level::Read, Level::Write].into_iter().find(|known| known.as_str() == level);
        Some((ToolsetName::parse(&name).ok()?, level?))
    };
    let mode = [SessionMode::Read, SessionMode::Write].into_iter().find(|mode| mode.as_str() == shape.mode);
    match (shape.v, mode, shape.loaded.into_iter().map(set).collect()) {
        (1, Some(mode), Some(loaded)) => Ok(Session {
            id,
            owner: Principal::new(shape.iss, shape.sub),
            mode,
            loaded,
            grown: shape.grown,
            catalog: shape.catalog,
            tainted: shape.tainted,
            assignment: shape.assignment,
            client: shape.client.map(Into::into),
            // One that a newer service knows is not known here; nothing is decided by it.
            door: SessionDoor::ALL.into_iter().find(|door| Some(door.as_str()) == shape.door.as_deref()),
            opened_at: Moment::from_millis(shape.opened),
        }),
        _ => Err(UNREADABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = r#"{"v":1,"iss":"https://login.example","sub":"agent","mode":"write","loaded":{"helm":"write","k8s":"read"},"grown":true,"catalog":"c1","tainted":false,"opened":1763280000000}"#;

    fn read(text: &str) -> Result<Session, StoreError> {
        let owner = Principal::new("https://login.example", "agent");
        from_bytes(SessionId::from_random([3; 16]), &[owner_mark(&owner), text.as_bytes().to_vec()].concat())
    }

    #[test]
    fn a_session_written_by_an_older_build_reads_back_and_is_written_the_same() {
        let session = read(WRITTEN).unwrap();
        assert_eq!((session.mode, session.grown), (SessionMode::Write, true));
        let bytes = to_bytes(&session).unwrap();
        assert_eq!(String::from_utf8(bytes[FINGERPRINT_LENGTH..].to_vec()).unwrap(), WRITTEN);
    }

    #[test]
    fn a_record_begins_with_its_owner_and_with_nobody_elses_name() {
        for (issuer, subject) in [("https://login.example", "agent"), ("i", "a\"b\\c\u{e9}"), ("i", "")] {
            let owner = Principal::new(issuer, subject);
            let bytes = to_bytes(&Session { owner: owner.clone(), ..read(WRITTEN).unwrap() }).unwrap();
            assert_eq!(owner_mark(&owner).len(), FINGERPRINT_LENGTH);
            assert!(bytes.starts_with(&owner_mark(&owner)), "{subject}");
            for stranger in [Principal::new(issuer, format!("{subject}2")), Principal::new("j", subject)] {
                assert!(!bytes.starts_with(&owner_mark(&stranger)), "{subject}");
            }
        }
    }

    #[test]
    fn a_record_that_is_not_ours_is_named_as_unreadable() {
        let newer = WRITTEN.replace("\"v\":1", "\"v\":2");
        let odd_mode = WRITTEN.replace("\"mode\":\"write\"", "\"mode\":\"root\"");
        let odd_level = WRITTEN.replace("\"k8s\":\"read\"", "\"k8s\":\"all\"");
        for bad in ["", "{}", "null", newer.as_str(), odd_mode.as_str(), odd_level.as_str()] {
            assert!(matches!(read(bad), Err(StoreError::Corrupt { .. })), "{bad}");
        }
        let id = SessionId::from_random([3; 16]);
        for short in [&b""[..], b"{}"] {
            assert!(matches!(from_bytes(id, short), Err(StoreError::Corrupt { .. })));
        }
    }
}
