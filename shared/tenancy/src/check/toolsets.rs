//! What a tenant's toolsets act on besides clusters: Jenkins servers and chart repositories.

use super::{AddressCheck, ConfigCheck, HELM, JENKINS, REPOSITORY, TOOLSETS};
use crate::config::{JenkinsServer, JenkinsSource, RepositoryEntry};
use crate::problem::shown;
use crate::section::{self, SectionProblem};
use crate::yaml::{Value, YamlNode};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// How many Jenkins servers one tenant may have; each costs connections.
const MOST_SERVERS: usize = 16;
/// How many chart repositories one tenant may have; each is an index in memory.
const MOST_REPOSITORIES: usize = 32;
/// The name of a server where there is only one and nobody named it.
const ONLY: &str = "jenkins";
/// The longest name of a user.
const USER_BYTES: RangeInclusive<usize> = 1..=253;
/// The longest name of a parameter.
const PARAMETER_BYTES: RangeInclusive<usize> = 1..=100;

/// What stands under `toolsets`.
#[derive(Default)]
pub(super) struct ToolsetSettings {
    pub(super) jenkins: Vec<JenkinsServer>,
    pub(super) repositories: Vec<RepositoryEntry>,
    pub(super) sections: BTreeMap<String, serde_json::Value>,
}

