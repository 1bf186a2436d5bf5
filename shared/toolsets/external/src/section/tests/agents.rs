//! What a tenant's file may say about agents and workflows, and exactly how each mistake is told.

use super::{printed, read, servers_of};
use insta::assert_snapshot;
use tenancy::ParameterValue;

fn file(rest: &str) -> String {
    format!(
        "tenant: acme\n\
         params: {{ key: {{ secret: true }}, other: {{ secret: true }}, home: {{ default: eu }} }}\n\
         servers:\n- use: wiki-search\n  id: wiki\n  params: {{ api_key: '{{{{ params.key }}}}', team: all }}\n{rest}"
    )
}

#[test]
fn agents_and_workflows_are_read_as_written() {
    let config = read(&file(
        "agents:\n- name: on-call\n  params: { wiki: { team: '{{ params.home }}', api_key: '{{ params.other }}' } }\n- { name: idle }\n\
         workflows:\n- name: nightly\n  agent: on-call\n  params: { wiki: { region: asia } }\n- { name: loose }\n",
    ))
    .unwrap();

    let on_call = &servers_of(&config).agents[0].params["wiki"];
    assert_eq!(on_call["team"], ParameterValue::Text("eu".to_owned()));
    assert_eq!(on_call["api_key"], ParameterValue::Secret("other".to_owned()));
    assert_eq!(servers_of(&config).workflows[0].agent.as_deref(), Some("on-call"));
    assert_eq!(servers_of(&config).workflows[0].params["wiki"]["region"], ParameterValue::Text("asia".to_owned()));
    assert!(servers_of(&config).agents[1].params.is_empty() && servers_of(&config).workflows[1].agent.is_none());
}

#[test]
fn the_chain_of_a_secret_goes_through_agents_and_workflows() {
    assert_snapshot!(printed(&file(
        "agents:\n- name: a\n  params:\n    wiki:\n      team: '{{ params.key }}'\n      api_key: hunter2\n      regio: x\n    wikki: { x: y }\n\
         - name: a\n- { params: {} }\n- { name: b, server: x }\n\
         workflows:\n- name: w\n  agent: c\n  params: { wiki: { region: '{{ params.other }}' } }\n- { name: w }\n"
    )), @r#"
    acme.yaml:11:13: secret_leak: the secret `key` would reach the parameter `team`, which is not marked as one
        hint: only a parameter with `secret: true` may hold a secret; choose another value
    acme.yaml:12:16: secret_literal: the secret parameter `api_key` is given plain text
        hint: declare a parameter of the tenant with `secret: true` and write `"{{ params.NAME }}"`
    acme.yaml:13:7: unknown_param: there is no parameter `regio`
        hint: did you mean `region`? declared parameters: api_key, region, team
    acme.yaml:14:5: unknown_server: the tenant uses no server `wikki`
        hint: did you mean `wiki`? the tenant's `servers`: wiki
    acme.yaml:15:3: repeated_value: the agent `a` is there twice
        hint: give each a name of its own
    acme.yaml:16:3: missing_key: the key `name` is missing
        hint: add `name:`, by which sessions choose it
    acme.yaml:17:14: unknown_key: an agent has no key `server`
        hint: known keys here: name, params
    acme.yaml:20:10: unknown_agent: there is no agent `c`
        hint: did you mean `a` or `b`? the tenant's `agents`: a, b
    acme.yaml:21:29: secret_leak: the secret `other` would reach the parameter `region`, which is not marked as one
        hint: only a parameter with `secret: true` may hold a secret; choose another value
    acme.yaml:22:3: repeated_value: the workflow `w` is there twice
        hint: give each a name of its own
    "#);
}

#[test]
fn agents_and_workflows_are_counted() {
    let many = (0..65).map(|n| format!("{{ name: a{n} }}")).collect::<Vec<_>>().join(", ");
    for key in ["agents", "workflows"] {
        let problems = read(&file(&format!("{key}: [{many}]"))).unwrap_err();
        assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["out_of_range"]);
    }
}
