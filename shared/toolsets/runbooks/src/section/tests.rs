use super::*;
use crate::arguments;
use crate::declaration::RunbookPlace;
use crate::resolved::ResolvedCall;
use domain::Effect;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tenancy::{KnownNames, Problem, TenantConfig, parse};

/// The runbook of the documentation.
const SEED: &str = r#"tenant: acme
params:
  region: { default: eu-west-1 }
  shop_token: { secret: true }
runbooks:
  - name: seed-data
    group: shop
    description: "Write the seed marker file from `key`"
    where: { runner: shop-hosts }
    arguments:
      key: { type: string, required: true, description: "value written to the marker", pattern: "^[a-z0-9-]{1,40}$" }
      times: { type: number, default: 1, min: 1, max: 9 }
      force: { type: bool, default: false }
    env: { REGION: "{{ params.region }}", TOKEN: "{{ params.shop_token }}", LABEL: "k={{ args.key }}" }
    check: ["test", "-f", "/var/lib/shop/seeded-{{ args.key }}"]
    run: ["/opt/shop/seed", "--key", "{{ args.key }}", "--in", "{{ params.region }}"]
    verify: ["test", "-s", "/var/lib/shop/seeded-{{ args.key }}"]
    timeout: 10m
"#;

fn read_with(text: &str, vouched: bool) -> Result<TenantConfig, Vec<Problem>> {
    let sections = [kubernetes::section::section(), section()];
    let addresses = |_: &tenancy::AddressUse<'_>| if vouched { Ok(()) } else { Err("nobody vouches".to_owned()) };
    parse("acme.yaml", text, &KnownNames { addresses: &addresses, ..KnownNames::only(&sections) })
}

fn read(text: &str) -> Result<TenantConfig, Vec<Problem>> {
    read_with(text, false)
}

fn runbooks(text: &str) -> Vec<Runbook> {
    read(text).unwrap().section::<Vec<Runbook>>(KEY).unwrap().unwrap().clone()
}

/// One runbook with these lines, each indented by four.
fn one(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "tenant: acme\nparams:\n  word: {{ default: w }}\n  token: {{ secret: true }}\nrunbooks:\n  - name: a\n{lines}"
    )
}

/// Code, line and column of each problem.
fn problems(lines: &str) -> Vec<(&'static str, u32, u32)> {
    let found = read(&one(lines)).expect_err("it should be refused");
    found.iter().map(|problem| (problem.code, problem.line, problem.column)).collect()
}

#[test]
fn a_runbook_is_read_with_all_its_parts() {
    let all = runbooks(SEED);
    let [runbook] = all.as_slice() else { panic!("one runbook") };
    assert_eq!(runbook.tool.as_str(), "runbook__shop__seed-data");
    assert_eq!((runbook.id().as_str(), runbook.effect), ("shop/seed-data", Effect::Change));
    assert_eq!(runbook.place.target(), "runner/shop-hosts");
    assert_eq!(runbook.text.timeout_ms, 600_000);
    assert_eq!(runbook.text.run[4], "eu-west-1", "a plain parameter is filled in");
    assert_eq!(runbook.text.run[2], "{{ args.key }}");
    assert_eq!(runbook.text.env["TOKEN"], "{{ params.shop_token }}");
    assert_eq!(runbook.secrets["shop_token"], "shop_token");
    assert_eq!(runbook.meanings["key"], "value written to the marker");
    let uses: Vec<_> = runbook.secret_uses().collect();
    assert_eq!((uses[0].section, uses[0].secret.as_str()), (KEY, "shop_token"));
}

