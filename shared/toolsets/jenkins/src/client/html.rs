//! The little that is read out of pages: the text of one field, and text without its tags.

/// The contents of the text area of this name.
pub(in crate::client) fn textarea(page: &str, name: &str) -> Option<String> {
    let mut rest = page;
    while let Some(at) = rest.find("<textarea") {
        let (tag, after) = rest[at..].split_once('>')?;
        if attribute(tag, "name") == Some(name) {
            let text = after.split("</textarea>").next()?;
            // The first line end belongs to the tag.
            let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
            return Some(unescape(text));
        }
        rest = after;
    }
    None
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    while let Some(at) = rest.find(name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let stands_alone = before.ends_with([' ', '\n', '\t']);
        if let (true, Some(value)) = (stands_alone, after.strip_prefix('=')) {
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            return value[1..].split(quote).next();
        }
        rest = after;
    }
    None
}

/// Text without its tags, characters as they are meant.
pub(in crate::client) fn text(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        // A sign that opens no tag is text.
        let is_tag = rest[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        if !is_tag {
            out.push('<');
            rest = &rest[at + 1..];
            continue;
        }
        let Some(end) = rest[at..].find('>') else {
            // No tag ends behind this one either; looking for that again and again would take for ever.
            rest = &rest[at..];
            break;
        };
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    unescape(&out)
}

/// Characters that were written by name or number.
pub(in crate::client) fn unescape(text: &str) -> String {
    /// The longest name or number that is understood, with its signs.
    const LONGEST: usize = 10;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let end = rest[at..].bytes().take(LONGEST).position(|b| b == b';');
        match end.and_then(|end| Some((end, character(&rest[at + 1..at + end])?))) {
            Some((end, c)) => {
                out.push(c);
                rest = &rest[at + end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_stands_in_its_text_area() {
        let page = r#"<form><textarea class='x' name="_.other">no</textarea>
            <textarea rows="3" name="_.mainScript" data-name="x">
echo &#39;a &lt; b&#39; &amp;&amp; true &unknown; &
</textarea></form>"#;
        assert_eq!(textarea(page, "_.mainScript").unwrap(), "echo 'a < b' && true &unknown; &\n");
        assert_eq!(textarea(page, "_.absent"), None);
        assert_eq!(textarea("<textarea name=\"_.mainScript\"", "_.mainScript"), None);
    }

    #[test]
    fn tags_go_and_text_stays() {
        assert_eq!(text("<span class=\"t\">12:00</span> 1 < 2 &amp; <b>done</b>"), "12:00 1 < 2 & done");
        assert_eq!(text("a <"), "a <");
        assert_eq!(text("a <b> <c &lt; <d"), "a  <c < <d");
    }

    /// Ends in no time, or not while anybody waits.
    #[test]
    fn tags_that_never_end_are_looked_at_once() {
        for piece in ["<a", "<"] {
            let page = format!("{}>", piece.repeat(4_000_000));
            assert!(text(&page).len() < page.len() + 1);
            assert_eq!(text(&page[..page.len() - 1]).len(), page.len() - 1);
        }
    }
}
