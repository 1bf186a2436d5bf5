//! The catalog of one tenant: every tool it can be issued, ordered, immutable, replaced whole.
//!
//! Order is part of the contract. First the read lists of the default toolsets, then the virtual tools, then all the
//! rest: whatever is loaded later comes behind, so the bytes a host already has in its prompt cache stay where they are.
//!
//! Tenants with the same definitions share everything but the tools' targets: one [`CatalogParts`], by digest.

use crate::shared::{SharedByDigest, bits};
use crate::validate::BadSchema;
use crate::virtuals::VirtualEntry;
use crate::{CatalogEntry, ControlTool};
use domain::json::sha256_hex;
use domain::{Failure, Level, LoadedToolsets, Tenant, ToolsetName};
use policy::{Gate, Pattern};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

/// How many toolsets a catalog can hold: a loaded set is two bits for each in one number.
const MOST_TOOLSETS: usize = 64;

/// Who the list is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListAudience {
    /// A list that grows: legacy sessions and the REST turn API. `grown` once anything was loaded on demand.
    Growing {
        /// Whether the tools to manage what was loaded are listed.
        grown: bool,
    },
    /// A list that cannot grow: the modern era, and legacy requests without a session.
    Fixed,
}

/// What a toolset holds.
#[derive(Debug, Clone)]
pub struct ToolsetFacts {
    /// Its name.
    pub name: ToolsetName,
    /// What its read list costs.
    pub read_tokens: u32,
    /// What its write list costs on top.
    pub write_tokens: u32,
    /// Whether it has write tools.
    pub writes: bool,
    /// Whether it is loaded when a session opens.
    pub default: bool,
}

/// The tools of one tenant.
pub struct Catalog {
    digest: String,
    /// In the order of the parts. They hold the tenant's own targets.
    entries: Vec<Arc<CatalogEntry>>,
    parts: Arc<CatalogParts>,
}

/// What a catalog is apart from whose targets its tools act on: shared by all tenants with the same definitions.
pub struct CatalogParts {
    digest: String,
    key: [u8; 32],
    by_name: HashMap<String, usize>,
    toolsets: Vec<ToolsetFacts>,
    head: usize, // how many of `entries` are read tools of default toolsets
    virtuals: Vec<VirtualEntry>,
    defaults: LoadedToolsets,
}

/// What a tenant's rules mean for its catalog.
#[derive(Debug, Clone, Copy, Default)]
pub struct CatalogRules<'a> {
    /// Tools that are left out.
    pub deny: &'a [Pattern],
    /// Tools that wait for a person although they may only read.
    pub gates: &'a [Gate],
}

/// Why a catalog could not be built.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// Two tools have one name.
    #[error("two tools are called `{0}`")]
    TwoOfAName(String),
    /// More toolsets than a loaded set can say.
    #[error("a tenant can have at most {MOST_TOOLSETS} toolsets")]
    TooManyToolsets,
    /// A schema cannot be used.
    #[error(transparent)]
    Schema(#[from] BadSchema),
}

/// What a name stands for.
pub enum NameMatch<'a> {
    /// A tool.
    Tool(&'a Arc<CatalogEntry>),
    /// A virtual tool.
    Virtual(ControlTool),
    /// Nothing this tenant has.
    Nothing,
}

/// One line of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListedTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// What the model reads.
    pub description: &'a str,
    /// Its lean input schema, as JSON text.
    pub wire: &'a str,
    /// The tool as MCP lists it, as JSON text.
    pub mcp: &'a str,
    /// What is counted.
    pub brief: &'a str,
    /// What it costs.
    pub tokens: u32,
}

impl Catalog {
    /// Orders the tools and makes everything ready. Tools that a rule denies whole are left out: what the tenant may
    /// not have does not exist for it.
    pub fn build(
        tenant: &Tenant,
        tools: impl IntoIterator<Item = Arc<CatalogEntry>>,
        default_toolsets: &[ToolsetName],
        rules: CatalogRules<'_>,
    ) -> Result<Catalog, CatalogError> {
        let CatalogRules { deny, gates } = rules;
        let denied = |e: &CatalogEntry| deny.iter().any(|rule| rule.is_whole() && rule.tool_matches(e.name().as_str()));
        let asks = |e: &CatalogEntry| gates.iter().any(|gate| gate.pattern.tool_matches(e.name().as_str()));
        // A read that a rule makes wait answers with a run, so its result must allow for one.
        let ready = |e: Arc<CatalogEntry>| if asks(&e) { Arc::new(e.gated()) } else { e };
        let kept: Vec<Arc<CatalogEntry>> = tools.into_iter().filter(|e| !denied(e)).map(ready).collect();
        let toolsets = facts(&kept, default_toolsets);
        if toolsets.len() > MOST_TOOLSETS {
            return Err(CatalogError::TooManyToolsets);
        }
        let rank =
            |e: &CatalogEntry| toolsets.iter().position(|t| t.name == e.definition().toolset).unwrap_or(usize::MAX);
        let is_head = |e: &CatalogEntry| e.list() == Level::Read && toolsets.get(rank(e)).is_some_and(|t| t.default);
        let mut entries = kept;
        entries.sort_by_key(|e| (!is_head(e), rank(e), e.list())); // stable: the author's order within a list
        let head = entries.iter().filter(|e| is_head(e)).count();

        let digest = digest(&entries, &toolsets, head);
        let key = bits(&digest);
        let parts = SHARED.get(key, || CatalogParts::build(&entries, toolsets, head, digest))?;
        let digest = sha256_hex(format!("{tenant}\n{}", parts.digest).as_bytes());
        Ok(Catalog { digest, entries, parts })
    }

