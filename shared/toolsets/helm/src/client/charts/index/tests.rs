use super::*;
use std::fmt::Write;

const DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn a_real_index_is_read() {
    let index = ChartIndex::parse(&format!(
        "apiVersion: v1\ngenerated: \"2026-01-01T00:00:00Z\"\nentries:\n  web:\n  - apiVersion: v2\n    name: web\n    version: 1.2.0\n    \
         appVersion: 7.0\n    description: |-\n      A web\n      server\n    keywords: [http, server]\n    urls: [web-1.2.0.tgz]\n    \
         digest: {DIGEST}\n    maintainers:\n    - {{name: x, email: x@example.com}}\n    dependencies: []\n  - {{name: web, \
         version: v1.10.0, urls: ['https://cdn.example/web.tgz'], deprecated: true}}\n  empty:\n"
    ))
    .unwrap();

    let web = index.find("web").unwrap();
    assert_eq!((index.len(), index.left_out(), web.len()), (1, 0, 2));
    assert_eq!(web[0].app_version.as_deref(), Some("7.0"), "as it is spelled");
    assert_eq!(web[0].description.as_deref(), Some("A web server"));
    assert_eq!((web[0].digest.as_deref(), web[1].deprecated), (Some(DIGEST), true));
    assert_eq!(best(web, &Range::newest()).unwrap().version, "v1.10.0");
    assert_eq!(newest(web.iter().map(|e| &e.version), 3), ["v1.10.0", "1.2.0"]);
}

#[test]
fn entries_that_cannot_be_meant_are_left_out() {
    let index = ChartIndex::parse(
        "entries:\n  web:\n  - {name: other, version: 1.0.0, urls: [a]}\n  - {version: ../../x, urls: [a]}\n  - {version: 1.0.0/../x, urls: [a]}\n  \
         - {version: 1.0.0}\n  - {version: 1.0.0, urls: []}\n  - {version: 1.0.0, urls: [~]}\n  - {version: 1.0.0, urls: [a], digest: 'md5:00'}\n  \
         - {version: 2.0.0, urls: [a]}\n  ../evil:\n  - {version: 1.0.0, urls: [a]}\n  --flag:\n  - {version: 1.0.0, urls: [a]}\n",
    )
    .unwrap();

    assert_eq!(index.find("web").unwrap().len(), 1);
    assert_eq!((index.len(), index.left_out()), (1, 9));
}

#[test]
fn yaml_bombs_end_within_budget() {
    let mut laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (n, letter) in ('b'..='z').enumerate() {
        let before = char::from(b'a' + u8::try_from(n).unwrap());
        writeln!(laughs, "{letter}: &{letter} [{}]", vec![format!("*{before}"); 9].join(",")).unwrap();
    }
    let deep = format!("entries: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let merged = "x: &x {a: 1}\nentries:\n  web:\n  - {<<: *x, version: 1.0.0, urls: [a]}\n".to_owned();
    let twice = "entries:\n  web: [{version: 1.0.0, urls: [a]}]\n  web: [{version: 2.0.0, urls: [a]}]\n".to_owned();
    let several = "entries: {}\n---\nentries: {}\n".to_owned();
    for text in [
        laughs,
        deep,
        merged,
        twice,
        several,
        "entries: [".to_owned(),
        "- a\n- b\n".to_owned(),
        "entries: 7".to_owned(),
    ] {
        assert_eq!(ChartIndex::parse(&text).map(|index| index.len()), Err(BadIndex::NotRead), "{:.60}", text);
    }
}

#[test]
fn more_than_can_be_kept_is_refused() {
    let mut text = "entries:\n".to_owned();
    for n in 0..=MOST_CHARTS {
        writeln!(text, "  c{n}: [{{version: 1.0.0, urls: [a]}}]").unwrap();
    }
    assert_eq!(ChartIndex::parse(&text).map(|index| index.len()), Err(BadIndex::TooLarge));
}

#[test]
fn hostile_words_are_one_printable_line() {
    let text = format!(
        "entries:\n  web:\n  - {{version: 1.0.0, urls: [a], description: \"\\e[31m red\\n{}\"}}\n",
        "x".repeat(1_000)
    );
    let index = ChartIndex::parse(&text).unwrap();
    let said = index.find("web").unwrap()[0].description.clone().unwrap();
    assert!(said.chars().count() <= MOST_DESCRIPTION && !said.contains(['\u{1b}', '\n']), "{said}");
}
