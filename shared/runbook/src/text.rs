//! A runbook without values, and what it resolves to with them.

use crate::{ArgumentRule, Template, TemplateError, variables};
use domain::job::JobVariable;
use domain::json::{canonical, sha256_hex};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything of a runbook that decides what is executed. Its canonical JSON is what a runner's owner pins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunbookText {
    /// The group it belongs to.
    pub group: String,
    /// Its name within the group.
    pub name: String,
    /// Its arguments.
    #[serde(default)]
    pub arguments: BTreeMap<String, ArgumentRule>,
    /// Its environment: templates with arguments and parameters.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Exit 0: it is done already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Vec<String>>,
    /// The command: templates with arguments.
    pub run: Vec<String>,
    /// Exit 0: it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Vec<String>>,
    /// Where the commands begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// How long all commands together may take, in milliseconds.
    pub timeout_ms: u64,
}

/// A runbook with all values in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRunbook {
    /// As in the text.
    pub check: Option<Vec<String>>,
    /// As in the text.
    pub run: Vec<String>,
    /// As in the text.
    pub verify: Option<Vec<String>>,
    /// The environment, with each argument as `QM_ARG_NAME`. A value that holds a parameter is a secret.
    pub env: BTreeMap<String, JobVariable>,
    /// The arguments, defaults included.
    pub arguments: BTreeMap<String, String>,
}

/// Why a runbook cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such argument.
    #[error("there is no argument {0}")]
    NoSuchArgument(String),
    /// It has to be given.
    #[error("the argument {0} is missing")]
    Missing(String),
    /// It may not have this value.
    #[error("the argument {name} {must}")]
    BadValue {
        /// Which argument.
        name: String,
        /// What it must be.
        must: String,
    },
    /// A template names a value that there is not.
    #[error("{0} has no value")]
    NoValue(String),
    /// A command or variable is no template.
    #[error("a template cannot be read")]
    Template(#[from] TemplateError),
    /// Parameters are for the environment alone: everybody on a host sees the arguments of a process.
    #[error("a parameter stands in a command; use it in env")]
    ParamInCommand,
    /// The environment has a name that nobody may set.
    #[error("the variable {0} may not be set")]
    Reserved(String),
}

impl RunbookText {
    /// As `group/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// The one spelling of the text.
    pub fn canonical(&self) -> String {
        serde_json::to_value(self).map(|value| canonical(&value)).unwrap_or_default()
    }

    /// SHA-256 over the canonical text, as `sha256:<hex>`.
    pub fn digest(&self) -> String {
        format!("sha256:{}", sha256_hex(self.canonical().as_bytes()))
    }

    /// Fills in arguments and parameters.
    pub fn resolve(
        &self,
        arguments: &BTreeMap<String, String>,
        params: &BTreeMap<String, String>,
    ) -> Result<ResolvedRunbook, ResolveError> {
        let arguments = self.judged(arguments)?;
        let command = |argv: &Vec<String>| -> Result<Vec<String>, ResolveError> {
            argv.iter().map(|element| element_of(element, &arguments)).collect()
        };
        let (check, run) = (self.check.as_ref().map(command).transpose()?, command(&self.run)?);
        let verify = self.verify.as_ref().map(command).transpose()?;
        let mut env = BTreeMap::new();
        for (name, value) in &self.env {
            if variables::is_reserved(name) || !variables::is_name(name) {
                return Err(ResolveError::Reserved(name.clone()));
            }
            let template = Template::parse(value)?;
            let secret = template.params().next().is_some();
            let value = template.render(&arguments, params).map_err(ResolveError::NoValue)?;
            env.insert(name.clone(), JobVariable { value, secret });
        }
        let of_argument = |(name, value): (&String, &String)| {
            (variables::of_argument(name), JobVariable { value: value.clone(), secret: false })
        };
        env.extend(arguments.iter().map(of_argument));
        Ok(ResolvedRunbook { check, run, verify, env, arguments })
    }

