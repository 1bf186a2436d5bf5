//! The difference of two objects as people read it: unified, over a plain indented text. Answers hold as much of it as
//! fits; whoever decides reads all of it.
//!
//! The objects are cleaned and masked before; what may be said about secrets is said by whoever pairs them up
//! (`Cluster::compared`).

use super::clean;
use serde_json::Value;
use similar::TextDiff;
use std::fmt::Write as _;
use std::time::Duration;

/// The longest difference that is shown; what is left out is counted.
const MOST_BYTES: usize = 6 * 1024;
/// How long the search for the smallest difference may take; after that a larger one is shown.
const PATIENCE: Duration = Duration::from_millis(500);

/// The difference between what is and what would be, as much as fits. Nothing if they are the same.
pub fn unified(now: Option<&Value>, then: Option<&Value>) -> Option<String> {
    whole(now, then).map(|text| bounded(&text))
}

/// The whole difference between what is and what would be. Nothing if they are the same.
pub fn whole(now: Option<&Value>, then: Option<&Value>) -> Option<String> {
    let text = |object: Option<&Value>| {
        let mut object = object.cloned()?;
        clean::for_diff(&mut object);
        Some(plain(&object))
    };
    let (now, then) = (text(now).unwrap_or_default(), text(then).unwrap_or_default());
    if now == then {
        return None;
    }
    let mut config = TextDiff::configure();
    config.timeout(PATIENCE);
    let diff = config.diff_lines(&now, &then);
    Some(diff.unified_diff().context_radius(3).header("now", "then").to_string())
}

/// Whole lines up to the bound, and how many were left out.
fn bounded(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    for line in lines.by_ref() {
        // One line may itself be long: a certificate, a script in a ConfigMap.
        let cut: String = line.chars().take(400).collect();
        if out.len() + cut.len() > MOST_BYTES {
            writeln!(out, "… and {} more lines", lines.count() + 1).ok();
            return out;
        }
        out.push_str(&cut);
        out.push_str(if cut.len() < line.len() { "…\n" } else { "\n" });
    }
    out
}

/// An object as indented lines, one value each, keys in order.
pub fn plain(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, false, &mut out);
    out
}

fn write(value: &Value, depth: usize, in_list: bool, out: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (n, (key, value)) in fields.iter().enumerate() {
                // The first key of a list item stands behind its dash.
                let before = if in_list && n == 0 { "" } else { &indent };
                write!(out, "{before}{}:", scalar(&Value::from(key.as_str()))).ok();
                child(value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                write!(out, "{indent}- ").ok();
                match item {
                    Value::Object(fields) if !fields.is_empty() => write(item, depth + 1, true, out),
                    Value::Array(inner) if !inner.is_empty() => {
                        out.push('\n');
                        write(item, depth + 1, false, out);
                    }
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => {
                        writeln!(out, "{}", scalar(item)).unwrap_or_default();
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            writeln!(out, "{indent}{}", scalar(value)).unwrap_or_default();
        }
    }
}

fn child(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write(value, depth + 1, false, out);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write(value, depth, false, out);
        }
        Value::String(text) if text.contains('\n') => {
            out.push_str(" |\n");
            for line in text.lines() {
                writeln!(out, "{}{line}", "  ".repeat(depth + 1)).ok();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            writeln!(out, " {}", scalar(value)).unwrap_or_default();
        }
    }
}

/// Text without quotes where nobody could take it for something else.
fn scalar(value: &Value) -> String {
    let plain = |text: &str| {
        let safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b':' | b'@');
        text.bytes().all(safe)
            && text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'/')
            && !text.ends_with(':')
            && !matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off")
    };
    match value {
        Value::String(text) if plain(text) => text.clone(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_unified_and_blind_to_bookkeeping() {
        let now = json!({ "metadata": { "name": "web", "resourceVersion": "1", "annotations": { "quartermaster/run": "run_a" } }, "spec": { "replicas": 3, "image": "a:1" } });
        let then =
            json!({ "metadata": { "name": "web", "resourceVersion": "2" }, "spec": { "replicas": 5, "image": "a:1" } });
        insta::assert_snapshot!(unified(Some(&now), Some(&then)).unwrap(), @r"
        --- now
        +++ then
        @@ -2,4 +2,4 @@
           name: web
         spec:
           image: a:1
        -  replicas: 3
        +  replicas: 5
        ");
        assert_eq!(unified(Some(&now), Some(&now)), None);
        assert!(unified(None, Some(&then)).unwrap().contains("+  name: web\n"));
    }

    #[test]
    fn objects_read_like_yaml() {
        let object =
            json!({ "a": [{ "b": 1, "c": ["x", "yes"] }, []], "d": {}, "e": "1", "f": "two\nlines", "g": null });
        insta::assert_snapshot!(plain(&object), @r#"
        a:
        - b: 1
          c:
          - x
          - "yes"
        - []
        d: {}
        e: "1"
        f: |
          two
          lines
        g: null
        "#);
    }

    #[test]
    fn a_long_difference_is_cut_at_a_line_and_counted() {
        let then = json!({ "data": (0..2_000).map(|n| (format!("key{n:04}"), json!("v"))).collect::<serde_json::Map<_, _>>() });
        let text = unified(None, Some(&then)).unwrap();
        assert!(text.len() < MOST_BYTES + 100 && text.trim_end().ends_with("more lines"), "{}", text.len());
        let long = json!({ "data": "x".repeat(100_000) });
        assert!(unified(None, Some(&long)).unwrap().len() < 1_000);
    }
}
