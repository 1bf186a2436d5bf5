//! The one command tree.

use clap::{Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A multi-tenant tool service for hosted AI agents.
#[derive(Debug, Parser)]
#[command(name = "quartermaster", version, about, long_about = None)]
pub struct Cli {
    /// The format of the output.
    #[arg(long, global = true, value_enum, default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The token of an agent, in a data folder.
pub(crate) const AGENT_TOKEN: &str = "agent.token";
/// The token of somebody who decides runs, in a data folder.
pub(crate) const APPROVER_TOKEN: &str = "approver.token";
/// The token of somebody who administers the tenant, in a data folder.
pub(crate) const ADMIN_TOKEN: &str = "admin.token";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything in one process for development: embedded store, tenant `dev`, tokens created on first start.
    Dev(Dev),
    /// Play the tutorial as an agent against a running `dev`: find a fault, ask for the fix, wait for your approval.
    Demo(DemoCommand),
    /// Write the skeleton of a production installation: settings, keys, one tenant, and what to do next.
    Init(Init),
    /// Run in production with a settings file.
    Serve(Serve),
    /// Speak MCP on standard input and output: tools in this process, or those of a hosted service (--url).
    Stdio(StdioCommand),
    /// Validate settings (.toml), tenant files and server files (.yaml), and print all errors with their lines.
    Check(CheckCommand),
    /// Show whether a call would be allowed, need approval or be denied, and by which rule and line.
    Explain(Explain),
    /// Print the JSON Schema of a tenant file, for editors; with --openapi the description of the HTTP API.
    Schema(SchemaCommand),
    /// Create a token for development and tests.
    Token(TokenCommand),
    /// Show the catalog: toolsets, tools, effects and their token costs.
    Tools(Tools),
    /// List, show, approve and reject runs.
    Runs(RunsCommand),
    /// List external MCP servers, show which tools changed, and accept them.
    Servers(ServersCommand),
    /// List, set and lift kill switches.
    Switch(SwitchCommand),
    /// Show what a tenant used: calls, time, tokens, and what loading on demand saved.
    Usage(UsageCommand),
    /// Search, follow and export a tenant's audit log, and verify that nobody changed it.
    Audit(AuditCommand),
    /// Export a tenant's documents as files, and import them.
    Memory(MemoryCommand),
    /// Take jobs from a service and execute their commands on this host. Listens nowhere.
    Runner(RunnerCommand),
    /// Check everything the service needs, one line each: clock, store, keys, issuers, helm, each tenant's targets.
    Doctor(Doctor),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// Where a command that asks the service is told its address and token, and the token it takes by default.
    pub(crate) fn service(&mut self) -> Option<(&mut Option<String>, &mut Option<PathBuf>, &'static str)> {
        match self {
            Command::Demo(DemoCommand { url, token_file, .. }) => Some((url, token_file, AGENT_TOKEN)),
            Command::Runs(RunsCommand { url, token_file, .. }) => Some((url, token_file, APPROVER_TOKEN)),
            Command::Servers(ServersCommand { url, token_file, .. })
            | Command::Switch(SwitchCommand { url, token_file, .. })
            | Command::Usage(UsageCommand { url, token_file, .. })
            | Command::Audit(AuditCommand { url, token_file, .. })
            | Command::Memory(MemoryCommand { url, token_file, .. }) => Some((url, token_file, ADMIN_TOKEN)),
            Command::Dev(_)
            | Command::Init(_)
            | Command::Serve(_)
            | Command::Stdio(_)
            | Command::Check(_)
            | Command::Explain(_)
            | Command::Schema(_)
            | Command::Token(_)
            | Command::Tools(_)
            | Command::Runner(_)
            | Command::Doctor(_)
            | Command::Completions { .. } => None,
        }
    }
}

/// `dev`.
#[derive(Debug, clap::Args)]
pub struct Dev {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The folder for keys, tokens, tenants and state.
    #[arg(long, default_value = ".quartermaster")]
    pub data: PathBuf,
    /// Act on a real cluster: a context of your kubeconfig that uses a token or a certificate. Default: a simulated
    /// cluster inside this process.
    #[arg(long, value_name = "CONTEXT")]
    pub cluster: Option<String>,
    /// The store, such as redis://127.0.0.1:6379. Default: the embedded one.
    #[arg(long)]
    pub store: Option<String>,
    /// Add the fixture tenant of the protocol's conformance suite. Loopback only.
    #[arg(long)]
    pub conformance: bool,
}

/// `demo`.
#[derive(Debug, clap::Args)]
pub struct DemoCommand {
    /// The address of `dev`. Default: what stands beside the token, else http://127.0.0.1:8080.
    #[arg(long)]
    pub url: Option<String>,
    /// A file with a token that calls tools. Default: agent.token of `dev` here.
    #[arg(long)]
    pub token_file: Option<PathBuf>,
    /// Do not wait for a person: decide with approver.token, which stands beside the agent's token.
    #[arg(long)]
    pub approve: bool,
}

/// `init`.
#[derive(Debug, clap::Args)]
pub struct Init {
    /// The folder to create.
    #[arg(default_value = "quartermaster")]
    pub folder: PathBuf,
    /// The name of the first tenant.
    #[arg(long, default_value = "acme")]
    pub tenant: String,
    /// The address that agents use, ending in /mcp; tokens name it as their audience.
    #[arg(long, default_value = "http://127.0.0.1:8080/mcp")]
    pub resource: String,
}

/// `schema`.
#[derive(Debug, clap::Args)]
pub struct SchemaCommand {
    /// Print the OpenAPI description of the HTTP API instead, as GET /v1/openapi.json returns it.
    #[arg(long)]
    pub openapi: bool,
}

/// `stdio`.
#[derive(Debug, clap::Args)]
pub struct StdioCommand {
    /// The hosted service to forward to, such as `https://quartermaster.example/mcp`. Default: serve tools in this process.
    #[arg(long, requires = "token_file", conflicts_with_all = ["project", "data", "listen", "cluster"])]
    pub url: Option<String>,
    /// A file with the token for the hosted service. It is read for every message, so it can be renewed.
    #[arg(long, requires = "url")]
    pub token_file: Option<PathBuf>,
    /// The folder to look for quartermaster.yaml in, and above. Default: the working directory.
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<PathBuf>,
    /// The folder for keys, tokens, the tenant's file and state. Default: one for this project in ~/.quartermaster.
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// The loopback address at which people decide what waits for them. Default: a free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Act on a real cluster: a context of your kubeconfig that uses a token or a certificate. Default: a simulated
    /// cluster inside this process.
    #[arg(long, value_name = "CONTEXT")]
    pub cluster: Option<String>,
}

/// `serve`.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The settings file. Environment variables QM_SECTION__KEY override it.
    #[arg(long)]
    pub config: PathBuf,
}

