//! What a tenant's file may say about chart repositories, and exactly how each mistake is told.

use super::*;
use insta::assert_snapshot;
use tenancy::{KnownNames, Problem};

fn problems(text: &str) -> Vec<Problem> {
    tenancy::parse("acme.yaml", text, &KnownNames::only(&[section()])).expect_err("problems")
}

/// Every problem as it is printed.
fn printed(text: &str) -> String {
    problems(text).iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

/// The keys of a part of the schema.
fn keys(part: &str) -> Vec<String> {
    let schema = tenancy::json_schema(&[section()]);
    schema["$defs"][part]["properties"].as_object().unwrap().keys().cloned().collect()
}

fn sorted<const N: usize>(mut keys: [&str; N]) -> [&str; N] {
    keys.sort_unstable();
    keys
}

#[test]
fn the_schema_knows_the_keys_the_reader_knows() {
    assert_eq!(keys("HelmPart"), HELM);
    assert_eq!(keys("RepositoryPart"), sorted(REPOSITORY));
}

#[test]
fn repositories_are_read_as_written() {
    let text = "tenant: acme\nparams: { pull: { secret: true, from: pull-key } }\ntoolsets:\n  \
           helm:\n    repositories:\n    \
           - { name: stable, url: 'https://charts.acme.example' }\n    \
           - { name: own, url: 'oci://registry.acme.example/charts', credential: { secret: pull } }\n    \
           - { name: other, url: 'https://other.example', credential: '{{ params.pull }}' }\n";
    let config = tenancy::parse("acme.yaml", text, &KnownNames::only(&[section()])).unwrap();
    let repository = |name: &str, url: &str, credential: Option<&str>| RepositoryEntry {
        name: name.into(),
        url: url.into(),
        credential: credential.map(str::to_owned),
    };
    let repositories = vec![
        repository("stable", "https://charts.acme.example", None),
        repository("own", "oci://registry.acme.example/charts", Some("pull")),
        repository("other", "https://other.example", Some("pull-key")),
    ];
    assert_eq!(config.section(KEY), Ok(Some(&HelmConfig { repositories, templates_in_values: false })));
}

#[test]
fn every_mistake_is_told_where_it_stands() {
    assert_snapshot!(
        printed(
            "tenant: acme\ntoolsets:\n  helm:\n    repositories:\n    \
             - { name: Stable, url: 'https://charts', credential: { secret: ../x } }\n    \
             - { name: twin, url: 'https://charts' }\n    \
             - { name: twin, url: 'https://charts' }\n"
        ),
        @"
        acme.yaml:5:15: bad_value: `Stable` is no DNS label: a-z, 0-9 and '-', neither first nor last a dash
        acme.yaml:5:68: bad_value: `../x` is no name of a secret
        acme.yaml:7:7: repeated_value: the repository `twin` is there twice
            hint: give each a name of its own
        "
    );
}

#[test]
fn a_text_moves_no_repository_of_the_file_and_allows_no_templates() {
    let sections = [section()];
    let beyond = |file: &str, text: &str| {
        let config =
            |text: &str| tenancy::parse("config", text, &KnownNames::only(&sections)).expect("a configuration");
        let whole = |helm: &str| format!("tenant: acme\ntoolsets: {{ helm: {{ {helm} }} }}\n");
        let problems =
            tenancy::exceeding("config", &whole(text), &sections, &config(&whole(file)), &config(&whole(text)));
        problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
    };
    let stable = |url: &str| format!("repositories: [{{ name: stable, url: '{url}' }}]");
    let none = [] as [&str; 0];
    assert_eq!(beyond(&stable("https://charts.example/"), &stable("https://charts.example")), none);
    assert_eq!(beyond("repositories: []", &stable("https://charts.example")), none);
    assert_eq!(beyond("templates_in_values: true", "templates_in_values: true"), none);
    assert_eq!(beyond("templates_in_values: true", "repositories: []"), none);
    assert_eq!(
        beyond("repositories: []", "templates_in_values: true"),
        ["`templates_in_values`: the tenant's file gives false, and this asks for true"]
    );
    assert_eq!(
        beyond(&stable("https://charts.example"), &stable("https://other.example")),
        [
            "`url` of the repository `stable`: the tenant's file gives https://charts.example, and this asks for https://other.example"
        ]
    );
}
