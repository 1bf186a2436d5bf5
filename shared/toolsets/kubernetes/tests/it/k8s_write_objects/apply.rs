//! `k8s_apply`.

use crate::k8s_write_objects::world::{World, another_run, run};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: {value}}}\n")
}

fn apply(documents: &[String]) -> Value {
    json!({ "manifest": documents.join("---\n") })
}

/// The image of `checkout` as the pipeline does not want it.
fn checkout() -> Value {
    let manifest = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: checkout}\nspec: {template: {spec: {containers: [\
                    {name: checkout, image: 'registry.sandbox/shop/checkout:2.7.1'}]}}}\n";
    json!({ "manifest": manifest })
}

fn actions(answer: &Value) -> Vec<String> {
    let line = |line: &Value| format!("{} {}", line["action"].as_str().unwrap(), line["name"].as_str().unwrap());
    answer["objects"].as_array().unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn objects_are_made_and_changed_and_a_repetition_changes_nothing_more() {
    let world = World::shop().await;
    let before = world.writes();
    let args = apply(&[map("one", "x"), map("two", "y")]);

    let answer = world.run("k8s_apply", args.clone()).await.unwrap();
    assert_eq!(actions(&answer), ["create one", "create two"]);
    assert_eq!((&answer["applied"], &answer["failed"]), (&json!(2), &json!(0)));
    let version = world.get("ConfigMap", "one").await["metadata"]["resourceVersion"].clone();
    assert_eq!(
        world.get("ConfigMap", "one").await["metadata"]["annotations"]["quartermaster/run"],
        json!(run().to_string())
    );

    let again = world.run("k8s_apply", args.clone()).await.unwrap();
    assert_eq!(actions(&again), ["none one", "none two"]);
    assert_eq!(world.get("ConfigMap", "one").await["metadata"]["resourceVersion"], version, "the effect of one");

    let changed = world.run_as("k8s_apply", apply(&[map("one", "z"), map("two", "y")]), another_run()).await.unwrap();
    assert_eq!(actions(&changed), ["change one", "none two"]);
    assert_eq!(world.writes_since(before).len(), 6);
}

#[tokio::test]
async fn what_is_dangerous_about_an_object_is_a_warning() {
    let world = World::shop().await;
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: debug}\nspec:\n  hostPID: true\n  \
               volumes: [{name: root, hostPath: {path: /}}]\n  containers:\n  \
               - {name: sh, image: busybox, securityContext: {privileged: true}}\n";
    let shown = world.preview("k8s_apply", apply(&[pod.to_owned()])).await.unwrap();
    for warning in ["container sh would be privileged", "share the node's processes", "mount / of the node"] {
        assert!(shown.warnings.iter().any(|line| line.contains(warning)), "{warning} in {:?}", shown.warnings);
    }
    let plain = world.preview("k8s_apply", apply(&[map("one", "x")])).await.unwrap();
    assert_eq!(plain.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn the_preview_covers_every_object_with_counts_and_kinds() {
    let world = World::shop().await;
    let before = world.writes();
    let existing = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop-config}\ndata: {new-key: v}\n".to_owned();
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: fresh}\nstringData: {password: open-sesame}\n".to_owned();
    let args = apply(&[existing.clone(), map("one", "x"), secret]);
    let shown = world.preview("k8s_apply", args.clone()).await.unwrap();
    assert_eq!(shown.summary, "apply 3 objects: create 2, change 1");
    for line in [
        "3 objects: 2 ConfigMap, 1 Secret",
        "change ConfigMap shop/shop-config, uid ",
        "create ConfigMap shop/one",
        "create Secret shop/fresh",
        "+  new-key: v",
        "+  password: \"(secret)\"",
    ] {
        assert!(shown.text.contains(line), "{line} in {}", shown.text);
    }
    let all = format!("{shown:?}");
    assert!(!all.contains("open-sesame") && !all.contains("b3Blbi1zZXNhbWU"), "{all}");
    let arguments: Value = serde_json::from_str(shown.arguments.as_deref().expect("some are masked")).unwrap();
    let manifest = arguments["manifest"].as_str().unwrap();
    assert!(
        manifest.contains("\"(hidden)\"") && manifest.contains("new-key") && manifest.contains("fresh"),
        "{manifest}"
    );
    let plain = world.preview("k8s_apply", apply(&[map("one", "x")])).await.unwrap();
    assert_eq!(plain.arguments, None, "where nothing is secret, the arguments are shown as they are");
    assert_eq!(world.writes(), before);
    assert_eq!(world.last_look("k8s_apply", args.clone()).await.unwrap().fingerprint, shown.fingerprint);

    // One object more is not what was signed for, nor is one of them changed meanwhile.
    let more = world.preview("k8s_apply", apply(&[existing, map("one", "x")])).await.unwrap();
    assert_ne!(more.fingerprint, shown.fingerprint);
    world.change("ConfigMap", "shop-config", json!({ "data": { "new-key": "somebody else's" } })).await;
    let other = world.last_look("k8s_apply", args.clone()).await;
    assert!(
        other.is_err() || other.is_ok_and(|other| other.fingerprint != shown.fingerprint && other.text != shown.text)
    );
}