/// `doctor`.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// The settings file. Environment variables QM_SECTION__KEY override it. `dev` has dev.toml in its data folder.
    #[arg(long)]
    pub config: PathBuf,
}

/// `check`.
#[derive(Debug, clap::Args)]
pub struct CheckCommand {
    /// Settings (.toml), tenant files (.yaml) and server files (servers.yaml, *.server.yaml).
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// `explain`.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The tool.
    pub tool: String,
    /// The tenant file.
    #[arg(long, value_name = "FILE")]
    pub tenant: PathBuf,
    /// The arguments, as JSON. Default: judge the strongest effect of the tool.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// The settings file, with the network limits of tenants and the catalog of external servers.
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// A file of external servers (servers.yaml, *.server.yaml), in addition to those of the settings.
    #[arg(long, value_name = "FILE")]
    pub servers: Vec<PathBuf>,
    /// A file with kill switches, as `switch list --output json` prints them.
    #[arg(long, value_name = "FILE")]
    pub switches: Option<PathBuf>,
    /// The scopes of the caller's token, separated by blanks.
    #[arg(long, default_value = "tools:read tools:write")]
    pub scope: String,
    /// The mode of the session. Default: the tenant's maximum.
    #[arg(long, value_parser = ["read", "write"])]
    pub mode: Option<String>,
}

/// `token`.
#[derive(Debug, clap::Args)]
pub struct TokenCommand {
    /// The tenant of the caller.
    #[arg(long)]
    pub tenant: String,
    /// The subject of the token: who the caller is.
    #[arg(long)]
    pub sub: String,
    /// The scopes of the token, separated by blanks.
    #[arg(long)]
    pub scope: String,
    /// A label whose jobs the token's runner may take, with the scope runner:work; can be repeated.
    #[arg(long, value_name = "LABEL")]
    pub label: Vec<String>,
    /// How long the token is valid.
    #[arg(long, default_value = "1h")]
    pub ttl: String,
    /// The data folder of `dev`, for its key and address.
    #[arg(long, default_value = ".quartermaster", conflicts_with = "key")]
    pub data: PathBuf,
    /// A file with an HS256 secret, to use instead of the data folder.
    #[arg(long, requires = "issuer", requires = "audience")]
    pub key: Option<PathBuf>,
    /// The issuer of the token, with --key.
    #[arg(long)]
    pub issuer: Option<String>,
    /// The audience of the token, with --key.
    #[arg(long)]
    pub audience: Option<String>,
}