    /// The arguments with their defaults, each found to be one it may be.
    fn judged(&self, given: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, ResolveError> {
        if let Some(name) = given.keys().find(|name| !self.arguments.contains_key(*name)) {
            return Err(ResolveError::NoSuchArgument(name.chars().take(64).collect()));
        }
        let mut judged = BTreeMap::new();
        for (name, rule) in &self.arguments {
            let Some(value) = given.get(name).or(rule.default.as_ref()) else {
                if rule.required {
                    return Err(ResolveError::Missing(name.clone()));
                }
                continue;
            };
            rule.judge(value).map_err(|must| ResolveError::BadValue { name: name.clone(), must })?;
            judged.insert(name.clone(), value.clone());
        }
        Ok(judged)
    }
}

fn element_of(element: &str, arguments: &BTreeMap<String, String>) -> Result<String, ResolveError> {
    let template = Template::parse(element)?;
    if template.params().next().is_some() {
        return Err(ResolveError::ParamInCommand);
    }
    template.render(arguments, &BTreeMap::new()).map_err(ResolveError::NoValue)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn text() -> RunbookText {
        let region = ArgumentRule { default: Some("eu".into()), ..ArgumentRule::default() };
        let key = ArgumentRule { required: true, ..ArgumentRule::default() };
        RunbookText {
            group: "shop".into(),
            name: "seed".into(),
            arguments: [("key".to_owned(), key), ("region".to_owned(), region)].into(),
            env: values(&[("TOKEN", "{{ params.token }}"), ("AT", "{{ args.region }}")]),
            run: vec!["/opt/seed".into(), "--key={{ args.key }}".into()],
            timeout_ms: 1_000,
            ..RunbookText::default()
        }
    }

    #[test]
    fn an_argument_is_a_part_of_one_word_and_stands_in_the_environment() {
        let nasty = "a b\"; rm -rf / #\n$(id)";
        let resolved = text().resolve(&values(&[("key", nasty)]), &values(&[("token", "hunter22")])).unwrap();
        assert_eq!(resolved.run, ["/opt/seed".to_owned(), format!("--key={nasty}")]);
        let shown: Vec<(&str, &str, bool)> = resolved
            .env
            .iter()
            .map(|(name, variable)| (name.as_str(), variable.value.as_str(), variable.secret))
            .collect();
        assert_eq!(
            shown,
            [
                ("AT", "eu", false),
                ("QM_ARG_KEY", nasty, false),
                ("QM_ARG_REGION", "eu", false),
                ("TOKEN", "hunter22", true)
            ]
        );
    }

    #[test]
    fn what_cannot_be_resolved_says_why() {
        let params = values(&[("token", "x")]);
        assert_eq!(text().resolve(&values(&[]), &params), Err(ResolveError::Missing("key".into())));
        let unknown = text().resolve(&values(&[("key", "a"), ("kye", "b")]), &params);
        assert_eq!(unknown, Err(ResolveError::NoSuchArgument("kye".into())));
        let no_secret = text().resolve(&values(&[("key", "a")]), &values(&[]));
        assert_eq!(no_secret, Err(ResolveError::NoValue("params.token".into())));
        let loud = RunbookText { run: vec!["x".into(), "{{ params.token }}".into()], ..text() };
        assert_eq!(loud.resolve(&values(&[("key", "a")]), &params), Err(ResolveError::ParamInCommand));
        let path = RunbookText { env: values(&[("LD_PRELOAD", "x")]), ..text() };
        assert_eq!(path.resolve(&values(&[("key", "a")]), &params), Err(ResolveError::Reserved("LD_PRELOAD".into())));
    }

    #[test]
    fn the_digest_is_of_everything_that_decides_what_is_executed() {
        let digest = text().digest();
        assert_eq!(text().digest(), digest);
        let read: RunbookText = serde_json::from_str(&text().canonical()).unwrap();
        assert_eq!(read.digest(), digest);
        for other in [
            RunbookText { name: "other".into(), ..text() },
            RunbookText { run: vec!["/opt/seed".into()], ..text() },
            RunbookText { check: Some(vec!["true".into()]), ..text() },
            RunbookText { verify: Some(vec!["true".into()]), ..text() },
            RunbookText { env: BTreeMap::new(), ..text() },
            RunbookText { arguments: BTreeMap::new(), ..text() },
            RunbookText { directory: Some("/".into()), ..text() },
            RunbookText { timeout_ms: 2_000, ..text() },
        ] {
            assert_ne!(other.digest(), digest);
        }
    }
}
