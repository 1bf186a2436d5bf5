//! Faults a test can plant at the border: refusals, silence and cut connections.

use std::time::Duration;

/// One kind of trouble for matching requests, a given number of times.
#[derive(Debug, Clone)]
pub struct ClusterFault {
    /// The HTTP method it is for, or all.
    pub method: Option<String>,
    /// Text the path and query must contain.
    pub path: String,
    /// How many requests it hits.
    pub times: u32,
    /// What happens to them.
    pub harm: ClusterHarm,
}

/// What a fault does.
#[derive(Debug, Clone)]
pub enum ClusterHarm {
    /// Answers this status at once, with `Retry-After` in seconds if given; nothing is carried out.
    Answer(u16, Option<u64>),
    /// Carries the request out and answers this status all the same, as a proxy that gave up waiting does.
    LateAnswer(u16),
    /// Takes the request and never answers.
    Silence,
    /// Cuts the connection before anything is done.
    Cut,
    /// Carries the request out and cuts the connection instead of answering.
    CutAfter,
    /// Answers after a while.
    Delay(Duration),
}

/// The planted faults.
#[derive(Debug, Default)]
pub(crate) struct ClusterFaults(Vec<ClusterFault>);

impl ClusterFaults {
    pub(crate) fn plant(&mut self, fault: ClusterFault) {
        self.0.push(fault);
    }

    /// The harm that meets this request, counted down.
    pub(crate) fn meet(&mut self, method: &str, path: &str) -> Option<ClusterHarm> {
        let found = self.0.iter().position(|fault| {
            fault.times > 0
                && fault.method.as_deref().is_none_or(|wanted| wanted == method)
                && path.contains(&fault.path)
        })?;
        self.0[found].times -= 1;
        let harm = self.0[found].harm.clone();
        self.0.retain(|fault| fault.times > 0);
        Some(harm)
    }
}
