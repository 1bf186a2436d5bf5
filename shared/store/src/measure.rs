//! What a round trip and its failure are called in metrics.

use crate::StoreError;
use crate::ops::Op;

/// What a batch of steps is for: the step that names it, whatever else rides along.
pub(crate) fn operation(ops: &[Op]) -> &'static str {
    let named = |op: &Op| match op {
        Op::Enter(_) => "append",
        Op::Get { .. } => "get",
        Op::Touch { .. } => "touch",
        Op::Count { .. } => "count",
        Op::Range { .. } | Op::RangeBack { .. } => "range",
        Op::Read { .. } => "read",
        Op::Total { .. } => "total",
        Op::Rerank { .. } | Op::Place { .. } | Op::TakeOut { .. } => "reindex",
        Op::Forget { .. } => "forget",
        Op::Publish { .. } => "publish",
        Op::Now => "now",
    };
    let entering = ops.iter().find(|op| matches!(op, Op::Enter(_)));
    entering.or(ops.first()).map_or("none", named)
}

/// Which kind of failure it is; none for what says something about the data and not about the store.
pub(crate) fn kind(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Timeout => Some("timeout"),
        StoreError::Unavailable { .. } => Some("connection"),
        StoreError::ReadOnly => Some("readonly"),
        StoreError::Full => Some("oom"),
        StoreError::QuotaReached(_) | StoreError::Corrupt { .. } | StoreError::NotAuthentic { .. } => None,
    }
}
