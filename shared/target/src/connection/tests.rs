use super::*;
use std::future::pending;

type Lost = NoAnswer<&'static str>;

const WORDS: NoAnswerWords = NoAnswerWords {
    target: TargetWords {
        one: "printer",
        several: "printers",
        argument: "device",
        required: Code::InvalidArgument,
        unknown: Code::NotFound,
    },
    narrow: "print less",
    change: "the page",
    look: "the tray",
};

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

async fn is_closed_after(lost: Lost) -> bool {
    let connection = Connection::new("cluster", "main", 1);
    for _ in 0..5 {
        let answer: Result<(), Lost> = connection.send_once(later(), async { Err(lost.clone()) }).await;
        assert_eq!(answer, Err(lost.clone()));
    }
    connection.send_once(later(), async { Ok::<(), Lost>(()) }).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn only_a_target_that_is_silent_or_out_of_reach_is_left_alone() {
    for lost in [Lost::Unconnected, Lost::Broken] {
        assert!(is_closed_after(lost.clone()).await, "{lost:?}");
    }
    for lost in [Lost::TooLarge, Lost::Late, Lost::Refused, Lost::Crowded, Lost::Credential("gone")] {
        assert!(!is_closed_after(lost.clone()).await, "{lost:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn silence_counts_only_when_the_caller_waited_for_a_while() {
    for (patience, closes) in [(SILENCE / 2, false), (SILENCE, true)] {
        let connection = Connection::new("cluster", "main", 1);
        for _ in 0..5 {
            let answer: Result<(), Lost> = connection.send_once(Instant::now() + patience, pending()).await;
            assert_eq!(answer, Err(Lost::Late));
        }
        let next = connection.send_once(later(), async { Ok::<(), Lost>(()) }).await;
        assert_eq!(next.is_err(), closes, "{patience:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_slot_for_ever() {
    let connection = Connection::new("cluster", "main", 1);
    let slot = connection.slot::<&str>(later()).await.expect("one is free");
    assert_eq!(connection.slot::<&str>(later()).await.err(), Some(Lost::Crowded));
    drop(slot);
    assert!(connection.slot::<&str>(later()).await.is_ok());
}

#[test]
fn a_lost_write_is_unknown_unless_nothing_was_sent() {
    for lost in [Lost::Late, Lost::Broken, Lost::TooLarge] {
        assert_eq!(WORDS.write(&lost).code, Code::OutcomeUnknown, "{lost:?}");
        assert_ne!(WORDS.read(&lost).code, Code::OutcomeUnknown, "{lost:?}");
    }
    let nothing_sent =
        [Lost::Credential("gone"), Lost::Refused, Lost::Closed(SILENCE), Lost::Crowded, Lost::Unconnected];
    for lost in nothing_sent {
        assert_eq!(WORDS.write(&lost), WORDS.read(&lost));
    }
    let late = WORDS.write(&Lost::Late);
    assert_eq!(late.message, "the printer did not answer in time; the page may have happened");
    assert_eq!(late.next.as_deref(), Some("do not call again; look at the tray"));
    assert_eq!(WORDS.read(&Lost::Closed(SILENCE)).retry_after_ms, Some(2_000));
}

#[tokio::test(start_paused = true)]
async fn a_busy_target_is_asked_again_twice_within_the_deadline() {
    let first = Duration::from_millis(100);
    let mut retries = BusyRetries::new(first);
    assert_eq!(retries.next_wait(500, None, later()), None);
    assert_eq!(retries.next_wait(503, None, later()), Some(first));
    assert_eq!(retries.next_wait(429, Some(SILENCE), later()), Some(SILENCE));
    assert_eq!(retries.next_wait(504, None, later()), None, "two are enough");
    assert_eq!(BusyRetries::new(first).next_wait(503, None, Instant::now() + first), None);
    assert_eq!(BusyRetries::none().next_wait(503, None, later()), None);
}
