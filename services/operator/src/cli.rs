//! The command line.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Runs LanguageTools in a cluster, connects agents to them, and gives tenants to the gateway.
#[derive(Debug, Parser)]
#[command(name = "quartermaster-operator", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: OperatorCommand,
}

/// What the binary can do.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Watch the cluster and act, until told to stop
    Run(Box<RunArgs>),
    /// Stand beside one replica of the gateway and keep its folder of tenants, until told to stop
    Sync(Box<SyncArgs>),
    /// Print the custom resource definitions, or write them into a folder
    Crds {
        /// The folder; one file for each definition
        #[arg(long)]
        into: Option<PathBuf>,
    },
}

/// How to run.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The only namespace to look at; all of them by default
    #[arg(long, env = "QM_OPERATOR_WATCH")]
    pub watch: Option<String>,
    /// The namespace the operator runs in
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    pub namespace: String,
    /// Its name among several operators; the name of the pod in a cluster
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
    /// The domain of the cluster's own names
    #[arg(long, env = "QM_OPERATOR_CLUSTER_DOMAIN", default_value = "cluster.local")]
    pub cluster_domain: String,
    /// What the namespaces of tenants begin with; the rest is the tenant's name
    #[arg(long, env = "QM_OPERATOR_NAMESPACE_PREFIX", default_value = "")]
    pub namespace_prefix: String,
    /// Seconds after which a tool is asked again what it offers
    #[arg(long, env = "QM_OPERATOR_RESYNC_SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub resync_seconds: u64,
    /// Seconds after which another operator takes over from one that is silent
    #[arg(long, env = "QM_OPERATOR_LEASE_SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(3..))]
    pub lease_seconds: u64,
    /// Where /metrics, /healthz and /readyz are
    #[arg(long, env = "QM_OPERATOR_LISTEN", default_value = "127.0.0.1:9091")]
    pub listen: String,
    /// Log directives
    #[arg(long, env = "QM_OPERATOR_LOG", default_value = "info")]
    pub log: String,
    /// The collector of traces, metrics and logs (OTLP)
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", default_value = "")]
    pub otlp_endpoint: String,
}

/// How to keep a gateway's folder.
#[derive(Debug, clap::Args)]
pub struct SyncArgs {
    /// The gateway's folder of tenants; its `tenants.dir`
    #[arg(long, env = "QM_SYNC_TENANTS")]
    pub tenants: PathBuf,
    /// The gateway's folder of secrets; its `tenants.secrets`
    #[arg(long, env = "QM_SYNC_SECRETS")]
    pub secrets: PathBuf,
    /// The gateway's report; its `tenants.report`
    #[arg(long, env = "QM_SYNC_REPORT")]
    pub report: PathBuf,
    /// The only namespace to look at; all of them by default
    #[arg(long, env = "QM_OPERATOR_WATCH")]
    pub watch: Option<String>,
    /// The namespace the gateway runs in
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    pub namespace: String,
    /// The replica of the gateway; the name of the pod in a cluster
    #[arg(long, env = "POD_NAME")]
    pub identity: Option<String>,
    /// The uid of the pod, which takes the lease of the replica along when it goes
    #[arg(long, env = "POD_UID")]
    pub pod_uid: Option<String>,
    /// The domain of the cluster's own names
    #[arg(long, env = "QM_OPERATOR_CLUSTER_DOMAIN", default_value = "cluster.local")]
    pub cluster_domain: String,
    /// What the namespaces of tenants begin with; the rest is the tenant's name
    #[arg(long, env = "QM_OPERATOR_NAMESPACE_PREFIX", default_value = "")]
    pub namespace_prefix: String,
    /// Seconds after which Secrets are read again
    #[arg(long, env = "QM_SYNC_SECRETS_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub secrets_seconds: u64,
    /// Seconds after which a replica that is silent counts as gone
    #[arg(long, env = "QM_SYNC_LEASE_SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(3..))]
    pub lease_seconds: u64,
    /// Where /metrics, /healthz and /readyz are
    #[arg(long, env = "QM_OPERATOR_LISTEN", default_value = "127.0.0.1:9092")]
    pub listen: String,
    /// Log directives
    #[arg(long, env = "QM_OPERATOR_LOG", default_value = "info")]
    pub log: String,
    /// The collector of traces, metrics and logs (OTLP)
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", default_value = "")]
    pub otlp_endpoint: String,
}
