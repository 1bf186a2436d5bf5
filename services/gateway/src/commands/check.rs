//! `check`: validates settings and tenant files, every error at once.

use crate::cli::{Check, Output};
use crate::commands::{Ended, print, runtime};
use crate::settings::Settings;
use crate::targets::Reach;
use crate::tenants;
use std::path::Path;
use store::{Config, Store};
use tenancy::{Known, Problem};
use tools::{Kit, Toolbox};

pub(super) fn run(args: &Check, output: Output) -> anyhow::Result<Ended> {
    let tools = runtime()?.block_on(builtin())?;
    let (toolsets, names) = tenants::known(&tools);
    // Settings among the files say what tenants may reach; without them only what no operator could allow is refused.
    let settings =
        args.files.iter().filter(|file| is_settings(file)).find_map(|file| Settings::read(Some(file), []).ok());
    let reach = settings.as_ref().map_or_else(Reach::unknown, Reach::of);
    let (server, charts) = (|address: &str| reach.server(address), |address: &str| reach.charts(address));
    let known = Known { toolsets: &toolsets, tools: &names, server: &server, charts: &charts };
    let problems: Vec<Problem> = args.files.iter().flat_map(|file| check(file, &known)).collect();
    match output {
        Output::Json => print(&format!("{}\n", serde_json::to_string_pretty(&problems)?)),
        Output::Text => {
            problems.iter().for_each(|problem| print(&format!("{problem}\n")));
            if problems.is_empty() {
                print(&format!("{} fine\n", args.files.len()));
            }
        }
    }
    Ok(if problems.is_empty() { Ended::Well } else { Ended::WithNo })
}

fn check(file: &Path, known: &Known<'_>) -> Vec<Problem> {
    if is_settings(file) {
        return match Settings::read(Some(file), []) {
            Ok(_) => Vec::new(),
            Err(error) => vec![Problem {
                file: file.display().to_string(),
                line: 1,
                column: 1,
                code: "settings",
                message: format!("{:#}", anyhow::Error::from(error)),
                hint: None,
            }],
        };
    }
    tenancy::read_file(file, known).err().unwrap_or_default()
}

fn is_settings(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "toml")
}

/// The built-in tools, on a store that lives only as long as the command.
pub(super) async fn builtin() -> anyhow::Result<Vec<std::sync::Arc<catalog::Entry>>> {
    let config = Config {
        url: "memory:".to_owned(),
        prefix: "qm".to_owned(),
        deadline: std::time::Duration::from_secs(1),
        accept_unsafe: true,
        confirm_replicas: store::Confirm::Auto,
    };
    // Nothing is called here: the tools are only looked at.
    let kit = Kit::to_look_at(Store::open(&config).await?)?;
    Ok(Toolbox::new(&kit)?.every().to_vec())
}
