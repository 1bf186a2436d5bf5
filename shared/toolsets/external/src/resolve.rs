//! What a session gets of a server's parameters: the entry's default, then the tenant's reference to it, then the
//! agent's, then the workflow's, and last what was said when the session was opened.
//!
//! Each later one lies over the earlier ones, parameter by parameter. A secret is only ever given by the tenant's file.

use crate::section::{AGENTS, SERVERS, ServersSection, WORKFLOWS};
use crate::server::{
    Auth, HttpTransport, Param, Scheme, ServerEntry, ServerReach, ServerUse, TenantAgent, TokenGrant, Workflow,
};
use domain::outcome::near;
use domain::{Assignment, Code, Failure};
use std::collections::BTreeMap;
use tenancy::params::check_value;
use tenancy::{ParameterTemplate, ParameterValue, SectionTypeError, TenantConfig};

/// How a server is reached by one session, with everything filled in but the secrets themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedServer {
    /// How.
    pub reach: ResolvedReach,
    /// Headers besides `auth`, in the order of their names.
    pub headers: Vec<(String, String)>,
    /// How we say who we are.
    pub auth: Option<ResolvedAuth>,
    /// The parameters that hold no secret.
    pub params: BTreeMap<String, String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedReach {
    /// Over HTTP.
    Http {
        /// Its address.
        url: String,
        /// How it is spoken to there.
        transport: HttpTransport,
    },
    /// As a process beside us.
    Process {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment.
        env: BTreeMap<String, String>,
    },
}

/// How we say who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedAuth {
    /// The name of the tenant's secret.
    pub secret: String,
    /// What is done with it.
    pub way: ResolvedAuthWay,
}

/// What is done with the secret that says who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedAuthWay {
    /// It stands in a header of every request.
    Header {
        /// The header.
        header: String,
        /// How the secret stands there.
        scheme: Scheme,
    },
    /// A token is fetched with it.
    ClientCredentials {
        /// What is asked for, and where.
        grant: TokenGrant,
        /// Who we are there.
        client_id: String,
    },
}

/// What a tenant's file says about external servers.
#[derive(Debug, Clone, Copy)]
pub struct TenantServers<'a> {
    /// The servers it uses.
    pub servers: &'a [ServerUse],
    /// Its agents, as far as they give parameters of those servers.
    pub agents: &'a [TenantAgent],
    /// Its workflows, as far as they do.
    pub workflows: &'a [Workflow],
}

impl<'a> TenantServers<'a> {
    /// What this configuration says.
    pub fn of(config: &'a TenantConfig) -> Result<TenantServers<'a>, SectionTypeError> {
        Ok(TenantServers {
            servers: config.section::<ServersSection>(SERVERS)?.map_or(&[], |section| &section.servers),
            agents: config.section::<Vec<TenantAgent>>(AGENTS)?.map_or(&[], Vec::as_slice),
            workflows: config.section::<Vec<Workflow>>(WORKFLOWS)?.map_or(&[], Vec::as_slice),
        })
    }

    /// One of the tenant's servers.
    pub fn server(&self, id: &str) -> Option<&'a ServerUse> {
        self.servers.iter().find(|server| server.id == id)
    }

    /// What a session with this assignment gets of a server.
    pub fn resolve(&self, server_id: &str, assignment: &Assignment) -> Result<ResolvedServer, Failure> {
        self.check_assignment(assignment)?;
        let used = self.server(server_id).ok_or_else(|| self.no_server(server_id))?;
        let server = &used.server;
        let mut given: BTreeMap<&str, ParameterValue> = BTreeMap::new();
        for (name, param) in &server.params {
            given.extend(param.default.clone().map(|text| (name.as_str(), ParameterValue::Text(text))));
        }
        for layer in self.layers(used, assignment) {
            given.extend(layer.iter().map(|(name, value)| (name.as_str(), value.clone())));
        }
        for (name, text) in assignment.params.get(server_id).into_iter().flatten() {
            given.insert(name, ParameterValue::Text(text.clone()));
        }
        fill(used, &given)
    }

