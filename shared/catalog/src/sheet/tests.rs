use super::*;
use crate::{CatalogRules, ErasedTool, ParseResult, ToolDefinition};
use domain::{Code, Failure, Tenant, ToolName, ToolsetName};
use serde_json::json;
use std::sync::Arc;

struct Inert;

impl ErasedTool for Inert {
    fn understand(self: Arc<Self>, _: Value) -> ParseResult {
        Err(Failure::new(Code::Internal, "never run"))
    }
}

fn definition(name: &str, most: Effect) -> ToolDefinition {
    ToolDefinition {
        name: ToolName::parse(name).unwrap(),
        toolset: ToolsetName::parse("yard").unwrap(),
        title: "A tool".into(),
        description: "For a test.".into(),
        hint: None,
        source: ToolSource::BuiltIn,
        most,
        idempotent: true,
        open_world: false,
        deadline: Duration::from_millis(1_500),
        outside_text: false,
        reviewed: None,
        waits: false,
        strict: json!({ "type": "object", "properties": { "n": { "type": "integer", "x-wire": "plain" } } }),
        wire: r#"{"type":"object"}"#.into(),
        output: None,
        needs_client: None,
    }
}

fn catalog(tools: Vec<ToolDefinition>, defaults: &[&str]) -> Catalog {
    let defaults: Vec<ToolsetName> = defaults.iter().map(|name| ToolsetName::parse(name).unwrap()).collect();
    let tools = tools.into_iter().map(|d| Arc::new(CatalogEntry::new(d, Arc::new(Inert)).unwrap()));
    Catalog::build(&Tenant::parse("acme").unwrap(), tools, &defaults, CatalogRules::default()).unwrap()
}

fn told(catalog: &Catalog) -> Vec<Value> {
    catalog.sheets().map(|sheet| serde_json::to_value(sheet).unwrap()).collect()
}

#[test]
fn a_sheet_says_what_helps_to_choose_and_nothing_of_how_we_write_schemas() {
    let hint = "Give it to agents that look after the yard.";
    let look = ToolDefinition { hint: Some(hint.into()), ..definition("yard_look", Effect::Read) };
    let reviewed = Some(Duration::from_secs(60));
    let source = ToolSource::Server { id: "yard".into(), tool: "clear it".into() };
    let clear = ToolDefinition { source, reviewed, ..definition("mcp_yard__clear_it", Effect::Disrupt) };
    let sheets = told(&catalog(vec![clear, look], &["yard"]));
    let tokens =
        crate::tokens::count(r#"{"name":"yard_look","description":"For a test.","inputSchema":{"type":"object"}}"#);
    assert_eq!(
        sheets[0],
        json!({
            "name": "yard_look", "toolset": "yard", "source": { "kind": "built_in" }, "title": "A tool",
            "description": "For a test.", "ui_hint": hint, "effect": "read", "modes": ["read", "write"],
            "list": "read", "default": true, "idempotent": true, "open_world": false, "deadline_ms": 1_500,
            "tokens": tokens, "input_schema": { "type": "object", "properties": { "n": { "type": "integer" } } },
        })
    );
    assert_eq!(sheets[1]["source"], json!({ "kind": "server", "id": "yard", "tool": "clear it" }));
    assert_eq!((&sheets[1]["modes"], &sheets[1]["default"]), (&json!(["write"]), &json!(false)));
    assert_eq!(sheets[1]["reviewed_within_ms"], json!(60_000));
    assert_eq!(
        sheets[1]["input_schema"]["properties"]["n"]["x-wire"], "plain",
        "what a server says is shown as it says it"
    );
}

#[test]
fn hints_are_for_people_and_change_nothing_a_model_reads() {
    let plain = definition("yard_look", Effect::Read);
    let hinted = ToolDefinition { hint: Some("Mind the gap.".into()), ..plain.clone() };
    let (plain, hinted) = (catalog(vec![plain], &[]), catalog(vec![hinted], &[]));
    assert_eq!(plain.digest(), hinted.digest());
    assert_eq!(plain.entries()[0].tokens(), hinted.entries()[0].tokens());
    let entry = &hinted.entries()[0];
    let read = [entry.mcp().to_owned(), entry.brief().to_owned(), entry.issue()];
    assert!(read.iter().all(|text| !text.contains("gap")));
}

#[test]
fn what_a_server_changes_waits_for_a_person_so_its_result_may_be_a_run() {
    let strict_output = json!({ "type": "object", "properties": { "n": {} }, "required": ["n"] });
    let of = |source: ToolSource, most| {
        let output = Some(strict_output.clone());
        let entry =
            CatalogEntry::new(ToolDefinition { source, output, ..definition("a", most) }, Arc::new(Inert)).unwrap();
        entry.definition().output.clone().unwrap()
    };
    let server = || ToolSource::Server { id: "yard".into(), tool: "a".into() };
    assert_eq!(of(server(), Effect::Read), strict_output, "a read answers what it says");
    assert!(of(server(), Effect::Change).get("required").is_none());
    assert_eq!(of(ToolSource::BuiltIn, Effect::Change), strict_output, "whoever wrote it has thought of that");
}

#[test]
fn the_virtual_tools_have_sheets_of_their_own() {
    let catalog = catalog(vec![definition("yard_look", Effect::Read)], &[]);
    let names: Vec<&str> = catalog.virtual_sheets().map(|sheet| sheet.name).collect();
    assert_eq!(names, ["load_toolset", "call_tool", "await_run", "unload_toolset", "search_tools"]);
    let load = catalog.virtual_sheets().next().unwrap();
    assert!(load.tokens > 0 && load.input_schema.to_string().contains("yard"));
}
