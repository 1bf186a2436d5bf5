//! Notices of runs, for whoever sends them on: what waits, what was decided, what ended.
//!
//! Telling never waits and never fails a call: a full queue loses the notice and says so. The record stays the truth.

use domain::json::hex;
use domain::run::{Run, RunState};
use domain::{KeyedDigest, Tenant};
use telemetry::metrics;
use tokio::sync::mpsc;

/// Notices that may wait to be sent.
const QUEUE: usize = 1_024;

/// What happened to a run that somebody may want to hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEventKind {
    /// It waits for a person.
    Pending,
    /// A person said yes or no.
    Decided,
    /// Nothing more will happen to it by itself.
    Finished,
}

impl RunEventKind {
    /// As it stands in a notice.
    pub const fn as_str(self) -> &'static str {
        match self {
            RunEventKind::Pending => "run.pending",
            RunEventKind::Decided => "run.decided",
            RunEventKind::Finished => "run.finished",
        }
    }

    /// What a move from one state to another means to others; most moves mean nothing to them.
    pub fn of(from: Option<RunState>, to: RunState) -> Option<RunEventKind> {
        if from == Some(to) {
            return None;
        }
        match to {
            RunState::PendingApproval => Some(RunEventKind::Pending),
            RunState::Approved | RunState::Rejected => Some(RunEventKind::Decided),
            RunState::Executing => None,
            RunState::Expired
            | RunState::Cancelled
            | RunState::Succeeded
            | RunState::Failed
            | RunState::OutcomeUnknown
            | RunState::ReconciledSucceeded
            | RunState::ReconciledFailed => Some(RunEventKind::Finished),
        }
    }
}

/// One notice.
#[derive(Debug, Clone)]
pub struct Notice {
    /// Whose run.
    pub tenant: Tenant,
    /// What happened.
    pub happened: RunEventKind,
    /// The run as it was right after.
    pub run: Run,
}

/// Where notices go; nowhere unless somebody listens.
#[derive(Debug, Clone, Default)]
pub struct RunEvents(Option<mpsc::Sender<Notice>>);

impl RunEvents {
    /// Notices and where they come out.
    pub fn channel() -> (RunEvents, mpsc::Receiver<Notice>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (RunEvents(Some(sender)), receiver)
    }

    pub(crate) fn tell(&self, tenant: &Tenant, from: Option<RunState>, run: &Run) {
        // Whoever moves a run passes here, listened to or not.
        if from != Some(run.state) {
            metrics::RUN_TRANSITIONS.add([run.state.as_str(), metrics::tenant_label(tenant.as_str())], 1);
        }
        let (Some(sender), Some(happened)) = (&self.0, RunEventKind::of(from, run.state)) else { return };
        let notice = Notice { tenant: tenant.clone(), happened, run: run.clone() };
        if sender.try_send(notice).is_err() {
            tracing::warn!(run = %run.id, "a notice was dropped: too many wait to be sent");
        }
    }
}

/// What a notice is signed with: `v1=` and the HMAC-SHA256 of timestamp, a dot, and the body.
pub fn sign(secret: &[u8], timestamp: u64, body: &[u8]) -> String {
    let digest = KeyedDigest::new(secret).bytes(timestamp.to_string().as_bytes()).bytes(b".").bytes(body);
    format!("v1={}", hex(&digest.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ap9_the_signature_covers_timestamp_and_body() {
        let signed = sign(b"0123456789abcdef0123456789abcdef", 1_700_000_000, b"{}");
        assert!(signed.starts_with("v1=") && signed.len() == 3 + 64);
        assert_ne!(signed, sign(b"0123456789abcdef0123456789abcdef", 1_700_000_001, b"{}"));
        assert_ne!(signed, sign(b"0123456789abcdef0123456789abcdef", 1_700_000_000, b"{ }"));
        assert_ne!(signed, sign(b"1123456789abcdef0123456789abcdef", 1_700_000_000, b"{}"));
    }

    #[test]
    fn only_what_concerns_others_is_told() {
        let told = |from, to| RunEventKind::of(from, to);
        assert_eq!(told(None, RunState::PendingApproval), Some(RunEventKind::Pending));
        assert_eq!(
            told(Some(RunState::PendingApproval), RunState::PendingApproval),
            None,
            "a first yes of two decides nothing"
        );
        assert_eq!(told(Some(RunState::PendingApproval), RunState::Approved), Some(RunEventKind::Decided));
        assert_eq!(told(Some(RunState::Approved), RunState::Executing), None);
        assert_eq!(told(Some(RunState::Executing), RunState::Executing), None, "a renewed lease is nobody's concern");
        assert_eq!(told(Some(RunState::Executing), RunState::OutcomeUnknown), Some(RunEventKind::Finished));
        assert_eq!(told(Some(RunState::Succeeded), RunState::Succeeded), None, "neither is a delivery");
    }
}
