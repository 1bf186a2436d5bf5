//! `/console/catalog`: toolsets and tools of the tenant, and why somebody can or cannot use one.

use super::oidc::encode;
use super::person::ConsolePerson;
use super::reply::{self, ConsoleAnswer, DrawnPage};
use super::schema_table;
use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::catalog::{self as desk, CatalogQuery};
use actix_web::HttpResponse;
use actix_web::web::{Data, Path, Query};
use console::catalog::{self as page, CatalogView, ToolRow, ToolView, ToolsetRow, UseFor, UseStep, tool_address};
use console::{BASE, Screen};
use domain::{Code, Effect, Failure, Scopes, Switch, SwitchSubject, TokenScope, outcome};
use serde::Deserialize;
use serde_json::Value;

/// The longest name of a tool that is looked for.
const LONGEST_NAME: usize = 128;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CatalogScreenQuery {
    toolset: String,
    cursor: String,
    tool: String,
}

/// `GET /console/catalog?toolset=&cursor=&tool=`.
pub(super) async fn list(
    person: ConsolePerson,
    query: Query<CatalogScreenQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_catalog",
        Box::pin(async {
            let tool = query.tool.trim();
            if !tool.is_empty() {
                return Ok(ConsoleAnswer::SeeOther(tool_address(&tool[..tool.floor_char_boundary(LONGEST_NAME)])));
            }
            let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            // The totals of all toolsets stand on the first page of the whole list.
            let whole = read(desk::page(&person.authed, &CatalogQuery::default(), &gateway).await?)?;
            let chosen = some(&query.toolset);
            let (tools, next) = match &chosen {
                None => (Vec::new(), None),
                Some(name) => {
                    let wanted = CatalogQuery::of_toolset(name.clone(), some(&query.cursor));
                    let page = read(desk::page(&person.authed, &wanted, &gateway).await?)?;
                    let next = page["next_cursor"]
                        .as_str()
                        .map(|next| format!("{BASE}/catalog?toolset={}&cursor={}", encode(name), encode(next)));
                    (array(&page["tools"]).filter_map(row).collect(), next)
                }
            };
            let view = CatalogView {
                toolsets: array(&whole["toolsets"]).map(toolset).collect(),
                control: array(&whole["virtual_tools"])
                    .map(|tool| (text(&tool["name"]), text(&tool["title"]), number(&tool["tokens"])))
                    .collect(),
                waiting: array(&whole["quarantine"]).map(|tool| (text(&tool["server"]), text(&tool["tool"]))).collect(),
                read_only: whole["mode"] == "read",
                chosen,
                tools,
                next,
            };
            Ok(DrawnPage::ok(Screen::Catalog, "Catalog", false, page::page(&view)).into())
        }),
    )
    .await
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ToolQuery {
    #[serde(default, rename = "for")]
    who: String,
}

/// `GET /console/catalog/{tool}?for=`.
pub(super) async fn show(
    person: ConsolePerson,
    name: Path<String>,
    query: Query<ToolQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    reply::screen(
        &gateway,
        &person,
        "console_catalog_tool",
        Box::pin(async {
            let authed = &person.authed;
            let who = who(&query.who)?;
            let scopes = match who {
                UseFor::Me => authed.caller.scopes,
                UseFor::Reader => Scopes::parse("tools:read"),
                UseFor::Writer => Scopes::parse("tools:read tools:write"),
            };
            let found = desk::tool(authed, &name, &gateway).await?.map(read).transpose()?;
            let (row, steps, near) = match &found {
                Some(tool) => (row(tool), steps(&gateway, authed, tool, scopes), Vec::new()),
                None => {
                    let names: Vec<&str> =
                        authed.snapshot.catalog.entries().iter().map(|e| e.definition().name.as_str()).collect();
                    (None, vec![absent(authed, &name)], outcome::near(&name, names.iter().copied()))
                }
            };
            let tool = found.unwrap_or_default();
            let view = ToolView {
                row,
                name: name.chars().take(LONGEST_NAME).collect(),
                description: text(&tool["description"]),
                facts: facts(&tool),
                arguments: schema_table::rows(&tool["input_schema"]),
                who,
                steps,
                near,
            };
            Ok(DrawnPage::ok(Screen::Catalog, view.name.clone(), false, page::tool(&view)).into())
        }),
    )
    .await
}

fn who(text: &str) -> Result<UseFor, Failure> {
    let known = UseFor::ALL.into_iter().find(|who| who.as_str() == text);
    let known = known.or(text.is_empty().then_some(UseFor::Me));
    known.ok_or_else(|| Failure::new(Code::InvalidRequest, "it is explained for me, reader or writer"))
}

/// Why a name is not in the catalog.
fn absent(authed: &AuthedRequest, name: &str) -> UseStep {
    let text = if authed.snapshot.withheld.contains(name) {
        "The tool is withheld: its external server changed its definition, and nobody has accepted that."
    } else {
        "The tenant's catalog has no tool of this name. Its toolset may not be configured, or a rule denies every call of it."
    };
    UseStep { open: false, text: text.to_owned() }
}

