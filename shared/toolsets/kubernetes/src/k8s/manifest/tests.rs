use super::*;
use serde_json::json;

fn manifest(text: &str) -> ObjectManifest {
    ObjectManifest::from(text.to_owned())
}

fn told(text: &str) -> String {
    let failure = manifest(text).objects().unwrap_err();
    format!("{}: {}", failure.code.as_str(), failure.message)
}

#[test]
fn documents_lists_and_json_become_objects_in_order() {
    let text = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {n: \"1\", b: yes}\n---\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: web}\n";
    let read = manifest(text);
    let objects = read.objects().unwrap();
    let names: Vec<_> = objects.iter().map(|o| (o.kind_text(), o.name.as_str(), o.namespace.as_deref())).collect();
    assert_eq!(names, [("v1/ConfigMap".to_owned(), "a", Some("shop")), ("apps/v1/Deployment".to_owned(), "web", None)]);
    assert_eq!(objects[0].value["data"], json!({ "n": "1", "b": "yes" }), "a word stays a word");
    let json = manifest(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"n":1,"f":0.5,"t":true}}"#);
    assert_eq!(json.objects().unwrap()[0].value["spec"], json!({ "n": 1, "f": 0.5, "t": true }));
}

#[test]
fn a_mistake_is_told_with_line_and_column() {
    assert!(told("apiVersion: v1\nkind: [\n").starts_with("invalid_manifest: "), "{}", told("a: [\n"));
    let twice = told("apiVersion: v1\nkind: Pod\nkind: Pod\nmetadata: {name: a}\n");
    assert!(twice.starts_with("invalid_manifest: 3:1: "), "{twice}");
    for (text, why) in [
        ("", "the manifest holds no object"),
        ("# nothing\n", "the manifest holds no object"),
        ("just text", "object 1 has no apiVersion"),
        ("kind: Pod\nmetadata: {name: a}", "object 1 has no apiVersion"),
        ("apiVersion: v1\nmetadata: {name: a}", "object 1 has no kind"),
        ("apiVersion: v1\nkind: pods/exec\nmetadata: {name: a}", "object 1 has no kind"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", "object 1 has no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: ../x}", "object 1 (Pod) has a name that is none"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: A/b}",
            "object 1 (Pod a) has a namespace that is none",
        ),
        ("apiVersion: ../v1\nkind: Pod\nmetadata: {name: a}", "object 1 has no apiVersion"),
    ] {
        assert_eq!(told(text), format!("invalid_manifest: {why}"));
    }
}

#[test]
fn one_object_stands_in_a_manifest_once() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n";
    assert_eq!(told(&pod.repeat(2)), "invalid_manifest: Pod a is in the manifest twice");
}

#[test]
fn nothing_grows_by_being_read() {
    let laughs: String =
        (1..9).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","))).collect();
    let bomb = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\na0: &a0 [x,x,x]\n{laughs}");
    assert!(told(&bomb).starts_with("invalid_manifest"), "{}", told(&bomb));
    assert!(told(&"[".repeat(5_000)).starts_with("invalid_manifest"));
    assert!(told(&"- ".repeat(5_000)).starts_with("invalid_manifest"));
    assert_eq!(told(&"x".repeat(MOST_BYTES + 1)).split(':').next(), Some("too_large"));
    let many: String = (0..51).map(|n| format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\n---\n")).collect();
    assert_eq!(told(&many), "too_large: a manifest holds at most 50 objects");
    assert!(told("!!python/object:os.system {a: b}").starts_with("invalid_manifest"));
}

#[test]
fn an_honest_anchor_is_understood() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: &l {app: web}}\ndata: *l\n";
    assert_eq!(manifest(text).objects().unwrap()[0].value["data"], json!({ "app": "web" }));
}

#[test]
fn every_kind_in_it_is_judged() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n";
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n---\n";
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n";
    let about = |text: String| manifest(&text).about();
    assert_eq!(about(pod.to_owned()).as_deref(), Some("pods"));
    assert_eq!(about(format!("{pod}{role}")).as_deref(), Some("pods,roles"));
    assert_eq!(about(format!("{pod}{role}{secret}")).as_deref(), Some("pods,roles,secrets"));
    assert!(!manifest(pod).is_wide() && manifest(role).is_wide());
    assert!(manifest("not: [yaml").is_wide(), "what nobody understood counts as the worst");
}

#[test]
fn two_namespaces_contradict_each_other() {
    let read = manifest("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}");
    let object = &read.objects().unwrap()[0];
    assert_eq!(object.namespace_or(None).unwrap(), Some("shop"));
    assert_eq!(object.namespace_or(Some("shop")).unwrap(), Some("shop"));
    assert_eq!(object.namespace_or(Some("other")).unwrap_err().code, crate::codes::NAMESPACE_CONFLICT);
}
