//! `usage`: what a tenant used, over the HTTP API.

use crate::cli::{ADMIN_TOKEN, OutputFormat, UsageCommand};
use crate::commands::api_client::{AnswerFields, ApiClient, ApiRequest, plain_segment};
use crate::commands::{CommandOutcome, print, print_json, runtime};
use serde_json::Value;

pub(super) fn run(args: &UsageCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let client = ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), ADMIN_TOKEN)?;
    let mut path = format!("/v1/usage?by={}", plain_segment("--by", &args.by)?);
    for (key, day) in [("from", &args.from), ("to", &args.to)] {
        if let Some(day) = day {
            path.push_str(&format!("&{key}={}", plain_segment("a day", day)?));
        }
    }
    runtime()?.block_on(async {
        let report: Value = match client.send(ApiRequest::get(&path)).await? {
            Ok(report) => report,
            Err(refusal) => return refusal.finish(output),
        };
        match output {
            OutputFormat::Json => print_json(&report)?,
            OutputFormat::Text => print(&as_text(AnswerFields(&report))),
        }
        Ok(CommandOutcome::Done)
    })
}

fn as_text(report: AnswerFields<'_>) -> String {
    let mut out = format!(
        "{} to {}\n{:>8} {:>7} {:>10} {:>12} {:>6} {:>12} {:>12}  {}\n",
        report.text("from"),
        report.text("to"),
        "calls",
        "errors",
        "seconds",
        "results",
        "lists",
        "schemas",
        "saved",
        report.text("by"),
    );
    for row in report.list("rows") {
        out.push_str(&line(row, &row.text("name")));
    }
    if let Some(total) = report.part("total") {
        out.push_str(&line(total, "total"));
    }
    out
}

fn line(row: AnswerFields<'_>, name: &str) -> String {
    let number = |key: &str| row.0[key].as_i64().unwrap_or_default();
    format!(
        "{:>8} {:>7} {:>10} {:>12} {:>6} {:>12} {:>12}  {name}\n",
        number("calls"),
        number("errors"),
        number("millis") / 1_000,
        number("result_tokens"),
        number("lists"),
        number("schema_tokens"),
        number("saved_tokens"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_cannot_write_lines_of_its_own() {
        let rows = json!([{ "name": "x\ntotal\u{1b}[2K", "calls": 3, "saved_tokens": -7 }]);
        let report = json!({ "from": "2026-11-17", "to": "2026-11-18", "by": "principal", "rows": rows,
            "total": { "calls": 3 } });
        let text = as_text(AnswerFields(&report));
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("-7") && text.chars().all(|c| c == '\n' || !domain::text::is_tricky(c)), "{text}");
    }
}
