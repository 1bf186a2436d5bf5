//! The section `runbooks` of a tenant's file.
//!
//! A text over HTTP can drop runbooks and nothing else: a command that runs on somebody's host is the operator's to write
//! down (`exceeding`).

mod argument;
mod command;
mod entry;

use crate::declaration::Runbook;
use crate::names::{self, RunbookId};
use crate::tool::TOOLSET;
use domain::job::RunnerLabel;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use tenancy::{Excess, Place, Section, SectionReader, YamlNode};

/// The key of the section.
pub const KEY: &str = "runbooks";
/// How many runbooks one tenant may have; each is a tool that a model reads.
const MOST: usize = 64;
/// How long the commands of a runbook may take.
const TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(60 * 60);
/// The same, where a runbook does not say it.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// The group of a runbook that names none.
const DEFAULT_GROUP: &str = "main";
/// The keys of a runbook.
const RUNBOOK: [&str; 12] = [
    "name",
    "group",
    "description",
    "effect",
    "where",
    "arguments",
    "env",
    "check",
    "run",
    "verify",
    "directory",
    "timeout",
];
/// The keys under `where`.
const WHERE: [&str; 4] = ["runner", "cluster", "namespace", "image"];
/// The keys of an argument.
const ARGUMENT: [&str; 8] = ["type", "required", "default", "description", "enum", "pattern", "min", "max"];

/// What holds where a runbook does not say it.
#[derive(Debug, Clone, Default)]
pub struct RunbookDefaults {
    /// Its group.
    pub group: Option<String>,
    /// The label of the runners it runs on.
    pub runner: Option<RunnerLabel>,
    /// The folder in which its commands run.
    pub directory: Option<String>,
}

/// The section. It is read as a `Vec<Runbook>`, and a tenant without runbooks does not have it.
pub fn section() -> Section {
    with_defaults(RunbookDefaults::default()).bounded(exceeding).with_secret_uses(|values| {
        let runbooks = values.get::<Vec<Runbook>>(KEY)?.into_iter().flatten();
        Ok(runbooks.flat_map(Runbook::secret_uses).collect())
    })
}

/// The section where something holds that a runbook does not say.
pub fn with_defaults(defaults: RunbookDefaults) -> Section {
    let read = move |reader: &mut SectionReader<'_>, node: &YamlNode| runbooks(reader, node, &defaults);
    Section::new::<RunbooksFile, _>(KEY, Place::Root, read).after("toolsets")
}

fn runbooks(reader: &mut SectionReader<'_>, node: &YamlNode, defaults: &RunbookDefaults) -> Option<Vec<Runbook>> {
    let mut runbooks: Vec<(Runbook, &YamlNode)> = Vec::new();
    for item in reader.values.some(node, "`runbooks`", MOST) {
        let Some(runbook) = entry::runbook(reader, item, defaults) else { continue };
        if runbooks.iter().any(|(known, _)| known.id() == runbook.id()) {
            reader.values.twice(item, &format!("the runbook `{}`", runbook.id()));
        } else {
            runbooks.push((runbook, item));
        }
    }
    let ids: Vec<RunbookId> =
        runbooks.iter().map(|(one, _)| RunbookId::of_tenant(&one.text.group, &one.text.name)).collect();
    for ((runbook, item), name) in runbooks.iter_mut().zip(names::tool_names(&ids)) {
        match name {
            Some(name) => runbook.tool = name,
            None => reader.values.twice(item, &format!("the name of `{}` as a tool", runbook.id())),
        }
        reader.add_tool(TOOLSET, runbook.tool.to_string());
    }
    let runbooks: Vec<Runbook> = runbooks.into_iter().map(|(runbook, _)| runbook).collect();
    Some(runbooks).filter(|runbooks| !runbooks.is_empty())
}

