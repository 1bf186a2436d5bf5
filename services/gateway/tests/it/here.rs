//! How replicas are started here: inside the test's own process, or as the real program.

use gateway::app::Gateway;
use gateway::server;
use gateway::settings::Settings;
use std::sync::Arc;
use testkit::world::Work;
use testkit::{Answer, Leftovers, Plan, Process, Replica, Start};

/// A world whose replicas can be reached into.
pub(crate) type World = testkit::World<Arc<Gateway>>;

/// One replica with its state in memory.
pub(crate) async fn embedded() -> World {
    Plan::embedded().start(in_process()).await
}

/// The same, with something to draw besides memory.
pub(crate) async fn with_more_to_draw() -> World {
    let more = "toolsets: { jenkins: { url: 'https://ci.example', user: robot, token: { secret: ci } } }";
    Plan::embedded().tenant("acme", more).start(in_process()).await
}

/// That many replicas on one Redis.
pub(crate) async fn redis(replicas: usize) -> World {
    Plan::redis(replicas).start(in_process()).await
}

/// Replicas as part of the test's process.
pub(crate) fn in_process() -> Start<Arc<Gateway>> {
    Arc::new(|setup| {
        Box::pin(async move {
            // The first test installs it for all of them.
            rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
            let gateway = Gateway::build(Settings::read(Some(&setup.config), setup.environment)?).await?;
            let running = server::start(&gateway)?;
            let (address, stopping) = (running.address, Arc::clone(&gateway));
            let stop = move || -> Work<Leftovers> {
                Box::pin(async move {
                    running.stop().await;
                    Leftovers { receipts: stopping.store.open_receipts(), tasks: stopping.tasks.len() }
                })
            };
            Ok(Replica { address, part: gateway, stop: Box::new(stop) })
        })
    })
}

/// Replicas as processes of their own, which can be killed.
pub(crate) fn processes() -> Start<Process> {
    Process::starter(env!("CARGO_BIN_EXE_quartermaster"))
}

/// Status and body in one line, with the trace id blanked.
pub(crate) fn told(answer: &Answer) -> String {
    let (status, body) = answer.anonymous();
    format!("{status} {body}").trim_end().to_owned()
}

/// The default list of a legacy session.
pub(crate) const DEFAULT: [&str; 5] = ["memory_search", "memory_read", "memory_list", "memory_history", "load_toolset"];

/// The list of a legacy session that has loaded `memory:write`.
pub(crate) const GROWN: [&str; 12] = [
    "memory_search",
    "memory_read",
    "memory_list",
    "memory_history",
    "load_toolset",
    "await_run",
    "unload_toolset",
    "search_tools",
    "memory_remember",
    "memory_patch",
    "memory_propose_promotion",
    "memory_forget",
];

/// The virtual tools of a legacy session once it has loaded anything.
pub(crate) const MANAGING: [&str; 4] = ["load_toolset", "await_run", "unload_toolset", "search_tools"];

/// The list of the modern era, and of requests without a session.
pub(crate) const FIXED: [&str; 7] =
    ["memory_search", "memory_read", "memory_list", "memory_history", "load_toolset", "call_tool", "await_run"];

/// The part of that list which no toolset brings.
pub(crate) const FIXED_VIRTUAL: [&str; 3] = ["load_toolset", "call_tool", "await_run"];
