//! What a call is about, from the text alone: the plural of its kind, in small letters and without group.
//!
//! A tenant's rule such as `k8s_get:secrets` is judged before anything is asked of a cluster, so `Secret`, `secrets`,
//! `v1/Secret` and `SECRET` must all come out as `secrets` without discovery. Built-in kinds and their short names
//! stand in a table; for every other text the plural is guessed as Kubernetes itself guesses it. Groups do not count: a
//! rule about `secrets` is also about somebody's own `secrets.example.com`, since rules may only tighten.
//!
//! A guess can be wrong (a custom short name, an unusual plural). Therefore [`agree`] holds the guess to what discovery
//! found and refuses the call otherwise, naming the spelling that is judged rightly. What was judged is what is done.

use super::grammar::{KindText, is_version};
use domain::{Code, Failure};
use policy::Permit;

/// Plural, singular and short names of the built-in kinds that have short names or an unusual plural.
const KNOWN: [(&str, &[&str]); 40] = [
    ("componentstatuses", &["componentstatus", "cs"]),
    ("configmaps", &["configmap", "cm"]),
    ("endpoints", &["endpoint", "ep"]),
    ("events", &["event", "ev"]),
    ("limitranges", &["limitrange", "limits"]),
    ("namespaces", &["namespace", "ns"]),
    ("nodes", &["node", "no"]),
    ("persistentvolumeclaims", &["persistentvolumeclaim", "pvc"]),
    ("persistentvolumes", &["persistentvolume", "pv"]),
    ("pods", &["pod", "po"]),
    ("podtemplates", &["podtemplate"]),
    ("replicationcontrollers", &["replicationcontroller", "rc"]),
    ("resourcequotas", &["resourcequota", "quota"]),
    ("secrets", &["secret"]),
    ("serviceaccounts", &["serviceaccount", "sa"]),
    ("services", &["service", "svc"]),
    ("customresourcedefinitions", &["customresourcedefinition", "crd", "crds"]),
    ("daemonsets", &["daemonset", "ds"]),
    ("deployments", &["deployment", "deploy"]),
    ("replicasets", &["replicaset", "rs"]),
    ("statefulsets", &["statefulset", "sts"]),
    ("horizontalpodautoscalers", &["horizontalpodautoscaler", "hpa"]),
    ("cronjobs", &["cronjob", "cj"]),
    ("jobs", &["job"]),
    ("certificatesigningrequests", &["certificatesigningrequest", "csr"]),
    ("endpointslices", &["endpointslice"]),
    ("flowschemas", &["flowschema"]),
    ("ingresses", &["ingress", "ing"]),
    ("ingressclasses", &["ingressclass"]),
    ("networkpolicies", &["networkpolicy", "netpol"]),
    ("poddisruptionbudgets", &["poddisruptionbudget", "pdb"]),
    ("podsecuritypolicies", &["podsecuritypolicy", "psp"]),
    ("priorityclasses", &["priorityclass", "pc"]),
    ("storageclasses", &["storageclass", "sc"]),
    ("runtimeclasses", &["runtimeclass"]),
    ("csidrivers", &["csidriver"]),
    ("rolebindings", &["rolebinding"]),
    ("clusterrolebindings", &["clusterrolebinding"]),
    ("controllerrevisions", &["controllerrevision"]),
    ("leases", &["lease"]),
];

/// Kinds that reach further than one workload; writing them counts as a disruption.
const WIDE: [&str; 18] = [
    "namespaces",
    "nodes",
    "persistentvolumes",
    "storageclasses",
    "priorityclasses",
    "customresourcedefinitions",
    "apiservices",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "certificatesigningrequests",
];

/// Whether a kind, by its plural, reaches further than one workload.
pub(crate) fn is_wide(plural: &str) -> bool {
    WIDE.contains(&plural)
}

/// The plural a text stands for.
pub(crate) fn plural(text: &str) -> String {
    let last = text.rsplit('/').next().unwrap_or(text);
    let (word, rest) = last.split_once('.').map_or((last, ""), |(word, rest)| (word, rest));
    // A kind is written with capitals and is singular; a resource without, and may be either.
    let singular = word.bytes().any(|b| b.is_ascii_uppercase()) || text.contains('/');
    let word = word.to_ascii_lowercase();
    let known = KNOWN.iter().find(|(plural, others)| *plural == word || others.contains(&word.as_str()));
    // Only a whole resource name stands before a group, so a short name there is somebody's own resource.
    let qualified = !rest.is_empty() && !is_version(rest);
    match known {
        Some((plural, others)) if !qualified || *plural == word || others.first() == Some(&word.as_str()) => {
            (*plural).to_owned()
        }
        Some(_) | None if word.ends_with('s') && !singular => word,
        Some(_) | None => guess(&word),
    }
}

/// The plural as the API server guesses it for a kind.
fn guess(singular: &str) -> String {
    match singular {
        word if word.ends_with('s') || word.ends_with('x') || word.ends_with("ch") || word.ends_with("sh") => {
            format!("{word}es")
        }
        word => match word.strip_suffix('y') {
            Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
            Some(_) | None => format!("{word}s"),
        },
    }
}

impl KindText {
    /// What a rule of the tenant calls this kind.
    pub(crate) fn about(&self) -> String {
        plural(self.as_str())
    }
}

/// Wants discovery to have found what was judged. `found` is the plural of the resource.
pub(crate) fn agree(permit: &Permit, found: &str) -> Result<(), Failure> {
    match permit.call().about.as_deref() {
        Some(judged) if judged.split(',').any(|word| word == found) => Ok(()),
        Some(_) | None => Err(Failure::new(
            Code::InvalidArgument,
            format!("this kind is called {found}, and rules know it by that name"),
        )
        .next(format!("call again with kind={found}"))
        .did_you_mean(vec![found.to_owned()])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_secret_is_about_secrets() {
        for text in [
            "secret",
            "secrets",
            "Secret",
            "Secrets",
            "SECRET",
            "sEcReTs",
            "v1/Secret",
            "v1/secrets",
            "v1/secret",
            "secrets.v1",
            "Secret.v1",
            "secrets.example.com",
        ] {
            assert_eq!(plural(text), "secrets", "{text}");
        }
    }

    #[test]
    fn built_in_kinds_and_short_names_have_their_plural() {
        for (text, about) in [
            ("po", "pods"),
            ("Deployment", "deployments"),
            ("deploy", "deployments"),
            ("apps/v1/Deployment", "deployments"),
            ("deployments.apps", "deployments"),
            ("Endpoints", "endpoints"),
            ("Ingress", "ingresses"),
            ("NetworkPolicy", "networkpolicies"),
            ("StorageClass", "storageclasses"),
            ("sa", "serviceaccounts"),
            ("Role", "roles"),
            ("ClusterRole", "clusterroles"),
            ("Gateway", "gateways"),
            ("rollouts.argoproj.io", "rollouts"),
            ("argoproj.io/v1alpha1/Rollout", "rollouts"),
            ("Prometheus", "prometheuses"),
            ("sc.example.com", "scs"),
            ("HTTPProxy", "httpproxies"),
            ("APIService", "apiservices"),
        ] {
            assert_eq!(plural(text), about, "{text}");
        }
    }
}
