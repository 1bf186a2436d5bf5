//! What a tenant's toolsets act on besides clusters: Jenkins servers and chart repositories.

use super::{ConfigCheck, HELM, JENKINS, REPOSITORY, TOOLSETS};
use crate::config::{JenkinsServer, JenkinsSource, RepositoryEntry};
use crate::problem::shown;
use crate::section::{Place, keys_at};
use crate::yaml::{Value, YamlNode};
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
}

impl ConfigCheck<'_> {
    pub(super) fn toolset_settings(&mut self, node: &YamlNode) -> ToolsetSettings {
        let keys = keys_at(Place::Toolsets, &TOOLSETS, self.known.sections);
        let Some(fields) = self.reader.values.fields(node, "`toolsets`", &keys, None) else {
            return Default::default();
        };
        self.reader.key = "jenkins";
        let jenkins = fields.find("jenkins").map_or_else(Vec::new, |node| self.servers(node));
        self.reader.key = "helm";
        let repositories = fields.find("helm").map_or_else(Vec::new, |node| self.helm(node));
        for section in self.known.sections.iter().filter(|section| section.place == Place::Toolsets) {
            if let Some(node) = fields.find(section.key) {
                section.read(&mut self.reader, node);
            }
        }
        ToolsetSettings { jenkins, repositories }
    }

    /// One server, or a list of them; in a list each has a name.
    fn servers(&mut self, node: &YamlNode) -> Vec<JenkinsServer> {
        if matches!(node.value, Value::Map(_)) {
            return self.server(node, Some(ONLY)).into_iter().collect();
        }
        let items = self.reader.values.list(node, "`jenkins`");
        if let Some(beyond) = items.get(MOST_SERVERS) {
            let message = format!("a tenant has at most {MOST_SERVERS} Jenkins servers");
            self.reader.values.report.add(beyond.at, "out_of_range", message, None);
        }
        let mut servers: Vec<JenkinsServer> = Vec::new();
        for item in items.iter().take(MOST_SERVERS) {
            let Some(server) = self.server(item, None) else { continue };
            if server.default && servers.iter().any(|known| known.default) {
                let hint = "only one server can be meant when none is named".to_owned();
                self.reader.values.report.add(item.at, "repeated_value", "two servers are the default", Some(hint));
            }
            if servers.iter().any(|known| known.name == server.name) {
                self.reader.values.twice(item, &format!("the server `{}`", server.name));
            } else {
                servers.push(server);
            }
        }
        servers
    }

    fn server(&mut self, node: &YamlNode, only: Option<&str>) -> Option<JenkinsServer> {
        let fields = self.reader.values.fields(node, "a Jenkins server", &JENKINS, None)?;
        let name = match (fields.find("name"), only) {
            (Some(node), _) => self.reader.values.label(node, "`name`"),
            (None, Some(only)) => Some(only.to_owned()),
            (None, None) => self.reader.values.missing(node, "name", "by which callers choose it"),
        };
        let default = fields.find("default").is_some_and(|node| self.reader.values.yes(node, "`default`").is_some());
        let run_id_parameter = match fields.find("run_id_parameter") {
            Some(node) => self.word(node, "`run_id_parameter`", &PARAMETER_BYTES),
            None => Some(JenkinsServer::RUN_ID_PARAMETER.to_owned()),
        };
        let source = match (fields.find("sandbox"), fields.find("url")) {
            (Some(sandbox), None) => self.reader.values.yes(sandbox, "`sandbox`").map(|()| JenkinsSource::Sandbox),
            (None, Some(url)) => {
                let url = self.reader.address(url);
                let user = match fields.find("user") {
                    Some(node) => self.word(node, "`user`", &USER_BYTES),
                    None => self.reader.values.missing(node, "user", "to whom the API token belongs"),
                };
                let token = match fields.find("token") {
                    Some(node) => self.reader.secret(node, "token", "an API token"),
                    None => self.reader.values.missing(node, "token", "as `token: { secret: NAME }`"),
                };
                let ca = fields.find("ca").map(|node| self.reader.secret(node, "ca", "a certificate authority"));
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
                self.reader.values.report.add(node.at, "bad_source", "it is not clear where the server is", Some(hint));
                None
            }
        };
        Some(JenkinsServer { name: name?, source: source?, default, run_id_parameter: run_id_parameter? })
    }

    fn helm(&mut self, node: &YamlNode) -> Vec<RepositoryEntry> {
        let Some(fields) = self.reader.values.fields(node, "`helm`", &HELM, None) else { return Vec::new() };
        let Some(list) = fields.find("repositories") else { return Vec::new() };
        let items = self.reader.values.list(list, "`repositories`");
        if let Some(beyond) = items.get(MOST_REPOSITORIES) {
            let message = format!("a tenant has at most {MOST_REPOSITORIES} chart repositories");
            self.reader.values.report.add(beyond.at, "out_of_range", message, None);
        }
        let mut repositories: Vec<RepositoryEntry> = Vec::new();
        for item in items.iter().take(MOST_REPOSITORIES) {
            let Some(repository) = self.repository(item) else { continue };
            if repositories.iter().any(|known| known.name == repository.name) {
                self.reader.values.twice(item, &format!("the repository `{}`", repository.name));
            } else {
                repositories.push(repository);
            }
        }
        repositories
    }

    fn repository(&mut self, node: &YamlNode) -> Option<RepositoryEntry> {
        let fields = self.reader.values.fields(node, "a repository", &REPOSITORY, None)?;
        let name = match fields.find("name") {
            Some(node) => self.reader.values.label(node, "`name`"),
            None => self.reader.values.missing(node, "name", "the part of a chart's name before the slash"),
        };
        let url = match fields.find("url") {
            Some(node) => self.reader.address(node),
            None => self.reader.values.missing(node, "url", "an `https://` or `oci://` address"),
        };
        let credential = fields.find("credential").map(|node| self.reader.secret(node, "credential", "a credential"));
        let credential = match credential {
            Some(None) => return None,
            Some(Some(secret)) => Some(secret),
            None => None,
        };
        Some(RepositoryEntry { name: name?, url: url?, credential })
    }

    /// Printable text without spaces around it.
    fn word(&mut self, node: &YamlNode, place: &str, bytes: &RangeInclusive<usize>) -> Option<String> {
        let text = self.reader.values.text(node, place)?;
        let fits = bytes.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() && b != b':');
        let why = || format!("{} is no word of {} to {} letters", shown(text), bytes.start(), bytes.end());
        self.reader.values.accept(node, fits.then(|| text.to_owned()).ok_or_else(why))
    }
}
