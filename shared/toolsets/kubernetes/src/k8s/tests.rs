//! What the toolset tells a model and what that costs, write list included.

use super::*;
use catalog::{schema, tokens};
use domain::Effect;
use serde_json::{Value, json};

/// What a model reads of one tool.
fn of<T: Tool>(many_clusters: bool) -> String {
    let mut strict = schema::strict::<T::Args>();
    if let (false, Some(Value::Object(fields))) = (many_clusters, strict.get_mut("properties")) {
        assert!(fields.remove(CLUSTER).is_some(), "{} lacks the argument cluster", T::SPEC.name);
    }
    let mut wire = String::new();
    schema::write(&schema::lean(&strict), &mut wire);
    let (name, description) = (json!(T::SPEC.name), json!(T::SPEC.description));
    format!(r#"{{"name":{name},"description":{description},"inputSchema":{wire}}}"#)
}

fn read_list(many: bool) -> Vec<String> {
    vec![
        of::<get::K8sGet>(many),
        of::<logs::PodLogsTool>(many),
        of::<top::Top>(many),
        of::<rollout_status::RolloutStatus>(many),
        of::<wait::Wait>(many),
        of::<discover::Discover>(many),
        of::<diff::Diff>(many),
    ]
}

fn write_list(many: bool) -> Vec<String> {
    vec![
        of::<apply::Apply>(many),
        of::<patch::K8sPatch>(many),
        of::<rollout::RolloutTool>(many),
        of::<scale::ScaleTool>(many),
        of::<delete::Delete>(many),
        of::<node::NodeTool>(many),
        of::<exec::ExecTool>(many),
        of::<run::RunTool>(many),
        of::<probe::HttpProbe>(many),
    ]
}

fn cost(briefs: &[String]) -> u32 {
    tokens::measure(&format!("[{}]", briefs.join(",")))
}

#[test]
fn the_whole_toolset_fits_its_budget() {
    let (read, write) = (read_list(false), write_list(false));
    assert!(cost(&read) <= 650, "read list: {}", cost(&read));
    let whole = cost(&[read, write].concat());
    assert!(whole <= 1_550, "whole: {whole}");
    assert!(cost(&read_list(true)) <= 720, "read list with several clusters: {}", cost(&read_list(true)));
}

#[test]
fn what_a_model_reads_is_as_reviewed() {
    insta::assert_snapshot!("wire", [read_list(false), write_list(false)].concat().join("\n"));
}

fn args<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn effect_of<T: Tool>(value: Value) -> Effect {
    T::effect(&args(value))
}

#[test]
fn the_cluster_is_named_where_there_is_a_choice_and_understood_everywhere() {
    let kit = K8sDeps { clusters: Clusters::none(), cursors: Cursors::new([0; 32]) };
    let (one, many) = (
        list(&kit, &catalog::CompiledTools::default(), false).unwrap(),
        list(&kit, &catalog::CompiledTools::default(), true).unwrap(),
    );
    assert_eq!(one.len(), 16);
    for (one, many) in one.iter().zip(&many) {
        assert!(!one.brief().contains("\"cluster\":") && many.brief().contains("\"cluster\":"), "{}", one.name());
        assert_eq!(one.schema_digest(), many.schema_digest());
    }
}

#[test]
fn the_effect_of_a_write_is_a_function_of_its_arguments() {
    use domain::Effect::{Change, Disrupt, Read};
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}";
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}";
    for (value, effect) in [
        (json!({ "manifest": pod }), Change),
        (json!({ "manifest": pod, "dry_run": false }), Change),
        (json!({ "manifest": pod, "force": true }), Disrupt),
        (json!({ "manifest": role }), Disrupt),
        (json!({ "manifest": "not: [yaml" }), Disrupt),
        (
            json!({ "manifest": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostPID: true, containers: []}" }),
            Disrupt,
        ),
        (json!({ "manifest": role, "force": true, "dry_run": true }), Read),
    ] {
        assert_eq!(effect_of::<apply::Apply>(value.clone()), effect, "{value}");
    }
    for (value, effect) in [
        (json!({ "kind": "deploy", "name": "a", "patch": "{}" }), Change),
        (json!({ "kind": "ns", "name": "a", "patch": "{}" }), Disrupt),
        (
            json!({ "kind": "deploy", "name": "a", "patch": "{\"spec\":{\"template\":{\"spec\":{\"hostPID\":true}}}}" }),
            Disrupt,
        ),
        (json!({ "kind": "deploy", "name": "a", "patch": "{\"metadata\":{\"finalizers\":[]}}" }), Disrupt),
        (json!({ "kind": "ns", "name": "a", "patch": "{}", "dry_run": true }), Read),
    ] {
        assert_eq!(effect_of::<patch::K8sPatch>(value.clone()), effect, "{value}");
    }
    for (replicas, effect) in [(0, Disrupt), (1, Change), (1_000, Change)] {
        assert_eq!(
            effect_of::<scale::ScaleTool>(json!({ "kind": "deploy", "name": "a", "replicas": replicas })),
            effect
        );
    }
    for (action, effect) in
        [("undo", Disrupt), ("restart", Change), ("pause", Change), ("resume", Change), ("set_image", Change)]
    {
        assert_eq!(
            effect_of::<rollout::RolloutTool>(json!({ "kind": "deploy", "name": "a", "action": action })),
            effect
        );
    }
    for (value, effect) in [
        (json!({ "action": "drain", "name": "n" }), Disrupt),
        (json!({ "action": "drain", "name": "n", "dry_run": true }), Read),
        (json!({ "action": "cordon", "name": "n" }), Change),
    ] {
        assert_eq!(effect_of::<node::NodeTool>(value.clone()), effect, "{value}");
    }
    assert_eq!(effect_of::<delete::Delete>(json!({ "kind": "po", "name": "a" })), Disrupt);
    assert_eq!(effect_of::<delete::Delete>(json!({ "kind": "po", "name": "a", "dry_run": true })), Read);
    assert_eq!(effect_of::<exec::ExecTool>(json!({ "pod": "a", "command": ["ls"] })), Disrupt);
    assert_eq!(effect_of::<run::RunTool>(json!({ "image": "busybox" })), Change);
    assert_eq!(effect_of::<run::RunTool>(json!({ "image": "busybox", "debug_pod": "a" })), Disrupt);
    assert_eq!(effect_of::<probe::HttpProbe>(json!({ "kind": "pod", "name": "a", "port": 80 })), Change);
}

#[test]
fn a_run_is_one_of_three_things() {
    let what = |value: Value| args::<run::Args>(value).what().is_ok();
    assert!(what(json!({ "image": "a" })) && what(json!({ "from_cronjob": "a" })));
    assert!(what(json!({ "image": "a", "debug_pod": "b" })));
    assert!(!what(json!({})) && !what(json!({ "debug_pod": "b" })));
    assert!(
        !what(json!({ "image": "a", "from_cronjob": "b" }))
            && !what(json!({ "debug_pod": "a", "from_cronjob": "b", "image": "c" }))
    );
}
