use super::*;
use domain::{Moment, Principal, Scopes, Tenant};

fn caller(tenant: &str, subject: &str) -> Caller {
    Caller {
        tenant: Tenant::parse(tenant).unwrap(),
        principal: Principal::new("i", subject),
        scopes: Scopes::parse("tools:read"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    }
}

#[test]
fn a_bucket_holds_a_minutes_worth_and_fills_up_evenly() {
    let (buckets, now) = (TokenBuckets::new(10), Instant::now());
    assert!((0..6).all(|_| buckets.take(&"a", 6, now)));
    assert!(!buckets.take(&"a", 6, now) && buckets.take(&"b", 6, now));
    assert!(!buckets.take(&"a", 6, now + Duration::from_secs(9)));
    assert!(buckets.take(&"a", 6, now + Duration::from_secs(10)), "one in ten seconds");
    let later = now + Duration::from_secs(600);
    assert_eq!((0..9).filter(|_| buckets.take(&"a", 6, later)).count(), 6, "and never more than a minute's worth");
    buckets.give_back(&"a", 6, later);
    assert!(buckets.take(&"a", 6, later) && !buckets.take(&"a", 6, later));
}

#[test]
fn a_closed_bucket_gives_nothing_until_its_time() {
    let (buckets, now) = (TokenBuckets::new(10), Instant::now());
    buckets.close(&"a", 6, now + Duration::from_secs(30));
    assert!(!buckets.take(&"a", 6, now) && !buckets.take(&"a", 6, now + Duration::from_secs(29)));
    assert!(buckets.take(&"a", 6, now + Duration::from_secs(30)));
}

#[test]
fn idle_buckets_are_forgotten_and_there_are_never_more_than_so_many() {
    let (buckets, now) = (TokenBuckets::new(3), Instant::now());
    (0..3).for_each(|key| assert!(buckets.take(&key, 2, now)));
    // Nobody is idle: those who come new share one bucket.
    assert_eq!((10..20).filter(|key| buckets.take(key, 2, now)).count(), 2);
    assert_eq!(buckets.len(), 3);
    let later = now + Duration::from_secs(61);
    assert!((20..23).all(|key| buckets.take(&key, 2, later) && buckets.take(&key, 2, later)));
    assert_eq!(buckets.len(), 3, "the idle ones made room");
}

#[test]
fn a_caller_uses_its_share_and_leaves_the_rest_to_others() {
    let admission = CallAdmission::new(CallLimits::default());
    let (ana, bo, other) = (caller("acme", "ana"), caller("acme", "bo"), caller("bolt", "ana"));
    let held: Vec<SlotGuard> = (0..3).map(|_| admission.slot(&ana, 4).unwrap()).collect();
    let refused = admission.slot(&ana, 4).unwrap_err();
    assert_eq!(refused.message, "this caller's share of the tenant's call slots, 3, is in use");
    let last = admission.slot(&bo, 4).unwrap();
    assert_eq!(admission.slot(&bo, 4).unwrap_err().message, "all of the tenant's call slots are in use");
    drop(admission.slot(&other, 4).unwrap());
    drop(held);
    drop(admission.slot(&ana, 4).unwrap());
    drop(last);
    assert!(format!("{:?}", admission.slots).contains("{}"), "nothing is under way, and nothing is remembered");
}

#[test]
fn a_caller_over_its_share_uses_up_nothing_of_the_tenants_rate() {
    let admission = CallAdmission::new(CallLimits::default());
    let (ana, bo) = (caller("acme", "ana"), caller("acme", "bo"));
    admission.call(&bo, admission.rate(1_000_000)).unwrap();
    let rate = admission.rate(4);
    assert_eq!((rate.tenant, rate.caller), (4, 3));
    let of_ana: Vec<_> = (0..9).map(|_| admission.call(&ana, rate)).collect();
    assert_eq!(of_ana.iter().filter(|taken| taken.is_ok()).count(), 3);
    assert_eq!(of_ana[8], Err(RateExceeded::Caller(3)));
    assert_eq!(admission.call(&bo, rate), Ok(()));
    assert_eq!(admission.call(&bo, rate), Err(RateExceeded::Tenant(4)));
    assert!(admission.notes_refusal(&ana) && !admission.notes_refusal(&ana) && admission.notes_refusal(&bo));
}

#[test]
fn a_caller_alone_uses_the_whole_rate_until_others_call_too() {
    let admission = CallAdmission::new(CallLimits::default());
    let (ana, bo, other) = (caller("acme", "ana"), caller("acme", "bo"), caller("bolt", "bo"));
    let rate = admission.rate(4);
    assert_eq!(admission.call(&other, rate), Ok(()), "another tenant's callers do not count");
    let taken: Vec<_> = (0..5).map(|_| admission.call(&ana, rate)).collect();
    assert_eq!(taken[..4], [Ok(()); 4]);
    assert_eq!(taken[4], Err(RateExceeded::Tenant(4)));
    assert_eq!(admission.call(&bo, rate), Err(RateExceeded::Tenant(4)));
    assert_eq!(admission.call(&ana, rate), Err(RateExceeded::Caller(3)), "whoever was refused counts as well");
}

#[test]
fn what_the_store_refuses_is_refused_here_until_its_minute_is_over() {
    let admission = CallAdmission::new(CallLimits::default());
    let (ana, bo) = (caller("acme", "ana"), caller("acme", "bo"));
    let rate = admission.rate(100);
    admission.calls_exceeded(&ana, RateExceeded::Caller(75), Duration::from_secs(50));
    assert_eq!(admission.call(&ana, rate), Err(RateExceeded::Caller(75)), "others call at another replica");
    admission.call(&bo, rate).unwrap();
    assert_eq!((admission.call(&ana, rate), admission.call(&bo, rate)), (Err(RateExceeded::Caller(75)), Ok(())));
    admission.calls_exceeded(&ana, RateExceeded::Tenant(100), Duration::from_secs(50));
    assert_eq!(admission.call(&bo, rate), Err(RateExceeded::Tenant(100)));
}

#[test]
fn agents_that_use_up_the_tenants_requests_do_not_keep_people_from_deciding() {
    let limits = CallLimits { requests_per_caller: 6, requests_per_tenant: 8, ..CallLimits::default() };
    let admission = CallAdmission::new(limits);
    for agent in ["a", "b", "c", "d"] {
        (0..9).for_each(|_| drop(admission.request(&caller("acme", agent), 8, false)));
    }
    let person = caller("acme", "person");
    let refused = admission.request(&person, 8, false).unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (Code::RateLimited, "the tenant's limit of 8 requests a minute is used up")
    );
    admission.request(&person, 8, true).unwrap();
}
