//! The rows of the threat model that a single token can carry.

use crate::support::{KeyServer, LOGIN, NOW, Pair, RSA, US, after, b64, claims, claims_with, claims_without, verifier};
use aws_lc_rs::hmac;
use identity::{TokenRefused, Verifier};
use serde_json::{Value, json};

/// A verifier with one RSA key, and the server it fetched it from.
async fn world() -> (Verifier, KeyServer) {
    let server = KeyServer::publishing(&[RSA.jwk("r")]).await;
    (verifier(&server).await, server)
}

async fn refusal(verifier: &Verifier, token: &str) -> TokenRefused {
    verifier.caller(token, NOW).await.expect_err("this token must not make a caller")
}

#[tokio::test]
async fn id1_the_algorithm_is_never_the_tokens_choice() {
    let (verifier, _server) = world().await;
    let unsigned = |alg: &str| {
        let header = json!({ "alg": alg, "kid": "r" }).to_string();
        format!("{}.{}.", b64(header.as_bytes()), b64(claims().to_string().as_bytes()))
    };
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        assert_eq!(refusal(&verifier, &unsigned(alg)).await, TokenRefused::WrongAlgorithm, "{alg}");
    }
    for alg in ["RS256", "ES256"] {
        assert_eq!(refusal(&verifier, &unsigned(alg)).await.status(), 401, "{alg}");
    }

    for secret in [RSA.pem(), RSA.jwk("r").to_string()] {
        let header = json!({ "alg": "HS256", "kid": "r" }).to_string();
        let message = format!("{}.{}", b64(header.as_bytes()), b64(claims().to_string().as_bytes()));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), message.as_bytes());
        let forged = format!("{message}.{}", b64(tag.as_ref()));
        assert_eq!(refusal(&verifier, &forged).await, TokenRefused::WrongAlgorithm);
    }

    for alg in ["RS384", "RS512", "PS256", "ES384", "HS512", "rs256"] {
        let token = RSA.sign(&json!({ "alg": alg, "kid": "r" }), &claims());
        assert_eq!(refusal(&verifier, &token).await, TokenRefused::WrongAlgorithm, "{alg}");
    }
}

#[tokio::test]
async fn id1_an_allowed_algorithm_must_still_fit_the_key() {
    let (verifier, _server) = world().await;
    let stranger = Pair::ec();

    let token = stranger.sign(&json!({ "alg": "ES256", "kid": "r" }), &claims());

    assert_eq!(refusal(&verifier, &token).await, TokenRefused::WrongAlgorithm);
}

#[tokio::test]
async fn id1_an_algorithm_outside_the_issuers_list_is_refused_even_with_a_published_key() {
    let (ec, ed) = (Pair::ec(), Pair::ed());
    let server = KeyServer::publishing(&[ec.jwk("e"), ed.jwk("d")]).await;
    let issuer = json!({ "issuer": LOGIN, "algorithms": ["ES256"], "jwks_url": server.url });
    let verifier = Verifier::new(crate::support::config(json!([issuer])), crate::support::http()).await.unwrap();

    assert!(verifier.caller(&ec.token("e"), NOW).await.is_ok());
    assert_eq!(refusal(&verifier, &ed.token("d")).await, TokenRefused::WrongAlgorithm);
}

