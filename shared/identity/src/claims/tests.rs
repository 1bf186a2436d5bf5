use super::*;
use domain::TokenScope;
use serde_json::json;

const US: &str = "https://qm.example/mcp";
const LEEWAY: Duration = Duration::from_secs(60);

fn claims(value: &Value) -> Claims {
    Claims::parse(value.to_string().as_bytes()).unwrap()
}

fn good() -> Value {
    json!({
        "iss": "https://login.example", "aud": US, "exp": 1000, "sub": "agent-7", "tenant": "acme",
        "scope": "tools:read openid",
    })
}

fn with(claim: &str, value: Value) -> Claims {
    let mut changed = good();
    changed[claim] = value;
    claims(&changed)
}

fn without(claim: &str) -> Claims {
    let mut changed = good();
    changed.as_object_mut().unwrap().remove(claim);
    claims(&changed)
}

#[test]
fn good_claims_make_a_caller() {
    let caller = claims(&good()).caller(Moment::from_secs(1000)).unwrap();

    assert_eq!(caller.tenant.as_str(), "acme");
    assert_eq!(caller.principal.issuer, "https://login.example");
    assert_eq!(caller.principal.subject, "agent-7");
    assert_eq!(caller.scopes.iter().collect::<Vec<_>>(), [TokenScope::ToolsRead]);
    assert_eq!(caller.expires_at, Moment::from_secs(1000));
}

#[test]
fn t5_the_leeway_is_exact_at_both_edges() {
    let window = with("nbf", json!(500)).window().unwrap();

    for (millis, verdict) in [
        (439_999, Err(TokenRefused::NotYetValid)),
        (440_000, Ok(())),
        (1_059_999, Ok(())),
        (1_060_000, Err(TokenRefused::Expired)),
        (1_060_001, Err(TokenRefused::Expired)),
    ] {
        assert_eq!(window.check(Moment::from_millis(millis), LEEWAY), verdict, "{millis}");
    }
    assert_eq!(window.check(Moment::from_millis(999_999), Duration::ZERO), Ok(()));
    assert_eq!(window.check(Moment::from_millis(1_000_000), Duration::ZERO), Err(TokenRefused::Expired));
}

#[test]
fn a_fraction_of_a_second_is_a_time() {
    assert_eq!(with("exp", json!(1000.5)).window().unwrap().expires_at, Moment::from_millis(1_000_500));
    assert_eq!(with("exp", json!(1e300)).window().unwrap().expires_at, Moment::from_millis(u64::MAX));
}

