//! `token`: creates a token for development and tests.

use crate::cli::TokenCommand;
use crate::clock::SystemClock;
use crate::commands::{CommandOutcome, data_folder, print};
use anyhow::{Context, bail};
use domain::{Scopes, Tenant};
use identity::mint::{MintedClaims, SigningKey, mint};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use std::time::Duration;

pub(super) fn run(args: &TokenCommand) -> anyhow::Result<CommandOutcome> {
    Tenant::parse(&args.tenant)?;
    if Scopes::parse(&args.scope) == Scopes::default() {
        bail!("--scope names none of tools:read, tools:write, runs:decide, tenant:admin, audit:read, operator:switch");
    }
    let ttl = span(&args.ttl)?;
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
    let (email, exp) = (String::new(), now.plus(ttl));
    let token = mint(&key, &MintedClaims { iss, aud, sub, tenant, scope, email, exp, iat: now });
    print(&format!("{token}\n"));
    Ok(CommandOutcome::Done)
}

fn span(text: &str) -> anyhow::Result<Duration> {
    #[derive(Deserialize)]
    struct Lifetime(#[serde(deserialize_with = "store::span")] Duration);
    let reader: StrDeserializer<'_, Error> = text.into_deserializer();
    let Lifetime(span) = Lifetime::deserialize(serde::de::value::SeqDeserializer::new(std::iter::once(reader)))
        .context("--ttl cannot be read")?;
    Ok(span)
}
