//! The door, tried with a program that behaves as badly as it can, and with the real one.

use super::*;
use crate::client::invocation::DryRun;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A program in place of helm: it says a good version, and for everything else does what the test says.
async fn double(body: &str) -> (Helm, TempDir) {
    let folder = TempDir::new().unwrap();
    let binary = folder.path().join("helm");
    let script =
        format!("#!/bin/sh\nPATH=/usr/bin:/bin\nif [ \"$1\" = version ]; then echo v4.3.1; exit 0; fi\n{body}\n");
    std::fs::write(&binary, script).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let helm = Helm::new(HelmConfig { binary: Some(binary), ..HelmConfig::new(folder.path().join("work")) }).await;
    assert_eq!(helm.available().unwrap().to_string(), "4.3.1");
    (helm, folder)
}

fn look() -> Invocation {
    Invocation::new(Subcommand::List)
}

#[tokio::test]
async fn helm_sees_a_cleared_environment_and_an_empty_place_of_its_own() {
    let (helm, folder) = double("/usr/bin/env; echo cwd=$(pwd); ls -A; ls -A \"$HELM_PLUGINS\"; cat").await;
    let finished = helm.run(look().positional("--post-renderer=sh")).await.unwrap();
    let text = finished.text().unwrap().to_owned();
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.sort_unstable();
    let expected = [
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
        "HELM_NO_PLUGINS",
        "HELM_PLUGINS",
        "HOME",
        "PWD",
        "TMPDIR",
        "cwd",
    ];
    let names: Vec<&str> = names.into_iter().filter(|name| *name != "_" && *name != "OLDPWD").collect();
    // The shell of the double sets PWD; nothing else is there.
    assert_eq!(names, expected);
    let work = folder.path().join("work").canonicalize().unwrap();
    for line in text.lines().filter(|line| line.starts_with("HOME=") || line.starts_with("cwd=")) {
        assert!(line.contains(work.to_str().unwrap()), "{line} is in the private place");
    }
    assert_eq!(text.lines().last().unwrap_or_default(), format!("cwd={}", text.split("cwd=").nth(1).unwrap().trim()));
    drop(finished);
    let left: Vec<_> = std::fs::read_dir(work.join("run")).unwrap().collect();
    assert!(left.is_empty(), "nothing is left behind: {left:?}");
}

#[tokio::test]
async fn a_flood_is_drained_and_kept_within_bounds_and_nobody_waits_on_stdin() {
    let flood = "head -c 200000000 /dev/zero | tr '\\0' x; echo the end; head -c 3000000 /dev/zero >&2; cat; exit 3";
    let (helm, _folder) = double(flood).await;
    let finished = helm.run(look().within(Duration::from_secs(120))).await.unwrap();
    assert_eq!(finished.ended, HelmExit::Exited(3));
    assert_eq!(finished.text().unwrap_err().code, Code::ResultTooLarge);
    let shown = finished.stdout.lossy();
    assert!(shown.starts_with("xxx") && shown.trim_end().ends_with("the end"), "head and tail are kept");
    assert!(shown.len() < 40 * 1024 * 1024 && finished.stderr.lossy().len() < 256 * 1024);
}

