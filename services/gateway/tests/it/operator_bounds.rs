//! What an operator's file gives is not widened over HTTP, and what the operator brought goes where the file sends it.

use crate::helm_story::server::{Answer, Server};
use crate::here::{World, in_process};
use crate::runs_desk::{pending, refusal};
use serde_json::{Value, json};
use testkit::{Actor, Plan, until};

const CONFIG: &str = "/v1/tenant/config";
/// A cluster that nobody serves.
const KUBECONFIG: &str = "apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: 'https://cluster.example' } }]
users: [{ name: u, user: { token: canary-of-the-operator } }]
";

fn admin(world: &World) -> Actor {
    world.tenant("acme").approver().named("paul").scoped("tenant:admin")
}

async fn put(who: &Actor, text: &str) -> testkit::Answer {
    let tag = who.send(&who.request("GET", CONFIG)).await.header("etag").expect("a tag").to_owned();
    let request = who.request("PUT", CONFIG).header("Content-Type", "text/yaml").header("If-Match", tag);
    who.send(&request.body(text.to_owned())).await
}

/// What is refused, by key.
async fn refused(who: &Actor, text: &str) -> Vec<String> {
    let answer = put(who, text).await;
    assert_eq!(refusal(&answer), (422, "config_invalid".into()), "{}", answer.text());
    let problems = answer.json()["error"]["details"]["problems"].as_array().expect("problems").clone();
    assert!(problems.iter().all(|problem| problem["code"] == "operator_only"), "{problems:#?}");
    let key = |problem: &Value| {
        problem["message"].as_str().and_then(|told| told.split('`').nth(1)).expect("a key").to_owned()
    };
    problems.iter().map(key).collect()
}

