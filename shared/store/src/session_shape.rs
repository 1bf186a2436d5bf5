//! A session as it is stored: a shape of our own with a number, so that the noun may change without the records.
//!
//! The digest of its owner stands in front and is not sealed: by it the store moves the expiry of a session for its owner
//! alone, without a key and without another round trip.

use crate::StoreError;
use crate::keys::{FINGERPRINT_LENGTH, fingerprint};
use domain::json::hex;
use domain::{
    Assignment, Level, LoadedToolsets, Moment, Principal, Session, SessionDoor, SessionId, SessionMode, ToolsetName,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

const UNREADABLE: StoreError = StoreError::Corrupt { what: "a session record" };

/// What the current shape begins with. The shape before it is JSON and begins with a brace.
const SHAPE: u8 = 2;
const WRITE: u8 = 1;
const GROWN: u8 = 2;
const TAINTED: u8 = 4;
/// The number of the shape, the flags, when the session was opened, and how many bytes of a digest follow.
const HEAD: usize = 1 + 1 + 8 + 1;

/// What stands behind the head and the catalog's digest, with the shortest names: there may be a million sessions, and each of
/// them is in the memory of Redis.
#[derive(Serialize, Deserialize)]
struct StoredRest<'a> {
    #[serde(rename = "i", borrow)]
    iss: Cow<'a, str>,
    #[serde(rename = "s", borrow)]
    sub: Cow<'a, str>,
    #[serde(rename = "l", default, skip_serializing_if = "BTreeMap::is_empty")]
    loaded: BTreeMap<String, String>,
    /// A catalog that is not named by a digest.
    #[serde(rename = "c", borrow, default, skip_serializing_if = "str::is_empty")]
    catalog: Cow<'a, str>,
    #[serde(rename = "a", default, skip_serializing_if = "Assignment::is_empty")]
    assignment: Assignment,
    #[serde(rename = "p", borrow, default, skip_serializing_if = "Option::is_none")]
    client: Option<Cow<'a, str>>,
    #[serde(rename = "d", borrow, default, skip_serializing_if = "Option::is_none")]
    door: Option<Cow<'a, str>>,
}

/// The shape of earlier builds, whose sessions live on.
#[derive(Deserialize)]
struct FirstShape {
    v: u8,
    iss: String,
    sub: String,
    mode: String,
    loaded: BTreeMap<String, String>,
    grown: bool,
    catalog: String,
    tainted: bool,
    #[serde(default)]
    assignment: Assignment,
    #[serde(default)]
    client: Option<String>,
    #[serde(default)]
    door: Option<String>,
    opened: u64,
}

pub(crate) fn to_bytes(session: &Session) -> Result<Vec<u8>, StoreError> {
    let digest = digest_bytes(&session.catalog);
    let flag = |is_so: bool, flag: u8| if is_so { flag } else { 0 };
    let flags =
        flag(session.mode == SessionMode::Write, WRITE) | flag(session.grown, GROWN) | flag(session.tainted, TAINTED);
    let rest = StoredRest {
        iss: session.owner.issuer.as_str().into(),
        sub: session.owner.subject.as_str().into(),
        loaded: session.loaded.iter().map(|(name, level)| (name.to_string(), level.as_str().to_owned())).collect(),
        catalog: if digest.is_some() { Cow::Borrowed("") } else { session.catalog.as_str().into() },
        assignment: session.assignment.clone(),
        client: session.client.as_deref().map(Into::into),
        door: session.door.map(|door| door.as_str().into()),
    };
    let digest = digest.unwrap_or_default();
    let mut bytes = owner_mark(&session.owner);
    bytes.extend([SHAPE, flags]);
    bytes.extend(session.opened_at.millis().to_be_bytes());
    bytes.push(u8::try_from(digest.len()).map_err(|_| UNREADABLE)?);
    bytes.extend(digest);
    serde_json::to_writer(&mut bytes, &rest).map_err(|_| UNREADABLE)?;
    Ok(bytes)
}

/// The bytes of a digest that is written in the usual way; any other text is kept as text.
fn digest_bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs = text.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect::<Option<Vec<u8>>>().filter(|bytes| u8::try_from(bytes.len()).is_ok())
}

/// What the record of every session of this principal begins with, and of no one else's.
pub(crate) fn owner_mark(owner: &Principal) -> Vec<u8> {
    fingerprint(owner).into_bytes()
}

pub(crate) fn from_bytes(id: SessionId, bytes: &[u8]) -> Result<Session, StoreError> {
    // The mark only says whose lifetime the store may move; who owns the session stands in the sealed part.
    let sealed = bytes.get(FINGERPRINT_LENGTH..).ok_or(UNREADABLE)?;
    let read = if sealed.first() == Some(&SHAPE) { current(id, sealed) } else { first(id, sealed) };
    read.ok_or(UNREADABLE)
}

