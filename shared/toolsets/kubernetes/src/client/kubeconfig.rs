//! Where a cluster is and who we are there, read from its source and vetted.
//!
//! A kubeconfig in a tenant's configuration is untrusted: it may start no program, read no file of ours and switch no
//! check off. The operator's own file may name certificate and token files. Neither may start a program.

use crate::client::config::{ClusterConfig, ClusterEndpoint, KeptKubeconfig, KeptSecret, SecretText};
use crate::client::reach::ClusterReach;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use redact::NotAtHand;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The largest kubeconfig.
const MOST_BYTES: usize = 256 * 1024;

/// Why a credential cannot be used. Holds no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::client) enum BadSource {
    #[error("the kubeconfig cannot be read")]
    Unreadable,
    #[error("the tenant has no such kubeconfig")]
    Gone,
    #[error("the kubeconfig is larger than 256 KiB")]
    TooLarge,
    #[error("the kubeconfig is not one, or its current context is incomplete")]
    NotAKubeconfig,
    #[error("the kubeconfig names {0}, which is not allowed")]
    Refused(&'static str),
    #[error("the name of the kubeconfig's server has no address")]
    Unresolved,
    #[error("this process does not run in a cluster")]
    NotInCluster,
}

/// A source as it was read: what to connect with, and by what a change is noticed.
pub(in crate::client) struct LoadedKubeconfig {
    pub(in crate::client) config: kube::Config,
    /// Where it may lead; `None`: anywhere, because the operator wrote it.
    pub(in crate::client) reach: Option<ClusterReach>,
    /// Equal for equal credentials.
    pub(in crate::client) fingerprint: [u8; 32],
    pub(in crate::client) stamp: SourceStamp,
}

/// What a source depends on, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::client) struct SourceStamp {
    files: Vec<(PathBuf, Option<(SystemTime, u64)>)>,
    kept: Vec<(KeptSecret, Option<[u8; 32]>)>,
}

impl LoadedKubeconfig {
    /// Equal where requests go to the same server and act as the same user. A renewed credential changes nothing; the
    /// sandbox, which is another one in each process, is always the same place.
    pub(in crate::client) fn place(&self, config: &ClusterConfig) -> [u8; 32] {
        if config.simulated {
            return fingerprint(&[b"simulated"]);
        }
        let at = &self.config;
        let authorities: Vec<&[u8]> = at.root_cert.iter().flatten().map(|der| &der[..]).collect();
        let whom = format!("{:?}", (&at.tls_server_name, &config.impersonate));
        fingerprint(&[at.cluster_url.to_string().as_bytes(), &fingerprint(&authorities), whom.as_bytes()])
    }
}

impl SourceStamp {
    /// Of secrets that were read as these texts.
    fn of_kept<'a>(read: impl IntoIterator<Item = (&'a KeptSecret, Option<SecretText>)>) -> SourceStamp {
        let digest = |text: SecretText| fingerprint(&[text.expose().as_bytes()]);
        let kept = read.into_iter().map(|(secret, text)| (secret.clone(), text.map(digest))).collect();
        SourceStamp { kept, ..SourceStamp::default() }
    }

    async fn of(paths: Vec<PathBuf>) -> SourceStamp {
        let mut seen = Vec::with_capacity(paths.len());
        for path in paths {
            let facts = tokio::fs::metadata(&path).await.ok();
            let facts = facts.and_then(|facts| Some((facts.modified().ok()?, facts.len())));
            seen.push((path, facts));
        }
        SourceStamp { files: seen, kept: Vec::new() }
    }

    /// The same things as they are now.
    pub(in crate::client) async fn now(&self) -> SourceStamp {
        if self.kept.is_empty() {
            return SourceStamp::of(self.files.iter().map(|(path, _)| path.clone()).collect()).await;
        }
        SourceStamp::of_kept(self.kept.iter().map(|(secret, _)| (secret, secret.read().ok())))
    }
}

