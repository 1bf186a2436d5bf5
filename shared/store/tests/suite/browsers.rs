//! People who signed in with a browser: found by what they hold, sliding, gone at once, and things that are taken once.

use crate::bench::{Bench, on_every_backend, principal, tenant};
use domain::Moment;
use std::time::Duration;
use store::{AuditEntry, BrowserSession, BrowserTimes, Phase, RecordKey, SignInMethod};

const TIMES: BrowserTimes = BrowserTimes { idle: Duration::from_secs(1800), longest: Duration::from_secs(43_200) };

on_every_backend!(
    a_person_is_found_by_what_the_browser_holds_until_they_sign_out,
    a_session_that_was_not_used_or_is_too_old_is_over,
    what_can_be_taken_once_is_taken_once_however_many_try,
);

fn session(now: Moment) -> BrowserSession {
    BrowserSession {
        principal: principal("ana"),
        scopes: "runs:decide".into(),
        method: SignInMethod::Issuer,
        signed_in_at: now,
        proven_at: now,
        seen_at: now,
    }
}

fn entry() -> AuditEntry {
    AuditEntry::new(Phase::SignIn)
}

async fn a_person_is_found_by_what_the_browser_holds_until_they_sign_out(bench: Bench) {
    let (browsers, now) = (bench.acme().browsers(), bench.store.now().await.unwrap());
    browsers.open("d1", &session(now), TIMES, &entry()).await.unwrap();
    assert!(browsers.open("d1", &session(now), TIMES, &entry()).await.is_err(), "a cookie is drawn once");
    let before = bench.store.round_trips();
    let (found, _) = browsers.find("d1", TIMES, true).await.unwrap().unwrap();
    assert_eq!(
        (found, bench.store.round_trips() - before),
        (session(now), 1),
        "seen a moment ago, so nothing is written"
    );
    assert!(browsers.find("d2", TIMES, true).await.unwrap().is_none());
    let other = bench.store.of(&tenant("other")).browsers();
    assert!(other.find("d1", TIMES, true).await.unwrap().is_none(), "a cookie holds in its own tenant");
    assert!(browsers.close("d1", &entry()).await.unwrap());
    assert!(browsers.find("d1", TIMES, true).await.unwrap().is_none());
    assert!(!browsers.close("d1", &entry()).await.unwrap());
    let phases = bench.acme().audit().page(None, 10).await.unwrap();
    assert_eq!(phases.iter().filter(|noted| noted.entry["phase"] == "sign_in").count(), 2, "in and out");
}

async fn a_session_that_was_not_used_or_is_too_old_is_over(bench: Bench) {
    let (browsers, now) = (bench.acme().browsers(), bench.store.now().await.unwrap());
    let ago = |seconds: u64| Moment::from_millis(now.millis() - seconds * 1_000);
    let idle = BrowserSession { seen_at: ago(1_801), ..session(ago(2_000)) };
    browsers.open("idle", &idle, TIMES, &entry()).await.unwrap();
    assert!(browsers.find("idle", TIMES, true).await.unwrap().is_none());
    let old = BrowserSession { seen_at: now, ..session(ago(43_201)) };
    browsers.open("old", &old, TIMES, &entry()).await.unwrap();
    assert!(browsers.find("old", TIMES, true).await.unwrap().is_none(), "however busy");
    let used = BrowserSession { seen_at: ago(900), ..session(ago(900)) };
    browsers.open("used", &used, TIMES, &entry()).await.unwrap();
    assert_eq!(browsers.find("used", TIMES, false).await.unwrap().unwrap().0.seen_at, ago(900), "looking is not using");
    assert!(browsers.find("used", TIMES, true).await.unwrap().unwrap().0.seen_at >= now);
}

async fn what_can_be_taken_once_is_taken_once_however_many_try(bench: Bench) {
    let browsers = bench.acme().browsers();
    let key = || RecordKey::sign_in_link("d1");
    browsers.keep_once(key(), &"whoever comes first", Duration::from_secs(60)).await.unwrap();
    let tries = (0..8).map(|_| browsers.take_once::<String>(key()));
    let taken = futures_util::future::join_all(tries).await;
    let taken: Vec<String> = taken.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(taken, ["whoever comes first"]);
}
