//! A call to an external server by way of the service, against the same call to the same server by the same client.
//!
//! What the service adds does not depend on how long the server works, so the ratio does: a server that does nothing shows
//! what the way costs at the least, and has no aim. One that takes as long as a query of a database, and a real one where
//! its address is given, are held to the aim. Each is measured on one connection, where nothing but the way is waited for,
//! and on many.
//!
//! Reading order: [`server`] (who is called), [`stand`] (by which way), [`table`] (what is aimed at).

pub(crate) mod server;
mod stand;
mod table;

use crate::contender::OwnRedis;
use crate::options::{LoadOptions, Proxied};
use crate::plan::quartermaster;
use crate::report;
use crate::versus::{self, Effort};
use anyhow::Context;
use server::{CallTarget, CalledServer};
use stand::ProxiedStand;
use std::time::Duration;
use table::ProxiedRow;

/// How long a server works that is neither idle nor slow.
const WORK: Duration = Duration::from_millis(5);

/// Measures every server, prints the table, and gives how many aims were missed.
pub(crate) async fn run(options: &LoadOptions, asked: &Proxied) -> anyhow::Result<usize> {
    let program = quartermaster(options)?;
    let redis = OwnRedis::start(&options.redis).await?;
    if cfg!(debug_assertions) {
        report::print("This is a debug build: the way is slow, and the ratios say nothing. Use --profile dist.\n");
    }
    let mut servers = vec![
        ("does nothing", CalledServer::start(Duration::ZERO).await?),
        ("works for 5 ms", CalledServer::start(WORK).await?),
    ];
    if let Some(url) = &asked.upstream {
        let called = CallTarget::read(url, &asked.tool, &asked.arguments)?;
        servers.push(("real", CalledServer::elsewhere(called)));
    }
    report::print(table::HEAD);
    let mut missed = 0;
    for (name, server) in &servers {
        let stand = ProxiedStand::start(&program, &redis.url, server)
            .await
            .with_context(|| format!("the server that {name}"))?;
        for connections in [1, options.connections] {
            let effort = Effort { span: Duration::from_secs(options.seconds), connections };
            let (ours, theirs) = stand.sides();
            let verdict = versus::compare(&ours, &theirs, effort).await.with_context(|| format!("server: {name}"))?;
            // What the way costs at the least is told, not judged: nobody asks a server that does nothing.
            let aim = (server.works()).then_some(table::AIM);
            let row = ProxiedRow { server: name, connections, aim, verdict };
            report::print(&row.line());
            missed += usize::from(row.missed());
        }
    }
    report::print(table::FOOT);
    Ok(missed)
}
