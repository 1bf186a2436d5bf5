//! When a server is asked for its list, by whom, and what serves meanwhile.

use crate::double::{Reply, Speaks};
use crate::world::{Replica, Server, call, tenant, tool, until};
use external::ListState;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testkit::redis::RedisServer;
use tokio::sync::{Barrier, broadcast::error::TryRecvError};
use tokio::task::JoinSet;

/// How long a list is good for, where a test waits for its end.
const SHORT: Duration = Duration::from_secs(2);

#[tokio::test]
async fn both_eras_are_listed_and_called() {
    for (speaks, era) in [(Speaks::Legacy, "legacy"), (Speaks::Modern, "modern")] {
        let server = Server::speaking(speaks, vec![tool("search", "Searches.")]).await;
        let replica = Replica::alone().await.using(server.config()).await;
        assert_eq!(replica.standing().await.era.as_deref(), Some(era));
        let output = call(&replica.entry("mcp_wiki__search"), json!({ "q": "x" })).await.unwrap();
        assert_eq!(output.structured.as_deref(), Some(r#"{"ok":true}"#));
        assert_eq!(server.calls()[0]["name"], "search");
    }
}

#[tokio::test]
async fn a_second_replica_reads_what_the_first_fetched() {
    let redis = RedisServer::start();
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let one = Replica::on(&redis.url()).await.using(server.config()).await;
    let two = Replica::on(&redis.url()).await.using(server.config()).await;
    assert_eq!((one.names(), two.names()), (vec!["mcp_wiki__search".to_owned()], vec!["mcp_wiki__search".to_owned()]));
    assert_eq!(server.lists(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_a_thousand_lists_at_expiry_on_two_replicas_are_one_fetch() {
    let redis = RedisServer::start();
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let mut config = server.config();
    config.limits.refresh = SHORT;
    let one = Replica::on(&redis.url()).await.using(config.clone()).await;
    let two = Replica::on(&redis.url()).await.using(config).await;
    assert_eq!(server.lists(), 1);
    until("the list to be old on both", async || {
        let both = [one.standing().await.state, two.standing().await.state];
        both == [ListState::Stale, ListState::Stale]
    })
    .await;

    let (barrier, mut touching) = (Arc::new(Barrier::new(1_000)), JoinSet::new());
    for n in 0..1_000 {
        let (barrier, upstreams) = (Arc::clone(&barrier), if n % 2 == 0 { &one } else { &two }.upstreams.clone());
        touching.spawn(async move {
            barrier.wait().await;
            upstreams.touch(&tenant());
            assert_eq!(upstreams.entries(&tenant()).len(), 1, "the list from before serves meanwhile");
        });
    }
    while let Some(touched) = touching.join_next().await {
        touched.unwrap();
    }
    // Whoever looks waits for the flight that is under way: after one look at each nothing is left of any.
    for replica in [&one, &two] {
        replica.standing().await;
    }
    let standing = [one.standing().await.state, two.standing().await.state];
    assert_eq!((standing, server.lists()), ([ListState::Fresh, ListState::Fresh], 2));
}

#[tokio::test]
async fn a_server_that_is_away_keeps_its_list_and_its_effects() {
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let config = server.config();
    let replica = Replica::alone().await.using(config.clone()).await;
    let before = replica.entry("mcp_wiki__search").definition().most;
    server.answer(|asked| {
        (asked.method() == "tools/list").then(|| Reply::whole(500, "text/plain", "canary-correct-horse"))
    });
    replica.relist(&config).await;
    assert_eq!(replica.entry("mcp_wiki__search").definition().most, before);
    let standing = replica.standing().await;
    assert_eq!(standing.state, ListState::Unreachable);
    assert!(!standing.trouble.unwrap().message.contains("canary-correct-horse"));
    let lists = server.lists();
    replica.relist(&config).await;
    assert_eq!(server.lists(), lists, "it is not asked again at once");
}

#[tokio::test]
async fn entries_are_told_of_only_when_they_differ() {
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let config = server.config();
    let replica = Replica::alone().await;
    let mut changes = replica.upstreams.changes();
    let replica = replica.using(config.clone()).await;
    assert_eq!(changes.try_recv(), Ok(tenant()));
    replica.relist(&config).await;
    assert_eq!((server.lists(), changes.try_recv()), (2, Err(TryRecvError::Empty)), "the same list again");
    server.offer(vec![tool("search", "Searches otherwise.")]);
    replica.relist(&config).await;
    assert_eq!(changes.try_recv(), Ok(tenant()));
}

#[tokio::test]
async fn another_address_is_listed_at_once_and_its_tools_are_compared() {
    let (old, new) = (
        Server::offering(vec![tool("search", "Searches.")]).await,
        Server::offering(vec![tool("search", "Steals.")]).await,
    );
    let replica = Replica::alone().await.using(old.config()).await;
    assert_eq!(replica.names(), ["mcp_wiki__search"]);
    let replica = replica.using(new.config()).await;
    assert_eq!((new.lists(), replica.names()), (1, Vec::new()), "the pin is the tenant's, not the address's");
}

#[tokio::test]
async fn a_server_that_says_its_tools_changed_is_asked_again() {
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let replica = Replica::alone().await.using(server.config()).await;
    let mut changes = replica.upstreams.changes();
    until("the notices to be heard", async || server.double.listeners() > 0).await;
    server.offer(vec![tool("search", "Searches.")].into_iter().chain([tool("more", "x")]).collect());
    server.double.say(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    until("the list to be fetched again", async || server.lists() == 2).await;
    until("the new tool to be known", async || replica.standing().await.tools.len() == 2).await;
    assert_eq!(replica.names(), ["mcp_wiki__search"], "it waits for a yes");
    assert_eq!(changes.try_recv(), Err(TryRecvError::Empty), "what is offered is the same");
}

#[tokio::test]
async fn touching_never_waits_for_a_server_that_hangs() {
    let server = Server::offering(vec![]).await;
    let hangs = Arc::new(AtomicBool::new(true));
    let seen = Arc::clone(&hangs);
    server.answer(move |_| seen.load(Ordering::SeqCst).then(|| Reply::hanging("application/json")));
    let replica = Replica::alone().await;
    replica.upstreams.replace(&tenant(), vec![server.config()]);
    for _ in 0..100 {
        replica.upstreams.touch(&tenant());
        assert!(replica.names().is_empty());
    }
    until("the server to be asked", async || !server.double.asked().is_empty()).await;
    assert_eq!(server.double.asked().len(), 1, "one flight, however often it is touched");
    replica.upstreams.close().await;
}
