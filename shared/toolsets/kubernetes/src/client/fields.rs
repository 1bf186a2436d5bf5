//! Which fields of an answer are read. The rest is skipped while it is parsed: never copied, never masked, never kept.
//!
//! What is read is masked like everything else. A field whose masking depends on its neighbours (`value` beside `name`,
//! `data` beside `kind`) must be read together with them: then masking what was read hides what masking the whole would
//! have hidden.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Names of fields, and of fields within them. One without further names is read whole; lists are looked through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldTree(Vec<(&'static str, FieldTree)>);

impl FieldTree {
    /// The fields at these places, each written `spec.containers.name`, of every object of a list; and what belongs to
    /// the list itself.
    pub fn of_list(places: impl IntoIterator<Item = &'static str>) -> FieldTree {
        let mut object = FieldTree::default();
        // An object says what it is, and masking goes by that.
        for place in ["kind", "apiVersion"].into_iter().chain(places) {
            object.add(place);
        }
        let whole = FieldTree::default;
        FieldTree(vec![("kind", whole()), ("apiVersion", whole()), ("metadata", whole()), ("items", object)])
    }

    /// What of some JSON is to be read.
    pub fn read(&self, json: &[u8]) -> Result<Value, serde_json::Error> {
        let mut parser = serde_json::Deserializer::from_slice(json);
        let value = self.deserialize(&mut parser)?;
        parser.end()?;
        Ok(value)
    }

    /// The names at the top, and what is read beneath each.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = (&'static str, &FieldTree)> {
        self.0.iter().map(|(name, beneath)| (*name, beneath))
    }

    fn add(&mut self, place: &'static str) {
        let (name, rest) = place.split_once('.').map_or((place, None), |(name, rest)| (name, Some(rest)));
        let at = self.0.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.0.push((name, FieldTree::default()));
            self.0.len() - 1
        });
        if let Some(rest) = rest {
            self.0[at].1.add(rest);
        }
    }
}

impl<'de> DeserializeSeed<'de> for &FieldTree {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Value, D::Error> {
        if self.0.is_empty() { serde::Deserialize::deserialize(parser) } else { parser.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for &FieldTree {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(known) = fields.next_key_seed(FieldName(self))? {
            match known {
                Some((name, beneath)) => {
                    read.insert((*name).to_owned(), fields.next_value_seed(beneath)?);
                }
                None => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(read))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    // What is no object where one was expected is kept as it is, as it would be without this tree.
    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

/// A name, looked up in the tree without being copied.
struct FieldName<'t>(&'t FieldTree);

impl<'de, 't> DeserializeSeed<'de> for FieldName<'t> {
    type Value = Option<&'t (&'static str, FieldTree)>;

    fn deserialize<D: Deserializer<'de>>(self, parser: D) -> Result<Self::Value, D::Error> {
        parser.deserialize_identifier(self)
    }
}

impl<'t> Visitor<'_> for FieldName<'t> {
    type Value = Option<&'t (&'static str, FieldTree)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.0.iter().find(|(known, _)| *known == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(places: &[&'static str], json: &Value) -> Value {
        FieldTree::of_list(places.iter().copied()).read(json.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn only_what_is_named_is_read_and_lists_keep_their_length() {
        let list = json!({
            "kind": "PodList", "metadata": { "continue": "on" }, "extra": { "items": 1 },
            "items": [
                { "metadata": { "name": "a", "managedFields": [{}] }, "spec": { "containers": [{ "name": "x", "env": [] }, { "env": [] }] } },
                { "metadata": { "name": "b" }, "status": { "conditions": [[1], { "type": "Ready" }] } },
            ],
        });
        let places = ["metadata.name", "spec.containers.name", "status.conditions"];
        let wanted = json!({
            "kind": "PodList", "metadata": { "continue": "on" },
            "items": [
                { "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "x" }, {}] } },
                { "metadata": { "name": "b" }, "status": { "conditions": [[1], { "type": "Ready" }] } },
            ],
        });
        assert_eq!(read(&places, &list), wanted);
    }

    #[test]
    fn what_is_no_object_stays_what_it_is() {
        for odd in [json!(null), json!(true), json!(-1), json!(1), json!(1.5), json!("x\ny"), json!([[], {}])] {
            let list = json!({ "items": [{ "spec": odd }] });
            assert_eq!(read(&["spec.nodeName"], &list), list);
        }
    }

    #[test]
    fn an_escaped_name_is_the_same_name_and_the_last_of_two_counts() {
        let tree = FieldTree::of_list(["a.b"]);
        let json = br#"{"items":[{"\u0061":{"b":1},"a":{"\u0062":2,"c":3}}]}"#;
        assert_eq!(tree.read(json).unwrap(), json!({ "items": [{ "a": { "b": 2 } }] }));
    }

    #[test]
    fn what_is_skipped_must_be_json_as_well() {
        let tree = FieldTree::of_list(["a"]);
        for bad in ["", "{", r#"{"items":[{"x":tru}]}"#, r#"{"items":[]} {}"#, r#"{"items":[],}"#] {
            assert!(tree.read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
