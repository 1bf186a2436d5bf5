//! How far an issuer is believed: what it may say of tenants, scopes, people and time.

use crate::support::{LOGIN, NOW, RSA, after, claims, claims_with, claims_without, config, http};
use domain::Caller;
use identity::{TokenRefused, Verifier};
use serde_json::{Value, json};
use std::sync::Arc;

/// A verifier that believes one key, under these bounds.
async fn bound(bounds: Value) -> Verifier {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("issuer.pem");
    std::fs::write(&path, RSA.pem()).expect("a written key");
    let mut issuer = json!({ "issuer": LOGIN, "algorithms": ["RS256"], "key_file": path });
    let more = bounds.as_object().expect("a table").clone();
    issuer.as_object_mut().expect("a table").extend(more);
    Verifier::new(config(json!([issuer])), http()).await.expect("a verifier")
}

async fn judged(verifier: &Verifier, claims: &Value) -> Result<Arc<Caller>, TokenRefused> {
    verifier.caller(&RSA.saying("r", claims), NOW).await
}

fn holding(email: Value) -> Value {
    claims_with("email", email)
}

#[tokio::test]
async fn an_issuer_vouches_for_its_own_tenants_only() {
    let verifier = bound(json!({ "tenants": ["acme", "shop-*"] })).await;
    for tenant in ["acme", "shop-1", "shop-eu-2"] {
        assert!(judged(&verifier, &claims_with("tenant", json!(tenant))).await.is_ok(), "{tenant}");
    }
    for tenant in ["other", "acme-2", "acm", "shop", "shoplift", "x-acme"] {
        let refused = judged(&verifier, &claims_with("tenant", json!(tenant))).await.unwrap_err();
        assert_eq!((refused, refused.status()), (TokenRefused::ForeignTenant, 403), "{tenant}");
    }
}

#[tokio::test]
async fn an_issuer_grants_no_scope_beyond_its_own() {
    let agents = bound(json!({ "scopes": ["tools:write"] })).await;
    for scope in ["tools:read", "tools:write", "tools:read tools:write openid", ""] {
        assert!(judged(&agents, &claims_with("scope", json!(scope))).await.is_ok(), "{scope}");
    }
    for scope in ["runs:decide", "tenant:admin", "audit:read", "tools:read runs:decide"] {
        let refused = judged(&agents, &claims_with("scope", json!(scope))).await.unwrap_err();
        assert_eq!((refused, refused.status()), (TokenRefused::ForeignScope, 403), "{scope}");
    }
    let readers = bound(json!({ "scopes": ["tools:read"] })).await;
    let refused = judged(&readers, &claims_with("scope", json!("tools:write"))).await;
    assert_eq!(refused, Err(TokenRefused::ForeignScope), "the lesser scope does not include the greater");
}

#[tokio::test]
async fn no_issuer_grants_what_reaches_beyond_a_tenant_by_default() {
    let operator = || claims_with("scope", json!("operator:switch"));
    let refused = judged(&bound(json!({})).await, &operator()).await;
    assert_eq!(refused, Err(TokenRefused::ForeignScope), "without a list of scopes");
    let named = bound(json!({ "scopes": ["operator:switch"] })).await;
    assert!(judged(&named, &operator()).await.is_ok());
}