    /// What the tenant's file gives for a server's parameters, the least specific first.
    fn layers(&self, used: &'a ServerUse, said: &Assignment) -> Vec<&'a BTreeMap<String, ParameterValue>> {
        let workflow = said.workflow.as_ref().and_then(|name| self.workflows.iter().find(|w| w.name == *name));
        let agent = said.agent.as_ref().or_else(|| workflow.and_then(|workflow| workflow.agent.as_ref()));
        let agent = agent.and_then(|name| self.agents.iter().find(|agent| agent.name == *name));
        let of_agent = agent.and_then(|agent| agent.params.get(&used.id));
        let of_workflow = workflow.and_then(|workflow| workflow.params.get(&used.id));
        std::iter::once(&used.params).chain(of_agent).chain(of_workflow).collect()
    }

    /// Whether a session may be opened with this assignment.
    pub fn check_assignment(&self, said: &Assignment) -> Result<(), Failure> {
        if let Some(name) = &said.agent
            && !self.agents.iter().any(|agent| agent.name == *name)
        {
            return Err(unknown(
                "the tenant's configuration has no agent",
                name,
                self.agents.iter().map(|agent| agent.name.as_str()),
            ));
        }
        if let Some(name) = &said.workflow {
            let Some(workflow) = self.workflows.iter().find(|workflow| workflow.name == *name) else {
                return Err(unknown(
                    "the tenant's configuration has no workflow",
                    name,
                    self.workflows.iter().map(|workflow| workflow.name.as_str()),
                ));
            };
            if let (Some(theirs), Some(said)) = (&workflow.agent, &said.agent)
                && theirs != said
            {
                let message = format!("the workflow `{name}` is carried out by the agent `{theirs}`, not by `{said}`");
                return Err(Failure::new(Code::InvalidArgument, message).next("leave the agent out, or name that one"));
            }
        }
        for (id, params) in &said.params {
            let used = self.server(id).ok_or_else(|| self.no_server(id))?;
            params.iter().try_for_each(|(name, value)| may_say(used, name, value))?;
        }
        Ok(())
    }

    fn no_server(&self, id: &str) -> Failure {
        unknown("the tenant's configuration has no server", id, self.servers.iter().map(|server| server.id.as_str()))
    }
}

/// Whether a session may give this value for this parameter.
fn may_say(used: &ServerUse, name: &str, value: &str) -> Result<(), Failure> {
    let refuse = |message: String, next: &str| Err(Failure::new(Code::InvalidArgument, message).next(next));
    let place = format!("the parameter `{name}` of the server `{}`", used.id);
    let Some(param) = used.server.params.get(name) else {
        let known = used.server.params.iter().filter(|(_, param)| !param.secret).map(|(name, _)| name.as_str());
        return Err(unknown(&format!("the server `{}` has no parameter", used.id), name, known));
    };
    if param.secret {
        return refuse(
            format!("{place} is a secret"),
            "leave it out: secrets stand in the tenant's configuration only",
        );
    }
    if let Err(why) = check_value(value) {
        return refuse(format!("{place} {why}"), "give a shorter text of one line");
    }
    // What cannot be filled in is told when the session opens and not by every call of it.
    may_stand(&used.server, name, value).map_err(|why| bad(&place, &why))
}

/// Whether a value can stand where the server's entry puts the parameter, or what is wrong with it there.
pub(crate) fn may_stand(server: &ServerEntry, name: &str, value: &str) -> Result<(), String> {
    let one = |wanted: &str| Ok(if wanted == name { value.to_owned() } else { "x".to_owned() });
    if let ServerReach::Http { url, .. } = &server.reach
        && url.names().any(|wanted| wanted == name)
    {
        fill_url(url, one)?;
    }
    let mut headers = server.headers.values().filter(|header| header.names().any(|wanted| wanted == name));
    headers.try_for_each(|header| fill_header(header, one).map(drop))
}

fn bad(place: &str, why: &str) -> Failure {
    Failure::new(Code::InvalidArgument, format!("{place} cannot be used: {why}")).next("give another value")
}

fn unknown<'a>(none: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let all: Vec<&str> = known.clone().take(20).collect();
    let step = if all.is_empty() { "there are none".to_owned() } else { format!("choose one of: {}", all.join(", ")) };
    let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    let message = format!("{none} `{name}`");
    Failure::new(Code::InvalidArgument, message).next(step).did_you_mean(near(&name, known))
}

