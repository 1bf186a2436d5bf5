//! `servers`: lists external MCP servers in a terminal, shows which tools changed, and accepts them.
//!
//! Nothing is accepted that was not shown first: the command sends the digests of what it printed, so a definition that
//! changes in between is not accepted.

use crate::cli::{ADMIN_TOKEN, OutputFormat, ServersAction, ServersCommand};
use crate::commands::api_client::{AnswerFields, ApiClient, ApiRefusal, ApiRequest, plain_segment};
use crate::commands::{CommandOutcome, json_text, print, print_json, runtime, say};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::BufRead;

pub(super) fn run(args: &ServersCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let client = ApiClient::open(args.url.as_deref(), args.token_file.as_deref(), ADMIN_TOKEN)?;
    runtime()?.block_on(async {
        match &args.action {
            None | Some(ServersAction::List) => list(&client, output).await,
            Some(ServersAction::Show { id }) => show(&client, id, output).await,
            Some(ServersAction::Accept { id, tool, yes }) => {
                Acceptance { client: &client, id, names: tool, confirmed: *yes, output }.run().await
            }
        }
    })
}

async fn list(client: &ApiClient, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let page: Value = match client.send(ApiRequest::get("/v1/tenant/servers")).await? {
        Ok(page) => page,
        Err(refusal) => return refusal.finish(output),
    };
    if output == OutputFormat::Json {
        print_json(&page)?;
        return Ok(CommandOutcome::Done);
    }
    let servers = items(&page, "servers");
    if servers.is_empty() {
        say("the tenant has no external servers\n");
    }
    servers.iter().for_each(|server| print(&server_text(AnswerFields(server))));
    Ok(CommandOutcome::Done)
}

async fn show(client: &ApiClient, id: &str, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let server = match read(client, id).await? {
        Ok(server) => server,
        Err(refusal) => return refusal.finish(output),
    };
    if output == OutputFormat::Json {
        print_json(&server)?;
        return Ok(CommandOutcome::Done);
    }
    print(&server_text(AnswerFields(&server)));
    items(&server, "tools").iter().for_each(|tool| print(&tool_text(AnswerFields(tool))));
    Ok(CommandOutcome::Done)
}

async fn read(client: &ApiClient, id: &str) -> anyhow::Result<Result<Value, ApiRefusal>> {
    let id = plain_segment("a server's id", id)?;
    client.send(ApiRequest::get(&format!("/v1/tenant/servers/{id}"))).await
}

/// One `accept`: the tools that a person accepts of one server.
struct Acceptance<'a> {
    client: &'a ApiClient,
    id: &'a str,
    names: &'a [String],
    confirmed: bool,
    output: OutputFormat,
}

impl Acceptance<'_> {
    async fn run(&self) -> anyhow::Result<CommandOutcome> {
        let server = match read(self.client, self.id).await? {
            Ok(server) => server,
            Err(refusal) => return refusal.finish(self.output),
        };
        let Some(chosen) = self.choose(items(&server, "tools")) else { return Ok(CommandOutcome::Negative) };
        if chosen.is_empty() {
            say(&format!("no tool of {} waits to be accepted\n", self.id));
            return Ok(CommandOutcome::Done);
        }
        // On the standard error, so that a program reads the service's answer alone.
        chosen.iter().for_each(|tool| say(&tool_text(AnswerFields(tool))));
        if !self.confirmed && !confirm(chosen.len(), self.id)? {
            say("nothing was accepted\n");
            return Ok(CommandOutcome::Negative);
        }
        let tools: Vec<Value> =
            chosen.iter().map(|tool| json!({ "name": name_of(tool), "digest": tool["digest"] })).collect();
        let path = format!("/v1/tenant/servers/{}/accept", self.id);
        let answer: Value = match self.client.send(ApiRequest::post(&path, json!({ "tools": tools }))).await? {
            Ok(answer) => answer,
            Err(refusal) => return refusal.finish(self.output),
        };
        match self.output {
            OutputFormat::Json => print_json(&answer)?,
            OutputFormat::Text => {
                let accepted = AnswerFields(&answer).texts("accepted");
                accepted.for_each(|name| print(&format!("accepted {name}\n")));
            }
        }
        Ok(CommandOutcome::Done)
    }

    /// The tools that are meant; `None` if one was named that does not wait.
    fn choose<'s>(&self, tools: &'s [Value]) -> Option<Vec<&'s Value>> {
        let is = |tool: &Value, name: &str| tool["name"] == name || tool["upstream_name"] == name;
        let waiting: Vec<&Value> =
            tools.iter().filter(|tool| tool["pin"] == "new" || tool["pin"] == "changed").collect();
        if let Some(name) = self.names.iter().find(|name| !waiting.iter().any(|tool| is(tool, name))) {
            say(&format!("no tool `{name}` of {} waits to be accepted\n", self.id));
            return None;
        }
        let meant = |tool: &&Value| self.names.is_empty() || self.names.iter().any(|name| is(tool, name));
        Some(waiting.into_iter().filter(meant).collect())
    }
}

