//! What is equal is made once and held by all who need it: by digest, for as long as anybody holds it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Values by the digest of what they were made of.
pub(crate) struct SharedByDigest<T> {
    values: Mutex<SharedValues<T>>,
}

struct SharedValues<T> {
    by_digest: HashMap<[u8; 32], Weak<T>>,
    /// When there are so many, those that nobody holds any more are dropped.
    clean_at: usize,
}

/// How many there are at least before anybody looks for what is not held any more.
const MANY: usize = 256;

impl<T> SharedByDigest<T> {
    pub(crate) fn new() -> SharedByDigest<T> {
        SharedByDigest { values: Mutex::new(SharedValues { by_digest: HashMap::new(), clean_at: MANY }) }
    }

    /// The value of this digest, made if nobody holds one.
    pub(crate) fn get<E>(&self, digest: [u8; 32], make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let find = || {
            let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            values.by_digest.get(&digest).and_then(Weak::upgrade)
        };
        if let Some(known) = find() {
            return Ok(known);
        }
        // Made without the lock: compiling takes a while. Of two that are made at once, the first stays.
        let made = Arc::new(make()?);
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = values.by_digest.get(&digest).and_then(Weak::upgrade) {
            return Ok(known);
        }
        if values.by_digest.len() >= values.clean_at {
            values.by_digest.retain(|_, value| value.strong_count() > 0);
            values.clean_at = (values.by_digest.len() * 2).max(MANY);
        }
        values.by_digest.insert(digest, Arc::downgrade(&made));
        Ok(made)
    }
}

/// The bits of a SHA-256 in hexadecimal.
pub(crate) fn bits(digest: &str) -> [u8; 32] {
    let mut bits = [0; 32];
    for (n, byte) in bits.iter_mut().enumerate() {
        let pair = digest.get(2 * n..2 * n + 2).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(shared: &SharedByDigest<u32>, digest: u8, value: u32) -> Arc<u32> {
        shared.get([digest; 32], || Ok::<u32, ()>(value)).unwrap()
    }

    #[test]
    fn one_value_is_held_by_all_and_goes_with_the_last() {
        let shared = SharedByDigest::new();
        let (first, second) = (get(&shared, 1, 10), get(&shared, 1, 99));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(*get(&shared, 2, 20), 20);
        drop((first, second));
        assert_eq!(*get(&shared, 1, 99), 99, "nobody held it any more, so it was made anew");
    }

    #[test]
    fn what_nobody_holds_takes_no_room_for_good() {
        let shared = SharedByDigest::new();
        for number in 0..1_000_u32 {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&number.to_be_bytes());
            shared.get(digest, || Ok::<u32, ()>(number)).unwrap();
        }
        assert!(shared.values.lock().unwrap().by_digest.len() <= MANY);
    }
}
