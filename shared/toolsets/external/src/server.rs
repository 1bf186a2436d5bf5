//! External MCP servers as configuration knows them: what an operator vouches for, and how a tenant uses it.
//!
//! A secret is never here, only its name. The way of one is fixed when the file is checked: a secret of the tenant, a
//! parameter that is marked, the server's `auth`, and nowhere else.
//!
//! Not here: how texts become these (see [`section`](crate::section) and [`curated`](crate::curated)), and what a session
//! gets in the end (see [`resolve`](crate::resolve)).

use crate::section::SERVERS;
use domain::text::is_label;
pub use policy::{Accept, ServerLimits, TrustedEffects};
use policy::{Gate, Pattern};
use std::collections::BTreeMap;
use std::sync::Arc;
use tenancy::{ParameterTemplate, ParameterValue, SecretUse};

/// One external MCP server, as its entry describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// What tenants choose it by.
    pub name: String,
    /// What it is, for people.
    pub description: Option<String>,
    /// How it is reached.
    pub reach: ServerReach,
    /// How we say who we are.
    pub auth: Option<Auth>,
    /// Headers besides that, by their names in small letters.
    pub headers: BTreeMap<String, ParameterTemplate>,
    /// What may be said about it.
    pub params: BTreeMap<String, Param>,
    /// How much may be asked of it.
    pub limits: ServerLimits,
    /// What the operator vouches for.
    pub vouch: TrustedEffects,
    /// Whether the address is the tenant's own and not the operator's.
    pub own: bool,
}

impl ServerEntry {
    /// Where it is: its address with the places that parameters fill, which stand behind the host.
    pub fn place(&self) -> String {
        match &self.reach {
            ServerReach::Http { url, .. } => url.to_string(),
            ServerReach::Process { .. } => format!("process {}", self.name),
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerReach {
    /// Over HTTP.
    Http {
        /// Its address. Parameters stand only behind the host, so that no value leads elsewhere.
        url: ParameterTemplate,
        /// How it is spoken to there.
        transport: HttpTransport,
    },
    /// As a process beside us; only an operator can say so.
    Process {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, and nothing besides.
        env: BTreeMap<String, String>,
    },
}

/// How a server is spoken to over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpTransport {
    /// Streamable HTTP: a POST for each message, answered on the spot.
    #[default]
    Streamable,
    /// The older one: a POST for each message, and one stream of events for all answers.
    Sse,
}

/// How we say who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// A secret in a header of every request.
    Header {
        /// The header that carries the secret.
        header: String,
        /// How it stands there.
        scheme: Scheme,
        /// The parameter that holds it; always one that is marked secret.
        secret: String,
    },
    /// A token in `Authorization`, which an authorization server gives for a client's secret.
    ClientCredentials {
        /// What is asked for, and where.
        grant: TokenGrant,
        /// Who we are there.
        client_id: ParameterTemplate,
        /// The parameter that holds the client's secret; always one that is marked.
        secret: String,
    },
}

impl Auth {
    /// The header that says who we are.
    pub fn header(&self) -> &str {
        match self {
            Auth::Header { header, .. } => header,
            Auth::ClientCredentials { .. } => "Authorization",
        }
    }

    /// The parameter that holds the secret.
    pub fn secret(&self) -> &str {
        match self {
            Auth::Header { secret, .. } | Auth::ClientCredentials { secret, .. } => secret,
        }
    }
}

/// What is asked of an authorization server. It is written out: no value of a session changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenGrant {
    /// Where tokens are given.
    pub token_url: String,
    /// What the token is to allow, in the words of the authorization server.
    pub scope: Option<String>,
    /// Whom the token is for, where the authorization server wants `audience`.
    pub audience: Option<String>,
    /// Whom the token is for, where it wants `resource`.
    pub resource: Option<String>,
    /// How the client's secret is sent.
    pub method: ClientAuthMethod,
}

/// How a client's secret is sent to an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientAuthMethod {
    /// As the password of `Authorization: Basic`.
    #[default]
    Basic,
    /// In the body.
    Post,
}

/// How a secret stands in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheme {
    /// After `Bearer` and a blank.
    #[default]
    Bearer,
    /// Alone.
    Raw,
}

/// What may be said about a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Param {
    /// What it is, for people.
    pub description: Option<String>,
    /// Its value, unless somebody gives another. A secret has none.
    pub default: Option<String>,
    /// Whether it holds a secret.
    pub secret: bool,
}

/// A server a tenant uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUse {
    /// What it is called in the names of its tools, `mcp_<id>__…`.
    pub id: String,
    /// What is used.
    pub server: Arc<ServerEntry>,
    /// What the tenant gives for its parameters.
    pub params: BTreeMap<String, ParameterValue>,
    /// The tools that may be used, by the server's own names; `None` means all of them.
    pub allow: Option<Vec<Pattern>>,
    /// Those of them that wait for a person, by the server's own names.
    pub gates: Vec<Gate>,
    /// What is done with its first list.
    pub accept: Accept,
}

impl ServerUse {
    /// How a secret is used at this server.
    pub fn secret_use(&self, secret: &str) -> SecretUse {
        let server = self.server.place();
        let place = match &self.server.auth {
            None => format!("none {server}"),
            Some(Auth::Header { header, .. }) => format!("{header} {server}"),
            Some(Auth::ClientCredentials {
                grant: TokenGrant { token_url, scope, audience, resource, .. }, ..
            }) => {
                // What a token allows is part of it: a secret of the operator buys no more than the file asks for.
                let asked = [("scope", scope), ("audience", audience), ("resource", resource)];
                let asked =
                    asked.into_iter().filter_map(|(name, value)| Some(format!(", {name} {:?}", value.as_ref()?)));
                format!("client_secret {token_url} for {server}{}", asked.collect::<String>())
            }
        };
        SecretUse { section: SERVERS, secret: secret.to_owned(), place }
    }
}

/// What parameters of servers are given: by the server's id, then by the parameter's name.
pub type Overrides = BTreeMap<String, BTreeMap<String, ParameterValue>>;

/// One of the tenant's agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantAgent {
    /// What a session names it by.
    pub name: String,
    /// What it gives, over the tenant's own.
    pub params: Overrides,
}

/// One of the tenant's workflows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// What a session names it by.
    pub name: String,
    /// The agent that carries it out.
    pub agent: Option<String>,
    /// What it gives, over the agent's.
    pub params: Overrides,
}

/// The longest id of a server.
const MOST_ID: usize = 32;
/// The longest name a tool may have here.
const MOST_NAME: usize = 64;
/// How many letters of a name are kept where the rest gives way to a digest.
pub(crate) const KEPT: usize = MOST_NAME - 9;

/// Whether a server may be called so in the names of its tools.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() <= MOST_ID && is_label(text)
}

/// The toolset of a server.
pub fn server_toolset(id: &str) -> String {
    format!("mcp_{id}")
}

/// What the names of a server's tools begin with.
pub fn tool_prefix(id: &str) -> String {
    format!("mcp_{id}__")
}

/// The names one tool may be given here: its own behind the prefix, and the one it gets where that is taken or too long.
pub(crate) fn our_names(id: &str, tool: &str) -> Vec<String> {
    let fitting = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let whole = format!("{}{}", tool_prefix(id), tool.chars().map(fitting).collect::<String>());
    let digest = domain::json::sha256_hex(tool.as_bytes());
    let cut = format!("{}_{}", &whole[..whole.len().min(KEPT)], &digest[..8]);
    Some(whole).filter(|whole| whole.len() <= MOST_NAME).into_iter().chain([cut]).collect()
}
