//! The catalog for people: every tool of both sources, with what helps to choose it, and nothing a tenant cannot have.

use crate::here::{World, embedded, in_process, with_more_to_draw};
use crate::runs_desk::refusal;
use crate::stock;
use catalog::{CatalogEntry, Tool, ToolSource, ToolSpec};
use domain::{Effect, Failure, Tenant};
use policy::Permit;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use testkit::{Actor, Answer, Plan, until};

/// A tool as its author writes one; nothing else in the service knows of it.
struct Weigh;

impl Tool for Weigh {
    const SPEC: ToolSpec = ToolSpec::new("yard_weigh", "yard", Effect::Read)
        .says("Weigh a lot", "Weigh one lot.")
        .hint("For agents that plan loads; the scale is read once a minute.");
    type Args = Map<String, Value>;
    type Output = Map<String, Value>;

    fn effect(_: &Self::Args) -> Effect {
        Effect::Read
    }

    async fn run(&self, _: &Permit, args: Self::Args, _: &catalog::Progress) -> Result<Self::Output, Failure> {
        Ok(args)
    }
}

fn admin(world: &World, tenant: &str) -> Actor {
    world.tenant(tenant).approver().named("paul").scoped("tenant:admin")
}

async fn get(who: &Actor, query: &str) -> Answer {
    who.send(&who.request("GET", &format!("/v1/catalog{query}"))).await
}

