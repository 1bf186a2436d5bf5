//! JSON from outside: read strictly, and written in one canonical form for digests.
//!
//! `serde_json` keeps the last of two equal keys in silence, so two readers of the same bytes can see different
//! arguments. Everything that is judged or digested is therefore read by [`read`], which refuses duplicates.

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};
use std::fmt;

/// Why bytes were not taken as JSON.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Not JSON, too deep, a lone surrogate, or something after the end.
    #[error("not JSON")]
    Malformed(#[source] serde_json::Error),
    /// An object names the same key twice.
    #[error("an object names a key twice")]
    DuplicateKey(#[source] serde_json::Error),
}

const DUPLICATE: &str = "duplicate key";

/// Reads one JSON text: nothing after it, no key twice, at most 128 levels deep.
pub fn read(bytes: &[u8]) -> Result<Value, JsonError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = StrictJson.deserialize(&mut reader).map_err(|error| {
        // The only custom message our visitor raises; everything else is the parser's own.
        if error.to_string().starts_with(DUPLICATE) {
            JsonError::DuplicateKey(error)
        } else {
            JsonError::Malformed(error)
        }
    })?;
    reader.end().map_err(JsonError::Malformed)?;
    Ok(value)
}

struct StrictJson;

impl<'de> DeserializeSeed<'de> for StrictJson {
    type Value = Value;
    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJson {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Number(v.into()))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Number(v.into()))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Number::from_f64(v).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }
    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(StrictJson)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(StrictJson)?;
            if object.insert(key, value).is_some() {
                return Err(de::Error::custom(DUPLICATE));
            }
        }
        Ok(Value::Object(object))
    }
}

/// Brings arguments to the one form that is judged: a whole number written as `3.0` becomes `3`.
pub fn normalise(value: &mut Value) {
    const SAFE: f64 = 9_007_199_254_740_992.0; // 2^53: every whole float below it is exact
    match value {
        Value::Number(n) => {
            if let Some(f) = n.as_f64().filter(|f| n.is_f64() && f.fract() == 0.0 && f.abs() < SAFE) {
                #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
                let whole = f as i64;
                *value = Value::Number(whole.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(map) => map.values_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The canonical text: keys sorted, no blanks. Equal meaning, equal bytes, once [`normalise`]d.
pub fn canonical(value: &Value) -> String {
    // `serde_json` maps are sorted as long as `preserve_order` stays off, which the tests below hold.
    value.to_string()
}

/// SHA-256 in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        digits.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    // Digits of the alphabet only, so the fallback is never taken.
    String::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_is_not_one_plain_json_text_is_refused() {
        let deep = "[".repeat(10_000);
        for bad in ["", "{", "{} {}", "[1,]", "NaN", "\"\\ud800\"", "\u{feff}{}", deep.as_str(), "{'a':1}"] {
            assert!(matches!(read(bad.as_bytes()), Err(JsonError::Malformed(_))), "{bad:.20}");
        }
    }

    #[test]
    fn a_key_named_twice_is_refused_at_any_depth() {
        for bad in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"a":2}}]"#, r#"{"a":1,"\u0061":2}"#] {
            assert!(matches!(read(bad.as_bytes()), Err(JsonError::DuplicateKey(_))), "{bad}");
        }
        assert_eq!(read(br#"{"duplicate key":1}"#).unwrap(), json!({"duplicate key": 1}));
    }

    #[test]
    fn the_canonical_form_forgets_order_and_keeps_meaning() {
        let form = |text: &str| {
            let mut value = read(text.as_bytes()).unwrap();
            normalise(&mut value);
            canonical(&value)
        };
        assert_eq!(form(r#"{"b":1.0,"a":[2,{"d":3,"c":4}]}"#), r#"{"a":[2,{"c":4,"d":3}],"b":1}"#);
        assert_ne!(form(r#"{"a":"1"}"#), form(r#"{"a":1}"#));
        assert_ne!(form(r#"{"a":1.5}"#), form(r#"{"a":1}"#));
    }

    proptest! {
        #[test]
        fn reading_back_what_serde_wrote_gives_the_same(text in ".*", n in any::<i64>(), f in any::<f64>()) {
            let value = json!({ "text": text, "n": n, "list": [f, null, true] });
            prop_assert_eq!(read(value.to_string().as_bytes()).unwrap(), serde_json::from_str::<Value>(&value.to_string()).unwrap());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read(&bytes).ok();
        }
    }

    #[test]
    fn digests_are_plain_sha256() {
        assert_eq!(sha256_hex(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
