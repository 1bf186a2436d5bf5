//! `quartermaster doctor`: what is well, what is doubtful and what is bad, with what to do about it.

use crate::here::processes;
use crate::upstream_yard::Shelf;
use serde_json::Value;
use std::path::Path;
use testkit::Plan;
use testkit::upstream::{Era, McpServer, tools};

/// Runs the real program on these settings; gives its exit code and its lines.
async fn doctor(settings: &Path) -> (i32, Vec<Value>) {
    with(settings, &[]).await
}

/// The same, with settings from the environment over the file.
#[expect(clippy::disallowed_methods, reason = "the program under test, never part of the service")]
pub(crate) async fn with(settings: &Path, environment: &[(&str, &str)]) -> (i32, Vec<Value>) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_quartermaster"));
    command.args(["--output", "json", "doctor", "--config"]).arg(settings).env("QM_TELEMETRY__LOG", "off");
    command.envs(environment.iter().copied());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (output.status.code().unwrap(), lines)
}

fn line<'a>(lines: &'a [Value], what: &str) -> &'a Value {
    lines.iter().find(|line| line["what"] == what).unwrap_or_else(|| panic!("no line about {what}: {lines:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_well_kept_service_is_told_well_and_its_targets_are_asked() {
    let sandboxes = "clusters: [{ name: play, sandbox: true }]\ntoolsets: { jenkins: { sandbox: true } }";
    let world = Plan::redis(1).tenant("acme", sandboxes).start(processes()).await;
    let (code, lines) = doctor(world.settings_file()).await;
    assert_eq!(code, 0, "{lines:#?}");
    for what in ["settings", "issuers", "service key", "clock", "tenant acme", "tenant other"] {
        assert_eq!(line(&lines, what)["how"], "well", "{what}");
    }
    for what in ["tenant acme, cluster play", "tenant acme, Jenkins jenkins"] {
        let told = line(&lines, what);
        assert_eq!(told["how"], "well", "{told}");
        assert!(told["says"].as_str().unwrap().contains('.'), "it says which version answers: {told}");
    }
    assert_ne!(line(&lines, "helm")["how"], "bad", "a service without helm is a service");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_with_what_to_do_and_never_with_the_secret() {
    let missing = "clusters: [{ name: prod, kubeconfig: { secret: nowhere } }]\n\
        toolsets: { jenkins: { url: 'https://ci.invalid', user: robot, token: { secret: ci } } }";
    let plan = Plan::redis(1).tenant("acme", missing).secret("acme", "ci", "t0ken-7Yq2vT");
    let world = plan.start(processes()).await;
    world.write_tenant("broken", "tenant: broken\nclusters: 7\n");
    let (code, lines) = doctor(world.settings_file()).await;
    assert_eq!(code, 1, "{lines:#?}");
    for what in ["tenant acme, cluster prod", "tenant acme, Jenkins jenkins", "tenant file"] {
        let told = line(&lines, what);
        assert_eq!(told["how"], "bad", "{told}");
        assert!(told["todo"].is_string(), "{told}");
    }
    assert!(!format!("{lines:?}").contains("7Yq2vT"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_is_bad_and_nothing_is_asked_through_it() {
    let mut world = Plan::redis(1).start(processes()).await;
    world.redis().stop();
    let (code, lines) = doctor(world.settings_file()).await;
    assert_eq!((code, &line(&lines, "store")["how"]), (1, &"bad".into()), "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn external_servers_are_asked_and_nothing_of_their_answer_is_kept() {
    let server = McpServer::start(Era::Both).await;
    server.offer(vec![tools::named("search"), tools::named("keep")]);
    let shelf = Shelf::new().of("wiki", &server, "").at("gone", "http://127.0.0.1:1/mcp", "");
    // The service does not know the catalog, so whatever the store holds of these servers is `doctor`'s.
    let mut world = Plan::redis(1).start(processes()).await;
    world.write_tenant("fresh", "tenant: fresh\nservers: [{ use: wiki, accept: first }, { use: gone }]\n");
    let folder = shelf.folder();
    let (code, lines) = with(world.settings_file(), &[("QM_UPSTREAMS__CATALOG", &folder)]).await;
    assert_eq!(code, 1, "{lines:#?}");
    let wiki = line(&lines, "tenant fresh, external server wiki");
    assert_eq!((&wiki["how"], &wiki["says"]), (&"well".into(), &"answers and lists 2 tools".into()), "{wiki}");
    let gone = line(&lines, "tenant fresh, external server gone");
    assert_eq!(gone["how"], "bad", "{gone}");
    assert!(gone["says"].as_str().unwrap().starts_with("upstream_refused: "), "{gone}");
    assert_eq!(world.redis().command(&["KEYS", "*{fresh}*"]), "*0");
}
