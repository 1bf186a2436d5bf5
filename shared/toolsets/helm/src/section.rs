//! The section `toolsets.helm` of a tenant's file: where its charts come from.

use schemars::JsonSchema;
use tenancy::{Place, SecretValue, Section, SectionReader, YamlNode};

/// The key of the section.
pub const KEY: &str = "helm";
/// The keys of the section.
const HELM: [&str; 1] = ["repositories"];
/// The keys of a chart repository.
const REPOSITORY: [&str; 3] = ["name", "url", "credential"];
/// How many chart repositories one tenant may have; each is an index in memory.
const MOST: usize = 32;

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

/// The section. It is read as a `Vec<RepositoryEntry>`, and a tenant without repositories does not have it.
pub fn section() -> Section {
    Section::new::<HelmFile, _>(KEY, Place::Toolsets, repositories).after("jenkins")
}

/// The chart repositories; `None` if there is none.
fn repositories(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<Vec<RepositoryEntry>> {
    let list = reader.values.fields(node, "`helm`", &HELM, None)?.find("repositories")?;
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
    Some(repositories).filter(|repositories| !repositories.is_empty())
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
