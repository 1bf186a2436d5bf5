//! `servers`: external MCP servers in a terminal: where their tools stand, what changed, and a yes to it.
//!
//! Nothing is accepted that was not shown first: what is sent along are the digests of what stands on the screen, so a
//! definition that changes between the look and the yes stays where it is.

use crate::cli::{OutputFormat, ServersAction, ServersCommand};
use crate::commands::desk::{ApiAnswer, ApiClient};
use crate::commands::{CommandOutcome, print, runtime, say};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::BufRead;

pub(super) fn run(args: &ServersCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let desk = ApiClient::open(&args.url, &args.token_file)?;
    runtime()?.block_on(async {
        match &args.action {
            None | Some(ServersAction::List) => list(&desk, output).await,
            Some(ServersAction::Show { id }) => show(&desk, id, output).await,
            Some(ServersAction::Accept { id, tool, yes }) => {
                AcceptAnswer { desk: &desk, id, named: tool, sure: *yes, output }.run().await
            }
        }
    })
}

async fn list(desk: &ApiClient, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let told = desk.send("GET", "/v1/tenant/servers", None).await?;
    if !told.ok() || output == OutputFormat::Json {
        return told.finish(output);
    }
    let servers = items(&told.body, "servers");
    if servers.is_empty() {
        say("the tenant has no external servers\n");
    }
    servers.iter().for_each(|server| print(&plain(&line(server))));
    Ok(CommandOutcome::Well)
}

async fn show(desk: &ApiClient, id: &str, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let told = look(desk, id).await?;
    if !told.ok() || output == OutputFormat::Json {
        return told.finish(output);
    }
    print(&plain(&line(&told.body)));
    items(&told.body, "tools").iter().for_each(|tool| print(&plain(&sheet(tool))));
    Ok(CommandOutcome::Well)
}

async fn look(desk: &ApiClient, id: &str) -> anyhow::Result<ApiAnswer> {
    // An id of another form cannot name a server, and must not name another address either.
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    anyhow::ensure!(!id.is_empty() && id.bytes().all(plain), "a server's id is made of a-z, 0-9 and '-'");
    desk.send("GET", &format!("/v1/tenant/servers/{id}"), None).await
}

/// One answer of a person to what a server shows.
struct AcceptAnswer<'a> {
    desk: &'a ApiClient,
    id: &'a str,
    named: &'a [String],
    sure: bool,
    output: OutputFormat,
}

impl AcceptAnswer<'_> {
    async fn run(&self) -> anyhow::Result<CommandOutcome> {
        let told = look(self.desk, self.id).await?;
        if !told.ok() {
            return told.finish(self.output);
        }
        let Some(chosen) = self.choose(items(&told.body, "tools")) else { return Ok(CommandOutcome::WithNo) };
        if chosen.is_empty() {
            say("nothing waits\n");
            return Ok(CommandOutcome::Well);
        }
        // Beside the answer, so that what a program reads stays what the service said.
        chosen.iter().for_each(|tool| say(&plain(&sheet(tool))));
        if !self.sure && !confirmed(chosen.len(), self.id)? {
            say("nothing was accepted\n");
            return Ok(CommandOutcome::WithNo);
        }
        let tools: Vec<Value> =
            chosen.iter().map(|tool| json!({ "name": called(tool), "digest": tool["digest"] })).collect();
        let address = format!("/v1/tenant/servers/{}/accept", self.id);
        let told = self.desk.send("POST", &address, Some(json!({ "tools": tools }))).await?;
        if told.ok() && self.output == OutputFormat::Text {
            let accepted = items(&told.body, "accepted").iter().filter_map(Value::as_str);
            accepted.for_each(|name| print(&format!("accepted {name}\n")));
        }
        told.finish(self.output)
    }

    /// The tools that are meant; `None` if one was named that does not wait.
    fn choose<'s>(&self, tools: &'s [Value]) -> Option<Vec<&'s Value>> {
        let is = |tool: &Value, name: &str| tool["name"] == name || tool["upstream_name"] == name;
        let waiting: Vec<&Value> =
            tools.iter().filter(|tool| tool["pin"] == "new" || tool["pin"] == "changed").collect();
        if let Some(name) = self.named.iter().find(|name| !waiting.iter().any(|tool| is(tool, name))) {
            say(&format!("no tool `{name}` of {} waits to be accepted\n", self.id));
            return None;
        }
        let meant = |tool: &&Value| self.named.is_empty() || self.named.iter().any(|name| is(tool, name));
        Some(waiting.into_iter().filter(meant).collect())
    }
}

fn confirmed(tools: usize, id: &str) -> anyhow::Result<bool> {
    say(&format!("accept {tools} as shown, from {id}? (yes/no) "));
    let mut said = String::new();
    std::io::stdin().lock().read_line(&mut said)?;
    Ok(said.trim() == "yes")
}

/// A text whose words may be a stranger's, with nothing in it that moves a cursor or paints over what was shown.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

fn items<'a>(told: &'a Value, key: &str) -> &'a [Value] {
    told[key].as_array().map_or(&[], Vec::as_slice)
}

/// The name by which the service is told of a tool.
fn called(tool: &Value) -> &str {
    tool["name"].as_str().or_else(|| tool["upstream_name"].as_str()).unwrap_or_default()
}

fn line(server: &Value) -> String {
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

/// One tool for a person to read before the yes: what changed, or the whole of what is new.
fn sheet(tool: &Value) -> String {
    let text = |key: &str| tool[key].as_str().unwrap_or("-").to_owned();
    let mut out = format!("  {:<12} {}  {}  {}\n", text("pin"), text("upstream_name"), text("name"), text("effect"));
    let notes = [&tool["reason"]].into_iter().chain(items(tool, "remarks")).filter_map(Value::as_str);
    notes.for_each(|note| out.push_str(&format!("      NOTE {note}\n")));
    let whole = || serde_json::to_string_pretty(&tool["definition"]).unwrap_or_default();
    let difference = tool["difference"].as_str().map(str::to_owned);
    let shown = difference.unwrap_or_else(|| if tool["definition"].is_null() { String::new() } else { whole() });
    shown.lines().for_each(|line| out.push_str(&format!("      {line}\n")));
    out
}