#[test]
fn cve_2026_25537_mistyped_times_are_refused() {
    for bad in [json!("1000"), json!(null), json!(-1), json!(-0.5), json!(true), json!([1000]), json!({ "at": 1000 })] {
        assert_eq!(with("exp", bad.clone()).window(), Err(TokenRefused::BadClaim { claim: "exp" }), "{bad}");
        assert_eq!(with("nbf", bad.clone()).window(), Err(TokenRefused::BadClaim { claim: "nbf" }), "{bad}");
    }
    assert_eq!(without("exp").window(), Err(TokenRefused::MissingClaim { claim: "exp" }));
    assert_eq!(Claims::parse(br#"{"exp":1e400}"#).err(), Some(TokenRefused::NotAToken));
}

#[test]
fn the_audience_is_ours_or_a_list_with_us() {
    for good in [json!(US), json!([US]), json!(["https://other.example", US])] {
        assert_eq!(with("aud", good.clone()).check_audience(US), Ok(()), "{good}");
    }
    for foreign in
        ["", "https://qm.example", "https://qm.example/mcp/", "https://qm.example/mcp.evil", "HTTPS://qm.example/mcp"]
    {
        assert_eq!(with("aud", json!(foreign)).check_audience(US), Err(TokenRefused::WrongAudience), "{foreign}");
        assert_eq!(with("aud", json!([foreign])).check_audience(US), Err(TokenRefused::WrongAudience), "{foreign}");
    }
    assert_eq!(with("aud", json!([])).check_audience(US), Err(TokenRefused::WrongAudience));
    for mistyped in [json!(null), json!(7), json!({ US: US }), json!([US, 7]), json!([[US]])] {
        assert_eq!(
            with("aud", mistyped.clone()).check_audience(US),
            Err(TokenRefused::BadClaim { claim: "aud" }),
            "{mistyped}"
        );
    }
    assert_eq!(without("aud").check_audience(US), Err(TokenRefused::MissingClaim { claim: "aud" }));
}

#[test]
fn a_subject_is_a_short_plain_text() {
    let caller = |claims: Claims| claims.caller(Moment::from_secs(1));
    assert!(caller(with("sub", json!("x".repeat(256)))).is_ok());
    for bad in
        [json!(""), json!("x".repeat(257)), json!("a\nb"), json!("a\u{0}"), json!("\u{85}"), json!(7), json!(null)]
    {
        assert_eq!(caller(with("sub", bad.clone())), Err(TokenRefused::BadClaim { claim: "sub" }), "{bad}");
    }
    assert_eq!(caller(without("sub")), Err(TokenRefused::MissingClaim { claim: "sub" }));
}

#[test]
fn the_scope_is_a_text_and_must_be_there() {
    let caller = |claims: Claims| claims.caller(Moment::from_secs(1));
    assert_eq!(caller(with("scope", json!(""))).unwrap().scopes, Scopes::default());
    assert_eq!(caller(with("scope", json!(["tools:read"]))), Err(TokenRefused::BadClaim { claim: "scope" }));
    assert_eq!(caller(without("scope")), Err(TokenRefused::MissingClaim { claim: "scope" }));
}

#[test]
fn a_missing_or_mistyped_tenant_is_a_bad_one() {
    let caller = |claims: Claims| claims.caller(Moment::from_secs(1));
    assert_eq!(caller(without("tenant")), Err(TokenRefused::BadTenant));
    for bad in [json!(null), json!(7), json!(["acme"]), json!({ "acme": 1 }), json!("")] {
        assert_eq!(caller(with("tenant", bad.clone())), Err(TokenRefused::BadTenant), "{bad}");
    }
}

#[test]
fn a_claim_that_only_the_settings_name_is_read_as_strictly() {
    let named = |payload: &str| claim_named(payload.as_bytes(), "email");
    assert_eq!(named(r#"{"sub":"a","email":"ana@acme"}"#), Ok(Some(json!("ana@acme"))));
    assert_eq!(named(r#"{"sub":{"email":"ana@acme"}}"#), Ok(None));
    assert_eq!(named(r#"{"email":null}"#), Ok(Some(json!(null))));
    for bad in [r#"{"email":"a","email":"b"}"#, r#"{"email":"a"}x"#, r#"["email","a"]"#, ""] {
        assert_eq!(named(bad), Err(TokenRefused::NotAToken), "{bad}");
    }
}

#[test]
fn a_claim_said_twice_is_not_understood() {
    for bad in [r#"{"exp":1,"exp":2}"#, r#"{"tenant":"a","tenant":"b"}"#, "[]", "null", "", r#"{"exp":1}x"#] {
        assert_eq!(Claims::parse(bad.as_bytes()).err(), Some(TokenRefused::NotAToken), "{bad}");
    }
}

#[test]
fn labels_are_a_list_or_a_text_and_count_for_a_runner_alone() {
    let labels = |scope: &str, labels: Value| {
        let mut changed = good();
        changed["scope"] = json!(scope);
        changed["labels"] = labels;
        claims(&changed).caller(Moment::from_secs(1)).map(|caller| caller.labels)
    };
    let named = |names: &[&str]| Ok(names.iter().map(|name| RunnerLabel::parse(name).unwrap()).collect::<Vec<_>>());
    assert_eq!(labels("runner:work", json!(["shop-hosts", "db"])), named(&["shop-hosts", "db"]));
    assert_eq!(labels("runner:work", json!("shop-hosts  db")), named(&["shop-hosts", "db"]));
    assert_eq!(labels("runner:work", json!([])), named(&[]));
    assert_eq!(labels("tools:read", json!({ "team": "blue" })), named(&[]), "another service's claim");
    assert_eq!(
        with("scope", json!("runner:work")).caller(Moment::from_secs(1)).unwrap().labels,
        [],
        "absent means none"
    );
    for bad in [json!(null), json!(7), json!({}), json!([7]), json!(["Shop"]), json!(["a b"]), json!("*")] {
        assert_eq!(labels("runner:work", bad.clone()), Err(TokenRefused::BadClaim { claim: "labels" }), "{bad}");
    }
    let many: Vec<String> = (0..40).map(|n| format!("l{n}")).collect();
    assert_eq!(labels("runner:work", json!(many)), Err(TokenRefused::BadClaim { claim: "labels" }));
}
