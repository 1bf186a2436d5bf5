//! Who gives a parameter, whose word counts, and that no value ever leads elsewhere.

use super::*;
use crate::curated::ServerCatalog;
use crate::section::sections;
use insta::assert_snapshot;
use proptest::prelude::*;
use tenancy::{KnownNames, TenantConfig};

const CATALOG: &str = r#"
servers:
  - name: wiki
    url: "https://wiki.example:8443/{{ params.region }}/mcp?team={{ params.team }}"
    auth: { secret: "{{ params.key }}" }
    headers: { X-Team: "{{ params.team }}", X-Fixed: yes please }
    params: { key: { secret: true }, region: { default: of-entry }, team: { default: of-entry }, note: { default: of-entry } }
"#;

const FILE: &str = "
tenant: acme
params: { key: { secret: true }, other: { secret: true, from: other-key }, third: { secret: true } }
servers:
- { use: wiki, params: { key: '{{ params.key }}', team: of-tenant } }
agents:
- { name: agent, params: { wiki: { team: of-agent, key: '{{ params.other }}' } } }
- { name: second, params: { wiki: { region: of-second } } }
workflows:
- { name: flow, agent: agent, params: { wiki: { note: of-flow, key: '{{ params.third }}' } } }
- { name: loose, params: { wiki: { team: of-loose } } }
";

fn config_of(catalog: &str, file: &str) -> TenantConfig {
    let (curated, problems) = ServerCatalog::marketplace(catalog);
    assert_eq!(problems, []);
    tenancy::parse("acme.yaml", file, &KnownNames::only(&sections(&curated))).expect("a configuration without problems")
}

fn servers_of(config: &TenantConfig) -> TenantServers<'_> {
    TenantServers::of(config).unwrap()
}

fn said(agent: Option<&str>, workflow: Option<&str>, params: &[(&str, &str)]) -> Assignment {
    let owned = |text: &&str| (*text).to_owned();
    let params: BTreeMap<_, _> = params.iter().map(|(name, value)| (owned(name), owned(value))).collect();
    let params = if params.is_empty() { BTreeMap::new() } else { BTreeMap::from([("wiki".to_owned(), params)]) };
    Assignment { agent: agent.map(str::to_owned), workflow: workflow.map(str::to_owned), params }
}

#[test]
fn each_word_lies_over_the_one_before() {
    let config = config_of(CATALOG, FILE);
    let of = |assignment: &Assignment| {
        let resolved = servers_of(&config).resolve("wiki", assignment).unwrap();
        let params: Vec<String> = resolved.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {}", params.join(" "), resolved.auth.unwrap().secret)
    };
    assert_eq!(of(&said(None, None, &[])), "note=of-entry region=of-entry team=of-tenant key");
    assert_eq!(of(&said(Some("agent"), None, &[])), "note=of-entry region=of-entry team=of-agent other-key");
    assert_eq!(of(&said(None, Some("flow"), &[])), "note=of-flow region=of-entry team=of-agent third");
    assert_eq!(of(&said(Some("agent"), Some("flow"), &[])), "note=of-flow region=of-entry team=of-agent third");
    assert_eq!(of(&said(Some("agent"), Some("loose"), &[])), "note=of-entry region=of-entry team=of-loose other-key");
    assert_eq!(
        of(&said(Some("second"), Some("loose"), &[("team", "said"), ("region", "")])),
        "note=of-entry region= team=said key"
    );
}

#[test]
fn an_address_and_its_headers_are_filled() {
    let config = config_of(CATALOG, FILE);
    let resolved =
        servers_of(&config).resolve("wiki", &said(None, None, &[("team", "a b/../?&=#%@:ü"), ("note", "x")]));
    // A header takes printable ASCII only, so such a team is refused as a whole.
    assert_eq!(resolved.unwrap_err().code, Code::InvalidArgument);
    let resolved =
        servers_of(&config).resolve("wiki", &said(None, None, &[("team", "a b/../?&=#%@:"), ("region", "ü")])).unwrap();
    let url = "https://wiki.example:8443/%C3%BC/mcp?team=a%20b%2F..%2F%3F%26%3D%23%25%40%3A".to_owned();
    assert_eq!(resolved.reach, ResolvedReach::Http { url, transport: HttpTransport::Streamable });
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(resolved.headers, [header("x-fixed", "yes please"), header("x-team", "a b/../?&=#%@:")]);
    let way = ResolvedAuthWay::Header { header: "Authorization".into(), scheme: Scheme::Bearer };
    let auth = ResolvedAuth { secret: "key".into(), way };
    assert_eq!(resolved.auth, Some(auth));
    assert!(!resolved.params.contains_key("key"), "a secret is no plain parameter");
}

#[test]
fn a_process_is_the_same_for_every_session() {
    let catalog =
        "servers: [{ name: wiki, command: /bin/wiki, args: [a], env: { B: c }, params: { x: { default: v } } }]";
    let config = config_of(catalog, "tenant: acme\nservers: [{ use: wiki }]");
    let resolved = servers_of(&config).resolve("wiki", &said(None, None, &[("x", "z")])).unwrap();
    let env = BTreeMap::from([("B".to_owned(), "c".to_owned())]);
    assert_eq!(resolved.reach, ResolvedReach::Process { command: "/bin/wiki".into(), args: vec!["a".into()], env });
    assert_eq!((resolved.params["x"].as_str(), resolved.auth), ("z", None));
}

