//! An operator's catalog from all of its places, with good and bad entries side by side.

use super::*;
use crate::server::{Auth, ClientAuthMethod, HttpTransport, ServerLimits, TokenGrant, TrustedEffects};
use domain::Effect;
use insta::assert_snapshot;
use proptest::prelude::*;
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("servers")).unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn read(dir: &TempDir) -> (ServerCatalog, String) {
    let (curated, problems) =
        ServerCatalog::read(&CuratedSources { dir: Some(dir.path().to_owned()), ..CuratedSources::default() });
    (curated, told(&problems, dir))
}

/// Each problem without the folder in front.
fn told(problems: &[Problem], dir: &TempDir) -> String {
    let folder = format!("{}/", dir.path().display());
    problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect::<Vec<_>>().join("\n")
}

fn names(curated: &ServerCatalog) -> Vec<&str> {
    curated.names().collect()
}

/// What is wrong with a server that says so, and with nothing else in the file.
fn wrong(entry: &str) -> String {
    let (curated, problems) = ServerCatalog::marketplace(&format!("servers:\n- {entry}\n"));
    assert!(curated.is_empty(), "an entry with a mistake is left out");
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

fn codes(entry: &str) -> Vec<&'static str> {
    ServerCatalog::marketplace(&format!("servers:\n- {entry}\n")).1.iter().map(|problem| problem.code).collect()
}

fn url(curated: &ServerCatalog, name: &str) -> String {
    match &curated.find(name).unwrap().reach {
        ServerReach::Http { url, .. } => url.to_string(),
        ServerReach::Process { .. } => panic!("a web address"),
    }
}

#[test]
fn both_places_of_a_folder_are_read() {
    let dir = folder(&[
        (
            "servers.yaml",
            "servers:\n\
             - name: wiki\n  description: 'Search the wiki'\n  url: 'https://wiki.example/{{ params.region }}'\n  \
               auth: { header: X-Api-Key, scheme: raw, secret: '{{ params.key }}' }\n  \
               headers: { X-Region: '{{ params.region }}' }\n  \
               params: { key: { secret: true }, region: { default: eu, description: 'Where' } }\n  \
               deadline: 30s\n  calls_in_flight: 2\n  calls_waiting: 0\n  argument_bytes: 2048\n  result_bytes: 4096\n  \
               refresh: 1m\n  trust_annotations: true\n  effects: { 'get_*': read, drop: disrupt }\n",
        ),
        ("servers/tool.server.yaml", "name: tool\ncommand: /usr/bin/tool\nargs: [--stdio]\nenv: { LEVEL: info }\n"),
        ("servers/notes.yaml", "not: ours"),
        ("servers/.hidden.server.yaml", "not: ours"),
        ("tenants.yaml", "not: ours"),
    ]);

    let (curated, problems) = read(&dir);

    assert_eq!((names(&curated), problems.as_str()), (vec!["tool", "wiki"], ""));
    let wiki = curated.find("wiki").unwrap();
    assert_eq!(
        wiki.limits,
        ServerLimits {
            deadline: Duration::from_secs(30),
            in_flight: 2,
            waiting: 0,
            argument_bytes: 2048,
            result_bytes: 4096,
            refresh: Duration::from_secs(60),
        }
    );
    assert_eq!(wiki.headers.keys().collect::<Vec<_>>(), ["x-region"]);
    assert_eq!(
        (wiki.vouch.effect("get_page"), wiki.vouch.effect("drop"), wiki.vouch.effect("put")),
        (Some(Effect::Read), Some(Effect::Disrupt), None)
    );
    assert!(wiki.vouch.annotations && !wiki.own);
    let tool = curated.find("tool").unwrap();
    let env = BTreeMap::from([("LEVEL".to_owned(), "info".to_owned())]);
    let (command, args) = ("/usr/bin/tool".to_owned(), vec!["--stdio".to_owned()]);
    assert_eq!(tool.reach, ServerReach::Process { command, args, env });
    assert_eq!((&tool.limits, &tool.vouch), (&ServerLimits::default(), &TrustedEffects::default()));
}

