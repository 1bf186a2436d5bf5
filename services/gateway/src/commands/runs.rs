//! `runs`: lists, shows and decides runs in a terminal, over the HTTP API.

use crate::cli::{OutputFormat, RunsAction, RunsCommand};
use crate::commands::api_client::{ApiClient, ApiRequest, plain_segment};
use crate::commands::{CommandOutcome, print, runtime, say};
use serde_json::{Value, json};

pub(super) fn run(args: &RunsCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let client = ApiClient::open(&args.url, &args.token_file)?;
    let path = |id: &str| plain_segment("a run's id", id).map(|id| format!("/v1/runs/{id}"));
    runtime()?.block_on(async {
        match &args.action {
            None => list(&client, Some("pending_approval"), output).await,
            Some(RunsAction::List { state }) => list(&client, state.as_deref(), output).await,
            Some(RunsAction::Show { id }) => show(&client, ApiRequest::get(&path(id)?), output).await,
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
        print(&format!("{}\n", serde_json::to_string_pretty(&page)?));
        return Ok(CommandOutcome::Well);
    }
    let none = Vec::new();
    let runs = page["runs"].as_array().unwrap_or(&none);
    if runs.is_empty() {
        say("nothing waits\n");
    }
    for run in runs {
        let text = |key: &str| run[key].as_str().unwrap_or("-").to_owned();
        print(&format!(
            "{}  {:<16} {:<8} {}\n    asked by {} at {}, expires {}\n",
            text("id"),
            text("state"),
            text("effect"),
            text("summary"),
            text("requested_by"),
            text("asked_at"),
            text("expires_at"),
        ));
    }
    Ok(CommandOutcome::Well)
}

/// Sends a request that is answered with one run, and prints the run.
async fn show(client: &ApiClient, request: ApiRequest<'_>, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let run: Value = match client.send(request).await? {
        Ok(run) => run,
        Err(refusal) => return refusal.finish(output),
    };
    match output {
        OutputFormat::Json => print(&format!("{}\n", serde_json::to_string_pretty(&run)?)),
        OutputFormat::Text => print(&as_text(&run)),
    }
    Ok(CommandOutcome::Well)
}

/// One run for a person to read before deciding. The service built the preview from the real arguments.
fn as_text(run: &Value) -> String {
    let text = |key: &str| run[key].as_str().unwrap_or("-").to_owned();
    let mut out = format!(
        "{}  {}\n  tool       {} ({})\n  asked by   {} at {}\n  expires    {}\n",
        text("id"),
        text("state"),
        text("tool"),
        text("effect"),
        text("requested_by"),
        text("asked_at"),
        text("expires_at"),
    );
    for warning in run["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.push_str(&format!("  WARNING    {warning}\n"));
    }
    if run["session_tainted"] == json!(true) {
        out.push_str("  WARNING    the session that asked has read text from outside\n");
    }
    for decision in run["decisions"].as_array().into_iter().flatten() {
        let part = |key: &str| decision[key].as_str().unwrap_or_default().to_owned();
        out.push_str(&format!("  {:<10} by {} at {} {}\n", part("verdict"), part("by"), part("at"), part("reason")));
    }
    if let Some(outcome) = run.get("outcome") {
        out.push_str(&format!(
            "  outcome    {} {} ({})\n",
            outcome["code"].as_str().unwrap_or("ok"),
            outcome["message"].as_str().unwrap_or_default(),
            outcome["basis"].as_str().unwrap_or_default(),
        ));
    }
    let preview = run["preview"]["text"].as_str().unwrap_or_default();
    out.push('\n');
    preview.lines().for_each(|line| out.push_str(&format!("    {line}\n")));
    out
}