#[test]
fn what_a_session_may_not_say_is_told_with_a_way_out() {
    let config = config_of(CATALOG, FILE);
    let refused = |assignment: Assignment| {
        let failure = servers_of(&config).check_assignment(&assignment).unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument);
        assert_eq!(
            servers_of(&config).resolve("wiki", &assignment),
            Err(failure.clone()),
            "told alike when it is used"
        );
        format!("{}; {}; {:?}", failure.message, failure.next.unwrap(), failure.did_you_mean)
    };
    let elsewhere =
        Assignment { params: BTreeMap::from([("wikki".to_owned(), BTreeMap::new())]), ..Assignment::default() };
    let told = [
        refused(said(Some("agnet"), None, &[])),
        refused(said(None, Some("flows"), &[])),
        refused(said(Some("second"), Some("flow"), &[])),
        refused(elsewhere),
        refused(said(None, None, &[("taem", "x")])),
        refused(said(None, None, &[("key", "hunter2")])),
        refused(said(None, None, &[("team", &"x".repeat(1025))])),
        refused(said(None, None, &[("team", "a\r\nX-Evil: b")])),
        refused(said(None, None, &[("region", "..")])),
        refused(said(None, None, &[("team", "ü")])),
    ];
    assert_snapshot!(told.join("\n"), @r#"
    the tenant's configuration has no agent `agnet`; choose one of: agent, second; ["agent"]
    the tenant's configuration has no workflow `flows`; choose one of: flow, loose; ["flow"]
    the workflow `flow` is carried out by the agent `agent`, not by `second`; leave the agent out, or name that one; []
    the tenant's configuration has no server `wikki`; choose one of: wiki; ["wiki"]
    the server `wiki` has no parameter `taem`; choose one of: note, region, team; ["team"]
    the parameter `key` of the server `wiki` is a secret; leave it out: secrets stand in the tenant's configuration only; []
    the parameter `team` of the server `wiki` is longer than 1024 bytes; give a shorter text of one line; []
    the parameter `team` of the server `wiki` holds a control character; give a shorter text of one line; []
    the parameter `region` of the server `wiki` cannot be used: it would climb in the path of the address; give another value; []
    the parameter `team` of the server `wiki` cannot be used: a header holds only printable letters of ASCII; give another value; []
    "#);
    assert!(!told.join(" ").contains("hunter2"), "what was meant as a secret is not repeated");
    let failure = servers_of(&config).resolve("none", &Assignment::default()).unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument);
}

proptest! {
    #[test]
    fn whoever_comes_later_counts(gives in prop::array::uniform5(prop::option::of("[a-z]{1,8}"))) {
        let [entry, tenant, agent, workflow, session] = &gives;
        let given = |value: &Option<String>| value.as_ref().map_or(String::new(), |value| format!("p: '{value}'"));
        // Without any word before, nobody would give the parameter to a session that says nothing.
        let default = entry.clone().unwrap_or_else(|| "entry".to_owned());
        let catalog = format!("servers: [{{ name: s, url: 'https://s.example/{{{{ params.p }}}}', params: {{ p: {{ default: '{default}' }} }} }}]");
        let file = format!(
            "tenant: acme\nservers: [{{ use: s, params: {{ {} }} }}]\n\
             agents: [{{ name: a, params: {{ s: {{ {} }} }} }}]\n\
             workflows: [{{ name: w, agent: a, params: {{ s: {{ {} }} }} }}]\n",
            given(tenant), given(agent), given(workflow)
        );
        let config = config_of(&catalog, &file);
        let params = session.iter().map(|value| ("s".to_owned(), BTreeMap::from([("p".to_owned(), value.clone())])));
        let full = Assignment { agent: None, workflow: Some("w".to_owned()), params: params.collect() };
        let last = |gives: &[&Option<String>]| gives.iter().rev().find_map(|value| (*value).clone()).unwrap_or(default.clone());
        let p = |assignment: &Assignment| servers_of(&config).resolve("s", assignment).unwrap().params["p"].clone();
        prop_assert_eq!(p(&full), last(&[tenant, agent, workflow, session]));
        prop_assert_eq!(p(&Assignment { params: BTreeMap::new(), ..full.clone() }), last(&[tenant, agent, workflow]));
        prop_assert_eq!(p(&said(Some("a"), None, &[])), last(&[tenant, agent]));
        prop_assert_eq!(p(&Assignment::default()), last(&[tenant]));
    }

    #[test]
    fn no_value_moves_an_address_to_another_place(value in "\\PC{0,40}|[./%2eE\\\\@:#?&]{0,12}") {
        let url = ParameterTemplate::parse("https://wiki.example:8443/a/{{ params.p }}/mcp?q={{ params.p }}").unwrap();
        if let Ok(filled) = fill_url(&url, |_| Ok(value.clone())) {
            let inner = filled.strip_prefix("https://wiki.example:8443/a/").and_then(|rest| rest.split_once("/mcp?q="));
            let (segment, query) = inner.expect("what stands around the value stays where it was");
            prop_assert_eq!(segment, query);
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~%".contains(&b);
            prop_assert!(segment.bytes().all(plain), "{}", segment);
            prop_assert!(!matches!(segment, "." | ".."));
        } else {
            prop_assert!(matches!(value.as_str(), "." | ".."));
        }
    }
}
