//! Asks a tenant's servers how they are and keeps nothing of the answers.

use super::Upstreams;
use crate::link::{LinkKey, LinkLimits};
use crate::member::Member;
use crate::tool::{DEPTH, NODES};
use domain::{Assignment, Code, Failure, Tenant};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long one server may take.
const HEALTH_WITHIN: Duration = Duration::from_secs(5);

impl Upstreams {
    /// The same servers, asked by [`Upstreams::health`] alone: no list is fetched or accepted in the background.
    #[must_use]
    pub fn without_background(self) -> Upstreams {
        self.0.stop.token().cancel();
        self
    }

    /// Asks each server of a tenant for its tools: how many it lists, or why it lists none.
    pub async fn health(&self, tenant: &Tenant) -> Vec<(String, Result<usize, Failure>)> {
        let members = self.members_of(tenant);
        let answers = members.into_values().map(|member| async move { (member.id.clone(), self.probe(&member).await) });
        futures_util::future::join_all(answers).await
    }

    async fn probe(&self, member: &Member) -> Result<usize, Failure> {
        let (config, deadline) = (member.config(), Instant::now() + HEALTH_WITHIN);
        let key = LinkKey { tenant: member.tenant.clone(), server: member.id.clone() };
        let limits = LinkLimits { deadline, bytes: config.limits.result_bytes, nodes: NODES, depth: DEPTH };
        let listing = async {
            let target = (config.target)(&Assignment::default())?;
            self.0.shared.links.list(&key, &target, &limits).await
        };
        let late = |_| Failure::new(Code::Deadline, "the external server did not list its tools in time");
        let listed = timeout_at(deadline, listing).await.map_err(late).and_then(|listed| listed);
        listed.map(|listed| listed.tools.len()).map_err(|failure| {
            let message = self.0.shared.scrubber(&member.tenant, &config).scrub(&failure.message).into_owned();
            Failure { message, ..failure }
        })
    }
}
