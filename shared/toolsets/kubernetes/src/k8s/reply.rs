//! What every answer about a cluster has in common: where it was looked, and that others wrote what is there.

use crate::client::{Cluster, KindScope};
use schemars::JsonSchema;
use serde::Serialize;
pub use target::reply::*;

/// The fields every answer may have.
pub type ClusterReplyFields = target::reply::ReplyFields<ClusterNote>;

/// Where a call went that did not say so itself.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClusterNote {
    cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// It is the sandbox, and nothing in it is real.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
}

impl ClusterNote {
    /// For an answer made of what the cluster says: it may hold anybody's text. `named` says which of cluster and
    /// namespace the call itself named.
    pub fn answer(cluster: &Cluster<'_>, namespace: Option<&str>, named: (bool, bool)) -> ClusterReplyFields {
        let simulated = cluster.simulated();
        let target = match named {
            (true, true) if !simulated => None,
            (_, _) => {
                let namespace = namespace.map(str::to_owned);
                Some(ClusterNote { cluster: cluster.name().to_owned(), namespace, simulated })
            }
        };
        ClusterReplyFields { target, untrusted: true, ..ClusterReplyFields::default() }
    }

    /// The same, for a place: what has no namespace needs none named.
    pub fn answer_at(cluster: &Cluster<'_>, place: &KindScope, named: (bool, bool)) -> ClusterReplyFields {
        let (by_cluster, by_namespace) = named;
        ClusterNote::answer(cluster, place.namespace(), (by_cluster, by_namespace || !place.kind().namespaced()))
    }
}
