use super::*;
use crate::{CompiledTool, ErasedCall, ErasedTool, ToolDefinition, ToolSource};
use domain::{Effect, ToolName};
use serde_json::json;
use std::time::Duration;

struct Inert;

impl ErasedTool for Inert {
    fn understand(self: Arc<Self>, _: Value) -> Result<(Effect, Option<String>, Box<dyn ErasedCall>), Failure> {
        Err(Failure::new(domain::Code::Internal, "never run"))
    }
}

fn set(name: &str) -> ToolsetName {
    ToolsetName::parse(name).unwrap()
}

fn tool(name: &str, toolset: &str, most: Effect) -> Arc<CatalogEntry> {
    let definition = ToolDefinition {
        name: ToolName::parse(name).unwrap(),
        toolset: set(toolset),
        title: name.to_owned(),
        description: "For a test.".into(),
        hint: None,
        source: ToolSource::BuiltIn,
        most,
        idempotent: false,
        open_world: true,
        deadline: Duration::from_secs(1),
        outside_text: false,
        reviewed: None,
        waits: false,
        strict: json!({ "type": "object" }),
        wire: r#"{"type":"object"}"#.into(),
        output: None,
        needs_client: None,
    };
    Arc::new(CatalogEntry::new(definition, Arc::new(Inert)).unwrap())
}

fn tools() -> Vec<Arc<CatalogEntry>> {
    vec![
        tool("helm_upgrade", "helm", Effect::Change),
        tool("helm_list", "helm", Effect::Read),
        tool("k8s_get", "k8s", Effect::Read),
        tool("k8s_delete", "k8s", Effect::Disrupt),
        tool("memory_read", "memory", Effect::Read),
    ]
}

fn catalog(tenant: &str, deny: &[&str]) -> Catalog {
    let deny: Vec<Pattern> = deny.iter().map(|p| Pattern::parse(p).unwrap()).collect();
    Catalog::build(
        &Tenant::parse(tenant).unwrap(),
        tools(),
        &[set("memory"), set("k8s")],
        CatalogRules { deny: &deny, gates: &[] },
    )
    .unwrap()
}

fn names(catalog: &Catalog, loaded: &LoadedToolsets, view: ListAudience) -> Vec<String> {
    catalog.listed(loaded, view).map(|line| line.name.to_owned()).collect()
}

#[test]
fn the_default_list_is_the_read_lists_of_the_default_toolsets_and_load_toolset() {
    let catalog = catalog("acme", &[]);
    let defaults = catalog.defaults().clone();
    assert_eq!(
        names(&catalog, &defaults, ListAudience::Growing { grown: false }),
        ["memory_read", "k8s_get", "load_toolset"]
    );
    assert_eq!(
        names(&catalog, &defaults, ListAudience::Fixed),
        ["memory_read", "k8s_get", "load_toolset", "call_tool", "await_run"]
    );
}

#[test]
fn what_is_loaded_comes_behind_what_was_there() {
    let catalog = catalog("acme", &[]);
    let mut loaded = catalog.defaults().clone();
    let before = names(&catalog, &loaded, ListAudience::Growing { grown: true });
    loaded.raise(set("k8s"), Level::Write);
    loaded.raise(set("helm"), Level::Read);
    let after = names(&catalog, &loaded, ListAudience::Growing { grown: true });
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after[before.len()..], ["k8s_delete", "helm_list"]);
}

#[test]
fn a_denied_tool_does_not_exist() {
    let catalog = catalog("acme", &["k8s_*", "helm_list:secrets"]);
    assert!(matches!(catalog.find("k8s_get"), NameMatch::Nothing));
    assert!(matches!(catalog.find("helm_list"), NameMatch::Tool(_)), "a rule about some arguments hides nothing");
    assert_eq!(catalog.toolsets().iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["memory", "helm"]);
}

#[test]
fn the_digest_names_tenant_and_definitions() {
    assert_eq!(catalog("acme", &[]).digest(), catalog("acme", &[]).digest());
    assert_ne!(catalog("acme", &[]).digest(), catalog("other", &[]).digest());
    assert_ne!(catalog("acme", &[]).digest(), catalog("acme", &["k8s_delete"]).digest());
}

#[test]
fn tenants_with_the_same_definitions_share_everything_but_their_targets() {
    let (acme, other) = (catalog("acme", &[]), catalog("other", &[]));
    assert!(Arc::ptr_eq(acme.parts(), other.parts()));
    for (one, two) in acme.entries().iter().zip(other.entries()) {
        assert!(Arc::ptr_eq(one.shape(), two.shape()), "{}", one.name());
        assert!(!Arc::ptr_eq(one, two), "each has its own targets");
    }
    assert!(!Arc::ptr_eq(acme.parts(), catalog("acme", &["k8s_delete"]).parts()));
    let defaults = Catalog::build(&Tenant::parse("acme").unwrap(), tools(), &[set("k8s")], CatalogRules::default());
    assert!(!Arc::ptr_eq(acme.parts(), defaults.unwrap().parts()));
}

