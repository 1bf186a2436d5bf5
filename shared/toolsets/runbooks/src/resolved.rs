//! One call of a runbook: what was given, and the commands and variables that come of it.

use crate::arguments::{self, GivenArguments};
use crate::declaration::Runbook;
use domain::job::JobVariable;
use domain::{Code, Failure};
use redact::{KeptSecret, NotAtHand};
use runbook::{ResolveError, ResolvedRunbook};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One call with its arguments.
#[derive(Debug, Clone)]
pub struct ResolvedCall {
    /// The runbook.
    pub runbook: Arc<Runbook>,
    /// What the caller gave.
    pub given: GivenArguments,
    /// What comes of it; variables that hold a secret are empty.
    pub resolved: ResolvedRunbook,
}

impl ResolvedCall {
    /// Reads the arguments of a call, which fit the strict schema, and fills them in.
    pub fn new(runbook: &Arc<Runbook>, arguments: &Map<String, Value>) -> Result<ResolvedCall, Failure> {
        let given = arguments::given(runbook, arguments)?;
        let empty = runbook.secrets.keys().map(|param| (param.clone(), String::new())).collect();
        let mut resolved = runbook.text.resolve(&given.values, &empty).map_err(|error| told(&error))?;
        for (name, value) in &given.overlay {
            resolved.env.insert(name.clone(), JobVariable { value: value.clone(), secret: false });
        }
        Ok(ResolvedCall { runbook: Arc::clone(runbook), given, resolved })
    }

    /// The tenant's secret that stands for a variable, by name.
    pub fn secret_of(&self, variable: &str) -> Option<&str> {
        if self.given.overlay.contains_key(variable) {
            return None;
        }
        let text = self.runbook.text.env.get(variable)?;
        let param = text.strip_prefix("{{ params.")?.strip_suffix(" }}")?;
        self.runbook.secrets.get(param).map(String::as_str)
    }

    /// The environment with the tenant's secrets in it, for whoever executes the commands.
    pub fn environment(
        &self,
        secrets: &BTreeMap<String, KeptSecret>,
    ) -> Result<BTreeMap<String, JobVariable>, Failure> {
        let mut env = self.resolved.env.clone();
        for (name, variable) in &mut env {
            let Some(secret) = self.secret_of(name) else { continue };
            let kept = secrets.get(secret).map_or(Err(NotAtHand::Gone), KeptSecret::read);
            let value = kept.map_err(|why| match why {
                NotAtHand::Gone => Failure::new(Code::UnknownCredential, format!("the tenant has no secret {secret}"))
                    .next("nothing was executed; ask an admin of the tenant to set it"),
                NotAtHand::Unreadable => {
                    Failure::new(Code::UnknownCredential, format!("the secret {secret} cannot be read just now"))
                        .next("nothing was executed; call again later")
                }
            })?;
            *variable = JobVariable { value: value.expose().to_owned(), secret: true };
        }
        Ok(env)
    }
}

fn told(error: &ResolveError) -> Failure {
    match error {
        ResolveError::NoSuchArgument(_) | ResolveError::Missing(_) | ResolveError::BadValue { .. } => {
            arguments::wrong(&error.to_string())
        }
        // The file was checked, so these cannot be met; if one is, nothing runs.
        ResolveError::NoValue(_)
        | ResolveError::Template(_)
        | ResolveError::ParamInCommand
        | ResolveError::Reserved(_) => Failure::new(Code::Internal, format!("the runbook cannot be resolved: {error}")),
    }
}
