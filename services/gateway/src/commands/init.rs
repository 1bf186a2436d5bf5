//! `init`: writes the skeleton of a production installation: settings, keys, one tenant, a catalog, and what to do next.
//!
//! It overwrites nothing. It writes into a folder of its own beside the wanted one and moves that into place, so that a
//! half-written skeleton is never taken for a whole one.

use crate::cli::Init;
use crate::commands::{CommandOutcome, print};
use anyhow::{Context, bail};
use domain::Tenant;
use identity::mint::SigningKey;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SETTINGS: &str = include_str!("init/quartermaster.toml");
const TENANT: &str = include_str!("init/tenant.yaml");
const SERVERS: &str = include_str!("init/servers.yaml");
const README: &str = include_str!("init/README.md");

/// Everybody else can read neither keys nor what they open.
const OWNER_ONLY: u32 = 0o600;
const READABLE: u32 = 0o640;

pub(super) fn run(args: &Init) -> anyhow::Result<CommandOutcome> {
    let tenant = Tenant::parse(&args.tenant)
        .with_context(|| format!("--tenant {}: 1 to 63 of a-z, 0-9 and `-`, no dash at either end", args.tenant))?;
    check_resource(&args.resource)?;
    let folder = absolute(&args.folder)?;
    let fresh = beside(&folder)?;
    let written = write_all(&fresh, &Skeleton { folder: &folder, tenant: &tenant, resource: &args.resource })
        .and_then(|()| move_into_place(&fresh, &folder));
    if let Err(error) = written {
        fs::remove_dir_all(&fresh).ok();
        return Err(error);
    }
    let settings = folder.join("quartermaster.toml");
    print(&format!(
        "{} is ready. Next:\n\n  \
           quartermaster check {settings} {tenant_file}\n  \
           quartermaster doctor --config {settings}\n  \
           quartermaster serve --config {settings}\n\n\
         {readme} says how to make a first call, and what to change before others use it.\n",
        folder.display(),
        settings = settings.display(),
        tenant_file = folder.join("tenants").join(format!("{tenant}.yaml")).display(),
        readme = folder.join("README.md").display(),
    ));
    Ok(CommandOutcome::Done)
}

/// What the texts are filled with.
struct Skeleton<'a> {
    folder: &'a Path,
    tenant: &'a Tenant,
    resource: &'a str,
}

impl Skeleton<'_> {
    fn fill(&self, text: &str) -> String {
        text.replace("@FOLDER@", &self.folder.display().to_string())
            .replace("@TENANT@", self.tenant.as_str())
            .replace("@RESOURCE@", self.resource)
    }
}

fn write_all(fresh: &Path, skeleton: &Skeleton<'_>) -> anyhow::Result<()> {
    for name in ["tenants", "secrets", "catalog", "catalog/servers", "cache"] {
        folder(&fresh.join(name))?;
    }
    folder(&fresh.join("secrets").join(skeleton.tenant.as_str()))?;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).context("the system gave no randomness for service.key")?;
    file(&fresh.join("service.key"), &secret, OWNER_ONLY)?;
    SigningKey::generate()?.save(&fresh.join("signing.key"))?;
    let tenant_file = format!("tenants/{}.yaml", skeleton.tenant);
    for (name, text) in [
        ("quartermaster.toml", SETTINGS),
        (tenant_file.as_str(), TENANT),
        ("catalog/servers.yaml", SERVERS),
        ("README.md", README),
    ] {
        file(&fresh.join(name), skeleton.fill(text).as_bytes(), READABLE)?;
    }
    Ok(())
}

/// Moves the skeleton to where it was asked for. Only an empty folder may be there, which the move replaces.
fn move_into_place(fresh: &Path, folder: &Path) -> anyhow::Result<()> {
    fs::rename(fresh, folder).map_err(|error| {
        if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) {
            taken(folder)
        } else if error.kind() == ErrorKind::NotADirectory {
            anyhow::anyhow!("{} is a file; name a folder", folder.display())
        } else {
            anyhow::Error::from(error).context(format!("cannot create {}", folder.display()))
        }
    })
}

fn taken(folder: &Path) -> anyhow::Error {
    let some = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = some.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names.truncate(5);
    anyhow::anyhow!(
        "{} is not empty ({}), and init overwrites nothing: name another folder, or move that one away",
        folder.display(),
        names.join(", ")
    )
}

/// A fresh folder on the same file system, so that it can be moved as a whole.
fn beside(folder: &Path) -> anyhow::Result<PathBuf> {
    if folder.is_dir() && fs::read_dir(folder)?.next().is_some() {
        return Err(taken(folder));
    }
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        bail!("{} cannot hold an installation; name a folder below it", folder.display());
    };
    if !parent.is_dir() {
        bail!("{} does not exist: create it first, or name another folder", parent.display());
    }
    let fresh = parent.join(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
    self::folder(&fresh)?;
    Ok(fresh)
}

fn absolute(folder: &Path) -> anyhow::Result<PathBuf> {
    let absolute = std::path::absolute(folder).with_context(|| format!("{} names no folder", folder.display()))?;
    let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if !absolute.to_str().is_some_and(|text| text.chars().all(plain)) {
        bail!("the path {} cannot stand in a settings file; name a plainer one", absolute.display());
    }
    // Without `.` and a slash at the end, which have no name of their own.
    Ok(absolute.components().collect())
}

fn check_resource(resource: &str) -> anyhow::Result<()> {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"' && c != '\\';
    let web = resource.starts_with("https://") || resource.starts_with("http://");
    if !web || !resource.ends_with("/mcp") || !resource.chars().all(plain) {
        bail!("--resource is the address that agents use and ends in /mcp, such as https://tools.example.com/mcp");
    }
    Ok(())
}

fn folder(path: &Path) -> anyhow::Result<()> {
    DirBuilder::new().mode(0o700).create(path).with_context(|| format!("cannot create {}", path.display()))
}

fn file(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let written = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = written.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.with_context(|| format!("cannot write {}", path.display()))
}
