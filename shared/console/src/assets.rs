//! Scripts, styles and the icon, as they were compressed and named when this was built.

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// One file that pages name.
#[derive(Debug)]
pub struct Asset {
    source: &'static str,
    /// Its name, with a part of the digest of its contents: another content has another name.
    pub name: &'static str,
    /// Its content type.
    pub kind: &'static str,
    /// Its bytes.
    pub plain: &'static [u8],
    /// The same, compressed with gzip.
    pub gzip: &'static [u8],
}

/// The asset of this name.
pub fn find(name: &str) -> Option<&'static Asset> {
    ALL.iter().find(|asset| asset.name == name)
}

/// Every asset.
pub fn all() -> impl Iterator<Item = &'static Asset> {
    ALL.iter()
}

/// The address of the asset that is called so in the source.
pub(crate) fn address(source: &str) -> String {
    let name = ALL.iter().find(|asset| asset.source == source).map_or(source, |asset| asset.name);
    format!("{}/assets/{name}", crate::BASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_styles_are_small_and_named_by_their_contents() {
        let packed: usize = ALL.iter().map(|asset| asset.gzip.len()).sum();
        assert!(packed <= 25 * 1024, "{packed} bytes");
        for asset in ALL {
            assert!(find(asset.name).is_some() && asset.name != asset.source, "{}", asset.name);
            assert!(address(asset.source).ends_with(asset.name));
        }
        assert!(find("console.css").is_none());
    }

    #[test]
    fn scripts_import_each_other_by_the_names_they_are_served_under() {
        for asset in ALL {
            let text = std::str::from_utf8(asset.plain).unwrap();
            for imported in text.split("from \"./").skip(1).filter_map(|rest| rest.split('"').next()) {
                assert!(find(imported).is_some(), "{} imports {imported}", asset.name);
            }
        }
    }
}
