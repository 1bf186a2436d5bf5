//! What every answer about a cluster has in common: where it was looked, and that others wrote what is there.

pub(crate) use crate::reply::*;
use cluster::{Cluster, Place};
use schemars::JsonSchema;
use serde::Serialize;

/// The fields every answer may have.
pub(crate) type Common = crate::reply::Common<Where>;

/// Where a call went that did not say so itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Where {
    cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// It is the sandbox, and nothing in it is real.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

impl Common {
    /// For an answer made of what the cluster says: it may hold anybody's text. `named` says which of cluster and
    /// namespace the call itself named.
    pub(crate) fn from(cluster: &Cluster<'_>, namespace: Option<&str>, named: (bool, bool)) -> Common {
        let simulated = cluster.simulated();
        let target = match named {
            (true, true) if !simulated => None,
            (_, _) => {
                let namespace = namespace.map(str::to_owned);
                Some(Where { cluster: cluster.name().to_owned(), namespace, simulated })
            }
        };
        Common { target, untrusted: true, ..Common::default() }
    }

    /// The same, for a place: what has no namespace needs none named.
    pub(crate) fn at(cluster: &Cluster<'_>, place: &Place, named: (bool, bool)) -> Common {
        let (by_cluster, by_namespace) = named;
        Common::from(cluster, place.namespace(), (by_cluster, by_namespace || !place.kind().namespaced()))
    }
}