fn current(id: SessionId, sealed: &[u8]) -> Option<Session> {
    let (head, behind) = sealed.split_at_checked(HEAD)?;
    let [_, flags, opened @ .., length] = head else { return None };
    let opened = u64::from_be_bytes(opened.try_into().ok()?);
    let (digest, rest) = behind.split_at_checked(usize::from(*length))?;
    let rest: StoredRest<'_> = serde_json::from_slice(rest).ok()?;
    if flags & !(WRITE | GROWN | TAINTED) != 0 {
        return None;
    }
    Some(Session {
        id,
        owner: Principal::new(rest.iss, rest.sub),
        mode: if flags & WRITE != 0 { SessionMode::Write } else { SessionMode::Read },
        loaded: loaded(rest.loaded)?,
        grown: flags & GROWN != 0,
        catalog: if digest.is_empty() { rest.catalog.into_owned() } else { hex(digest) },
        tainted: flags & TAINTED != 0,
        assignment: rest.assignment,
        client: rest.client.map(Into::into),
        door: door(rest.door.as_deref()),
        opened_at: Moment::from_millis(opened),
    })
}

fn first(id: SessionId, sealed: &[u8]) -> Option<Session> {
    let shape: FirstShape = serde_json::from_slice(sealed).ok().filter(|shape: &FirstShape| shape.v == 1)?;
    Some(Session {
        id,
        owner: Principal::new(shape.iss, shape.sub),
        mode: [SessionMode::Read, SessionMode::Write].into_iter().find(|mode| mode.as_str() == shape.mode)?,
        loaded: loaded(shape.loaded)?,
        grown: shape.grown,
        catalog: shape.catalog,
        tainted: shape.tainted,
        assignment: shape.assignment,
        client: shape.client.map(Into::into),
        door: door(shape.door.as_deref()),
        opened_at: Moment::from_millis(shape.opened),
    })
}

fn loaded(stored: BTreeMap<String, String>) -> Option<LoadedToolsets> {
    let set = |(name, level): (String, String)| {
        let level = [Level::Read, Level::Write].into_iter().find(|known| known.as_str() == level);
        Some((ToolsetName::parse(&name).ok()?, level?))
    };
    stored.into_iter().map(set).collect()
}

/// One that a newer service knows is not known here; nothing is decided by it.
fn door(stored: Option<&str>) -> Option<SessionDoor> {
    SessionDoor::ALL.into_iter().find(|door| Some(door.as_str()) == stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = r#"{"v":1,"iss":"https://login.example","sub":"agent","mode":"write","loaded":{"helm":"write","k8s":"read"},"grown":true,"catalog":"c1","tainted":false,"opened":1763280000000}"#;

    fn read(text: &str) -> Result<Session, StoreError> {
        let owner = Principal::new("https://login.example", "agent");
        from_bytes(SessionId::from_random([3; 16]), &[owner_mark(&owner), text.as_bytes().to_vec()].concat())
    }

    /// As `loadtests --growth` writes it.
    fn idle() -> Session {
        Session {
            id: SessionId::from_random([3; 16]),
            owner: Principal::new("loadtests", "agent999"),
            mode: SessionMode::Write,
            loaded: LoadedToolsets::default(),
            grown: false,
            catalog: "0123456789abcdef".repeat(4),
            tainted: false,
            assignment: Assignment::default(),
            client: Some("loadtests/1".into()),
            door: Some(SessionDoor::Modern),
            opened_at: Moment::from_millis(1_763_280_000_000),
        }
    }

    #[test]
    fn a_session_written_by_an_older_build_reads_back() {
        let session = read(WRITTEN).unwrap();
        let held: Vec<_> = session.loaded.iter().map(|(name, level)| (name.to_string(), level)).collect();
        assert_eq!(held, [("helm".to_owned(), Level::Write), ("k8s".to_owned(), Level::Read)]);
        assert_eq!((session.mode, session.grown, session.tainted), (SessionMode::Write, true, false));
        assert_eq!((session.catalog.as_str(), session.opened_at.millis()), ("c1", 1_763_280_000_000));
        assert_eq!(session.owner, Principal::new("https://login.example", "agent"));
    }

    #[test]
    fn a_session_reads_back_as_it_was_written() {
        let loaded = read(WRITTEN).unwrap().loaded;
        let full = Session { loaded, grown: true, tainted: true, mode: SessionMode::Read, ..idle() };
        let bare = Session { client: None, door: None, catalog: String::new(), ..idle() };
        let quoted = Session { owner: Principal::new("i\"", "a\\\u{e9}\n"), ..idle() };
        // Whatever names the catalog, a digest or not, comes back letter by letter.
        let named =
            ["c1", "C1", "c", "the catalog", &"ab".repeat(300)].map(|name| Session { catalog: name.into(), ..idle() });
        for session in [idle(), full, bare, quoted, read(WRITTEN).unwrap()].into_iter().chain(named) {
            assert_eq!(from_bytes(session.id, &to_bytes(&session).unwrap()).unwrap(), session);
        }
    }

    #[test]
    fn an_idle_session_is_short_because_redis_holds_a_million_of_them() {
        let length = to_bytes(&idle()).unwrap().len() - FINGERPRINT_LENGTH;
        assert!(length <= 112, "{length} bytes without the mark");
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
        let good = to_bytes(&idle()).unwrap();
        for cut in FINGERPRINT_LENGTH..good.len() {
            assert!(matches!(from_bytes(id, &good[..cut]), Err(StoreError::Corrupt { .. })), "{cut}");
        }
        let mut odd_flag = good;
        odd_flag[FINGERPRINT_LENGTH + 1] |= 8;
        assert!(matches!(from_bytes(id, &odd_flag), Err(StoreError::Corrupt { .. })));
        for short in [&b""[..], b"{}"] {
            assert!(matches!(from_bytes(id, short), Err(StoreError::Corrupt { .. })));
        }
    }
}
