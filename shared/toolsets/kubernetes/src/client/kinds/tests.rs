use super::*;

#[test]
fn the_plain_form_of_discovery_is_read_with_its_subresources() {
    let mut kinds = ClusterKinds::default();
    let list = json!({ "resources": [
        { "name": "deployments", "kind": "Deployment", "singularName": "deployment", "namespaced": true, "verbs": ["get"], "shortNames": ["deploy"] },
        { "name": "deployments/scale", "kind": "Scale", "namespaced": true, "verbs": ["get"] },
        { "name": "a/../b", "kind": "Evil", "namespaced": true, "verbs": ["get"] },
    ] });
    kinds.read_plain("apps", "v1", true, &list);
    assert_eq!(kinds.all().len(), 1);
    let kind = kinds.find("deploy").unwrap().unwrap();
    assert_eq!((kind.full_name().as_str(), kind.has("scale"), kind.namespaced()), ("deployments.apps", true, true));
    assert!(kinds.find("Scale").is_none());
}

#[test]
fn the_preferred_version_is_taken_whichever_comes_first() {
    let list = json!({ "resources": [{ "name": "jobs", "kind": "Job", "namespaced": true, "verbs": [] }] });
    let mut kinds = ClusterKinds::default();
    kinds.read_plain("batch", "v1beta1", false, &list);
    kinds.read_plain("batch", "v1", true, &list);
    kinds.read_plain("batch", "v2alpha1", false, &list);
    assert_eq!(kinds.find("Job").unwrap().unwrap().api_version(), "batch/v1");
}

#[test]
fn the_core_wins_over_others_of_its_name() {
    let list = json!({ "resources": [{ "name": "pods", "kind": "Pod", "namespaced": true, "verbs": [] }] });
    let mut kinds = ClusterKinds::default();
    kinds.read_plain("metrics.k8s.io", "v1beta1", true, &list);
    kinds.read_plain("", "v1", true, &list);
    assert_eq!(kinds.find("pods").unwrap().unwrap().api_version(), "v1");
    assert_eq!(kinds.find("pods.metrics.k8s.io").unwrap().unwrap().group(), "metrics.k8s.io");
}
