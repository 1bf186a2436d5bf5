//! Charts made for a test.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use tar::{Builder, EntryType, Header};

/// An archive with these files under one folder.
pub(crate) fn chart(name: &str, version: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let head =
        format!("apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: \"7.0\"\ndescription: A {name}\n");
    let mut all = vec![("Chart.yaml", head.as_str())];
    all.extend(files);
    let paths: Vec<(String, &str)> = all.into_iter().map(|(path, text)| (format!("{name}/{path}"), text)).collect();
    archive(&paths)
}

/// An archive with exactly these names.
pub(crate) fn archive(files: &[(String, &str)]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(EntryType::Regular);
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, text.as_bytes()).unwrap();
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&tar.into_inner().unwrap()).unwrap();
    packed.finish().unwrap()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    domain::json::sha256_hex(bytes)
}