#[test]
fn a_mistake_costs_one_entry_and_a_name_is_given_once() {
    let dir = folder(&[
        (
            "servers.yaml",
            "server: x\nservers:\n- { name: a, url: 'https://a.example' }\n- { name: b, url: 'ftp://b' }\n- { name: a, url: 'https://evil.example' }\n- { name: c, url: 'https://c.example', timeout: 1s }\n",
        ),
        ("servers/a.server.yaml", "name: a\nurl: 'https://other.example'\n"),
        ("servers/d.server.yml", "name: d\nurl: 'https://d.example'\n"),
        ("servers/e.server.yaml", ""),
    ]);

    let (curated, problems) = read(&dir);

    assert_eq!((names(&curated), url(&curated, "a").as_str()), (vec!["a", "d"], "https://a.example"));
    assert_snapshot!(problems.replace(&dir.path().display().to_string(), ""), @"
    servers.yaml:1:1: unknown_key: the file has no key `server`
        hint: did you mean `servers`? known keys here: servers
    servers.yaml:4:19: bad_url: `ftp://b` cannot be used: it begins with neither https:// nor http://
        hint: parameters may stand only behind the host: `https://HOST/{{ params.NAME }}`
    servers.yaml:5:3: duplicate_server: the server `a` is there already, in servers.yaml:3
        hint: remove one of them, or name it otherwise
    servers.yaml:6:40: unknown_key: a server has no key `timeout`
        hint: known keys here: name, description, url, transport, command, args, env, auth, headers, params, deadline, calls_in_flight, calls_waiting, argument_bytes, result_bytes, refresh, trust_annotations, effects
    servers/a.server.yaml:1:1: duplicate_server: the server `a` is there already, in servers.yaml:3
        hint: remove one of them, or name it otherwise
    servers/e.server.yaml:1:1: empty_file: the file holds no configuration
        hint: begin with `name:` and the server's name
    ");
}

#[test]
fn the_entrys_half_of_the_chain_is_checked_where_it_stands() {
    let server = |rest: &str| format!("{{ name: a, url: 'https://a.example', {rest} }}");
    let key = "params: { key: { secret: true }, open: { default: x } }";
    assert_snapshot!(wrong(&format!("{{ name: a, url: 'https://a.example/{{{{ params.key }}}}', headers: {{ X-K: 'k {{{{ params.key }}}}' }}, {key} }}")), @"
    servers.yaml:2:19: secret_outside_auth: the secret parameter `key` is used in `url`
        hint: a secret belongs into `auth` and nowhere else; addresses and headers are logged
    servers.yaml:2:73: secret_outside_auth: the secret parameter `key` is used in the header `X-K`
        hint: a secret belongs into `auth` and nowhere else; addresses and headers are logged
    ");
    assert_snapshot!(wrong(&server(&format!("auth: {{ secret: '{{{{ params.open }}}}' }}, {key}"))), @"
    servers.yaml:2:56: auth_not_secret: `auth` uses the parameter `open`, which is not marked as a secret
        hint: add `secret: true` to the parameter `open`
    ");
    assert_snapshot!(wrong(&server(&format!("auth: {{ scheme: raw }}, {key}"))), @r#"
    servers.yaml:2:46: auth_without_secret: `auth` has no `secret`
        hint: add `secret: "{{ params.NAME }}"` with a parameter that is marked `secret: true`
    "#);
    assert_snapshot!(wrong(&server("auth: { secret: hunter2, header: Cookie, scheme: basic }, params: { key: { secret: true, default: hunter2 } }")), @r#"
    servers.yaml:2:56: secret_literal: `secret` must be one reference and nothing else
        hint: write `"{{ params.NAME }}"` with a parameter that is marked `secret: true`
    servers.yaml:2:73: bad_value: `Cookie` cannot be a header here
    servers.yaml:2:89: bad_value: `basic` is nothing `scheme` can be
        hint: use `bearer` or `raw`
    servers.yaml:2:138: secret_literal: the secret parameter `key` stands here in plain text
        hint: leave `default` out: a secret's value is never written into a file
    "#);
    assert_snapshot!(wrong(&server(&format!("auth: {{ secret: '{{{{ params.kee }}}}' }}, headers: {{ X-A: '{{{{ params.opn }}}}' }}, {key}"))), @"
    servers.yaml:2:56: unknown_param: there is no parameter `kee`
        hint: did you mean `key`? declared parameters: key, open
    servers.yaml:2:94: unknown_param: there is no parameter `opn`
        hint: did you mean `open`? declared parameters: key, open
    ");
    assert_snapshot!(wrong(&server(&format!("auth: {{ secret: 'env:KEY' }}, {key}"))), @"
    servers.yaml:2:56: env_refused: `env:KEY` is refused: what it stands for cannot be seen or checked here
        hint: declare a parameter with `secret: true`, write `{{ params.NAME }}` in its place, and let its value come from the tenant's secrets (a mounted file, the operator's environment, or the API)
    ");
}

#[test]
fn an_entry_says_one_way_to_reach_it() {
    assert_eq!(codes("{ name: a }"), ["bad_source"]);
    assert_eq!(codes("{ name: a, url: 'https://a.example', command: /bin/a }"), ["bad_source"]);
    assert_eq!(codes("{ name: a, url: 'https://a.example', args: [x], env: { A: b } }"), ["bad_source", "bad_source"]);
    assert_eq!(codes("{ name: a, command: /bin/a, headers: {}, auth: {} }"), ["bad_source", "bad_source"]);
    assert_eq!(
        codes("{ name: a, command: /bin/a, args: ['{{ params.x }}'], env: { 'A B': x, C: '' } }"),
        ["bad_value"; 3]
    );
    assert_eq!(codes("{ name: a, command: '' }"), ["bad_value"]);
    assert_eq!(codes("{ url: 'https://a.example' }"), ["missing_key"]);
    assert_eq!(codes("{ name: A, url: 'https://a.example' }"), ["bad_value"]);
}

#[test]
fn a_transport_is_one_that_fits_how_the_server_is_reached() {
    let of = |text: &str| {
        let (curated, problems) = ServerCatalog::marketplace(&format!("servers:\n- {text}\n"));
        assert_eq!(problems, [], "{text}");
        let ServerReach::Http { transport, .. } = curated.find("a").unwrap().reach else { panic!("a web address") };
        transport
    };
    assert_eq!(of("{ name: a, url: 'https://a.example/sse', transport: sse }"), HttpTransport::Sse);
    assert_eq!(of("{ name: a, url: 'https://a.example/mcp', transport: http }"), HttpTransport::Streamable);
    assert_eq!(of("{ name: a, url: 'https://a.example/mcp' }"), HttpTransport::Streamable);
    assert_eq!(codes("{ name: a, command: /bin/a, transport: stdio }"), Vec::<&str>::new());
    assert_eq!(codes("{ name: a, command: /bin/a, transport: sse }"), ["bad_value"]);
    assert_snapshot!(wrong("{ name: a, url: 'https://a.example', transport: stdio }"), @"
    servers.yaml:2:51: bad_value: `stdio` is nothing `transport` can be
        hint: use `http` or `sse`
    ");
}

#[test]
fn client_credentials_are_read_as_written() {
    let (curated, problems) = ServerCatalog::marketplace(
        "servers:\n- name: a\n  url: 'https://a.example/mcp'\n  params: { client: {}, key: { secret: true } }\n  \
         auth:\n    client_credentials:\n      token_url: 'https://login.example/oauth2/token?v=2'\n      \
         client_id: 'app-{{ params.client }}'\n      client_secret: '{{ params.key }}'\n      \
         scope: 'wiki.read wiki.search'\n      resource: 'https://a.example/mcp'\n      auth_method: client_secret_post\n",
    );
    assert_eq!(problems, []);
    let Some(Auth::ClientCredentials { grant, client_id, secret }) = &curated.find("a").unwrap().auth else {
        panic!("client credentials")
    };
    let wanted = TokenGrant {
        token_url: "https://login.example/oauth2/token?v=2".to_owned(),
        scope: Some("wiki.read wiki.search".to_owned()),
        audience: None,
        resource: Some("https://a.example/mcp".to_owned()),
        method: ClientAuthMethod::Post,
    };
    assert_eq!((grant, client_id.to_string().as_str(), secret.as_str()), (&wanted, "app-{{ params.client }}", "key"));
}

#[test]
fn mistakes_in_client_credentials_are_told_where_they_stand() {
    let entry = |auth: &str| {
        format!(
            "{{ name: a, url: 'https://a.example', params: {{ key: {{ secret: true }}, open: {{ default: x }} }}, auth: {auth} }}"
        )
    };
    let rest = "client_id: x, client_secret: '{{ params.key }}'";
    assert_snapshot!(wrong(&entry("{ client_credentials: {} }")), @r#"
    servers.yaml:2:125: missing_key: the key `token_url` is missing
        hint: add `token_url:`, where tokens are given
    servers.yaml:2:125: missing_key: the key `client_id` is missing
        hint: add `client_id:`, who we are there
    servers.yaml:2:125: auth_without_secret: `client_credentials` has no `client_secret`
        hint: add `client_secret: "{{ params.NAME }}"` with a parameter that is marked `secret: true`
    "#);
    let credentials = |keys: &str| entry(&format!("{{ client_credentials: {{ {keys} }} }}"));
    for (keys, code) in [
        (format!("token_url: 'https://login.example/{{{{ params.open }}}}', {rest}"), "bad_value"),
        (format!("token_url: 'https://{{{{ params.open }}}}/token', {rest}"), "bad_url"),
        (format!("token_url: 'ftp://login.example', {rest}"), "bad_url"),
        (format!("token_url: 'https://name:word@login.example', {rest}"), "bad_url"),
        (format!("token_url: 'https://login.example', {rest}, scope: '{{{{ params.open }}}}'"), "bad_value"),
        (format!("token_url: 'https://login.example', {rest}, auth_method: none"), "bad_value"),
        (format!("token_url: 'https://login.example', {rest}, client_assertion: x"), "unknown_key"),
        ("token_url: 'https://login.example', client_id: x, client_secret: hunter2".to_owned(), "secret_literal"),
        (
            "token_url: 'https://login.example', client_id: x, client_secret: '{{ params.open }}'".to_owned(),
            "auth_not_secret",
        ),
        (
            "token_url: 'https://login.example', client_id: '{{ params.key }}', client_secret: '{{ params.key }}'"
                .to_owned(),
            "secret_outside_auth",
        ),
    ] {
        assert_eq!(codes(&credentials(&keys)), [code], "{keys}");
    }
    let both = format!("{{ header: X-Key, client_credentials: {{ token_url: 'https://login.example', {rest} }} }}");
    assert_eq!(codes(&entry(&both)), ["bad_source"]);
    let twice = "{ name: a, url: 'https://a.example', params: { key: { secret: true } }, \
                 auth: { client_credentials: { token_url: 'https://login.example', client_id: x, client_secret: '{{ params.key }}' } }, \
                 headers: { authorization: x } }";
    assert_eq!(codes(twice), ["bad_value"], "nobody else says who we are");
}

#[test]
fn headers_leave_alone_what_the_connection_needs() {
    let header = |name: &str| format!("{{ name: a, url: 'https://a.example', headers: {{ '{name}': x }} }}");
    for taken in
        ["Authorization", "host", "Content-Length", "Mcp-Session-Id", "Proxy-Authorization", "cookie", "a b", ""]
    {
        assert_eq!(codes(&header(taken)), ["bad_value"], "{taken}");
    }
    assert_eq!(codes(&header("X-Team")), Vec::<&str>::new());
    assert_eq!(codes("{ name: a, url: 'https://a.example', headers: { X-A: x, x-a: z } }"), ["repeated_value"]);
    let twice = "{ name: a, url: 'https://a.example', headers: { X-A: x }, auth: { header: x-a, secret: '{{ params.k }}' }, params: { k: { secret: true } } }";
    assert_eq!(codes(twice), ["repeated_value"]);
    assert_eq!(codes("{ name: a, url: 'https://a.example', headers: { X-A: \"a\\r\\nb\" } }"), ["bad_value"]);
}

#[test]
fn limits_and_effects_have_their_bounds() {
    let server = |rest: &str| format!("{{ name: a, url: 'https://a.example', {rest} }}");
    for (rest, code) in [
        ("deadline: 11m", "out_of_range"),
        ("deadline: 0s", "out_of_range"),
        ("calls_in_flight: 0", "out_of_range"),
        ("calls_waiting: 1025", "out_of_range"),
        ("argument_bytes: 1", "out_of_range"),
        ("result_bytes: 99999999", "out_of_range"),
        ("refresh: 1s", "out_of_range"),
        ("trust_annotations: false", "bad_value"),
        ("effects: { a: write }", "bad_value"),
        ("effects: { 'a:b': read }", "bad_value"),
        ("effects: [read]", "wrong_type"),
        ("description: [x]", "wrong_type"),
    ] {
        assert_eq!(codes(&server(rest)), [code], "{rest}");
    }
}

#[test]
fn what_yaml_refused_is_never_missing_from_an_entry() {
    let text = "servers:\n- { name: a, url: 'https://a.example', auth: &x { secret: '{{ params.k }}' }, params: { k: { secret: true } } }\n- { name: b, url: 'https://b.example' }\n";
    let (curated, problems) = ServerCatalog::marketplace(text);
    assert!(curated.is_empty(), "a server without its `auth` would be another one");
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["yaml_alias"]);
}

#[test]
fn bombs_end_within_budget() {
    let ends = |text: &str| ServerCatalog::marketplace(text).1.remove(0).code;
    assert_eq!(ends(&format!("servers: [{}]", "{},".repeat(60_000))), "too_many_values");
    assert_eq!(ends(&format!("servers: {}", "[".repeat(100_000))), "too_deep");
    assert_eq!(ends(&format!("servers: &a [{}]", "*a,".repeat(80_000))), "yaml_alias");
    assert_eq!(ends(&"#".repeat(1 << 20)), "too_large");
    assert_eq!(ends("servers: !!python/object:os.system [id]"), "yaml_tag");
    let many: String = (0..300).map(|n| format!("- {{ name: s{n}, url: 'https://s.example/{n}' }}\n")).collect();
    let (curated, problems) = ServerCatalog::marketplace(&format!("servers:\n{many}"));
    assert_eq!((names(&curated).len(), problems.len(), problems[0].code), (256, 1, "out_of_range"));
    let bad: String = (0..200).map(|n| format!("- {{ name: s{n} }}\n")).collect();
    let (curated, problems) =
        ServerCatalog::marketplace(&format!("servers:\n{bad}- {{ name: fine, url: 'https://s.example' }}\n"));
    assert_eq!((names(&curated).len(), problems.len()), (0, 100), "after too many mistakes nothing is vouched for");
}

#[test]
fn what_is_mounted_is_held_to_the_same_budget() {
    for (text, code) in [
        (format!("tools: {{ {} }}", "a: &a {}, b: *a,".repeat(20_000)), "too_large"),
        ("tools: &a { x: *a }".to_owned(), "yaml_alias"),
        (format!("tools: {}", "{a: ".repeat(1_000)), "too_deep"),
        (format!("tools: [{}]", "1,".repeat(60_000)), "too_many_values"),
        ("tools: [a]".to_owned(), "wrong_type"),
        (String::new(), "empty_file"),
    ] {
        let dir = folder(&[("config.yaml", &text), ("servers/a.server.yaml", &text.replace("tools", "name"))]);
        let config = Some(dir.path().join("config.yaml"));
        let (curated, problems) = ServerCatalog::read(&CuratedSources { config, ..CuratedSources::default() });
        assert_eq!((curated.is_empty(), problems[0].code), (true, code));
        let (curated, problems) = read(&dir);
        assert!(curated.is_empty() && problems.starts_with("servers/a.server.yaml:"), "{problems}");
    }
}

#[test]
fn a_mounted_map_of_tools_is_a_source() {
    let dir = folder(&[(
        "config.yaml",
        "agent: { name: x }\ntools:\n  \
           mem0-memory:\n    endpoint: http://mem0-memory.ns.svc.cluster.local:8080\n    protocol: mcp\n  \
           search: { endpoint: 'https://search.example/v2/mcp?x=1' }\n  \
           Bad Name: { endpoint: 'https://a.example' }\n  \
           other: { endpoint: 'https://a.example', protocol: grpc }\n  \
           none: {}\n  \
           odd: { endpoint: 'a.example' }\n",
    )]);
    let config = Some(dir.path().join("config.yaml"));

    let (curated, problems) = ServerCatalog::read(&CuratedSources { config, ..CuratedSources::default() });

    assert_eq!(names(&curated), ["mem0-memory", "search"]);
    assert_eq!(url(&curated, "mem0-memory"), "http://mem0-memory.ns.svc.cluster.local:8080/mcp");
    assert_eq!(url(&curated, "search"), "https://search.example/v2/mcp?x=1");
    assert_snapshot!(told(&problems, &dir), @"
    config.yaml:7:3: bad_value: `Bad Name` is no DNS label: a-z, 0-9 and '-', neither first nor last a dash
    config.yaml:8:53: bad_value: `grpc` is nothing `protocol` can be
        hint: use `mcp`
    config.yaml:9:3: missing_key: `none` has no `endpoint`
        hint: each tool is a mapping with `endpoint:` and `protocol: mcp`
    config.yaml:10:20: bad_value: `a.example` is no address of a server
    ");
}

#[test]
fn addresses_in_the_variable_are_named_after_their_hosts() {
    let read = |text: &str| {
        ServerCatalog::read(&CuratedSources { mcp_servers: Some(text.to_owned()), ..CuratedSources::default() })
    };
    let text = "http://mem0-memory.ns.svc:8080, https://mem0-memory.other/ ,,http://10.0.0.5:8080,http://[::1]:90/x,https://Mem0-Memory.third";
    let (curated, problems) = read(text);
    let all: Vec<_> = names(&curated).into_iter().map(|name| format!("{name} {}", url(&curated, name))).collect();
    assert_eq!(
        all,
        [
            "1 http://[::1]:90/x",
            "10-0-0-5 http://10.0.0.5:8080/mcp",
            "mem0-memory http://mem0-memory.ns.svc:8080/mcp",
            "mem0-memory-2 https://mem0-memory.other/mcp",
            "mem0-memory-3 https://Mem0-Memory.third/mcp",
        ]
    );
    assert_eq!((problems, read(text).0), (Vec::new(), curated), "the same list is named the same every time");

    let (curated, problems) =
        read("ftp://a, https://b.example, https://u:p@c.example, https://{{ params.x }}/, http://");
    assert_eq!(names(&curated), ["b"]);
    assert_eq!(
        problems.iter().map(|problem| (problem.code, problem.column)).collect::<Vec<_>>(),
        [("bad_url", 1), ("bad_url", 29), ("bad_url", 52), ("bad_url", 77)]
    );
    assert_eq!(problems[0].file, "MCP_SERVERS");
    assert!(problems.iter().all(|problem| !problem.message.contains("u:p")), "what may be a password is not repeated");
    assert!(!wrong("{ name: a, url: 'https://u:hunter2@a.example' }").contains("hunter2"));
}

#[test]
fn what_two_places_bring_is_one_server_and_another_of_its_name_is_refused() {
    let dir = folder(&[
        (
            "config.yaml",
            "tools: { memory: { endpoint: 'http://memory.ns:8080', protocol: mcp }, wiki: { endpoint: 'http://wiki.ns' } }",
        ),
        ("servers.yaml", "servers: [{ name: wiki, url: 'https://wiki.example' }]"),
    ]);
    let (curated, problems) = ServerCatalog::read(&CuratedSources {
        dir: Some(dir.path().to_owned()),
        mcp_servers: Some("http://memory.ns:8080,http://wiki.elsewhere".to_owned()),
        config: Some(dir.path().join("config.yaml")),
    });
    assert_eq!(names(&curated), ["memory", "wiki"]);
    assert_eq!(url(&curated, "wiki"), "https://wiki.example");
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["duplicate_server"; 2]);
}

#[test]
fn what_is_not_there_is_told_of_only_where_it_must_be() {
    let dir = TempDir::new().unwrap();
    assert_eq!(
        ServerCatalog::read(&CuratedSources { dir: Some(dir.path().to_owned()), ..CuratedSources::default() }),
        (ServerCatalog::none(), Vec::new())
    );
    let nowhere = Some(dir.path().join("nowhere"));
    let sources = CuratedSources { dir: nowhere.clone(), config: nowhere, mcp_servers: None };
    let (_, problems) = ServerCatalog::read(&sources);
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["unreadable"; 2]);
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let dir = folder(&[("servers.yaml", "servers: [{ name: wiki, url: 'https://wiki.example' }]")]);
    let sources = CuratedSources { dir: Some(dir.path().to_owned()), ..CuratedSources::default() };
    let again = dir.path().join("servers/../servers.yaml");
    let (curated, problems) = ServerCatalog::read_with(&sources, &[again]);
    assert_eq!((names(&curated), problems), (vec!["wiki"], Vec::new()));
    assert!(is_server_file(Path::new("a/servers.yml")) && is_server_file(Path::new("x.server.yaml")));
    assert!(!is_server_file(Path::new("acme.yaml")) && !is_server_file(Path::new("servers.toml")));
}

proptest! {
    #[test]
    fn any_text_ends_in_servers_or_in_problems(text in "\\PC*|[ -~\\n]*|servers:\\n- (name|url|auth|params): [ -~]{0,40}") {
        let (curated, problems) = ServerCatalog::marketplace(&text);
        prop_assert!(!problems.is_empty() || text.contains("servers"));
        prop_assert!(curated.is_empty() || text.contains("url"));
    }

    #[test]
    fn any_list_of_addresses_is_read_or_told_of(text in "[ -~]{0,80}|(https?://[a-z.]{1,9}(:[0-9]{2})?,){0,5}") {
        let sources = CuratedSources { mcp_servers: Some(text), ..CuratedSources::default() };
        let (curated, _) = ServerCatalog::read(&sources);
        for name in curated.names() {
            prop_assert!(url(&curated, name).starts_with("http"));
        }
    }
}
