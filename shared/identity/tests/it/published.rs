//! Keys that are fetched: rotation, outages, and how often an issuer is asked.

use crate::support::{KeyServer, LOGIN, NOW, Pair, RSA, US, after, claims_with, config, http, verifier};
use domain::{Tenant, TokenScope};
use futures_util::future::join_all;
use identity::{TokenRefused, Verifier};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_token_of_each_algorithm_makes_its_caller() {
    let (ec, ed) = (Pair::ec(), Pair::ed());
    let server = KeyServer::publishing(&[RSA.jwk("r"), ec.jwk("e"), ed.jwk("d")]).await;
    let verifier = verifier(&server).await;

    for (pair, kid) in [(&*RSA, "r"), (&ec, "e"), (&ed, "d")] {
        let caller = verifier.caller(&pair.token(kid), NOW).await.unwrap();

        assert_eq!(caller.tenant, Tenant::parse("acme").unwrap());
        assert_eq!((caller.principal.issuer.as_str(), caller.principal.subject.as_str()), (LOGIN, "agent-7"));
        assert_eq!(caller.scopes.iter().collect::<Vec<_>>(), [TokenScope::ToolsRead]);
        assert_eq!(caller.expires_at, after(7 * 24 * 3600));
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_token_seen_before_gives_the_same_caller_until_it_expires() {
    let ed = Pair::ed();
    let server = KeyServer::publishing(&[ed.jwk("d")]).await;
    let verifier = verifier(&server).await;
    let token = ed.saying("d", &claims_with("exp", json!(NOW.millis() / 1000 + 100)));

    let first = verifier.caller(&token, NOW).await.unwrap();
    let again = verifier.caller(&token, after(159)).await.unwrap();

    assert!(Arc::ptr_eq(&first, &again));
    assert_eq!(verifier.caller(&token, after(160)).await, Err(TokenRefused::Expired));
    assert_eq!(verifier.caller(&token, after(10_000)).await, Err(TokenRefused::Expired));
}

#[tokio::test]
async fn id3_unknown_key_ids_do_not_hammer_the_issuer() {
    let (known, unknown) = (Pair::ed(), Pair::ed());
    let server = KeyServer::publishing(&[known.jwk("known")]).await;
    let verifier = verifier(&server).await;
    verifier.caller(&known.token("known"), NOW).await.unwrap();
    assert_eq!(server.asked(), 1);

    for n in 0..1000 {
        let token = unknown.token(&format!("made-up-{n}"));
        assert_eq!(verifier.caller(&token, after(9)).await, Err(TokenRefused::UnknownKey));
    }
    assert_eq!(server.asked(), 1, "the first fetch was less than ten seconds ago");

    for n in 0..1000 {
        let token = unknown.token(&format!("made-up-{n}"));
        assert_eq!(verifier.caller(&token, after(10)).await, Err(TokenRefused::UnknownKey));
    }
    assert_eq!(server.asked(), 2);
    assert!(verifier.caller(&known.token("known"), after(10)).await.is_ok());
}

#[tokio::test]
async fn id3_a_clock_that_jitters_backwards_does_not_buy_a_fetch() {
    let pair = Pair::ed();
    let server = KeyServer::publishing(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    verifier.caller(&pair.token("a"), after(100)).await.unwrap();

    assert_eq!(verifier.caller(&pair.token("b"), after(91)).await, Err(TokenRefused::UnknownKey));

    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn requests_at_the_same_time_share_one_fetch() {
    let pair = Pair::ed();
    let server = KeyServer::held_back(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    let tokens: Vec<String> =
        (0..50).map(|n| pair.saying("a", &claims_with("sub", json!(format!("agent-{n}"))))).collect();

    let requests = join_all(tokens.iter().map(|token| verifier.caller(token, NOW)));
    let (callers, ()) = tokio::join!(requests, async {
        server.until_asked().await;
        server.open();
    });

    assert!(callers.iter().all(Result::is_ok));
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_take_the_fetch_with_it() {
    let pair = Pair::ed();
    let server = KeyServer::held_back(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    let token = pair.token("a");

    tokio::select! {
        answer = verifier.caller(&token, NOW) => panic!("answered before the keys were there: {answer:?}"),
        () = server.until_asked() => {}
    }
    server.open();

    assert!(verifier.caller(&token, NOW).await.is_ok());
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn known_keys_go_on_working_while_a_refresh_hangs() {
    let pair = Pair::ed();
    let server = KeyServer::publishing(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    let token = pair.token("a");
    verifier.caller(&token, NOW).await.unwrap();
    server.until_asked().await;
    server.hold_back();

    let refreshing = verifier.caller(&token, after(300));
    let (first, second) = tokio::join!(refreshing, async {
        server.until_asked().await;
        verifier.caller(&token, after(300)).await
    });

    assert!(first.is_ok() && second.is_ok());
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn id4_keys_outlive_their_issuer_until_they_are_too_stale() {
    const DAY: u64 = 24 * 3600;
    let pair = Pair::ed();
    let server = KeyServer::publishing(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    let (seen, unseen) = (pair.token("a"), pair.saying("a", &claims_with("sub", json!("another"))));
    verifier.caller(&seen, NOW).await.unwrap();

    server.fail();

    assert!(verifier.caller(&seen, after(DAY - 1)).await.is_ok());
    assert!(verifier.caller(&unseen, after(DAY - 1)).await.is_ok());
    assert!(verifier.usable(after(DAY - 1)));
    assert_eq!(server.asked(), 2, "it was asked again, and the old keys were kept");
    for token in [&seen, &unseen] {
        let refused = verifier.caller(token, after(DAY)).await.unwrap_err();
        assert_eq!((refused, refused.status()), (TokenRefused::KeysUnavailable, 503));
    }
    assert!(!verifier.usable(after(DAY)));
}

#[tokio::test]
async fn id4_an_issuer_that_was_never_reached_is_unavailable_and_asked_in_measure() {
    let pair = Pair::ed();
    let server = KeyServer::publishing(&[pair.jwk("a")]).await;
    let down = server.url.clone();
    drop(server);
    let issuer = json!({ "issuer": LOGIN, "algorithms": ["EdDSA"], "jwks_url": down });
    let verifier = Verifier::new(config(json!([issuer])), http()).await.unwrap();

    for _ in 0..3 {
        assert_eq!(verifier.caller(&pair.token("a"), NOW).await, Err(TokenRefused::KeysUnavailable));
    }
    assert!(!verifier.usable(NOW));
}

#[tokio::test]
async fn id4_answers_that_are_no_key_set_leave_the_old_keys() {
    let pair = Pair::ed();
    let server = KeyServer::publishing(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    let token = pair.token("a");
    verifier.caller(&token, NOW).await.unwrap();

    let huge = format!(r#"{{"keys":[],"padding":"{}"}}"#, "x".repeat(256 * 1024));
    let crowd = json!({ "keys": vec![pair.jwk("a"); 65] }).to_string();
    let mut time = 0;
    for answer in [String::new(), "<html>".into(), "{}".into(), r#"{"keys":7}"#.into(), huge, crowd] {
        server.answer_with(answer.into_bytes());
        time += 300;
        assert!(verifier.caller(&token, after(time)).await.is_ok());
    }

    assert_eq!(server.asked(), 7);
}

#[tokio::test]
async fn id5_a_new_key_is_accepted_and_a_withdrawn_one_refused() {
    let (old, new) = (Pair::ed(), Pair::ec());
    let server = KeyServer::publishing(&[old.jwk("old")]).await;
    let verifier = verifier(&server).await;
    let token = old.token("old");
    verifier.caller(&token, NOW).await.unwrap();

    server.publish(&[old.jwk("old"), new.jwk("new")]);
    assert!(verifier.caller(&new.token("new"), after(10)).await.is_ok());
    assert!(verifier.caller(&token, after(10)).await.is_ok());

    server.publish(&[new.jwk("new")]);
    assert!(verifier.caller(&token, after(309)).await.is_ok(), "nobody has looked since");
    assert_eq!(verifier.caller(&token, after(310)).await, Err(TokenRefused::UnknownKey));
    assert_eq!(verifier.caller(&token, after(311)).await, Err(TokenRefused::UnknownKey));
    assert!(verifier.caller(&new.token("new"), after(311)).await.is_ok());
    assert_eq!(server.asked(), 3);
}

#[tokio::test]
async fn id5_a_withdrawn_key_takes_its_known_callers_with_it_whoever_caused_the_refresh() {
    let (old, new) = (Pair::ed(), Pair::ed());
    let server = KeyServer::publishing(&[old.jwk("old")]).await;
    let verifier = verifier(&server).await;
    let token = old.token("old");
    verifier.caller(&token, NOW).await.unwrap();

    server.publish(&[new.jwk("new")]);
    verifier.caller(&new.token("new"), after(10)).await.unwrap();

    assert_eq!(verifier.caller(&token, after(10)).await, Err(TokenRefused::UnknownKey));
}

#[tokio::test]
async fn a_caller_that_stays_is_not_vouched_for_once_its_key_is_withdrawn_or_its_time_is_over() {
    let (old, new) = (Pair::ed(), Pair::ed());
    let server = KeyServer::publishing(&[old.jwk("old")]).await;
    let verifier = verifier(&server).await;
    let caller = verifier.caller(&old.token("old"), NOW).await.unwrap();
    assert!(verifier.still_vouches(&caller, after(10)).await);
    assert!(!verifier.still_vouches(&caller, caller.expires_at.plus(Duration::from_secs(3_600))).await);
    assert!(!verifier.still_vouches(&domain::Caller { token: None, ..(*caller).clone() }, NOW).await);

    server.publish(&[new.jwk("new")]);

    assert!(!verifier.still_vouches(&caller, after(300)).await, "nobody else asked meanwhile");
}

#[tokio::test]
async fn id5_a_key_replaced_under_the_same_name_takes_its_known_callers_with_it() {
    let (old, new) = (Pair::ed(), Pair::ed());
    let server = KeyServer::publishing(&[old.jwk("k")]).await;
    let verifier = verifier(&server).await;
    let token = old.token("k");
    verifier.caller(&token, NOW).await.unwrap();

    server.publish(&[new.jwk("k")]);

    assert_eq!(verifier.caller(&token, after(300)).await, Err(TokenRefused::BadSignature));
    assert!(verifier.caller(&new.token("k"), after(300)).await.is_ok());
}

#[tokio::test]
async fn id5_an_empty_set_withdraws_everything() {
    let pair = Pair::ed();
    let server = KeyServer::publishing(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    verifier.caller(&pair.token("a"), NOW).await.unwrap();

    server.publish(&[]);

    assert_eq!(verifier.caller(&pair.token("a"), after(300)).await, Err(TokenRefused::UnknownKey));
    assert!(!verifier.usable(after(300)));
}

#[tokio::test]
async fn warming_makes_the_verifier_usable_before_the_first_token() {
    let pair = Pair::ed();
    let server = KeyServer::publishing(&[pair.jwk("a")]).await;
    let verifier = verifier(&server).await;
    assert!(!verifier.usable(NOW));
    assert_eq!(server.asked(), 0, "starting does not need the issuer");

    verifier.warm(NOW).await;
    verifier.warm(after(149)).await;

    assert!(verifier.usable(NOW));
    assert_eq!(server.asked(), 1);
    verifier.warm(after(150)).await;
    assert_eq!(server.asked(), 2, "fetched ahead of the five minutes at which a request would have to");
}

#[tokio::test]
async fn one_issuer_cannot_vouch_in_the_name_of_another() {
    let (ours, theirs) = (Pair::ed(), Pair::ed());
    let (our_keys, their_keys) =
        (KeyServer::publishing(&[ours.jwk("k")]).await, KeyServer::publishing(&[theirs.jwk("k")]).await);
    let issuers = json!([
        { "issuer": LOGIN, "algorithms": ["EdDSA"], "jwks_url": our_keys.url },
        { "issuer": "https://other.example", "algorithms": ["EdDSA"], "jwks_url": their_keys.url },
    ]);
    let verifier = Verifier::new(config(issuers), http()).await.unwrap();

    assert_eq!(verifier.issuers().collect::<Vec<_>>(), [LOGIN, "https://other.example"]);
    assert!(
        verifier.caller(&theirs.saying("k", &claims_with("iss", json!("https://other.example"))), NOW).await.is_ok()
    );
    assert_eq!(
        verifier.caller(&theirs.saying("k", &claims_with("aud", json!(US))), NOW).await,
        Err(TokenRefused::BadSignature)
    );
}
