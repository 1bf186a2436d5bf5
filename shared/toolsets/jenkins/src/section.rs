//! The section `toolsets.jenkins` of a tenant's file: one Jenkins server, or a list of them.

use schemars::JsonSchema;
use std::ops::RangeInclusive;
use tenancy::{Excess, Place, SecretUse, SecretValue, Section, SectionReader, YamlNode, YamlValue, listed, shown};

/// The key of the section.
pub const KEY: &str = "jenkins";
/// The keys of a Jenkins server.
const JENKINS: [&str; 8] = ["name", "url", "user", "token", "ca", "run_id_parameter", "sandbox", "default"];
/// How many Jenkins servers one tenant may have; each costs connections.
const MOST: usize = 16;
/// The name of a server where there is only one and nobody named it.
const ONLY: &str = "jenkins";
/// The longest name of a user.
const USER_BYTES: RangeInclusive<usize> = 1..=253;
/// The longest name of a parameter.
const PARAMETER_BYTES: RangeInclusive<usize> = 1..=100;

/// One Jenkins server of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JenkinsServer {
    /// What callers call it.
    pub name: String,
    /// Where it is and who we are there.
    pub source: JenkinsSource,
    /// Whether a call that only reads and names no server means this one.
    pub default: bool,
    /// The parameter that carries the name of a run, where a job declares it.
    pub run_id_parameter: String,
}

impl JenkinsServer {
    /// The parameter that carries the name of a run, unless a tenant names another.
    pub const RUN_ID_PARAMETER: &str = "QM_RUN_ID";
}

/// Where a Jenkins server is and who we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JenkinsSource {
    /// A server at an address that the operator lets tenants reach.
    Address {
        /// Its base address.
        url: String,
        /// The user.
        user: String,
        /// The name of the secret with the user's API token.
        token: String,
        /// The name of the secret with the authority that vouches for the server, if the public ones do not.
        ca: Option<String>,
    },
    /// A simulated server inside this process.
    Sandbox,
}

impl JenkinsSource {
    /// How a secret is used at the server of this address.
    pub fn secret_use(secret: &str, what: &str, url: &str) -> SecretUse {
        let place = format!("{what} {}", url.trim_end_matches('/'));
        SecretUse { section: KEY, secret: secret.to_owned(), place }
    }

    fn secret_uses(&self) -> Vec<SecretUse> {
        match self {
            JenkinsSource::Address { url, token, ca, .. } => {
                let ca = ca.as_ref().map(|ca| JenkinsSource::secret_use(ca, "ca", url));
                std::iter::once(JenkinsSource::secret_use(token, "token", url)).chain(ca).collect()
            }
            JenkinsSource::Sandbox => Vec::new(),
        }
    }
}

/// The section. It is read as a `Vec<JenkinsServer>`, and a tenant without servers does not have it.
pub fn section() -> Section {
    let section = Section::new::<JenkinsFile, _>(KEY, Place::Toolsets, servers);
    section.bounded(exceeding).with_secret_uses(|values| {
        let servers = values.get::<Vec<JenkinsServer>>(KEY)?.into_iter().flatten();
        Ok(servers.flat_map(|server| server.source.secret_uses()).collect())
    })
}

/// What a text over HTTP takes beyond the file. A server of the file keeps its name and its address, so that an approver
/// who reads a name knows the server. What a text may do with secrets of the operator follows from their uses.
fn exceeding(file: Option<&Vec<JenkinsServer>>, asked: Option<&Vec<JenkinsServer>>) -> Vec<Excess> {
    let file = file.map_or(&[][..], Vec::as_slice);
    let address = |server: &JenkinsServer| match &server.source {
        JenkinsSource::Address { url, .. } => url.trim_end_matches('/').to_owned(),
        JenkinsSource::Sandbox => "a sandbox".to_owned(),
    };
    let ca = |server: &JenkinsServer| match &server.source {
        JenkinsSource::Address { ca, .. } => ca.clone(),
        JenkinsSource::Sandbox => None,
    };
    let asked = asked.map_or(&[][..], Vec::as_slice).iter().enumerate();
    let one = |(n, server): (usize, &JenkinsServer)| {
        let (at, key) = (format!("/{n}/url"), format!("`url` of the Jenkins server `{}`", server.name));
        let asked = address(server);
        if let Some(given) = file.iter().find(|given| given.name == server.name) {
            let elsewhere = (address(given) != asked).then(|| Excess::new(at, key, address(given), asked));
            let trusted = (ca(given) != ca(server)).then(|| {
                let key = format!("`ca` of the Jenkins server `{}`", server.name);
                Excess::new(format!("/{n}/ca"), key, listed(ca(given)), listed(ca(server)))
            });
            return elsewhere.or(trusted);
        }
        let other = file.iter().find(|given| server.source != JenkinsSource::Sandbox && address(given) == asked)?;
        let (given, asked) = (format!("it as {}", other.name), format!("it as {}", server.name));
        Some(Excess::new(format!("/{n}/name"), key, given, asked))
    };
    asked.filter_map(one).collect()
}