impl ConfigCheck<'_, '_, '_> {
    pub(super) fn toolset_settings(&mut self, node: &YamlNode) -> ToolsetSettings {
        let known = self.known;
        let keys: Vec<&str> = TOOLSETS.into_iter().chain(known.sections.iter().map(|section| section.key)).collect();
        let Some(fields) = self.values.fields(node, "`toolsets`", &keys, None) else { return Default::default() };
        let jenkins = fields.find("jenkins").map_or_else(Vec::new, |node| self.servers(node));
        let repositories = fields.find("helm").map_or_else(Vec::new, |node| self.helm(node));
        let mut sections = BTreeMap::new();
        for section in known.sections {
            let Some(node) = fields.find(section.key) else { continue };
            let value = section::json(node);
            for SectionProblem { at, message, hint } in (section.check)(&value) {
                let message = format!("`{}`: {message}", section.key);
                self.values.report.add(section::position(node, &at), "bad_value", message, hint);
            }
            sections.insert(section.key.to_owned(), value);
        }
        ToolsetSettings { jenkins, repositories, sections }
    }

    /// One server, or a list of them; in a list each has a name.
    fn servers(&mut self, node: &YamlNode) -> Vec<JenkinsServer> {
        if matches!(node.value, Value::Map(_)) {
            return self.server(node, Some(ONLY)).into_iter().collect();
        }
        let items = self.values.list(node, "`jenkins`");
        if let Some(beyond) = items.get(MOST_SERVERS) {
            let message = format!("a tenant has at most {MOST_SERVERS} Jenkins servers");
            self.values.report.add(beyond.at, "out_of_range", message, None);
        }
        let mut servers: Vec<JenkinsServer> = Vec::new();
        for item in items.iter().take(MOST_SERVERS) {
            let Some(server) = self.server(item, None) else { continue };
            if server.default && servers.iter().any(|known| known.default) {
                let hint = "only one server can be meant when none is named".to_owned();
                self.values.report.add(item.at, "repeated_value", "two servers are the default", Some(hint));
            }
            if servers.iter().any(|known| known.name == server.name) {
                self.values.twice(item, &format!("the server `{}`", server.name));
            } else {
                servers.push(server);
            }
        }
        servers
    }

    fn server(&mut self, node: &YamlNode, only: Option<&str>) -> Option<JenkinsServer> {
        let fields = self.values.fields(node, "a Jenkins server", &JENKINS, None)?;
        let name = match (fields.find("name"), only) {
            (Some(node), _) => self.values.label(node, "`name`"),
            (None, Some(only)) => Some(only.to_owned()),
            (None, None) => self.values.missing(node, "name", "by which callers choose it"),
        };
        let default = fields.find("default").is_some_and(|node| self.values.yes(node, "`default`").is_some());
        let run_id_parameter = match fields.find("run_id_parameter") {
            Some(node) => self.word(node, "`run_id_parameter`", &PARAMETER_BYTES),
            None => Some(JenkinsServer::RUN_ID_PARAMETER.to_owned()),
        };
        let source = match (fields.find("sandbox"), fields.find("url")) {
            (Some(sandbox), None) => self.values.yes(sandbox, "`sandbox`").map(|()| JenkinsSource::Sandbox),
            (None, Some(url)) => {
                let url = self.address(url, self.known.server);
                let user = match fields.find("user") {
                    Some(node) => self.word(node, "`user`", &USER_BYTES),
                    None => self.values.missing(node, "user", "to whom the API token belongs"),
                };
                let token = match fields.find("token") {
                    Some(node) => self.secret(node, "token", "an API token"),
                    None => self.values.missing(node, "token", "as `token: { secret: NAME }`"),
                };
                let ca = fields.find("ca").map(|node| self.secret(node, "ca", "a certificate authority"));
                // A mistake in the authority must not end in trusting everybody's.
                match ca {
                    Some(None) => None,
                    Some(Some(ca)) => {
                        Some(JenkinsSource::Address { url: url?, user: user?, token: token?, ca: Some(ca) })
                    }
                    None => Some(JenkinsSource::Address { url: url?, user: user?, token: token?, ca: None }),
                }
            }
            (None, None) | (Some(_), Some(_)) => {
                let hint = "give exactly one of `url`, `sandbox`".to_owned();
                self.values.report.add(node.at, "bad_source", "it is not clear where the server is", Some(hint));
                None
            }
        };
        Some(JenkinsServer { name: name?, source: source?, default, run_id_parameter: run_id_parameter? })
    }

    fn helm(&mut self, node: &YamlNode) -> Vec<RepositoryEntry> {
        let Some(fields) = self.values.fields(node, "`helm`", &HELM, None) else { return Vec::new() };
        let Some(list) = fields.find("repositories") else { return Vec::new() };
        let items = self.values.list(list, "`repositories`");
        if let Some(beyond) = items.get(MOST_REPOSITORIES) {
            let message = format!("a tenant has at most {MOST_REPOSITORIES} chart repositories");
            self.values.report.add(beyond.at, "out_of_range", message, None);
        }
        let mut repositories: Vec<RepositoryEntry> = Vec::new();
        for item in items.iter().take(MOST_REPOSITORIES) {
            let Some(repository) = self.repository(item) else { continue };
            if repositories.iter().any(|known| known.name == repository.name) {
                self.values.twice(item, &format!("the repository `{}`", repository.name));
            } else {
                repositories.push(repository);
            }
        }
        repositories
    }

    fn repository(&mut self, node: &YamlNode) -> Option<RepositoryEntry> {
        let fields = self.values.fields(node, "a repository", &REPOSITORY, None)?;
        let name = match fields.find("name") {
            Some(node) => self.values.label(node, "`name`"),
            None => self.values.missing(node, "name", "the part of a chart's name before the slash"),
        };
        let url = match fields.find("url") {
            Some(node) => self.address(node, self.known.charts),
            None => self.values.missing(node, "url", "an `https://` or `oci://` address"),
        };
        let credential = fields.find("credential").map(|node| self.secret(node, "credential", "a credential"));
        let credential = match credential {
            Some(None) => return None,
            Some(Some(secret)) => Some(secret),
            None => None,
        };
        Some(RepositoryEntry { name: name?, url: url?, credential })
    }

    /// An address that the operator lets tenants reach.
    fn address(&mut self, node: &YamlNode, reachable: &AddressCheck<'_>) -> Option<String> {
        let text = self.values.text(node, "`url`")?;
        let reached = reachable(text).map(|()| text.to_owned());
        self.values.accept(node, reached.map_err(|why| format!("{} cannot be used: {why}", shown(text))))
    }

    /// Printable text without spaces around it.
    fn word(&mut self, node: &YamlNode, place: &str, bytes: &RangeInclusive<usize>) -> Option<String> {
        let text = self.values.text(node, place)?;
        let fits = bytes.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() && b != b':');
        let why = || format!("{} is no word of {} to {} letters", shown(text), bytes.start(), bytes.end());
        self.values.accept(node, fits.then(|| text.to_owned()).ok_or_else(why))
    }
}
