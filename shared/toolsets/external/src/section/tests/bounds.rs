//! What a text over HTTP may say about servers beside the file, and which secrets the file grants where.

use super::*;

const PARAMS: &str = "params: { key: { secret: true }, other: { secret: true } }\n";

fn beyond(file: &str, text: &str) -> Vec<String> {
    let (catalog, _) = ServerCatalog::marketplace(CATALOG);
    let whole = |text: &str| format!("tenant: acme\n{PARAMS}{text}");
    let config = |text: &str| read(text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"));
    let (file, text) = (config(&whole(file)), whole(text));
    let problems = tenancy::exceeding("config", &text, &sections(&catalog), &file, &config(&text));
    problems.iter().map(|problem| problem.message.clone()).collect()
}

fn wiki(id: &str, rest: &str) -> String {
    format!(
        "servers: [{{ use: wiki-search, id: {id}, params: {{ api_key: '{{{{ params.key }}}}', team: x }}, {rest} }}]\n"
    )
}

#[test]
fn a_server_of_the_file_keeps_its_id_its_tools_and_its_approvals() {
    let file = wiki(
        "wiki",
        "accept: each, access: { allowlist: ['read-*', { name: delete, require_approval: { on_reject: fail } }] }",
    );
    let none = [] as [&str; 0];
    assert_eq!(beyond(&file, &file), none);
    assert_eq!(beyond(&file, ""), none);
    assert_eq!(beyond(&file, "servers: [{ use: clock }]\n"), none, "the operator offers it to every tenant");
    assert_eq!(beyond(&file, &wiki("wiki", "accept: each, access: { allowlist: [read-page] }")), none);
    assert_eq!(beyond("", &file), none);
    let told = |text: &str| beyond(&file, text).join("\n");
    insta::assert_snapshot!(told(&wiki("wiki", "accept: first")), @r"
    `allowlist` of the server `wiki`: the tenant's file gives read-*, delete, and this asks for all tools
    `require_approval` of the server `wiki`: the tenant's file gives the rule `delete`, and this asks for none
    `accept` of the server `wiki`: the tenant's file gives each, and this asks for first
    ");
    insta::assert_snapshot!(told(&wiki("wiki", "accept: each, access: { allowlist: [{ name: 'd*', require_approval: {} }] }")), @r"
    `allowlist` of the server `wiki`: the tenant's file gives read-*, delete, and this asks for d*
    `require_approval` of the server `wiki`: the tenant's file gives the rule `delete`, and this asks for d*
    ");
    insta::assert_snapshot!(told(&wiki("other", "accept: each")), @"`id` of the server `other`: the tenant's file gives it as wiki, and this asks for it as other");
    insta::assert_snapshot!(told("servers: [{ use: clock, id: wiki, accept: each, access: { allowlist: [read-a] } }]\n"), @"`url` of the server `wiki`: the tenant's file gives https://wiki.example/mcp/{{ params.region }}, and this asks for https://clock.example/mcp");
}

#[test]
fn a_secret_is_granted_at_the_server_that_the_file_gives_it_to() {
    let text = format!(
        "tenant: acme\n{PARAMS}{}agents: [{{ name: a, params: {{ wiki: {{ api_key: '{{{{ params.other }}}}' }} }} }}]\n",
        wiki("wiki", "accept: each")
    );
    let config = read(&text).unwrap();
    let wiki = servers_of(&config).server("wiki").unwrap();
    assert!(config.grants(&wiki.secret_use("key")) && config.grants(&wiki.secret_use("other")));
    assert!(!config.grants(&wiki.secret_use("third")));
    let text = format!(
        "tenant: acme\n{PARAMS}servers: [{{ name: own, url: 'https://evil.example/mcp', auth: {{ secret: '{{{{ params.token }}}}' }}, params: {{ token: {{ secret: true, value: '{{{{ params.key }}}}' }} }} }}]\n"
    );
    let own = read(&text).unwrap();
    let own = servers_of(&own).server("own").unwrap();
    assert!(!config.grants(&own.secret_use("key")), "the same secret at another address");
}

#[test]
fn a_clients_secret_is_granted_at_the_authorization_server_of_the_file_and_for_its_server() {
    fn own_of(url: &str, grant: &str) -> TenantConfig {
        let text = format!(
            "tenant: acme\n{PARAMS}servers: [{{ name: own, url: '{url}', \
             params: {{ token: {{ secret: true, value: '{{{{ params.key }}}}' }} }}, \
             auth: {{ client_credentials: {{ {grant}, client_id: x, client_secret: '{{{{ params.token }}}}' }} }} }}]\n"
        );
        read(&text).unwrap()
    }
    let own = |url: &str, token_url: &str| own_of(url, &format!("token_url: '{token_url}'"));
    let file = own("https://own.example/mcp", "https://login.example/token");
    let granted = |asked: &TenantConfig| file.grants(&servers_of(asked).server("own").unwrap().secret_use("key"));
    assert!(granted(&file));
    assert!(!granted(&own("https://own.example/mcp", "https://evil.example/token")), "the secret goes elsewhere");
    assert!(!granted(&own("https://evil.example/mcp", "https://login.example/token")), "the token goes elsewhere");
    let wider = own_of("https://own.example/mcp", "token_url: 'https://login.example/token', scope: admin");
    assert!(!granted(&wider), "the token allows more");
}