#[tokio::test]
async fn id2_strange_key_ids_are_only_ever_compared() {
    let (verifier, server) = world().await;
    verifier.caller(&RSA.token("r"), NOW).await.unwrap();

    for kid in ["../../etc/passwd", "' OR 1", "", "R", "r ", "r\0", "http://evil.example/keys"] {
        assert_eq!(refusal(&verifier, &RSA.token(kid)).await, TokenRefused::UnknownKey, "{kid}");
    }
    assert_eq!(refusal(&verifier, &RSA.token(&"k".repeat(64 * 1024))).await, TokenRefused::TooLong);
    let twice = RSA.sign_text(r#"{"alg":"RS256","kid":"r","kid":"r"}"#, &claims().to_string());
    assert_eq!(refusal(&verifier, &twice).await, TokenRefused::NotAToken);
    for kid in [json!(null), json!(7), json!(["r"])] {
        let token = RSA.sign(&json!({ "alg": "RS256", "kid": kid }), &claims());
        assert_eq!(refusal(&verifier, &token).await, TokenRefused::NotAToken, "{kid}");
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn id2_a_missing_key_id_is_allowed_only_where_there_is_no_choice() {
    let (verifier, server) = world().await;
    let token = RSA.sign(&json!({ "alg": "RS256" }), &claims());
    assert!(verifier.caller(&token, NOW).await.is_ok());

    server.publish(&[RSA.jwk("r"), Pair::ed().jwk("d")]);
    verifier.warm(after(150)).await;

    let another = RSA.sign(&json!({ "alg": "RS256" }), &claims_with("sub", json!("another")));
    assert_eq!(verifier.caller(&another, after(150)).await, Err(TokenRefused::UnknownKey));
}

#[tokio::test]
async fn id2_headers_that_point_to_keys_lead_nowhere() {
    let (verifier, server) = world().await;
    let evil = Pair::ed();
    let trap = KeyServer::publishing(&[evil.jwk("evil")]).await;
    verifier.caller(&RSA.token("r"), NOW).await.unwrap();

    for (name, value) in
        [("jku", json!(trap.url)), ("x5u", json!(trap.url)), ("jwk", evil.jwk("evil")), ("x5c", json!(["AA"]))]
    {
        let header = json!({ "alg": "EdDSA", "kid": "evil", name: value });
        assert_eq!(refusal(&verifier, &evil.sign(&header, &claims())).await, TokenRefused::UnknownKey, "{name}");
        let honest = json!({ "alg": "RS256", "kid": "r", name: value });
        assert!(verifier.caller(&RSA.sign(&honest, &claims()), NOW).await.is_ok(), "{name} is ignored");
    }

    assert_eq!((trap.asked(), server.asked()), (0, 1));
}

#[tokio::test]
async fn id6_audience_and_issuer_match_exactly_or_not_at_all() {
    let (verifier, _server) = world().await;
    let foreign = [
        "https://qm.example/mcp.evil",
        "https://qm.example.evil/mcp",
        "https://qm.example/mcp/",
        "https://QM.example/mcp",
        "*",
    ];
    for aud in foreign {
        for shape in [json!(aud), json!([aud])] {
            let token = RSA.saying("r", &claims_with("aud", shape));
            assert_eq!(refusal(&verifier, &token).await, TokenRefused::WrongAudience, "{aud}");
        }
    }
    for mistyped in [json!(null), json!(1), json!({ "aud": US }), json!([US, 1])] {
        let token = RSA.saying("r", &claims_with("aud", mistyped));
        assert_eq!(refusal(&verifier, &token).await, TokenRefused::BadClaim { claim: "aud" });
    }
    let absent = RSA.saying("r", &claims_without("aud"));
    assert_eq!(refusal(&verifier, &absent).await, TokenRefused::MissingClaim { claim: "aud" });
    let among_others = RSA.saying("r", &claims_with("aud", json!(["https://other.example", US])));
    assert!(verifier.caller(&among_others, NOW).await.is_ok());

    for iss in ["https://login.example/", "https://LOGIN.example", "login.example", ""] {
        let token = RSA.saying("r", &claims_with("iss", json!(iss)));
        assert_eq!(refusal(&verifier, &token).await, TokenRefused::UnknownIssuer, "{iss}");
    }
    let listed = RSA.saying("r", &claims_with("iss", json!([LOGIN])));
    assert_eq!(refusal(&verifier, &listed).await, TokenRefused::BadClaim { claim: "iss" });
    let absent = RSA.saying("r", &claims_without("iss"));
    assert_eq!(refusal(&verifier, &absent).await, TokenRefused::MissingClaim { claim: "iss" });
}

#[tokio::test]
async fn cve_2026_25537_mistyped_times_are_refused() {
    let (verifier, _server) = world().await;
    let far = 4_000_000_000_u64;
    for claim in ["exp", "nbf"] {
        let past = NOW.millis() / 1000 - 1000;
        let mistyped =
            [json!(far.to_string()), json!(past.to_string()), json!(null), json!(true), json!([far]), json!("never")];
        for value in mistyped.into_iter().chain([json!(-1), json!({ "at": far })]) {
            let token = RSA.saying("r", &claims_with(claim, value.clone()));
            let refused = refusal(&verifier, &token).await;
            assert_eq!((refused, refused.status()), (TokenRefused::BadClaim { claim }, 401), "{claim}: {value}");
        }
    }
}

#[tokio::test]
async fn id7_a_token_without_a_believable_time_is_refused() {
    let (verifier, _server) = world().await;
    let header = r#"{"alg":"RS256","kid":"r"}"#;
    let endless = claims().to_string().replace(&claims()["exp"].to_string(), "1e400");
    assert!(endless.contains("1e400"));
    assert_eq!(refusal(&verifier, &RSA.sign_text(header, &endless)).await, TokenRefused::NotAToken);
    let absent = RSA.saying("r", &claims_without("exp"));
    assert_eq!(refusal(&verifier, &absent).await, TokenRefused::MissingClaim { claim: "exp" });
    let future = RSA.saying("r", &claims_with("nbf", json!(NOW.millis() / 1000 + 61)));
    assert_eq!(refusal(&verifier, &future).await, TokenRefused::NotYetValid);
}

#[tokio::test]
async fn t5_the_leeway_of_sixty_seconds_is_exact_for_new_and_for_known_tokens() {
    let (verifier, _server) = world().await;
    let ends_now = |sub: &str| {
        let mut claims = claims_with("exp", json!(NOW.millis() / 1000));
        claims["sub"] = json!(sub);
        RSA.saying("r", &claims)
    };
    let last = domain::Moment::from_millis(after(60).millis() - 1);

    assert!(verifier.caller(&ends_now("known"), last).await.is_ok());
    assert_eq!(verifier.caller(&ends_now("known"), after(60)).await, Err(TokenRefused::Expired));
    assert_eq!(verifier.caller(&ends_now("new"), after(60)).await, Err(TokenRefused::Expired));
    let starts = RSA.saying("r", &claims_with("nbf", json!(NOW.millis() / 1000 + 60)));
    assert!(verifier.caller(&starts, NOW).await.is_ok());
}

#[tokio::test]
async fn id9_a_token_without_a_valid_tenant_is_403() {
    let (verifier, _server) = world().await;
    let bad =
        ["", "*", "a:b", "A", "аcme", "{x}", "acme ", "-acme", &"a".repeat(64), &"a".repeat(10_000)].map(Value::from);
    let mistyped = [json!(null), json!(7), json!(["acme"]), json!({ "acme": true })];
    for tenant in bad.into_iter().chain(mistyped) {
        let refused = refusal(&verifier, &RSA.saying("r", &claims_with("tenant", tenant.clone()))).await;
        assert_eq!((refused, refused.status()), (TokenRefused::BadTenant, 403), "{tenant}");
    }
    let absent = refusal(&verifier, &RSA.saying("r", &claims_without("tenant"))).await;
    assert_eq!((absent, absent.status()), (TokenRefused::BadTenant, 403));
}

#[tokio::test]
async fn id9_only_a_genuine_token_learns_that_its_tenant_is_bad() {
    let (verifier, _server) = world().await;
    let forger = Pair::rsa();

    let forged = forger.saying("r", &claims_with("tenant", json!("*")));

    assert_eq!(refusal(&verifier, &forged).await, TokenRefused::BadSignature);
}

#[tokio::test]
async fn subject_and_scope_are_required_texts() {
    let (verifier, _server) = world().await;
    for claim in ["sub", "scope"] {
        let absent = RSA.saying("r", &claims_without(claim));
        assert_eq!(refusal(&verifier, &absent).await, TokenRefused::MissingClaim { claim });
        for mistyped in [json!(null), json!(7), json!(["tools:read"])] {
            let token = RSA.saying("r", &claims_with(claim, mistyped));
            assert_eq!(refusal(&verifier, &token).await, TokenRefused::BadClaim { claim });
        }
    }
    for sub in ["", "a\nb", &"x".repeat(257)] {
        let token = RSA.saying("r", &claims_with("sub", json!(sub)));
        assert_eq!(refusal(&verifier, &token).await, TokenRefused::BadClaim { claim: "sub" });
    }
}

#[tokio::test]
async fn a_refusal_repeats_nothing_of_the_token() {
    let (verifier, _server) = world().await;
    let canary = "canary-5f1e";
    for claim in ["iss", "aud", "exp", "nbf", "sub", "tenant", "scope"] {
        let value = if claim == "sub" { json!(format!("{canary}\n")) } else { json!([canary]) };
        let refused = refusal(&verifier, &RSA.saying("r", &claims_with(claim, value))).await;
        let told = format!("{refused} {refused:?}");
        assert!(!told.contains(canary) && told.len() < 120, "{told}");
    }
}