    /// What it shares with every catalog of the same definitions.
    pub fn parts(&self) -> &Arc<CatalogParts> {
        &self.parts
    }

    /// Names the definitions alone: tenants with the same have the same.
    pub fn shared_digest(&self) -> &str {
        &self.parts.digest
    }

    /// Names this very set of definitions and its tenant; sessions pin it.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The digest of the definitions as a key of caches: all its bits, because one cache serves all tenants.
    pub(crate) fn key(&self) -> [u8; 32] {
        self.parts.key
    }

    /// What is loaded when a session opens.
    pub fn defaults(&self) -> &LoadedToolsets {
        &self.parts.defaults
    }

    /// Every toolset, default ones first.
    pub fn toolsets(&self) -> &[ToolsetFacts] {
        &self.parts.toolsets
    }

    /// Every tool, in catalog order.
    pub fn entries(&self) -> &[Arc<CatalogEntry>] {
        &self.entries
    }

    pub(crate) fn virtuals(&self) -> &[VirtualEntry] {
        &self.parts.virtuals
    }

    /// What a name stands for.
    pub fn find(&self, name: &str) -> NameMatch<'_> {
        match self.parts.by_name.get(name).and_then(|n| self.entries.get(*n)) {
            Some(entry) => NameMatch::Tool(entry),
            None => {
                ControlTool::ALL.into_iter().find(|v| v.name() == name).map_or(NameMatch::Nothing, NameMatch::Virtual)
            }
        }
    }

    /// Checks the arguments of a virtual tool.
    pub fn check_virtual(&self, which: ControlTool, arguments: Map<String, Value>) -> Result<Value, Failure> {
        match self.parts.virtuals.iter().find(|v| v.which == which) {
            Some(entry) => entry.check(arguments),
            None => Err(Failure::new(domain::Code::Internal, "a virtual tool is missing from the catalog")),
        }
    }

    /// The list for this loaded set, in order.
    pub fn listed<'a>(
        &'a self,
        loaded: &'a LoadedToolsets,
        view: ListAudience,
    ) -> impl Iterator<Item = ListedTool<'a>> {
        let (head, tail) = self.entries.split_at(self.parts.head);
        let issued = move |e: &&'a Arc<CatalogEntry>| {
            loaded.level(&e.definition().toolset).is_some_and(|level| level >= e.list())
        };
        let virtuals =
            self.parts.virtuals.iter().filter(move |v| shows(view, v.which)).map(move |v| listed_virtual(v, view));
        head.iter().filter(issued).map(listed).chain(virtuals).chain(tail.iter().filter(issued).map(listed))
    }

    /// The virtual tools as a model of the modern era reads them, listed or not.
    pub fn virtual_briefs(&self) -> impl Iterator<Item = &str> {
        self.parts.virtuals.iter().map(|entry| entry.modern.brief.as_str())
    }

    /// Name and text of every virtual tool in both eras, for whoever counts.
    pub fn virtual_faces(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.parts
            .virtuals
            .iter()
            .flat_map(|v| [&v.legacy, &v.modern].map(|face| (v.which.name(), face.brief.as_str())))
    }

    /// What a loaded set costs a model, virtual tools included.
    pub fn tokens(&self, loaded: &LoadedToolsets, view: ListAudience) -> u32 {
        self.listed(loaded, view).map(|line| line.tokens).sum()
    }

    /// A loaded set as one number: two bits for each toolset.
    pub fn set_key(&self, loaded: &LoadedToolsets) -> u128 {
        self.parts.toolsets.iter().enumerate().fold(0, |key, (n, set)| {
            let bits = match loaded.level(&set.name) {
                None => 0_u128,
                Some(Level::Read) => 1,
                Some(Level::Write) => 2,
            };
            key | bits << (2 * n)
        })
    }
}

