//! The operator's catalog of external servers, from every place an operator may name one.
//!
//! `servers.yaml` lists many (the marketplace), `servers/*.server.yaml` holds one each (local ones). A mounted
//! `config.yaml` with a map `tools:` and the variable `MCP_SERVERS` bring addresses and nothing else. An entry with a
//! mistake is left out and told of; the others stay. A name is never given to two: the first keeps it.
//!
//! Not here: noticing that a file changed, and whether a server answers.

mod injected;

use crate::section::entry::EntryReader;
use crate::server::{ServerEntry, ServerReach};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenancy::book::{self, label};
use tenancy::{Position, Problem, ProblemReport, ValueReader, YamlNode, YamlValue, environment, yaml};

/// How many servers one catalog may hold.
const MOST: usize = 256;
/// The marketplace within an operator's folder.
const MARKETPLACE: [&str; 2] = ["servers.yaml", "servers.yml"];
/// How the names of local servers' files end.
const LOCAL: [&str; 2] = [".server.yaml", ".server.yml"];

/// The external servers an operator vouches for, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerCatalog {
    servers: BTreeMap<String, Arc<ServerEntry>>,
}

/// Where an operator may say which servers there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CuratedSources {
    /// A folder with `servers.yaml` and `servers/*.server.yaml`.
    pub dir: Option<PathBuf>,
    /// Addresses with commas between them, as the environment variable `MCP_SERVERS` brings them.
    pub mcp_servers: Option<String>,
    /// A file with a map `tools:`, as an operator mounts it.
    pub config: Option<PathBuf>,
}

impl ServerCatalog {
    /// None at all.
    pub const fn none() -> ServerCatalog {
        ServerCatalog { servers: BTreeMap::new() }
    }

    /// Reads every source. What is wrong with an entry costs only that entry.
    pub fn read(sources: &CuratedSources) -> (ServerCatalog, Vec<Problem>) {
        ServerCatalog::read_with(sources, &[])
    }

    /// The same with some files besides, each of which is recognised by [`is_server_file`].
    pub fn read_with(sources: &CuratedSources, files: &[PathBuf]) -> (ServerCatalog, Vec<Problem>) {
        let mut shelf = CatalogReader::default();
        let (found, problems) = sources.dir.as_deref().map_or_else(Default::default, found_in);
        shelf.problems.extend(problems);
        let mut seen: Vec<PathBuf> = Vec::new();
        for path in files.iter().chain(&found) {
            // The same file by two names is one file.
            let place = path.canonicalize().unwrap_or_else(|_| path.clone());
            if !seen.contains(&place) {
                shelf.add_file(path);
                seen.push(place);
            }
        }
        if let Some(path) = &sources.config {
            shelf.add_config(path);
        }
        if let Some(text) = &sources.mcp_servers {
            shelf.add_addresses(text);
        }
        (ServerCatalog { servers: shelf.servers }, shelf.problems)
    }