#[tokio::test]
async fn what_was_to_be_made_and_is_there_meanwhile_is_another_thing() {
    let world = World::shop().await;
    let args = apply(&[map("one", "x")]);
    let shown = world.preview("k8s_apply", args.clone()).await.unwrap();
    world.run_as("k8s_apply", apply(&[map("one", "w")]), another_run()).await.unwrap();
    let other = world.last_look("k8s_apply", args).await.unwrap();
    assert_ne!(other.fingerprint, shown.fingerprint);
    assert_ne!(other.text, shown.text);
}

#[tokio::test]
async fn what_the_server_makes_up_anew_each_time_does_not_void_a_yes() {
    let world = World::shop().await;
    let service =
        "apiVersion: v1\nkind: Service\nmetadata: {name: fresh}\nspec: {selector: {app: x}, ports: [{port: 80}]}\n";
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: fresh}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: 'a:1'}]}}}\n";
    let args = apply(&[service.to_owned(), job.to_owned()]);
    let shown = world.preview("k8s_apply", args.clone()).await.unwrap();
    for _ in 0..3 {
        assert_eq!(world.last_look("k8s_apply", args.clone()).await.unwrap().fingerprint, shown.fingerprint);
    }
}

#[tokio::test]
async fn k3_fields_of_others_are_a_conflict_that_names_them_unless_force_is_signed_for() {
    let world = World::shop().await;
    let before = world.writes();
    let refused = world.preview("k8s_apply", checkout()).await.unwrap_err();
    assert_eq!(refused.code, kubernetes::codes::FIELD_CONFLICT);
    assert_eq!(refused.details.unwrap()["managers"], json!(["deploy-pipeline"]));
    assert_eq!(world.run("k8s_apply", checkout()).await.unwrap_err().code, kubernetes::codes::FIELD_CONFLICT);
    assert_eq!(world.writes(), before);

    let mut forced = checkout();
    forced["force"] = json!(true);
    let shown = world.preview("k8s_apply", forced.clone()).await.unwrap();
    assert_eq!(shown.warnings, ["Takes over fields of Deployment shop/checkout that belong to deploy-pipeline."]);
    assert!(shown.text.contains("checkout:2.7.1") && shown.text.contains("its pods are replaced"), "{}", shown.text);
    let answer = world.run("k8s_apply", forced).await.unwrap();
    assert_eq!(actions(&answer), ["change checkout"]);
    let image = world.get("Deployment", "checkout").await["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!(image, "registry.sandbox/shop/checkout:2.7.1");
}

#[tokio::test]
async fn a_dry_run_is_a_look_and_tells_everything_that_is_wrong() {
    let world = World::shop().await;
    let before = world.writes();
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndatums: {}\n".to_owned();
    let conflict = checkout()["manifest"].as_str().unwrap().to_owned();
    let mut args = apply(&[bad, map("fine", "x"), conflict]);
    args["dry_run"] = json!(true);
    let answer = world.run("k8s_apply", args).await.unwrap();
    assert_eq!(actions(&answer), ["failed bad", "create fine", "failed checkout"]);
    assert_eq!((&answer["applied"], &answer["failed"]), (&json!(0), &json!(2)));
    assert_eq!(world.writes(), before);
}

#[tokio::test]
async fn namespaces_and_definitions_go_first_and_bring_what_needs_them() {
    let world = World::shop().await;
    let inside =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: fresh}\ndata: {a: b}\n".to_owned();
    let widget =
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: fresh}\nspec: {size: 3}\n".to_owned();
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
        spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Widget, plural: widgets, singular: widget}\n  versions:\n  \
        - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}\n".to_owned();
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: fresh}\n".to_owned();
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: fresh}\nstringData: {password: open-sesame}\n"
            .to_owned();
    let args = apply(&[inside, widget, definition, namespace, secret]);

    let shown = world.preview("k8s_apply", args.clone()).await.unwrap();
    for line in ["create ConfigMap fresh/inside, untried", "create Widget w, untried", "create Namespace fresh"] {
        assert!(shown.text.contains(line), "{line} in {}", shown.text);
    }
    assert!(
        shown.warnings.iter().any(|w| w.contains("CustomResourceDefinition reaches further")),
        "{:?}",
        shown.warnings
    );
    assert_eq!(world.last_look("k8s_apply", args.clone()).await.unwrap().fingerprint, shown.fingerprint);

    let before = world.writes();
    let answer = world.run("k8s_apply", args.clone()).await.unwrap();
    assert_eq!(
        actions(&answer),
        ["create fresh", "create widgets.example.com", "create inside", "create w", "create s"]
    );
    assert_eq!(world.writes_since(before).len(), 5);
    assert_eq!(world.get("widgets.example.com", "fresh/w").await["spec"]["size"], 3);
    assert!(matches!(world.probe("k8s_apply", args, run()).await, ProbeResult::Done(Some(_))));
}

