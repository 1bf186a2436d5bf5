//! Whatever arrives, from a client or from an issuer, a caller comes only out of an honest token.

use crate::support::{KeyServer, NOW, Pair, RSA, after, b64, claims, claims_with, verifier};
use identity::Verifier;
use proptest::prelude::*;
use serde_json::json;
use std::cell::Cell;
use tokio::runtime::{Builder, Runtime};

/// A runtime, a verifier that knows three keys, and an honest token of each.
fn world() -> (Runtime, Verifier, KeyServer, Vec<String>) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (ec, ed) = (Pair::ec(), Pair::ed());
    let server = runtime.block_on(KeyServer::publishing(&[RSA.jwk("r"), ec.jwk("e"), ed.jwk("d")]));
    let verifier = runtime.block_on(verifier(&server));
    let tokens = vec![RSA.token("r"), ec.token("e"), ed.token("d")];
    for token in &tokens {
        runtime.block_on(verifier.caller(token, NOW)).expect("an honest token");
    }
    (runtime, verifier, server, tokens)
}

#[test]
fn cve_2026_59822_every_auth_error_is_401() {
    let (runtime, verifier, _server, tokens) = world();
    let status = |text: &str| runtime.block_on(verifier.caller(text, NOW)).map_err(|refused| refused.status());

    proptest!(|(text in any::<String>())| {
        prop_assert_eq!(status(&text), Err(401));
    });
    proptest!(|(text in "[A-Za-z0-9_-]{0,40}(\\.[A-Za-z0-9_-]{0,40}){0,4}")| {
        prop_assert_eq!(status(&text), Err(401));
    });
    proptest!(|(which in 0..3usize, at in any::<prop::sample::Index>(), to in any::<char>())| {
        let mut changed: Vec<char> = tokens[which].chars().collect();
        let at = at.index(changed.len());
        prop_assume!(changed[at] != to);
        changed[at] = to;
        prop_assert_eq!(status(&changed.into_iter().collect::<String>()), Err(401));
    });
    proptest!(|(which in 0..3usize, cut in any::<prop::sample::Index>())| {
        let token = &tokens[which];
        prop_assert_eq!(status(&token[..cut.index(token.len())]), Err(401));
    });
}

#[test]
fn id15_parts_of_honest_tokens_do_not_make_another() {
    let (runtime, verifier, _server, tokens) = world();
    let other = RSA.saying("r", &claims_with("tenant", json!("globex")));
    let all: Vec<&String> = tokens.iter().chain([&other]).collect();

    for header in &all {
        for payload in &all {
            for signature in &all {
                let part = |token: &str, n: usize| token.split('.').nth(n).expect("a part").to_owned();
                let mixed = format!("{}.{}.{}", part(header, 0), part(payload, 1), part(signature, 2));
                let caller = runtime.block_on(verifier.caller(&mixed, NOW));
                assert_eq!(caller.is_ok(), all.contains(&&mixed), "{caller:?}");
            }
        }
    }
}

#[test]
fn id15_claims_and_headers_of_any_shape_never_make_a_caller() {
    let (runtime, verifier, _server, _tokens) = world();
    let shapes = prop_oneof![
        any::<String>(),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("null".to_owned()),
        Just("[".repeat(5000)),
        "\\{\"(iss|aud|exp|sub|tenant|scope|alg|kid)\":(1|null|\"a\"|\\[\\]|\\{\\})\\}",
    ];

    proptest!(|(header in shapes.clone(), payload in shapes)| {
        for token in [RSA.sign_text(r#"{"alg":"RS256","kid":"r"}"#, &payload), RSA.sign_text(&header, &claims().to_string())] {
            let caller = runtime.block_on(verifier.caller(&token, NOW));
            prop_assert_eq!(caller.map_err(|refused| refused.status()), Err(401));
        }
    });
}

#[test]
fn id15_whatever_an_issuer_answers_a_stranger_stays_out() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = runtime.block_on(KeyServer::publishing(&[]));
    let verifier = runtime.block_on(verifier(&server));
    let token = Pair::ed().token("d");
    let keys = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "\\{\"keys\":\\[(\\{\"kty\":\"(RSA|EC|OKP|oct)\",\"kid\":\"d\",\"(crv|n|x|k)\":\"[A-Za-z0-9]{0,43}\"\\})?\\]\\}"
            .prop_map(String::into_bytes),
        Just(json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "d", "x": b64(&[0; 32]) }] }).to_string().into_bytes()),
    ];

    let time = Cell::new(0);
    proptest!(|(answer in keys)| {
        server.answer_with(answer);
        // Old enough to be fetched again, even if the last answer held a key of that name.
        time.set(time.get() + 300);
        let refused = runtime.block_on(verifier.caller(&token, after(time.get()))).expect_err("a stranger");
        prop_assert!([401, 503].contains(&refused.status()), "{refused}");
    });
    assert!(server.asked() > 200, "each answer was looked at");
}
