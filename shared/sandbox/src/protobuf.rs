//! Bodies in protobuf, as far as helm sends them: Go's typed client writes nothing else for the built-in kinds.
//!
//! Only what helm's own records are made of is understood: Secrets, Namespaces, and how something is deleted. Answers are
//! JSON, which that client takes as well.

use crate::status::ApiStatus;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// What every such body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The same body as JSON.
pub(crate) fn as_json(body: &[u8]) -> Result<Vec<u8>, ApiStatus> {
    let object = body.strip_prefix(MAGIC).and_then(unknown);
    object.map(|object| object.to_string().into_bytes()).ok_or_else(|| {
        ApiStatus::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json",
        )
    })
}

/// The envelope: what it is, and its bytes.
fn unknown(bytes: &[u8]) -> Option<Value> {
    let fields = fields(bytes)?;
    let kind = message(&fields, 1)?;
    let (api_version, kind) = (text(&kind, 1)?, text(&kind, 2)?);
    let raw = message(&fields, 2).unwrap_or_default();
    let mut object = match (api_version.as_str(), kind.as_str()) {
        ("v1", "Secret") => secret(&raw)?,
        ("v1", "Namespace") => json!({ "metadata": metadata(&raw)? }),
        (_, "DeleteOptions") => delete_options(&raw)?,
        (_, _) => return None,
    };
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    Some(object)
}

fn secret(fields: &[ProtobufField<'_>]) -> Option<Value> {
    let mut object = json!({ "metadata": metadata(fields)? });
    let encoded = |bytes: &[u8]| Some(json!(STANDARD.encode(bytes)));
    let plain = |bytes: &[u8]| Some(json!(std::str::from_utf8(bytes).ok()?));
    for (number, key, value) in
        [(2, "data", &encoded as &dyn Fn(&[u8]) -> Option<Value>), (4, "stringData", &plain as _)]
    {
        let entries = map(fields, number, value)?;
        if !entries.is_empty() {
            object[key] = Value::Object(entries);
        }
    }
    if let Some(kind) = text(fields, 3) {
        object["type"] = json!(kind);
    }
    Some(object)
}

fn metadata(fields: &[ProtobufField<'_>]) -> Option<Value> {
    let meta = message(fields, 1)?;
    let mut object = Map::new();
    for (number, key) in [(1, "name"), (2, "generateName"), (3, "namespace"), (5, "uid"), (6, "resourceVersion")] {
        if let Some(value) = text(&meta, number).filter(|value| !value.is_empty()) {
            object.insert(key.to_owned(), json!(value));
        }
    }
    for (number, key) in [(11, "labels"), (12, "annotations")] {
        let entries = map(&meta, number, &|bytes| Some(json!(std::str::from_utf8(bytes).ok()?)))?;
        if !entries.is_empty() {
            object.insert(key.to_owned(), Value::Object(entries));
        }
    }
    Some(Value::Object(object))
}

fn delete_options(fields: &[ProtobufField<'_>]) -> Option<Value> {
    let mut object = json!({});
    for field in fields {
        match (field.number, &field.value) {
            (1, WireValue::Number(seconds)) => object["gracePeriodSeconds"] = json!(seconds),
            (2, WireValue::Bytes(_)) => {
                let wanted = message(fields, 2)?;
                for (number, key) in [(1, "uid"), (2, "resourceVersion")] {
                    if let Some(value) = text(&wanted, number) {
                        object["preconditions"][key] = json!(value);
                    }
                }
            }
            (4, WireValue::Bytes(policy)) => object["propagationPolicy"] = json!(std::str::from_utf8(policy).ok()?),
            (5, WireValue::Bytes(_)) => object["dryRun"] = json!(["All"]),
            (_, WireValue::Number(_) | WireValue::Bytes(_)) => {}
        }
    }
    Some(object)
}

/// One field of a message.
struct ProtobufField<'a> {
    number: u64,
    value: WireValue<'a>,
}

enum WireValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn fields(mut bytes: &[u8]) -> Option<Vec<ProtobufField<'_>>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => WireValue::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                WireValue::Bytes(value)
            }
            _ => return None,
        };
        fields.push(ProtobufField { number: key >> 3, value });
    }
    Some(fields)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn bytes_of<'a>(fields: &[ProtobufField<'a>], number: u64) -> Option<&'a [u8]> {
    fields.iter().rev().find_map(|field| match field.value {
        WireValue::Bytes(bytes) if field.number == number => Some(bytes),
        WireValue::Bytes(_) | WireValue::Number(_) => None,
    })
}

fn message<'a>(fields: &[ProtobufField<'a>], number: u64) -> Option<Vec<ProtobufField<'a>>> {
    self::fields(bytes_of(fields, number)?)
}

fn text(fields: &[ProtobufField<'_>], number: u64) -> Option<String> {
    String::from_utf8(bytes_of(fields, number)?.to_vec()).ok()
}

/// A map is a list of messages, each with a key and a value.
fn map(all: &[ProtobufField<'_>], number: u64, value: &dyn Fn(&[u8]) -> Option<Value>) -> Option<Map<String, Value>> {
    let mut entries = Map::new();
    for field in all {
        let WireValue::Bytes(bytes) = field.value else { continue };
        if field.number == number {
            let entry = fields(bytes)?;
            entries.insert(text(&entry, 1)?, value(bytes_of(&entry, 2).unwrap_or_default())?);
        }
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()][..], bytes].concat()
    }

    #[test]
    fn a_secret_is_read_as_go_writes_it() {
        let label = [field(1, b"owner"), field(2, b"helm")].concat();
        let meta = [field(1, b"sh.helm.release.v1.a.v1"), field(11, &label)].concat();
        let data = [field(1, b"release"), field(2, b"\xff\x00")].concat();
        let raw = [field(1, &meta), field(2, &data), field(3, b"helm.sh/release.v1")].concat();
        let kind = [field(1, b"v1"), field(2, b"Secret")].concat();
        let body = [MAGIC, &field(1, &kind), &field(2, &raw)].concat();
        let read: Value = serde_json::from_slice(&as_json(&body).unwrap()).unwrap();
        assert_eq!(
            read,
            json!({ "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "data": { "release": "/wA=" },
                    "metadata": { "name": "sh.helm.release.v1.a.v1", "labels": { "owner": "helm" } } })
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let kind = [field(1, b"v1"), field(2, b"Pod")].concat();
        for body in [&b"{}"[..], MAGIC, &[MAGIC, &field(1, &kind), &field(2, b"")].concat(), b"k8s\0\xff\xff\xff"] {
            assert!(as_json(body).is_err(), "{body:?}");
        }
    }
}