#[test]
fn a_mistake_is_told_with_its_place() {
    for (lines, expected) in [
        ("run: [\"a\"]", vec![("missing_key", 6, 5)]),
        ("where: { runner: r }", vec![("missing_key", 6, 5)]),
        ("where: { runner: r }\nrun: [\"a\", \"{{ args.x }}\"]", vec![("unknown_argument", 8, 16)]),
        ("where: { runner: r }\nrun: [\"a\", \"{{ params.x }}\"]", vec![("unknown_param", 8, 16)]),
        ("where: { runner: r }\nrun: [\"a\", \"{{ env.X }}\"]", vec![("bad_value", 8, 16)]),
        ("where: { runner: r }\nrun: [\"a\", \"{{ args.x\"]", vec![("bad_value", 8, 16)]),
        ("where: { runner: r }\nrun: []", vec![("bad_value", 8, 10)]),
        ("where: { runner: r }\nrun: sh -c x", vec![("wrong_type", 8, 10)]),
        ("where: { runner: r }\nrun: [\"a\"]\nafter: never", vec![("unknown_key", 9, 5)]),
        ("where: { runner: r, image: x }\nrun: [\"a\"]", vec![("bad_value", 7, 12)]),
        ("where: { cluster: prod, namespace: ops, image: x }\nrun: [\"a\"]", vec![("unknown_cluster", 7, 23)]),
        ("where: { runner: r }\nrun: [\"a\"]\ntimeout: 2h", vec![("out_of_range", 9, 14)]),
        ("where: { runner: r }\nrun: [\"a\"]\ndirectory: ../x", vec![("bad_value", 9, 16)]),
        ("where: { runner: r }\nrun: [\"a\"]\neffect: read", vec![("not_vouched", 9, 13)]),
        (
            "where: { runner: r }\nrun: [\"a\"]\nenv: { PATH: x, QM_ARG_A: y, LD_PRELOAD: z }",
            vec![("bad_value", 9, 12), ("bad_value", 9, 21), ("bad_value", 9, 34)],
        ),
        ("where: { runner: r }\nrun: [\"a\", \"{{ params.token }}\"]", vec![("secret_leak", 8, 16)]),
        ("where: { runner: r }\nrun: [\"a\"]\nenv: { A: \"x{{ params.token }}\" }", vec![("secret_leak", 9, 15)]),
    ] {
        assert_eq!(problems(lines), expected, "{lines}");
    }
}

#[test]
fn an_argument_is_held_to_its_rules_before_anybody_calls() {
    let with = |argument: &str| {
        let lines = format!("where: {{ runner: r }}\nrun: [\"a\"]\narguments:\n  x: {argument}");
        read(&one(&lines)).map(drop).map_err(|found| found.iter().map(|one| one.code).collect::<Vec<_>>())
    };
    for good in [
        "{}",
        "{ type: number, default: 2, min: 1, max: 3 }",
        "{ type: bool, default: true }",
        "{ enum: [a, b], default: a }",
        "{ type: number, enum: [1, 2.5] }",
        "{ required: true, pattern: \"^a$\" }",
    ] {
        assert_eq!(with(good), Ok(()), "{good}");
    }
    for (bad, code) in [
        ("{ type: integer }", "bad_value"),
        ("{ type: number, default: 4, max: 3 }", "bad_value"),
        ("{ type: number, min: 4, max: 3 }", "out_of_range"),
        ("{ default: c, enum: [a, b] }", "bad_value"),
        ("{ default: B, pattern: \"^[a-z]$\" }", "bad_value"),
        ("{ pattern: \"(\" }", "bad_value"),
        ("{ type: bool, pattern: \"^a$\" }", "bad_value"),
        ("{ min: 1 }", "bad_value"),
        ("{ required: true, default: a }", "bad_value"),
        ("{ required: maybe }", "bad_value"),
        ("{ default: yes }", "ambiguous_text"),
        ("{ defualt: a }", "unknown_key"),
    ] {
        assert_eq!(with(bad), Err(vec![code]), "{bad}");
    }
    let two = "where: { runner: r }\nrun: [\"a\"]\narguments: { a-b: {}, a_b: {} }";
    assert_eq!(problems(two), [("repeated_value", 9, 27)]);
    let taken = "where: { runner: r }\nrun: [\"a\"]\narguments: { env: {} }";
    assert_eq!(problems(taken), [("bad_value", 9, 18)]);
}

