//! Writing JSON into bytes without building it first: keys keep their order and ready-made parts are spliced in.
//!
//! Not here: reading (see [`domain::json`]).

use serde_json::Value;

/// Appends a text as a JSON string, escaped byte for byte as `serde_json` does it.
pub(crate) fn push_quoted(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let letter = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            0..=0x1f => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[copied..at]);
        out.extend_from_slice(&[b'\\', letter]);
        if letter == b'u' {
            out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        copied = at + 1;
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}

/// An object being written. Keys are ours and need no escaping.
pub(crate) struct ObjectWriter {
    out: Vec<u8>,
}

impl ObjectWriter {
    pub(crate) fn with_capacity(bytes: usize) -> ObjectWriter {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        ObjectWriter { out }
    }

    pub(crate) fn new() -> ObjectWriter {
        ObjectWriter::with_capacity(128)
    }

    /// A member whose value `write` appends.
    pub(crate) fn put(mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) -> ObjectWriter {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        write(&mut self.out);
        self
    }

    /// A member whose value is JSON already.
    pub(crate) fn raw(self, key: &str, json: impl AsRef<[u8]>) -> ObjectWriter {
        self.put(key, |out| out.extend_from_slice(json.as_ref()))
    }

    pub(crate) fn text(self, key: &str, text: &str) -> ObjectWriter {
        self.put(key, |out| push_quoted(out, text))
    }

    pub(crate) fn texts(self, key: &str, texts: &[impl AsRef<str>]) -> ObjectWriter {
        self.put(key, |out| push_list(out, texts, |out, text| push_quoted(out, text.as_ref())))
    }

    pub(crate) fn value(self, key: &str, value: &Value) -> ObjectWriter {
        self.raw(key, value.to_string())
    }

    /// The same object with more members, if there is something to add.
    pub(crate) fn maybe<T>(self, given: Option<T>, add: impl FnOnce(ObjectWriter, T) -> ObjectWriter) -> ObjectWriter {
        match given {
            Some(given) => add(self, given),
            None => self,
        }
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

/// Appends an array.
pub(crate) fn push_list<T>(out: &mut Vec<u8>, items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quoted(text: &str) -> String {
        let mut out = Vec::new();
        push_quoted(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_control_character_is_escaped_as_serde_does_it() {
        for byte in 0..=0x7f_u8 {
            let text = format!("a{}z", char::from(byte));
            assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_escaped_as_serde_does_it(text in any::<String>()) {
            prop_assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn an_object_keeps_the_order_of_its_members() {
        let object = ObjectWriter::new().text("z", "\"").raw("a", "1").texts("l", &["x", "y"]).put("e", |out| {
            out.extend_from_slice(&ObjectWriter::new().end());
        });
        assert_eq!(String::from_utf8(object.end()).unwrap(), r#"{"z":"\"","a":1,"l":["x","y"],"e":{}}"#);
    }
}
