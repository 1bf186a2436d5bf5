//! `servers`: lists external MCP servers in a terminal, shows which tools changed, and accepts them.
//!
//! Nothing is accepted that was not shown first: the command sends the digests of what it printed, so a definition that
//! changes in between is not accepted.

use crate::cli::{OutputFormat, ServersAction, ServersCommand};
use crate::commands::api_client::{ApiClient, ApiRefusal, ApiRequest, plain_segment};
use crate::commands::{CommandOutcome, print, runtime, say};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::BufRead;

pub(super) fn run(args: &ServersCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let client = ApiClient::open(&args.url, &args.token_file)?;
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
        print(&format!("{}\n", serde_json::to_string_pretty(&page)?));
        return Ok(CommandOutcome::Well);
    }
    let servers = items(&page, "servers");
    if servers.is_empty() {
        say("the tenant has no external servers\n");
    }
    servers.iter().for_each(|server| print(&plain(&server_text(server))));
    Ok(CommandOutcome::Well)
}

async fn show(client: &ApiClient, id: &str, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let server = match read(client, id).await? {
        Ok(server) => server,
        Err(refusal) => return refusal.finish(output),
    };
    if output == OutputFormat::Json {
        print(&format!("{}\n", serde_json::to_string_pretty(&server)?));
        return Ok(CommandOutcome::Well);
    }
    print(&plain(&server_text(&server)));
    items(&server, "tools").iter().for_each(|tool| print(&plain(&tool_text(tool))));
    Ok(CommandOutcome::Well)
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
        let Some(chosen) = self.choose(items(&server, "tools")) else { return Ok(CommandOutcome::WithNo) };
        if chosen.is_empty() {
            say("nothing waits\n");
            return Ok(CommandOutcome::Well);
        }
        // On the standard error, so that a program reads the service's answer alone.
        chosen.iter().for_each(|tool| say(&plain(&tool_text(tool))));
        if !self.confirmed && !confirm(chosen.len(), self.id)? {
            say("nothing was accepted\n");
            return Ok(CommandOutcome::WithNo);
        }
        let tools: Vec<Value> =
            chosen.iter().map(|tool| json!({ "name": name_of(tool), "digest": tool["digest"] })).collect();
        let path = format!("/v1/tenant/servers/{}/accept", self.id);
        let answer: Value = match self.client.send(ApiRequest::post(&path, json!({ "tools": tools }))).await? {
            Ok(answer) => answer,
            Err(refusal) => return refusal.finish(self.output),
        };
        match self.output {
            OutputFormat::Json => print(&format!("{}\n", serde_json::to_string_pretty(&answer)?)),
            OutputFormat::Text => {
                let accepted = items(&answer, "accepted").iter().filter_map(Value::as_str);
                accepted.for_each(|name| print(&format!("accepted {name}\n")));
            }
        }
        Ok(CommandOutcome::Well)
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
    say(&format!("accept {tools} as shown, from {id}? (yes/no) "));
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    Ok(typed.trim() == "yes")
}

/// A text whose words may be a stranger's, with nothing in it that moves a cursor or paints over what was shown.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

fn items<'a>(answer: &'a Value, key: &str) -> &'a [Value] {
    answer[key].as_array().map_or(&[], Vec::as_slice)
}

/// The name by which the service knows a tool.
fn name_of(tool: &Value) -> &str {
    tool["name"].as_str().or_else(|| tool["upstream_name"].as_str()).unwrap_or_default()
}

fn server_text(server: &Value) -> String {
    let text = |key: &str| server[key].as_str().unwrap_or("-").to_owned();
    let count = |pins: &[&str]| {
        items(server, "tools").iter().filter(|tool| tool["pin"].as_str().is_some_and(|pin| pins.contains(&pin))).count()
    };
    let (accepted, waiting) = (count(&["accepted"]), count(&["new", "changed"]));
    let (id, state, listed) = (text("id"), text("state"), text("listed_at"));
    let mut out = format!("{id:<24} {state:<12} {accepted} accepted, {waiting} waiting; listed {listed}\n");
    if let Some(trouble) = server["trouble"].as_object() {
        let part = |key: &str| trouble.get(key).and_then(Value::as_str).unwrap_or("-");
        writeln!(out, "    {}: {} (since {})", part("code"), part("message"), part("since")).ok();
    }
    out
}

/// One tool for a person to read before accepting it: what changed, or the whole definition of a new one.
fn tool_text(tool: &Value) -> String {
    let text = |key: &str| tool[key].as_str().unwrap_or("-").to_owned();
    let mut out = format!("  {:<12} {}  {}  {}\n", text("pin"), text("upstream_name"), text("name"), text("effect"));
    let notes = [&tool["reason"]].into_iter().chain(items(tool, "remarks")).filter_map(Value::as_str);
    notes.for_each(|note| out.push_str(&format!("      NOTE {note}\n")));
    let definition = match (&tool["difference"], &tool["definition"]) {
        (Value::String(difference), _) => difference.clone(),
        (_, Value::Null) => String::new(),
        (_, whole) => serde_json::to_string_pretty(whole).unwrap_or_default(),
    };
    definition.lines().for_each(|line| out.push_str(&format!("      {line}\n")));
    out
}
