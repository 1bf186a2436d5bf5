//! The Kubernetes operator: tools run, and reach the agents that use them.
//!
//! Reading order: [`resources`] (what people write: `LanguageTool`, `LanguageAgent`), [`names`] (labels and the names of
//! what is made), [`apply`] (writes to the API server, none where nothing changed), [`status`] (conditions), then the two
//! controllers: [`tool`] (Deployment, Service, NetworkPolicy, list of tools) and [`agent`] (the agent's Deployment with
//! endpoints and sidecars). [`discover`] asks a tool what it offers, [`lease`] lets one operator of several act,
//! [`context`] is what reconciling needs, [`serve`] answers `/metrics` and `/healthz`, and [`run`](mod@run) starts all of it.
//!
//! Reconciling takes no input: it reads what is wanted and what is there, and writes the difference. Whatever is lost, an
//! event, an answer or the process, costs another look.
//!
//! Not here: traffic. Agents speak to tools themselves; the operator sees none of it.

pub mod agent;
pub mod apply;
pub mod cli;
pub mod context;
pub mod discover;
pub mod lease;
pub mod names;
pub mod resources;
pub mod run;
pub mod serve;
pub mod status;
pub mod tool;
