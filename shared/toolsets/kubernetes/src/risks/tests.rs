use super::*;
use serde_json::json;

fn rules(before: Option<&Value>, after: &Value) -> Vec<RiskRule> {
    of_change(before, after).into_iter().map(|risk| risk.rule).collect()
}

fn deployment(spec: Value) -> Value {
    json!({ "kind": "Deployment", "spec": { "replicas": 2, "template": { "spec": spec } } })
}

#[test]
fn pods_that_reach_into_the_node_are_found_wherever_they_stand() {
    let cases = [
        (json!({ "containers": [{ "name": "a", "securityContext": { "privileged": true } }] }), RiskRule::Privileged),
        (json!({ "initContainers": [{ "securityContext": { "privileged": true } }] }), RiskRule::Privileged),
        (json!({ "containers": [{ "securityContext": { "allowPrivilegeEscalation": true } }] }), RiskRule::Privileged),
        (json!({ "containers": [], "hostPID": true }), RiskRule::HostNamespace),
        (json!({ "containers": [], "hostNetwork": true }), RiskRule::HostNamespace),
        (json!({ "containers": [{ "ports": [{ "hostPort": 80 }] }] }), RiskRule::HostNamespace),
        (
            json!({ "containers": [], "volumes": [{ "name": "kube-api-access-x", "hostPath": { "path": "/" } }] }),
            RiskRule::HostPath,
        ),
        (
            json!({ "containers": [{ "securityContext": { "capabilities": { "add": ["SYS_ADMIN"] } } }] }),
            RiskRule::Capability,
        ),
        (json!({ "containers": [], "serviceAccountName": "deployer" }), RiskRule::ServiceAccount),
    ];
    for (spec, rule) in cases {
        assert_eq!(rules(None, &deployment(spec.clone())), [rule], "{spec}");
        assert_eq!(rules(None, &json!({ "kind": "Pod", "spec": spec.clone() })), [rule], "{spec}");
        let cron =
            json!({ "kind": "CronJob", "spec": { "jobTemplate": { "spec": { "template": { "spec": spec } } } } });
        assert_eq!(rules(None, &cron), [rule]);
    }
    assert_eq!(rules(None, &deployment(json!({ "containers": [{ "name": "a", "image": "x" }] }))), []);
}

#[test]
fn only_what_a_change_brings_is_reported() {
    let privileged = deployment(json!({ "containers": [{ "name": "a", "securityContext": { "privileged": true } }] }));
    let mut host = privileged.clone();
    host["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "x", "hostPath": { "path": "/etc" } }]);
    assert_eq!(rules(Some(&privileged), &privileged), []);
    assert_eq!(rules(Some(&privileged), &host), [RiskRule::HostPath]);
}

#[test]
fn a_workload_without_replicas_and_a_removed_finalizer_are_reported() {
    let (two, zero) = (json!({ "spec": { "replicas": 2 } }), json!({ "spec": { "replicas": 0 } }));
    assert_eq!(rules(Some(&two), &zero), [RiskRule::ScaledToZero]);
    assert_eq!(rules(Some(&zero), &zero), []);
    let holding = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
    assert_eq!(rules(Some(&holding), &json!({ "metadata": {} })), [RiskRule::Finalizer]);
    assert_eq!(rules(None, &holding), [RiskRule::Finalizer]);
}

#[test]
fn rights_that_reach_secrets_or_everything_are_reported() {
    let role = |rule: Value| json!({ "kind": "Role", "rules": [rule] });
    let risky = [
        role(json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] })),
        role(json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] })),
        role(json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["list"] })),
        role(json!({ "apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"] })),
        role(json!({ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"] })),
        json!({ "kind": "ClusterRoleBinding", "roleRef": { "name": "cluster-admin" }, "subjects": [] }),
        json!({ "kind": "RoleBinding", "roleRef": { "name": "view" }, "subjects": [{ "name": "system:authenticated" }] }),
    ];
    for object in risky {
        assert!(rules(None, &object).contains(&RiskRule::Access), "{object}");
    }
    assert_eq!(rules(None, &role(json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }))), []);
    let harmless = json!({ "kind": "RoleBinding", "roleRef": { "name": "view" }, "subjects": [{ "name": "ada" }] });
    assert_eq!(rules(None, &harmless), []);
}

#[test]
fn what_the_api_server_asks_is_reported() {
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService"] {
        assert_eq!(rules(None, &json!({ "kind": kind })), [RiskRule::Webhook]);
    }
}

#[test]
fn data_that_would_go_with_an_object_is_reported() {
    let keeps = json!({ "kind": "StatefulSet", "spec": {} });
    let policy = json!({ "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Delete" } });
    let deletes = json!({ "kind": "StatefulSet", "spec": policy });
    assert_eq!((rules(None, &keeps), rules(Some(&keeps), &deletes)), (vec![], vec![RiskRule::Storage]));
    let volume = json!({ "kind": "PersistentVolume", "spec": { "persistentVolumeReclaimPolicy": "Delete" } });
    assert_eq!(rules(None, &volume), [RiskRule::Storage]);
}

#[test]
fn a_patch_that_sets_something_dangerous_is_known_without_its_object() {
    let risky = [
        json!({ "spec": { "template": { "spec": { "hostPID": true } } } }),
        json!({ "spec": { "volumes": [{ "name": "x", "hostPath": { "path": "/" } }] } }),
        json!([{ "op": "add", "path": "/spec/template/spec/hostNetwork", "value": true }]),
        json!([{ "op": "add", "path": "/spec/template/spec/volumes/-", "value": { "name": "x", "hostPath": {} } }]),
        json!({ "securityContext": { "capabilities": { "add": ["NET_ADMIN"] } } }),
        json!({ "spec": { "replicas": 0 } }),
        json!([{ "op": "add", "path": "/spec/containers/0/securityContext/capabilities/add/-", "value": "SYS_ADMIN" }]),
        json!({ "spec": { "securityContext": { "seccompProfile": { "type": "Unconfined" } } } }),
        json!([{ "op": "add", "path": "/spec/securityContext/appArmorProfile/type", "value": "Unconfined" }]),
        json!({ "spec": { "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Delete" } } }),
    ];
    for patch in risky {
        assert!(in_fragment(&patch), "{patch}");
    }
    for patch in
        [json!({ "metadata": { "labels": { "a": "b" } } }), json!({ "spec": { "replicas": 2, "hostPID": false } })]
    {
        assert!(!in_fragment(&patch), "{patch}");
    }
}
