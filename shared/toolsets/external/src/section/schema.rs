//! The part of the schema of a tenant's file that speaks of external servers.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use tenancy::OnRejectName;

/// What is given for parameters: by the server's id, then by the parameter's name.
type ParameterValues = BTreeMap<String, BTreeMap<String, String>>;

/// The sections as they stand in the file.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
pub(super) struct ExternalFile {
    /// The external MCP servers the tenant uses.
    #[schemars(default, length(max = 32))]
    servers: Vec<ServerPart>,
    /// The tenant's agents, as far as they give parameters of servers.
    #[schemars(default, length(max = 64))]
    agents: Vec<AgentPart>,
    /// The tenant's workflows, as far as they give parameters of servers.
    #[schemars(default, length(max = 64))]
    workflows: Vec<WorkflowPart>,
}

/// An external MCP server: one of the operator's catalog, or one at an address of the tenant's own.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "only its shape is used")]
enum ServerPart {
    Chosen(ChosenPart),
    Own(OwnPart),
}

/// A server of the operator's catalog.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct ChosenPart {
    /// Its name there.
    #[schemars(rename = "use")]
    chosen: String,
    /// What it is called in the names of its tools, `mcp_ID__…`; its name unless said otherwise.
    #[schemars(default, regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$"))]
    id: String,
    /// What is given for its parameters: text, or `{{ params.NAME }}`.
    #[schemars(default)]
    params: BTreeMap<String, String>,
    /// Which of its tools may be used.
    #[schemars(default, with = "AccessPart")]
    access: Option<AccessPart>,
    /// What is done with the tools of its first list.
    #[schemars(default)]
    accept: AcceptName,
}

/// A server at an address of the tenant's own, where the operator lets it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct OwnPart {
    /// Its name.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    name: String,
    /// What it is called in the names of its tools; its name unless said otherwise.
    #[schemars(default, regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$"))]
    id: String,
    /// What it is, for people.
    #[schemars(default, length(max = 1_000))]
    description: String,
    /// Where it is. `{{ params.NAME }}` may stand behind the host.
    #[schemars(regex(pattern = r"^https?://[^/?#@{}\s]+([/?].*)?$"), length(max = 2_048))]
    url: String,
    /// How it is spoken to there.
    #[schemars(default)]
    transport: TransportName,
    /// How it is told who we are.
    #[schemars(default, with = "AuthPart")]
    auth: Option<AuthPart>,
    /// Headers besides that.
    #[schemars(default)]
    headers: BTreeMap<String, String>,
    /// Its parameters.
    #[schemars(default)]
    params: BTreeMap<String, OwnParamPart>,
    /// Which of its tools may be used.
    #[schemars(default, with = "AccessPart")]
    access: Option<AccessPart>,
    /// What is done with the tools of its first list.
    #[schemars(default)]
    accept: AcceptName,
}

/// How a server is spoken to over HTTP.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum TransportName {
    /// Streamable HTTP.
    #[default]
    Http,
    /// The older one, with one stream of events for all answers.
    Sse,
}

/// A parameter of a server of the tenant's own.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct OwnParamPart {
    /// What it is, for people.
    #[schemars(default, length(max = 1_000))]
    description: String,
    /// Its value, unless somebody gives another.
    #[schemars(default, length(max = 1_024))]
    default: String,
    /// Whether it holds a secret.
    #[schemars(default, extend("const" = true))]
    secret: bool,
    /// What the tenant gives for it: text, or `{{ params.NAME }}`.
    #[schemars(default, length(max = 1_024))]
    value: String,
}

/// How a server is told who we are: a secret in a header, or a token that an authorization server gives.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum AuthPart {
    Header(HeaderAuthPart),
    Token(TokenAuthPart),
}

/// A token that an authorization server gives for a client's secret, in `Authorization` after `Bearer`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct TokenAuthPart {
    client_credentials: ClientCredentialsPart,
}

/// Which authorization server gives tokens, and for which client.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct ClientCredentialsPart {
    /// Where tokens are given.
    #[schemars(regex(pattern = r"^https?://[^/?#@{}\s]+([/?][^{}]*)?$"), length(max = 2_048))]
    token_url: String,
    /// Who we are there: text, or `{{ params.NAME }}`.
    #[schemars(length(max = 1_024))]
    client_id: String,
    /// One reference to a parameter that is marked secret.
    #[schemars(regex(pattern = r"^\{\{ *params\.[A-Za-z][A-Za-z0-9_-]{0,63} *\}\}$"))]
    client_secret: String,
    /// What the token is to allow.
    #[schemars(default, length(max = 1_024))]
    scope: String,
    /// Whom the token is for, where the authorization server wants `audience`.
    #[schemars(default, length(max = 1_024))]
    audience: String,
    /// Whom the token is for, where it wants `resource`.
    #[schemars(default, length(max = 1_024))]
    resource: String,
    /// How the client's secret is sent.
    #[schemars(default)]
    auth_method: AuthMethodName,
}

/// How a client's secret is sent to an authorization server.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum AuthMethodName {
    #[default]
    ClientSecretBasic,
    ClientSecretPost,
}

/// A secret in a header of every request.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct HeaderAuthPart {
    /// The header that carries the secret; `Authorization` unless said otherwise.
    #[schemars(default)]
    header: String,
    /// Whether the secret stands there after `Bearer`, or alone.
    #[schemars(default)]
    scheme: SchemeName,
    /// One reference to a parameter that is marked secret.
    #[schemars(regex(pattern = r"^\{\{ *params\.[A-Za-z][A-Za-z0-9_-]{0,63} *\}\}$"))]
    secret: String,
}

/// How a secret stands in its header.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum SchemeName {
    #[default]
    Bearer,
    Raw,
}

/// Which tools of a server may be used.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct AccessPart {
    /// By the server's own names: a name, or a beginning and `*`; left out: all of them.
    #[schemars(default, length(min = 1, max = 200))]
    allowlist: Vec<AllowedPart>,
}

/// A tool that may be used.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum AllowedPart {
    Name(#[schemars(regex(pattern = r"^[A-Za-z0-9_-]*\*?$"))] String),
    Tool(AllowedTool),
}

/// A tool that may be used, and whether it waits for a person.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct AllowedTool {
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]*\*?$"))]
    name: String,
    /// It waits for a person.
    #[schemars(default, with = "AsksPart")]
    require_approval: Option<AsksPart>,
}

/// That a tool waits for a person, and what a no means.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct AsksPart {
    #[schemars(default)]
    on_reject: OnRejectName,
}

/// What is done with the tools of a server's first list.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum AcceptName {
    /// They are taken as they are; every later change waits for an admin.
    #[default]
    First,
    /// Each waits for an admin.
    Each,
}

/// One of the tenant's agents.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct AgentPart {
    /// What a session names it by.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    name: String,
    /// What it gives for parameters of servers, over the tenant's own.
    #[schemars(default)]
    params: ParameterValues,
}

/// One of the tenant's workflows.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct WorkflowPart {
    /// What a session names it by.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    name: String,
    /// The agent that carries it out.
    #[schemars(default)]
    agent: String,
    /// What it gives for parameters of servers, over the agent's.
    #[schemars(default)]
    params: ParameterValues,
}
