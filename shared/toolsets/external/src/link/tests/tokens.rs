//! Tokens from an authorization server: when one is fetched, by whom, and what becomes of a call without one.

use super::super::{ClientCredentials, LinkTarget, TargetReach};
use super::world::*;
use crate::codes;
use crate::server::{ClientAuthMethod, HttpTransport};
use domain::{Code, Effect};
use egress::{AddressGuard, Url};
use redact::SecretText;
use std::time::Duration;
use testkit::upstream::{Era, McpServer, SseServer, TokenHarm, TokenServer};

const CLIENT: &str = "robot of acme";
const SECRET: &str = "canary:client/secret=0987654321";

async fn authorization() -> TokenServer {
    TokenServer::start(CLIENT, SECRET).await
}

fn credentials(tokens: &TokenServer) -> ClientCredentials {
    ClientCredentials {
        token_url: Url::parse(&tokens.url()).unwrap(),
        guard: AddressGuard { private: true, ports: vec![tokens.port()] },
        client_id: CLIENT.to_owned(),
        client_secret: SecretText::new(SECRET),
        scope: Some("wiki.read wiki.search".to_owned()),
        audience: Some("https://wiki.example/".to_owned()),
        resource: None,
        method: ClientAuthMethod::Basic,
    }
}

fn target_of(server: &McpServer, tokens: &TokenServer) -> LinkTarget {
    let target = target_at(&server.url(), server.port());
    LinkTarget { headers: Vec::new(), credentials: Some(credentials(tokens)), ..target }
}

/// What the server was told of who we are, once for each way it was told.
fn shown(server: &McpServer) -> Vec<String> {
    let mut shown: Vec<_> =
        server.requests().iter().map(|seen| seen.header("authorization").unwrap_or("nothing").to_owned()).collect();
    shown.dedup();
    shown
}

#[tokio::test]
async fn one_token_is_fetched_for_all_who_come_and_used_until_it_expires() {
    for era in [Era::Legacy, Era::Modern] {
        let (server, tokens) = (McpServer::start(era).await, authorization().await);
        tokens.plant(TokenHarm::Wait);
        let (links, target) = (links(), target_of(&server, &tokens));
        let calls =
            async { futures_util::future::join_all((0..20).map(|_| call(&links, &target, Effect::Read))).await };
        let release = async {
            tokens.until_asked(1).await;
            tokens.release();
            tokens.cure();
        };

        let (called, ()) = tokio::join!(calls, release);

        assert!(called.iter().all(Result::is_ok), "{called:?}");
        assert_eq!((tokens.given(), tokens.requests().len()), (1, 1));
        assert_eq!(shown(&server), [format!("Bearer {}", tokens.token(1))]);
        let asked = &tokens.requests()[0];
        let body = "grant_type=client_credentials&scope=wiki.read+wiki.search&audience=https%3A%2F%2Fwiki.example%2F";
        assert_eq!(String::from_utf8_lossy(&asked.body), body);
        assert_eq!(asked.header("accept"), Some("application/json"));
    }
}

#[tokio::test]
async fn sessions_with_other_parameters_share_a_token_and_tenants_and_other_clients_do_not() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    let (links, target) = (links(), target_of(&server, &tokens));
    let mut other = target.clone();
    other.params.insert("project".to_owned(), "red".to_owned());
    for target in [&target, &other] {
        call(&links, target, Effect::Read).await.unwrap();
    }
    assert_eq!(tokens.given(), 1);

    other.credentials.as_mut().unwrap().scope = None;
    call(&links, &other, Effect::Read).await.unwrap();
    assert_eq!(tokens.given(), 2, "another scope is another token");

    let bolt = super::super::LinkKey { tenant: domain::Tenant::parse("bolt").unwrap(), server: "double".into() };
    links.list(&bolt, &target, &limits()).await.unwrap();
    assert_eq!(tokens.given(), 3, "a tenant has tokens of its own");
    assert_eq!((links.tokens_of(&tenant()).len(), links.tokens_of(&bolt.tenant).len()), (2, 1));
    links.drop_links(&tenant(), None);
    assert_eq!(links.tokens_of(&tenant()).len(), 2, "an answer may be on its way that holds one");
    call(&links, &target, Effect::Read).await.unwrap();
    assert_eq!(tokens.given(), 4, "what was forgotten is fetched anew");
}

#[tokio::test]
async fn the_secret_can_be_sent_in_the_body() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    let mut target = target_of(&server, &tokens);
    target.credentials.as_mut().unwrap().method = ClientAuthMethod::Post;

    call(&links(), &target, Effect::Read).await.unwrap();

    assert_eq!((tokens.given(), tokens.requests()[0].header("authorization")), (1, None));
}

#[tokio::test]
async fn a_token_is_renewed_when_its_time_is_over() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    tokens.life(Some(0));
    let (links, target) = (links(), target_of(&server, &tokens));

    call(&links, &target, Effect::Read).await.unwrap();
    tokens.life(Some(3600));
    call(&links, &target, Effect::Read).await.unwrap();
    let given = tokens.given();
    for _ in 0..3 {
        call(&links, &target, Effect::Read).await.unwrap();
    }

    assert!(given >= 3, "what does not live is fetched for every request: {given}");
    assert_eq!(tokens.given(), given, "what lives is fetched once");
}

