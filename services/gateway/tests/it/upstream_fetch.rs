//! One list for everybody: however many ask at once, and at however many replicas, a server is asked once.

use crate::here::processes;
use crate::upstream_yard::{Shelf, admin, drawn, settled, standing, using};
use std::time::Duration;
use testkit::upstream::{Era, McpServer};
use testkit::{Plan, until};
use tokio::task::JoinSet;

/// How long a list is taken for current here: the least an entry may say.
const REFRESH: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn t10_a_thousand_lists_at_expiry_on_two_replicas_cost_one_fetch() {
    let server = McpServer::start(Era::Modern).await;
    let shelf = Shelf::new().of("wiki", &server, "trust_annotations: true\nrefresh: 10s");
    let world = shelf.under(Plan::redis(2)).tenant("acme", &using(&["wiki"], "")).start(processes()).await;
    let reader = world.tenant("acme").reader();
    let clients = [drawn(&reader, "wiki").await, drawn(&reader.on(1), "wiki").await];
    let paul = admin(&reader);
    let first = settled(&paul, "wiki").await["listed_at"].clone();
    assert_eq!(server.count("tools/list"), 1, "both replicas share the first list");

    // Nobody lists meanwhile, so nobody fetches; a fifth more than the span is the most by which it is spread.
    tokio::time::sleep(REFRESH + REFRESH / 5 + Duration::from_millis(500)).await;
    assert_eq!(server.count("tools/list"), 1, "a list that nobody asks for is not fetched");
    let mut lists = JoinSet::new();
    for n in 0..1_000 {
        let client = clients[n % 2].clone();
        lists.spawn(async move { client.list().await });
    }
    let lists = lists.join_all().await;
    assert!(lists.iter().all(|list| *list == lists[0]), "everybody got the list, old or new");

    until("the fetch to be seen", async || (standing(&paul, "wiki").await["listed_at"] != first).then_some(())).await;
    assert_eq!(server.count("tools/list"), 2, "one fetch for all of them");
}