#[tokio::test]
async fn past_the_deadline_the_whole_group_is_ended_even_if_it_will_not_listen() {
    // Neither it nor its child ends when it is asked to, and the child holds the streams open.
    let (helm, folder) = double("trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >\"$HOME\"/../../../child; while :; do sleep 1; done' & wait; while :; do sleep 1; done").await;
    let began = Instant::now();
    let finished = helm.run(look().within(Duration::from_millis(500))).await.unwrap();
    assert_eq!(finished.ended, HelmExit::Stopped);
    assert!(began.elapsed() >= GRACE, "it had its time to end by itself");
    let child = std::fs::read_to_string(folder.path().join("work/child")).unwrap();
    let gone = || !Path::new(&format!("/proc/{}", child.trim())).exists() || is_zombie(child.trim());
    timeout(Duration::from_secs(10), async {
        while !gone() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
}

fn is_zombie(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_ends_with_it() {
    let (helm, folder) = double("echo $$ >\"$HOME\"/../../../leader; while :; do sleep 1; done").await;
    let leader = folder.path().join("work/leader");
    let call = helm.run(look());
    let pid = tokio::select! {
        _ = call => panic!("it never ends"),
        pid = async {
            loop {
                match std::fs::read_to_string(&leader) {
                    Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
                    Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        } => pid,
    };
    timeout(Duration::from_secs(10), async {
        while Path::new(&format!("/proc/{pid}")).exists() && !is_zombie(&pid) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn files_are_private_and_what_is_written_can_be_taken() {
    let (helm, _folder) = double("for a in \"$@\"; do case $a in --registry-config=*) f=${a#*=};; --destination=*) d=${a#*=};; esac; done; stat -c %a \"$f\"; cp \"$f\" \"$d/copy\"; cat").await;
    let asked = Invocation::new(Subcommand::Pull).private_file("--registry-config", "word").out_folder("--destination");
    let finished = helm.run(asked.stdin("input")).await.unwrap();
    assert_eq!(finished.text().unwrap(), "600\ninput");
    assert_eq!(std::fs::read(finished.folder().unwrap().join("copy")).unwrap(), b"word");
}

#[tokio::test]
async fn cve_2026_35204_an_old_or_missing_binary_is_not_used() {
    let folder = TempDir::new().unwrap();
    let binary = folder.path().join("helm");
    let with =
        |binary: &Path| HelmConfig { binary: Some(binary.to_owned()), ..HelmConfig::new(folder.path().join("work")) };
    let missing = Helm::new(with(&binary)).await;
    assert_eq!(missing.available().unwrap_err(), Unavailable::Missing);
    for (script, why) in
        [("echo v3.20.1", "helm v3.20.1 is not used"), ("echo v4.1.3", "helm v4.1.3"), ("exit 1", "does not run")]
    {
        std::fs::write(&binary, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
        let helm = Helm::new(with(&binary)).await;
        assert!(helm.available().unwrap_err().to_string().contains(why));
        let failure = helm.run(look()).await.unwrap_err();
        assert_eq!(failure.code, target::codes::TOOLSET_NOT_CONFIGURED);
    }
}

#[tokio::test]
async fn a_change_without_a_cluster_is_refused_before_anything_starts() {
    let (helm, folder) = double("touch \"$HOME\"/../../../started").await;
    for subcommand in
        [Subcommand::Install, Subcommand::Upgrade, Subcommand::Rollback, Subcommand::Uninstall, Subcommand::Test]
    {
        assert!(helm.run(Invocation::new(subcommand)).await.is_err());
    }
    assert!(!folder.path().join("work/started").exists());
    assert!(helm.run(Invocation::new(Subcommand::Install).dry_run(DryRun::Client)).await.is_ok());
    assert!(folder.path().join("work/started").exists());
}

#[tokio::test]
async fn one_tenant_cannot_take_all_the_slots() {
    let (helm, folder) = double("while [ ! -e \"$HOME\"/../../../go ]; do sleep 0.05; done").await;
    let (acme, bolt) = (Tenant::parse("acme").unwrap(), Tenant::parse("bolt").unwrap());
    let (greedy, other) = (helm.for_tenant(&acme), helm.for_tenant(&bolt));
    assert!(Arc::ptr_eq(&greedy.own, &helm.for_tenant(&acme).own), "attached anew, a tenant keeps its slots");
    let go = folder.path().join("work/go");
    let taken = async |slots: &Semaphore, left: usize| {
        while slots.available_permits() > left {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let calls = futures_util::future::join_all((0..8).map(|_| greedy.run(look())));
    let (all, served, ()) = tokio::join!(calls, other.run(look()), async {
        taken(&greedy.own, 0).await;
        let HelmConfig { slots, tenant_slots, .. } = helm.config();
        // One more than the greedy tenant may have: the other one runs beside it.
        taken(&helm.parts.slots, slots - tenant_slots - 1).await;
        assert_eq!(helm.parts.slots.available_permits(), slots - tenant_slots - 1);
        std::fs::write(&go, "").unwrap();
    });
    assert!(served.is_ok() && all.iter().all(Result::is_ok), "{all:?}");
}

#[tokio::test]
async fn helm_runs_with_less_memory_and_cpu_than_the_machine_has() {
    let (helm, _folder) = double("sleep 0.5; ulimit -d; ulimit -v; ulimit -t").await;
    let finished = helm.run(look()).await.unwrap();
    let usage = HelmUsage::of(helm.config());
    let limits: Vec<u64> = finished.text().unwrap().lines().map(|line| line.parse().unwrap_or(u64::MAX)).collect();
    assert_eq!(limits[0], usage.memory / 1024);
    assert!(limits[1] <= 4 * 1024 * 1024, "{limits:?}");
    assert_eq!(limits[2], usage.cpu);
}

#[tokio::test]
async fn a_template_that_computes_for_ever_ends_with_its_cpu_time() {
    let (helm, _folder) = double("while :; do :; done").await;
    let config = HelmConfig { cpu: Duration::from_secs(1), ..helm.config().clone() };
    let helm = Helm::new(config).await;
    let finished = helm.run(look().within(Duration::from_secs(600))).await.unwrap();
    assert_eq!(finished.ended, HelmExit::Killed, "and not stopped at its deadline");
}
