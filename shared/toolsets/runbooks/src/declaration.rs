//! A runbook as a tenant's file declares it, already checked: its text, where it runs, and what it does to the world.

use domain::job::RunnerLabel;
use domain::json::sha256_hex;
use domain::{Effect, ToolName};
use runbook::RunbookText;
use serde_json::json;
use std::collections::BTreeMap;
use tenancy::SecretUse;

/// One runbook.
#[derive(Debug, Clone, PartialEq)]
pub struct Runbook {
    /// The name of its tool.
    pub tool: ToolName,
    /// Everything that decides what is executed. Plain parameters of the tenant are filled in; what is left of the form
    /// `{{ params.NAME }}` is a secret, and stands in the environment only.
    pub text: RunbookText,
    /// What it does, for people and models.
    pub description: Option<String>,
    /// What its arguments mean, for people and models.
    pub meanings: BTreeMap<String, String>,
    /// What a call does to the world. `Read` only where the operator vouches for it.
    pub effect: Effect,
    /// Where its commands run.
    pub place: RunbookPlace,
    /// The tenant's secrets that its environment refers to: parameter to secret.
    pub secrets: BTreeMap<String, String>,
}

// Numbers in a file are finite, so a runbook equals itself.
impl Eq for Runbook {}

/// Where the commands of a runbook run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunbookPlace {
    /// On a runner that serves this label.
    Runner(RunnerLabel),
    /// In a Job of a cluster.
    Cluster(ClusterPlace),
}

/// The Job that a runbook becomes in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPlace {
    /// The tenant's name for the cluster.
    pub cluster: String,
    /// The namespace.
    pub namespace: String,
    /// The image.
    pub image: String,
}

impl RunbookPlace {
    /// As people read it.
    pub fn words(&self) -> String {
        match self {
            RunbookPlace::Runner(label) => format!("a runner of {label}"),
            RunbookPlace::Cluster(ClusterPlace { cluster, namespace, .. }) => {
                format!("a Job in the namespace {namespace} of the cluster {cluster}")
            }
        }
    }

    /// As the audit log names it.
    pub fn target(&self) -> String {
        match self {
            RunbookPlace::Runner(label) => format!("runner/{label}"),
            RunbookPlace::Cluster(place) => format!("cluster/{}", place.cluster),
        }
    }
}

impl Runbook {
    /// What it is called in messages: `group/name`.
    pub fn id(&self) -> String {
        self.text.full_name()
    }

    /// Names everything that an approval is about besides the arguments: text, effect, place and secrets.
    pub fn digest(&self) -> String {
        let place = match &self.place {
            RunbookPlace::Runner(label) => json!({ "runner": label.as_str() }),
            RunbookPlace::Cluster(ClusterPlace { cluster, namespace, image }) => {
                json!({ "cluster": cluster, "namespace": namespace, "image": image })
            }
        };
        let whole = json!([self.text.canonical(), self.effect.as_str(), place, self.secrets]);
        sha256_hex(whole.to_string().as_bytes())
    }

    /// How its secrets are used: each is handed to the commands of this runbook, where they run.
    pub fn secret_uses(&self) -> impl Iterator<Item = SecretUse> {
        let place = format!("env of {} on {}", self.id(), self.place.target());
        self.secrets.values().map(move |secret| SecretUse {
            section: crate::section::KEY,
            secret: secret.clone(),
            place: place.clone(),
        })
    }
}