/// `runner`.
#[derive(Debug, clap::Args)]
pub struct RunnerCommand {
    /// The service's address: https, or http on loopback. HTTPS_PROXY and NO_PROXY apply.
    #[arg(long)]
    pub url: String,
    /// A file with a token that has the scope runner:work and nothing else. It is read again for every request.
    #[arg(long, value_name = "FILE")]
    pub token_file: PathBuf,
    /// A label to serve, among those of the token; can be repeated.
    #[arg(long, required = true, value_name = "LABEL")]
    pub label: Vec<String>,
    /// Execute only runbooks of this name, such as 'shop/*'; can be repeated. This or --pin is required.
    #[arg(long, value_name = "GROUP/NAME", required_unless_present = "pin")]
    pub only: Vec<String>,
    /// Execute only runbooks whose text this file pins: lines of GROUP/NAME sha256:DIGEST.
    #[arg(long, value_name = "FILE")]
    pub pin: Option<PathBuf>,
    /// How many jobs to execute at a time.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub slots: u32,
    /// What the runner calls itself in the service. Default: the name of this host.
    #[arg(long)]
    pub name: Option<String>,
    /// Where commands begin.
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub dir: PathBuf,
    /// A variable for every command, such as PATH=/opt/bin:/usr/bin; can be repeated. Nothing else of the runner's own
    /// environment reaches a command.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A file with certificates (PEM) to trust besides the public ones.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// How long commands may go on after SIGTERM. A second SIGTERM ends them at once.
    #[arg(long, default_value = "10m", value_name = "SPAN")]
    pub drain: String,
}

/// `tools`.
#[derive(Debug, clap::Args)]
pub struct Tools {
    /// Show only this toolset.
    #[arg(long)]
    pub toolset: Option<String>,
    /// Count the tokens (o200k_base) of each tool, each toolset and the default context.
    #[arg(long)]
    pub tokens: bool,
}

