//! What a server, a resolver or an address cannot make us do.

use super::super::{LinkTarget, LinksConfig};
use super::double::{Asked, Double, Reply, Speaks};
use super::world::*;
use crate::codes;
use domain::Effect;
use egress::Lookup;
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;

#[tokio::test]
async fn cve_2026_64684_redirect_gets_no_credentials() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Double::plain(Speaks::Modern).await;
        let away = format!("http://127.0.0.1:{}/mcp", elsewhere.port);
        let at_once = away.clone();
        let first = Double::start(Speaks::Modern, move |_| {
            Some(Reply::whole(status, "text/plain", "").with("location", at_once.clone()))
        })
        .await;
        let later = Double::start(Speaks::Modern, move |asked| {
            let reply = || Reply::whole(status, "text/plain", "").with("location", away.clone());
            (asked.method() == "tools/call").then(reply)
        })
        .await;
        let both = |double: &Double| {
            let mut target = target(double);
            target.guard.ports.push(elsewhere.port);
            target
        };
        let links = links();

        for double in [&first, &later] {
            let failure = call(&links, &both(double), Effect::Read).await.unwrap_err();

            assert_eq!(failure.code, codes::UPSTREAM_PROTOCOL, "{status}");
            assert!(!format!("{failure:?}").contains("127.0.0.1"), "{failure:?}");
        }
        assert_eq!(elsewhere.methods(), Vec::<String>::new(), "{status}");
    }
}

#[tokio::test]
async fn a_name_that_turns_to_another_address_is_not_followed_there() {
    let double = Double::plain(Speaks::Legacy).await;
    let turned = Arc::new(AtomicBool::new(false));
    let turns = Arc::clone(&turned);
    let lookup: Lookup = Arc::new(move |_| {
        let address = if turns.load(Ordering::SeqCst) { "169.254.169.254" } else { "127.0.0.1" };
        let address: IpAddr = address.parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    });
    let links = links_with(LinksConfig { lookup: Some(lookup), ..LinksConfig::default() });
    let target = target_at(&format!("http://tools.example:{}/mcp", double.port), double.port);
    call(&links, &target, Effect::Read).await.unwrap();
    let served = double.count("tools/call");

    turned.store(true, Ordering::SeqCst);
    links.drop_links(&tenant(), Some("double"));
    let failure = call(&links, &target, Effect::Change).await.unwrap_err();

    assert_eq!(failure.code, codes::UPSTREAM_REFUSED);
    assert_eq!((served, double.count("tools/call"), double.count("initialize")), (1, 1, 1));
}

#[tokio::test]
async fn a_refused_a_closed_and_an_unknown_address_read_the_same() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let open = Double::plain(Speaks::Modern).await;
    let forbidden =
        LinkTarget { guard: egress::AddressGuard { private: false, ports: vec![open.port] }, ..target(&open) };
    let lookup: Lookup = Arc::new(|_| Box::pin(async { Err(std::io::Error::other("no such name")) }));
    let config = LinksConfig { lookup: Some(lookup), connect_within: Duration::from_secs(2), ..LinksConfig::default() };
    let links = links_with(config);
    let mut said = Vec::new();
    for target in [
        forbidden,
        target_at(&format!("http://127.0.0.1:{port}/mcp"), port),
        target_at(&format!("http://nobody.example:{port}/mcp"), port),
    ] {
        said.push(call(&links, &target, Effect::Change).await.unwrap_err());
    }

    assert_eq!(said[0].code, codes::UPSTREAM_REFUSED);
    assert!(said.iter().all(|failure| *failure == said[0]), "{said:?}");
    assert_eq!(open.methods(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_server_asks_of_us_is_declined_and_a_flood_is_not_answered() {
    let replies = Arc::new(Mutex::new(Vec::<Value>::new()));
    let heard = Arc::clone(&replies);
    let double = Double::start(Speaks::Legacy, move |asked: &Asked| {
        if asked.body.get("method").is_none() && asked.body.is_object() {
            heard.lock().unwrap().push(asked.body.clone());
            return Some(Reply::whole(202, "text/plain", ""));
        }
        let request = |id: u64, method: &str| json!({ "jsonrpc": "2.0", "id": format!("s{id}"), "method": method });
        let answer = json!({ "jsonrpc": "2.0", "id": asked.id(), "result": { "content": [] } });
        let mut events =
            vec![request(0, "ping"), request(1, "sampling/createMessage"), request(2, "elicitation/create")];
        events.extend((3..100).map(|id| request(id, "roots/list")));
        events.push(answer);
        (asked.method() == "tools/call").then(|| Reply::events(&events))
    })
    .await;

    call(&links(), &target(&double), Effect::Read).await.unwrap();

    let replies = replies.lock().unwrap();
    assert_eq!(replies.len(), 8);
    assert_eq!(replies[0]["result"], json!({}));
    assert!(replies[1..].iter().all(|reply| reply["error"]["code"] == -32601), "{replies:?}");
}

#[tokio::test]
async fn no_secret_and_no_address_is_in_any_failure() {
    let cases: [fn(&Asked) -> Option<Reply>; 4] = [
        |_| Some(Reply::broken()),
        |_| Some(Reply::whole(500, "text/plain", "canary-7f3a91")),
        |_| Some(Reply::whole(200, "text/html", "canary-7f3a91")),
        |asked| (asked.method() == "initialize").then(|| Reply::whole(400, "text/plain", "canary-7f3a91")),
    ];
    for (at, case) in cases.into_iter().enumerate() {
        let double = Double::start(Speaks::Legacy, case).await;

        let failure = format!("{:?}", links().list(&key(), &target(&double), &limits()).await.unwrap_err());

        for secret in ["canary", "127.0.0.1", &double.port.to_string()] {
            assert!(!failure.contains(secret), "case {at}: {failure}");
        }
    }
}
