//! One runbook of the file.

use super::argument;
use super::command::{self, ValueKind};
use super::{DEFAULT_GROUP, DEFAULT_TIMEOUT, RUNBOOK, RunbookDefaults, TIMEOUT, WHERE};
use crate::declaration::{ClusterPlace, Runbook, RunbookPlace};
use crate::program_text::words_with_arguments;
use domain::job::RunnerLabel;
use domain::{Effect, ToolName};
use kubernetes::ClusterEntry;
use runbook::{RunbookText, variables};
use std::collections::BTreeMap;
use tenancy::values::or_nearest;
use tenancy::{MappingFields, SectionReader, YamlNode, shown};

/// The longest name of a runbook and of a group.
const NAME_CHARS: usize = 100;
/// How many variables a runbook may set.
const MOST_VARIABLES: usize = 64;
/// The longest path of a folder, and the longest name of an image.
const PATH_BYTES: usize = 500;

pub(super) fn runbook(reader: &mut SectionReader<'_>, node: &YamlNode, defaults: &RunbookDefaults) -> Option<Runbook> {
    let fields = reader.values.fields(node, "a runbook", &RUNBOOK, None)?;
    let name = match fields.find("name") {
        Some(node) => plain_name(reader, node, "`name`"),
        None => reader.values.missing(node, "name", "by which it becomes a tool"),
    };
    let group = match fields.find("group") {
        Some(node) => plain_name(reader, node, "`group`"),
        None => Some(defaults.group.clone().unwrap_or_else(|| DEFAULT_GROUP.to_owned())),
    };
    let described = fields.find("description").map(|node| reader.values.words(node, "`description`"));
    let place = place(reader, node, &fields, defaults);
    let (arguments, meanings) =
        fields.find("arguments").map_or_else(Default::default, |node| argument::arguments(reader, node));
    let (env, secrets) = fields.find("env").map_or_else(Default::default, |node| env(reader, node, &arguments));
    let timeout = fields.find("timeout").map(|node| reader.values.span(node, "timeout", &TIMEOUT));
    let directory = fields.find("directory").map(|node| directory(reader, node));
    let mut words = |key: &str| fields.find(key).map(|node| command::words(reader, node, key, &arguments));
    let (check, run, verify) = (words("check"), words("run"), words("verify"));
    let run = run.unwrap_or_else(|| reader.values.missing(node, "run", "with the command, one word each"));
    let text = RunbookText {
        group: group?,
        name: name?,
        arguments,
        env,
        check: flat(check)?,
        run: run?,
        verify: flat(verify)?,
        directory: flat(directory)?.or_else(|| defaults.directory.clone()),
        timeout_ms: millis(flat(timeout)?.unwrap_or(DEFAULT_TIMEOUT)),
    };
    warn(reader, &fields, &text);
    let place = place?;
    let effect = effect(reader, &fields, &text, &place)?;
    // The name of its tool depends on its neighbours, so it is given later.
    let tool = ToolName::parse("runbook").ok()?;
    Some(Runbook { tool, text, description: flat(described)?, meanings, effect, place, secrets })
}

/// What was read of a key that may be left out: `None` if it is there and wrong.
fn flat<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
        None => Some(None),
    }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A name that people read. It is made a tool's name later, whatever is in it; a slash would make `group/name` ambiguous.
fn plain_name(reader: &mut SectionReader<'_>, node: &YamlNode, place: &str) -> Option<String> {
    let text = reader.values.text(node, place)?;
    let fits = !text.trim().is_empty()
        && text.trim() == text
        && text.chars().count() <= NAME_CHARS
        && !text.chars().any(|c| c == '/' || c.is_control() || domain::text::is_tricky(c));
    let why = || format!("{place} is 1 to {NAME_CHARS} printable characters without a slash");
    reader.values.accept(node, fits.then(|| text.to_owned()).ok_or_else(why))
}

