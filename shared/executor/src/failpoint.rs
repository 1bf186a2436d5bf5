//! Lines at which a test stops this process, to kill it there. In a build without failpoints they are nothing.
//!
//! Only the work that came by is stopped, for good: whatever it has sent goes on outside, nothing else of it happens
//! here, and no lease of it is renewed. No thread is held up, so several runs can be stopped at the same line. The test
//! waits for the words on stderr and ends the whole process by SIGKILL.

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

/// Says where it is, and stays there.
pub(crate) async fn stay(name: &str) {
    // Whoever closed stderr is not waiting for this line either.
    std::io::stderr().write_all(format!("at failpoint {name}\n").as_bytes()).ok();
    std::future::pending().await
}
