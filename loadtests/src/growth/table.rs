//! The table of growth, the same as JSON, its charts, and what is aimed at.

use super::probe::GrowthFigures;
use crate::figures;
use serde_json::{Value, json};

/// The head of the table.
pub(super) const HEAD: &str = "\
| what | how many | list p50, ms | call p50, ms | calls/s | service cpu, us | Redis cpu, us | commands | service, MiB | Redis, MiB | Redis bytes each |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// What the columns mean.
pub(super) const FOOT: &str = "
Eight connections on one replica (on each replica in the last rows). cpu and commands: for each call of `memory_list` in a
session, the background's included. Redis bytes each: what Redis holds more after they were written than before, for each that was
added, without what the calls of the measurement left; an idle session is counted with its audit record, the links of the chain and its places in two lists.";

/// The most that Redis may hold for an idle session, all included.
const SESSION_BYTES: f64 = 1024.0;
/// How much longer a list may take with the most sessions.
const LIST_GROWTH: f64 = 1.2;

/// One step.
pub(super) struct GrowthRow {
    pub(super) what: &'static str,
    pub(super) size: usize,
    /// What Redis holds for each one that this step wrote.
    pub(super) added: Option<f64>,
    pub(super) figures: GrowthFigures,
}

impl GrowthRow {
    pub(super) fn line(&self) -> String {
        let GrowthFigures { list_ms, call_ms, calls, service_us, redis_us, commands, service_mib, redis_mib } =
            &self.figures;
        let added = self.added.map(|bytes| format!("{bytes:.0} ")).unwrap_or_default();
        format!(
            "| {} | {} | {list_ms:.2} | {call_ms:.2} | {calls:.0} | {service_us:.0} | {redis_us:.0} | {commands:.2} | {service_mib:.0} | {redis_mib:.1} | {added}|",
            self.what, self.size
        )
    }
}

/// What Redis holds for each one that a step wrote.
pub(super) fn bytes_each(rows: &[GrowthRow], what: &str) -> Vec<(usize, f64)> {
    rows.iter().filter(|row| row.what == what).filter_map(|row| Some((row.size, row.added?))).collect()
}

/// What is promised, each with its verdict.
pub(super) fn judge(rows: &[GrowthRow]) -> Vec<String> {
    let verdict = |ok: bool| if ok { "ok" } else { "MISSED" };
    let mut lines = Vec::new();
    for what in ["sessions", "waiting runs", "audit records"] {
        for (size, bytes) in bytes_each(rows, what) {
            lines.push(format!("{what}, up to {size}: {bytes:.0} bytes of Redis each"));
        }
    }
    // The last step is the least disturbed by what else Redis allocates meanwhile.
    if let Some((_, bytes)) = bytes_each(rows, "sessions").last() {
        lines.push(format!("idle session at most {SESSION_BYTES} bytes: {}", verdict(*bytes <= SESSION_BYTES)));
    }
    let sessions: Vec<&GrowthRow> = rows.iter().filter(|row| row.what == "sessions").collect();
    if let [first, .., last] = sessions[..] {
        let ratio = last.figures.list_ms / first.figures.list_ms;
        let ok = verdict(ratio <= LIST_GROWTH);
        lines.push(format!("a list with {} sessions against none: {ratio:.2}, at most {LIST_GROWTH}: {ok}", last.size));
    }
    lines
}

/// All steps for programs.
pub(super) fn json(rows: &[GrowthRow]) -> Value {
    let row = |row: &GrowthRow| {
        let GrowthFigures { list_ms, call_ms, calls, service_us, redis_us, commands, service_mib, redis_mib } =
            &row.figures;
        json!({
            "what": row.what, "size": row.size, "list_p50_ms": list_ms, "call_p50_ms": call_ms, "calls_per_second": calls,
            "service_cpu_us": service_us, "redis_cpu_us": redis_us, "commands": commands, "service_mib": service_mib,
            "redis_mib": redis_mib, "redis_bytes_each": row.added,
        })
    };
    json!({ "growth": rows.iter().map(row).collect::<Vec<_>>() })
}

/// CPU time of both for each call, over how many there are of each.
pub(super) fn chart(rows: &[GrowthRow]) -> String {
    let mut series: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for row in rows {
        let point = (row.size.max(1) as f64, row.figures.service_us + row.figures.redis_us);
        match series.iter_mut().find(|(name, _)| name == row.what) {
            Some((_, points)) => points.push(point),
            None => series.push((row.what.to_owned(), vec![point])),
        }
    }
    figures::lines("CPU time of service and Redis for each call, microseconds", "how many there are", &series)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(size: usize, added: Option<f64>, list_ms: f64) -> GrowthRow {
        // However much the calls of the measurement have left.
        let figures = GrowthFigures { redis_mib: 900.0, list_ms, ..GrowthFigures::default() };
        GrowthRow { what: "sessions", size, added, figures }
    }

    #[test]
    fn bytes_are_of_what_a_step_added() {
        let rows = [row(0, None, 1.0), row(1024, Some(1024.0), 1.0), row(3072, Some(2048.0), 1.1)];
        assert_eq!(bytes_each(&rows, "sessions"), [(1024, 1024.0), (3072, 2048.0)]);
        let judged = judge(&rows);
        assert!(judged.iter().any(|line| line.contains("idle session at most 1024 bytes: MISSED")), "{judged:?}");
        assert!(judged.iter().any(|line| line.contains("3072 sessions against none: 1.10, at most 1.2: ok")));
    }

    #[test]
    fn a_line_has_a_place_for_each_column() {
        let columns = HEAD.lines().next().unwrap().matches('|').count();
        assert_eq!(row(1, Some(1.0), 1.0).line().matches('|').count(), columns);
    }
}
