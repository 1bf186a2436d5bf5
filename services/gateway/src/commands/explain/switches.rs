//! Kill switches from a file, as `switch list --output json` prints them.

use crate::clock::SystemClock;
use anyhow::{Context, bail};
use domain::{Moment, Principal, Switch, SwitchMode, SwitchOwner, SwitchSubject, Tenant};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
struct SwitchFile {
    switches: Vec<SwitchLine>,
}

#[derive(Deserialize)]
struct SwitchLine {
    tenant: String,
    on: SwitchSubject,
    mode: SwitchMode,
    reason: String,
    by: SwitchOwner,
    until: Option<String>,
}

/// The switches that are in force for a tenant now.
pub(super) fn read(file: &Path, tenant: &Tenant) -> anyhow::Result<Vec<Switch>> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let read: SwitchFile =
        serde_json::from_slice(&bytes).with_context(|| format!("{} has no list of switches", file.display()))?;
    let now = SystemClock.now();
    let switches =
        read.switches.into_iter().map(|line| line.switch(tenant, now)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(switches.into_iter().filter(|switch| switch.is_in_force(tenant, now)).collect())
}

impl SwitchLine {
    fn switch(self, whose: &Tenant, now: Moment) -> anyhow::Result<Switch> {
        let SwitchLine { tenant, on, mode, reason, by: owner, until } = self;
        let tenant = if tenant == "*" { None } else { Some(Tenant::parse(&tenant)?) };
        let until = match until {
            None => None,
            Some(text) => match Moment::parse(&text) {
                Some(until) => Some(until),
                None => bail!("the end of a switch is no time in RFC 3339"),
            },
        };
        let (by, from) = (Principal::new("quartermaster", "explain"), whose.clone());
        Ok(Switch { tenant, on, mode, reason, owner, by, from, at: now, until })
    }
}
