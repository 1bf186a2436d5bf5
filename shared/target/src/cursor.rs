//! Where a long result goes on, sealed so that only its own caller can go on with it, and only for a while.
//!
//! base64url of version (1 byte), the last moment it is good for (8 bytes), a tag (16 bytes) and the place as JSON. The
//! tag covers all of it together with tenant, principal, session, tool and the other arguments, none of which need to
//! be in the text. A cursor is no secret: it says where to go on, never what is there.

use crate::codes;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::{Code, Failure, KeyedDigest, Moment, json};
use policy::Permit;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const VERSION: u8 = 1;
const TAG: usize = 16;
const HEAD: usize = 1 + 8 + TAG;
/// How long a result can be continued.
const GOOD_FOR: Duration = Duration::from_secs(600);
/// The longest text that is looked at. A cluster's own token, which is carried inside, takes a few hundred bytes.
const MOST_BYTES: usize = 4_096;
/// What the key is used for, so that another use of the same key proves nothing here.
const PURPOSE: &[u8] = b"quartermaster tool cursor";

/// The time, from whoever has a clock.
pub type CursorClock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// Makes and reads cursors.
#[derive(Clone)]
pub struct Cursors {
    key: [u8; 32],
    clock: CursorClock,
}

/// A cursor as it comes in an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Cursor(String);

impl TryFrom<String> for Cursor {
    type Error = String;

    fn try_from(text: String) -> Result<Cursor, String> {
        let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        match (1..=MOST_BYTES).contains(&text.len()) && text.bytes().all(letter) {
            true => Ok(Cursor(text)),
            false => Err("a cursor is passed on as it was given".to_owned()),
        }
    }
}

impl JsonSchema for Cursor {
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": MOST_BYTES, "pattern": "^[A-Za-z0-9_-]+$" })
    }
}

/// Where a list goes on of which this many rows were shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowOffset {
    /// How many.
    pub o: usize,
}

impl Cursors {
    /// Cursors under this key, by the host's clock. Every replica needs the same key.
    pub fn new(key: [u8; 32]) -> Cursors {
        Cursors::with_clock(key, Arc::new(host_clock))
    }

    /// Cursors under this key, by another clock.
    pub fn with_clock(key: [u8; 32], clock: CursorClock) -> Cursors {
        Cursors { key, clock }
    }

    /// Now, by the clock that also ends cursors.
    pub fn now(&self) -> Moment {
        (self.clock)()
    }

    /// A cursor for `place` in the result of this call. `args` are all arguments; the cursor among them does not count.
    pub fn seal(&self, permit: &Permit, args: &impl Serialize, place: &impl Serialize) -> Result<String, Failure> {
        let place = serde_json::to_vec(place).map_err(|_| broken())?;
        let until = self.now().plus(GOOD_FOR).millis().to_be_bytes();
        let tag = self.bound(permit, args)?.part(&until).part(&place).half();
        let text = URL_SAFE_NO_PAD.encode([&[VERSION][..], &until, &tag, &place].concat());
        match text.len() <= MOST_BYTES {
            true => Ok(text),
            false => Err(broken()),
        }
    }

    /// Where a call goes on; `None` for one without a cursor, which begins.
    pub fn resume<T: DeserializeOwned>(
        &self,
        permit: &Permit,
        args: &impl Serialize,
        cursor: Option<&Cursor>,
    ) -> Result<Option<T>, Failure> {
        cursor.map(|cursor| self.open(permit, args, cursor)).transpose()
    }

    /// The place a cursor names, if it was given to this caller for these arguments not too long ago.
    pub fn open<T: DeserializeOwned>(
        &self,
        permit: &Permit,
        args: &impl Serialize,
        cursor: &Cursor,
    ) -> Result<T, Failure> {
        let bytes = URL_SAFE_NO_PAD.decode(&cursor.0).map_err(|_| mismatch())?;
        let (head, place) = bytes.split_at_checked(HEAD).ok_or_else(mismatch)?;
        let (Some((&VERSION, rest)), true) = (head.split_first(), head.len() == HEAD) else { return Err(mismatch()) };
        let (until, tag) = rest.split_at(8);
        let until: [u8; 8] = until.try_into().map_err(|_| mismatch())?;
        // Only a cursor of ours is asked how old it is.
        if !self.bound(permit, args)?.part(&until).part(place).begins_with(tag) {
            return Err(mismatch());
        }
        if self.now() > Moment::from_millis(u64::from_be_bytes(until)) {
            return Err(Failure::new(codes::CURSOR_EXPIRED, "the cursor is older than ten minutes")
                .next("call again without cursor"));
        }
        serde_json::from_slice(place).map_err(|_| mismatch())
    }

    /// Begun over everything a cursor is bound to.
    fn bound(&self, permit: &Permit, args: &impl Serialize) -> Result<KeyedDigest, Failure> {
        let call = permit.call();
        let session = call.session.map(|s| s.to_string()).unwrap_or_default();
        let args = arguments(args)?;
        let who = &call.caller.principal;
        let texts = [permit.tenant().as_str(), &who.issuer, &who.subject, &session, call.tool.as_str(), &args];
        let begun = KeyedDigest::new(&self.key).part(PURPOSE);
        Ok(texts.iter().fold(begun, |digest, text| digest.part(text.as_bytes())))
    }
}

/// The arguments besides the cursor, in their one form.
fn arguments(args: &impl Serialize) -> Result<String, Failure> {
    let mut args = serde_json::to_value(args).map_err(|_| broken())?;
    if let Some(fields) = args.as_object_mut() {
        fields.remove("cursor");
        fields.retain(|_, value| !value.is_null());
    }
    Ok(json::canonical(&args))
}

/// Replicas need not agree to the second: a cursor is good for ten minutes, and an age is for people.
fn host_clock() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn mismatch() -> Failure {
    Failure::new(codes::CURSOR_MISMATCH, "the cursor was given to another caller or for other arguments")
        .next("call again without cursor, or with the arguments of the first call")
}

fn broken() -> Failure {
    Failure::new(Code::Internal, "the place in the result cannot be written down")
}

/// Keys do not print.
impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cursors(…)")
    }
}

#[cfg(test)]
mod tests;
