//! Runbooks as Jobs of a cluster: one Job per run, its log and its ending, and nothing left behind.
//!
//! The cluster is a sandbox, unless `QUARTERMASTER_TEST_KUBECONFIG` names the kubeconfig of a real control plane.

use crate::here::{World, in_process, processes};
use crate::runs_desk::{approve, await_run, ended, pending, show};
use crate::runs_replica::stopping;
use crate::runs_scene::{Asleep, Ground, stopped};
use sandbox::{Sandbox, Seed};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use testkit::{Actor, Legacy, Outcome, Plan, until};

const RUNBOOKS: &str = r#"default_toolsets: [k8s, runbooks]
limits: { calls_per_minute: 1000000 }
clusters:
  - { name: main, kubeconfig: { secret: kubeconfig }, default_namespace: NAMESPACE }
params:
  shop_token: { secret: true }
policy: { images: [busybox] }
runbooks:
  - name: greet
    group: jobs
    where: { cluster: main, namespace: NAMESPACE, image: busybox }
    arguments: { who: { required: true } }
    env: { TOKEN: "{{ params.shop_token }}", MARK: "m-{{ args.who }}" }
    check: ["false"]
    run: ["echo", "hello", "{{ args.who }}", "$(TOKEN)"]
    verify: ["echo", "verified"]
    timeout: 2m
  - name: done
    group: jobs
    where: { cluster: main, namespace: NAMESPACE, image: busybox }
    check: ["true"]
    run: ["echo", "this must not run"]
    timeout: 2m
  - name: broken
    group: jobs
    where: { cluster: main, namespace: NAMESPACE, image: busybox }
    run: ["sh", "-c", "echo before; exit 3"]
    verify: ["echo", "this must not run"]
    timeout: 2m
  - name: elsewhere
    group: jobs
    where: { cluster: main, namespace: NAMESPACE, image: "evil.example/tool" }
    run: ["true"]
"#;

/// A tenant with a cluster and runbooks in it.
struct ClusterYard {
    agent: Legacy,
    ana: Actor,
    namespace: String,
    _sandbox: Option<Sandbox>,
    _world: World,
}

