//! What a tenant's file may say about external servers, and exactly how each mistake is told.

use super::{codes, printed, read, servers_of};
use crate::server::{Accept, Auth, HttpTransport, Scheme, ServerReach, TrustedEffects};
use domain::run::OnReject;
use insta::assert_snapshot;
use tenancy::ParameterValue;

/// A file that uses the wiki with these parameters, and has a secret and a plain parameter.
fn wiki(params: &str) -> String {
    format!(
        "tenant: acme\n\
         params:\n  wiki_key: {{ secret: true, from: wiki.key }}\n  home: {{ default: eu-west-1 }}\n\
         servers:\n- use: wiki-search\n  params: {params}\n"
    )
}

#[test]
fn servers_are_read_as_written() {
    let config = read(
        "tenant: acme\n\
         default_toolsets: [mcp_wiki, k8s]\n\
         params:\n  wiki_key: { secret: true, description: 'Key' }\n  home: { default: eu }\n\
         servers:\n\
         - use: wiki-search\n  id: wiki\n  accept: each\n  \
           params: { api_key: '{{ params.wiki_key }}', team: 'of {{ params.home }}/{{ params.home }}', region: '{{ params.home }}' }\n  \
           access:\n    allowlist:\n    - wiki-read-*\n    - customer-lookup\n    \
           - { name: delete-record, require_approval: { on_reject: fail } }\n    \
           - { name: 'drop-*', require_approval: {} }\n\
         - use: clock\n\
         policy:\n  deny: [mcp_wiki__wiki-read-secrets, 'mcp_cl*']\n  require_approval: ['mcp_clock__*']\n",
    )
    .expect("a configuration without problems");

    let [wiki, clock] = servers_of(&config).servers else { panic!("two servers") };
    assert_eq!((wiki.id.as_str(), wiki.server.name.as_str(), wiki.accept), ("wiki", "wiki-search", Accept::Each));
    let text = |text: &str| ParameterValue::Text(text.to_owned());
    let given: Vec<_> = wiki.params.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let secret = ParameterValue::Secret("wiki_key".to_owned());
    assert_eq!(given, [("api_key", secret), ("region", text("eu")), ("team", text("of eu/eu"))]);
    let allow: Vec<String> = wiki.allow.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(allow, ["wiki-read-*", "customer-lookup", "delete-record", "drop-*"]);
    let gates: Vec<_> = config.gates().iter().map(|gate| (gate.pattern.to_string(), gate.on_reject)).collect();
    let gate = |name: &str, no| (name.to_owned(), no);
    assert_eq!(
        gates,
        [
            gate("mcp_clock__*", OnReject::Continue),
            gate("mcp_wiki__delete-record", OnReject::Fail),
            gate("mcp_wiki__delete-record_bc4a80e9", OnReject::Fail),
            gate("mcp_wiki__drop-*", OnReject::Continue),
        ]
    );
    assert_eq!((clock.id.as_str(), &clock.allow, clock.accept), ("clock", &None, Accept::First));
    assert_eq!(config.params["home"].value, text("eu"));
    assert_eq!(config.default_toolsets[0].as_str(), "mcp_wiki");
}

#[test]
fn a_tool_that_asks_asks_under_the_name_it_gets_when_its_own_is_too_long() {
    let long = "delete-everything-that-anybody-ever-wrote-down-in-the-wiki";
    let text = |name: &str| {
        format!(
            "tenant: acme\nservers:\n- use: clock\n  access:\n    allowlist:\n    - {{ name: '{name}', require_approval: {{}} }}\n"
        )
    };
    let gates = |name: &str| {
        let config = read(&text(name)).unwrap();
        config.gates().iter().map(|gate| gate.pattern.to_string()).collect::<Vec<_>>()
    };
    let digest = domain::json::sha256_hex(long.as_bytes());
    assert_eq!(gates(long), [format!("mcp_clock__{}_{}", &long[..44], &digest[..8])]);
    assert_eq!(gates(&format!("{long}*")), [format!("mcp_clock__{}*", &long[..44])]);
}

