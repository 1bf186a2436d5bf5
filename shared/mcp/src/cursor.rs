//! Cursors of lists: which page of which set comes next, signed.
//!
//! base64url of version (1 byte), the first 8 bytes of the catalog's digest, the page (4 bytes) and a tag of
//! 16 bytes. The tag covers the whole digest and the set the list was drawn for (tenant included), so a cursor that
//! is foreign or out of date is simply a wrong one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::KeyedDigest;
use subtle::ConstantTimeEq;

const VERSION: u8 = 1;
const PREFIX: usize = 8;
const TAG: usize = 16;
const SIGNED: usize = 1 + PREFIX + 4;

/// A cursor for `page` of the list that `digest` and `set_key` stand for.
pub fn make(key: &[u8; 32], digest: &str, set_key: &[u8], page: u32) -> String {
    URL_SAFE_NO_PAD.encode(sealed(key, digest, set_key, page))
}

/// The page a cursor names, if it was made by [`make`] with the same key for the same list.
pub fn check(key: &[u8; 32], digest: &str, set_key: &[u8], cursor: &str) -> Option<u32> {
    let told = <[u8; SIGNED + TAG]>::try_from(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let page = u32::from_be_bytes(told[SIGNED - 4..SIGNED].try_into().ok()?);
    // Made again and compared whole, in constant time: version, digest and tag are all covered at once.
    bool::from(sealed(key, digest, set_key, page).ct_eq(&told)).then_some(page)
}

fn sealed(key: &[u8; 32], digest: &str, set_key: &[u8], page: u32) -> [u8; SIGNED + TAG] {
    let mut cursor = [0; SIGNED + TAG];
    cursor[0] = VERSION;
    let prefix = digest.len().min(PREFIX);
    cursor[1..=prefix].copy_from_slice(&digest.as_bytes()[..prefix]);
    cursor[SIGNED - 4..SIGNED].copy_from_slice(&page.to_be_bytes());
    let tag = KeyedDigest::new(key).part(&cursor[..SIGNED]).part(digest.as_bytes()).part(set_key);
    cursor[SIGNED..].copy_from_slice(&tag.half());
    cursor
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: [u8; 32] = [7; 32];
    const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015";

    #[test]
    fn a_cursor_leads_to_its_page() {
        for page in [0, 1, 2, u32::MAX] {
            let cursor = make(&KEY, DIGEST, b"acme|k8s:read", page);
            assert_eq!(check(&KEY, DIGEST, b"acme|k8s:read", &cursor), Some(page));
            assert!(cursor.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        }
    }

    #[test]
    fn a_foreign_outdated_or_invented_cursor_is_wrong() {
        let cursor = make(&KEY, DIGEST, b"acme|k8s:read", 1);
        assert_eq!(check(&[8; 32], DIGEST, b"acme|k8s:read", &cursor), None, "another key");
        assert_eq!(check(&KEY, "9f86d081ffff", b"acme|k8s:read", &cursor), None, "another catalog, same prefix");
        assert_eq!(check(&KEY, "", b"acme|k8s:read", &cursor), None, "no catalog");
        assert_eq!(check(&KEY, DIGEST, b"bolt|k8s:read", &cursor), None, "another tenant");
        for bad in ["", "=", "AA", "page2", &cursor[1..], &format!("{cursor}A"), &format!("{cursor}=")] {
            assert_eq!(check(&KEY, DIGEST, b"acme|k8s:read", bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_changed_byte_goes_unnoticed(at in 0..SIGNED + TAG, by in 1..=255_u8) {
            let mut bytes = sealed(&KEY, DIGEST, b"set", 3);
            bytes[at] ^= by;
            prop_assert_eq!(check(&KEY, DIGEST, b"set", &URL_SAFE_NO_PAD.encode(bytes)), None);
        }

        #[test]
        fn no_text_makes_it_panic(cursor in any::<String>()) {
            prop_assert_eq!(check(&KEY, DIGEST, b"set", &cursor), None);
        }
    }
}