fn fill(used: &ServerUse, given: &BTreeMap<&str, ParameterValue>) -> Result<ResolvedServer, Failure> {
    let server: &ServerEntry = &used.server;
    let place = format!("the server `{}`", used.id);
    let missing = |name: &str| {
        let next = "give it when the session is opened, or in the tenant's configuration";
        Failure::new(Code::InvalidArgument, format!("{place} needs the parameter `{name}`, and nobody gives it"))
            .next(next)
    };
    let text = |name: &str| match given.get(name) {
        Some(ParameterValue::Text(text)) => Ok(text.clone()),
        // The chain was checked with the file; a secret here would mean that it was not.
        Some(ParameterValue::Secret(_)) => {
            Err(Failure::new(Code::Internal, format!("{place} would show the secret parameter `{name}`")))
        }
        None => Err(missing(name)),
    };
    let required = |(name, param): (&String, &Param)| (!param.secret).then(|| Ok((name.clone(), text(name)?)));
    let params: BTreeMap<String, String> = server.params.iter().filter_map(required).collect::<Result<_, Failure>>()?;
    let known = |name: &str| params.get(name).cloned().ok_or_else(|| "a parameter is not there".to_owned());
    let reach = match &server.reach {
        ServerReach::Http { url, transport } => {
            let url = fill_url(url, known).map_err(|why| bad(&place, &why))?;
            ResolvedReach::Http { url, transport: *transport }
        }
        ServerReach::Process { command, args, env } => {
            ResolvedReach::Process { command: command.clone(), args: args.clone(), env: env.clone() }
        }
    };
    let header = |(name, value): (&String, &ParameterTemplate)| Ok((name.clone(), fill_header(value, known)?));
    let headers = server.headers.iter().map(header).collect::<Result<_, String>>().map_err(|why| bad(&place, &why))?;
    let auth = server.auth.as_ref().map(|auth| match given.get(auth.secret()) {
        Some(ParameterValue::Secret(secret)) => {
            let way = auth_way(auth, known).map_err(|why| bad(&place, &why))?;
            Ok(ResolvedAuth { secret: secret.clone(), way })
        }
        Some(ParameterValue::Text(_)) => {
            let message = format!("{place} would take plain text for its secret `{}`", auth.secret());
            Err(Failure::new(Code::Internal, message))
        }
        None => Err(missing(auth.secret())),
    });
    Ok(ResolvedServer { reach, headers, auth: auth.transpose()?, params })
}

fn auth_way(auth: &Auth, value: impl Fn(&str) -> Result<String, String>) -> Result<ResolvedAuthWay, String> {
    Ok(match auth {
        Auth::Header { header, scheme, .. } => ResolvedAuthWay::Header { header: header.clone(), scheme: *scheme },
        Auth::ClientCredentials { grant, client_id, .. } => {
            ResolvedAuthWay::ClientCredentials { grant: grant.clone(), client_id: client_id.fill(value)? }
        }
    })
}

/// An address with its places filled. A value is only ever a piece of a segment: whatever could end one is encoded, and
/// what would climb out of one is refused.
pub(crate) fn fill_url(
    url: &ParameterTemplate,
    value: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let filled = url.fill(|name| value(name).map(|text| encoded(&text)))?;
    let (_, behind) = split_host(&filled).ok_or_else(|| "the address has no host".to_owned())?;
    let path = behind.split(['?', '#']).next().unwrap_or_default();
    let climbs = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.split('/').any(climbs) {
        return Err("it would climb in the path of the address".to_owned());
    }
    Ok(filled)
}

/// A header with its places filled.
pub(crate) fn fill_header(
    header: &ParameterTemplate,
    value: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let filled = header.fill(value)?;
    let fits = filled.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if fits { Ok(filled) } else { Err("a header holds only printable letters of ASCII".to_owned()) }
}

/// Scheme and host of an address, and what stands behind them.
pub(crate) fn split_host(url: &str) -> Option<(&str, &str)> {
    let start = url.find("://")? + 3;
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |found| start + found);
    (end > start).then(|| url.split_at(end))
}

/// Every byte but the unreserved ones as `%XX`.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

#[cfg(test)]
mod tests;
