//! The `tree` and `depth` of a read: which properties are written.
//!
//! With `tree` only what is named is written, and of a list only the range behind it: `jobs[name,builds[number]{0,5}]`.
//! Without it each property has a visibility: the deeper an object lies the more visible a property must be, and
//! `depth` lifts the ground. Either way an object says its class.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A parsed `tree`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    children: BTreeMap<String, Tree>,
    from: usize,
    to: Option<usize>,
}

/// What decides about the properties of one object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pruner<'t> {
    Depth(i64),
    Tree(&'t Tree),
}

impl Tree {
    /// Reads a tree, or says where it goes wrong.
    pub(super) fn parse(text: &str) -> Result<Tree, String> {
        let mut reader = TreeReader { rest: text };
        let mut root = Tree::default();
        reader.children(&mut root, 0)?;
        if reader.rest.is_empty() { Ok(root) } else { Err(format!("unexpected token at `{}`", reader.rest)) }
    }
}

/// How deep a tree may be nested.
const DEEPEST: usize = 64;

struct TreeReader<'a> {
    rest: &'a str,
}

impl TreeReader<'_> {
    fn children(&mut self, into: &mut Tree, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err("nested too deeply".to_owned());
        }
        loop {
            let end = self.rest.find([',', '[', ']', '{', '}']).unwrap_or(self.rest.len());
            let name = self.rest[..end].trim();
            if name.is_empty() {
                return Err(format!("expected a name at `{}`", self.rest));
            }
            let mut child = Tree::default();
            let name = name.to_owned();
            self.rest = &self.rest[end..];
            if self.takes('[') {
                self.children(&mut child, depth + 1)?;
                if !self.takes(']') {
                    return Err(format!("expected ']' at `{}`", self.rest));
                }
            }
            if self.takes('{') {
                (child.from, child.to) = self.range()?;
            }
            into.children.insert(name, child);
            if !self.takes(',') {
                return Ok(());
            }
        }
    }

    /// `{a,b}`, `{a,}`, `{,b}` or `{a}`, the brace already read.
    fn range(&mut self) -> Result<(usize, Option<usize>), String> {
        let (inside, rest) = self.rest.split_once('}').ok_or_else(|| "expected '}' at the end".to_owned())?;
        self.rest = rest;
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| format!("not a number: `{text}`"));
        match inside.split_once(',') {
            None => number(inside).map(|only| (only, Some(only + 1))),
            Some((from, to)) => {
                let from = if from.trim().is_empty() { 0 } else { number(from)? };
                let to = if to.trim().is_empty() { None } else { Some(number(to)?) };
                Ok((from, to))
            }
        }
    }

    fn takes(&mut self, mark: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(mark);
        if let Some(rest) = rest {
            self.rest = rest;
        }
        rest.is_some()
    }
}

impl<'t> Pruner<'t> {
    /// What decides inside a property; none if it is not written.
    pub(super) fn accept(self, name: &str, visibility: i64) -> Option<Pruner<'t>> {
        match self {
            Pruner::Depth(ground) => (visibility >= ground).then_some(Pruner::Depth(ground + 1)),
            Pruner::Tree(tree) => tree.children.get(name).or_else(|| tree.children.get("*")).map(Pruner::Tree),
        }
    }

    /// A list with only the asked range made.
    pub(super) fn list<T>(self, items: impl Iterator<Item = T>, make: impl FnMut(T) -> Value) -> Value {
        match self {
            Pruner::Depth(_) => Value::Array(items.map(make).collect()),
            Pruner::Tree(tree) => {
                let count = tree.to.map_or(usize::MAX, |to| to.saturating_sub(tree.from));
                Value::Array(items.skip(tree.from).take(count).map(make).collect())
            }
        }
    }

    /// A finished value, cut down to what is named.
    pub(super) fn cut(self, value: Value) -> Value {
        let Pruner::Tree(tree) = self else { return value };
        match value {
            Value::Array(items) => self.list(items.into_iter(), |item| self.cut_item(item)),
            Value::Object(fields) => Value::Object(cut_fields(tree, fields)),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
        }
    }

    /// An element of a list: the range belongs to the list and not to a list in it.
    fn cut_item(self, value: Value) -> Value {
        match (self, value) {
            (Pruner::Tree(tree), Value::Object(fields)) => Value::Object(cut_fields(tree, fields)),
            (_, value) => value,
        }
    }
}

fn cut_fields(tree: &Tree, fields: Map<String, Value>) -> Map<String, Value> {
    let pruner = Pruner::Tree(tree);
    let kept = fields.into_iter().filter_map(|(name, value)| {
        if name == "_class" {
            return Some((name, value));
        }
        pruner.accept(&name, 0).map(|inside| (name, inside.cut(value)))
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cut(tree: &str, value: Value) -> Value {
        Pruner::Tree(&Tree::parse(tree).unwrap()).cut(value)
    }

    #[test]
    fn only_what_is_named_is_written_with_its_class() {
        let value = json!({ "_class": "A", "a": 1, "b": [{ "_class": "B", "c": 2, "d": 3 }], "e": {} });
        assert_eq!(cut("a,b[c]", value.clone()), json!({ "_class": "A", "a": 1, "b": [{ "_class": "B", "c": 2 }] }));
        assert_eq!(cut("b", value.clone()), json!({ "_class": "A", "b": [{ "_class": "B" }] }));
        assert_eq!(cut("*[d]", value), json!({ "_class": "A", "a": 1, "b": [{ "_class": "B", "d": 3 }], "e": {} }));
    }

    #[test]
    fn a_range_has_a_beginning_an_end_both_or_is_one() {
        let value = || json!({ "n": [0, 1, 2, 3, 4] });
        assert_eq!(cut("n{1,3}", value()), json!({ "n": [1, 2] }));
        assert_eq!(cut("n{3,}", value()), json!({ "n": [3, 4] }));
        assert_eq!(cut("n{,2}", value()), json!({ "n": [0, 1] }));
        assert_eq!(cut("n{2}", value()), json!({ "n": [2] }));
        assert_eq!(cut("n{7,9}", value()), json!({ "n": [] }));
    }

    #[test]
    fn a_broken_tree_is_refused() {
        for broken in ["a[", "a[b", "a]", "a,,b", "[a]", "a{1", "a{x}", "", "a[]"] {
            assert!(Tree::parse(broken).is_err(), "{broken}");
        }
        assert!(Tree::parse(&"a[".repeat(1_000)).is_err());
    }
}
