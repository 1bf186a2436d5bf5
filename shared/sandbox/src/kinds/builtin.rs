//! The table of built-in kinds.

use serde_json::Value;

use super::{ApiKind, PrinterColumn, ScalePaths};

/// Features of a kind, in the last column of the table: `n` namespaced, `g` generation, `s` status, `c` scale,
/// `a` in category `all`, `r` read only.
type BuiltinKindRow = (&'static str, &'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const KINDS: &[BuiltinKindRow] = &[
    ("", "v1", "ConfigMap", "configmaps", "cm", "n"),
    ("", "v1", "Endpoints", "endpoints", "ep", "n"),
    ("", "v1", "Event", "events", "ev", "n"),
    ("", "v1", "LimitRange", "limitranges", "limits", "n"),
    ("", "v1", "Namespace", "namespaces", "ns", "s"),
    ("", "v1", "Node", "nodes", "no", "s"),
    ("", "v1", "PersistentVolume", "persistentvolumes", "pv", "s"),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "ns"),
    ("", "v1", "Pod", "pods", "po", "ngsa"),
    ("", "v1", "ResourceQuota", "resourcequotas", "quota", "ns"),
    ("", "v1", "Secret", "secrets", "", "n"),
    ("", "v1", "Service", "services", "svc", "nsa"),
    ("", "v1", "ServiceAccount", "serviceaccounts", "sa", "n"),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd,crds", "gs"),
    ("apps", "v1", "ControllerRevision", "controllerrevisions", "", "n"),
    ("apps", "v1", "DaemonSet", "daemonsets", "ds", "ngsa"),
    ("apps", "v1", "Deployment", "deployments", "deploy", "ngsca"),
    ("apps", "v1", "ReplicaSet", "replicasets", "rs", "ngsca"),
    ("apps", "v1", "StatefulSet", "statefulsets", "sts", "ngsca"),
    ("argoproj.io", "v1alpha1", "AnalysisRun", "analysisruns", "ar", "ng"),
    ("argoproj.io", "v1alpha1", "AnalysisTemplate", "analysistemplates", "at", "ng"),
    ("argoproj.io", "v1alpha1", "ClusterAnalysisTemplate", "clusteranalysistemplates", "cat", "g"),
    ("argoproj.io", "v1alpha1", "Experiment", "experiments", "exp", "ng"),
    ("argoproj.io", "v1alpha1", "Rollout", "rollouts", "ro", "ngsc"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "nsa"),
    ("batch", "v1", "CronJob", "cronjobs", "cj", "ngsa"),
    ("batch", "v1", "Job", "jobs", "", "ngsa"),
    ("coordination.k8s.io", "v1", "Lease", "leases", "", "n"),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", "n"),
    ("events.k8s.io", "v1", "Event", "events", "ev", "n"),
    ("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", "", "r"),
    ("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", "", "nr"),
    ("networking.k8s.io", "v1", "Ingress", "ingresses", "ing", "ngs"),
    ("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "", "g"),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", "ng"),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "ngs"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", ""),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", ""),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", "", "n"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", "n"),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", "g"),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", ""),
];

/// Every built-in kind.
pub(super) fn all() -> impl Iterator<Item = ApiKind> {
    KINDS.iter().map(kind)
}

fn kind(row: &BuiltinKindRow) -> ApiKind {
    let &(group, version, kind, plural, short, features) = row;
    let argo = group == "argoproj.io";
    ApiKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short: short.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        categories: if features.contains('a') { vec!["all".to_owned()] } else { Vec::new() },
        namespaced: features.contains('n'),
        type_name: type_name(group, version, kind),
        counted: features.contains('g'),
        status: features.contains('s'),
        scale: features.contains('c').then(|| ScalePaths {
            wanted: "/spec/replicas".to_owned(),
            current: if argo { "/status/HPAReplicas" } else { "/status/replicas" }.to_owned(),
            selector: argo.then(|| "/status/selector".to_owned()),
        }),
        read_only: features.contains('r'),
        custom: argo,
        columns: if kind == "Rollout" { rollout_columns() } else { Vec::new() },
        schema: Value::Null,
    }
}

/// The schema table names types by the first word of their group.
fn type_name(group: &str, version: &str, kind: &str) -> String {
    let first = match group {
        "" => "core",
        "argoproj.io" | "metrics.k8s.io" => return String::new(),
        group => group.split('.').next().unwrap_or(group),
    };
    format!("{first}.{version}.{kind}")
}

fn rollout_columns() -> Vec<PrinterColumn> {
    let column = |name: &str, path: &str| PrinterColumn {
        name: name.to_owned(),
        kind: "integer".to_owned(),
        path: path.to_owned(),
        priority: 0,
    };
    vec![
        column("Desired", ".spec.replicas"),
        column("Current", ".status.replicas"),
        column("Up-to-date", ".status.updatedReplicas"),
        column("Available", ".status.availableReplicas"),
    ]
}
