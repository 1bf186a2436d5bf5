//! How long a test waits for something that has to happen, and how it asks.

use std::future::Future;
use std::time::Duration;

/// Far beyond anything that works; reached only by what is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How often a state is looked at that nobody announces.
const AGAIN: Duration = Duration::from_millis(10);

/// Looks again and again until it finds something, and fails the test when that takes too long.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    in_time(what, looking).await
}

/// Waits for something that will come by itself, and fails the test when it does not.
pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("waited {} s for {what}", PATIENCE.as_secs()),
    }
}
