//! Which tenants were changed by a call, for the whole service: their configuration over HTTP, their secrets, what they
//! accepted of external servers.
//!
//! Every such change sends a wake-up. A replica that misses one reads this index now and then, one read for all tenants,
//! instead of asking about each of them. A line is written behind the change it tells of, and never taken out: there is at
//! most one for each tenant.

use crate::ops::Op;
use crate::runs::FULL;
use crate::{IndexName, Store, StoreError};
use domain::{Moment, Tenant};
use tracing::Instrument;

/// As many tenants as are named at once. Should more have changed, the rest is told of at the next look.
const AT_ONCE: usize = 10_000;

impl Store {
    /// The tenants that were changed by a call from then on, and the store's time.
    pub async fn moved_since(&self, from: Moment) -> Result<(Vec<Tenant>, Moment), StoreError> {
        let index = self.of(&Tenant::of_service()).space.index(&IndexName::moved());
        let range = Op::Range { index, from: from.millis(), to: FULL, limit: AT_ONCE };
        let mut answers = self.run_apart(&[range, Op::Now]).await?;
        let (members, now) = (answers.members()?, answers.now()?);
        Ok((members.iter().filter_map(|(tenant, _)| Tenant::parse(tenant).ok()).collect(), now))
    }

    /// Notes in the background that a tenant was changed by a call.
    pub(crate) fn note_moved(&self, tenant: &Tenant, at: Moment) {
        let index = self.of(&Tenant::of_service()).space.index(&IndexName::moved());
        let (store, members) = (self.clone(), vec![(tenant.to_string(), at.millis())]);
        let noted = async move {
            if let Err(error) = store.run_apart(&[Op::Place { index, members, lower: false }]).await {
                tracing::debug!(%error, "that a tenant was changed is told by its wake-up alone");
            }
        };
        self.spawn(noted.instrument(tracing::Span::none()));
    }
}