fn directory(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<String> {
    let text = reader.values.text(node, "`directory`")?;
    let plain = text.len() <= PATH_BYTES && !text.chars().any(char::is_control) && !text.contains("{{");
    let fits = plain && text.starts_with('/') && !text.split('/').any(|part| part == "..");
    let why = || "`directory` is an absolute path without `..` and without references".to_owned();
    reader.values.accept(node, fits.then(|| text.to_owned()).ok_or_else(why))
}

fn place(
    reader: &mut SectionReader<'_>,
    node: &YamlNode,
    fields: &MappingFields<'_>,
    defaults: &RunbookDefaults,
) -> Option<RunbookPlace> {
    let Some(node) = fields.find("where") else {
        return match &defaults.runner {
            Some(label) => Some(RunbookPlace::Runner(label.clone())),
            None => reader.values.missing(node, "where", "as `where: { runner: LABEL }`, or with a cluster"),
        };
    };
    let parts = reader.values.fields(node, "`where`", &WHERE, None)?;
    let beside = ["namespace", "image"].into_iter().any(|key| parts.find(key).is_some());
    match (parts.find("runner"), parts.find("cluster")) {
        (Some(label), None) if !beside => {
            let label = reader.values.label(label, "`runner`")?;
            RunnerLabel::parse(&label).map(RunbookPlace::Runner)
        }
        (None, Some(cluster)) => {
            let cluster = known_cluster(reader, cluster);
            let namespace = match parts.find("namespace") {
                Some(node) => reader.values.label(node, "`namespace`"),
                None => reader.values.missing(node, "namespace", "in which the Job is made"),
            };
            let image = match parts.find("image") {
                Some(node) => image(reader, node),
                None => reader.values.missing(node, "image", "that the Job runs"),
            };
            Some(RunbookPlace::Cluster(ClusterPlace { cluster: cluster?, namespace: namespace?, image: image? }))
        }
        (Some(_), Some(_) | None) | (None, None) => {
            let hint = "give `runner`, or `cluster` with `namespace` and `image`".to_owned();
            reader.values.report.add(node.at, "bad_value", "it is not clear where the runbook runs", Some(hint));
            None
        }
    }
}

fn known_cluster(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<String> {
    let name = reader.values.label(node, "`cluster`")?;
    let clusters = reader.earlier::<Vec<ClusterEntry>>(kubernetes::section::KEY, node).unwrap_or_default();
    if clusters.iter().any(|cluster| cluster.name == name) {
        return Some(name);
    }
    let names: Vec<&str> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    let hint = or_nearest(&name, &names, "the tenant's clusters");
    reader.values.report.add(node.at, "unknown_cluster", format!("the tenant has no cluster `{name}`"), Some(hint));
    None
}

fn image(reader: &mut SectionReader<'_>, node: &YamlNode) -> Option<String> {
    let text = reader.values.text(node, "`image`")?;
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'/' | b'@');
    let fits = (1..=PATH_BYTES).contains(&text.len()) && text.bytes().all(letter);
    let why = || format!("{} is no image", shown(text));
    reader.values.accept(node, fits.then(|| text.to_owned()).ok_or_else(why))
}

/// What it does to the world. A read runs without a person, so the operator has to vouch for it, and a Job that is made
/// in a cluster is a change whatever runs in it.
fn effect(
    reader: &mut SectionReader<'_>,
    fields: &MappingFields<'_>,
    text: &RunbookText,
    place: &RunbookPlace,
) -> Option<Effect> {
    let Some(node) = fields.find("effect") else { return Some(Effect::Change) };
    let words = [("read", Effect::Read), ("change", Effect::Change), ("disrupt", Effect::Disrupt)];
    let effect = reader.values.choice(node, "`effect`", &words)?;
    if effect != Effect::Read {
        return Some(effect);
    }
    if matches!(place, RunbookPlace::Cluster(_)) {
        let hint = "leave `effect` out, or let a runner run it".to_owned();
        let message = "a Job in a cluster is a change, so `effect` cannot be `read`";
        reader.values.report.add(node.at, "bad_value", message, Some(hint));
        return None;
    }
    let vouched = reader.may_reach(&text.full_name());
    if let Err(why) = vouched {
        let hint = "leave `effect` out: a person then approves each call".to_owned();
        let message = format!("`effect` cannot be `read`: {why}");
        reader.values.report.add(node.at, "not_vouched", message, Some(hint));
        return None;
    }
    Some(effect)
}

type Variables = (BTreeMap<String, String>, BTreeMap<String, String>);

/// The environment: values with places for arguments and secrets, and which secret stands for which parameter.
fn env(
    reader: &mut SectionReader<'_>,
    node: &YamlNode,
    arguments: &BTreeMap<String, runbook::ArgumentRule>,
) -> Variables {
    let (mut env, mut secrets) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in reader.values.entries(node, "`env`", MOST_VARIABLES) {
        if !variables::is_name(&key.text) || variables::is_reserved(&key.text) {
            let message = format!("a runbook cannot set the variable {}", shown(&key.text));
            let hint = "names are letters, digits and `_`; those that change what a command loads are not set, and \
                        those that begin with QM_ are the service's own";
            reader.values.report.add(key.at, "bad_value", message, Some(hint.to_owned()));
            continue;
        }
        let Some(text) = command::text(reader, value, ValueKind::Variable(&mut secrets), arguments) else { continue };
        env.insert(key.text.clone(), text);
    }
    (env, secrets)
}

/// Warns of arguments inside the text of a program.
fn warn(reader: &mut SectionReader<'_>, fields: &MappingFields<'_>, text: &RunbookText) {
    let run = Some(&text.run);
    for (key, command) in [("check", text.check.as_ref()), ("run", run), ("verify", text.verify.as_ref())] {
        let (Some(node), Some(command)) = (fields.find(key), command) else { continue };
        for n in words_with_arguments(command) {
            let at = node.items().get(n).map_or(node.at, |item| item.at);
            let message =
                format!("an argument stands inside the text of a program in `{key}`: its value is read as code");
            let hint = "let the text read the argument from its environment, such as \"$QM_ARG_KEY\"";
            reader.values.report.warn(at, "argument_in_program", message, Some(hint.to_owned()));
        }
    }
}
