//! `token`: creates a token for development and tests.

use crate::cli::TokenCommand;
use crate::clock::SystemClock;
use crate::commands::{CommandOutcome, data_folder, print};
use anyhow::{Context, bail};
use domain::job::RunnerLabel;
use domain::{Scopes, Tenant, TokenScope};
use identity::mint::{MintedClaims, SigningKey, mint};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use std::time::Duration;

pub(super) fn run(args: &TokenCommand) -> anyhow::Result<CommandOutcome> {
    Tenant::parse(&args.tenant)?;
    if Scopes::parse(&args.scope) == Scopes::default() {
        bail!(
            "--scope names none of tools:read, tools:write, runs:decide, tenant:admin, audit:read, operator:switch, runner:work"
        );
    }
    let serves = Scopes::parse(&args.scope).allow(TokenScope::RunnerWork);
    if serves == args.label.is_empty() {
        bail!("--label and the scope runner:work belong together: a runner serves the labels of its token");
    }
    if let Some(bad) = args.label.iter().find(|label| RunnerLabel::parse(label).is_none()) {
        bail!("--label {bad} is no label: 1 to 63 of a-z, 0-9 and '-'");
    }
    let ttl = span(&args.ttl).context("--ttl cannot be read")?;
    let (key, iss, aud) = match (&args.key, &args.issuer, &args.audience) {
        (Some(path), Some(issuer), Some(audience)) => (SigningKey::load(path)?, issuer.clone(), audience.clone()),
        _ => {
            let resource = args.data.join(data_folder::RESOURCE);
            let aud = std::fs::read_to_string(&resource).with_context(|| {
                format!("{} does not exist: start `quartermaster dev` once, or use --key", resource.display())
            })?;
            (SigningKey::load(&args.data.join(data_folder::KEY))?, data_folder::ISSUER.to_owned(), aud)
        }
    };
    let now = SystemClock.now();
    let (sub, tenant, scope) = (args.sub.clone(), args.tenant.clone(), args.scope.clone());
    let (email, labels, exp) = (String::new(), args.label.clone(), now.plus(ttl));
    let token = mint(&key, &MintedClaims { iss, aud, sub, tenant, scope, email, labels, exp, iat: now });
    print(&format!("{token}\n"));
    Ok(CommandOutcome::Done)
}

/// Reads a span of time such as `1h`.
pub(super) fn span(text: &str) -> anyhow::Result<Duration> {
    #[derive(Deserialize)]
    struct Lifetime(#[serde(deserialize_with = "store::span")] Duration);
    let reader: StrDeserializer<'_, Error> = text.into_deserializer();
    let Lifetime(span) = Lifetime::deserialize(serde::de::value::SeqDeserializer::new(std::iter::once(reader)))
        .context("a span of time is written like 30s, 10m or 1h")?;
    Ok(span)
}
