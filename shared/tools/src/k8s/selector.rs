//! Label and field selectors, parsed whole before anything is sent.

use super::grammar::{checked_text, is_subdomain};

checked_text!(
    /// A label selector such as `app=web,tier in (a, b),!canary`.
    LabelSelector, labels, "a label selector is key=value, key!=value, key in (a,b), key notin (a,b), key or !key, joined by commas",
    { "type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[ -~]+$" }
);

checked_text!(
    /// A field selector such as `status.phase!=Running,spec.nodeName=n1`.
    FieldSelector, fields, "a field selector is path=value or path!=value, joined by commas",
    { "type": "string", "minLength": 1, "maxLength": 512, "pattern": "^[ -~]+$" }
);

fn labels(text: &str) -> bool {
    let mut rest = text;
    if !(1..=1_024).contains(&text.len()) || !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
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

fn fields(text: &str) -> bool {
    (1..=512).contains(&text.len())
        && text.bytes().all(|b| (b' '..=b'~').contains(&b))
        && terms(text).is_some_and(|terms| terms.iter().all(|term| is_field_term(term)))
}

/// Splits at commas that no backslash protects. `None` if a backslash protects nothing.
fn terms(text: &str) -> Option<Vec<String>> {
    let mut terms = vec![String::new()];
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        let last = terms.last_mut()?;
        match c {
            ',' => terms.push(String::new()),
            '\\' => {
                let protected = letters.next().filter(|p| matches!(p, ',' | '=' | '\\'))?;
                last.extend(['\\', protected]);
            }
            c => last.push(c),
        }
    }
    Some(terms)
}

fn is_field_term(term: &str) -> bool {
    let term = term.trim();
    let at = term.find("!=").or_else(|| term.find('='));
    let Some((path, value)) = at.and_then(|at| term.split_at_checked(at)) else { return false };
    let value = value.strip_prefix("!=").or_else(|| value.strip_prefix("==")).or_else(|| value.strip_prefix('='));
    let path = path.trim_end();
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'/');
    !path.is_empty()
        && path.bytes().next().is_some_and(|b| b.is_ascii_alphabetic())
        && path.bytes().all(letter)
        && !path.contains("..")
        && value.is_some_and(|value| !value.replace("\\=", "").contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_are_understood_whole() {
        for good in [
            "app=web",
            "app==web,tier!=db",
            "app in (a, b,c),!canary",
            "env notin (prod),example.com/role",
            "a=,b=x_1.y-z",
            "  app = web , b ",
            "cores>4",
            "app in ()",
        ] {
            assert!(labels(good), "{good}");
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
            "a=b=c",
            &format!("a={}", "x".repeat(64)),
            &"a,".repeat(600),
        ] {
            assert!(!labels(bad), "{bad}");
        }
    }

    #[test]
    fn field_selectors_are_understood_whole() {
        for good in ["status.phase=Running", "metadata.name!=a,spec.nodeName==n-1", r"reason=a\,b\=c", "type=", "a = b"]
        {
            assert!(fields(good), "{good}");
        }
        for bad in ["", "status.phase", "=x", "a=b,", "a=b=c", r"a=b\x", "a..b=c", "a=b\n", ".a=b", "a%2f=b"] {
            assert!(!fields(bad), "{bad}");
        }
    }
}