fn confirm(tools: usize, id: &str) -> anyhow::Result<bool> {
    say(&format!("accept these {tools} tools of {id} as shown? (yes/no) "));
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    Ok(typed.trim() == "yes")
}

fn items<'a>(answer: &'a Value, key: &str) -> &'a [Value] {
    answer[key].as_array().map_or(&[], Vec::as_slice)
}

/// The name by which the service knows a tool.
fn name_of(tool: &Value) -> &str {
    tool["name"].as_str().or_else(|| tool["upstream_name"].as_str()).unwrap_or_default()
}

fn server_text(server: AnswerFields<'_>) -> String {
    let count = |pins: &[&str]| server.list("tools").filter(|tool| pins.contains(&tool.text("pin").as_str())).count();
    let (accepted, waiting) = (count(&["accepted"]), count(&["new", "changed"]));
    let (id, state, listed_at) = (server.text("id"), server.text("state"), server.text("listed_at"));
    let mut out = format!("{id:<24} {state:<12} {accepted} accepted, {waiting} waiting; listed {listed_at}\n");
    if let Some(trouble) = server.part("trouble") {
        let (code, message, since) = (trouble.text("code"), trouble.text("message"), trouble.text("since"));
        writeln!(out, "    {code}: {message} (since {since})").ok();
    }
    out
}

/// One tool for a person to read before accepting it: what changed, or the whole definition of a new one.
fn tool_text(tool: AnswerFields<'_>) -> String {
    let (pin, name, effect) = (tool.text("pin"), tool.text("name"), tool.text("effect"));
    let mut out = format!("  {pin:<12} {}  {name}  {effect}\n", tool.text("upstream_name"));
    let reason = tool.part("reason").map(|_| tool.text("reason"));
    reason.into_iter().chain(tool.texts("remarks")).for_each(|note| {
        writeln!(out, "      NOTE {note}").ok();
    });
    let definition = match (tool.part("difference"), tool.part("definition")) {
        (Some(_), _) => tool.lines("difference"),
        (None, Some(whole)) => json_text(whole.0).unwrap_or_default().lines().map(str::to_owned).collect(),
        (None, None) => Vec::new(),
    };
    definition.iter().for_each(|line| out.push_str(&format!("      {line}\n")));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_text_cannot_write_lines_of_its_own() {
        let hostile = "x\n  accepted     safe\u{1b}[2K\u{202e}\u{200b}";
        let tool = json!({ "pin": "changed", "upstream_name": hostile, "reason": hostile, "remarks": [hostile] });
        let new = json!({ "pin": "new", "upstream_name": "x", "definition": { "description": hostile } });
        let changed = json!({ "pin": "changed", "upstream_name": "x", "difference": "-a\n+b\u{1b}[1A" });
        let server = json!({ "id": "wiki", "trouble": { "code": "x", "message": hostile, "since": "now" } });
        let texts = [&tool, &new, &changed].map(|tool| tool_text(AnswerFields(tool)));
        for text in texts.iter().chain([&server_text(AnswerFields(&server))]) {
            assert!(text.chars().all(|c| c == '\n' || !domain::text::is_tricky(c)), "{text}");
            assert!(text.lines().all(|line| !line.starts_with("  accepted")), "{text}");
        }
        assert!(texts[2].ends_with("      -a\n      +b\\u{001b}[1A\n"), "{}", texts[2]);
    }
}