async fn set_secret(who: &Actor, name: &str, value: &str) {
    let request = who.request("PUT", &format!("/v1/tenant/secrets/{name}")).header("Content-Type", "text/plain");
    assert_eq!(who.send(&request.body(value)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_over_http_lifts_no_bound_of_the_operators_file() {
    let cluster = "name: prod, kubeconfig: { secret: prod }, namespaces: [shop], impersonate: { user: acme }, protected: [shop-pay]";
    let file =
        format!("mode: read\nclusters: [{{ {cluster} }}]\npolicy: {{ deny: [k8s_exec], approval: {{ deciders: 2 }} }}");
    let world = Plan::embedded().tenant("acme", &file).secret("acme", "prod", KUBECONFIG).start(in_process()).await;
    let paul = admin(&world);
    let wide = "tenant: acme
mode: write
clusters:
- { name: prod, kubeconfig: { secret: prod }, impersonate: { user: globex } }
";
    let all = ["mode", "deny", "deciders", "namespaces", "impersonate", "protected"];
    let mut told = refused(&paul, wide).await;
    told.sort_by_key(|key| all.iter().position(|known| known == key));
    assert_eq!(told, all);
    let policy = "policy: { deny: [k8s_exec], approval: { deciders: 2 } }\n";
    let renamed = format!("tenant: acme\nclusters: [{{ name: other, kubeconfig: {{ secret: prod }} }}]\n{policy}");
    assert_eq!(refused(&paul, &renamed).await, ["kubeconfig"], "nor under another name");

    let narrow = format!(
        "tenant: acme\nclusters: [{{ {cluster}, default: true }}]\npolicy: {{ deny: ['k8s_*'], approval: {{ deciders: 3 }} }}\n"
    );
    let set = put(&paul, &narrow).await;
    assert_eq!((set.status, &set.json()["in_force"]), (200, &json!(true)), "{}", set.text());
}

/// A world with a Jenkins server of the file, and another one that nobody of the operator's named.
async fn with_jenkins() -> (World, Server, Server) {
    let (own, other) = (Server::start().await, Server::start().await);
    let file = format!(
        "default_toolsets: [jenkins]\ntoolsets:\n  jenkins: {{ name: ci, url: \"{}\", user: robot, token: {{ secret: ci-token }} }}",
        own.url("/")
    );
    let plan = Plan::embedded()
        .setting("QM_UPSTREAMS__PRIVATE", "true")
        .setting("QM_UPSTREAMS__PORTS", &format!("[{}, {}]", own.port, other.port))
        .tenant("acme", &file)
        .secret("acme", "ci-token", "canary-of-the-operator")
        .secret("acme", "unused", "canary-of-the-operator");
    (plan.start(in_process()).await, own, other)
}

fn jenkins_at(server: &Server, token: &str) -> String {
    let url = server.url("/");
    format!(
        "tenant: acme\nmode: write\ndefault_toolsets: [jenkins]\ntoolsets:\n  \
         jenkins: {{ name: mine, url: \"{url}\", user: robot, token: {{ secret: {token} }} }}\n"
    )
}

/// What a listener was shown in `Authorization`.
fn shown(server: &Server) -> Vec<String> {
    use base64::Engine;
    let header = |request: &String| {
        let line = request.lines().find_map(|line| line.strip_prefix("authorization: Basic "))?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(line.trim()).expect("base64");
        Some(String::from_utf8(bytes).expect("text"))
    };
    server.requests().iter().filter_map(header).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_the_operator_goes_where_the_file_sends_it_and_nowhere_else() {
    let (world, own, other) = with_jenkins().await;
    let paul = admin(&world);
    let agent = world.tenant("acme").agent();
    let look = async || drop(agent.legacy().await.call("jenkins_jobs", json!({})).await);
    look().await;
    assert_eq!(shown(&own).first().map(String::as_str), Some("robot:canary-of-the-operator"), "as the file says");

    // Neither the secret that the file uses, nor one that it does not use.
    assert_eq!(refused(&paul, &jenkins_at(&other, "ci-token")).await, ["ci-token"]);
    assert_eq!(refused(&paul, &jenkins_at(&other, "unused")).await, ["unused"]);

    // A secret of the tenant's own goes where the tenant points, also under a name that the operator uses.
    set_secret(&paul, "ci-token", "of-the-tenant").await;
    assert_eq!(put(&paul, &jenkins_at(&other, "ci-token")).await.status, 200);
    look().await;
    assert_eq!(shown(&other).first().map(String::as_str), Some("robot:of-the-tenant"));

    // Without it, what lies beneath is the operator's and is not sent.
    let before = shown(&other).len();
    assert_eq!(paul.send(&paul.request("DELETE", "/v1/tenant/secrets/ci-token")).await.status, 200);
    let told = agent.legacy().await.call("jenkins_jobs", json!({})).await;
    assert_eq!(told.refusal()["code"], "toolset_not_configured", "{told:?}");
    assert!(shown(&other).iter().all(|header| !header.contains("canary")), "{:?}", shown(&other));
    assert_eq!(shown(&other).len(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn adding_a_repository_shows_no_credential_to_anybody() {
    let (own, other) = (Server::start().await, Server::start().await);
    let index = "apiVersion: v1\nentries:\n  web: []\n";
    for server in [&own, &other] {
        server.put("/charts/index.yaml", Answer::ok(index));
    }
    let file = format!(
        "clusters: [{{ name: play, sandbox: true }}]\ntoolsets:\n  helm:\n    repositories:\n    \
         - {{ name: own, url: \"{}\", credential: {{ secret: vendor-pull }} }}",
        own.url("/charts")
    );
    let plan = Plan::embedded()
        .setting("QM_UPSTREAMS__PRIVATE", "true")
        .setting("QM_UPSTREAMS__PORTS", &format!("[{}, {}]", own.port, other.port))
        .setting("QM_UPSTREAMS__CHART_HOSTS", "[\"127.0.0.1\"]")
        .tenant("acme", &file)
        .secret("acme", "vendor-pull", "robot:canary-of-the-operator");
    let world = plan.start(in_process()).await;
    let agent = world.tenant("acme").agent().legacy().await;
    agent.load("helm:write").await;

    let named = json!({ "action": "add", "name": "evil", "url": other.url("/charts"), "credential": "vendor-pull" });
    let refused = agent.call("helm_repo", named).await;
    assert!(refused.refusal()["code"].as_str().unwrap().ends_with("_argument"), "{refused:?}");
    assert_eq!(other.requests().len(), 0);

    for server in [&own, &other] {
        let add = json!({ "action": "add", "name": "more", "url": server.url("/charts") });
        pending(&agent.call("helm_repo", add).await);
        until("the repository to be asked", async || (!server.requests().is_empty()).then_some(())).await;
        assert_eq!(shown(server), [] as [&str; 0], "{:?}", server.requests());
    }
    // The repository of the file is opened by the secret that the file gives it.
    agent.call("helm_search", json!({ "refresh": true })).await;
    assert!(shown(&own).iter().all(|header| header == "robot:canary-of-the-operator"), "{:?}", own.requests());
    assert!(!shown(&own).is_empty(), "{:?}", own.requests());
}
