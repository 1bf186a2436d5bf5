//! What a tenant's file may say about Jenkins servers, and exactly how each mistake is told.

use super::*;
use insta::assert_snapshot;
use tenancy::{KnownNames, Problem};

fn known(sections: &[Section]) -> KnownNames<'_> {
    KnownNames {
        addresses: &|used| if used.address.contains("169.254") { Err("it is private".to_owned()) } else { Ok(()) },
        ..KnownNames::only(sections)
    }
}

fn servers_of(text: &str) -> Vec<JenkinsServer> {
    let config = tenancy::parse("acme.yaml", text, &known(&[section()])).expect("a configuration without problems");
    config.section::<Vec<JenkinsServer>>(KEY).unwrap().cloned().unwrap_or_default()
}

fn problems(text: &str) -> Vec<Problem> {
    tenancy::parse("acme.yaml", text, &known(&[section()])).expect_err("problems")
}

/// Every problem as it is printed.
fn printed(text: &str) -> String {
    problems(text).iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn codes(text: &str) -> Vec<&'static str> {
    problems(text).iter().map(|problem| problem.code).collect()
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
    assert_eq!(keys("JenkinsPart"), sorted(JENKINS));
}

#[test]
fn one_server_needs_no_name_and_several_each_have_one() {
    let one = servers_of(
        "tenant: acme\ntoolsets:\n  \
           jenkins: { url: 'https://ci.acme.example', user: robot, token: { secret: ci-token } }\n",
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
    assert_eq!(one, [server("jenkins", address("https://ci.acme.example", None))]);

    let several = servers_of(
        "tenant: acme\ntoolsets:\n  jenkins:\n  \
         - { name: old, url: 'https://old.example', user: robot, token: { secret: ci-token }, ca: { secret: ca } }\n  \
         - { name: play, sandbox: true, default: true, run_id_parameter: RUN }\n",
    );
    let play =
        JenkinsServer { default: true, run_id_parameter: "RUN".into(), ..server("play", JenkinsSource::Sandbox) };
    assert_eq!(several, [server("old", address("https://old.example", Some("ca"))), play]);
    assert_eq!(servers_of("tenant: acme\ntoolsets: { jenkins: [] }\n"), []);
}

#[test]
fn every_mistake_is_told_where_it_stands() {
    assert_snapshot!(
        printed(
            "tenant: acme\ntoolsets:\n  jenkins:\n  \
             - { url: 'http://169.254.169.254/', user: 'a:b', token: hunter2 }\n  \
             - { name: b }\n  \
             - { name: c, url: 'https://c', sandbox: true }\n  \
             - { name: d, url: 'https://d', verify: false }\n"
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
        "
    );
}

#[test]
fn a_mistake_in_a_secret_leaves_nothing_half_configured() {
    let text = "tenant: acme\ntoolsets:\n  jenkins: { url: 'https://ci', user: r, token: { secret: t }, ca: no }\n";
    assert_eq!(codes(text), ["wrong_type"]);
}

#[test]
fn a_token_may_be_a_parameter() {
    let file = |token: &str| {
        format!(
            "tenant: acme\nparams: {{ jenkins_token: {{ secret: true }}, open: {{ default: x }} }}\n\
             toolsets:\n  jenkins: {{ url: 'https://ci', user: r, token: {token} }}\n"
        )
    };
    let servers = servers_of(&file("'{{ params.jenkins_token }}'"));
    assert!(
        matches!(&servers[0].source, JenkinsSource::Address { token, .. } if token == "jenkins_token"),
        "{servers:?}"
    );
    assert_eq!(codes(&file("'{{ params.open }}'")), ["auth_not_secret"]);
    assert_eq!(codes(&file("'a{{ params.jenkins_token }}'")), ["secret_leak"]);
    assert_eq!(codes(&file("'{{ params.none }}'")), ["unknown_param"]);
    assert_eq!(codes(&file("hunter2")), ["wrong_type"]);
}

fn beyond(file: &str, text: &str) -> Vec<String> {
    let sections = [section()];
    let config = |text: &str| tenancy::parse("config", text, &known(&sections)).expect("a configuration");
    let (file, text) = (format!("tenant: acme\n{file}"), format!("tenant: acme\n{text}"));
    let problems = tenancy::exceeding("config", &text, &sections, &config(&file), &config(&text));
    problems.iter().map(|problem| problem.message.clone()).collect()
}

#[test]
fn a_server_of_the_file_keeps_its_name_its_address_and_its_authority() {
    let server = |name: &str, host: &str, token: &str, more: &str| {
        format!(
            "toolsets: {{ jenkins: [{{ name: {name}, url: 'https://{host}', user: robot, token: {{ secret: {token} }}{more} }}] }}\n"
        )
    };
    let file = server("ci", "ci.example/a", "key", ", ca: { secret: ca }");
    let none = [] as [&str; 0];
    assert_eq!(beyond(&file, &server("ci", "ci.example/a/", "mine", ", ca: { secret: ca }, default: true")), none);
    assert_eq!(beyond(&file, &server("own", "other.example", "mine", "")), none);
    assert_eq!(beyond(&file, "toolsets: { jenkins: { name: play, sandbox: true } }\n"), none);
    assert_eq!(
        beyond(&file, &server("ci", "evil.example", "key", "")),
        [
            "`url` of the Jenkins server `ci`: the tenant's file gives https://ci.example/a, and this asks for https://evil.example"
        ]
    );
    assert_eq!(
        beyond(&file, &server("ci", "ci.example/a", "key", "")),
        ["`ca` of the Jenkins server `ci`: the tenant's file gives ca, and this asks for none"]
    );
    assert_eq!(
        beyond(&file, &server("test", "ci.example/a", "mine", "")),
        ["`url` of the Jenkins server `test`: the tenant's file gives it as ci, and this asks for it as test"]
    );
}

#[test]
fn a_token_is_granted_at_the_files_address_alone() {
    let sections = [section()];
    let text = "tenant: acme\ntoolsets: { jenkins: { url: 'https://ci.example/a/', user: robot, token: { secret: key }, ca: { secret: ca } } }\n";
    let config = tenancy::parse("acme.yaml", text, &known(&sections)).unwrap();
    let granted = |secret, what, url| config.grants(&JenkinsSource::secret_use(secret, what, url));
    assert!(granted("key", "token", "https://ci.example/a") && granted("ca", "ca", "https://ci.example/a/"));
    assert!(!granted("key", "token", "https://ci.example/") && !granted("key", "token", "https://evil.example/a"));
    assert!(!granted("key", "ca", "https://ci.example/a") && !granted("ca", "token", "https://ci.example/a"));
}
