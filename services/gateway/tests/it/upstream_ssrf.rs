//! Addresses that tenants write down for servers of their own: refused where they are written, and refused again where
//! they are dialled, whatever a name says by then.

use crate::here::in_process;
use crate::runs_desk::{approve, await_run, ended, pending};
use crate::upstream_yard::{Shelf, admin, drawn, ours, settled, using};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use testkit::upstream::{Era, Harm, McpServer};
use testkit::{Actor, Legacy, Plan, Process, Start, World};

/// A name that reads like one of the public network.
const NAME: &str = "mcp.rebind.example.net";

/// Hosts that are this machine, its network or a metadata service, in every disguise.
const HOSTS: [&str; 27] = [
    "127.0.0.1",
    "127.1",
    "0",
    "0.0.0.0",
    "0x7f000001",
    "017700000001",
    "2130706433",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]",
    "[2002:7f00:1::]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::]",
    "[fec0::1]",
    "[fe80::1]",
    "localhost",
    "localhost.",
    "metadata.google.internal",
    "ok.example.net@127.0.0.1",
    "127.0.0.1#@ok.example.net",
];

/// What is no https address on a port that is allowed.
const ODD: [&str; 14] = [
    "http://mcp.example.net/mcp",
    "https://mcp.example.net:6379/mcp",
    "https://mcp.example.net:10250/mcp",
    "https://mcp.example.net:2375/mcp",
    "https://user:password@mcp.example.net/mcp",
    "file:///etc/passwd",
    "gopher://mcp.example.net/",
    "unix:/run/docker.sock",
    "data:,hello",
    "https:mcp.example.net",
    "https:///mcp.example.net/mcp",
    "//mcp.example.net/mcp",
    "https://xn--exmple-cua.net/mcp",
    "https://mcp.example.net\\@127.0.0.1/mcp",
];

fn own(url: &str) -> String {
    format!("tenant: acme\nmode: write\nservers:\n- {{ name: own, url: {} }}\n", json!(url))
}

