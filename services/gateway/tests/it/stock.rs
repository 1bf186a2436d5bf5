//! A tenant with tools of the test's own: one that answers, one that waits to be released, one that panics.
//!
//! They take the ordinary path; only the catalog is the test's. No file configures this tenant.

use crate::here::World;
use catalog::{CatalogEntry, ErasedCall, ErasedTool, Progress, ToolDefinition, ToolFuture, ToolSource};
use domain::{Effect, Failure, Tenant, ToolName, ToolOutput, ToolsetName};
use gateway::app::Gateway;
use policy::Permit;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use testkit::patience::in_time;
use tokio::sync::Semaphore;

/// The tenant's name.
pub(crate) const TENANT: &str = "stock";

/// What the waiting tool does, counted where it happens.
#[derive(Clone)]
pub(crate) struct Hold {
    entered: Arc<Semaphore>,
    release: Arc<Semaphore>,
    finished: Arc<Semaphore>,
    dropped: Arc<Semaphore>,
}

impl Hold {
    fn new() -> Hold {
        let none = || Arc::new(Semaphore::new(0));
        Hold { entered: none(), release: none(), finished: none(), dropped: none() }
    }

    /// Waits until that many calls are inside.
    pub(crate) async fn entered(&self, calls: u32) {
        count(&self.entered, calls, "calls to begin").await;
    }

    /// Lets that many calls go on.
    pub(crate) fn release(&self, calls: usize) {
        self.release.add_permits(calls);
    }

    /// Waits until one call has run to its end.
    pub(crate) async fn finished(&self) {
        count(&self.finished, 1, "a call to run to its end").await;
    }

    /// Waits until one call was taken down before its end.
    pub(crate) async fn dropped(&self) {
        count(&self.dropped, 1, "a call to be taken down").await;
    }

    /// How many calls were taken down so far.
    pub(crate) fn taken_down(&self) -> usize {
        self.dropped.available_permits()
    }
}

async fn count(semaphore: &Semaphore, calls: u32, what: &str) {
    in_time(what, semaphore.acquire_many(calls)).await.unwrap().forget();
}

/// Gives every replica of a world the tenant, and its waiting tool to the test.
pub(crate) fn install(world: &World, replicas: usize) -> Hold {
    let hold = Hold::new();
    for replica in 0..replicas {
        set(world.part(replica), tools(&hold));
    }
    hold
}

/// Gives a replica the tenant with that many tools.
pub(crate) fn install_wide(gateway: &Gateway, tools: usize) {
    set(gateway, (0..tools).map(|n| entry(&format!("tool_{n:03}"), None, Arc::new(Quick))).collect());
}

fn set(gateway: &Gateway, tools: Vec<Arc<CatalogEntry>>) {
    gateway.tenants.set_fixed(&Tenant::parse(TENANT).unwrap(), tools);
}

fn tools(hold: &Hold) -> Vec<Arc<CatalogEntry>> {
    vec![
        entry("quick", None, Arc::new(Quick)),
        entry("hold", None, Arc::new(hold.clone())),
        entry("linger", None, Arc::new(hold.clone())),
        entry("boom", None, Arc::new(Boom)),
        entry("needy", Some("sampling"), Arc::new(Quick)),
    ]
}

/// A tool that answers, as a server outside would define it.
pub(crate) fn outside(definition: ToolDefinition) -> Arc<CatalogEntry> {
    Arc::new(CatalogEntry::new(definition, Arc::new(Quick)).unwrap())
}

fn entry(name: &str, needs_client: Option<&'static str>, kit: Arc<dyn ErasedTool>) -> Arc<CatalogEntry> {
    let schema =
        json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "additionalProperties": false });
    let definition = ToolDefinition {
        name: ToolName::parse(name).unwrap(),
        toolset: ToolsetName::parse(TENANT).unwrap(),
        title: name.to_owned(),
        description: "A tool of the tests.".to_owned(),
        hint: None,
        source: ToolSource::BuiltIn,
        most: Effect::Read,
        idempotent: true,
        open_world: false,
        deadline: Duration::from_secs(60),
        outside_text: false,
        reviewed: None,
        waits: name == "linger",
        wire: schema.to_string(),
        strict: schema,
        output: None,
        needs_client,
    };
    Arc::new(CatalogEntry::new(definition, kit).unwrap())
}

type Understood = Result<(Effect, Option<String>, Box<dyn ErasedCall>), Failure>;

fn done() -> ToolOutput {
    ToolOutput::structured(r#"{"done":true}"#.to_owned())
}

#[derive(Clone, Copy)]
struct Quick;

impl ErasedCall for Quick {
    fn run<'a>(self: Box<Self>, _: &'a Permit, _: &'a Progress) -> ToolFuture<'a> {
        Box::pin(std::future::ready(Ok(done())))
    }
}

impl ErasedTool for Quick {
    fn understand(self: Arc<Self>, _: Value) -> Understood {
        Ok((Effect::Read, None, Box::new(*self)))
    }
}

#[derive(Clone, Copy)]
struct Boom;

impl ErasedCall for Boom {
    fn run<'a>(self: Box<Self>, _: &'a Permit, _: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async { panic!("a tool of the tests panics as it should") })
    }
}

impl ErasedTool for Boom {
    fn understand(self: Arc<Self>, _: Value) -> Understood {
        Ok((Effect::Read, None, Box::new(*self)))
    }
}

impl ErasedCall for Hold {
    fn run<'a>(self: Box<Self>, _: &'a Permit, _: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move {
            let mut inside = Inside { hold: self.as_ref().clone(), ended: false };
            self.entered.add_permits(1);
            self.release.acquire().await.expect("it is never closed").forget();
            inside.ended = true;
            Ok(done())
        })
    }
}

impl ErasedTool for Hold {
    fn understand(self: Arc<Self>, _: Value) -> Understood {
        Ok((Effect::Read, None, Box::new(self.as_ref().clone())))
    }
}

/// Tells how a call ended, also when it was simply dropped.
struct Inside {
    hold: Hold,
    ended: bool,
}

impl Drop for Inside {
    fn drop(&mut self) {
        let counter = if self.ended { &self.hold.finished } else { &self.hold.dropped };
        counter.add_permits(1);
    }
}
