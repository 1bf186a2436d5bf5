//! The section `toolsets.helm` of a tenant's file: where its charts come from, and what their values may hold.

use schemars::JsonSchema;
use tenancy::{Excess, Place, SecretUse, SecretValue, Section, SectionReader, YamlNode};

/// The key of the section.
pub const KEY: &str = "helm";
/// The keys of the section.
const HELM: [&str; 2] = ["repositories", "templates_in_values"];
/// The keys of a chart repository.
const REPOSITORY: [&str; 3] = ["name", "url", "credential"];
/// How many chart repositories one tenant may have; each is an index in memory.
const MOST: usize = 32;

/// What a tenant says about helm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HelmConfig {
    /// Where its charts come from.
    pub repositories: Vec<RepositoryEntry>,
    /// Whether values may hold templates, which a chart that calls `tpl` evaluates.
    pub templates_in_values: bool,
}

/// One chart repository, or registry, of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryEntry {
    /// The part of a chart's name before the slash.
    pub name: String,
    /// Its `https://` or `oci://` address.
    pub url: String,
    /// The name of the secret that opens it.
    pub credential: Option<String>,
}

impl RepositoryEntry {
    /// How a credential is used at a repository of this address.
    pub fn credential_use(secret: &str, url: &str) -> SecretUse {
        let place = format!("credential {}", url.trim_end_matches('/'));
        SecretUse { section: KEY, secret: secret.to_owned(), place }
    }
}

/// The section. It is read as a [`HelmConfig`].
pub fn section() -> Section {
    let section = Section::new::<HelmFile, _>(KEY, Place::Toolsets, helm).after("jenkins");
    section.bounded(exceeding).with_secret_uses(|values| {
        let repositories = values.get::<HelmConfig>(KEY)?.into_iter().flat_map(|helm| &helm.repositories);
        let used =
            |entry: &RepositoryEntry| Some(RepositoryEntry::credential_use(entry.credential.as_ref()?, &entry.url));
        Ok(repositories.filter_map(used).collect())
    })
}

/// What a text over HTTP takes beyond the file. A repository of the file keeps its address, so that an approver who reads
/// `stable/web` knows where the chart comes from.
fn exceeding(file: Option<&HelmConfig>, asked: Option<&HelmConfig>) -> Vec<Excess> {
    let (none, asked) = (HelmConfig::default(), asked.cloned().unwrap_or_default());
    let file = file.unwrap_or(&none);
    let templates = (asked.templates_in_values && !file.templates_in_values)
        .then(|| Excess::new("/templates_in_values", "`templates_in_values`", false, true));
    let moved = |(n, repository): (usize, &RepositoryEntry)| {
        let given = file.repositories.iter().find(|given| given.name == repository.name)?;
        let key = format!("`url` of the repository `{}`", repository.name);
        let excess = || Excess::new(format!("/repositories/{n}/url"), key, &given.url, &repository.url);
        (given.url.trim_end_matches('/') != repository.url.trim_end_matches('/')).then(excess)
    };
    asked.repositories.iter().enumerate().filter_map(moved).chain(templates).collect()
}

fn helm(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<HelmConfig> {
    let fields = reader.values.fields(node, "`helm`", &HELM, None)?;
    let repositories = fields.find("repositories").map_or_else(Vec::new, |list| repositories(reader, list));
    let templates_in_values = fields
        .find("templates_in_values")
        .is_some_and(|node| reader.values.yes(node, "`templates_in_values`").is_some());
    Some(HelmConfig { repositories, templates_in_values })
}

fn repositories(reader: &mut SectionReader<'_>, list: &YamlNode) -> Vec<RepositoryEntry> {
    let items = reader.values.list(list, "`repositories`");
    if let Some(beyond) = items.get(MOST) {
        let message = format!("a tenant has at most {MOST} chart repositories");
        reader.values.report.add(beyond.at, "out_of_range", message, None);
    }
    let mut repositories: Vec<RepositoryEntry> = Vec::new();
    for item in items.iter().take(MOST) {
        let Some(repository) = repository(reader, item) else { continue };
        if repositories.iter().any(|known| known.name == repository.name) {
            reader.values.twice(item, &format!("the repository `{}`", repository.name));
        } else {
            repositories.push(repository);
        }
    }
    repositories
}

fn repository(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<RepositoryEntry> {
    let fields = reader.values.fields(node, "a repository", &REPOSITORY, None)?;
    let name = match fields.find("name") {
        Some(node) => reader.values.label(node, "`name`"),
        None => reader.values.missing(node, "name", "the part of a chart's name before the slash"),
    };
    let url = match fields.find("url") {
        Some(node) => reader.address(node),
        None => reader.values.missing(node, "url", "an `https://` or `oci://` address"),
    };
    let credential = fields.find("credential").map(|node| reader.secret(node, "credential", "a credential"));
    let credential = match credential {
        Some(None) => return None,
        Some(Some(secret)) => Some(secret),
        None => None,
    };
    Some(RepositoryEntry { name: name?, url: url?, credential })
}

/// The section as it stands in the file.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct HelmFile {
    /// Where charts come from.
    #[schemars(default, with = "HelmPart")]
    helm: Option<HelmPart>,
}

/// Where charts come from.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct HelmPart {
    /// Chart repositories and registries.
    #[schemars(default)]
    repositories: Vec<RepositoryPart>,
    /// Whether values may hold templates (`{{`), which a chart that calls `tpl` evaluates against the cluster.
    #[schemars(default, extend("const" = true))]
    templates_in_values: bool,
}

/// One chart repository or registry.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct RepositoryPart {
    /// The part of a chart's name before the slash.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    name: String,
    /// Its `https://` or `oci://` address.
    url: String,
    /// What opens it, kept as a secret.
    #[schemars(default, with = "SecretValue")]
    credential: Option<SecretValue>,
}

#[cfg(test)]
mod tests;
