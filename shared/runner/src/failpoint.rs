//! Lines at which a test stops this process, to kill it there. In a build without failpoints they are nothing.

use std::io::Write;

/// Stops whoever comes by, if `FAILPOINTS=<name>=return` says so.
macro_rules! stop_at {
    ($name:literal) => {{
        fn is_set() -> bool {
            fail::fail_point!($name, |_| true);
            false
        }
        if is_set() {
            $crate::failpoint::stay($name).await;
        }
    }};
}

pub(crate) use stop_at;

/// Waits for as many milliseconds as `FAILPOINTS=runner_claimed_slowly=return(MILLIS)` says.
pub(crate) async fn claimed_slowly() {
    fn millis() -> u64 {
        fail::fail_point!("runner_claimed_slowly", |millis| millis.and_then(|text| text.parse().ok()).unwrap_or(0));
        0
    }
    let millis = millis();
    if millis > 0 {
        announce("runner_claimed_slowly");
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
    }
}

/// Says where it is, and stays there.
pub(crate) async fn stay(name: &str) {
    announce(name);
    std::future::pending().await
}

fn announce(name: &str) {
    // Whoever closed stderr is not waiting for this line either.
    std::io::stderr().write_all(format!("at failpoint {name}\n").as_bytes()).ok();
}
