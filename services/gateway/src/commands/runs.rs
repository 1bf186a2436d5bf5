//! `runs`: the approver's desk in a terminal, over the same API as everybody else's.

use crate::cli::{Output, Runs, RunsAction};
use crate::commands::{Ended, print, runtime, say};
use anyhow::{Context, bail};
use serde_json::{Value, json};

pub(super) fn run(args: &Runs, output: Output) -> anyhow::Result<Ended> {
    let token = std::fs::read_to_string(&args.token_file)
        .with_context(|| format!("cannot read the token in {}", args.token_file.display()))?;
    let desk = Desk { url: args.url.trim_end_matches('/').to_owned(), token: token.trim().to_owned() };
    runtime()?.block_on(async {
        match &args.action {
            None => desk.list(Some("pending_approval"), output).await,
            Some(RunsAction::List { state }) => desk.list(state.as_deref(), output).await,
            Some(RunsAction::Show { id }) => desk.ask("GET", &format!("/v1/runs/{id}"), None, output).await,
            Some(RunsAction::Approve { id, reason }) => {
                desk.ask("POST", &format!("/v1/runs/{id}/approve"), Some(json!({ "reason": reason })), output).await
            }
            Some(RunsAction::Reject { id, reason }) => {
                desk.ask("POST", &format!("/v1/runs/{id}/reject"), Some(json!({ "reason": reason })), output).await
            }
        }
    })
}

struct Desk {
    url: String,
    token: String,
}

impl Desk {
    async fn list(&self, state: Option<&str>, output: Output) -> anyhow::Result<Ended> {
        let query = state.map(|state| format!("?state={state}")).unwrap_or_default();
        let (status, told) = self.send("GET", &format!("/v1/runs{query}"), None).await?;
        if status != 200 || output == Output::Json {
            return finish(status, &told, output);
        }
        let none = Vec::new();
        let runs = told["runs"].as_array().unwrap_or(&none);
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
        Ok(Ended::Well)
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>, output: Output) -> anyhow::Result<Ended> {
        let (status, told) = self.send(method, path, body).await?;
        finish(status, &told, output)
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> anyhow::Result<(u16, Value)> {
        let client = egress::operator_client(&egress::Config::default())?;
        let request = egress::Ask { method, url: &format!("{}{path}", self.url), bearer: &self.token, body };
        let (status, bytes) = egress::ask(&client, request).await.context("the service did not answer")?;
        let told = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        if status >= 500 && told.is_null() {
            bail!("the service answered with status {status}");
        }
        Ok((status, told))
    }
}

/// Prints what came back; a refusal is an answer too, and makes the exit code say no.
fn finish(status: u16, told: &Value, output: Output) -> anyhow::Result<Ended> {
    let ok = (200..300).contains(&status);
    match output {
        Output::Json => print(&format!("{}\n", serde_json::to_string_pretty(told)?)),
        Output::Text if ok => print(&shown(told)),
        Output::Text => {
            let error = &told["error"];
            let text = |key: &str| error[key].as_str().unwrap_or_default();
            say(&format!("{}: {}\n", text("code"), text("message")));
            if !text("hint").is_empty() {
                say(&format!("  {}\n", text("hint")));
            }
        }
    }
    Ok(if ok { Ended::Well } else { Ended::WithNo })
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