#[test]
fn a_command_refers_to_arguments_of_its_own_that_always_have_a_value() {
    let lines = "where: { runner: r }\nrun: [\"a\", \"{{ args.x }}\"]\narguments: { x: {} }";
    assert_eq!(problems(lines), [("optional_argument", 8, 16)]);
    let chosen = "where: { runner: r }\nrun: [\"{{ args.x }}\"]\narguments: { x: { required: true } }";
    assert_eq!(problems(chosen), [("bad_value", 8, 11)], "a caller does not choose the program");
    // Two runbooks: the second names an argument of the first.
    let text = SEED.to_owned() + "  - { name: b, where: { runner: r }, run: [\"a\", \"{{ args.key }}\"] }\n";
    let found = read(&text).unwrap_err();
    assert_eq!(found.iter().map(|one| one.code).collect::<Vec<_>>(), ["unknown_argument"]);
}

#[test]
fn check_warns_where_an_argument_stands_inside_the_text_of_a_program() {
    let lines =
        "where: { runner: r }\nrun: [\"sh\", \"-c\", \"echo {{ args.x }}\"]\narguments: { x: { required: true } }";
    let warnings = read(&one(lines)).unwrap().warnings;
    let told: Vec<_> = warnings.iter().map(|one| (one.code, one.line, one.column)).collect();
    assert_eq!(told, [("argument_in_program", 8, 23)]);
    let safe =
        "where: { runner: r }\nrun: [\"sh\", \"-c\", \"echo \\\"$QM_ARG_X\\\"\"]\narguments: { x: { required: true } }";
    assert_eq!(read(&one(safe)).unwrap().warnings, []);
    let open = "where: { runner: r }\nrun: [\"a\"]\narguments: { x: { pattern: \"[a-z]\" } }";
    assert_eq!(read(&one(open)).unwrap().warnings[0].code, "open_pattern");
}

#[test]
fn a_read_needs_the_operators_word_and_no_job_in_a_cluster_is_one() {
    let lines = "where: { runner: r }\nrun: [\"a\"]\neffect: read";
    let config = read_with(&one(lines), true).unwrap();
    assert_eq!(config.section::<Vec<Runbook>>(KEY).unwrap().unwrap()[0].effect, Effect::Read);
    let text = "tenant: acme\nclusters:\n  - { name: prod, sandbox: true }\nrunbooks:\n  - name: a\n    run: [\"a\"]\n    where: \
                { cluster: prod, namespace: ops, image: busybox }\n";
    let place = &runbooks(text)[0].place;
    assert!(matches!(place, RunbookPlace::Cluster(place) if place.namespace == "ops"));
    let found = read_with(&format!("{text}    effect: read\n"), true).unwrap_err();
    assert_eq!((found[0].code, found[0].line), ("bad_value", 8));
}

#[test]
fn rules_and_default_toolsets_know_the_tools() {
    let with = |policy: &str| {
        let text = format!("{SEED}policy: {{ deny: [{policy}] }}\ndefault_toolsets: [runbooks]\n");
        read(&text).map(drop).map_err(|found| found[0].code)
    };
    assert_eq!(with("runbook__shop__seed-data"), Ok(()));
    assert_eq!(with("\"runbook__shop__*\""), Ok(()));
    assert_eq!(with("runbook__shop__sed-data"), Err("matches_no_tool"), "a typo protects nothing");
}

