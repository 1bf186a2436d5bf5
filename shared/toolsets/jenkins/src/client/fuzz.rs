//! What the parsers of a Jenkins server's answers are held to, whatever bytes they are given. For `shared/fuzz`, and in no
//! other build.

use super::build::{Build, BuildBody};
use super::reports::{TestReport, Tests};
use super::xml::{self, Element};
use super::{html, log, mask, scm};

/// Whatever the configuration of a job holds: it is refused, or it is a tree within its bounds that is read again as the
/// same, and the addresses that are shown of it name no user.
pub fn xml(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Some(root) = xml::read(&text) else { return };
    let (elements, depth, letters) = size(&root);
    assert!(elements <= text.len() && depth <= 66 && letters <= text.len(), "{elements} {depth} {letters}");
    if is_plain(&root) {
        assert_eq!(xml::read(&written(&root)).as_ref(), Some(&root), "{text:?}");
    }
    for source in scm::sources(&root) {
        source.url.iter().for_each(|url| names_no_user(url));
    }
}

/// What reads like a user part although it is none may have been masked for its looks.
fn names_no_user(shown: &str) {
    let host = shown.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    assert!(host.rsplit_once('@').is_none_or(|(user, _)| user.ends_with(']')), "{shown:?}");
}

/// How many elements there are, how deep, and how much text.
fn size(element: &Element) -> (usize, usize, usize) {
    element.children.iter().map(size).fold((1, 1, element.text.len()), |(n, deep, letters), (more, deeper, text)| {
        (n + more, deep.max(deeper + 1), letters + text)
    })
}

/// Whether all its names are such as Jenkins writes; others need not survive.
fn is_plain(element: &Element) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
    element.name.bytes().all(letter) && element.children.iter().all(is_plain)
}

fn written(element: &Element) -> String {
    let Element { name, class, text, children } = element;
    let inside: String = children.iter().map(written).collect();
    format!("<{name} class=\"{}\">{}{inside}</{name}>", escaped(class), escaped(text))
}

fn escaped(text: &str) -> String {
    let named = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        _ => c.to_string(),
    };
    text.chars().map(named).collect()
}

/// Whatever a page or an answer holds: text does not grow by being read, a script in a form is read as it stands there, and
/// nothing shown of a build is more than one line where one line is meant.
pub fn html(bytes: &[u8]) {
    let page = String::from_utf8_lossy(bytes);
    assert!(html::text(&page).len() <= page.len() && html::unescape(&page).len() <= page.len());
    assert_eq!(html::unescape(&escaped(&page)), page);
    html::textarea(&page, "_.mainScript");
    let form = format!("<form><textarea name=\"_.mainScript\">\n{}</textarea></form>", escaped(&page));
    assert_eq!(html::textarea(&form, "_.mainScript").as_deref(), Some(&*page));
    let short = log::with_short_line_ends(bytes.to_vec());
    assert!(!short.windows(2).any(|two| two == b"\r\n") || bytes.windows(3).any(|three| three == b"\r\r\n"));
    names_no_user(&mask::address(&page));
    if let Ok(report) = serde_json::from_slice::<TestReport>(bytes) {
        let tests = Tests::from(report);
        tests.cases.iter().for_each(|case| one_line(&case.name));
    }
    if let Ok(body) = serde_json::from_slice::<BuildBody>(bytes) {
        let build = Build::from(body);
        one_line(&build.display_name);
        build.causes.iter().for_each(|cause| one_line(cause));
    }
}

fn one_line(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
