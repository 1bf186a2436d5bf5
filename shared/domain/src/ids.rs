//! Ids: a prefix that says what it names, and 128 random bits in 22 characters of base 62.
//!
//! An id is a name and never a proof: whoever shows one must still be its owner.
//! The random bits are handed in, since this crate has no source of them.

use std::fmt;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: usize = 22; // 62^22 > 2^128

/// The text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an id of the form {0}<22 letters and digits>")]
pub struct NotAnId(&'static str);

/// The most digits that a machine word holds.
const WORD_DIGITS: usize = 10;

/// Written a word at a time: dividing 128 bits costs far more than dividing 64, and every call has several ids.
fn digits(bits: [u8; 16]) -> [u8; DIGITS] {
    const WORD: u128 = 62_u128.pow(WORD_DIGITS as u32);
    let mut rest = u128::from_be_bytes(bits);
    let mut out = [b'0'; DIGITS];
    for word in out.rchunks_mut(WORD_DIGITS) {
        let mut low = (rest % WORD) as u64;
        rest /= WORD;
        for digit in word.iter_mut().rev() {
            *digit = ALPHABET[(low % 62) as usize];
            low /= 62;
        }
    }
    out
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name([u8; DIGITS]);

        impl $name {
            /// What every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// Names something new; the caller supplies the randomness.
            pub fn from_random(bits: [u8; 16]) -> Self {
                $name(digits(bits))
            }

            /// Reads an id back from its text.
            pub fn parse(text: &str) -> Result<Self, NotAnId> {
                let rest = text.strip_prefix($prefix).ok_or(NotAnId($prefix))?;
                match <[u8; DIGITS]>::try_from(rest.as_bytes()) {
                    Ok(digits) if digits.iter().all(u8::is_ascii_alphanumeric) => Ok($name(digits)),
                    _ => Err(NotAnId($prefix)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                // Digits of the alphabet only, so the fallback is never taken.
                f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                $name::parse(&text).map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

id!(
    /// Names a [`Session`](crate::Session).
    SessionId, "ses_"
);
id!(
    /// Names one [`Call`](crate::Call).
    CallId, "call_"
);
id!(
    /// Names one [`Run`](crate::run::Run).
    RunId, "run_"
);
id!(
    /// Names one entry of a tenant's audit audit log.
    AuditId, "aud_"
);
id!(
    /// Names one [`Job`](crate::job::Job) for a runner.
    JobId, "job_"
);
id!(
    /// Names one running process that takes jobs; drawn when it starts.
    RunnerId, "rnr_"
);

impl JobId {
    /// The job that belongs to this text, such as the id of a run: whoever submits it a second time names the same job.
    pub fn of(owner: &str) -> JobId {
        use sha2::{Digest, Sha256};
        let hash = Sha256::digest(owner.as_bytes());
        let mut bits = [0; 16];
        bits.copy_from_slice(&hash[..16]);
        JobId::from_random(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_itself() {
        for bits in [[0; 16], [255; 16], [7; 16]] {
            let id = SessionId::from_random(bits);
            assert_eq!(SessionId::parse(&id.to_string()), Ok(id));
        }
        assert_ne!(SessionId::from_random([1; 16]), SessionId::from_random([2; 16]));
    }

    #[test]
    fn the_digits_are_those_of_the_whole_number() {
        let plainly = |bits: [u8; 16]| {
            let mut rest = u128::from_be_bytes(bits);
            let mut digits: Vec<u8> = std::iter::repeat_with(|| {
                let digit = ALPHABET[(rest % 62) as usize];
                rest /= 62;
                digit
            })
            .take(DIGITS)
            .collect();
            digits.reverse();
            digits
        };
        for number in 0..=255_u8 {
            let spread: [u8; 16] = std::array::from_fn(|at| number.wrapping_mul(31).wrapping_add(at as u8 * 17));
            for bits in [[number; 16], spread] {
                assert_eq!(digits(bits).to_vec(), plainly(bits));
            }
        }
        assert_eq!(SessionId::from_random([255; 16]).to_string(), "ses_7n42DGM5Tflk9n8mt7Fhc7");
    }

    #[test]
    fn another_kind_or_shape_is_no_id() {
        let call = CallId::from_random([1; 16]).to_string();
        for bad in [call.as_str(), "", "ses_", "ses_1", "ses_000000000000000000000!", "ses_0000000000000000000000:"] {
            assert!(SessionId::parse(bad).is_err(), "{bad}");
        }
    }
}
