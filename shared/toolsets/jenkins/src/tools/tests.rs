//! What the toolset tells a model and what that costs, and what each call would do.

use super::*;
use catalog::tokens;
use domain::{Effect, Level};
use serde_json::{Value, json};

fn kit() -> JenkinsDeps {
    JenkinsDeps { servers: JenkinsServers::none(), cursors: Cursors::new([0; 32]) }
}

fn cost<'a>(entries: impl Iterator<Item = &'a Arc<CatalogEntry>>) -> u32 {
    tokens::measure(&format!("[{}]", entries.map(|entry| entry.brief()).collect::<Vec<_>>().join(",")))
}

#[test]
fn the_whole_toolset_fits_its_budget() {
    let tools = list(&kit(), &CompiledTools::default(), false).unwrap();
    let read = cost(tools.iter().filter(|entry| entry.list() == Level::Read));
    let whole = cost(tools.iter());
    assert!(read <= 420, "read list: {read}");
    assert!(whole <= 720, "whole: {whole}");
}

#[test]
fn what_a_model_reads_is_as_reviewed() {
    let tools = list(&kit(), &CompiledTools::default(), false).unwrap();
    insta::assert_snapshot!("wire", tools.iter().map(|entry| entry.brief()).collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_server_is_named_where_there_is_a_choice_and_understood_everywhere() {
    let (one, many) = (
        list(&kit(), &CompiledTools::default(), false).unwrap(),
        list(&kit(), &CompiledTools::default(), true).unwrap(),
    );
    assert_eq!(one.len(), 10);
    for (one, many) in one.iter().zip(&many) {
        assert!(!one.brief().contains("\"server\":") && many.brief().contains("\"server\":"), "{}", one.name());
        assert_eq!(one.schema_digest(), many.schema_digest());
    }
}

#[test]
fn the_effect_of_a_call_is_a_function_of_its_arguments() {
    use Effect::{Change, Disrupt, Read};
    let tools = list(&kit(), &CompiledTools::default(), false).unwrap();
    let effect = |tool: &str, args: Value| {
        let entry = tools.iter().find(|entry| entry.name().as_str() == tool).unwrap();
        let Value::Object(args) = args else { panic!("arguments are an object") };
        entry.parse(args).unwrap().effect
    };
    for (tool, args, wanted) in [
        ("jenkins_jobs", json!({}), Read),
        ("jenkins_job", json!({ "job": "a" }), Read),
        ("jenkins_build", json!({ "job": "a", "show": "script" }), Read),
        ("jenkins_log", json!({ "job": "a" }), Read),
        ("jenkins_queue", json!({ "id": 1 }), Read),
        ("jenkins_whoami", json!({}), Read),
        ("jenkins_trigger", json!({ "job": "a" }), Change),
        ("jenkins_stop", json!({ "job": "a", "build": 1 }), Disrupt),
        ("jenkins_stop", json!({ "queue_id": 1 }), Change),
        ("jenkins_stop", json!({ "queue_id": 1, "job": "a" }), Disrupt),
        ("jenkins_stop", json!({}), Disrupt),
        ("jenkins_replay", json!({ "job": "a", "build": 1 }), Change),
        ("jenkins_replay", json!({ "job": "a", "build": 1, "script": "x" }), Disrupt),
        ("jenkins_update_build", json!({ "job": "a", "build": 1, "keep": true }), Change),
    ] {
        assert_eq!(effect(tool, args.clone()), wanted, "{tool} {args}");
    }
}
