//! A folder of tenants, good and bad ones side by side.

use super::*;
use std::fs;
use tempfile::TempDir;

const KNOWN: KnownNames<'static> =
    KnownNames { toolsets: &["k8s"], tools: &["k8s_get"], sections: &[], addresses: &|_| Ok(()) };

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn names(book: &TenantFiles) -> Vec<&str> {
    book.tenants.keys().map(Tenant::as_str).collect()
}

/// Each problem without the folder in front.
fn told(book: &TenantFiles, dir: &TempDir) -> Vec<String> {
    let folder = format!("{}/", dir.path().display());
    book.problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect()
}

#[test]
fn every_yaml_file_of_the_folder_is_a_tenant() {
    let dir = folder(&[
        ("acme.yaml", "tenant: acme"),
        ("beta.yml", "tenant: beta\nmode: write"),
        ("notes.txt", "not ours"),
        (".hidden.yaml", "not ours"),
    ]);

    let book = TenantFiles::read(dir.path(), &KNOWN);

    assert_eq!((names(&book), book.problems.len()), (vec!["acme", "beta"], 0));
    let acme = Tenant::parse("acme").unwrap();
    assert_eq!(book.tenants[&acme].file, dir.path().join("acme.yaml").display().to_string());
}

#[test]
fn a_bad_file_costs_only_its_own_tenant() {
    let dir = folder(&[("acme.yaml", "tenant: acme"), ("beta.yaml", "tenant: beta\nmode: all\nlimit: {}")]);

    let book = TenantFiles::read(dir.path(), &KNOWN);

    assert_eq!(names(&book), ["acme"]);
    insta::assert_snapshot!(told(&book, &dir).join("\n"), @"
        beta.yaml:2:7: bad_value: `all` is no mode
            hint: use `read` or `write`
        beta.yaml:3:1: unknown_key: the file has no key `limit`
            hint: did you mean `limits`? known keys here: tenant, mode, default_toolsets, params, toolsets, policy, limits, audit
    ");
}

#[test]
fn a_second_file_for_a_tenant_is_refused() {
    let dir = folder(&[("acme.yaml", "tenant: acme"), ("acme.yml", "tenant: acme\nmode: write")]);

    let book = TenantFiles::read(dir.path(), &KNOWN);

    assert_eq!(book.tenants[&Tenant::parse("acme").unwrap()].config.mode, domain::SessionMode::Read);
    insta::assert_snapshot!(told(&book, &dir).join("\n"), @"
        acme.yml:1:1: duplicate_tenant: the tenant `acme` already has the file acme.yaml
            hint: remove one of them
    ");
}

#[test]
fn a_file_is_named_after_its_tenant() {
    let dir = folder(&[("beta.yaml", "tenant: acme")]);

    let book = TenantFiles::read(dir.path(), &KNOWN);

    assert!(book.tenants.is_empty());
    insta::assert_snapshot!(told(&book, &dir).join("\n"), @"
        beta.yaml:1:1: file_name: the file is named `beta` and speaks of the tenant `acme`
            hint: name it acme.yaml, or correct `tenant`
    ");
}

#[test]
fn what_cannot_be_read_is_reported() {
    let dir = folder(&[("huge.yaml", &"x\n".repeat(200_000))]);
    fs::write(dir.path().join("latin.yaml"), b"tenant: acme\nmode: \xe4").unwrap();
    fs::create_dir(dir.path().join("folder.yaml")).unwrap();

    insta::assert_snapshot!(told(&TenantFiles::read(dir.path(), &KNOWN), &dir).join("\n"), @"
        folder.yaml:1:1: unreadable: cannot be read: not a regular file
        huge.yaml:131073:1: too_large: the file is larger than 262144 bytes
        latin.yaml:2:7: not_utf8: the file is not UTF-8 from here on
    ");

    let nowhere = TenantFiles::read(&dir.path().join("nowhere"), &KNOWN);
    assert_eq!(nowhere.problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["unreadable"]);
}

#[test]
fn a_reload_keeps_what_a_bad_file_said_before_and_drops_what_is_gone() {
    let dir = folder(&[("acme.yaml", "tenant: acme"), ("beta.yaml", "tenant: beta"), ("gone.yaml", "tenant: gone")]);
    let before = TenantFiles::read(dir.path(), &KNOWN);
    fs::write(dir.path().join("acme.yaml"), "tenant: acme\nmode: write").unwrap();
    fs::write(dir.path().join("beta.yaml"), "tenant: [").unwrap();
    fs::remove_file(dir.path().join("gone.yaml")).unwrap();

    let mut after = TenantFiles::read(dir.path(), &KNOWN);
    after.keep_from(&before, dir.path());

    assert_eq!((names(&after), after.problems.len()), (vec!["acme", "beta"], 1));
    assert_eq!(after.tenants[&Tenant::parse("acme").unwrap()].config.mode, domain::SessionMode::Write);
}

#[test]
fn a_folder_that_cannot_be_read_takes_nobody_away() {
    let dir = folder(&[("acme.yaml", "tenant: acme")]);
    let before = TenantFiles::read(dir.path(), &KNOWN);
    fs::remove_dir_all(dir.path()).unwrap();

    let mut after = TenantFiles::read(dir.path(), &KNOWN);
    after.keep_from(&before, dir.path());

    assert_eq!((names(&after), after.problems.len()), (vec!["acme"], 1));
}

#[test]
fn a_file_that_is_as_it_was_is_not_read_again() {
    let dir = folder(&[("acme.yaml", "tenant: acme"), ("beta.yaml", "tenant: beta")]);
    let old = fs::FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(60));
    let age = |name: &str| File::options().write(true).open(dir.path().join(name)).unwrap().set_times(old).unwrap();
    ["acme.yaml", "beta.yaml"].into_iter().for_each(age);
    let mut reading = FolderReading::default();
    let first = TenantFiles::read_changed(dir.path(), &KNOWN, &mut reading).unwrap();
    assert!(!reading.is_unsettled());
    assert_eq!(TenantFiles::read_changed(dir.path(), &KNOWN, &mut reading), None, "nothing is different");

    fs::write(dir.path().join("beta.yaml"), "tenant: beta\nmode: write").unwrap();
    let second = TenantFiles::read_changed(dir.path(), &KNOWN, &mut reading).unwrap();

    let (acme, beta) = (Tenant::parse("acme").unwrap(), Tenant::parse("beta").unwrap());
    assert!(Arc::ptr_eq(&first.tenants[&acme], &second.tenants[&acme]), "it was not parsed again");
    assert_eq!(second.tenants[&beta].config.mode, domain::SessionMode::Write);
    assert!(reading.is_unsettled(), "what was just written may be written again within the same tick of the clock");
    assert_eq!(TenantFiles::read_changed(dir.path(), &KNOWN, &mut reading), None, "read again, and the same");
    fs::remove_file(dir.path().join("acme.yaml")).unwrap();
    let third = TenantFiles::read_changed(dir.path(), &KNOWN, &mut reading).unwrap();
    assert_eq!(names(&third), ["beta"]);
}
