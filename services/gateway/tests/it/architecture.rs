//! `docs/ARCHITECTURE.md` is true: its tables are what the code says, and every name in it exists.

use clap::CommandFactory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn map() -> String {
    std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap()
}

/// The cells of each row of the table under a heading.
fn table(text: &str, heading: &str, number: usize) -> Vec<Vec<String>> {
    let section = text.split(&format!("\n## {heading}")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let mut tables: Vec<Vec<Vec<String>>> = Vec::new();
    let mut open = false;
    for line in section.lines() {
        if !line.starts_with('|') {
            open = false;
            continue;
        }
        if !open {
            tables.push(Vec::new());
            open = true;
        }
        let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        tables.last_mut().unwrap().push(cells);
    }
    tables.remove(number).split_off(2)
}

fn toml(path: &Path) -> toml::Table {
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn members() -> BTreeMap<String, (String, toml::Table)> {
    let workspace = toml(&root().join("Cargo.toml"));
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let read = |member: &toml::Value| {
        let folder = member.as_str().unwrap().to_owned();
        let manifest = toml(&root().join(&folder).join("Cargo.toml"));
        (manifest["package"]["name"].as_str().unwrap().to_owned(), (folder, manifest))
    };
    members.iter().map(read).collect()
}

#[test]
fn every_third_party_is_pinned_to_the_version_of_the_lock_file() {
    let workspace = toml(&root().join("Cargo.toml"));
    let lock = toml(&root().join("Cargo.lock"));
    let text = |value: &toml::Value, key: &str| value[key].as_str().unwrap().to_owned();
    let locked: BTreeSet<(String, String)> = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            let version = text(package, "version").split('+').next().unwrap().to_owned();
            (text(package, "name"), version)
        })
        .collect();
    let mut third_parties = 0;
    for (name, dependency) in workspace["workspace"]["dependencies"].as_table().unwrap() {
        let version = dependency.as_str().or_else(|| dependency.get("version").and_then(toml::Value::as_str));
        let Some(version) = version else { continue };
        third_parties += 1;
        let pinned = version.strip_prefix('=').unwrap_or_else(|| panic!("{name} = \"{version}\" is a range"));
        assert!(locked.contains(&(name.clone(), pinned.to_owned())), "{name} {pinned} is not in Cargo.lock");
    }
    assert!(third_parties > 40, "only {third_parties} were looked at");
    let deny = toml(&root().join("deploy/deny.toml"));
    assert_eq!(deny["advisories"]["unmaintained"].as_str(), Some("all"));
}

#[test]
fn the_crates_and_their_dependencies_are_as_the_map_says() {
    let members = members();
    let mut said = BTreeMap::new();
    for row in table(&map(), "Crates", 0) {
        let [folder, _, deps] = row.as_slice() else { panic!("{row:?}") };
        let deps: BTreeSet<String> = deps.split(", ").filter(|name| *name != "–").map(str::to_owned).collect();
        said.insert(folder.trim_matches('`').to_owned(), deps);
    }
    let mut real = BTreeMap::new();
    for (folder, manifest) in members.values() {
        let deps = manifest.get("dependencies").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let ours = deps.keys().filter(|name| members.contains_key(*name)).cloned().collect::<BTreeSet<_>>();
        real.insert(folder.clone(), ours);
    }
    assert_eq!(said, real);
}

#[test]
fn the_third_parties_are_allowed_where_the_map_says() {
    let (members, deny) = (members(), toml(&root().join("deploy/deny.toml")));
    let mut real: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for ban in deny["bans"]["deny"].as_array().unwrap() {
        let wrappers = ban.get("wrappers").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let ours: BTreeSet<String> = wrappers
            .iter()
            .filter_map(toml::Value::as_str)
            .filter(|name| members.contains_key(*name))
            .map(str::to_owned)
            .collect();
        real.insert(ban["crate"].as_str().unwrap().to_owned(), ours);
    }
    for row in table(&map(), "Third parties", 0) {
        let [names, allowed] = row.as_slice() else { panic!("{row:?}") };
        let allowed: BTreeSet<String> = allowed.split(", ").map(str::to_owned).collect();
        for name in names.split(", ") {
            assert_eq!(real.get(name), Some(&allowed), "{name}");
        }
    }
}

