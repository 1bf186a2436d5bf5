//! `runs`: lists, shows and decides runs in a terminal, over the HTTP API.

use crate::cli::{APPROVER_TOKEN, OutputFormat, RunsAction, RunsCommand};
use crate::commands::api_client::{AnswerFields, ApiClient, ApiRequest, plain_segment};
use crate::commands::{CommandOutcome, print, print_json, runtime, say};
use serde_json::{Value, json};

/// The state of a run that waits for a decision.
const PENDING: &str = "pending_approval";

pub(super) fn run(args: &RunsCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let client = ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), APPROVER_TOKEN)?;
    let path = |id: &str| plain_segment("a run's id", id).map(|id| format!("/v1/runs/{id}"));
    runtime()?.block_on(async {
        match &args.action {
            None => list(&client, Some(PENDING), output).await,
            Some(RunsAction::List { state }) => list(&client, state.as_deref(), output).await,
            Some(RunsAction::Show { id, raw: false }) => show(&client, ApiRequest::get(&path(id)?), output).await,
            Some(RunsAction::Show { id, raw: true }) => {
                raw(&client, ApiRequest::get(&format!("{}/arguments", path(id)?)), output).await
            }
            Some(RunsAction::Approve { id, reason }) => {
                let path = format!("{}/approve", path(id)?);
                show(&client, ApiRequest::post(&path, json!({ "reason": reason })), output).await
            }
            Some(RunsAction::Reject { id, reason }) => {
                let path = format!("{}/reject", path(id)?);
                show(&client, ApiRequest::post(&path, json!({ "reason": reason })), output).await
            }
        }
    })
}

async fn list(client: &ApiClient, state: Option<&str>, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let query = match state {
        Some(state) => format!("?state={}", plain_segment("a state", state)?),
        None => String::new(),
    };
    let page: Value = match client.send(ApiRequest::get(&format!("/v1/runs{query}"))).await? {
        Ok(page) => page,
        Err(refusal) => return refusal.finish(output),
    };
    if output == OutputFormat::Json {
        print_json(&page)?;
        return Ok(CommandOutcome::Done);
    }
    let runs: Vec<AnswerFields<'_>> = AnswerFields(&page).list("runs").collect();
    if runs.is_empty() {
        say(if state == Some(PENDING) { "no runs are pending\n" } else { "there are no runs\n" });
    }
    for run in runs {
        print(&format!(
            "{}  {:<16} {:<8} {}\n    asked by {} at {}, expires {}\n",
            run.text("id"),
            run.text("state"),
            run.text("effect"),
            run.text("summary"),
            run.text("requested_by"),
            run.text("asked_at"),
            run.text("expires_at"),
        ));
    }
    Ok(CommandOutcome::Done)
}

/// Sends a request that is answered with one run, and prints the run.
async fn show(client: &ApiClient, request: ApiRequest<'_>, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let run: Value = match client.send(request).await? {
        Ok(run) => run,
        Err(refusal) => return refusal.finish(output),
    };
    match output {
        OutputFormat::Json => print_json(&run)?,
        OutputFormat::Text => print(&as_text(AnswerFields(&run))),
    }
    Ok(CommandOutcome::Done)
}

/// Prints the exact arguments of a run. In a terminal control characters are escaped as JSON escapes them.
async fn raw(client: &ApiClient, request: ApiRequest<'_>, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let answer: Value = match client.send(request).await? {
        Ok(answer) => answer,
        Err(refusal) => return refusal.finish(output),
    };
    match output {
        OutputFormat::Json => print_json(&answer)?,
        OutputFormat::Text => print_json(&answer["arguments"])?,
    }
    Ok(CommandOutcome::Done)
}

/// One run for a person to read before deciding. The service built the preview from the real arguments.
fn as_text(run: AnswerFields<'_>) -> String {
    let mut out = format!(
        "{}  {}\n  tool       {} ({})\n  asked by   {} at {}\n  expires    {}\n",
        run.text("id"),
        run.text("state"),
        run.text("tool"),
        run.text("effect"),
        run.text("requested_by"),
        run.text("asked_at"),
        run.text("expires_at"),
    );
    for warning in run.texts("warnings") {
        out.push_str(&format!("  WARNING    {warning}\n"));
    }
    if run.0["session_tainted"] == json!(true) {
        out.push_str("  WARNING    the requesting session has read text from outside\n");
    }
    let preview = run.part("preview");
    for hidden in preview.iter().flat_map(|preview| preview.texts("hidden")) {
        out.push_str(&format!("  HIDDEN     {hidden}\n"));
    }
    for decision in run.list("decisions") {
        let part = |key: &str| decision.text_or(key, "");
        out.push_str(&format!("  {:<10} by {} at {} {}\n", part("verdict"), part("by"), part("at"), part("reason")));
    }
    if let Some(outcome) = run.part("outcome") {
        let part = |key: &str| outcome.text_or(key, "");
        let code = outcome.text_or("code", "ok");
        out.push_str(&format!("  outcome    {code} {} ({})\n", part("message"), part("basis")));
    }
    out.push('\n');
    for line in preview.map(|preview| preview.lines("text")).unwrap_or_default() {
        out.push_str(&format!("    {line}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_run_cannot_write_lines_of_its_own() {
        let hostile = "x\n  approved   by boss at now\u{1b}[1A\u{202e}";
        let run = json!({
            "id": "run_1", "requested_by": hostile, "warnings": [hostile],
            "decisions": [{ "verdict": "rejected", "by": hostile, "reason": hostile }],
            "outcome": { "message": hostile }, "preview": { "text": "first\nsecond\u{1b}[1A\r" },
        });
        let text = as_text(AnswerFields(&run));
        assert!(text.chars().all(|c| c == '\n' || !domain::text::is_tricky(c)), "{text}");
        assert!(text.lines().all(|line| !line.starts_with("  approved")), "{text}");
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
        assert!(
            at("WARNING") < at("rejected") && at("WARNING") < at("first"),
            "warnings stand before what is decided: {text}"
        );
        assert!(text.ends_with("\n\n    first\n    second\\u{001b}[1A\\u{000d}\n"), "{text}");
    }
}
