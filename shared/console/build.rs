//! Compresses the assets and names each by its contents, so that browsers may keep them for good.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

/// Name and kind. Later ones may import earlier ones by the name in the source, which is replaced here.
const ASSETS: [(&str, &str); 7] = [
    ("console.css", "text/css; charset=utf-8"),
    ("icon.svg", "image/svg+xml"),
    ("clock.js", "text/javascript; charset=utf-8"),
    ("table.js", "text/javascript; charset=utf-8"),
    ("keys.js", "text/javascript; charset=utf-8"),
    ("live.js", "text/javascript; charset=utf-8"),
    ("editor.js", "text/javascript; charset=utf-8"),
];

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script by variables where it works")]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("assets");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut table = String::from("pub(crate) static ALL: &[Asset] = &[\n");
    let mut renamed: Vec<(&str, String)> = Vec::new();
    for (name, kind) in ASSETS {
        let mut text = fs::read_to_string(folder.join(name))?;
        for (before, after) in &renamed {
            text = text.replace(&format!("\"./{before}\""), &format!("\"./{after}\""));
        }
        let digest: String = Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let (stem, end) = name.split_once('.').ok_or("an asset needs an ending")?;
        let hashed = format!("{stem}.{digest}.{end}");
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes())?;
        fs::write(out.join(name), &text)?;
        fs::write(out.join(format!("{name}.gz")), packed.finish()?)?;
        writeln!(
            table,
            "Asset {{ source: {name:?}, name: {hashed:?}, kind: {kind:?}, \
             plain: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\")), \
             gzip: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.gz\")) }},"
        )?;
        renamed.push((name, hashed));
    }
    table.push_str("];\n");
    fs::write(out.join("assets.rs"), table)?;
    println!("cargo::rerun-if-changed=assets");
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
