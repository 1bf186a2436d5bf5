//! A runbook as its author wrote it: arguments, templates, the commands they resolve to, and the digest that pins it.
//!
//! Reading order: [`RunbookText`] is the whole; [`ArgumentRule`] says what an argument may be; `template` fills values in;
//! [`variables`] says which names of the environment nobody may set; `admit` holds a job to the text it came from.
//!
//! The service resolves a runbook with this crate, and a runner whose owner pinned the text resolves it again: what is
//! executed is then what was written down, whatever the service says.
//!
//! Not here: YAML with positions, tools and previews (see the toolset); executing anything (see `runner`). No I/O.

mod admit;
mod argument;
mod template;
mod text;
pub mod variables;

pub use admit::NotAdmitted;
pub use argument::{ArgumentKind, ArgumentRule};
pub use template::{Template, TemplateError};
pub use text::{ResolveError, ResolvedRunbook, RunbookText};
