//! The one command tree.

use clap::{Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A multi-tenant tool service for hosted AI agents.
#[derive(Debug, Parser)]
#[command(name = "quartermaster", version, about, long_about = None)]
pub struct Cli {
    /// How answers are printed.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run everything in one process for development: embedded store, tenant `dev`, tokens made on first start.
    Dev(Dev),
    /// Run in production with a settings file.
    Serve(Serve),
    /// Validate settings (.toml), tenant files and server files (.yaml): every error at once, with its line.
    Check(Check),
    /// Say whether a tenant's call would be allowed, ask a person or be denied, and by which rule and line.
    Explain(Explain),
    /// Print the JSON Schema of a tenant's file, for editors.
    Schema,
    /// Mint a token for development and tests.
    Token(Token),
    /// Show the catalog: toolsets, tools, effects and what they cost a model.
    Tools(Tools),
    /// The approver's desk in a terminal: list, show, approve and reject runs.
    Runs(Runs),
    /// External MCP servers: where their tools stand, what changed, and to accept it.
    Servers(Servers),
    /// Read a tenant's ledger and verify that nobody changed it.
    Audit(Audit),
    /// Keep a tenant's documents as files: out of the service, and into it.
    Memory(Memory),
    /// Look at everything the service needs: clock, store, keys, issuers, helm, each tenant's targets; one line each.
    Doctor(Doctor),
    /// Print shell completions.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
}

/// `dev`.
#[derive(Debug, clap::Args)]
pub struct Dev {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The folder for keys, tokens, tenants and state.
    #[arg(long, default_value = ".quartermaster")]
    pub data: PathBuf,
    /// Act on a real cluster: a context of your kubeconfig, with a token or a certificate in it. Unless given, the k8s
    /// toolset acts on a simulated cluster inside this process.
    #[arg(long, value_name = "CONTEXT")]
    pub cluster: Option<String>,
    /// Another store than the embedded one, such as redis://127.0.0.1:6379.
    #[arg(long)]
    pub store: Option<String>,
    /// Add the fixture tenant of the protocol's conformance suite. Loopback only.
    #[arg(long)]
    pub conformance: bool,
}

/// `serve`.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The settings file; environment QM_SECTION__KEY lies over it.
    #[arg(long)]
    pub config: PathBuf,
}

/// `doctor`.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// The settings file; environment QM_SECTION__KEY lies over it. That of `dev` is dev.toml in its data folder.
    #[arg(long)]
    pub config: PathBuf,
}

/// `check`.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// Settings (.toml), tenant files (.yaml) and server files (servers.yaml, *.server.yaml).
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

/// `explain`.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The tool.
    pub tool: String,
    /// The tenant's file.
    #[arg(long, value_name = "FILE")]
    pub tenant: PathBuf,
    /// The arguments, as JSON; without them the most that the tool can do is judged.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// The settings file, which says what tenants may reach and where the catalog of external servers is.
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// A file of external servers (servers.yaml, *.server.yaml), besides those of the settings.
    #[arg(long, value_name = "FILE")]
    pub servers: Vec<PathBuf>,
    /// What the caller's token may be used for, separated by blanks.
    #[arg(long, default_value = "tools:read tools:write")]
    pub scope: String,
    /// What the session is for: read or write; without it, the most the tenant allows.
    #[arg(long, value_parser = ["read", "write"])]
    pub mode: Option<String>,
}

/// `token`.
#[derive(Debug, clap::Args)]
pub struct Token {
    /// The tenant it speaks for.
    #[arg(long)]
    pub tenant: String,
    /// Who holds it.
    #[arg(long)]
    pub sub: String,
    /// What it may be used for, separated by blanks.
    #[arg(long)]
    pub scope: String,
    /// How long it is good for.
    #[arg(long, default_value = "1h")]
    pub ttl: String,
    /// The data folder of `dev`, whose key and address are used.
    #[arg(long, default_value = ".quartermaster", conflicts_with = "key")]
    pub data: PathBuf,
    /// A file with an HS256 secret, instead of the data folder's.
    #[arg(long, requires = "issuer", requires = "audience")]
    pub key: Option<PathBuf>,
    /// The issuer to name, with --key.
    #[arg(long)]
    pub issuer: Option<String>,
    /// The audience to name, with --key.
    #[arg(long)]
    pub audience: Option<String>,
}

