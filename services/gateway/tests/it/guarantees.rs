//! `docs/guarantees.md` against the tests of the whole repository: every test it names exists, and every code at the
//! beginning of a test's name (`r3_…`) has its row in the section "Test codes".

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/guarantees.md")).unwrap()
}

/// The text of every Rust file below a folder, build folders left out.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            sources(&path, found);
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "rs") {
            found.push(fs::read_to_string(&path).unwrap());
        }
    }
}

fn all_sources() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["shared", "services", "loadtests"] {
        sources(&root().join(folder), &mut found);
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The names of test functions: the first `fn` after an attribute that ends in `test`, with or without arguments.
fn tests(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        marked |= line.starts_with("#[") && (line.contains("test]") || line.contains("test("));
        if let Some((_, rest)) = line.split_once("fn ").filter(|_| marked && !line.starts_with("//")) {
            names.push(rest.split(|c| !is_word(c)).next().unwrap());
            marked = false;
        }
    }
    names
}

/// The codes a name begins with: one or two letters and a number each.
fn codes(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').take_while(|word| {
        let letters = word.chars().take_while(char::is_ascii_lowercase).count();
        let digits = &word[letters..];
        (1..=2).contains(&letters) && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
    })
}

/// The text of each `…` in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_that_the_security_page_names_exists() {
    let sources = all_sources();
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let named: Vec<&str> =
        rows.filter_map(|line| line.trim_end_matches(" |").rsplit(" | ").next()).flat_map(quoted).collect();
    assert!(named.len() > 15, "only {} tests are named", named.len());
    for name in named {
        let defined = sources.iter().any(|source| source.contains(&format!("fn {name}(")));
        assert!(defined, "docs/security.md names the test {name}, which does not exist");
    }
}

#[test]
fn every_test_that_the_guarantees_name_exists() {
    let sources = all_sources();
    let words: BTreeSet<&str> = sources.iter().flat_map(|source| source.split(|c| !is_word(c))).collect();
    let page = page();
    let promises = page.split("\n## Test codes\n").next().unwrap().lines().filter(|line| line.starts_with("| "));
    // The second of three columns. A promise may have a `|` in it only if it is escaped, and none has.
    let named: Vec<&str> = promises.filter_map(|line| line.split(" | ").nth(1)).flat_map(quoted).collect();
    assert!(named.len() > 300, "only {} tests are named", named.len());
    let missing: Vec<&str> = named.into_iter().filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "docs/guarantees.md names tests that do not exist: {missing:#?}");
}

#[test]
fn every_code_of_a_test_has_its_row() {
    let page = page();
    let key = page.split("\n## Test codes\n").nth(1).expect("docs/guarantees.md has a section \"Test codes\"");
    let rows: BTreeSet<&str> = key.lines().filter_map(|line| quoted(line.strip_prefix("| ")?).next()).collect();
    let sources = all_sources();
    let used: BTreeSet<&str> = sources.iter().flat_map(|source| tests(source)).flat_map(codes).collect();
    assert!(used.len() > 100, "only {} codes were found", used.len());
    let missing: Vec<_> = used.difference(&rows).collect();
    assert!(
        missing.is_empty(),
        "add these codes to the table in docs/guarantees.md, or rename their tests: {missing:?}"
    );
}
