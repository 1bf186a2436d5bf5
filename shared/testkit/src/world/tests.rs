//! The world must fail a test that leaves something behind; a check that cannot fail proves nothing.

use super::*;

/// Replicas that serve nothing and leave this behind.
fn leaving(left: Leftovers) -> Start<()> {
    Arc::new(move |_| {
        let stop = move || -> Work<Leftovers> { Box::pin(std::future::ready(left)) };
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        Box::pin(std::future::ready(Ok(Replica { address, part: (), stop: Box::new(stop) })))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tidy_world_ends_quietly() {
    drop(Plan::redis(2).start(leaving(Leftovers::default())).await);
}

#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "should leave nothing behind")]
async fn an_open_receipt_fails_the_test() {
    drop(Plan::embedded().start(leaving(Leftovers { receipts: 1, tasks: 0 })).await);
}

#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "should leave nothing behind")]
async fn a_running_task_fails_the_test() {
    drop(Plan::embedded().start(leaving(Leftovers { receipts: 0, tasks: 1 })).await);
}

#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "keys outside the tenants' space")]
async fn a_key_outside_the_tenants_space_fails_the_test() {
    let mut world = Plan::redis(1).start(leaving(Leftovers::default())).await;
    assert_eq!(world.redis().command(&["SET", "world:{acme}:fine", "1"]), "+OK");
    assert_eq!(world.redis().command(&["SET", "stray", "1"]), "+OK");
    drop(world);
}

#[test]
fn a_key_is_ours_only_inside_a_tenants_braces() {
    for ours in ["world:{acme}:audit", "world:{acme}:mem:s/ses_1:session/notes/a", "world:{~}:probe"] {
        assert!(is_ours(ours), "{ours}");
    }
    for foreign in
        ["", "world", "world:acme:audit", "world:{ACME}:audit", "world:{acme}", "qm:{acme}:audit", "x:world:{acme}:a"]
    {
        assert!(!is_ours(foreign), "{foreign}");
    }
}