async fn listed(who: &Actor, query: &str) -> Value {
    let answer = get(who, query).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn tools(catalog: &Value) -> &[Value] {
    catalog["tools"].as_array().unwrap()
}

fn names(catalog: &Value) -> Vec<String> {
    tools(catalog).iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn find<'a>(catalog: &'a Value, name: &str) -> &'a Value {
    tools(catalog).iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_the_tenant_could_load_is_there_in_catalog_order() {
    let world = with_more_to_draw().await;
    let told = listed(&world.tenant("acme").reader(), "").await;

    let snapshot = world.part(0).tenants.find(&Tenant::parse("acme").unwrap()).unwrap();
    let ours: Vec<String> = snapshot.catalog.entries().iter().map(|entry| entry.name().to_string()).collect();
    assert_eq!(names(&told), ours);
    assert_eq!(told["digest"], snapshot.catalog.digest());
    for (tool, entry) in tools(&told).iter().zip(snapshot.catalog.entries()) {
        let writes = entry.list() == domain::Level::Write;
        assert_eq!(tool["modes"], if writes { json!(["write"]) } else { json!(["read", "write"]) }, "{tool}");
        assert_eq!((&tool["tokens"], &tool["source"]["kind"]), (&json!(entry.tokens()), &json!("built_in")));
        assert_eq!((&tool["effect"], &tool["gated"]), (&json!(entry.definition().most.as_str()), &json!(false)));
        assert!(tool["ui_hint"].as_str().is_some_and(|hint| hint != tool["description"]), "{tool}");
        assert!(tool["input_schema"].is_object() && tool["output_schema"].is_object(), "{tool}");
        assert!(!tool["input_schema"].to_string().contains("x-wire"), "how we write schemas is our own affair");
    }

    let sets = told["toolsets"].as_array().unwrap();
    let sum: u64 =
        sets.iter().flat_map(|set| ["read", "write"].map(|list| set[list]["tokens"].as_u64().unwrap())).sum();
    assert_eq!(sum, tools(&told).iter().map(|tool| tool["tokens"].as_u64().unwrap()).sum::<u64>());
    assert_eq!((&sets[0]["name"], &sets[0]["default"]), (&json!("memory"), &json!(true)));
    assert_eq!(find(&told, "memory_read")["default"], true);
    assert_eq!(find(&told, "memory_forget")["default"], false, "write lists are never there unasked");
    let apart: Vec<&Value> = told["virtual_tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(apart, ["load_toolset", "call_tool", "await_run", "unload_toolset", "search_tools"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_tool_appears_without_anybodys_doing_and_no_model_reads_its_hint() {
    let world = embedded().await;
    let tenant = Tenant::parse(stock::TENANT).unwrap();
    world.part(0).tenants.set_fixed(&tenant, vec![Arc::new(CatalogEntry::of(Weigh).unwrap())]);
    let agent = world.tenant(stock::TENANT).agent();

    let told = listed(&agent, "").await;
    assert_eq!(names(&told), ["yard_weigh"]);
    assert_eq!(find(&told, "yard_weigh")["ui_hint"], Weigh::SPEC.hint);
    assert_eq!(told["toolsets"][0]["name"], "yard");

    let rest = agent.rest();
    let session = rest.open("read").await;
    for format in ["mcp", "openai", "anthropic"] {
        let list = rest.tools(&session, format).await.text();
        assert!(list.contains("yard_weigh") && !list.contains("once a minute"), "{format}: {list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_narrowed_by_toolset_and_by_source() {
    let world = embedded().await;
    let tenant = Tenant::parse(stock::TENANT).unwrap();
    let ours = CatalogEntry::of(Weigh).unwrap();
    let of_server = |id: &str| {
        let mut definition = ours.definition().clone();
        definition.name = domain::ToolName::parse(&format!("mcp_{id}__look")).unwrap();
        definition.toolset = domain::ToolsetName::parse(&format!("mcp_{id}")).unwrap();
        definition.source = ToolSource::Server { id: id.to_owned(), tool: "look!".to_owned() };
        definition.hint = None;
        stock::outside(definition)
    };
    let all = vec![of_server("wiki"), of_server("maps"), Arc::new(CatalogEntry::of(Weigh).unwrap())];
    world.part(0).tenants.set_fixed(&tenant, all);
    let agent = world.tenant(stock::TENANT).agent();

    for (query, expected) in [
        ("?source=built_in", vec!["yard_weigh"]),
        ("?source=server", vec!["mcp_wiki__look", "mcp_maps__look"]),
        ("?source=server:maps", vec!["mcp_maps__look"]),
        ("?toolset=mcp_wiki", vec!["mcp_wiki__look"]),
        ("?toolset=mcp_wiki&source=built_in", vec![]),
        ("?source=server:nobody", vec![]),
    ] {
        assert_eq!(names(&listed(&agent, query).await), expected, "{query}");
    }
    let wiki = listed(&agent, "?source=server:wiki").await;
    assert_eq!(tools(&wiki)[0]["source"], json!({ "kind": "server", "id": "wiki", "tool": "look!" }));
    assert_eq!(wiki["toolsets"].as_array().unwrap().len(), 1, "and the totals are of what is listed");
    assert_eq!(refusal(&get(&agent, "?toolset=mcp_wik").await), (404, "unknown_toolset".into()));
    assert_eq!(refusal(&get(&agent, "?source=elsewhere").await), (400, "invalid_request".into()));
    assert_eq!(refusal(&get(&agent, "?set=memory").await), (400, "invalid_request".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenants_rules_are_told_and_what_it_cannot_have_is_not_there() {
    let rules = "policy: { require_approval: ['memory_read', 'memory_*:runbooks'], deny: [memory_history] }";
    let world = Plan::embedded().tenant("acme", rules).tenant("library", "mode: read").start(in_process()).await;
    let told = listed(&world.tenant("acme").agent(), "").await;
    let read = find(&told, "memory_read");
    let asks = |pattern: &str| json!({ "pattern": pattern, "on_reject": "continue" });
    assert_eq!(
        (&read["gated"], &read["gates"]),
        (&json!(true), &json!([asks("memory_read"), asks("memory_*:runbooks")]))
    );
    assert!(!names(&told).contains(&"memory_history".to_owned()));

    let library = listed(&world.tenant("library").agent(), "").await;
    assert_eq!(library["mode"], "read");
    assert!(tools(&library).iter().all(|tool| tool["effect"] == "read"), "nothing there could ever be loaded to write");
    assert!(names(&library).contains(&"memory_history".to_owned()), "the rules of one tenant are no other's");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_catalog_is_not_sent_again_and_a_changed_rule_is() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let first = get(&agent, "").await;
    let tag = first.header("etag").unwrap().to_owned();
    let again = async |query: &str| {
        let request = agent.request("GET", &format!("/v1/catalog{query}"));
        agent.send(&request.header("If-None-Match", format!("\"nothing\", {tag}"))).await
    };
    let same = again("").await;
    assert_eq!((same.status, same.text().as_str(), same.header("etag")), (304, "", Some(tag.as_str())));
    assert_eq!(again("?toolset=memory&source=built_in").await.status, 304, "these very bytes");
    assert_eq!(again("?source=server").await.status, 200);

    // What may be asked for a run already is no other definition, and is told all the same.
    world.configure("acme", "policy: { require_approval: [memory_forget] }");
    let changed = until("the rule", async || Some(again("").await).filter(|answer| answer.status == 200)).await;
    assert_eq!(find(&changed.json(), "memory_forget")["gated"], true);
    assert_eq!(changed.json()["digest"], first.json()["digest"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_catalogs_come_in_pages_that_fit_only_their_own_list() {
    let world = embedded().await;
    stock::install_wide(world.part(0), 250);
    let agent = world.tenant(stock::TENANT).agent();
    let (mut seen, mut query, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = listed(&agent, &query).await;
        assert_eq!(page.get("virtual_tools").is_some(), pages == 0, "told once");
        seen.extend(names(&page));
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("?cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!((pages, seen.len(), seen.iter().collect::<HashSet<_>>().len()), (3, 250, 250));

    let cursor = listed(&agent, "").await["next_cursor"].as_str().unwrap().to_owned();
    for query in [format!("?toolset=stock&cursor={cursor}"), "?cursor=AAAA".to_owned(), format!("?cursor={cursor}A")] {
        assert_eq!(refusal(&get(&agent, &query).await), (400, "bad_cursor".into()), "{query}");
    }
    let other = world.tenant("acme").agent();
    assert_eq!(refusal(&get(&other, &format!("?cursor={cursor}")).await), (400, "bad_cursor".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_uses_tools_or_sets_the_tenant_up_may_look() {
    let world = embedded().await;
    let people = world.tenant("acme");
    for who in [people.agent(), people.reader(), admin(&world, "acme"), people.agent().scoped("tools:write")] {
        assert_eq!(get(&who, "").await.status, 200);
    }
    for who in [people.approver(), people.agent().scoped("audit:read"), people.agent().scoped("")] {
        assert_eq!(refusal(&get(&who, "").await), (403, "insufficient_scope".into()));
    }
}
