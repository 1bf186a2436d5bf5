//! The tenant's own secrets in what tools give back: gone, whoever put them there.
//!
//! A target that is handed a credential can hand it on: in an error, in a log, in a header it echoes. So every outcome
//! passes here before it is capped, kept, paged or shown. Tools mask what they know to be secret; this is for what
//! nobody expected, and it knows the values.

use crate::snapshot::SecretsNow;
use catalog::ToolPreview;
use domain::{Content, Failure, Outcome, ToolOutput, WaitingRun};
use redact::Scrubber;
use serde_json::Value;
use std::sync::Arc;

/// What comes of some work, without the secrets: those there were when it began, and those there are now.
pub(crate) async fn cleaned(secrets: &SecretsNow, work: impl Future<Output = Outcome>) -> Outcome {
    let before = secrets.now();
    let outcome = clean(work.await, &before);
    let now = secrets.now();
    if Arc::ptr_eq(&before, &now) { outcome } else { clean(outcome, &now) }
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

/// A preview without the secrets. What it is compared by later stays: nobody is shown it.
pub(crate) fn drawn(drawn: ToolPreview, secrets: &Scrubber) -> ToolPreview {
    ToolPreview {
        summary: text(drawn.summary, secrets),
        text: text(drawn.text, secrets),
        warnings: drawn.warnings.into_iter().map(|warning| text(warning, secrets)).collect(),
        arguments: drawn.arguments.map(|arguments| json(arguments, secrets)),
        fingerprint: drawn.fingerprint,
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
    fn what_holds_no_secret_is_passed_on_as_it_is() {
        let text = r#"{"b":1.0,  "a":2}"#.to_owned();
        let output = ToolOutput { structured: Some(text.clone()), ..ToolOutput::default() };
        assert_eq!(clean(Outcome::Done(output), &secrets()).structured(), Some(text.as_str()));
    }
}