/// One server, or a list of them; in a list each has a name. `None` if there is none.
fn servers(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<Vec<JenkinsServer>> {
    if matches!(node.value, YamlValue::Map(_)) {
        return server(reader, node, Some(ONLY)).map(|server| vec![server]);
    }
    let items = reader.values.list(node, "`jenkins`");
    if let Some(beyond) = items.get(MOST) {
        let message = format!("a tenant has at most {MOST} Jenkins servers");
        reader.values.report.add(beyond.at, "out_of_range", message, None);
    }
    let mut servers: Vec<JenkinsServer> = Vec::new();
    for item in items.iter().take(MOST) {
        let Some(server) = server(reader, item, None) else { continue };
        if server.default && servers.iter().any(|known| known.default) {
            let hint = "only one server can be meant when none is named".to_owned();
            reader.values.report.add(item.at, "repeated_value", "two servers are the default", Some(hint));
        }
        if servers.iter().any(|known| known.name == server.name) {
            reader.values.twice(item, &format!("the server `{}`", server.name));
        } else {
            servers.push(server);
        }
    }
    Some(servers).filter(|servers| !servers.is_empty())
}

fn server(reader: &mut SectionReader<'_>, node: &YamlNode, only: Option<&str>) -> Option<JenkinsServer> {
    let fields = reader.values.fields(node, "a Jenkins server", &JENKINS, None)?;
    let name = match (fields.find("name"), only) {
        (Some(node), _) => reader.values.label(node, "`name`"),
        (None, Some(only)) => Some(only.to_owned()),
        (None, None) => reader.values.missing(node, "name", "by which callers choose it"),
    };
    let default = fields.find("default").is_some_and(|node| reader.values.yes(node, "`default`").is_some());
    let run_id_parameter = match fields.find("run_id_parameter") {
        Some(node) => word(reader, node, "`run_id_parameter`", &PARAMETER_BYTES),
        None => Some(JenkinsServer::RUN_ID_PARAMETER.to_owned()),
    };
    let source = match (fields.find("sandbox"), fields.find("url")) {
        (Some(sandbox), None) => reader.values.yes(sandbox, "`sandbox`").map(|()| JenkinsSource::Sandbox),
        (None, Some(url)) => {
            let url = reader.address(url);
            let user = match fields.find("user") {
                Some(node) => word(reader, node, "`user`", &USER_BYTES),
                None => reader.values.missing(node, "user", "to whom the API token belongs"),
            };
            let token = match fields.find("token") {
                Some(node) => reader.secret(node, "token", "an API token"),
                None => reader.values.missing(node, "token", "as `token: { secret: NAME }`"),
            };
            let ca = fields.find("ca").map(|node| reader.secret(node, "ca", "a certificate authority"));
            // A mistake in the authority must not end in trusting everybody's.
            match ca {
                Some(None) => None,
                Some(Some(ca)) => Some(JenkinsSource::Address { url: url?, user: user?, token: token?, ca: Some(ca) }),
                None => Some(JenkinsSource::Address { url: url?, user: user?, token: token?, ca: None }),
            }
        }
        (None, None) | (Some(_), Some(_)) => {
            let hint = "give exactly one of `url`, `sandbox`".to_owned();
            reader.values.report.add(node.at, "bad_source", "it is not clear where the server is", Some(hint));
            None
        }
    };
    Some(JenkinsServer { name: name?, source: source?, default, run_id_parameter: run_id_parameter? })
}

/// Printable text without spaces around it.
fn word(reader: &mut SectionReader<'_>, node: &YamlNode, place: &str, bytes: &RangeInclusive<usize>) -> Option<String> {
    let text = reader.values.text(node, place)?;
    let fits = bytes.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() && b != b':');
    let why = || format!("{} is no word of {} to {} letters", shown(text), bytes.start(), bytes.end());
    reader.values.accept(node, fits.then(|| text.to_owned()).ok_or_else(why))
}

/// The section as it stands in the file.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct JenkinsFile {
    /// One Jenkins server, or a list of them.
    #[schemars(default, with = "JenkinsParts")]
    jenkins: Option<JenkinsParts>,
}

/// One Jenkins server, or a list of them.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum JenkinsParts {
    One(JenkinsPart),
    Several(Vec<JenkinsPart>),
}

/// One Jenkins server; exactly one of `url` and `sandbox` says where it is.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct JenkinsPart {
    /// What callers call it; needed in a list.
    #[schemars(default, regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    name: String,
    /// Its base address.
    #[schemars(default)]
    url: String,
    /// Who the API token belongs to.
    #[schemars(default)]
    user: String,
    /// The API token, kept as a secret.
    #[schemars(default, with = "SecretValue")]
    token: Option<SecretValue>,
    /// The authority that vouches for the server, kept as a secret.
    #[schemars(default, with = "SecretValue")]
    ca: Option<SecretValue>,
    /// The parameter that carries the name of a run, where a job declares it.
    #[schemars(default)]
    run_id_parameter: String,
    /// A simulated server inside the service.
    #[schemars(default, extend("const" = true))]
    sandbox: bool,
    /// Whether a call that only reads and names no server means this one.
    #[schemars(default, extend("const" = true))]
    default: bool,
}

#[cfg(test)]
mod tests;
