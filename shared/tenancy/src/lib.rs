//! Tenant configuration: text in, checked configuration or every problem with its line and column out.
//!
//! Reading order: [`config`] (what a tenant may say), [`params`] and [`template`] (values that the file refers to),
//! [`section`] (the part of a file that one toolset owns), [`problem`] (how a mistake is told), [`values`] (one value),
//! [`check`] (one text), [`book`] (a folder of files), [`trace`](mod@trace) (where rules stand), [`schema`] (the same rules
//! for editors), [`bounds`] (what a text over HTTP may say beside the file). Beneath them [`yaml`] turns text into a tree that knows where each value stands, within fixed budgets.
//!
//! Not here: what a toolset's own part of the file may say (see the toolsets), network, clocks, watching for changes, and
//! what a rule means for a call (see [`policy`]).

pub mod book;
pub mod bounds;
pub mod check;
pub mod config;
pub mod environment;
pub mod params;
pub mod problem;
pub mod schema;
pub mod section;
pub mod template;
pub mod trace;
pub mod values;
pub mod yaml;

pub use book::{ConfiguredTenant, FolderReading, TenantFiles, read_file, text_digest};
pub use bounds::{Excess, SecretUse, exceeding, listed, secret_uses};
pub use check::{AddressCheck, AddressUse, KnownNames, parse, parse_section};
pub use config::{ApprovalConfig, AuditConfig, AuditContents, TenantConfig, TenantLimits, UnwritableAudit};
pub use params::{ParameterValue, TenantParam};
pub use problem::{Position, Problem, ProblemReport, shown};
pub use schema::{OnRejectName, SecretValue, json_schema};
pub use section::{Place, Section, SectionProblem, SectionReader, SectionTypeError, SectionValues, ToolFamily};
pub use template::ParameterTemplate;
pub use trace::{RuleAt, RuleKind, trace};
pub use values::{MappingFields, ValueReader};
pub use yaml::{YamlKey, YamlNode, YamlValue};