#[test]
fn the_steps_of_a_call_are_where_the_map_says() {
    let text = map();
    let rows = table(&text, "A `tools/call`, from the handler to the socket", 0);
    assert!(rows.len() <= 15, "a call goes through at most 15 places");
    let steps: Vec<(&str, &str)> =
        rows.iter().map(|row| (row[1].trim_matches('`'), row[2].trim_matches('`'))).collect();
    for (step, (file, function)) in steps.iter().enumerate() {
        let source = std::fs::read_to_string(root().join(file)).unwrap_or_else(|_| panic!("no file {file}"));
        let body = source.split_once(&format!("fn {function}")).map(|(_, body)| body);
        let body = body.unwrap_or_else(|| panic!("{file} has no function {function}"));
        if let Some((_, next)) = steps.get(step + 1) {
            assert!(body.contains(&format!("{next}(")), "{function} in {file} does not call {next}");
        }
    }
}

#[test]
fn every_file_and_every_name_in_the_map_exists() {
    let (text, sources) = (map(), sources(&root()));
    for name in text.split('`').skip(1).step_by(2) {
        if name.starts_with("shared/") || name.starts_with("services/") || name.starts_with("deploy/") {
            assert!(root().join(name).exists(), "there is no {name}");
        } else if let Some((_, last)) = name.rsplit_once("::")
            && last.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !is_foreign(name)
        {
            let kinds = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];
            let defined = kinds.iter().any(|kind| sources.contains(&format!("{kind} {last}")));
            assert!(defined, "nothing is called {name}");
        }
    }
}

/// Names of third parties that the page says nobody may call.
fn is_foreign(name: &str) -> bool {
    ["std::", "tokio::", "reqwest::", "redis::", "Command::"].iter().any(|start| name.starts_with(start))
}

fn sources(root: &Path) -> String {
    let mut folders = vec![root.join("shared"), root.join("services")];
    let mut all = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                all.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn the_commands_are_those_of_the_binary() {
    let rows = table(&map(), "Addresses and commands", 1);
    let said: BTreeSet<String> = rows.into_iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    let command = gateway::cli::Cli::command();
    let real: BTreeSet<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    assert_eq!(said, real);
}

#[test]
fn every_route_is_under_an_address_of_the_map() {
    let said: Vec<String> =
        table(&map(), "Addresses and commands", 0).into_iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    let pages = gateway::console::routes::ROUTES.iter().map(|route| route.path);
    let paths: Vec<&str> = gateway::routes::ROUTES.iter().map(|route| route.path).chain(pages).collect();
    for path in &paths {
        assert!(said.iter().any(|address| path.starts_with(address.as_str())), "{path}");
    }
    for address in said {
        assert!(paths.iter().any(|path| path.starts_with(&address)), "nothing is at {address}");
    }
}

#[test]
fn every_key_of_the_store_is_in_the_map() {
    let text = map();
    let source = std::fs::read_to_string(root().join("shared/store/src/keys.rs")).unwrap();
    let source = source.split("#[cfg(test)]").next().unwrap();
    for line in source.lines().filter(|line| line.contains("Key(") || line.contains("name: ")) {
        let Some(name) = line.split('"').nth(1) else { continue };
        let name: String = name.chars().take_while(char::is_ascii_lowercase).collect();
        if name.len() > 1 {
            let known = text.contains(&format!("`{name}:")) || text.contains(&format!("`{name}`"));
            assert!(known, "the map does not know the key {name}");
        }
    }
}

#[test]
fn the_map_can_be_held_in_mind() {
    assert!(map().lines().count() <= 250);
}
