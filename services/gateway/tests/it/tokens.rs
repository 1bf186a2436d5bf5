//! Who is let in: every line of the authorization chapter, end to end.

use crate::here::{World, embedded, told};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::actor::Mint;
use testkit::{Answer, Request};

const METADATA: &str = "https://qm.example.com/.well-known/oauth-protected-resource/mcp";

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" })
}

fn request() -> Request {
    Request::new("POST", "/mcp").header("Content-Type", "application/json").body(list().to_string())
}

async fn with(world: &World, authorization: &str) -> Answer {
    request().header("Authorization", authorization).send(world.address(0)).await
}

async fn token(world: &World, token: &str) -> Answer {
    with(world, &format!("Bearer {token}")).await
}

fn assert_needed(answer: &Answer, what: &str) {
    assert_eq!(
        told(answer),
        r#"401 {"jsonrpc":"2.0","error":{"code":1001,"message":"a bearer token is needed","data":{"code":"unauthenticated","retryable":false,"trace_id":"TRACE"}}}"#,
        "{what}"
    );
    let challenge = format!(r#"Bearer resource_metadata="{METADATA}", scope="tools:read""#);
    assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()), "{what}");
}

fn assert_invalid(answer: &Answer, what: &str) {
    assert_eq!(
        told(answer),
        r#"401 {"jsonrpc":"2.0","error":{"code":1001,"message":"the token is not valid","data":{"code":"unauthenticated","retryable":false,"details":{"error":"invalid_token"},"trace_id":"TRACE"}}}"#,
        "{what}"
    );
    let challenge = format!(r#"Bearer error="invalid_token", resource_metadata="{METADATA}", scope="tools:read""#);
    assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()), "{what}");
}

