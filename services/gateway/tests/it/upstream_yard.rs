//! The yard of external servers: an operator's catalog on disk, tenants that choose from it, and how one speaks to them.
//!
//! Whatever the files and the answers look like is known here and nowhere else in these tests.

use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use testkit::patience::PATIENCE;
use testkit::upstream::McpServer;
use testkit::{Actor, Answer, Legacy, Outcome, Plan, until};

/// How often a session asks again for tools that are not there yet.
const AGAIN: Duration = Duration::from_millis(20);

/// An operator's catalog.
pub(crate) struct Shelf(TempDir);

impl Shelf {
    /// An empty one.
    pub(crate) fn new() -> Shelf {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("servers")).unwrap();
        Shelf(folder)
    }

    /// One more entry at an address, with further lines.
    #[must_use]
    pub(crate) fn at(self, name: &str, url: &str, more: &str) -> Shelf {
        self.entry(name, &format!("url: \"{url}\"\n{more}"))
    }

    /// One more entry for a double.
    #[must_use]
    pub(crate) fn of(self, name: &str, server: &McpServer, more: &str) -> Shelf {
        self.at(name, &server.url(), more)
    }

    /// One more entry for a double whose own word on its tools is taken.
    #[must_use]
    pub(crate) fn trusted(self, name: &str, server: &McpServer) -> Shelf {
        self.of(name, server, "trust_annotations: true\ndeadline: 1s")
    }

    /// One more entry, as it stands.
    #[must_use]
    pub(crate) fn entry(self, name: &str, lines: &str) -> Shelf {
        let file = self.0.path().join("servers").join(format!("{name}.server.yaml"));
        std::fs::write(file, format!("name: {name}\n{lines}\n")).unwrap();
        self
    }

    /// Where it lies.
    pub(crate) fn folder(&self) -> String {
        self.0.path().display().to_string()
    }

    /// A plan whose service reads this catalog.
    pub(crate) fn under(&self, plan: Plan) -> Plan {
        plan.setting("QM_UPSTREAMS__CATALOG", &self.folder()).setting("QM_APPROVALS__SWEEP_EVERY", "50ms")
    }
}

/// The file of a tenant that uses these entries as they are, with further lines.
pub(crate) fn using(names: &[&str], more: &str) -> String {
    let servers: String = names.iter().map(|name| format!("- {{ use: {name} }}\n")).collect();
    format!("limits: {{ calls_in_flight: 1000, calls_per_minute: 1000000 }}\n{more}\nservers:\n{servers}")
}

/// Our name for a tool of a server.
pub(crate) fn ours(server: &str, tool: &str) -> String {
    format!("mcp_{server}__{tool}")
}

/// A session that has loaded a server's tools, `wiki` or `wiki:write`, once they were discovered.
pub(crate) async fn drawn(actor: &Actor, server: &str) -> Legacy {
    let client = actor.legacy().await;
    draw(&client, server).await;
    client
}

/// Loads a server's tools into a session, once they were discovered.
pub(crate) async fn draw(client: &Legacy, server: &str) {
    let (name, write) = match server.strip_suffix(":write") {
        Some(name) => (name, true),
        None => (server, false),
    };
    let arguments = json!({ "toolset": format!("mcp_{name}"), "include_write_tools": write });
    let beginning = ours(name, "");
    // What was said last tells more than that it took too long.
    let mut last = String::new();
    let looking = async {
        loop {
            let loaded = client.call("load_toolset", arguments.clone()).await;
            if loaded.code() == "ok" && client.list().await.iter().any(|tool| tool.starts_with(&beginning)) {
                return;
            }
            last = loaded.message.to_string();
            tokio::time::sleep(AGAIN).await;
        }
    };
    let drawn = tokio::time::timeout(PATIENCE, looking).await;
    assert!(drawn.is_ok(), "the tools of {name} did not come; load_toolset said last: {last}");
}

/// Somebody who administers the tenant.
pub(crate) fn admin(of: &Actor) -> Actor {
    of.named("paul").scoped("tenant:admin")
}

/// How a server of the tenant stands.
pub(crate) async fn standing(admin: &Actor, server: &str) -> Value {
    let answer = admin.send(&admin.request("GET", "/v1/tenant/servers")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let servers = answer.json()["servers"].clone();
    let found = servers.as_array().into_iter().flatten().find(|each| each["id"] == server);
    found.unwrap_or_else(|| panic!("no {server} in {servers}")).clone()
}

/// Waits until a server has been listed, or has failed to be, and gives how it stands.
pub(crate) async fn settled(admin: &Actor, server: &str) -> Value {
    until(&format!("{server} to be listed or in trouble"), async || {
        let told = standing(admin, server).await;
        (!told["listed_at"].is_null() || !told["trouble"].is_null()).then_some(told)
    })
    .await
}

/// How a tool of a server stands: its pin, and why it is refused.
pub(crate) fn pin(standing: &Value, tool: &str) -> (String, String) {
    let tools = standing["tools"].as_array().into_iter().flatten();
    let found = tools
        .into_iter()
        .find(|each| each["upstream_name"] == tool)
        .unwrap_or_else(|| panic!("no {tool} in {standing}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("pin"), text("reason"))
}

/// Accepts what a server shows of one tool now.
pub(crate) async fn accept(admin: &Actor, server: &str, tool: &str) -> Answer {
    let told = standing(admin, server).await;
    let tools = told["tools"].as_array().into_iter().flatten();
    let digest = tools.into_iter().find(|each| each["upstream_name"] == tool).map(|each| each["digest"].clone());
    let body = json!({ "tools": [{ "name": tool, "digest": digest }] });
    admin.send(&admin.post(&format!("/v1/tenant/servers/{server}/accept"), &body)).await
}

/// What a call that read something brought, as text: the structured part.
pub(crate) fn brought(outcome: &Outcome) -> String {
    outcome.ok().to_string()
}

/// Has a secret of the tenant kept in the store.
pub(crate) async fn put_secret(admin: &Actor, name: &str, value: &str) -> Answer {
    let request = admin.request("PUT", &format!("/v1/tenant/secrets/{name}"));
    admin.send(&request.header("Content-Type", "text/plain").body(value)).await
}
