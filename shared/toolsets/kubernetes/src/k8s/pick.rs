//! `path`: one field of an object, dotted, with `[n]` for lists and `['…']` for keys that hold dots.

use domain::Failure;
use domain::outcome::near;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::bounded_text;

const MOST_BYTES: usize = 256;
const MOST_STEPS: usize = 32;

/// Which field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Pick {
    text: String,
    steps: Vec<PathStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(String),
    At(usize),
}

impl Pick {
    /// As it was given.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it leads to the field with these keys, or to a part of it.
    pub(crate) fn begins_with(&self, keys: &[&str]) -> bool {
        let is = |(step, key): (&PathStep, &&str)| matches!(step, PathStep::Key(own) if own == key);
        self.steps.len() >= keys.len() && self.steps.iter().zip(keys).all(is)
    }

    /// The value there, if it is there.
    pub(crate) fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.steps.iter().try_fold(object, |at, step| match step {
            PathStep::Key(key) => at.get(key),
            PathStep::At(n) => at.get(n),
        })
    }

    /// The value there; otherwise the fields that are, nearest first.
    pub(crate) fn get<'a>(&self, object: &'a Value) -> Result<&'a Value, Failure> {
        let mut at = object;
        for step in &self.steps {
            let next = match step {
                PathStep::Key(key) => at.get(key),
                PathStep::At(n) => at.get(n),
            };
            at = match next {
                Some(next) => next,
                None => return Err(self.missing(step, at)),
            };
        }
        Ok(at)
    }

    fn missing(&self, step: &PathStep, at: &Value) -> Failure {
        let (what, known): (String, Vec<&str>) = match (step, at) {
            (PathStep::Key(key), Value::Object(fields)) => (key.clone(), fields.keys().map(String::as_str).collect()),
            (PathStep::Key(key), _) => (key.clone(), Vec::new()),
            (PathStep::At(n), _) => (format!("[{n}]"), Vec::new()),
        };
        let next = match (at, known.len()) {
            (Value::Array(items), _) => format!("there are {} items here; use [n] with n below that", items.len()),
            (Value::Object(_), 1..=20) => format!("fields here: {}", known.join(", ")),
            _ => "call again without path and look at the object".to_owned(),
        };
        Failure::new(crate::codes::UNKNOWN_FIELD, format!("{} is not in the object: there is no {what}", self.text))
            .next(next)
            .did_you_mean(near(&what, known))
    }
}

impl TryFrom<String> for Pick {
    type Error = String;

    fn try_from(text: String) -> Result<Pick, String> {
        let told = || "a path is dotted with [n] for list items and ['key'] for keys with dots".to_owned();
        if text.is_empty() || text.len() > MOST_BYTES {
            return Err(told());
        }
        let mut steps = Vec::new();
        // kubectl writes a leading dot; it means nothing here.
        let mut rest = text.strip_prefix('.').unwrap_or(&text);
        let mut first = true;
        while !rest.is_empty() || first {
            let (step, after) = step(rest, first).ok_or_else(told)?;
            steps.push(step);
            rest = after;
            first = false;
        }
        if steps.len() > MOST_STEPS {
            return Err(told());
        }
        Ok(Pick { text, steps })
    }
}

/// Takes one step off the front: `.key`, `key` at the beginning, `[n]` or `['key']`.
fn step(text: &str, first: bool) -> Option<(PathStep, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        if let Some(quote @ ('\'' | '"')) = rest.chars().next() {
            let (key, after) = rest[1..].split_once(quote)?;
            let fits = !key.is_empty() && !key.chars().any(char::is_control);
            return fits.then_some((PathStep::Key(key.to_owned()), after.strip_prefix(']')?));
        }
        let (digits, after) = rest.split_once(']')?;
        let fits = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        return Some((PathStep::At(digits.parse().ok().filter(|_| fits)?), after));
    }
    let body = if first { text } else { text.strip_prefix('.')? };
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/' | b'$' | b':');
    let end = body.bytes().position(|b| !letter(b)).unwrap_or(body.len());
    let (key, after) = body.split_at(end);
    (!key.is_empty()).then(|| (PathStep::Key(key.to_owned()), after))
}

bounded_text!(Pick, MOST_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pick(text: &str) -> Pick {
        Pick::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_path_leads_to_its_field() {
        let object =
            json!({ "spec": { "containers": [{ "image": "a:1" }] }, "metadata": { "annotations": { "x.y/z": "v" } } });
        for (path, value) in [
            ("spec.containers[0].image", json!("a:1")),
            (".spec.containers[0]['image']", json!("a:1")),
            ("metadata.annotations['x.y/z']", json!("v")),
            ("spec.containers", json!([{ "image": "a:1" }])),
        ] {
            assert_eq!(pick(path).get(&object).unwrap(), &value, "{path}");
        }
    }

    #[test]
    fn a_wrong_turn_names_what_is_there() {
        let object = json!({ "spec": { "replicas": 3, "items": [1] } });
        let failure = pick("spec.replica").get(&object).unwrap_err();
        assert_eq!((failure.code, failure.did_you_mean), (crate::codes::UNKNOWN_FIELD, vec!["replicas".to_owned()]));
        let failure = pick("spec.items[4]").get(&object).unwrap_err();
        assert_eq!(failure.next.as_deref(), Some("there are 1 items here; use [n] with n below that"));
        assert!(pick("spec.replicas.deeper").get(&object).is_err());
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for bad in [
            "",
            ".",
            "a..b",
            "a.",
            "[",
            "a[",
            "a[x]",
            "a[-1]",
            "a['x]",
            "a b",
            "a[1234567]",
            "a\n",
            "{.a}",
            "a[*]",
            &"a.".repeat(200),
        ] {
            assert!(Pick::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
