//! What the parsers of charts and of indexes are held to, whatever bytes they are given. For `shared/fuzz`, and in no
//! other build.

use super::archive::{self, ChartContents};
use super::index::{self, ChartIndex};
use super::range::{Range, version};
use super::reference::{ChartRef, is_chart_name};
use flate2::Crc;
use tar::{Builder, Header};

/// Whatever it holds: it is refused, or what is shown of it is what a plain archive with just that would show. The first
/// byte says whether the rest is packed already: nothing but luck would give a packed text its right checksum.
pub fn archive(bytes: &[u8]) {
    let Some((form, rest)) = bytes.split_first() else { return };
    let packed = if *form == b'z' { rest.to_vec() } else { gzip(rest) };
    let Ok(contents) = archive::inspect(&packed) else { return };
    assert!(is_chart_name(&contents.name) && version(&contents.version).is_some(), "{contents:?}");
    assert!(contents.crds.iter().all(|(name, _)| name.starts_with("crds/") && !name.contains("/../")), "{contents:?}");
    if let Some(again) = packed_again(&contents) {
        let again =
            archive::inspect(&gzip(&again)).map(|again| ChartContents { may_look_up: contents.may_look_up, ..again });
        assert_eq!(again, Ok(contents));
    }
}

/// Packed by storing it, which costs next to nothing.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for piece in bytes.chunks(0x8000) {
        let length = u16::try_from(piece.len()).unwrap_or_default();
        packed.push(0);
        packed.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        packed.extend_from_slice(piece);
    }
    packed.extend([1, 0, 0, 0xff, 0xff]);
    let mut sum = Crc::new();
    sum.update(bytes);
    packed.extend([sum.sum().to_le_bytes(), sum.amount().to_le_bytes()].concat());
    packed
}

/// A plain archive of what was read. The head is written as JSON, which is YAML.
fn packed_again(contents: &ChartContents) -> Option<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    let mut put = |name: &str, text: &str| {
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("chart/{name}"), text.as_bytes()).ok()
    };
    put("Chart.yaml", &contents.metadata.to_string())?;
    contents.values.as_ref().map_or(Some(()), |text| put("values.yaml", text))?;
    contents.readme.as_ref().map_or(Some(()), |text| put("README.md", text))?;
    contents.crds.iter().try_for_each(|(name, text)| put(name, text))?;
    tar.into_inner().ok()
}

/// Whatever it lists: what is kept of it can be asked for by its own name and version, and is bounded.
pub fn index(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for line in text.lines().take(4) {
        reference(line.trim());
    }
    let Ok(index) = ChartIndex::parse(text) else { return };
    for (name, versions) in index.charts() {
        assert!(is_chart_name(name) && !versions.is_empty(), "{name:?}");
        assert_eq!(index.find(name), Some(versions));
        for one in versions {
            let range = Range::parse(&one.version).expect("a version is a range");
            assert_eq!(index::best(versions, &range).map(|best| &best.version), Some(&one.version), "{one:?}");
            assert!(one.description.as_ref().is_none_or(|words| words.chars().count() <= 300), "{one:?}");
            assert!(one.url.len() <= 2_048, "{one:?}");
        }
        assert!(!index::newest(versions.iter().map(|one| &one.version), 3).is_empty(), "{name:?}");
    }
}

/// What a caller writes of a chart: read again from how it is shown, it is the same.
fn reference(text: &str) {
    if let Some(chart) = ChartRef::parse(text) {
        assert_eq!(ChartRef::parse(&chart.to_string()).as_ref(), Some(&chart));
        assert!(!chart.name().is_empty() && !chart.name().contains(['/', '\\', '%']), "{text:?}");
    }
    if let Some(range) = Range::parse(text) {
        assert_eq!(Range::parse(&range.to_string()).as_ref().map(Range::exact), Some(range.exact()), "{text:?}");
        if let Some(exact) = range.exact() {
            assert!(range.holds(&exact), "{text:?}");
        }
    }
}