    /// What the text of a marketplace says.
    #[cfg(test)]
    pub(crate) fn marketplace(text: &str) -> (ServerCatalog, Vec<Problem>) {
        let mut shelf = CatalogReader::default();
        shelf.add_marketplace("servers.yaml", text);
        (ServerCatalog { servers: shelf.servers }, shelf.problems)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// One server.
    pub fn find(&self, name: &str) -> Option<&Arc<ServerEntry>> {
        self.servers.get(name)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }
}

/// Whether a file holds servers, by its name: `servers.yaml` or `*.server.yaml`.
pub fn is_server_file(path: &Path) -> bool {
    is_marketplace(path) || is_local(path)
}

fn is_marketplace(path: &Path) -> bool {
    path.file_name().is_some_and(|name| MARKETPLACE.iter().any(|known| name == *known))
}

fn is_local(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    LOCAL.iter().any(|end| name.ends_with(end))
}

/// The files of an operator's folder that hold servers. Both places may be missing, the folder itself may not.
fn found_in(dir: &Path) -> (Vec<PathBuf>, Vec<Problem>) {
    let unreadable = |path: &Path, error| vec![book::unreadable(&label(path), &error)];
    let mut files = match book::files(dir) {
        Ok(files) => files,
        Err(error) => return (Vec::new(), unreadable(dir, error)),
    };
    files.retain(|path| is_marketplace(path));
    let local = dir.join("servers");
    match book::files(&local) {
        Ok(mut found) => {
            found.retain(|path| is_local(path));
            files.extend(found);
            (files, Vec::new())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (files, Vec::new()),
        Err(error) => (files, unreadable(&local, error)),
    }
}

/// A catalog while it is read.
#[derive(Default)]
struct CatalogReader {
    servers: BTreeMap<String, Arc<ServerEntry>>,
    /// Where each of them is written down.
    places: BTreeMap<String, String>,
    problems: Vec<Problem>,
}

impl CatalogReader {
    fn add_file(&mut self, path: &Path) {
        let file = label(path);
        match book::text_of(path, &file) {
            Ok(text) if is_marketplace(path) => self.add_marketplace(&file, &text),
            Ok(text) => self.add_local(&file, &text),
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn add_marketplace(&mut self, file: &str, text: &str) {
        let mut report = ProblemReport::of(file);
        if let Some(mut root) = read(text, "begin with `servers:` and a list of servers", &mut report) {
            let mut values = ValueReader { report: &mut report };
            let known = values.fields(&root, "the file", &["servers"], None).map(|fields| fields.find("servers"));
            match known {
                Some(Some(list)) => drop(values.some(list, "`servers`", MOST)),
                Some(None) => values.missing::<()>(&root, "servers", "a list of servers").unwrap_or_default(),
                None => {}
            }
            let items = items_of(&mut root).iter_mut().take(MOST);
            items.for_each(|item| self.add_entry(item, file, &mut report));
        }
        self.problems.extend(report.into_problems());
    }

    fn add_local(&mut self, file: &str, text: &str) {
        let mut report = ProblemReport::of(file);
        if let Some(mut root) = read(text, "begin with `name:` and the server's name", &mut report) {
            self.add_entry(&mut root, file, &mut report);
        }
        self.problems.extend(report.into_problems());
    }

    fn add_entry(&mut self, node: &mut YamlNode, file: &str, report: &mut ProblemReport) {
        let before = report.count();
        environment::refuse(node, report);
        let server = EntryReader { values: &mut ValueReader { report } }.entry(node);
        // A full report notes nothing more, so nothing more can be told to be right.
        let sound = report.count() == before && !report.is_full();
        if let Some(server) = server.filter(|_| sound) {
            self.add(server, node.at, file, report);
        }
    }

    fn add(&mut self, server: ServerEntry, at: Position, file: &str, report: &mut ProblemReport) {
        let name = server.name.clone();
        if let Some(first) = self.places.get(&name) {
            let message = format!("the server `{name}` is there already, in {first}");
            report.add(at, "duplicate_server", message, Some("remove one of them, or name it otherwise".to_owned()));
        } else if self.servers.len() >= MOST {
            report.add(at, "out_of_range", format!("a catalog holds at most {MOST} servers"), None);
        } else {
            self.places.insert(name.clone(), format!("{file}:{}", at.line));
            self.servers.insert(name, Arc::new(server));
        }
    }

    /// Whether a server at this address is there, whatever it is called.
    fn knows(&self, address: &str) -> bool {
        let is = |server: &Arc<ServerEntry>| match &server.reach {
            ServerReach::Http { url, .. } => url.to_string() == address,
            ServerReach::Process { .. } => false,
        };
        self.servers.values().any(is)
    }
}

/// The entries of a marketplace; none, if it is none.
fn items_of(root: &mut YamlNode) -> &mut [YamlNode] {
    let YamlValue::Map(entries) = &mut root.value else { return &mut [] };
    match entries.iter_mut().find(|(key, _)| key.text == "servers").map(|(_, list)| &mut list.value) {
        Some(YamlValue::List(items)) => items,
        Some(YamlValue::Scalar { .. } | YamlValue::Map(_) | YamlValue::Refused) | None => &mut [],
    }
}

/// The tree of a text that is YAML throughout. What the reader refused would be missing from an entry, and an entry
/// without its `auth`, say, is another one; so a text with such a mistake is left out whole.
fn read(text: &str, begin: &str, report: &mut ProblemReport) -> Option<YamlNode> {
    let root = yaml::read(text, begin, report);
    root.filter(|_| report.count() == 0)
}

#[cfg(test)]
mod tests;
