//! `helm_search`: the tenant's repositories and what they have.

use crate::charts::server::Server;
use crate::charts::world::{World, repository};
use domain::Code;
use serde_json::{Value, json};
use std::fmt::Write;

const INDEX: &str = "  web:\n  - {version: 1.2.0, urls: [a], description: Serves pages, keywords: [http]}\n  - {version: 1.10.0, urls: [a], \
                     appVersion: '9'}\n  - {version: 2.0.0-rc.1, urls: [a]}\n  website:\n  - {version: 0.1.0, urls: [a], deprecated: true}\n  \
                     db:\n  - {version: 3.0.0, urls: [a], description: A database for web}\n";

fn rows(answer: &Value) -> Vec<String> {
    let row = |row: &Value| format!("{} {}", row["chart"].as_str().unwrap(), row["version"].as_str().unwrap());
    answer["charts"].as_array().unwrap().iter().map(row).collect()
}

#[tokio::test]
async fn the_name_counts_most_and_the_newest_release_is_shown() {
    let world = World::new().await;
    world.index(INDEX);

    let answer = world.call("helm_search", json!({ "query": "web" })).await.unwrap();

    assert_eq!(rows(&answer), ["stable/web 1.10.0", "stable/website 0.1.0", "stable/db 3.0.0"]);
    assert_eq!(answer["untrusted"], true);
    assert_eq!((&answer["charts"][0]["app_version"], &answer["charts"][1]["deprecated"]), (&json!("9"), &json!(true)));
}

#[tokio::test]
async fn versions_narrow_and_all_of_them_come_newest_first() {
    let world = World::new().await;
    world.index(INDEX);
    let search = |args: Value| async { rows(&world.call("helm_search", args).await.unwrap()) };

    assert_eq!(search(json!({ "query": "stable/web", "version": "~1.2" })).await, ["stable/web 1.2.0"]);
    let all = search(json!({ "query": "stable/web", "all_versions": true })).await;
    assert_eq!(all, ["stable/web 1.10.0", "stable/web 1.2.0", "stable/website 0.1.0"]);
    let early = search(json!({ "query": "stable/web", "version": ">=2.0.0-0" })).await;
    assert_eq!(early, ["stable/web 2.0.0-rc.1"]);
    assert_eq!(search(json!({ "query": "nothing of the kind" })).await, Vec::<String>::new());
}

#[tokio::test]
async fn without_a_query_the_repositories_are_listed_and_not_asked() {
    let world = World::new().await;
    world.index(INDEX);

    let before = world.call("helm_search", json!({})).await.unwrap();
    assert_eq!(before["repositories"], json!([{ "name": "stable", "url": world.server.url("/stable") }]));
    assert_eq!(world.server.paths(), Vec::<String>::new());

    let after = world.call("helm_search", json!({ "refresh": true })).await.unwrap();
    assert!(after["repositories"][0]["fetched_at"].is_string());
    assert_eq!(world.server.paths(), ["/stable/index.yaml"]);
    assert_eq!(world.refused("helm_search", json!({ "version": "1" })).await.code, Code::InvalidArgument);
}

#[tokio::test]
async fn an_index_is_fetched_once_until_it_is_to_be_refreshed() {
    let world = World::new().await;
    world.index(INDEX);
    for _ in 0..3 {
        world.call("helm_search", json!({ "query": "web" })).await.unwrap();
    }
    assert_eq!(world.server.paths().len(), 1);

    world.index("  fresh:\n  - {version: 1.0.0, urls: [a]}\n");
    let answer = world.call("helm_search", json!({ "query": "fresh", "refresh": true })).await.unwrap();
    assert_eq!((rows(&answer), world.server.paths().len()), (vec!["stable/fresh 1.0.0".to_owned()], 2));
}

#[tokio::test]
async fn indexes_of_one_tenant_are_not_anothers() {
    let mut world = World::new().await;
    world.index(INDEX);
    world.call("helm_search", json!({ "query": "web" })).await.unwrap();

    world.as_tenant("beta");

    assert_eq!(
        world.refused("helm_search", json!({ "query": "web" })).await.code,
        target::codes::TOOLSET_NOT_CONFIGURED
    );
    world.configure(vec![repository("stable", &world.server.url("/stable"))]);
    world.call("helm_search", json!({ "query": "web" })).await.unwrap();
    assert_eq!(world.server.paths().len(), 2, "fetched for itself");
}

#[tokio::test]
async fn one_dead_repository_costs_a_warning_and_all_dead_ones_the_answer() {
    let mut world = World::new().await;
    world.index(INDEX);
    let [stable, dead] =
        [("stable", "/stable"), ("dead", "/dead")].map(|(n, path)| repository(n, &world.server.url(path)));
    world.configure(vec![stable, dead.clone()]);

    let answer = world.call("helm_search", json!({ "query": "db" })).await.unwrap();
    assert_eq!(rows(&answer), ["stable/db 3.0.0"]);
    assert!(answer["warnings"][0].as_str().unwrap().starts_with("dead: repo_unreachable"), "{answer}");

    world.configure(vec![dead]);
    assert_eq!(world.refused("helm_search", json!({ "query": "db" })).await.code, helm::codes::REPO_UNREACHABLE);
}

#[tokio::test]
async fn many_charts_come_in_pages_bound_to_their_caller() {
    let mut world = World::new().await;
    let mut index = String::new();
    for n in 0..250 {
        writeln!(index, "  c{n:03}: [{{version: 1.0.0, urls: [a], description: {}}}]", "word ".repeat(50)).unwrap();
    }
    world.index(&index);

    let mut seen = Vec::new();
    let mut args = json!({ "query": "stable/c" });
    loop {
        let answer = world.call("helm_search", args.clone()).await.unwrap();
        seen.extend(rows(&answer));
        match answer["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(seen.len(), 250);
    assert!(seen.is_sorted());

    args["query"] = json!("stable/c1");
    assert_eq!(world.refused("helm_search", args.clone()).await.code, target::codes::CURSOR_MISMATCH);
    args["query"] = json!("stable/c");
    world.as_tenant("beta");
    assert_eq!(world.refused("helm_search", args).await.code, target::codes::CURSOR_MISMATCH);
}

#[tokio::test]
async fn ss5_a_port_that_is_closed_reads_like_one_that_is_silent() {
    let (server, other) = (Server::start().await, Server::at("127.0.0.2").await);
    let mut world = World::with(server.clone(), other, &["127.0.0.1", "127.0.0.2", "127.0.0.3"]).await;
    let mut told = Vec::new();
    // Nobody listens at the third address.
    for url in [server.url("/none"), format!("http://127.0.0.3:{}/x", server.port)] {
        world.configure(vec![repository("x", &url)]);
        let failure = world.refused("helm_show", json!({ "chart": "x/web" })).await;
        told.push((failure.code, failure.message.replace("127.0.0.3", "127.0.0.1")));
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0].0, helm::codes::REPO_UNREACHABLE);
}