/// `tools`.
#[derive(Debug, clap::Args)]
pub struct Tools {
    /// Only this toolset.
    #[arg(long)]
    pub toolset: Option<String>,
    /// Count the tokens (o200k_base) of each tool, each toolset and the default context.
    #[arg(long)]
    pub tokens: bool,
}

/// `runs`.
#[derive(Debug, clap::Args)]
pub struct Runs {
    /// The service's address.
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// A file with a token that has the scope runs:decide.
    #[arg(long, global = true, default_value = ".quartermaster/approver.token")]
    pub token_file: PathBuf,
    /// What to do; without it, list what waits.
    #[command(subcommand)]
    pub action: Option<RunsAction>,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub enum RunsAction {
    /// List runs, newest first.
    List {
        /// Only those in this state, such as pending_approval.
        #[arg(long)]
        state: Option<String>,
    },
    /// Show one run: what is asked, what would happen, what became of it.
    Show {
        /// The run.
        id: String,
    },
    /// Say yes to one run.
    Approve {
        /// The run.
        id: String,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Say no to one run.
    Reject {
        /// The run.
        id: String,
        /// Why; the agent is told.
        #[arg(long)]
        reason: String,
    },
}

/// `servers`.
#[derive(Debug, clap::Args)]
pub struct Servers {
    /// The service's address.
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// A file with a token that has the scope tenant:admin and no tool scope.
    #[arg(long, global = true, default_value = ".quartermaster/admin.token")]
    pub token_file: PathBuf,
    /// What to do; without it, list the servers.
    #[command(subcommand)]
    pub action: Option<ServersAction>,
}

/// What to do with external servers.
#[derive(Debug, Subcommand)]
pub enum ServersAction {
    /// List the tenant's servers and how many of their tools wait.
    List,
    /// Show one server: each tool, and what differs from what was accepted.
    Show {
        /// The server.
        id: String,
    },
    /// Show what waits, ask, and accept exactly that.
    Accept {
        /// The server.
        id: String,
        /// Only this tool, by its own name or by its name here; may be given several times.
        #[arg(long, value_name = "NAME")]
        tool: Vec<String>,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// `audit`.
#[derive(Debug, clap::Args)]
pub struct Audit {
    /// The service's address.
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// A file with a token that has the scope audit:read.
    #[arg(long, global = true, default_value = ".quartermaster/admin.token")]
    pub token_file: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub action: AuditAction,
}

/// What to do with a ledger.
#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Write the whole ledger as lines of JSON: whose it is and how far it is sealed, then entries and links.
    Export {
        /// Where to; without it, the standard output.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Compute the chain of links again and name the first entry that is not as it was sealed.
    Verify {
        /// An exported ledger; without it, the service is asked for its own.
        file: Option<PathBuf>,
    },
}

/// `memory`.
#[derive(Debug, clap::Args)]
pub struct Memory {
    /// The service's address.
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// A file with a token that has the scope tenant:admin.
    #[arg(long, global = true, default_value = ".quartermaster/admin.token")]
    pub token_file: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub action: MemoryAction,
}

/// What to do with documents.
#[derive(Debug, Subcommand)]
pub enum MemoryAction {
    /// Write every document of the tenant as a Markdown file with a small head.
    Export {
        /// The folder; a document's path is its place there.
        #[arg(long)]
        dir: PathBuf,
        /// Only what lies under this path, such as tenant/runbooks.
        #[arg(long)]
        prefix: Option<String>,
    },
    /// Write files that are new or changed; what others changed meanwhile is left alone and listed.
    Import {
        /// The folder.
        #[arg(long)]
        dir: PathBuf,
        /// Only what lies under this path.
        #[arg(long)]
        prefix: Option<String>,
        /// Delete documents under the prefix that have no file.
        #[arg(long)]
        prune: bool,
        /// Say what would be done, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
}
