//! The `quartermaster` binary.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The one TLS provider, before anything could ask for one.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        return ExitCode::from(2);
    }
    // Which lines a test wants to stop at. There are none in a release build, and nobody looks then.
    let _stops = fail::has_failpoints().then(fail::FailScenario::setup);
    gateway::commands::run(gateway::cli::Cli::parse())
}
