//! What a tenant's file may say about Jenkins servers and chart repositories, and how each mistake is told.

use super::{codes, config, told};
use crate::config::{JenkinsServer, JenkinsSource, RepositoryEntry};
use insta::assert_snapshot;

#[test]
fn one_server_needs_no_name_and_several_each_have_one() {
    let one = config(
        "tenant: acme\ntoolsets:\n  \
           jenkins: { url: 'https://ci.acme.example', user: robot, token: { secret: ci-token } }\n  \
           helm:\n    repositories:\n    \
           - { name: stable, url: 'https://charts.acme.example' }\n    \
           - { name: own, url: 'oci://registry.acme.example/charts', credential: { secret: pull } }\n",
    );
    let address = |url: &str, ca: Option<&str>| JenkinsSource::Address {
        url: url.into(),
        user: "robot".into(),
        token: "ci-token".into(),
        ca: ca.map(str::to_owned),
    };
    let server = |name: &str, source| JenkinsServer {
        name: name.into(),
        source,
        default: false,
        run_id_parameter: "QM_RUN_ID".into(),
    };
    assert_eq!(one.jenkins, [server("jenkins", address("https://ci.acme.example", None))]);
    let repository = |name: &str, url: &str, credential: Option<&str>| RepositoryEntry {
        name: name.into(),
        url: url.into(),
        credential: credential.map(str::to_owned),
    };
    assert_eq!(
        one.repositories,
        [
            repository("stable", "https://charts.acme.example", None),
            repository("own", "oci://registry.acme.example/charts", Some("pull")),
        ]
    );

    let several = config(
        "tenant: acme\ntoolsets:\n  jenkins:\n  \
         - { name: old, url: 'https://old.example', user: robot, token: { secret: ci-token }, ca: { secret: ca } }\n  \
         - { name: play, sandbox: true, default: true, run_id_parameter: RUN }\n",
    );
    let play =
        JenkinsServer { default: true, run_id_parameter: "RUN".into(), ..server("play", JenkinsSource::Sandbox) };
    assert_eq!(several.jenkins, [server("old", address("https://old.example", Some("ca"))), play]);
}

#[test]
fn every_mistake_is_told_where_it_stands() {
    assert_snapshot!(
        told(
            "tenant: acme\ntoolsets:\n  jenkins:\n  \
             - { url: 'http://169.254.169.254/', user: 'a:b', token: hunter2 }\n  \
             - { name: b }\n  \
             - { name: c, url: 'https://c', sandbox: true }\n  \
             - { name: d, url: 'https://d', verify: false }\n  \
             helm:\n    repositories:\n    \
             - { name: Stable, url: 'https://charts', credential: { secret: ../x } }\n    \
             - { name: twin, url: 'https://charts' }\n    \
             - { name: twin, url: 'https://charts' }\n"
        ),
        @r"
        acme.yaml:4:5: missing_key: the key `name` is missing
            hint: add `name:`, by which callers choose it
        acme.yaml:4:12: bad_value: `http://169.254.169.254/` cannot be used: it is private
        acme.yaml:4:45: bad_value: `a:b` is no word of 1 to 253 letters
        acme.yaml:4:59: wrong_type: `token` must be a mapping, and a plain value stands here
        acme.yaml:5:5: bad_source: it is not clear where the server is
            hint: give exactly one of `url`, `sandbox`
        acme.yaml:6:5: bad_source: it is not clear where the server is
            hint: give exactly one of `url`, `sandbox`
        acme.yaml:7:5: missing_key: the key `user` is missing
            hint: add `user:`, to whom the API token belongs
        acme.yaml:7:5: missing_key: the key `token` is missing
            hint: add `token:`, as `token: { secret: NAME }`
        acme.yaml:7:34: unknown_key: a Jenkins server has no key `verify`
            hint: known keys here: name, url, user, token, ca, run_id_parameter, sandbox, default
        acme.yaml:10:15: bad_value: `Stable` is no DNS label: a-z, 0-9 and '-', neither first nor last a dash
        acme.yaml:10:68: bad_value: `../x` is no name of a secret
        acme.yaml:12:7: repeated_value: the repository `twin` is there twice
            hint: give each a name of its own
        "
    );
}

#[test]
fn a_mistake_in_a_secret_leaves_nothing_half_configured() {
    let text = "tenant: acme\ntoolsets:\n  jenkins: { url: 'https://ci', user: r, token: { secret: t }, ca: no }\n";
    assert_eq!(codes(text), ["wrong_type"]);
}