#[test]
fn a_text_over_http_drops_runbooks_and_does_nothing_else_with_them() {
    let sections = [section()];
    let file = read(SEED).unwrap();
    let beyond = |text: &str| tenancy::exceeding("text", text, &sections, &file, &read(text).unwrap()).len();
    assert_eq!(beyond(SEED), 0);
    assert_eq!(beyond("tenant: acme\n"), 0, "dropped");
    for (from, to) in [
        ("/opt/shop/seed", "/bin/sh"),
        ("timeout: 10m", "timeout: 11m"),
        ("name: seed-data", "name: seed-more"),
        ("runner: shop-hosts", "runner: other"),
        ("default: eu-west-1", "default: us-east-1"),
        ("shop_token: { secret: true }", "shop_token: { secret: true, from: other }"),
        ("{1,40}", "{1,400}"),
    ] {
        let text = SEED.replacen(from, to, 1);
        assert_ne!(text, SEED);
        assert_eq!(beyond(&text), 1, "{from} -> {to}");
    }
}

fn call(arguments: Value) -> Result<ResolvedCall, String> {
    let runbook = Arc::new(runbooks(SEED).remove(0));
    let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
    ResolvedCall::new(&runbook, &arguments).map_err(|failure| failure.message)
}

#[test]
fn the_schema_names_every_argument_and_the_overlay_and_nothing_else() {
    let runbook = runbooks(SEED).remove(0);
    let (read, strict) = arguments::schemas(&runbook);
    assert_eq!(read["additionalProperties"], false);
    assert_eq!(read["required"], json!(["key"]));
    assert_eq!(
        read["properties"]["key"],
        json!({ "type": "string", "pattern": "^[a-z0-9-]{1,40}$", "description": "value written to the marker" })
    );
    assert_eq!(read["properties"]["times"], json!({ "type": "number", "minimum": 1.0, "maximum": 9.0, "default": 1 }));
    assert_eq!(read["properties"]["force"], json!({ "type": "boolean", "default": false }));
    assert_eq!(read["properties"]["env"]["additionalProperties"], json!({ "type": "string" }));
    assert_eq!((&strict["additionalProperties"], &strict["required"]), (&json!(false), &json!(["key"])));
}

#[test]
fn values_are_made_the_text_that_a_command_gets() {
    let call = call(json!({ "key": "k1", "times": "3", "force": "true" })).unwrap();
    assert_eq!(call.resolved.run, ["/opt/shop/seed", "--key", "k1", "--in", "eu-west-1"]);
    assert_eq!(call.resolved.check.as_ref().unwrap()[2], "/var/lib/shop/seeded-k1");
    let value = |name: &str| call.resolved.env[name].value.as_str();
    assert_eq!((value("QM_ARG_KEY"), value("QM_ARG_TIMES"), value("QM_ARG_FORCE")), ("k1", "3", "true"));
    assert_eq!((value("REGION"), value("LABEL"), value("TOKEN")), ("eu-west-1", "k=k1", ""));
    assert_eq!(call.secret_of("TOKEN"), Some("shop_token"));
    assert_eq!(ResolvedCall::new(&call.runbook, &Map::new()).unwrap_err().message, "the argument key is missing");
}

#[test]
fn a_value_that_breaks_a_rule_is_an_error_that_says_which() {
    for (arguments, words) in [
        (json!({ "key": "K" }), "key must match"),
        (json!({ "key": "a\n" }), "key must match"),
        (json!({ "key": 7 }), "key must be a string"),
        (json!({ "key": "a", "times": 10 }), "times must be from 1 to 9"),
        (json!({ "key": "a", "times": "many" }), "times must be a number"),
        (json!({ "key": "a", "force": "perhaps" }), "force must be true or false"),
        (json!({ "key": "a", "env": { "PATH": "/tmp" } }), "PATH cannot be set"),
        (json!({ "key": "a", "env": { "QM_ARG_KEY": "b" } }), "QM_ARG_KEY cannot be set"),
        (json!({ "key": "a", "env": { "lower": "b" } }), "lower cannot be set"),
        (json!({ "key": "a", "env": { "A": "b\u{0}" } }), "no zero byte"),
    ] {
        let message = call(arguments.clone()).unwrap_err();
        assert!(message.contains(words), "{arguments}: {message}");
    }
}