/// Reads and vets the source of a cluster.
pub(in crate::client) async fn load(config: &ClusterConfig) -> Result<LoadedKubeconfig, BadSource> {
    let (text, kubeconfig, stamp, reach) = match &config.source {
        ClusterEndpoint::Loopback(address) if address.ip().is_loopback() => {
            return loopback(config, &address.to_string());
        }
        ClusterEndpoint::Loopback(_) => return Err(BadSource::Refused("an address that is not this machine")),
        ClusterEndpoint::InCluster => return in_cluster(config).await,
        ClusterEndpoint::KubeconfigText(text) => {
            let kubeconfig = parse(text.expose())?;
            let reach = ClusterReach::of_operator(config.simulated);
            (text.expose().to_owned(), kubeconfig, SourceStamp::default(), Some(reach))
        }
        ClusterEndpoint::SecretFile { path, reach } => {
            let text = tokio::fs::read_to_string(path).await.map_err(|_| BadSource::Unreadable)?;
            let kubeconfig = parse(&text)?;
            (text, kubeconfig, SourceStamp::of(vec![path.clone()]).await, Some(reach.clone()))
        }
        ClusterEndpoint::Kept(sources) => {
            let mut read: Vec<(&KeptSecret, Option<SecretText>)> = Vec::new();
            let mut found = Err(BadSource::Gone);
            for KeptKubeconfig { secret, reach } in sources {
                match secret.read() {
                    Ok(text) => {
                        read.push((secret, Some(text.clone())));
                        found = Ok((text, reach));
                        break;
                    }
                    // Noted, since it may be set later and then counts before the others.
                    Err(NotAtHand::Gone) => read.push((secret, None)),
                    Err(NotAtHand::Unreadable) => return Err(BadSource::Unreadable),
                }
            }
            let (text, reach) = found?;
            (text.expose().to_owned(), parse(text.expose())?, SourceStamp::of_kept(read), Some(reach.clone()))
        }
        ClusterEndpoint::Kubeconfig(path) => {
            let text = tokio::fs::read_to_string(path).await.map_err(|_| BadSource::Unreadable)?;
            let mut kubeconfig = parse(&text)?;
            let files = absolute(&mut kubeconfig, path.parent().unwrap_or(Path::new("/")));
            let stamp = SourceStamp::of(std::iter::once(path.clone()).chain(files).collect()).await;
            (text, kubeconfig, stamp, None)
        }
    };
    vet(&kubeconfig, reach.as_ref())?;
    let mut built = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|_| BadSource::NotAKubeconfig)?;
    // The environment of this process is no part of a tenant's configuration.
    built.proxy_url = None;
    built.accept_invalid_certs = false;
    built.auth_info.impersonate = None;
    built.auth_info.impersonate_groups = None;
    let fingerprint = fingerprint(&[text.as_bytes(), format!("{stamp:?}").as_bytes()]);
    Ok(LoadedKubeconfig { config: finish(built, config), reach, fingerprint, stamp })
}

fn loopback(config: &ClusterConfig, address: &str) -> Result<LoadedKubeconfig, BadSource> {
    let uri = format!("http://{address}").parse().map_err(|_| BadSource::NotAKubeconfig)?;
    let fingerprint = fingerprint(&[address.as_bytes()]);
    let config = finish(kube::Config::new(uri), config);
    Ok(LoadedKubeconfig { config, reach: None, fingerprint, stamp: SourceStamp::default() })
}

async fn in_cluster(config: &ClusterConfig) -> Result<LoadedKubeconfig, BadSource> {
    const HOME: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let built = kube::Config::incluster().map_err(|_| BadSource::NotInCluster)?;
    let stamp = SourceStamp::of(vec![Path::new(HOME).join("token"), Path::new(HOME).join("ca.crt")]).await;
    let fingerprint = fingerprint(&[built.cluster_url.to_string().as_bytes(), format!("{stamp:?}").as_bytes()]);
    Ok(LoadedKubeconfig { config: finish(built, config), reach: None, fingerprint, stamp })
}

/// What every connection has in common, besides its timeouts.
fn finish(mut built: kube::Config, config: &ClusterConfig) -> kube::Config {
    if let Some(who) = &config.impersonate {
        built.auth_info.impersonate = Some(who.user.clone());
        built.auth_info.impersonate_groups = Some(who.groups.clone());
    }
    built.default_namespace.clone_from(&config.default_namespace);
    built
}