static SHARED: LazyLock<SharedByDigest<CatalogParts>> = LazyLock::new(SharedByDigest::new);

impl CatalogParts {
    fn build(
        entries: &[Arc<CatalogEntry>],
        toolsets: Vec<ToolsetFacts>,
        head: usize,
        digest: String,
    ) -> Result<CatalogParts, CatalogError> {
        let mut by_name = HashMap::new();
        for (n, entry) in entries.iter().enumerate() {
            let name = entry.name().to_string();
            let is_virtual = ControlTool::ALL.iter().any(|v| v.name() == name);
            if is_virtual || by_name.insert(name.clone(), n).is_some() {
                return Err(CatalogError::TwoOfAName(name));
            }
        }
        let names: Vec<&str> = toolsets.iter().map(|t| t.name.as_str()).collect();
        let virtuals =
            ControlTool::ALL.into_iter().map(|v| VirtualEntry::new(v, &names)).collect::<Result<Vec<_>, _>>()?;
        let defaults = toolsets.iter().filter(|t| t.default).map(|t| (t.name.clone(), Level::Read)).collect();
        let key = bits(&digest);
        Ok(CatalogParts { digest, key, by_name, toolsets, head, virtuals, defaults })
    }
}

/// Which virtual tools are listed. All may be called all the same.
fn shows(view: ListAudience, which: ControlTool) -> bool {
    match (view, which) {
        (_, ControlTool::LoadToolset) => true,
        (ListAudience::Fixed, ControlTool::CallTool | ControlTool::AwaitRun) => true,
        (
            ListAudience::Growing { grown },
            ControlTool::UnloadToolset | ControlTool::SearchTools | ControlTool::AwaitRun,
        ) => grown,
        (ListAudience::Fixed, ControlTool::UnloadToolset | ControlTool::SearchTools)
        | (ListAudience::Growing { .. }, ControlTool::CallTool) => false,
    }
}

fn listed(entry: &Arc<CatalogEntry>) -> ListedTool<'_> {
    let d = entry.definition();
    ListedTool {
        name: d.name.as_str(),
        description: &d.description,
        wire: &d.wire,
        mcp: entry.mcp(),
        brief: entry.brief(),
        tokens: entry.tokens(),
    }
}

fn listed_virtual(entry: &VirtualEntry, view: ListAudience) -> ListedTool<'_> {
    let face = match view {
        ListAudience::Growing { .. } => &entry.legacy,
        ListAudience::Fixed => &entry.modern,
    };
    ListedTool {
        name: entry.which.name(),
        description: entry.description(),
        wire: &face.wire,
        mcp: &face.mcp,
        brief: &face.brief,
        tokens: face.tokens,
    }
}

/// The toolsets in order: the tenant's default ones as it named them, then the others as the product orders them.
fn facts(entries: &[Arc<CatalogEntry>], default_toolsets: &[ToolsetName]) -> Vec<ToolsetFacts> {
    let mut sets: Vec<ToolsetFacts> = Vec::new();
    for entry in entries {
        let name = &entry.definition().toolset;
        let at = sets.iter().position(|t| t.name == *name).unwrap_or_else(|| {
            let default = default_toolsets.contains(name);
            sets.push(ToolsetFacts { name: name.clone(), read_tokens: 0, write_tokens: 0, writes: false, default });
            sets.len() - 1
        });
        let Some(set) = sets.get_mut(at) else { continue };
        match entry.list() {
            Level::Read => set.read_tokens += entry.tokens(),
            Level::Write => {
                set.write_tokens += entry.tokens();
                set.writes = true;
            }
        }
    }
    sets.sort_by_key(|t| default_toolsets.iter().position(|d| *d == t.name).unwrap_or(usize::MAX));
    sets
}

/// Names the definitions of these tools in this order. The control tools follow from the toolsets and from the texts of
/// this build.
fn digest(entries: &[Arc<CatalogEntry>], toolsets: &[ToolsetFacts], head: usize) -> String {
    let mut text = format!("{head}\n{}\n", *CONTROL_TEXTS);
    for toolset in toolsets {
        writeln!(text, "{} {}", toolset.name, toolset.default).ok();
    }
    for entry in entries {
        writeln!(text, "{}", entry.listed_digest()).ok();
    }
    sha256_hex(text.as_bytes())
}

/// Names what the control tools of this build say.
static CONTROL_TEXTS: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    for which in ControlTool::ALL {
        let (strict, output) = (which.strict(&[]), which.output().unwrap_or_default());
        writeln!(text, "{} {} {} {strict} {output}", which.name(), which.title(), which.description()).ok();
    }
    sha256_hex(text.as_bytes())
});

#[cfg(test)]
mod tests;
