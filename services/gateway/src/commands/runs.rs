//! `runs`: the approver's desk in a terminal, over the same API as everybody else's.

use crate::cli::{OutputFormat, RunsAction, RunsCommand};
use crate::commands::desk::ApiClient;
use crate::commands::{CommandOutcome, print, runtime, say};
use serde_json::{Value, json};

pub(super) fn run(args: &RunsCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let desk = ApiClient::open(&args.url, &args.token_file)?;
    runtime()?.block_on(async {
        match &args.action {
            None => list(&desk, Some("pending_approval"), output).await,
            Some(RunsAction::List { state }) => list(&desk, state.as_deref(), output).await,
            Some(RunsAction::Show { id }) => ask(&desk, "GET", &format!("/v1/runs/{id}"), None, output).await,
            Some(RunsAction::Approve { id, reason }) => {
                ask(&desk, "POST", &format!("/v1/runs/{id}/approve"), Some(json!({ "reason": reason })), output).await
            }
            Some(RunsAction::Reject { id, reason }) => {
                ask(&desk, "POST", &format!("/v1/runs/{id}/reject"), Some(json!({ "reason": reason })), output).await
            }
        }
    })
}

async fn list(desk: &ApiClient, state: Option<&str>, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let query = state.map(|state| format!("?state={state}")).unwrap_or_default();
    let told = desk.send("GET", &format!("/v1/runs{query}"), None).await?;
    if !told.ok() || output == OutputFormat::Json {
        return told.finish(output);
    }
    let none = Vec::new();
    let runs = told.body["runs"].as_array().unwrap_or(&none);
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

async fn ask(
    desk: &ApiClient,
    method: &str,
    path: &str,
    body: Option<Value>,
    output: OutputFormat,
) -> anyhow::Result<CommandOutcome> {
    let told = desk.send(method, path, body).await?;
    if told.ok() && output == OutputFormat::Text {
        print(&shown(&told.body));
    }
    told.finish(output)
}

/// One run for a person to read before signing. The service wrote the preview from the real arguments.
fn shown(run: &Value) -> String {
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
    for said in run["decisions"].as_array().into_iter().flatten() {
        let part = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
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