impl ClusterYard {
    async fn open() -> ClusterYard {
        let real = std::env::var_os("QUARTERMASTER_TEST_KUBECONFIG").filter(|name| *name != OsString::new());
        let (kubeconfig, sandbox) = match real {
            Some(file) => (std::fs::read_to_string(file).unwrap(), None),
            None => {
                let sandbox = Sandbox::start(Seed::empty()).await.unwrap();
                (sandbox.kubeconfig(), Some(sandbox))
            }
        };
        let namespace = format!("runbooks-{:016x}", RandomState::new().hash_one(0));
        let world = Plan::embedded()
            .tenant("acme", &RUNBOOKS.replace("NAMESPACE", &namespace))
            .secret("acme", "kubeconfig", &kubeconfig)
            .secret("acme", "shop_token", "hunter2-hunter2-hunter2")
            .setting("QM_APPROVALS__SWEEP_EVERY", "50ms")
            .start(in_process())
            .await;
        let agent = world.tenant("acme").agent().legacy().await;
        agent.load("k8s:write").await;
        agent.load("runbooks:write").await;
        let ana = world.tenant("acme").approver();
        let yard = ClusterYard { agent, ana, namespace, _sandbox: sandbox, _world: world };
        let manifest = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {} }}\n", yard.namespace);
        yard.approved("k8s_apply", json!({ "manifest": manifest })).await.ok();
        yard
    }

    async fn approved(&self, tool: &str, arguments: Value) -> Outcome {
        let run = pending(&self.agent.call(tool, arguments).await);
        approve(&self.ana, &run).await;
        let told = ended(&self.ana, &run).await;
        assert_ne!(told["state"], "outcome_unknown", "{told:#}");
        await_run(&self.agent, &run).await
    }

    /// The objects of a kind in the namespace.
    async fn names(&self, kind: &str) -> String {
        let call = json!({ "kind": kind, "namespace": self.namespace });
        self.agent.call("k8s_get", call).await.answer.text()
    }

    /// Waits until no Job of ours is left.
    async fn tidied(&self) {
        until("the Jobs to be removed", async || (!self.names("Job").await.contains("qm-")).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_gives_its_log_and_its_ending_and_is_removed() {
    let yard = ClusterYard::open().await;
    let run = pending(&yard.agent.call("runbook__jobs__greet", json!({ "who": "$(TOKEN) $(id)" })).await);
    let shown = show(&yard.ana, &run).await["preview"]["text"].as_str().unwrap().to_owned();
    for part in ["a Job in the namespace", "image: busybox", "  \"$(TOKEN) $(id)\"", "the tenant's secret shop_token"] {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(!yard.names("Job").await.contains("qm-"), "a preview makes nothing");
    approve(&yard.ana, &run).await;
    let done = await_run(&yard.agent, &run).await;
    let result = &done.ok()["result"];
    assert_eq!(result["outcome"], "succeeded", "{done:?}");
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("hello $(TOKEN) $(id) $(TOKEN)"), "words reach the program as they are: {output}");
    assert!(output.contains("[verify] verified"), "{output}");
    assert!(!done.answer.text().contains("hunter2"), "{done:?}");
    yard.tidied().await;
    until("the Secret to go with its Job", async || (!yard.names("Secret").await.contains("qm-")).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_passes_ends_it_before_anything_runs() {
    let yard = ClusterYard::open().await;
    let done = yard.approved("runbook__jobs__done", json!({})).await;
    let result = &done.ok()["result"];
    assert_eq!(result["outcome"], "already_done", "{done:?}");
    assert!(!done.answer.text().contains("must not run"));
    yard.tidied().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_is_an_error_with_its_exit_code_and_its_log() {
    let yard = ClusterYard::open().await;
    let failed = yard.approved("runbook__jobs__broken", json!({})).await.refusal().clone();
    assert_eq!(failed["code"], "runbook_failed", "{failed}");
    assert_eq!((&failed["details"]["step"], &failed["details"]["exit_code"]), (&json!("run"), &json!(3)), "{failed}");
    assert!(failed["message"].as_str().unwrap().contains("before"), "{failed}");
    assert!(!failed.to_string().contains("must not run"), "{failed}");
    yard.tidied().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_the_tenant_does_not_allow_is_refused_before_anybody_is_asked() {
    let yard = ClusterYard::open().await;
    let refused = yard.agent.call("runbook__jobs__elsewhere", json!({})).await.refusal().clone();
    assert_eq!(refused["details"]["cause"], "image_denied", "{refused}");
}

/// Where the replica that carries a run out is killed.
const STOPS: [&str; 4] = ["after_claim", "in_flight", "after_effect", "after_record"];

/// The replica that took the approval is killed at each step of the run; another one ends it, and the cluster was asked for
/// each Job once.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_killed_at_any_step_leaves_one_job_of_each_kind_per_run() {
    let sandbox = Sandbox::start(Seed::shop()).await.unwrap();
    let armed: Vec<String> = STOPS.iter().map(|stop| format!("{stop}=return")).collect();
    let mut stops: Vec<&str> = armed.iter().map(String::as_str).collect();
    stops.insert(1, "");
    let ground = Ground::Redis(2);
    let plan = ground
        .plan()
        .tenant("acme", &RUNBOOKS.replace("NAMESPACE", "shop"))
        .secret("acme", "kubeconfig", &sandbox.kubeconfig())
        .secret("acme", "shop_token", "hunter2-hunter2-hunter2");
    let mut world = plan.start(stopping(processes(), &stops)).await;
    let tenant = world.tenant("acme");
    let client = tenant.agent().on(ground.alive()).legacy().await;
    client.load("runbooks:write").await;
    for (n, stop) in STOPS.into_iter().enumerate() {
        if n > 0 {
            world.begin(0).await;
        }
        let before = sandbox.writes().len();
        let run = pending(&client.call("runbook__jobs__greet", json!({ "who": stop })).await);
        let yes = tenant.approver().post(&format!("/v1/runs/{run}/approve"), &json!({}));
        let (first, asleep) = (world.part(0).clone(), Asleep::others(&world, ground));
        tokio::join!(yes.try_send(world.address(0)), async {
            stopped(&first, stop, 1).await;
            first.kill();
        });
        drop(world.take(0));
        asleep.wake();
        let told = ended(&tenant.approver().on(ground.alive()), &run).await;
        assert_eq!(told["state"], "succeeded", "{stop}: {told:#}");
        let made = sandbox.writes().split_off(before).into_iter().filter(|write| write == "POST shop/jobs").count();
        assert_eq!(made, 2, "{stop}: one that checks and one that runs: {:#?}", sandbox.writes());
    }
}
