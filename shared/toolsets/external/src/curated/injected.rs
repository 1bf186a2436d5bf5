//! Servers whose addresses somebody else brings: a mounted `config.yaml` and the variable `MCP_SERVERS`.
//!
//! Both name the base address of a tool's service; what speaks MCP there is `/mcp`.

use super::{CatalogReader, MOST, read};
use crate::resolve::split_host;
use crate::server::{HttpTransport, ServerEntry, ServerLimits, ServerReach, TrustedEffects};
use std::collections::BTreeMap;
use std::path::Path;
use tenancy::book::{self, label};
use tenancy::{ParameterTemplate, Position, ProblemReport, ValueReader, YamlKey, YamlNode, YamlValue, shown};

/// How problems name the variable.
const VARIABLE: &str = "MCP_SERVERS";
/// The path that speaks MCP, where an address has none.
const PATH: &str = "/mcp";

impl CatalogReader {
    /// A file whose `tools:` maps names to endpoints. What else stands in it is somebody else's.
    pub(super) fn add_config(&mut self, path: &Path) {
        let file = label(path);
        let text = match book::text_of(path, &file) {
            Ok(text) => text,
            Err(problems) => return self.problems.extend(problems),
        };
        let mut report = ProblemReport::of(&file);
        if let Some(root) = read(&text, "begin with `tools:`", &mut report)
            && let Some(tools) = root.find("tools")
        {
            for (key, node) in (ValueReader { report: &mut report }).entries(tools, "`tools`", MOST) {
                if let Some(server) = endpoint(key, node, &mut report) {
                    self.add(server, key.at, &file, &mut report);
                }
            }
        }
        self.problems.extend(report.into_problems());
    }

    /// Addresses with commas between them. Each is named by the first label of its host; a second of that name in the
    /// list gets a number. An address that a file brought already is not brought again.
    pub(super) fn add_addresses(&mut self, text: &str) {
        let mut report = ProblemReport::of(VARIABLE);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut start = 0;
        for piece in text.split(',') {
            let at = Position::after(&text[..start + (piece.len() - piece.trim_start().len())]);
            start += piece.len() + 1;
            let piece = piece.trim();
            if piece.is_empty() {
                continue;
            }
            let Some((name, url)) = web(piece).and_then(|url| Some((name_of(&url)?, url))) else {
                let hint = "write `http://HOST:PORT` or `https://HOST`, with commas between them".to_owned();
                report.add(at, "bad_url", no_address(piece), Some(hint));
                continue;
            };
            if self.knows(&url) {
                continue;
            }
            let count = counts.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
            let name = if *count == 1 { name } else { format!("{name}-{count}") };
            self.add(at_address(name, &url), at, VARIABLE, &mut report);
        }
        self.problems.extend(report.into_problems());
    }
}

/// One of `tools:`.
fn endpoint(key: &YamlKey, node: &YamlNode, report: &mut ProblemReport) -> Option<ServerEntry> {
    let (Some(address), protocol) = (node.find("endpoint"), node.find("protocol")) else {
        let hint = "each tool is a mapping with `endpoint:` and `protocol: mcp`".to_owned();
        report.add(key.at, "missing_key", format!("{} has no `endpoint`", shown(&key.text)), Some(hint));
        return None;
    };
    let mut values = ValueReader { report };
    if let Some(protocol) = protocol {
        values.choice(protocol, "`protocol`", &[("mcp", ())])?;
    }
    let named = YamlNode { at: key.at, value: YamlValue::Scalar { text: key.text.clone(), plain: false } };
    let name = values.label(&named, "a tool's name");
    let text = values.text(address, "`endpoint`")?;
    let url = web(text).ok_or_else(|| no_address(text));
    let url = values.accept(address, url)?;
    Some(at_address(name?, &url))
}

/// What stands before an `@` may be a password, and problems are logged.
fn no_address(text: &str) -> String {
    let shown = if text.contains('@') { "this".to_owned() } else { shown(text) };
    format!("{shown} is no address of a server")
}

/// An address as it is used, or nothing if it is none.
fn web(text: &str) -> Option<String> {
    let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '\\' | '#' | '{' | '}');
    let web = text.starts_with("http://") || text.starts_with("https://");
    let (place, behind) = split_host(text).filter(|_| web && !text.chars().any(odd))?;
    let bare = matches!(behind, "" | "/");
    (!place.contains('@')).then(|| if bare { format!("{place}{PATH}") } else { text.to_owned() })
}

/// The first label of the host; of an address in numbers, all of it.
fn name_of(url: &str) -> Option<String> {
    let (place, _) = split_host(url)?;
    let authority = &place[place.find("://")? + 3..];
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let numeric = host.parse::<std::net::IpAddr>().is_ok();
    let first = if numeric { host } else { host.split('.').next()? };
    let fitting = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = first.chars().map(fitting).collect();
    let name = name.trim_matches('-');
    (1..=60).contains(&name.len()).then(|| name.to_owned())
}

/// A server of which nothing is known but where it is.
fn at_address(name: String, url: &str) -> ServerEntry {
    ServerEntry {
        name,
        description: None,
        reach: ServerReach::Http {
            // No braces are in it, so it is plain text.
            url: ParameterTemplate::parse(url).unwrap_or_default(),
            transport: HttpTransport::Streamable,
        },
        auth: None,
        headers: BTreeMap::new(),
        params: BTreeMap::new(),
        limits: ServerLimits::default(),
        vouch: TrustedEffects::default(),
        own: false,
    }
}