/// What a text over HTTP takes beyond the file: every runbook that the file does not have, word for word.
fn exceeding(file: Option<&Vec<Runbook>>, asked: Option<&Vec<Runbook>>) -> Vec<Excess> {
    let file = file.map_or(&[][..], Vec::as_slice);
    let asked = asked.map_or(&[][..], Vec::as_slice).iter().enumerate();
    let new = asked.filter(|(_, runbook)| !file.contains(runbook));
    new.map(|(n, runbook)| {
        let given = match file.iter().any(|given| given.id() == runbook.id()) {
            true => "another text of it",
            false => "none of that name",
        };
        Excess::new(format!("/{n}"), format!("the runbook `{}`", runbook.id()), given, "this one")
    })
    .collect()
}

/// The section as it stands in the file.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape is used")]
struct RunbooksFile {
    /// Commands of the tenant's own that agents may ask for, each as a tool with typed arguments.
    #[schemars(default)]
    runbooks: Vec<RunbookPart>,
}

/// One runbook.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct RunbookPart {
    /// Its name; with its group it becomes the name of the tool.
    #[schemars(length(min = 1, max = 100))]
    name: String,
    /// The group it belongs to.
    #[schemars(default = "default_group", length(min = 1, max = 100))]
    group: String,
    /// What it does, for people and models.
    #[schemars(default, length(max = 1_000))]
    description: String,
    /// What it does to the world. `read` only where the operator vouches for it.
    #[schemars(default)]
    effect: EffectName,
    /// Where its commands run.
    #[schemars(rename = "where")]
    place: WherePart,
    /// What it takes.
    #[schemars(default)]
    arguments: BTreeMap<String, ArgumentPart>,
    /// Its environment; values may refer to arguments and parameters.
    #[schemars(default)]
    env: BTreeMap<String, String>,
    /// A command that exits with 0 if there is nothing to do; then nothing else runs.
    #[schemars(default, length(min = 1))]
    check: Vec<String>,
    /// The command, one word each. No shell reads it.
    #[schemars(length(min = 1))]
    run: Vec<String>,
    /// A command that exits with 0 if it was done.
    #[schemars(default, length(min = 1))]
    verify: Vec<String>,
    /// The folder in which the commands run.
    #[schemars(default)]
    directory: String,
    /// How long all commands together may take, such as `10m`.
    #[schemars(default, regex(pattern = r"^[0-9]+[smhd]$"))]
    timeout: String,
}

/// Where the commands of a runbook run: on a runner, or in a Job of a cluster.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct WherePart {
    /// The label of the runners that may take it.
    #[schemars(default, regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    runner: String,
    /// The cluster in which it is a Job.
    #[schemars(default)]
    cluster: String,
    /// The namespace of the Job.
    #[schemars(default)]
    namespace: String,
    /// The image of the Job.
    #[schemars(default)]
    image: String,
}

/// One argument.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct ArgumentPart {
    /// What it is.
    #[schemars(default, rename = "type")]
    kind: ArgumentTypeName,
    /// Whether a call must give it.
    #[schemars(default)]
    required: bool,
    /// What is used where a call does not give it.
    #[schemars(default, with = "ScalarPart")]
    default: Option<ScalarPart>,
    /// What it means.
    #[schemars(default, length(max = 1_000))]
    description: String,
    /// The only values there are.
    #[schemars(default, rename = "enum")]
    one_of: Vec<ScalarPart>,
    /// What a text must look like.
    #[schemars(default)]
    pattern: String,
    /// The least number.
    #[schemars(default, with = "NumberPart")]
    min: Option<NumberPart>,
    /// The greatest number.
    #[schemars(default, with = "NumberPart")]
    max: Option<NumberPart>,
}

/// A number. Without a default of its own: a bound that is left out is none.
#[derive(JsonSchema)]
#[schemars(transparent)]
#[expect(dead_code, reason = "only its shape is used")]
struct NumberPart(f64);

/// A text, a number, or yes or no.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum ScalarPart {
    Text(String),
    Number(f64),
    Bool(bool),
}

/// The type of an argument.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum ArgumentTypeName {
    #[default]
    String,
    Number,
    Bool,
}

/// What a runbook does to the world.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum EffectName {
    Read,
    #[default]
    Change,
    Disrupt,
}

fn default_group() -> String {
    DEFAULT_GROUP.to_owned()
}

#[cfg(test)]
mod tests;
