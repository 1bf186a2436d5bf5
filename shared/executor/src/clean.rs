//! The tenant's own secrets in what tools give back: gone, whoever put them there.
//!
//! A target that is handed a credential can hand it on: in an error, in a log, in a header it echoes. So every outcome
//! passes here before it is capped, kept, paged or shown. Tools mask what they know to be secret; this is for what
//! nobody expected, and it knows the values.

use crate::snapshot::SecretsNow;
use catalog::preview::hidden_characters;
use domain::{Content, Failure, Outcome, ToolOutput, WaitingRun};
use redact::Scrubber;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::sync::Arc;
use telemetry::{Step, names};

/// What comes of some work, without the secrets: those there were when it began, and those there are now.
pub(crate) async fn cleaned(secrets: &SecretsNow, work: impl Future<Output = Outcome>) -> Outcome {
    let before = secrets.now();
    let outcome = work.await;
    let step = Step::begin(names::SPAN_REDACT);
    let outcome = clean(outcome, &before);
    let now = secrets.now();
    let outcome = if Arc::ptr_eq(&before, &now) { outcome } else { clean(outcome, &now) };
    step.end(None);
    outcome
}

/// The outcome without the secrets.
fn clean(outcome: Outcome, secrets: &Scrubber) -> Outcome {
    if secrets.is_empty() {
        return outcome;
    }
    match outcome {
        Outcome::Done(output) => Outcome::Done(ToolOutput {
            structured: output.structured.map(|text| json(text, secrets)),
            content: output.content.into_iter().map(|block| content(block, secrets)).collect(),
            tainting: output.tainting,
        }),
        Outcome::Waiting(run) => Outcome::Waiting(WaitingRun { json: json(run.json, secrets), ..run }),
        Outcome::Failed(failure) => Outcome::Failed(failed(failure, secrets)),
    }
}

/// The failure without the secrets.
pub(crate) fn failed(failure: Failure, secrets: &Scrubber) -> Failure {
    Failure {
        message: text(failure.message, secrets),
        next: failure.next.map(|next| text(next, secrets)),
        details: failure.details.map(|details| value(details, secrets)),
        ..failure
    }
}

/// Arguments or a result as the audit log keeps them: without the tenant's secrets, and masked by looks, because whoever
/// reads the log decides nothing by it.
///
/// Nearly all of it holds nothing to hide and is kept to the letter; only what does is built anew.
pub(crate) fn audited(text: &str, secrets: &Scrubber) -> String {
    if nothing_to_hide(text, secrets) {
        return text.to_owned();
    }
    match serde_json::from_str::<Value>(text) {
        Ok(told) => masked(value(told, secrets)).to_string(),
        Err(_) => redact::redact(&secrets.scrub(text)),
    }
}

/// Whether a text is JSON that can be kept as it stands: no secret of the tenant is in it, and no string in it looks like
/// one. What is written with escapes is judged as it reads.
fn nothing_to_hide(text: &str, secrets: &Scrubber) -> bool {
    if secrets.scrub(text) != text {
        return false;
    }
    let mut json = serde_json::Deserializer::from_str(text);
    HarmlessJson(secrets).deserialize(&mut json).is_ok() && json.end().is_ok()
}

/// Reads a JSON value and keeps nothing of it; fails at the first string that is to be hidden.
#[derive(Clone, Copy)]
struct HarmlessJson<'a>(&'a Scrubber);

impl HarmlessJson<'_> {
    fn check<E: de::Error>(self, harmless: bool) -> Result<(), E> {
        if harmless { Ok(()) } else { Err(E::custom("something to hide")) }
    }
}

impl<'de> DeserializeSeed<'de> for HarmlessJson<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HarmlessJson<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON without anything to hide")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    // The digits of numbers stand in the text as they are, and were looked at there.
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    // Except for these, which can be written in several ways.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<(), E> {
        let digits = || serde_json::Number::from_f64(number).map(|number| number.to_string()).unwrap_or_default();
        self.check(self.0.is_empty() || self.0.scrub(&digits()) == digits())
    }

    fn visit_str<E: de::Error>(self, words: &str) -> Result<(), E> {
        self.check(self.0.scrub(words) == words && redact::looks::find(words).is_empty())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_key_seed(HarmlessKey(self.0))?.is_some() {
            fields.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// The same for the name of a field, which is no secret by its looks.
struct HarmlessKey<'a>(&'a Scrubber);

impl<'de> DeserializeSeed<'de> for HarmlessKey<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for HarmlessKey<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<(), E> {
        HarmlessJson(self.0).check(self.0.scrub(key) == key)
    }
}

