use super::*;
use proptest::prelude::*;

fn tenant(slug: &str) -> Tenant {
    Tenant::parse(slug).unwrap()
}

fn sealer(current: u8, older: &[u8]) -> Sealer {
    Sealer::new(&[current; 32], &older.iter().map(|byte| vec![*byte; 32]).collect::<Vec<_>>()).unwrap()
}

fn text(value: &str) -> SecretText {
    SecretText::new(value)
}

proptest! {
    #[test]
    fn what_was_sealed_opens_where_it_belongs(value in "\\PC{0,200}", name in "[a-z.]{1,20}", slug in "[a-z]{1,9}") {
        let blob = sealer(1, &[]).seal(&tenant(&slug), &name, &text(&value)).unwrap();
        let opened = sealer(1, &[]).open(&tenant(&slug), &name, &blob).unwrap();
        prop_assert_eq!(opened.value.expose(), value.as_str());
        prop_assert!(opened.current);
        // Short values occur by chance; longer ones do not.
        prop_assert!(value.len() < 4 || !blob.windows(value.len()).any(|part| part == value.as_bytes()));
    }

    #[test]
    fn a_blob_with_one_bit_changed_does_not_open(value in "\\PC{0,40}", at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let sealer = sealer(1, &[2]);
        let mut blob = sealer.seal(&tenant("acme"), "pull", &text(&value)).unwrap();
        let at = at.index(blob.len());
        blob[at] ^= 1 << bit;
        prop_assert_eq!(sealer.open(&tenant("acme"), "pull", &blob), Err(SealError::NotOpened));
    }

    #[test]
    fn nothing_that_is_no_blob_opens(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        prop_assert_eq!(sealer(1, &[]).open(&tenant("acme"), "pull", &bytes), Err(SealError::NotOpened));
    }
}

#[test]
fn a_blob_opens_for_its_tenant_under_its_name_with_its_key_and_never_else() {
    let blob = sealer(1, &[]).seal(&tenant("acme"), "pull", &text("canary-value")).unwrap();
    for (key, slug, name) in [
        (2, "acme", "pull"),
        (1, "globex", "pull"),
        (1, "acme", "push"),
        (1, "acm", "epull"),
        (1, "acmep", "ull"),
        (1, "acme", "pull."),
        (1, "acme", ""),
    ] {
        let refused = sealer(key, &[]).open(&tenant(slug), name, &blob);
        assert_eq!(refused, Err(SealError::NotOpened), "{key} {slug} {name}");
    }
    for cut in 0..blob.len() {
        assert_eq!(sealer(1, &[]).open(&tenant("acme"), "pull", &blob[..cut]), Err(SealError::NotOpened), "{cut}");
    }
}

#[test]
fn a_key_that_is_rotated_out_opens_and_no_longer_seals() {
    let old = sealer(1, &[]).seal(&tenant("acme"), "pull", &text("value")).unwrap();
    let both = sealer(2, &[7, 1]);
    let opened = both.open(&tenant("acme"), "pull", &old).unwrap();
    assert_eq!((opened.value.expose(), opened.current), ("value", false));

    let new = both.seal(&tenant("acme"), "pull", &opened.value).unwrap();
    assert!(both.open(&tenant("acme"), "pull", &new).unwrap().current);
    assert!(sealer(2, &[]).open(&tenant("acme"), "pull", &new).is_ok());
    assert!(sealer(1, &[7]).open(&tenant("acme"), "pull", &new).is_err());
    assert!(sealer(2, &[2]).open(&tenant("acme"), "pull", &new).unwrap().current, "listed twice by mistake");
}

#[test]
fn the_same_value_is_sealed_differently_each_time() {
    let sealer = sealer(1, &[]);
    let seal = || sealer.seal(&tenant("acme"), "pull", &text("value")).unwrap();
    assert_ne!(seal()[NONCE_AT..], seal()[NONCE_AT..]);
}

#[test]
fn short_keys_are_refused_and_nothing_prints() {
    assert_eq!(Sealer::new(&[1; 31], &[]).err(), Some(BadKey::TooShort(31)));
    assert_eq!(Sealer::new(&[1; 32], &[vec![2; 5]]).err(), Some(BadKey::TooShort(5)));
    let key = b"canary-key-canary-key-canary-key";
    let sealer = Sealer::new(key, &[]).unwrap();
    let blob = sealer.seal(&tenant("acme"), "pull", &text("canary-value")).unwrap();
    let opened = sealer.open(&tenant("acme"), "pull", &blob).unwrap();
    let printed = format!("{sealer:?} {opened:?} {:?} {}", SealError::NotOpened, SealError::NotOpened);
    assert!(!printed.contains("canary"), "{printed}");
    assert_eq!(format!("{sealer:?}"), "Sealer(1 keys)");
}
