//! The grammar of label and field selectors: parsed whole before anything is sent.
//!
//! The arguments of a call and the requests of the client are held to this one grammar, so what a caller may write is
//! what the cluster is asked. It is the server's own, without what could bend an address.

use domain::text::is_subdomain;

/// How long a label selector may be.
const MOST_LABELS: usize = 1_024;
/// How long a field selector may be.
const MOST_FIELDS: usize = 512;

/// Whether a text is a label selector: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a>1`, `a<1`, `a`, `!a`, joined
/// by commas.
pub(crate) fn is_label_selector(text: &str) -> bool {
    let mut rest = text;
    if !(1..=MOST_LABELS).contains(&text.len()) || !is_printable(text) {
        return false;
    }
    loop {
        let Some(after) = requirement(rest.trim_start()) else { return false };
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return after.is_empty(),
        }
    }
}

/// Whether a text is a field selector: `path=value`, `path==value`, `path!=value`, joined by commas. In a value a
/// backslash protects a comma, an equals sign or a backslash; the server takes blanks as they are, so a path has none.
pub(crate) fn is_field_selector(text: &str) -> bool {
    (1..=MOST_FIELDS).contains(&text.len())
        && is_printable(text)
        && terms(text).is_some_and(|terms| terms.into_iter().all(is_field_term))
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|b| (b' '..=b'~').contains(&b))
}

/// Takes one requirement off the front.
fn requirement(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('!') {
        return key(rest.trim_start());
    }
    let rest = key(text)?.trim_start();
    if let Some(rest) = ["==", "!=", "="].iter().find_map(|op| rest.strip_prefix(op)) {
        return value(rest.trim_start());
    }
    if let Some(rest) = rest.strip_prefix(['>', '<']) {
        let rest = rest.trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        return (1..=18).contains(&digits).then(|| &rest[digits..]);
    }
    if let Some(rest) = ["notin", "in"].iter().find_map(|op| rest.strip_prefix(op)) {
        return list(rest.trim_start().strip_prefix('(')?);
    }
    Some(rest)
}

/// `[prefix/]name`: the prefix a subdomain, the name at most 63 characters.
fn key(text: &str) -> Option<&str> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/');
    let end = text.bytes().position(|b| !letter(b)).unwrap_or(text.len());
    let (whole, rest) = text.split_at(end);
    let (prefix, name) = whole.rsplit_once('/').map_or((None, whole), |(prefix, name)| (Some(prefix), name));
    (is_value(name) && !name.is_empty() && prefix.is_none_or(is_subdomain)).then_some(rest)
}

fn value(text: &str) -> Option<&str> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let end = text.bytes().position(|b| !letter(b)).unwrap_or(text.len());
    let (whole, rest) = text.split_at(end);
    is_value(whole).then_some(rest)
}

fn list(mut text: &str) -> Option<&str> {
    loop {
        let rest = value(text.trim_start())?.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => text = more,
            None => return rest.strip_prefix(')'),
        }
    }
}

/// A label's value: empty, or at most 63 characters beginning and ending with a letter or digit.
fn is_value(text: &str) -> bool {
    let ends = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && ends(text.bytes().next())
        && ends(text.bytes().last())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// Splits at commas that no backslash protects. `None` if a backslash protects nothing.
fn terms(text: &str) -> Option<Vec<&str>> {
    let (mut terms, mut from) = (Vec::new(), 0);
    let mut letters = text.char_indices();
    while let Some((at, c)) = letters.next() {
        match c {
            ',' => {
                terms.push(&text[from..at]);
                from = at + 1;
            }
            '\\' => {
                letters.next().filter(|(_, protected)| matches!(protected, ',' | '=' | '\\'))?;
            }
            _ => {}
        }
    }
    terms.push(&text[from..]);
    Some(terms)
}

fn is_field_term(term: &str) -> bool {
    let Some(at) = term.find(['!', '=']) else { return false };
    let (path, rest) = term.split_at(at);
    let value = ["!=", "==", "="].iter().find_map(|op| rest.strip_prefix(op));
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'/');
    path.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && path.bytes().all(letter)
        && !path.contains("..")
        && value.is_some_and(is_field_value)
}

/// Without an equals sign that no backslash protects, and without what means something in an address.
fn is_field_value(value: &str) -> bool {
    let mut letters = value.bytes();
    while let Some(letter) = letters.next() {
        match letter {
            b'\\' => drop(letters.next()),
            b'=' | b'&' | b'?' | b'#' | b'%' => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever passes as a selector cannot begin another parameter.
        #[test]
        fn a_selector_is_one_parameter(text in "\\PC{0,40}|[-a-z0-9=!,&()/\\\\ ]{0,40}") {
            if is_label_selector(&text) || is_field_selector(&text) {
                prop_assert!(!text.contains(['&', '?', '#', '%', '\n']), "{text}");
            }
        }
    }

    #[test]
    fn label_selectors_are_understood_whole() {
        for good in [
            "app=web",
            "app==web,tier!=db",
            "a in (b,c)",
            "app in (a, b,c),!canary",
            "a in(b)",
            "a notin (b, c),d",
            "env notin (prod),example.com/role",
            "x.y/z=1",
            "a=",
            "a=,b=x_1.y-z",
            "  app = web , b ",
            "cores>4",
            "cores > 4,disk<100",
            "app in ()",
            "!a",
        ] {
            assert!(is_label_selector(good), "{good}");
        }
        for bad in [
            "",
            ",",
            "app=web,",
            "=web",
            "app=-x",
            "app in a,b",
            "app in (a",
            "a b",
            "app=web&limit=1",
            "app=web\n",
            "-a=b",
            "EXAMPLE.com/x=y",
            "cores>x",
            "cores>",
            "a=b=c",
            &format!("a={}", "x".repeat(64)),
            &"a,".repeat(600),
            &"a=b,".repeat(300),
        ] {
            assert!(!is_label_selector(bad), "{bad}");
        }
    }

    #[test]
    fn field_selectors_are_understood_whole() {
        for good in [
            "status.phase=Running",
            "metadata.name!=a,spec.nodeName==n-1",
            "involvedObject.uid=a-b",
            "involvedObject.fieldPath=spec.containers{web}",
            "type=kubernetes.io/tls",
            "metadata.name=system:node",
            r"reason=a\,b\=c",
            r"reason=a\\",
            "reason=Back off",
            "type=",
        ] {
            assert!(is_field_selector(good), "{good}");
        }
        for bad in [
            "",
            "status.phase",
            "=x",
            "a=b,",
            "a=b=c",
            "a=b!=c",
            "a!b",
            r"a=b\x",
            r"a=b\\=c",
            r"a\=b",
            "a..b=c",
            "a=b\n",
            "a = b",
            ".a=b",
            "a%2f=b",
            "a=b&limit=1",
            "a=b%26",
        ] {
            assert!(!is_field_selector(bad), "{bad}");
        }
    }
}