/// Header and payload of a token, unsigned.
fn unsigned(header: &Value, payload: &str) -> String {
    format!("{}.{payload}", URL_SAFE_NO_PAD.encode(header.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_nobody_is_let_in() {
    let world = embedded().await;
    let good = world.mint().token(|_| {});
    assert_needed(&request().send(world.address(0)).await, "nothing");
    assert_needed(&request().at(&format!("/mcp?access_token={good}")).send(world.address(0)).await, "in the query");
    assert_needed(&request().at(&format!("/mcp?token={good}")).send(world.address(0)).await, "in the query");
    for other in ["", "Bearer", "Basic YTpi", &good, &format!("Token {good}")] {
        assert_needed(&with(&world, other).await, other);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn id8_one_header_in_any_case_and_nothing_around_the_token() {
    let world = embedded().await;
    let good = world.mint().token(|_| {});
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        assert_eq!(with(&world, &format!("{scheme} {good}")).await.status, 200, "{scheme}");
    }
    let twice =
        request().header("Authorization", format!("Bearer {good}")).header("Authorization", format!("Bearer {good}"));
    assert_eq!(
        told(&twice.send(world.address(0)).await),
        r#"400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"two Authorization headers were sent","data":{"code":"invalid_request","retryable":false,"trace_id":"TRACE"}}}"#
    );
    for blanks in
        [format!("Bearer  {good}"), format!("Bearer {good} x"), format!("Bearer {}", good.replacen('.', ". ", 1))]
    {
        assert_invalid(&with(&world, &blanks).await, "blanks");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn id1_a_token_is_signed_as_its_issuer_signs_or_not_at_all() {
    let world = embedded().await;
    let good = world.mint().token(|_| {});
    let payload = good.split('.').nth(1).unwrap();
    for alg in ["none", "None", "NONE", "nOnE"] {
        let bare = unsigned(&json!({ "alg": alg, "typ": "JWT" }), payload);
        assert_invalid(&token(&world, &format!("{bare}.")).await, alg);
        assert_invalid(&token(&world, &bare).await, alg);
        let signature = good.rsplit('.').next().unwrap();
        assert_invalid(&token(&world, &format!("{bare}.{signature}")).await, alg);
    }
    for alg in ["HS384", "HS512", "RS256", "ES256", "EdDSA", ""] {
        let other = unsigned(&json!({ "alg": alg }), payload);
        assert_invalid(&token(&world, &format!("{other}.{}", good.rsplit('.').next().unwrap())).await, alg);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn id1_a_token_that_was_touched_is_no_token() {
    let world = embedded().await;
    let good = world.mint().token(|_| {});
    let parts: Vec<&str> = good.split('.').collect();
    let claims = URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
    let raised = String::from_utf8(claims).unwrap().replace("acme", "other");
    let raised = format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(raised), parts[2]);
    assert_invalid(&token(&world, &raised).await, "another tenant");
    let foreign = embedded().await.mint().token(|_| {});
    assert_invalid(&token(&world, &foreign).await, "another key");
    for cut in [&good[..good.len() - 1], &good[1..], "a.b.c", "..", ".", "x", &"a".repeat(100_000)] {
        assert_invalid(&token(&world, cut).await, &cut[..cut.len().min(20)]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn id6_issuer_and_audience_are_compared_byte_for_byte() {
    let world = embedded().await;
    for aud in [
        "",
        "https://qm.example.com",
        "https://qm.example.com/mcp/",
        "https://QM.example.com/mcp",
        "https://qm.example.com/mcp.evil",
        "http://qm.example.com/mcp",
    ] {
        assert_invalid(&token(&world, &world.mint().token(|claims| claims.aud = aud.into())).await, aud);
    }
    for iss in ["", "https://login.example.com/", "https://LOGIN.example.com", "https://evil.example"] {
        assert_invalid(&token(&world, &world.mint().token(|claims| claims.iss = iss.into())).await, iss);
    }
    assert_invalid(&token(&world, &world.mint().token(|claims| claims.sub = String::new())).await, "nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn id7_an_expired_token_is_refused_and_a_little_leeway_is_given() {
    let world = embedded().await;
    let ended = |secs: u64| {
        let exp = domain::Moment::from_millis(Mint::now().millis() - secs * 1000);
        world.mint().token(|claims| claims.exp = exp)
    };
    assert_invalid(&token(&world, &ended(3600)).await, "an hour ago");
    assert_invalid(&token(&world, &ended(70)).await, "beyond the leeway");
    assert_eq!(token(&world, &ended(30)).await.status, 200, "within the leeway");
}

#[tokio::test(flavor = "multi_thread")]
async fn id9_a_tenant_that_is_none_answers_like_one_that_is_not_served() {
    let world = embedded().await;
    let long = "a".repeat(10_000);
    let refused = r#"403 {"jsonrpc":"2.0","error":{"code":1003,"message":"the token names no tenant that is served here","data":{"code":"forbidden_tenant","retryable":false,"trace_id":"TRACE"}}}"#;
    for tenant in ["", "*", "a:b", "ACME", "аcme", "{x}", "acme ", "-acme", &long, "nobody", "acme-2"] {
        let answer = token(&world, &world.mint().token(|claims| claims.tenant = tenant.into())).await;
        let shown: String = tenant.chars().take(20).collect();
        assert_eq!(told(&answer), refused, "{shown}");
        assert_eq!(answer.header("www-authenticate"), None, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_may_not_call_tools_is_told_the_scope_it_lacks() {
    let world = embedded().await;
    let approver = world.tenant("acme").approver();
    let answer = approver.send(&approver.post("/mcp", &list())).await;
    assert_eq!(
        told(&answer),
        r#"403 {"jsonrpc":"2.0","id":7,"error":{"code":1003,"message":"the token lacks the scope tools:read","data":{"code":"insufficient_scope","retryable":false,"details":{"scope":"tools:read"},"trace_id":"TRACE"}}}"#
    );
    let challenge = format!(r#"Bearer error="insufficient_scope", resource_metadata="{METADATA}", scope="tools:read""#);
    assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()));
    for scope in ["", "openid", "TOOLS:READ", "tools:*"] {
        let answer = token(&world, &world.mint().token(|claims| claims.scope = scope.into())).await;
        assert_eq!(answer.json()["error"]["data"]["code"], "insufficient_scope", "{scope:?}: {}", answer.text());
    }
    assert_eq!(token(&world, &world.mint().token(|claims| claims.scope = "tools:write".into())).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_resource_metadata_is_public_and_exact() {
    let world = embedded().await;
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = world.get(0, path).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let wanted = json!({
            "resource": Mint::RESOURCE,
            "authorization_servers": [Mint::ISSUER],
            "scopes_supported": ["tools:read"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Quartermaster",
        });
        assert_eq!(answer.json(), wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_refused_on_the_rest_api_in_its_own_words() {
    let world = embedded().await;
    let answer = Request::new("POST", "/v1/sessions").send(world.address(0)).await;
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["error"]["code"], "unauthenticated");
    let challenge = format!(r#"Bearer resource_metadata="{METADATA}", scope="tools:read""#);
    assert_eq!(answer.header("www-authenticate"), Some(challenge.as_str()));
    let short = world.tenant("acme").agent().for_only(Duration::from_secs(60));
    assert_eq!(short.rest().open("read").await.len(), 26);
}
