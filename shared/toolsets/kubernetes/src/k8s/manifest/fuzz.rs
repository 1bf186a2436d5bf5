//! What every manifest of a stranger is held to.

use super::*;

/// Whatever it says: it counts as the worst, or it is objects within their bounds, each of which is read again as the same.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let manifest = ObjectManifest::from(text.to_owned());
    let Ok(objects) = manifest.objects() else {
        assert!(manifest.is_wide() && manifest.is_risky() && manifest.about().is_none(), "{text:?}");
        return;
    };
    assert!((1..=MOST_OBJECTS).contains(&objects.len()));
    let named = |object: &ManifestObject| {
        let known = manifest.about().is_some_and(|about| about.split(',').any(|one| one == object.about()));
        assert!(known, "rules do not know of {} {}", object.kind, object.name);
    };
    objects.iter().for_each(named);
    for object in objects {
        let again = ObjectManifest::from(object.value.to_string());
        assert_eq!(again.objects().map(<[_]>::to_vec).ok(), Some(vec![object.clone()]), "{text:?}");
        assert!(!again.is_wide() || manifest.is_wide(), "{text:?}");
        assert!(!again.is_risky() || manifest.is_risky(), "{text:?}");
    }
}
