use super::*;
use serde_json::{Value, json};

fn read(config: Value) -> Result<Config, serde_json::Error> {
    serde_json::from_value(config)
}

fn with_issuer(issuer: Value) -> Vec<ConfigError> {
    read(json!({ "resource": "https://qm.example/mcp", "issuers": [issuer] })).unwrap().problems()
}

#[test]
fn the_spans_have_defaults_and_text_forms() {
    let config = read(json!({
        "resource": "https://qm.example/mcp",
        "issuers": [
            { "issuer": "a", "algorithms": ["RS256", "ES256", "EdDSA"], "jwks_url": "https://a.example/keys" },
            { "issuer": "b", "algorithms": ["HS256"], "key_file": "b.key", "refetch_every": "5s", "max_stale": "1h" },
        ],
    }))
    .unwrap();

    assert_eq!(config.check(), Ok(()));
    assert_eq!(config.leeway, Duration::from_secs(60));
    assert_eq!(config.issuers[0].refetch_every, Duration::from_secs(10));
    assert_eq!(config.issuers[0].max_stale, Duration::from_secs(86_400));
    assert_eq!(config.issuers[1].refetch_every, Duration::from_secs(5));
    assert_eq!(config.issuers[1].max_stale, Duration::from_secs(3600));
}

#[test]
fn unknown_keys_and_unknown_algorithms_are_refused() {
    let resource = "https://qm.example/mcp";
    assert!(read(json!({ "resource": resource, "issuers": [], "anonymous": true })).is_err());
    for algorithm in ["none", "RS512", "rs256", "HS384", ""] {
        let issuer = json!({ "issuer": "a", "algorithms": [algorithm], "key_file": "k" });
        assert!(read(json!({ "resource": resource, "issuers": [issuer] })).is_err(), "{algorithm}");
    }
    assert!(read(json!({ "resource": resource, "issuers": [], "leeway": 60 })).is_err());
}

#[test]
fn nobody_starts_without_an_issuer() {
    let config = read(json!({ "resource": "https://qm.example/mcp", "issuers": [] })).unwrap();
    assert_eq!(config.check(), Err(ConfigError::NoIssuer));
}

#[test]
fn the_resource_is_a_canonical_uri() {
    for bad in ["", "qm.example/mcp", "https://", "https://qm.example/mcp/", "https://qm.example/mcp#x", "https://q m"]
    {
        let issuer = json!({ "issuer": "a", "algorithms": ["RS256"], "key_file": "k" });
        let config = read(json!({ "resource": bad, "issuers": [issuer] })).unwrap();
        assert_eq!(config.problems(), [ConfigError::Resource(bad.to_owned())]);
    }
}

#[test]
fn keys_come_from_exactly_one_place() {
    let neither = json!({ "issuer": "a", "algorithms": ["RS256"] });
    let both = json!({ "issuer": "a", "algorithms": ["RS256"], "key_file": "k", "jwks_url": "https://a.example/k" });
    assert_eq!(with_issuer(neither), [ConfigError::KeySource("a".into())]);
    assert_eq!(with_issuer(both), [ConfigError::KeySource("a".into())]);
}

#[test]
fn a_shared_secret_stands_alone_and_in_a_file() {
    let fetched = json!({ "issuer": "a", "algorithms": ["HS256"], "jwks_url": "https://a.example/keys" });
    let mixed = json!({ "issuer": "a", "algorithms": ["HS256", "RS256"], "key_file": "k" });
    assert_eq!(with_issuer(fetched), [ConfigError::SharedSecret("a".into())]);
    assert_eq!(with_issuer(mixed), [ConfigError::SharedSecret("a".into())]);
}

#[test]
fn keys_are_not_fetched_in_the_clear() {
    let issuer = json!({ "issuer": "a", "algorithms": ["RS256"], "jwks_url": "http://a.example/keys" });
    let source = egress::AddressError::Insecure;
    assert_eq!(with_issuer(issuer), [ConfigError::Address { issuer: "a".into(), source }]);
}

#[test]
fn bounds_that_mean_nothing_are_refused() {
    let with = |key: &str, value: Value| {
        let mut issuer = json!({ "issuer": "a", "algorithms": ["RS256"], "key_file": "k" });
        issuer[key] = value;
        with_issuer(issuer)
    };
    assert_eq!(with("tenants", json!(["acme", "shop-*"])), []);
    assert_eq!(with("tenants", json!([])), [ConfigError::Nothing("a".into())]);
    let tenant = |text: &str| ConfigError::Tenant { issuer: "a".into(), tenant: text.into() };
    assert_eq!(with("tenants", json!(["*", "acme", "shop*"])), [tenant("*"), tenant("shop*")]);
    assert_eq!(with("scopes", json!(["tools:read", "runs:decide"])), []);
    assert_eq!(with("scopes", json!([])), [ConfigError::Nothing("a".into())]);
    assert_eq!(with("scopes", json!(["tools"])), [ConfigError::Scope { issuer: "a".into(), scope: "tools".into() }]);
    assert_eq!(with("person_claim", json!("email")), []);
    for claim in ["", "iss", "tenant", "scope"] {
        assert_eq!(with("person_claim", json!(claim)), [ConfigError::PersonClaim("a".into())], "{claim}");
    }
    assert_eq!(with("longest_token", json!("0s")), [ConfigError::LongestToken("a".into())]);
}

#[test]
fn several_issuers_without_bounds_are_worth_a_warning() {
    let warnings =
        |issuers: Value| read(json!({ "resource": "https://qm.example/mcp", "issuers": issuers })).unwrap().warnings();
    let issuer = |name: &str| json!({ "issuer": name, "algorithms": ["RS256"], "key_file": "k" });
    let bound = json!({
        "issuer": "c", "algorithms": ["RS256"], "key_file": "k", "tenants": ["acme"], "person_claim": "email",
    });
    assert_eq!(warnings(json!([issuer("a")])), []);
    let both = warnings(json!([issuer("a"), issuer("b")]));
    assert_eq!(both, [ConfigWarning::Unbound(2), ConfigWarning::Unnamed("a, b".into())]);
    assert_eq!(warnings(json!([issuer("a"), bound])), [ConfigWarning::Unnamed("a".into())]);
}

#[test]
fn every_problem_is_named_at_once() {
    let config = read(json!({
        "resource": "mcp", "leeway": "1h",
        "issuers": [
            { "issuer": "a", "algorithms": [], "key_file": "k", "refetch_every": "0s" },
            { "issuer": "a", "algorithms": ["RS256"], "key_file": "k", "refetch_every": "1h", "max_stale": "1h" },
            { "issuer": "", "algorithms": ["RS256"], "key_file": "k" },
        ],
    }))
    .unwrap();

    let expected = [
        ConfigError::Resource("mcp".into()),
        ConfigError::Leeway,
        ConfigError::NoAlgorithm("a".into()),
        ConfigError::Refetch("a".into()),
        ConfigError::Twice("a".into()),
        ConfigError::Stale("a".into()),
        ConfigError::Unnamed,
    ];
    assert_eq!(config.problems(), expected);
}