#[test]
fn the_overlay_comes_last() {
    let call = call(json!({ "key": "a", "env": { "REGION": "us", "TOKEN": "mine", "DEBUG": "1" } })).unwrap();
    let value = |name: &str| call.resolved.env[name].value.as_str();
    assert_eq!((value("REGION"), value("TOKEN"), value("DEBUG")), ("us", "mine", "1"));
    assert_eq!(call.secret_of("TOKEN"), None, "the caller's value is no secret of the tenant");
}

#[test]
fn a_value_cannot_become_an_option_unless_its_author_says_what_values_look_like() {
    let with = |argument: &str, word: &str, value: &str| {
        let lines = format!("where: {{ runner: r }}\nrun: [\"cp\", {word}]\narguments:\n  x: {argument}");
        let runbook = Arc::new(runbooks(&one(&lines)).remove(0));
        let arguments = json!({ "x": value });
        ResolvedCall::new(&runbook, arguments.as_object().unwrap()).is_ok()
    };
    assert!(!with("{ required: true }", "\"{{ args.x }}\"", "--target-directory=/etc"));
    assert!(with("{ required: true }", "\"--\", \"{{ args.x }}\"", "-rf"));
    assert!(with("{ required: true }", "\"--name={{ args.x }}\"", "-rf"));
    assert!(with("{ required: true, pattern: \"^-?[a-z]+$\" }", "\"{{ args.x }}\"", "-rf"));
    assert!(with("{ required: true }", "\"{{ args.x }}\"", "plain"));
}

/// What attackers send, in the hope that some shell reads it.
const HOSTILE: &[&str] = &[
    "$(touch /tmp/pwned)",
    "`touch /tmp/pwned`",
    "; touch /tmp/pwned",
    "&& touch /tmp/pwned",
    "|| touch /tmp/pwned",
    "| touch /tmp/pwned",
    "> /tmp/pwned",
    "a\ntouch /tmp/pwned",
    "'; touch /tmp/pwned; '",
    "\"; touch /tmp/pwned; \"",
    "\\\"; touch /tmp/pwned",
    "${IFS}touch${IFS}/tmp/pwned",
    "$(TOKEN)",
    "$$(TOKEN)",
    "%0atouch",
    "{{ args.other }}",
    "{{ params.token }}",
    "}}{{",
    "../../etc/passwd",
    "*",
    "~",
    "!!",
    "#",
    "\u{202e}\u{200b}",
];

#[test]
fn hostile_values_stay_one_word_and_one_variable() {
    let lines = "where: { runner: r }\nrun: [\"seed\", \"--key=<{{ args.x }}>\", \"last\"]\nenv: { MARK: \"[{{ args.x }}]\" \
                 }\narguments:\n  x: { required: true }";
    let runbook = Arc::new(runbooks(&one(lines)).remove(0));
    for value in HOSTILE {
        let arguments = json!({ "x": value, "env": { "OVER": value } });
        let call = ResolvedCall::new(&runbook, arguments.as_object().unwrap()).unwrap();
        assert_eq!(call.resolved.run, ["seed", &format!("--key=<{value}>"), "last"], "{value:?}");
        assert_eq!(call.resolved.env["MARK"].value, format!("[{value}]"));
        assert_eq!(call.resolved.env["QM_ARG_X"].value, *value);
        assert_eq!(call.resolved.env["OVER"].value, *value);
    }
    for name in HOSTILE.iter().copied().chain(["", "A B", "A=B", "a", "1", "LD_PRELOAD", "BASH_FUNC_x%%"]) {
        let arguments = json!({ "x": "v", "env": { name: "v" } });
        assert!(ResolvedCall::new(&runbook, arguments.as_object().unwrap()).is_err(), "{name:?}");
    }
}