async fn checked(admin: &Actor, text: &str) -> Value {
    let request = admin.request("POST", "/v1/tenant/config/check").header("Content-Type", "text/yaml").body(text);
    let answer = admin.send(&request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn ss1_no_address_of_the_corpus_can_be_configured() {
    let plan = Plan::embedded().setting("QM_UPSTREAMS__OWN_SERVERS", r#"["acme"]"#);
    let world = plan.start(in_process()).await;
    let paul = admin(&world.tenant("acme").agent());
    let told = checked(&paul, &own("https://mcp.example.net/mcp")).await;
    assert_eq!(told["valid"], true, "a plain address is taken: {told:#}");

    let hosts = HOSTS.iter().map(|host| format!("https://{host}/mcp"));
    for url in hosts.chain(ODD.map(str::to_owned)) {
        let told = checked(&paul, &own(&url)).await;
        assert_eq!(told["valid"], false, "{url}: {told:#}");
        let problem = &told["problems"][0];
        assert_eq!(problem["line"], 4, "it says where: {told:#}");

        let etag = paul.send(&paul.request("GET", "/v1/tenant/config")).await.header("etag").unwrap().to_owned();
        let put = paul.request("PUT", "/v1/tenant/config").header("Content-Type", "text/yaml").header("If-Match", etag);
        let answer = paul.send(&put.body(own(&url))).await;
        assert!((400..500).contains(&answer.status), "{url}: {}", answer.text());
    }

    let other = admin(&world.tenant("other").agent());
    let text = own("https://mcp.example.net/mcp").replace("acme", "other");
    assert_eq!(checked(&other, &text).await["valid"], false, "only whom the operator names may name an address at all");
}

/// A file that stands for `/etc/hosts` of one process. It is written in place: a mount follows the file, not its name.
struct Hosts {
    _folder: TempDir,
    file: PathBuf,
}

impl Hosts {
    fn saying(address: &str) -> Hosts {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        let hosts = Hosts { _folder: folder, file };
        hosts.say(address);
        hosts
    }

    fn say(&self, address: &str) {
        std::fs::write(&self.file, format!("127.0.0.1 localhost\n{address} {NAME}\n")).unwrap();
    }

    /// Starts the service in a mount namespace of its own, in which this file is `/etc/hosts`.
    #[expect(clippy::disallowed_methods, reason = "the test's own hand, never part of the service")]
    fn processes(&self) -> Start<Process> {
        let file = self.file.clone();
        Process::started_by(move |setup| {
            let mut command = Command::new("unshare");
            let script = r#"mount --bind "$1" /etc/hosts && exec "$2" serve --config "$3""#;
            command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
            command.arg(&file).arg(env!("CARGO_BIN_EXE_quartermaster")).arg(&setup.config);
            command
        })
    }
}

/// A port nobody listens on.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether this machine lets anybody have a mount namespace. Where everything must be tested it has to.
#[expect(clippy::disallowed_methods, reason = "the test's own hand, never part of the service")]
fn can_mount() -> bool {
    let tried = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        let told = "SKIPPED: `unshare --map-root-user --mount` does not work here";
        assert!(std::env::var_os("CI").is_none(), "{told}");
        eprintln!("{told}");
    }
    can
}

/// A world whose tenant names servers of its own by [`NAME`].
async fn naming(hosts: &Hosts, urls: &[(&str, String)], settings: &[(&str, &str)]) -> World<Process> {
    let servers: String = urls.iter().map(|(name, url)| format!("- {{ name: {name}, url: \"{url}\" }}\n")).collect();
    let plan = Plan::embedded()
        .setting("QM_UPSTREAMS__OWN_SERVERS", r#"["acme"]"#)
        .tenant("acme", &format!("limits: {{ calls_per_minute: 1000000 }}\nservers:\n{servers}"));
    let plan = settings.iter().fold(plan, |plan, (key, value)| plan.setting(key, value));
    plan.start(hosts.processes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ss1_ss5_a_name_that_leads_here_is_refused_when_it_is_dialled_and_tells_nothing_of_ports() {
    if !can_mount() {
        return;
    }
    let (open, closed) = (McpServer::start(Era::Both).await, closed_port());
    let ports = format!("[443,{},{closed}]", open.port());
    for address in ["127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "10.0.0.1", "::ffff:127.0.0.1"] {
        let hosts = Hosts::saying(address);
        let urls = [
            ("open", format!("https://{NAME}:{}/mcp", open.port())),
            ("closed", format!("https://{NAME}:{closed}/mcp")),
        ];
        let world = naming(&hosts, &urls, &[("QM_UPSTREAMS__PORTS", &ports)]).await;
        let paul = admin(&world.tenant("acme").agent());
        let (one, two) = (settled(&paul, "open").await, settled(&paul, "closed").await);
        assert_eq!(one["trouble"]["code"], "upstream_refused", "{address}: {one:#}");
        let told = |standing: &Value| (standing["trouble"]["code"].clone(), standing["trouble"]["message"].clone());
        assert_eq!(told(&one), told(&two), "{address}: open and closed read alike");
        assert_eq!(open.connections(), 0, "{address}: nobody was dialled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ss2_a_name_that_changes_its_mind_is_looked_at_again_with_each_connection() {
    if !can_mount() {
        return;
    }
    let server = McpServer::start(Era::Modern).await;
    let (hosts, port) = (Hosts::saying("127.0.0.1"), server.port().to_string());
    let private = [("QM_UPSTREAMS__PRIVATE", "true"), ("QM_UPSTREAMS__PORTS", &format!("[{port}]"))];
    let world = naming(&hosts, &[("own", format!("http://{NAME}:{port}/mcp"))], &private).await;
    let paul = admin(&world.tenant("acme").agent());
    let told = settled(&paul, "own").await;
    assert!(told["trouble"].is_null(), "what the operator allows is reached: {told:#}");
    assert!(server.requests().iter().all(|seen| seen.header("host") == Some(&format!("{NAME}:{port}"))));

    let client = drawn(&world.tenant("acme").agent(), "own:write").await;
    assert_eq!(acted(&world, &client, "one").await, ("succeeded".to_owned(), "ok".to_owned()));

    // This address leads to the very same listener, and is one that nobody may dial.
    hosts.say("0.0.0.0");
    server.hang_up();
    let before = server.connections();
    assert_eq!(acted(&world, &client, "two").await, ("failed".to_owned(), "upstream_refused".to_owned()));
    assert_eq!(server.connections(), before, "the new address was not dialled");

    hosts.say("127.0.0.1");
    assert_eq!(acted(&world, &client, "three").await.0, "succeeded");
    assert_eq!(server.calls("keep").len(), 2);
}

/// Has a change of the tenant's own server signed, and gives how it ended.
async fn acted(world: &World<Process>, client: &Legacy, text: &str) -> (String, String) {
    let ana = world.tenant("acme").approver();
    let run = pending(&client.call(&ours("own", "keep"), json!({ "text": text })).await);
    approve(&ana, &run).await;
    let state = ended(&ana, &run).await["state"].as_str().unwrap_or_default().to_owned();
    (state, await_run(client, &run).await.code().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn ss7_proxies_of_the_environment_are_not_asked() {
    let (server, proxy) = (McpServer::start(Era::Both).await, McpServer::start(Era::Both).await);
    let shelf = Shelf::new().trusted("wiki", &server);
    let address = format!("http://{}", proxy.address());
    let plan = shelf.under(Plan::embedded()).tenant("acme", &using(&["wiki"], ""));
    let proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let plan = proxies.into_iter().fold(plan, |plan, name| plan.setting(name, &address));
    let world = plan.start(crate::here::processes()).await;
    let client = drawn(&world.tenant("acme").reader(), "wiki").await;
    assert_eq!(client.call(&ours("wiki", "echo"), json!({ "text": "hi" })).await.code(), "ok");
    assert_eq!((server.calls("echo").len(), proxy.connections()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn ss3_ss4_credentials_go_to_one_place_and_nothing_a_server_points_at_is_fetched() {
    let (server, elsewhere) = (McpServer::start(Era::Both).await, McpServer::start(Era::Both).await);
    server.require("Authorization", "Bearer the-right-one");
    let entry = "trust_annotations: true\nparams: { key: { secret: true } }\nauth: { secret: \"{{ params.key }}\" }";
    let shelf = Shelf::new().of("wiki", &server, entry);
    let file = "limits: { calls_per_minute: 1000000 }\nparams: { key: { secret: true, from: wiki-key } }\n\
                servers:\n- { use: wiki, params: { key: \"{{ params.key }}\" } }\n";
    let plan = shelf.under(Plan::embedded()).tenant("acme", file).secret("acme", "wiki-key", "the-right-one");
    let world = plan.start(in_process()).await;
    let client = drawn(&world.tenant("acme").reader(), "wiki").await;
    let name = ours("wiki", "echo");
    assert_eq!(client.call(&name, json!({})).await.code(), "ok");

    server.plant("tools/call", Harm::Redirect { status: 307, to: elsewhere.url() });
    assert_eq!(client.call(&name, json!({})).await.code(), "upstream_protocol");
    assert_eq!(elsewhere.connections(), 0, "a redirect is not followed, with credentials or without");
    server.cure();

    world.write_secret("acme", "wiki-key", "another-one");
    testkit::until("the new secret", async || {
        (client.call(&name, json!({})).await.code() == "credentials_refused").then_some(())
    })
    .await;
    let fetched: Vec<_> = server.requests().into_iter().filter(|seen| seen.path != "/mcp").collect();
    assert!(fetched.is_empty(), "where it points at is not looked up: {fetched:?}");
}