/// What stands between somebody with these rights and a call, in the order in which a call is judged.
fn steps(gateway: &Gateway, authed: &AuthedRequest, tool: &Value, scopes: Scopes) -> Vec<UseStep> {
    let (name, toolset) = (text(&tool["name"]), text(&tool["toolset"]));
    let right = right(tool);
    let has = scopes.iter().any(|scope| scope.as_str() == right);
    let mut steps = vec![UseStep {
        open: has,
        text: if has { format!("The right {right} is there.") } else { format!("The right {right} is missing.") },
    }];
    let in_force = gateway.store.switches().in_force(&authed.caller.tenant, authed_now(gateway));
    let server = tool["source"]["id"].as_str();
    let switches =
        domain::KnownSwitches::switches(&in_force).iter().filter(|switch| concerns(switch, &name, &toolset, server));
    let effect = effect(tool);
    for switch in switches {
        let open = switch.mode == domain::SwitchMode::ReadOnly && effect == Effect::Read;
        let text = format!(
            "A kill switch on {} lets {} through: {}",
            switch.on,
            if switch.mode == domain::SwitchMode::Stop { "nothing" } else { "only reads" },
            switch.reason
        );
        steps.push(UseStep { open, text });
    }
    steps.push(UseStep {
        open: true,
        text: match (tool["default"] == true, tool["list"] == "write") {
            (true, _) => format!("The toolset {toolset} is loaded when a session opens."),
            (false, false) => format!("The agent loads the toolset {toolset} first."),
            (false, true) => format!("The agent loads the toolset {toolset} with its write tools first."),
        },
    });
    for rule in array(&tool["denied"]).filter_map(Value::as_str) {
        steps.push(UseStep { open: true, text: format!("A rule refuses some of its calls: {rule}") });
    }
    if effect > Effect::Read {
        steps
            .push(UseStep { open: true, text: "Calls that change something wait for a person's approval.".to_owned() });
    }
    for gate in array(&tool["gates"]) {
        steps.push(UseStep { open: true, text: format!("A rule asks a person: {}", text(&gate["pattern"])) });
    }
    steps
}

fn concerns(switch: &Switch, name: &str, toolset: &str, server: Option<&str>) -> bool {
    match &switch.on {
        SwitchSubject::Tenant => true,
        SwitchSubject::Tool(tool) => tool.as_str() == name,
        SwitchSubject::Toolset(set) => set.as_str() == toolset,
        SwitchSubject::Server(_) => server.is_some_and(|server| switch.on.covers_server(server)),
        // Which target a call means stands in its arguments.
        SwitchSubject::Target(_) => server.is_some_and(|server| switch.on.covers_server(server)),
    }
}

fn authed_now(gateway: &Gateway) -> domain::Moment {
    gateway.duties.now().unwrap_or_else(|| gateway.clock.now())
}

/// Promises about a tool.
fn facts(tool: &Value) -> Vec<(&'static str, String)> {
    let yes = |value: &Value, words: &str| (*value == true).then(|| words.to_owned());
    let facts = [
        ("Hint", tool["ui_hint"].as_str().map(str::to_owned)),
        ("Server", tool["source"]["id"].as_str().map(str::to_owned)),
        ("Accepted", tool["pin"].as_str().map(str::to_owned)),
        ("Deadline", tool["deadline_ms"].as_u64().map(|millis| format!("{} s", millis / 1_000))),
        ("After a crash", yes(&tool["idempotent"], "it may be repeated")),
        ("Reach", yes(&tool["open_world"], "beyond this service")),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The right that a call needs: a tool of the write list needs the right to write even for arguments that only read.
fn right(tool: &Value) -> &'static str {
    let writes = tool["list"] == "write" || effect(tool) > Effect::Read;
    if writes { TokenScope::ToolsWrite.as_str() } else { TokenScope::ToolsRead.as_str() }
}

/// The most that a call can do; what is not understood counts as the worst.
fn effect(tool: &Value) -> Effect {
    let known = [Effect::Read, Effect::Change, Effect::Disrupt];
    known.into_iter().find(|effect| tool["effect"] == effect.as_str()).unwrap_or(Effect::Disrupt)
}

fn row(tool: &Value) -> Option<ToolRow> {
    Some(ToolRow {
        name: tool["name"].as_str()?.to_owned(),
        toolset: text(&tool["toolset"]),
        title: text(&tool["title"]),
        effect: effect(tool),
        right: right(tool),
        tokens: number(&tool["tokens"]),
        server: tool["source"]["id"].as_str().map(str::to_owned),
        ruled: tool["gated"] == true || array(&tool["denied"]).next().is_some(),
    })
}

fn toolset(total: &Value) -> ToolsetRow {
    let sum = |list: &Value| (number(&list["tools"]), number(&list["tokens"]));
    ToolsetRow {
        name: text(&total["name"]),
        default: total["default"] == true,
        read: sum(&total["read"]),
        write: sum(&total["write"]),
    }
}

fn read(text: String) -> Result<Value, Failure> {
    serde_json::from_str(&text).map_err(|_| Failure::new(Code::Internal, "the catalog cannot be shown"))
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}