#[test]
fn the_digest_names_what_a_server_calls_its_tool() {
    let digest = |own: &str| {
        let source = ToolSource::Server { id: "wiki".into(), tool: own.into() };
        let definition = ToolDefinition { source, ..tool("mcp_wiki__a_b", "wiki", Effect::Read).definition().clone() };
        let entry = Arc::new(CatalogEntry::new(definition, Arc::new(Inert)).unwrap());
        Catalog::build(&Tenant::parse("acme").unwrap(), [entry], &[], CatalogRules::default())
            .unwrap()
            .digest()
            .to_owned()
    };
    assert_eq!(digest("a b"), digest("a b"));
    assert_ne!(digest("a b"), digest("a.b"), "both have the same name here");
}

#[test]
fn a_cached_list_is_keyed_by_every_bit_of_its_catalogs_digest() {
    let catalog = catalog("acme", &[]);
    assert_eq!(domain::json::hex(&catalog.key()), catalog.shared_digest());
}

#[test]
fn every_loaded_set_has_its_own_key() {
    let catalog = catalog("acme", &[]);
    let mut seen = std::collections::HashSet::new();
    for (a, b) in [
        (None, None),
        (Some(Level::Read), None),
        (Some(Level::Write), None),
        (None, Some(Level::Read)),
        (Some(Level::Read), Some(Level::Write)),
    ] {
        let loaded: LoadedToolsets =
            [("k8s", a), ("helm", b)].into_iter().filter_map(|(n, l)| Some((set(n), l?))).collect();
        assert!(seen.insert(catalog.set_key(&loaded)));
    }
}

#[test]
fn no_tool_can_take_the_name_of_another_or_of_a_virtual_one() {
    let build = |name: &str| {
        let tools = vec![tool("k8s_get", "k8s", Effect::Read), tool(name, "evil", Effect::Read)];
        Catalog::build(&Tenant::parse("acme").unwrap(), tools, &[], CatalogRules::default())
            .err()
            .map(|e| e.to_string())
    };
    assert_eq!(build("k8s_get").as_deref(), Some("two tools are called `k8s_get`"));
    assert_eq!(build("load_toolset").as_deref(), Some("two tools are called `load_toolset`"));
    assert_eq!(build("other"), None);
}

#[test]
fn virtual_arguments_are_checked_like_any_others() {
    let catalog = catalog("acme", &[]);
    let check = |which, value: Value| {
        let Value::Object(map) = value else { panic!("an object") };
        catalog.check_virtual(which, map).map_err(|f| f.code)
    };
    assert!(check(ControlTool::LoadToolset, json!({ "toolset": "helm" })).is_ok());
    assert!(
        check(ControlTool::LoadToolset, json!({ "toolset": ["helm", "k8s"], "include_write_tools": true })).is_ok()
    );
    assert_eq!(check(ControlTool::LoadToolset, json!({})), Err(domain::Code::InvalidArgument));
    assert_eq!(check(ControlTool::LoadToolset, json!({ "toolset": 3 })), Err(domain::Code::InvalidArgument));
    assert_eq!(check(ControlTool::CallTool, json!({ "tool": "a", "args": {} })), Err(domain::Code::UnknownArgument));
}

#[test]
fn an_argument_without_a_choice_is_not_listed_and_still_understood() {
    let strict = json!({
        "type": "object", "additionalProperties": false, "required": ["kind"],
        "properties": { "kind": { "type": "string" }, "cluster": { "type": "string", "maxLength": 8 } }
    });
    let definition = ToolDefinition { strict, ..tool("k8s_get", "k8s", Effect::Read).definition().clone() };
    let whole = CompiledTool::new(definition).unwrap();
    let lean = CatalogEntry::with_shape(whole.without_argument("cluster"), Arc::new(Inert));
    let whole = CatalogEntry::with_shape(whole, Arc::new(Inert));
    assert_eq!(
        lean.definition().wire,
        r#"{"type":"object","properties":{"kind":{"type":"string"}},"required":["kind"]}"#
    );
    assert_eq!(lean.schema_digest(), whole.schema_digest(), "calls are judged by the same schema");
    let parse = |value: Value| {
        let Value::Object(map) = value else { panic!("an object") };
        lean.parse(map).map(|_| ()).unwrap_err().code
    };
    // The test's tool understands nothing, so getting as far as that proves that the schema let it through.
    assert_eq!(parse(json!({ "kind": "Pod", "cluster": "a" })), domain::Code::Internal);
    assert_eq!(parse(json!({ "kind": "Pod", "cluster": "123456789" })), domain::Code::InvalidArgument);
    assert_eq!(parse(json!({ "kind": "Pod", "clusters": "a" })), domain::Code::UnknownArgument);
}