#[tokio::test]
async fn the_first_failure_ends_it_and_says_what_was_applied() {
    let world = World::shop().await;
    let args = apply(&[map("one", "x"), map("two", "x"), map("three", "x")]);
    world.sandbox.plant(ClusterFault {
        method: Some("PATCH".into()),
        path: "configmaps/two".into(),
        times: 1,
        harm: ClusterHarm::Answer(403, None),
    });
    let failure = world.run("k8s_apply", args.clone()).await.unwrap_err();
    assert_eq!(failure.code, target::codes::FORBIDDEN);
    for part in ["ConfigMap shop/two:", "applied before it: ConfigMap one", "not tried: ConfigMap three"] {
        assert!(failure.message.contains(part), "{part} in {}", failure.message);
    }
    assert!(world.find("ConfigMap", "one").await.is_some() && world.find("ConfigMap", "three").await.is_none());
    assert_eq!(world.probe("k8s_apply", args.clone(), run()).await, ProbeResult::Unknown, "some carry the mark");
    // The same run once more brings the rest.
    let answer = world.run("k8s_apply", args).await.unwrap();
    assert_eq!(actions(&answer), ["none one", "create two", "create three"]);
}

#[tokio::test]
async fn k2_a_lost_answer_is_unknown_and_the_marks_settle_it() {
    for (harm, done) in [(ClusterHarm::CutAfter, true), (ClusterHarm::LateAnswer(504), true), (ClusterHarm::Cut, false)]
    {
        let world = World::shop().await;
        world.sandbox.plant(ClusterFault {
            method: Some("PATCH".into()),
            path: "configmaps/one".into(),
            times: 1,
            harm,
        });
        let failure = world.run("k8s_apply", apply(&[map("one", "x")])).await.unwrap_err();
        assert_eq!(failure.code, Code::OutcomeUnknown);
        let probe = world.probe("k8s_apply", apply(&[map("one", "x")]), run()).await;
        assert_eq!(matches!(probe, ProbeResult::Done(Some(_))), done, "{probe:?}");
        assert!(done || probe == ProbeResult::NotDone);
        assert_ne!(world.probe("k8s_apply", apply(&[map("one", "x")]), another_run()).await, ProbeResult::Done(None));
    }
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_before_the_first_object_is_sent() {
    let world = World::shop().await;
    let before = world.writes();
    let namespaced = |ns: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: b, namespace: {ns}}}\n");
    let unknown = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n".to_owned();
    for (documents, namespace, code) in [
        (vec![map("a", "x"), unknown], None, kubernetes::codes::UNKNOWN_KIND),
        (vec![map("a", "x"), namespaced("default")], Some("shop"), kubernetes::codes::NAMESPACE_CONFLICT),
        (vec![map("b", "x"), namespaced("shop")], None, kubernetes::codes::INVALID_MANIFEST),
        (vec!["not: [a manifest".to_owned()], None, kubernetes::codes::INVALID_MANIFEST),
        (
            vec!["apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n".to_owned()],
            None,
            kubernetes::codes::INVALID_MANIFEST,
        ),
    ] {
        let mut args = apply(&documents);
        if let Some(namespace) = namespace {
            args["namespace"] = json!(namespace);
        }
        assert_eq!(world.preview("k8s_apply", args.clone()).await.unwrap_err().code, code, "{args}");
        assert_eq!(world.run("k8s_apply", args.clone()).await.unwrap_err().code, code, "{args}");
    }
    let system = apply(&[map("a", "x"), namespaced("kube-system")]);
    assert_eq!(world.preview("k8s_apply", system).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert_eq!(world.writes(), before);
}