fn parse(text: &str) -> Result<Kubeconfig, BadSource> {
    if text.len() > MOST_BYTES {
        return Err(BadSource::TooLarge);
    }
    let documents: Vec<Kubeconfig> =
        serde_saphyr::from_multiple_with_options(text, bounds()).map_err(|_| BadSource::NotAKubeconfig)?;
    let merged = documents.into_iter().try_fold(Kubeconfig::default(), Kubeconfig::merge);
    merged.map_err(|_| BadSource::NotAKubeconfig)
}

/// Wide enough for a file with every cluster somebody has, and small enough that no text grows by being read: the bounds of
/// [`Kubeconfig::from_yaml`] let a few hundred bytes cost as much as megabytes.
fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 16,
            max_depth: 32,
            flow_nesting_limit: 32,
            max_nodes: 20_000,
            max_events: 60_000,
            max_anchors: 16,
            max_aliases: 64,
            max_merge_keys: 16,
            max_recorded_anchor_events: 1_000,
            max_recorded_anchor_bytes: 16 * 1024,
            max_total_scalar_bytes: MOST_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 1_000,
            max_replay_stack_depth: 4,
            max_alias_expansions_per_anchor: 16,
        },
        with_snippet: false,
    }
}

/// Makes the file names of the operator's kubeconfig absolute, as kubectl reads them, and tells which there are.
fn absolute(kubeconfig: &mut Kubeconfig, home: &Path) -> Vec<PathBuf> {
    let clusters = kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut());
    let users = kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut());
    let of_clusters = clusters.flat_map(|cluster| [&mut cluster.certificate_authority]);
    let of_users = users.flat_map(|user| [&mut user.client_certificate, &mut user.client_key, &mut user.token_file]);
    of_clusters
        .chain(of_users)
        .flatten()
        .map(|name| {
            let path = home.join(&*name);
            *name = path.to_string_lossy().into_owned();
            path
        })
        .collect()
}

/// Refuses what a kubeconfig may not say. Every entry is looked at, not only those of the current context. Without a
/// reach it is the operator's own.
fn vet(kubeconfig: &Kubeconfig, reach: Option<&ClusterReach>) -> Result<(), BadSource> {
    let refuse = |is: bool, what| if is { Err(BadSource::Refused(what)) } else { Ok(()) };
    let operator = reach.is_none();
    for cluster in kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref()) {
        refuse(cluster.insecure_skip_tls_verify == Some(true), "insecure-skip-tls-verify")?;
        refuse(cluster.proxy_url.as_ref().is_some_and(|url| !url.is_empty()), "a proxy")?;
        refuse(!operator && cluster.certificate_authority.is_some(), "a file (certificate-authority)")?;
        let server = cluster.server.as_deref().unwrap_or_default();
        let reach = reach.cloned().unwrap_or_else(|| ClusterReach::of_operator(true));
        reach.check(server).map_err(|refused| BadSource::Refused(refused.0))?;
    }
    for user in kubeconfig.auth_infos.iter().filter_map(|named| named.auth_info.as_ref()) {
        vet_user(user, operator)?;
    }
    Ok(())
}

fn vet_user(user: &AuthInfo, operator: bool) -> Result<(), BadSource> {
    let refuse = |is: bool, what| if is { Err(BadSource::Refused(what)) } else { Ok(()) };
    refuse(user.exec.is_some(), "a program to run (exec)")?;
    refuse(user.auth_provider.is_some(), "an auth-provider")?;
    refuse(user.impersonate.is_some() || user.impersonate_groups.is_some(), "an identity to act as")?;
    refuse(user.impersonate_uid.is_some() || user.impersonate_user_extra.is_some(), "an identity to act as")?;
    if operator {
        return Ok(());
    }
    refuse(user.token_file.is_some(), "a file (tokenFile)")?;
    refuse(user.client_certificate.is_some(), "a file (client-certificate)")?;
    refuse(user.client_key.is_some(), "a file (client-key)")
}

fn fingerprint(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(feature = "fuzz")]
pub(in crate::client) mod fuzz;
#[cfg(test)]
mod tests;
