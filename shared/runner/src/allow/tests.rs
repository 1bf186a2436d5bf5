use super::*;
use domain::job::{JobVariable, RunnerLabel};
use runbook::{ArgumentRule, ResolvedRunbook};

fn text() -> RunbookText {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let key = ArgumentRule { required: true, pattern: Some("^[a-z]{1,9}$".into()), ..ArgumentRule::default() };
    RunbookText {
        group: "shop".into(),
        name: "seed".into(),
        arguments: [("key".to_owned(), key)].into(),
        env: [("TOKEN".to_owned(), "tok-{{ params.token }}".to_owned()), ("REGION".to_owned(), "eu".to_owned())].into(),
        check: Some(words(&["test", "-f", "/var/{{ args.key }}"])),
        run: words(&["/opt/seed", "--key", "{{ args.key }}"]),
        verify: None,
        directory: None,
        timeout_ms: 60_000,
    }
}

/// A job as an honest service makes it.
fn job(text: &RunbookText) -> JobSpec {
    let params = [("token".to_owned(), "hunter22".to_owned())].into();
    let resolved = text.resolve(&[("key".to_owned(), "blue".to_owned())].into(), &params).unwrap();
    let ResolvedRunbook { check, run, verify, env, arguments } = resolved;
    JobSpec {
        label: RunnerLabel::parse("shop-hosts").unwrap(),
        runbook: text.full_name(),
        text: text.canonical(),
        arguments,
        check,
        run: Some(run),
        verify,
        env,
        directory: text.directory.clone(),
        timeout_ms: text.timeout_ms,
        output_bytes: 1_000,
    }
}

fn only(patterns: &[&str]) -> AllowList {
    AllowList::new(patterns.iter().map(|pattern| NamePattern::parse(pattern).unwrap()).collect(), None)
}

fn pinned(text: &RunbookText) -> AllowList {
    AllowList::new(Vec::new(), Some([(text.full_name(), text.digest())].into()))
}

#[test]
fn a_pattern_takes_names_and_nothing_beside_them() {
    let matches = |pattern: &str, name: &str| NamePattern::parse(pattern).unwrap().matches(name);
    assert!(matches("shop/*", "shop/seed") && !matches("shop/*", "shopping/seed") && !matches("shop/*", "a/shop/x"));
    assert!(matches("*/seed", "shop/seed") && !matches("*/seed", "shop/seeds"));
    assert!(matches("shop/s*d", "shop/seed") && !matches("shop/s*d", "shop/see"));
    assert!(matches("shop/seed", "shop/seed") && !matches("shop/seed", "shop/seed2"));
    assert!(matches("*", "any/thing"));
    for bad in ["", "shop", "/seed", "shop/", "a/b/c", "shop/se ed", "shop/$x"] {
        assert_eq!(NamePattern::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_file_of_pins_is_read_whole_or_not_at_all() {
    let digest = text().digest();
    let pins = AllowList::read_pins(&format!("# ours\n\nshop/seed {digest} # since May\n")).unwrap();
    assert_eq!(pins, [("shop/seed".to_owned(), digest.clone())].into());
    let twice = format!("shop/seed {digest}\nshop/seed {digest}");
    for bad in ["shop/seed", "shop/seed sha256:ab", "seed sha256:", "shop/seed 12 34", twice.as_str()] {
        assert!(AllowList::read_pins(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_runner_whose_owner_allowed_nothing_executes_nothing() {
    assert!(AllowList::default().judge(&job(&text())).is_err());
}

#[test]
fn a_name_that_is_not_allowed_is_refused() {
    assert_eq!(only(&["shop/*"]).judge(&job(&text())), Ok(()));
    assert!(only(&["bank/*", "shop/other"]).judge(&job(&text())).unwrap_err().contains("--only"));
}

#[test]
fn what_a_pinned_text_gives_is_executed() {
    assert_eq!(pinned(&text()).judge(&job(&text())), Ok(()));
    let only_checks = JobSpec { run: None, verify: None, ..job(&text()) };
    assert_eq!(pinned(&text()).judge(&only_checks), Ok(()));
}

#[test]
fn a_service_that_is_broken_into_gets_nothing_past_a_pin() {
    let (text, good) = (text(), job(&text()));
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let other_text = RunbookText { run: vec!["sh".into(), "-c".into(), "id".into()], ..text.clone() };
    let variable = |value: &str| JobVariable { value: value.into(), secret: false };
    let with_env = |name: &str, value: &str| {
        let mut env = good.env.clone();
        env.insert(name.into(), variable(value));
        JobSpec { env, ..good.clone() }
    };
    let attacks = [
        ("another text under the name", job(&other_text)),
        ("a command beside the pinned text", JobSpec { run: words(&["sh", "-c", "id"]), ..good.clone() }),
        ("a check beside the pinned text", JobSpec { check: words(&["sh", "-c", "id"]), ..good.clone() }),
        ("no check", JobSpec { check: None, ..good.clone() }),
        ("a verify that is not there", JobSpec { verify: words(&["id"]), ..good.clone() }),
        (
            "an argument that is in the command only",
            JobSpec { run: words(&["/opt/seed", "--key", "red"]), ..good.clone() },
        ),
        (
            "an argument that the text does not allow",
            JobSpec {
                arguments: [("key".to_owned(), "../../etc".to_owned())].into(),
                run: words(&["/opt/seed", "--key", "../../etc"]),
                check: words(&["test", "-f", "/var/../../etc"]),
                env: BTreeMap::new(),
                ..good.clone()
            },
        ),
        ("another directory", JobSpec { directory: Some("/tmp".into()), ..good.clone() }),
        ("more time", JobSpec { timeout_ms: 600_000, ..good.clone() }),
        ("a variable more", with_env("EXTRA", "1")),
        ("a fixed variable with another value", with_env("REGION", "us")),
        ("a parameter without what stands around it", with_env("TOKEN", "hunter22")),
        ("a variable that loads something", with_env("LD_PRELOAD", "/tmp/x.so")),
        ("another runbook's name", JobSpec { runbook: "shop/other".into(), ..good.clone() }),
        ("a text that is none", JobSpec { text: "{}".into(), ..good.clone() }),
    ];
    for (what, spec) in attacks {
        assert!(pinned(&text).judge(&spec).is_err(), "{what}");
    }
}

#[test]
fn a_name_alone_does_not_let_a_job_change_how_programs_load() {
    for name in ["LD_PRELOAD", "PATH", "BASH_ENV", "PYTHONPATH", "QM_OTHER", "1X", "A=B"] {
        let mut spec = job(&text());
        spec.env.insert(name.into(), JobVariable { value: "x".into(), secret: false });
        assert!(only(&["*"]).judge(&spec).is_err(), "{name}");
    }
    for run in [Some(vec![]), Some(vec![String::new()]), Some(vec!["a\0b".into()]), None] {
        let spec = JobSpec { run, check: None, verify: None, ..job(&text()) };
        assert!(only(&["*"]).judge(&spec).is_err());
    }
}
