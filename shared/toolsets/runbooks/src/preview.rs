//! What an approver is shown of a call: every command and variable as it will be, where it runs, and what is not known.
//!
//! An approval is about all of it, and about the runbook's text: the digest at the end changes with every word of it.

use crate::declaration::{ClusterPlace, RunbookPlace};
use crate::program_text::words_with_arguments;
use crate::resolved::ResolvedCall;
use catalog::{PreviewBuilder, ToolPreview};
use domain::json::sha256_hex;
use runbook::variables;
use serde_json::json;

/// The preview of a call. `more` are lines that the place adds.
pub fn of(call: &ResolvedCall, more: impl FnOnce(&mut PreviewBuilder)) -> ToolPreview {
    let runbook = &call.runbook;
    let mut preview = PreviewBuilder::new(format!("runbook {}", runbook.id()));
    preview.line(format!("where: {}", runbook.place.words()));
    if let RunbookPlace::Cluster(ClusterPlace { image, .. }) = &runbook.place {
        preview.line(format!("image: {image}"));
    }
    if let Some(directory) = &runbook.text.directory {
        preview.line(format!("folder: {directory:?}"));
    }
    preview.line(format!("time: {} s", runbook.text.timeout_ms / 1_000));
    for (step, words, meaning) in [
        ("check", call.resolved.check.as_ref(), " (exit 0: it is done already, and nothing else runs)"),
        ("run", Some(&call.resolved.run), ""),
        ("verify", call.resolved.verify.as_ref(), " (exit 0: it was done)"),
    ] {
        let Some(words) = words else { continue };
        preview.line(format!("{step}, one word each{meaning}:"));
        words.iter().for_each(|word| preview.line(format!("  {word:?}")));
    }
    environment(call, &mut preview);
    if call.resolved.check.is_some() {
        preview.line(
            "whether it is done already is not known: `check` is a command too, and nothing runs before an approval",
        );
    }
    preview.line("a failure ends this run and nothing else");
    let text = &runbook.text;
    if text.check.iter().chain([&text.run]).chain(&text.verify).any(|words| !words_with_arguments(words).is_empty()) {
        preview.warn("an argument stands inside the text of a program: its value is read as code there");
    }
    more(&mut preview);
    let resolved = &call.resolved;
    let values: Vec<_> = resolved.env.iter().map(|(name, variable)| json!([name, variable.value])).collect();
    let whole = json!([runbook.digest(), resolved.check, resolved.run, resolved.verify, values]);
    let digest = sha256_hex(whole.to_string().as_bytes());
    preview.line(format!("runbook sha256: {}", runbook.digest()));
    let (summary, lines) = (format!("run {} on {}", runbook.id(), runbook.place.target()), preview.lines().join("\n"));
    preview.build(summary, lines, format!("runbook:{digest}"))
}

fn environment(call: &ResolvedCall, preview: &mut PreviewBuilder) {
    if call.resolved.env.is_empty() {
        return;
    }
    preview.line("environment:");
    let of_arguments: Vec<String> = call.resolved.arguments.keys().map(|name| variables::of_argument(name)).collect();
    for (name, variable) in &call.resolved.env {
        let line = match call.secret_of(name) {
            Some(secret) => format!("  {name}: the tenant's secret {secret}, which is not shown"),
            None if call.given.overlay.contains_key(name) => {
                let instead = if call.runbook.text.env.contains_key(name) { ", instead of the runbook's" } else { "" };
                format!("  {name}={:?} (given by the caller{instead})", variable.value)
            }
            None if of_arguments.contains(name) => format!("  {name}={:?} (argument)", variable.value),
            None => format!("  {name}={:?}", variable.value),
        };
        preview.line(line);
    }
}
