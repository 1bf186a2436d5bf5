//! Whether a job is what the text of its runbook says: asked by a runner whose owner pinned that text.

use crate::{ResolveError, RunbookText, Template, variables};
use domain::job::{JobSpec, JobVariable};
use std::collections::BTreeMap;

/// Why a job does not follow from the text it carries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The text cannot be read.
    #[error("the text of the runbook cannot be read")]
    Text,
    /// The text is that of another runbook.
    #[error("the text is that of another runbook")]
    Name,
    /// The arguments are none that the text allows.
    #[error("the arguments do not fit the runbook")]
    Arguments(#[source] ResolveError),
    /// A command is another one than the text gives with these arguments.
    #[error("{0} is not what the runbook gives with these arguments")]
    Differs(&'static str),
    /// A variable that the text does not have, or not with this value.
    #[error("the variable {0} is not what the runbook gives")]
    Variable(String),
}

impl RunbookText {
    /// Reads the text of a job and holds the job to it. Parameters may have any value where the text has a place for them.
    pub fn admitted(spec: &JobSpec) -> Result<RunbookText, NotAdmitted> {
        let text: RunbookText = serde_json::from_str(&spec.text).map_err(|_| NotAdmitted::Text)?;
        if text.full_name() != spec.runbook {
            return Err(NotAdmitted::Name);
        }
        text.admit(spec)?;
        Ok(text)
    }

    fn admit(&self, spec: &JobSpec) -> Result<(), NotAdmitted> {
        // Values of parameters are not known here; the variables that hold them are judged apart.
        let plain = RunbookText { env: BTreeMap::new(), ..self.clone() };
        let resolved = plain.resolve(&spec.arguments, &BTreeMap::new()).map_err(NotAdmitted::Arguments)?;
        let same = |what, is: bool| if is { Ok(()) } else { Err(NotAdmitted::Differs(what)) };
        same("check", spec.check == resolved.check)?;
        // A job that only checks has neither.
        let only_checks = spec.run.is_none() && spec.verify.is_none() && spec.check.is_some();
        same("run", only_checks || spec.run.as_ref() == Some(&resolved.run))?;
        same("verify", only_checks || spec.verify == resolved.verify)?;
        same("directory", spec.directory == self.directory)?;
        same("timeout", spec.timeout_ms <= self.timeout_ms)?;
        for (name, variable) in &spec.env {
            if !self.gives(name, variable, &resolved.arguments) {
                return Err(NotAdmitted::Variable(name.chars().take(64).collect()));
            }
        }
        Ok(())
    }

    fn gives(&self, name: &str, variable: &JobVariable, arguments: &BTreeMap<String, String>) -> bool {
        if let Some((_, value)) = arguments.iter().find(|(argument, _)| variables::of_argument(argument) == name) {
            return variable.value == *value;
        }
        let Some(Ok(template)) = self.env.get(name).map(|text| Template::parse(text)) else { return false };
        !variables::is_reserved(name) && template.fits(&variable.value, arguments)
    }
}
