//! The web console: pages for people who decide, administer and operate. Pages are drawn by the crate `console`.
//!
//! Reading order: [`routes`] (every address), `person` (who asks: the extractor), `form` (what a form must prove), `reply`
//! (headers of every page); signing in: `sign_in`, `oidc`, `grants`, `session`, `links`; the screens: `inbox`, `run`,
//! `runs`, `audit`, `sessions`, `usage`, `operations`, `catalog`, `live`, `assets`; for people who administer the tenant:
//! `config`, `explain`, `servers`, `secrets`, `memory`.
//!
//! A handler here makes an [`AuthedRequest`](crate::http::caller::AuthedRequest) of a browser's session and calls the
//! functions that the REST API calls. It decides nothing by itself, and nothing is decided by `GET`.

mod assets;
mod audit;
mod catalog;
mod config;
mod config_keys;
mod difference;
mod explain;
mod form;
mod grants;
mod inbox;
mod links;
mod live;
mod memory;
mod oidc;
mod operations;
mod person;
mod reply;
pub mod routes;
mod run;
mod runs;
mod schema_table;
mod secrets;
mod servers;
mod session;
mod sessions;
mod sign_in;
mod usage;

pub(crate) use reply::bad_query;

pub use links::{LinkHolder, sign_in_link};

use crate::settings::Settings;
use anyhow::Context;
use oidc::OidcIssuer;
use std::time::Duration;
use store::BrowserTimes;

/// The console of this process.
pub struct Console {
    /// Where browsers reach it, without a path.
    pub(crate) origin: String,
    /// Whether browsers reach it by https, or by plain http on this very machine.
    secure: bool,
    times: BrowserTimes,
    step_up: Duration,
    issuers: Vec<OidcIssuer>,
}

impl Console {
    /// The console of the settings; `None` if it is off.
    pub(crate) fn build(settings: &Settings) -> anyhow::Result<Option<Console>> {
        let wanted = &settings.console;
        if !wanted.enabled {
            return Ok(None);
        }
        let origin = wanted.origin(&settings.identity.resource);
        egress::check_operator_address(&origin).context("console.address cannot be used")?;
        let client = egress::operator_client(&egress::Config::default())?;
        let issuers =
            wanted.issuers.iter().map(|issuer| OidcIssuer::read(issuer, client.clone())).collect::<Result<_, _>>()?;
        Ok(Some(Console {
            secure: origin.starts_with("https://"),
            origin,
            times: BrowserTimes { idle: wanted.idle, longest: wanted.longest },
            step_up: wanted.step_up,
            issuers,
        }))
    }

    /// The address of a path of the console.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("{}{}{path}", self.origin, console::BASE)
    }
}
