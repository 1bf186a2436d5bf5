//! Objects: what an object is decides what of it is masked, wherever it turns up.

use super::{MaskDetail, Masker};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use redact::looks::{self, SettingPlace};
use serde_json::{Map, Value};

/// kubectl's copy of what was applied: the whole object once more, as text.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Text longer than this is not read as JSON; if it may hold a Secret it is masked whole.
const EMBEDDED_MAX: usize = 1024 * 1024;

/// Masks any value.
pub(super) fn value(masker: &Masker, value: &mut Value, detail: MaskDetail) {
    match value {
        Value::Object(map) => object(masker, map, detail),
        Value::Array(items) => items.iter_mut().for_each(|item| self::value(masker, item, detail)),
        Value::String(text) => string(masker, text, detail),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text as it is masked wherever its place says nothing.
pub(super) fn text(masker: &Masker, text: &str) -> String {
    let mut text = text.to_owned();
    string(masker, &mut text, MaskDetail::Full);
    text
}

/// Masks every string there is.
pub(super) fn contents(masker: &Masker, value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| contents(masker, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| contents(masker, item)),
        Value::String(text) => *text = masker.mark_encoded(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks what stands under a name that says that it is secret, however deep, unless its own name only says where one is.
pub(super) fn settings(masker: &Masker, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if looks::is_secret_name(key) { beneath(masker, value) } else { settings(masker, value) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| settings(masker, item)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn beneath(masker: &Masker, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let named = map.iter_mut().filter(|(key, _)| !looks::is_pointer_name(key));
            named.for_each(|(_, value)| beneath(masker, value));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| beneath(masker, item)),
        Value::String(text) => hide(masker, text),
        Value::Number(number) => *value = Value::String(masker.mark(number.to_string().as_bytes())),
        Value::Null | Value::Bool(_) => {}
    }
}

fn object(masker: &Masker, map: &mut Map<String, Value>, detail: MaskDetail) {
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    // What is a mark by then is read again below, and stays what it is.
    if masker.is_secret_kind(&kind) || (kind.is_empty() && looks_like_secret(map)) {
        hide_data(masker, map);
    }
    // The items of a typed list do not repeat their kind.
    let of_secrets = kind.strip_suffix("List").is_some_and(|stem| masker.is_secret_kind(stem));
    if of_secrets {
        for item in map.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(item) = item {
                hide_data(masker, item);
            }
        }
    }
    if kind == "ConfigMap" {
        hide_config(masker, map);
    }
    if let Some(Value::Object(annotations)) = map.get_mut("annotations") {
        last_applied(masker, annotations, detail);
    }
    named_value(masker, map);
    for (key, value) in map.iter_mut() {
        match value {
            Value::String(text) if looks::is_secret_field(key, text) => hide(masker, text),
            Value::Array(items) if matches!(key.as_str(), "args" | "command") => argv(masker, items, detail),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(_) | Value::Array(_) | Value::Object(_) => self::value(masker, value, detail),
        }
    }
}

/// A Secret that lost its kind on the way, such as an item of a list or a part of a stored revision.
fn looks_like_secret(map: &Map<String, Value>) -> bool {
    let kind_of = |t: &str| {
        t == "Opaque"
            || t.starts_with("kubernetes.io/")
            || t.starts_with("helm.sh/release")
            || t.starts_with("bootstrap.kubernetes.io/")
    };
    map.contains_key("stringData")
        || (map.get("data").is_some_and(Value::is_object)
            && map.get("type").and_then(Value::as_str).is_some_and(kind_of))
}

fn hide_data(masker: &Masker, map: &mut Map<String, Value>) {
    for (key, encoded) in [("data", true), ("stringData", false)] {
        match map.get_mut(key) {
            Some(Value::Object(data)) => {
                for value in data.values_mut() {
                    *value = Value::String(match &*value {
                        Value::String(text) if looks::is_mark(text) => text.clone(),
                        Value::String(text) if encoded => masker.mark_encoded(text),
                        Value::String(text) => masker.mark(text.as_bytes()),
                        // In a patch it takes the key away.
                        Value::Null => continue,
                        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                            masker.mark(other.to_string().as_bytes())
                        }
                    });
                }
            }
            Some(Value::Null) | None => {}
            Some(Value::String(text)) => hide(masker, text),
            Some(other) => *other = Value::String(masker.mark(other.to_string().as_bytes())),
        }
    }
    if let Some(annotations) =
        map.get_mut("metadata").and_then(|meta| meta.get_mut("annotations")).and_then(Value::as_object_mut)
    {
        annotations.remove(LAST_APPLIED);
    }
}

/// A ConfigMap is meant to be read; keys that look secret are not, nor is a helm release kept in one. What is binary is
/// looked at decoded, and masked if it is no text: then nobody can judge it.
fn hide_config(masker: &Masker, map: &mut Map<String, Value>) {
    let of_helm = map.get("metadata").is_some_and(|meta| meta["labels"]["owner"] == "helm");
    for (key, value) in map.get_mut("data").and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::String(text) = value
            && (looks::is_secret_setting(key, text, SettingPlace::Setting) || (of_helm && key == "release"))
        {
            hide(masker, text);
        }
    }
    for (key, value) in map.get_mut("binaryData").and_then(Value::as_object_mut).into_iter().flatten() {
        let Value::String(text) = value else { continue };
        let bytes = STANDARD.decode(text.trim()).ok();
        let plain = bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let secret = plain.is_none_or(|plain| {
            looks::is_secret_setting(key, plain, SettingPlace::Setting)
                || looks::holds_secret(plain.as_bytes())
                || looks::holds_secret_manifest(plain)
        });
        if secret && !text.is_empty() && !looks::is_mark(text) {
            *text = masker.mark_encoded(text);
        }
    }
}

fn last_applied(masker: &Masker, annotations: &mut Map<String, Value>, detail: MaskDetail) {
    let Some(applied) = annotations.get_mut(LAST_APPLIED) else { return };
    let read = applied.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match (detail, read) {
        (MaskDetail::Clean, _) | (_, None) => {
            annotations.remove(LAST_APPLIED);
        }
        (MaskDetail::Full, Some(copy)) if is_secret_within(masker, &copy) => {
            annotations.remove(LAST_APPLIED);
        }
        (MaskDetail::Full, Some(mut copy)) => {
            value(masker, &mut copy, detail);
            *applied = Value::String(copy.to_string());
        }
    }
}

fn is_secret_within(masker: &Masker, value: &Value) -> bool {
    value["kind"].as_str().is_some_and(|kind| masker.is_secret_kind(kind))
}

/// `{name, value}`: an environment variable or a header whose name says that the value is secret.
fn named_value(masker: &Masker, map: &mut Map<String, Value>) {
    let Some(name) = map.get("name").and_then(Value::as_str).map(str::to_owned) else { return };
    if let Some(Value::String(text)) = map.get_mut("value")
        && looks::is_secret_setting(&name, text, SettingPlace::Setting)
    {
        hide(masker, text);
    }
}

/// Arguments: `--password=x`, and the element after `--password`.
fn argv(masker: &Masker, items: &mut [Value], detail: MaskDetail) {
    let mut flag: Option<String> = None;
    for item in items {
        let before = flag.take();
        let Value::String(text) = item else {
            value(masker, item, detail);
            continue;
        };
        let named = |name: String| looks::is_secret_setting(&name, text, SettingPlace::Setting);
        if !text.starts_with('-') && before.is_some_and(named) {
            hide(masker, text);
            continue;
        }
        let name = text.trim_start_matches('-');
        flag = (text.starts_with('-') && !text.contains('=')).then(|| name.to_owned());
        string(masker, text, detail);
    }
}

/// A string may be a text, or a whole object once more.
fn string(masker: &Masker, text: &mut String, detail: MaskDetail) {
    let trimmed = text.trim_start();
    let embedded = trimmed.starts_with('{') || trimmed.starts_with('[');
    if text.len() > EMBEDDED_MAX && embedded {
        hide(masker, text);
        return;
    }
    if embedded && let Ok(mut inner) = serde_json::from_str::<Value>(text) {
        let before = inner.clone();
        value(masker, &mut inner, detail);
        if inner != before {
            *text = inner.to_string();
        }
        return;
    }
    if looks::holds_secret_manifest(text) {
        hide(masker, text);
        return;
    }
    let masked = masker.text(text);
    if masked != *text {
        *text = masked;
    }
}

fn hide(masker: &Masker, text: &mut String) {
    // A mark stands for itself; an empty value is no secret, and `$(VAR)` is only a reference.
    if text.is_empty() || looks::is_mark(text) || (text.starts_with("$(") && text.ends_with(')')) {
        return;
    }
    *text = masker.mark(text.as_bytes());
}
