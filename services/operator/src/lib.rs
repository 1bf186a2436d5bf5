//! The Kubernetes operator: tools run and reach the agents that use them, and tenants of the gateway are resources.
//!
//! Reading order: [`resources`] (what people write: `LanguageTool`, `LanguageAgent`, `Tenant`, `ServerEntry`), [`names`] (labels and the names of
//! what is made), [`apply`] (writes to the API server, none where nothing changed), [`status`] (conditions), then the
//! controllers: [`tool`] (Deployment, Service, NetworkPolicy, list of tools) and [`agent`] (the agent's Deployment with
//! endpoints and sidecars) and [`tenant`] (the text of a tenant's file, and what became of it). [`sync`] is another program
//! of the same binary: it stands beside each replica of the gateway and writes that text into its folder. [`discover`] asks a tool what it offers, [`lease`] lets one operator of several act,
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
pub mod sync;
pub mod tenant;
pub mod tool;
