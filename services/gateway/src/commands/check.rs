//! `check`: validates settings, tenant files and server files, and prints all errors at once.
//!
//! It recognises files by name: `*.toml` are settings, `servers.yaml` and `*.server.yaml` are servers, all others are tenant
//! files. It checks tenant files against the settings and servers on the same command line.

use crate::cli::{CheckCommand, OutputFormat};
use crate::commands::{CommandOutcome, print, print_json, runtime, say};
use crate::reach::EgressPolicy;
use crate::settings::Settings;
use crate::tenants;
use crate::toolsets::{ExternalServers, LocalParts, Toolsets, ToolsetsParts};
use executor::ServiceKeys;
use external::{CuratedSources, ServerCatalog, is_server_file};
use helm::client::Helm;
use std::path::{Path, PathBuf};
use store::{Config, Store};
use tenancy::Problem;
use vault::{Environment, Sealer, Vault};

pub(super) fn run(args: &CheckCommand, output: OutputFormat) -> anyhow::Result<CommandOutcome> {
    let toolsets = runtime()?.block_on(toolsets())?;
    let mut problems: Vec<Problem> =
        args.files.iter().filter(|file| is_settings(file)).filter_map(|f| settings_problem(f)).collect();
    // The settings limit what tenants may reach; without them only what no operator could allow is refused.
    let settings =
        args.files.iter().filter(|file| is_settings(file)).find_map(|file| Settings::read(Some(file), []).ok());
    let servers: Vec<PathBuf> = args.files.iter().filter(|file| is_server_file(file)).cloned().collect();
    let (curated, catalog_problems) = curated(settings.as_ref(), &servers);
    problems.extend(catalog_problems);
    let reach = settings.as_ref().map_or_else(EgressPolicy::unknown, EgressPolicy::of);
    let tenants: Vec<&PathBuf> = args.files.iter().filter(|file| !is_settings(file) && !is_server_file(file)).collect();
    tenants::with_known_names(&toolsets, &reach, &curated, |names| {
        for file in &tenants {
            match tenancy::read_file(file, names) {
                // Beside the answer: a file that is warned of is valid.
                Ok(config) => config.warnings.iter().for_each(|warning| say(&format!("warning: {warning}\n"))),
                Err(wrong) => problems.extend(wrong),
            }
        }
    });
    if settings.is_none() && servers.is_empty() && problems.iter().any(|problem| problem.code == "unknown_server") {
        say(
            "note: the command line has neither settings nor servers.yaml, so the catalog of external servers is empty\n",
        );
    }
    match output {
        OutputFormat::Json => print_json(&problems)?,
        OutputFormat::Text => {
            problems.iter().for_each(|problem| print(&format!("{problem}\n")));
            if problems.is_empty() {
                let (files, are) = if args.files.len() == 1 { ("file", "is") } else { ("files", "are") };
                print(&format!("{} {files} {are} valid\n", args.files.len()));
            }
        }
    }
    Ok(if problems.is_empty() { CommandOutcome::Done } else { CommandOutcome::Negative })
}

/// The operator's catalog: from the settings, and from further files.
pub(super) fn curated(settings: Option<&Settings>, files: &[PathBuf]) -> (ServerCatalog, Vec<Problem>) {
    let configured = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
    let sources = settings.map_or_else(CuratedSources::default, |settings| CuratedSources {
        dir: configured(&settings.upstreams.catalog),
        config: configured(&settings.upstreams.config),
        mcp_servers: None,
    });
    ServerCatalog::read_with(&sources, files)
}

/// What is wrong with a settings file; its parser stops at the first mistake.
fn settings_problem(file: &Path) -> Option<Problem> {
    let error = Settings::read(Some(file), []).err()?;
    let message = format!("{:#}", anyhow::Error::from(error));
    Some(Problem { file: file.display().to_string(), line: 1, column: 1, code: "settings", message, hint: None })
}

fn is_settings(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "toml")
}

/// The built-in tools, one by one.
pub(super) async fn builtin() -> anyhow::Result<Vec<std::sync::Arc<catalog::CatalogEntry>>> {
    Ok(toolsets().await?.tools().to_vec())
}

/// The toolsets, on a store that lives only as long as the command. Nothing is attached and nothing is called.
pub async fn toolsets() -> anyhow::Result<Toolsets> {
    let config = Config::at("memory:");
    let (store, secret) = (Store::open(&config).await?, [0; 32]);
    let vault = Vault::new(store.clone(), Sealer::new(&secret, &[])?, PathBuf::new(), Environment::default());
    let (settings, keys) = (Settings::defaults()?, ServiceKeys::derive(&secret)?);
    let (helm, local) = (Helm::absent(), LocalParts::default());
    let parts = ToolsetsParts { settings: &settings, store: &store, keys: &keys, vault: &vault, helm, local };
    Toolsets::build(parts, ExternalServers::Ignored)
}