fn masked(told: Value) -> Value {
    match told {
        Value::String(words) => Value::String(redact::redact(&words)),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Object(fields) => fields.into_iter().map(|(key, field)| (key, masked(field))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => told,
    }
}

/// What people are shown without the secrets, and what they are told about it: how much is hidden where.
pub(crate) struct ShownWithoutSecrets<'a> {
    secrets: &'a Scrubber,
    pub(crate) hidden: Vec<String>,
}

impl<'a> ShownWithoutSecrets<'a> {
    pub(crate) fn new(secrets: &'a Scrubber) -> ShownWithoutSecrets<'a> {
        ShownWithoutSecrets { secrets, hidden: Vec::new() }
    }

    /// A text that stands there.
    pub(crate) fn text(&mut self, text: &str, place: &str) -> String {
        let (clean, hidden) = self.secrets.scrub_and_count(text);
        if hidden > 0 {
            self.hidden.push(hidden_characters(hidden, format!("a secret of this tenant, in {place}")));
        }
        clean.into_owned()
    }

    /// Arguments, value by value.
    pub(crate) fn arguments(&mut self, arguments: Value, place: &str) -> Value {
        match arguments {
            Value::String(words) => Value::String(self.text(&words, place)),
            Value::Array(items) => {
                let item = |(n, item)| self.arguments(item, &format!("{place}/{n}"));
                items.into_iter().enumerate().map(item).collect()
            }
            Value::Object(fields) => {
                let field = |(key, field): (String, Value)| {
                    let key = self.text(&key, place);
                    let field = self.arguments(field, &format!("{place}/{key}"));
                    (key, field)
                };
                fields.into_iter().map(field).collect()
            }
            Value::Number(number) => {
                let digits = number.to_string();
                let shown = self.text(&digits, place);
                if shown == digits { Value::Number(number) } else { shown.into() }
            }
            Value::Null | Value::Bool(_) => arguments,
        }
    }
}

/// A text without the secrets.
fn text(text: String, secrets: &Scrubber) -> String {
    let clean = secrets.scrub(&text);
    if clean == text { text } else { clean.into_owned() }
}

fn content(block: Content, secrets: &Scrubber) -> Content {
    match block {
        Content::Text(words) => Content::Text(text(words, secrets)),
        Content::Block(block) => Content::Block(value(block, secrets)),
    }
}

/// JSON text without the secrets. Looked at as text first, since nearly all of it holds none; then value by value, so
/// that what stands for a number does not leave half of one behind.
pub(crate) fn json(text: String, secrets: &Scrubber) -> String {
    let clean = secrets.scrub(&text);
    if clean == text {
        return text;
    }
    match serde_json::from_str(&text) {
        Ok(parsed) => value(parsed, secrets).to_string(),
        // Not what it claims to be, so it is passed on as mere words.
        Err(_) => Value::from(clean).to_string(),
    }
}

fn value(told: Value, secrets: &Scrubber) -> Value {
    match told {
        Value::String(words) => Value::String(text(words, secrets)),
        Value::Array(items) => items.into_iter().map(|item| value(item, secrets)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, field)| (text(key, secrets), value(field, secrets))).collect()
        }
        Value::Number(number) => {
            let digits = number.to_string();
            if secrets.scrub(&digits) == digits { Value::Number(number) } else { text(digits, secrets).into() }
        }
        Value::Null | Value::Bool(_) => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redact::SecretText;
    use serde_json::json;

    fn secrets() -> Scrubber {
        Scrubber::new(["s3cr3t-value", "86753090"].map(|secret| SecretText::new(secret.to_owned())))
    }

