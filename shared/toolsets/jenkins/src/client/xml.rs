//! Just enough XML to look into a job's configuration: elements, their class and their text.
//!
//! A document type would bring entities that grow, so a document that has one is not read. Depth and size are bounded.

use crate::client::html::unescape;

const DEEPEST: usize = 64;

/// One element.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::client) struct Element {
    pub(in crate::client) name: String,
    /// Its attribute `class`.
    pub(in crate::client) class: String,
    pub(in crate::client) text: String,
    pub(in crate::client) children: Vec<Element>,
}

impl Element {
    pub(in crate::client) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of a descendant, by the names on the way.
    pub(in crate::client) fn text_at(&self, way: &[&str]) -> Option<&str> {
        let found = way.iter().try_fold(self, |element, name| element.child(name))?;
        Some(found.text.trim()).filter(|text| !text.is_empty())
    }

    /// Every descendant of this name, and itself.
    pub(in crate::client) fn all<'a>(&'a self, name: &str, found: &mut Vec<&'a Element>) {
        if self.name == name {
            found.push(self);
        }
        self.children.iter().for_each(|child| child.all(name, found));
    }
}

/// Reads a document; `None` if it is not well-formed, or more than is wanted.
pub(in crate::client) fn read(text: &str) -> Option<Element> {
    let mut open: Vec<Element> = vec![Element::default()];
    let mut rest = text;
    loop {
        let Some(at) = rest.find('<') else {
            let mut top = open.pop().filter(|_| open.is_empty())?;
            return top.children.pop().filter(|_| top.children.is_empty());
        };
        let (before, tag) = rest.split_at(at);
        open.last_mut()?.text.push_str(&unescape(before));
        rest = if let Some(comment) = tag.strip_prefix("<!--") {
            comment.split_once("-->")?.1
        } else if let Some(data) = tag.strip_prefix("<![CDATA[") {
            let (data, after) = data.split_once("]]>")?;
            open.last_mut()?.text.push_str(data);
            after
        } else if tag.starts_with("<!") {
            return None;
        } else if let Some(instruction) = tag.strip_prefix("<?") {
            instruction.split_once("?>")?.1
        } else if let Some(end) = tag.strip_prefix("</") {
            let (name, after) = end.split_once('>')?;
            let closed = open.pop().filter(|element| element.name == name.trim())?;
            open.last_mut()?.children.push(closed);
            after
        } else {
            let (inside, after) = begin(tag)?;
            let (inside, empty) = inside.strip_suffix('/').map_or((inside, false), |inside| (inside, true));
            let name = inside.split_ascii_whitespace().next()?.to_owned();
            let element = Element { name, class: class(inside), ..Element::default() };
            if empty {
                open.last_mut()?.children.push(element);
            } else if open.len() > DEEPEST {
                return None;
            } else {
                open.push(element);
            }
            after
        };
    }
}

/// The inside of a tag, and what follows it. A bracket in quotes does not end it.
fn begin(tag: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if byte == open => quote = None,
            (None, b'>') => return Some((&tag[1..at], &tag[at + 1..])),
            (_, _) => {}
        }
    }
    None
}

fn class(inside: &str) -> String {
    let found = ["class=\"", "class='"].iter().find_map(|start| {
        let (_, value) = inside.split_once(&format!(" {start}"))?;
        value.split(['"', '\'']).next()
    });
    unescape(found.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_with_their_class_and_text() {
        let text = "<?xml version='1.1' encoding='UTF-8'?>\n<!-- x --><project><scm class=\"a.GitSCM\" plugin='git@5'>\
            <url>https://a?b=1&amp;c=2</url><empty/><d><![CDATA[<raw>]]></d></scm></project>\n";
        let root = read(text).unwrap();
        assert_eq!((root.name.as_str(), root.child("scm").unwrap().class.as_str()), ("project", "a.GitSCM"));
        assert_eq!(root.text_at(&["scm", "url"]), Some("https://a?b=1&c=2"));
        assert_eq!(root.text_at(&["scm", "d"]), Some("<raw>"));
        assert_eq!(root.text_at(&["scm", "empty"]), None);
        let mut urls = Vec::new();
        root.all("url", &mut urls);
        assert_eq!(urls.len(), 1);
    }

    #[test]
    fn what_is_broken_or_grows_is_not_read() {
        let deep = format!("{}{}", "<a>".repeat(100), "</a>".repeat(100));
        for bad in ["", "text", "<a>", "<a></b>", "</a>", "<a><b></a></b>", "<a/><b/>", &deep, "<a x=\">"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(read("<!DOCTYPE a [<!ENTITY x 'xxxx'>]><a>&x;</a>"), None);
    }
}