/// `runs`.
#[derive(Debug, clap::Args)]
pub struct RunsCommand {
    /// The service's address. Default: what stands beside the token, else http://127.0.0.1:8080.
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// A file with a token that has the scope runs:decide. Default: approver.token of `dev` or `stdio` here.
    #[arg(long, global = true)]
    pub token_file: Option<PathBuf>,
    /// What to do. Default: list pending runs.
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// List runs, newest first.
    List {
        /// List only runs in this state, such as pending_approval.
        #[arg(long)]
        state: Option<String>,
    },
    /// Show one run: the request, the preview and the outcome.
    Show {
        /// The run.
        id: String,
        /// Print the exact arguments, with nothing hidden. The audit log records who read them.
        #[arg(long)]
        raw: bool,
    },
    /// Approve one run.
    Approve {
        /// The run.
        id: String,
        /// The reason; the agent receives it.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Reject one run.
    Reject {
        /// The run.
        id: String,
        /// The reason; the agent receives it.
        #[arg(long)]
        reason: String,
    },
}

/// `servers`.
#[derive(Debug, clap::Args)]
pub struct ServersCommand {
    /// The service's address. Default: what stands beside the token, else http://127.0.0.1:8080.
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// A file with a token that has the scope tenant:admin and no tool scope. Default: admin.token of `dev` or `stdio` here.
    #[arg(long, global = true)]
    pub token_file: Option<PathBuf>,
    /// What to do. Default: list the servers.
    #[command(subcommand)]
    pub action: Option<ServersAction>,
}

/// What to do with external servers.
#[derive(Debug, Subcommand)]
pub enum ServersAction {
    /// List the tenant's servers and how many of their tools wait for acceptance.
    List,
    /// Show one server: each tool, and its difference from the accepted definition.
    Show {
        /// The server.
        id: String,
    },
    /// Show the tools that wait, ask for confirmation, and accept exactly these.
    Accept {
        /// The server.
        id: String,
        /// Accept only this tool, by the server's name for it or by its name here; can be repeated.
        #[arg(long, value_name = "NAME")]
        tool: Vec<String>,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// `switch`.
#[derive(Debug, clap::Args)]
pub struct SwitchCommand {
    /// The service's address. Default: what stands beside the token, else http://127.0.0.1:8080.
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// A file with a token that has the scope tenant:admin or operator:switch, and no tool scope. Default: admin.token of `dev` or `stdio` here.
    #[arg(long, global = true)]
    pub token_file: Option<PathBuf>,
    /// What to do. Default: list the switches.
    #[command(subcommand)]
    pub action: Option<SwitchAction>,
}

/// What to do with kill switches.
#[derive(Debug, Subcommand)]
pub enum SwitchAction {
    /// List the switches that are set.
    List,
    /// Set a switch; it replaces your own switch on the same subject.
    Set {
        /// The subject: tenant, toolset:NAME, tool:NAME, target:KIND/NAME (such as target:cluster/prod) or server:ID.
        on: String,
        /// read-only: calls that only read go on. stop: nothing does.
        #[arg(long, value_parser = ["read-only", "stop"])]
        mode: String,
        /// The reason; agents receive it.
        #[arg(long)]
        reason: String,
        /// How long the switch lasts, such as 2h. Default: until it is cleared.
        #[arg(long = "for", value_name = "SPAN", conflicts_with = "until")]
        lasts: Option<String>,
        /// When the switch ends, in RFC 3339.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// The tenant, for an operator's token. Default: the tenant of the token.
        #[arg(long, conflicts_with = "all_tenants")]
        tenant: Option<String>,
        /// Switch all tenants, for an operator's token.
        #[arg(long)]
        all_tenants: bool,
    },
    /// Lift a switch.
    Clear {
        /// The switch's id.
        id: String,
    },
}

/// `usage`.
#[derive(Debug, clap::Args)]
pub struct UsageCommand {
    /// The service's address. Default: what stands beside the token, else http://127.0.0.1:8080.
    #[arg(long)]
    pub url: Option<String>,
    /// A file with a token that has the scope audit:read and no tool scope. Default: admin.token of `dev` or `stdio` here.
    #[arg(long)]
    pub token_file: Option<PathBuf>,
    /// How to group it.
    #[arg(long, default_value = "tool", value_parser = ["tool", "toolset", "principal", "session"])]
    pub by: String,
    /// The first day, such as 2026-11-18. Default: the last day.
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// The last day. Default: today.
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
}

/// `audit`.
#[derive(Debug, clap::Args)]
pub struct AuditCommand {
    /// The service's address. Default: what stands beside the token, else http://127.0.0.1:8080.
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// A file with a token that has the scope audit:read. Default: admin.token of `dev` or `stdio` here.
    #[arg(long, global = true)]
    pub token_file: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub action: AuditAction,
}

/// What to do with an audit log.
#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Show the entries that fit, oldest first, one a line.
    Search {
        /// What to look for.
        #[command(flatten)]
        filter: AuditFilterArgs,
        /// The most entries to show.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show the entries that fit as they are written, until stopped. Begins with the last minute, or at --since.
    Tail {
        /// What to look for.
        #[command(flatten)]
        filter: AuditFilterArgs,
    },
    /// Write the whole audit log as JSON lines: first its tenant and how far it is sealed, then entries, links and
    /// checkpoints.
    Export {
        /// The file to write. Default: the standard output.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Recompute the hash chain, check the signatures, and name the first thing that is wrong.
    Verify(VerifyArgs),
}

/// `audit verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// An exported file, or a folder of them. Default: read the audit log from the service.
    pub path: Option<PathBuf>,
    /// A file with the public keys (a JWK set, or PEM). Default: those that the service publishes.
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// A file with checkpoints that were kept elsewhere; the audit log must hold them.
    #[arg(long, value_name = "FILE")]
    pub known: Option<PathBuf>,
}

/// Which entries to show; all parts that are given have to fit.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct AuditFilterArgs {
    /// Written since then: a time such as 2026-01-31T12:00:00Z, or how long ago, such as 2h.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Written until then.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// The name of the tool.
    #[arg(long)]
    pub tool: Option<String>,
    /// The target, or what it begins with, such as cluster/prod.
    #[arg(long)]
    pub target: Option<String>,
    /// The subject of the caller, or the name of the person.
    #[arg(long)]
    pub principal: Option<String>,
    /// The run.
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// The session.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The call.
    #[arg(long, value_name = "ID")]
    pub call: Option<String>,
    /// How it ended: ok, or the code of an error.
    #[arg(long)]
    pub code: Option<String>,
    /// A part of the entry, whatever the case of its letters.
    #[arg(long)]
    pub text: Option<String>,
}

/// `memory`.
#[derive(Debug, clap::Args)]
pub struct MemoryCommand {
    /// The service's address. Default: what stands beside the token, else http://127.0.0.1:8080.
    #[arg(long, global = true)]
    pub url: Option<String>,
    /// A file with a token that has the scope tenant:admin. Default: admin.token of `dev` or `stdio` here.
    #[arg(long, global = true)]
    pub token_file: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub action: MemoryAction,
}

/// What to do with documents.
#[derive(Debug, Subcommand)]
pub enum MemoryAction {
    /// Write every document of the tenant as a Markdown file with a small head.
    Export {
        /// The folder; each document is written at its path there.
        #[arg(long)]
        dir: PathBuf,
        /// Export only documents under this path, such as tenant/runbooks.
        #[arg(long)]
        prefix: Option<String>,
    },
    /// Write new and changed files to the service; skip and list documents that others changed meanwhile.
    Import {
        /// The folder.
        #[arg(long)]
        dir: PathBuf,
        /// Import only documents under this path.
        #[arg(long)]
        prefix: Option<String>,
        /// Delete documents under the prefix that have no file.
        #[arg(long)]
        prune: bool,
        /// Only print what would be done.
        #[arg(long)]
        dry_run: bool,
    },
}