    #[test]
    fn a_secret_is_in_no_part_of_an_output() {
        let output = ToolOutput {
            structured: Some(
                json!({ "a": "x s3cr3t-value y", "n": 86_753_090, "s3cr3t-value": [true, null] }).to_string(),
            ),
            content: vec![
                Content::Text("s3cr3t-value".into()),
                Content::Block(json!({ "type": "resource_link", "uri": "https://x/?k=s3cr3t-value" })),
            ],
            tainting: true,
        };
        let Outcome::Done(clean) = clean(Outcome::Done(output), &secrets()) else { panic!("it was done") };
        let shown = format!("{clean:?}");
        assert!(!shown.contains("s3cr3t-value") && !shown.contains("86753090"), "{shown}");
        assert!(clean.tainting);
        let parsed: Value = serde_json::from_str(clean.structured.as_deref().unwrap()).unwrap();
        assert!(parsed["n"].is_string() && parsed["a"].as_str().unwrap().starts_with("x "));
    }

    #[test]
    fn a_secret_is_in_no_part_of_a_failure() {
        let failure = Failure::new(domain::Code::NotFound, "bad key s3cr3t-value")
            .next("try s3cr3t-value")
            .details(json!({ "said": ["s3cr3t-value"] }));
        let shown = format!("{:?}", clean(Outcome::Failed(failure), &secrets()));
        assert!(!shown.contains("s3cr3t-value"), "{shown}");
    }

    #[test]
    fn what_is_hidden_from_people_is_counted_and_named() {
        let secrets = secrets();
        let mut shown = ShownWithoutSecrets::new(&secrets);
        let given = json!({ "env": ["a", "x s3cr3t-value"], "n": 86_753_090, "plain": "password=hunter22" });
        let clean = shown.arguments(given, "argument ");
        assert_eq!(clean["plain"], "password=hunter22", "nothing is hidden for its looks");
        assert!(!clean.to_string().contains("s3cr3t-value") && clean["n"].is_string(), "{clean}");
        assert_eq!(
            shown.hidden,
            [
                "12 characters hidden: a secret of this tenant, in argument /env/1",
                "8 characters hidden: a secret of this tenant, in argument /n",
            ]
        );
    }

    #[test]
    fn what_is_audited_holds_no_secret_of_the_tenant_and_nothing_that_looks_like_one() {
        let given = json!({ "a": "x s3cr3t-value", "b": ["password=hunter22"], "n": 3, "plain": "exact" }).to_string();
        let kept = audited(&given, &secrets());
        assert!(!kept.contains("s3cr3t-value") && !kept.contains("hunter22"), "{kept}");
        assert!(kept.contains("\"plain\":\"exact\"") && kept.contains("\"n\":3"), "{kept}");
        assert!(!audited("no JSON, token=s3cr3t-value", &secrets()).contains("s3cr3t"));
    }

    #[test]
    fn what_holds_nothing_to_hide_is_audited_to_the_letter_and_nothing_else_is() {
        let text = r#"{ "b":1.0,  "a":[2, null, true, "pl\u0061in\nwords"]}"#;
        assert_eq!(audited(text, &secrets()), text);
        for hides in [
            r#"{"a":"s3cr3t\u002dvalue"}"#,
            r#"{"s3cr3t\u002dvalue":1}"#,
            r#"{"a":[{"b":"password\u003dhunter22"}]}"#,
            r#"{"n":8.675309e7}"#,
            r#"{"n":86753090}"#,
            r#"{"a":"x"} s3cr3t-value"#,
        ] {
            assert!(!nothing_to_hide(hides, &secrets()), "{hides}");
            let kept = audited(hides, &secrets());
            let read = serde_json::from_str::<Value>(&kept).map_or(kept.clone(), |value| value.to_string());
            assert!(!["s3cr3t-value", "hunter22", "86753090"].iter().any(|secret| read.contains(secret)), "{kept}");
        }
    }

    #[test]
    fn what_holds_no_secret_is_passed_on_as_it_is() {
        let text = r#"{"b":1.0,  "a":2}"#.to_owned();
        let output = ToolOutput { structured: Some(text.clone()), ..ToolOutput::default() };
        assert_eq!(clean(Outcome::Done(output), &secrets()).structured(), Some(text.as_str()));
    }
}