#[tokio::test]
async fn a_token_that_was_taken_is_renewed_once_on_a_401_and_the_call_is_done_once() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    let (links, target) = (links(), target_of(&server, &tokens));
    call(&links, &target, Effect::Change).await.unwrap();

    server.require("Authorization", &format!("Bearer {}", tokens.token(2)));
    call(&links, &target, Effect::Change).await.unwrap();

    assert_eq!(tokens.given(), 2);
    let calls = server.requests().into_iter().filter(|seen| seen.rpc() == "tools/call");
    let calls: Vec<_> = calls.map(|seen| seen.header("authorization").unwrap().to_owned()).collect();
    let [first, second] = [1, 2].map(|number| format!("Bearer {}", tokens.token(number)));
    assert_eq!(calls, [first.clone(), first, second], "the second was turned away, the third was done");
}

#[tokio::test]
async fn a_server_that_takes_no_token_refuses_us_and_the_authorization_server_is_left_in_peace() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    server.require("Authorization", "Bearer something-else");
    let (links, target) = (links(), target_of(&server, &tokens));

    for _ in 0..5 {
        let failure = call(&links, &target, Effect::Change).await.unwrap_err();
        assert_eq!(failure.code, target::codes::CREDENTIALS_REFUSED);
    }

    assert_eq!((tokens.given(), server.count("tools/call")), (1, 0));
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_and_the_failure_says_why() {
    let elsewhere = McpServer::start(Era::Both).await;
    let answer = |status, body: &str| TokenHarm::Answer(status, body.to_owned());
    for (harm, code) in [
        (TokenHarm::Hang, Code::Deadline),
        (TokenHarm::Endless, codes::UPSTREAM_UNAVAILABLE),
        (TokenHarm::Redirect(elsewhere.url()), codes::UPSTREAM_UNAVAILABLE),
        (answer(500, "canary words"), codes::UPSTREAM_UNAVAILABLE),
        (answer(200, "canary words"), codes::UPSTREAM_UNAVAILABLE),
        (answer(200, r#"{"access_token":"canary","token_type":"mac"}"#), codes::UPSTREAM_UNAVAILABLE),
        (answer(401, r#"{"error":"invalid_client"}"#), target::codes::CREDENTIALS_REFUSED),
        (answer(400, r#"{"error":"canary words"}"#), target::codes::CREDENTIALS_REFUSED),
    ] {
        let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
        tokens.plant(harm.clone());
        let mut target = target_of(&server, &tokens);
        target.credentials.as_mut().unwrap().guard.ports.push(elsewhere.port());

        let limits = limits_of(Duration::from_millis(if harm == TokenHarm::Hang { 300 } else { 20_000 }));
        let failure = call_within(&links(), &target, Effect::Change, limits).await.unwrap_err();

        assert_eq!(failure.code, code, "{harm:?}: {failure}");
        let told = format!("{failure:?}");
        assert!(!["canary", "127.0.0.1", CLIENT].iter().any(|word| told.contains(word)), "{told}");
        assert_eq!(server.connections(), 0, "{harm:?}");
    }
    assert_eq!(elsewhere.connections(), 0, "a redirect gets no secret");
}

#[tokio::test]
async fn a_wrong_secret_is_said_to_be_that_and_is_not_tried_again_at_once() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    let (links, mut target) = (links(), target_of(&server, &tokens));
    target.credentials.as_mut().unwrap().client_secret = SecretText::new("a wrong one");

    for _ in 0..5 {
        let failure = call(&links, &target, Effect::Read).await.unwrap_err();
        assert_eq!(failure.code, target::codes::CREDENTIALS_REFUSED);
        assert!(failure.message.contains("invalid_client"), "{failure}");
    }
    assert_eq!((tokens.requests().len(), server.connections()), (1, 0));

    // Another secret is another matter, and need not wait.
    call(&links, &target_of(&server, &tokens), Effect::Read).await.unwrap();
}

#[tokio::test]
async fn the_authorization_server_has_a_guard_of_its_own() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    for guard in [
        AddressGuard { private: false, ports: vec![tokens.port()] },
        AddressGuard { private: true, ports: vec![server.port()] },
    ] {
        let mut target = target_of(&server, &tokens);
        target.credentials.as_mut().unwrap().guard = guard;

        let failure = call(&links(), &target, Effect::Read).await.unwrap_err();

        assert_eq!(failure.code, codes::UPSTREAM_REFUSED);
    }
    assert_eq!((tokens.requests().len(), server.connections()), (0, 0));
}

#[tokio::test]
async fn a_caller_who_leaves_while_a_token_is_fetched_leaves_the_way_free() {
    let (server, tokens) = (McpServer::start(Era::Modern).await, authorization().await);
    let (links, target) = (links(), target_of(&server, &tokens));
    tokens.plant(TokenHarm::Hang);
    tokio::select! {
        called = call(&links, &target, Effect::Read) => panic!("{called:?}"),
        () = tokens.until_asked(1) => {}
    }

    tokens.cure();
    call(&links, &target, Effect::Read).await.unwrap();

    assert_eq!(tokens.given(), 1);
}

#[tokio::test]
async fn a_stream_and_every_message_to_it_carry_the_token() {
    let (server, tokens) = (SseServer::start().await, authorization().await);
    server.require(&format!("Bearer {}", tokens.token(1)));
    let target = LinkTarget {
        reach: TargetReach::Http { url: Url::parse(&server.url()).unwrap(), transport: HttpTransport::Sse },
        headers: Vec::new(),
        credentials: Some(credentials(&tokens)),
        ..target_at(&server.url(), server.port())
    };
    let links = links();
    call(&links, &target, Effect::Change).await.unwrap();

    server.require(&format!("Bearer {}", tokens.token(2)));
    call(&links, &target, Effect::Change).await.unwrap();

    assert_eq!((tokens.given(), server.opened()), (2, 1), "a message is sent with the newer token, on the same stream");
}
