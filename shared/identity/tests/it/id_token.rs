//! ID tokens: for one client, of one sign-in, and never taken for a token of the service or the other way round.

use crate::support::{LOGIN, NOW, RSA, claims, config, http};
use domain::{Scopes, Tenant};
use identity::{IdTokenChecks, SignedIn, TokenRefused, Verifier};
use serde_json::{Value, json};

const CHECKS: IdTokenChecks<'_> = IdTokenChecks { issuer: LOGIN, client_id: "console", nonce: "n1" };

async fn believing(more: Value) -> Verifier {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("issuer.pem");
    std::fs::write(&path, RSA.pem()).expect("a written key");
    let mut issuer = json!({ "issuer": LOGIN, "algorithms": ["RS256"], "key_file": path });
    issuer.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
    Verifier::new(config(json!([issuer])), http()).await.expect("a verifier")
}

fn good() -> Value {
    let mut said = claims();
    said["aud"] = json!("console");
    said["nonce"] = json!("n1");
    said
}

async fn judged(said: &Value) -> Result<SignedIn, TokenRefused> {
    believing(json!({})).await.id_token(&RSA.saying("r", said), CHECKS, NOW).await
}

#[tokio::test]
async fn an_id_token_is_for_one_client_and_one_sign_in() {
    assert!(judged(&good()).await.is_ok());
    for (claim, value) in [
        ("aud", json!("other")),
        ("aud", json!(["other"])),
        ("aud", json!(["console", "other"])),
        ("azp", json!("other")),
        ("azp", json!(1)),
        ("nonce", json!("n2")),
        ("nonce", json!(1)),
        ("nonce", Value::Null),
        ("auth_time", json!("now")),
        ("iss", json!("https://other.example")),
        ("exp", json!(1)),
        ("sub", json!("")),
    ] {
        let mut said = good();
        said[claim] = value.clone();
        assert!(judged(&said).await.is_err(), "{claim} {value}");
    }
    let mut without = good();
    without.as_object_mut().unwrap().remove("nonce");
    assert!(judged(&without).await.is_err(), "no nonce");
    let mut several = good();
    several["aud"] = json!(["console", "other"]);
    several["azp"] = json!("console");
    assert!(judged(&several).await.is_ok(), "made for this client, and shown to others");
}

#[tokio::test]
async fn an_id_token_opens_nothing_but_the_console_and_a_token_does_not_sign_in() {
    let verifier = believing(json!({})).await;
    let refused = verifier.caller(&RSA.saying("r", &good()), NOW).await.map(drop);
    assert_eq!(refused, Err(TokenRefused::WrongAudience));
    let mut token = claims();
    token["nonce"] = json!("n1");
    assert!(verifier.id_token(&RSA.saying("r", &token), CHECKS, NOW).await.is_err());
}

#[tokio::test]
async fn the_bounds_of_an_issuer_hold_for_people_too() {
    let verifier = believing(json!({ "tenants": ["acme"], "scopes": ["runs:decide"] })).await;
    let who = verifier.id_token(&RSA.saying("r", &good()), CHECKS, NOW).await.unwrap();
    let vouched = |tenant: &str, scopes: &str| {
        verifier.vouched(&who, Tenant::parse(tenant).unwrap(), Scopes::parse(scopes)).map(drop)
    };
    assert_eq!(vouched("acme", "runs:decide"), Ok(()));
    assert_eq!(vouched("other", "runs:decide"), Err(TokenRefused::ForeignTenant));
    assert_eq!(vouched("acme", "tenant:admin"), Err(TokenRefused::ForeignScope));
}

#[tokio::test]
async fn groups_and_the_time_of_proof_are_read_as_they_stand() {
    let mut said = good();
    said["groups"] = json!(["a", 1, "b"]);
    said["auth_time"] = json!(1_000);
    let who = judged(&said).await.unwrap();
    assert_eq!((who.texts("groups"), who.texts("none").len()), (vec!["a".to_owned(), "b".to_owned()], 0));
    assert_eq!(who.proven_at.map(|at| at.millis()), Some(1_000_000));
}