#[tokio::test]
async fn a_tenant_with_a_list_stays_within_it() {
    let world = World::limited(&["shop"]).await;
    let before = world.writes();
    let outside = apply(&["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: platform}\n".to_owned()]);
    assert_eq!(
        world.preview("k8s_apply", outside.clone()).await.unwrap_err().code,
        kubernetes::codes::NAMESPACE_DENIED
    );
    assert_eq!(world.run("k8s_apply", outside).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    for wide in [
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: mine}\nrules: []\n",
    ] {
        let args = apply(&[wide.to_owned()]);
        assert_eq!(world.run("k8s_apply", args).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED, "{wide}");
    }
    assert_eq!(world.writes(), before);
}

#[tokio::test]
async fn wide_kinds_are_named_as_such() {
    let world = World::shop().await;
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: mine}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n";
    let shown = world.preview("k8s_apply", apply(&[role.to_owned()])).await.unwrap();
    assert_eq!(
        shown.warnings,
        [
            "A ClusterRole reaches further than one workload.",
            "ClusterRole mine: the role may do everything with everything."
        ]
    );
}

#[tokio::test]
async fn fifty_objects_are_all_in_sight() {
    let world = World::shop().await;
    let data: String = (0..40).map(|n| format!("  key-{n}: value\n")).collect();
    let document = |n: usize| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: many-{n}}}\ndata:\n{data}");
    let documents: Vec<String> = (0..50).map(document).collect();
    let shown = world.preview("k8s_apply", apply(&documents)).await.unwrap();
    assert!(
        (0..50).all(|n| shown.text.contains(&format!("create ConfigMap shop/many-{n}, sha256 "))),
        "{}",
        shown.text
    );
    assert_eq!(shown.text.matches("key-39: value").count(), 50, "all of each");
    assert_eq!(shown.summary, "apply 50 objects: create 50, change 0");
    let too_many: Vec<String> = (0..51).map(document).collect();
    assert_eq!(world.preview("k8s_apply", apply(&too_many)).await.unwrap_err().code, Code::TooLarge);
}

#[tokio::test]
async fn a_kind_in_a_version_the_cluster_does_not_prefer_is_told_which_to_write() {
    let world = World::shop().await;
    let old = "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: old}\nspec: {}\n".to_owned();
    let refused = world.preview("k8s_apply", apply(&[old])).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.next.as_deref()),
        (kubernetes::codes::UNKNOWN_KIND, Some("write it as apiVersion: apps/v1"))
    );
}