#[test]
fn the_chain_of_a_secret_is_checked_link_by_link() {
    let good = "{ api_key: '{{ params.wiki_key }}', team: web }";
    let config = read(&wiki(good)).unwrap();
    assert_eq!(servers_of(&config).servers[0].params["api_key"], ParameterValue::Secret("wiki.key".to_owned()));

    assert_snapshot!(printed(&wiki("{ api_key: hunter2, team: web }")), @r#"
    acme.yaml:7:22: secret_literal: the secret parameter `api_key` is given plain text
        hint: declare a parameter of the tenant with `secret: true` and write `"{{ params.NAME }}"`
    "#);
    assert_snapshot!(printed(&wiki("{ api_key: '{{ params.home }}', team: '{{ params.wiki_key }}' }")), @r#"
    acme.yaml:7:22: secret_literal: the secret parameter `api_key` is given plain text
        hint: declare a parameter of the tenant with `secret: true` and write `"{{ params.NAME }}"`
    acme.yaml:7:49: secret_leak: the secret `wiki.key` would reach the parameter `team`, which is not marked as one
        hint: only a parameter with `secret: true` may hold a secret; choose another value
    "#);
    assert_snapshot!(printed(&wiki("{ api_key: 'Bearer {{ params.wiki_key }}', team: 'x{{ params.wiki_key }}' }")), @r#"
    acme.yaml:7:22: secret_leak: the secret `wiki_key` is mixed into a text
        hint: a secret stands alone: `"{{ params.wiki_key }}"`
    acme.yaml:7:60: secret_leak: the secret `wiki_key` is mixed into a text
        hint: a secret stands alone: `"{{ params.wiki_key }}"`
    "#);
    assert_snapshot!(printed(&wiki("{ api_kee: '{{ params.wiki_key }}', team: '{{ params.hom }}', region: '{{ home }}' }")), @"
    acme.yaml:6:3: missing_param: nobody gives the parameter `api_key` of the server `wiki-search`
        hint: add `api_key: \"{{ params.NAME }}\"` to the server's `params:`; agents and workflows can then give another
    acme.yaml:7:13: unknown_param: there is no parameter `api_kee`
        hint: did you mean `api_key`? declared parameters: api_key, region, team
    acme.yaml:7:53: unknown_param: the tenant has no parameter `hom`
        hint: did you mean `home`? the tenant's `params`: home, wiki_key
    acme.yaml:7:81: bad_value: the parameter `region`: `{{ home }}` is no reference: only `{{ params.NAME }}` is understood
    ");
    assert_eq!(codes("tenant: acme\nservers:\n- use: wiki-search\n"), ["missing_param", "missing_param"]);
}

#[test]
fn a_server_that_is_not_in_the_catalog_is_refused_with_the_one_that_was_meant() {
    let text = "tenant: acme\nservers:\n\
         - use: wiki-serch\n\
         - use: clock\n  id: Clock\n\
         - clock\n\
         - { id: x }\n\
         - { use: clock, comand: x, accept: all }\n\
         agents: [{ name: a, params: { wiki-serch: { x: y } } }]\n";
    assert_snapshot!(printed(text), @"
    acme.yaml:3:8: unknown_server: the operator's catalog has no server `wiki-serch`
        hint: did you mean `wiki-search`? servers there: clock, wiki-search
    acme.yaml:5:7: bad_value: `Clock` cannot be part of the names of tools
        hint: use 1 to 32 of a-z, 0-9 and '-', neither first nor last a dash
    acme.yaml:6:3: wrong_type: a server must be a mapping, and a plain value stands here
    acme.yaml:7:3: missing_key: the key `use` is missing
        hint: add `use:`, with a name from the operator's catalog
    acme.yaml:8:17: unknown_key: a server has no key `comand`
        hint: known keys here: use, id, params, access, accept
    acme.yaml:8:36: bad_value: `all` is nothing `accept` can be
        hint: use `first` or `each`
    ");
}

#[test]
fn a_server_of_the_tenants_own_is_one_the_operator_lets_it_name() {
    let file = |tenant: &str, server: &str| {
        format!("tenant: {tenant}\nparams: {{ key: {{ secret: true }} }}\nservers:\n- {server}\n")
    };
    let server = "{ name: own, url: 'https://own.example/{{ params.space }}/mcp', auth: { secret: '{{ params.token }}' }, \
                  params: { token: { secret: true, value: '{{ params.key }}' }, space: { default: main } } }";
    let config = read(&file("acme", server)).unwrap();
    let used = &servers_of(&config).servers[0];
    assert!(used.server.own && used.server.vouch == TrustedEffects::default());
    assert_eq!(used.params["token"], ParameterValue::Secret("key".to_owned()));
    assert!(matches!(&used.server.auth, Some(Auth::Header { scheme: Scheme::Bearer, .. })));
    let ServerReach::Http { url, .. } = &used.server.reach else { panic!("a web address") };
    assert_eq!(url.to_string(), "https://own.example/{{ params.space }}/mcp");

    assert_snapshot!(printed(&file("beta", server)), @"acme.yaml:4:21: bad_value: `https://own.example/{{ params.space }}/mcp` cannot be used: the operator does not let this tenant");
    assert_eq!(codes(&file("acme", "{ name: own, url: 'https://10.0.0.1/mcp' }")), ["bad_value"]);
    assert_eq!(codes(&file("acme", "{ name: own }")), ["missing_key"]);
    for forbidden in ["command: /bin/sh", "trust_annotations: true", "effects: { a: read }", "deadline: 1h"] {
        let text = file("acme", &format!("{{ name: own, url: 'https://own.example', {forbidden} }}"));
        assert_eq!(codes(&text), ["unknown_key"], "{forbidden}");
    }
    assert_snapshot!(printed(&file("acme", "{ name: clock, url: 'https://own.example' }")), @"
    acme.yaml:4:11: repeated_value: the operator's catalog has a server `clock`, and this would pass for it
        hint: choose it with `use: clock`, or give this one another name
    ");
    assert_eq!(
        codes(&file(
            "acme",
            "{ name: own, url: 'https://own.example', auth: { secret: '{{ params.t }}' }, params: { t: { secret: true } } }"
        )),
        ["missing_param"]
    );
}

#[test]
fn a_tenants_own_server_has_its_tokens_from_where_the_operator_lets_it() {
    let file = |token_url: &str| {
        format!(
            "tenant: acme\nparams: {{ key: {{ secret: true }} }}\nservers:\n\
             - name: own\n  url: 'https://own.example/sse'\n  transport: sse\n  \
             params: {{ token: {{ secret: true, value: '{{{{ params.key }}}}' }} }}\n  \
             auth: {{ client_credentials: {{ token_url: '{token_url}', client_id: x, client_secret: '{{{{ params.token }}}}' }} }}\n"
        )
    };
    let config = read(&file("https://login.example/token")).unwrap();
    let used = &servers_of(&config).servers[0];
    assert!(matches!(&used.server.reach, ServerReach::Http { transport: HttpTransport::Sse, .. }));
    let place = used.secret_use("key").place;
    assert_eq!(place, "client_secret https://login.example/token for https://own.example/sse");
    assert_snapshot!(printed(&file("https://10.0.0.1/token")), @"acme.yaml:8:44: bad_value: `https://10.0.0.1/token` cannot be used: it is private");
}

#[test]
fn no_value_leads_an_address_elsewhere() {
    let file = |region: &str| wiki(&format!("{{ api_key: '{{{{ params.wiki_key }}}}', team: a, region: {region} }}"));
    for fine in ["eu-1", "'a/b?c#d'", "'@evil.example'", "'..a'", "ü", "'%2e%2e'"] {
        assert!(read(&file(fine)).is_ok(), "{fine}");
    }
    for bad in ["'..'", "'.'"] {
        assert_eq!(codes(&file(bad)), ["bad_value"], "{bad}");
    }
    assert_eq!(codes(&wiki("{ api_key: '{{ params.wiki_key }}', team: 'ü' }")), ["bad_value"], "a header is ASCII");
    let own = |url: &str| {
        format!("tenant: acme\nservers: [{{ name: own, url: \"{url}\", params: {{ p: {{ default: x }} }} }}]")
    };
    for bad in [
        "{{ params.p }}",
        "{{ params.p }}://h.example/",
        "https://{{ params.p }}/",
        "https://h.example{{ params.p }}/",
        "https://h.example:{{ params.p }}/",
        "https://h.example:44{{ params.p }}",
        "https://u@h.example/{{ params.p }}",
        "https://h.example/#{{ params.p }}",
        "https://h.example/ {{ params.p }}",
        "https://h.example\\\\{{ params.p }}/",
        "ftp://h.example/",
        "https://",
        "//h.example/",
        "h.example",
    ] {
        assert_eq!(codes(&own(bad)), ["bad_url"], "{bad}");
    }
    for fine in ["https://h.example/{{ params.p }}", "https://h.example?x={{ params.p }}", "https://h.example:8443/a"] {
        assert!(read(&own(fine)).is_ok(), "{fine}: {:?}", read(&own(fine)));
    }
}

#[test]
fn an_allowlist_names_tools_and_what_a_no_means() {
    let file = |access: &str| format!("tenant: acme\nservers:\n- use: clock\n  access: {access}\n");
    assert_snapshot!(printed(&file("{ allowlist: [a.b, 'a*b', 'x:y', '', 7, { name: c, require_approval: yes }, { name: d, require_approval: { on_reject: maybe } }, { require_approval: {} }, { name: e, approve: x }], denylist: [] }")), @"
    acme.yaml:4:25: bad_value: `a.b` names no tool of a server
        hint: write a name of letters, digits, `_` and `-`, or a beginning and `*`; for `a.b` write `a*`
    acme.yaml:4:30: bad_value: `a*b` names no tool of a server
        hint: write a name of letters, digits, `_` and `-`, or a beginning and `*`; for `a.b` write `a*`
    acme.yaml:4:37: bad_value: `x:y` names no tool of a server
        hint: write a name of letters, digits, `_` and `-`, or a beginning and `*`; for `a.b` write `a*`
    acme.yaml:4:44: bad_value: `` names no tool of a server
        hint: write a name of letters, digits, `_` and `-`, or a beginning and `*`; for `a.b` write `a*`
    acme.yaml:4:48: ambiguous_text: a tool must be text, and `7` without quotes may be read otherwise
        hint: put it in quotes if that is what you mean
    acme.yaml:4:80: wrong_type: `require_approval` must be a mapping, and a plain value stands here
    acme.yaml:4:129: bad_value: `maybe` says nothing about a rejection
        hint: use `fail` or `continue`
    acme.yaml:4:140: missing_key: the key `name` is missing
        hint: add `name:`, the tool it is about
    acme.yaml:4:177: unknown_key: a tool has no key `approve`
        hint: known keys here: name, require_approval
    acme.yaml:4:192: unknown_key: `access` has no key `denylist`
        hint: known keys here: allowlist
    ");
    assert_eq!(codes(&file("{ allowlist: [] }")), ["bad_value"]);
    assert_eq!(codes(&file("{ allowlist: '*' }")), ["wrong_type"]);
    let many = vec!["a"; 201].join(", ");
    assert_eq!(codes(&file(&format!("{{ allowlist: [{many}] }}"))), ["out_of_range"]);
}

#[test]
fn rules_may_name_tools_of_the_tenants_servers_and_of_no_others() {
    let file = |rule: &str| format!("tenant: acme\nservers: [{{ use: clock }}]\npolicy: {{ deny: ['{rule}'] }}\n");
    for fine in ["mcp_clock__now", "mcp_clock__*", "mcp_clock__n*", "mcp_*", "mcp_clock*", "mcp_cl*"] {
        assert!(read(&file(fine)).is_ok(), "{fine}");
    }
    for bad in ["mcp_clok__now", "mcp_wiki__*", "mcp_clock__", "mcp_clock", "mcp_clock__now:x", "mcp_clockwork__a"] {
        assert_eq!(codes(&file(bad)), ["matches_no_tool"], "{bad}");
    }
    assert_snapshot!(printed(&file("mcp_clok__*")), @"
    acme.yaml:3:18: matches_no_tool: `mcp_clok__*` matches no tool
        hint: did you mean `mcp_clock__*`?
    ");
    assert_eq!(codes("tenant: acme\ndefault_toolsets: [mcp_clock]"), ["unknown_toolset"]);
}

#[test]
fn everything_is_counted() {
    let many = |n: usize, item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(", ");
    let servers = many(33, &|n| format!("{{ use: clock, id: c{n} }}"));
    assert_eq!(codes(&format!("tenant: acme\nservers: [{servers}]")), ["out_of_range"]);
    let params = many(33, &|n| format!("p{n}: {{ default: x }}"));
    let own = format!("tenant: acme\nservers: [{{ name: own, url: 'https://h.example', params: {{ {params} }} }}]");
    assert_eq!(codes(&own), ["out_of_range"]);
    let long = "x".repeat(1025);
    assert_eq!(codes(&wiki(&format!("{{ api_key: '{{{{ params.wiki_key }}}}', team: {long} }}"))), ["bad_value"]);
    let half = "x".repeat(600);
    let twice = format!(
        "tenant: acme\nparams: {{ k: {{ secret: true }}, h: {{ default: {half} }} }}\nservers:\n- use: wiki-search\n  \
         params: {{ api_key: '{{{{ params.k }}}}', team: '{{{{ params.h }}}}{{{{ params.h }}}}' }}\n"
    );
    assert_eq!(codes(&twice), ["bad_value"], "what references bring is counted as well");
    assert_eq!(codes("tenant: acme\nservers: [{ use: clock }, { use: clock }]"), ["repeated_value"]);
    assert_eq!(codes("tenant: acme\nservers: [{ use: Big Clock }]"), ["unknown_server"], "told once");
}

#[test]
fn servers_are_held_to_the_budget_of_the_file() {
    let codes = |text: &str| -> Vec<&str> { read(text).unwrap_err().iter().map(|problem| problem.code).collect() };
    let places = "{{ params.a }}".repeat(5_000);
    let text = format!(
        "tenant: acme\nparams: {{ a: {{ default: x }} }}\nservers: [{{ name: s, url: 'https://h.example/{places}' }}]"
    );
    assert_eq!(codes(&text), ["bad_value"], "an address is short");
    assert_eq!(codes(&format!("tenant: acme\nservers: {}", "[".repeat(100_000))), ["too_deep"]);
    let many = format!("tenant: acme\nservers: [{}]", "{ use: x },".repeat(5_000));
    assert_eq!(codes(&many).len(), 33, "what is beyond the limit is not looked at");
}