#[tokio::test]
async fn a_person_is_named_in_one_spelling_and_always() {
    let verifier = bound(json!({ "person_claim": "email" })).await;
    for email in ["ana@acme.example", "Ana@ACME.example", " ana@acme.example "] {
        let caller = judged(&verifier, &holding(json!(email))).await.unwrap();
        assert_eq!(caller.principal.person.as_deref(), Some("ana@acme.example"), "{email}");
    }
    let nobody =
        [json!(""), json!(" "), json!(7), json!(null), json!(["ana"]), json!("a\u{0}b"), json!("x".repeat(257))];
    for email in nobody {
        assert_eq!(judged(&verifier, &holding(email.clone())).await, Err(TokenRefused::NoPerson), "{email}");
    }
    // Whoever may leave the name out may be somebody else whenever it suits.
    assert_eq!(judged(&verifier, &claims()).await, Err(TokenRefused::NoPerson));
    assert_eq!(TokenRefused::NoPerson.status(), 401);
    let twice = holding(json!("ana@acme.example")).to_string().replacen('{', r#"{"email":"bo@acme.example","#, 1);
    let token = RSA.sign_text(r#"{"alg":"RS256","kid":"r"}"#, &twice);
    assert_eq!(verifier.caller(&token, NOW).await, Err(TokenRefused::NotAToken));

    let anybody = bound(json!({})).await;
    assert_eq!(judged(&anybody, &holding(json!("ana@acme.example"))).await.unwrap().principal.person, None);
}

#[tokio::test]
async fn an_address_that_nobody_checked_names_nobody() {
    let verifier = bound(json!({ "person_claim": "email" })).await;
    let with = |verified: Value| {
        let mut claims = holding(json!("ana@acme.example"));
        claims["email_verified"] = verified;
        claims
    };
    assert!(judged(&verifier, &with(json!(true))).await.is_ok());
    for unchecked in [json!(false), json!("true"), json!(null), json!(1)] {
        assert_eq!(judged(&verifier, &with(unchecked.clone())).await, Err(TokenRefused::NoPerson), "{unchecked}");
    }
    let number = bound(json!({ "person_claim": "employee" })).await;
    let mut claims = with(json!(false));
    claims["employee"] = json!("E-77");
    assert_eq!(judged(&number, &claims).await.unwrap().principal.person.as_deref(), Some("e-77"));
}

#[tokio::test]
async fn a_token_lives_no_longer_than_its_issuers_tokens_may() {
    let verifier = bound(json!({ "longest_token": "1h" })).await;
    let (hour, now) = (3600, NOW.millis() / 1000);
    let lives = |iat: Value, exp: u64| {
        let mut claims = claims_with("iat", iat);
        claims["exp"] = json!(exp);
        claims
    };
    assert!(judged(&verifier, &lives(json!(now), now + hour)).await.is_ok());
    assert!(judged(&verifier, &lives(json!(now - hour + 1), now + 1)).await.is_ok());
    for (iat, exp) in [(now, now + hour + 1), (now - hour, now + 1), (0, now + 1)] {
        let refused = judged(&verifier, &lives(json!(iat), exp)).await.unwrap_err();
        assert_eq!((refused, refused.status()), (TokenRefused::LivesTooLong, 401), "{iat} {exp}");
    }
    // A token from the future could promise a short life that begins in a hundred years.
    let century = now + 100 * 365 * 24 * hour;
    assert_eq!(judged(&verifier, &lives(json!(century), century + 1)).await, Err(TokenRefused::NotYetValid));
    for mistyped in [json!(null), json!("now"), json!(-1), json!([now])] {
        let refused = judged(&verifier, &lives(mistyped.clone(), now + 1)).await;
        assert_eq!(refused, Err(TokenRefused::BadClaim { claim: "iat" }), "{mistyped}");
    }
}

#[tokio::test]
async fn a_token_that_does_not_say_when_it_was_made_is_measured_from_now() {
    let verifier = bound(json!({ "longest_token": "1h" })).await;
    let mut claims = claims_without("iat");
    claims["exp"] = json!(NOW.millis() / 1000 + 7200);
    let token = RSA.saying("r", &claims);
    assert_eq!(verifier.caller(&token, NOW).await, Err(TokenRefused::LivesTooLong));
    assert!(verifier.caller(&token, after(3600)).await.is_ok());
}

#[tokio::test]
async fn the_longest_life_is_a_day_unless_the_operator_says_otherwise() {
    let issuer = json!({ "issuer": LOGIN, "algorithms": ["RS256"], "jwks_url": "https://login.example/keys" });
    let read: identity::Config =
        serde_json::from_value(json!({ "resource": "https://qm.example/mcp", "issuers": [issuer] })).unwrap();
    assert_eq!(read.issuers[0].longest_token.as_secs(), 24 * 3600);
}
