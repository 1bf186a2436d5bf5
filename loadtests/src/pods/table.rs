//! The table of lengths, and what is aimed at.

/// How many times as much a pod of a longer list may cost as one of the shortest: linear, with room for noise.
const GROWTH: f64 = 1.3;
/// How many KiB of memory the readings may add, however long the list is.
const MEMORY: u64 = 32 << 10;

/// One length.
#[derive(Debug, Clone)]
pub(super) struct PodsRow {
    /// How many pods the list has.
    pub(super) pods: usize,
    /// Time for each pod through the service, relative to the shortest list.
    pub(super) service: f64,
    /// The same for the cluster itself.
    pub(super) floor: f64,
    /// Time through the service over time without it.
    pub(super) ratio: f64,
    /// CPU time of the service's process for each pod, relative to the shortest list.
    pub(super) cpu: Option<f64>,
    /// By how many KiB its memory grew, at its highest.
    pub(super) memory: Option<u64>,
    /// Requests the cluster saw for one reading through the service.
    pub(super) requests: f64,
}

/// The head of the table.
pub(super) const HEAD: &str = "\
| pods | service, time per pod | floor, time per pod | service / floor | service, cpu per pod | peak memory | requests | ok? |
|--:|--:|--:|--:|--:|--:|--:|---|";

/// What the columns mean.
pub(super) const FOOT: &str = "
time and cpu per pod: how many times that of the shortest list, read in the same round; of the rounds the middle one, of
the cpu all together. service / floor: the same list through the service and bare. peak memory: above what the service
had before its first call. requests: what the cluster saw for one reading through the service.
aims: time per pod within x1.30, or within 1.30 times the floor's own growth; cpu per pod within x1.30; less than 32 MiB.";

impl PodsRow {
    /// Whether something grew that should not have. What the system does not tell is not judged.
    pub(super) fn missed(&self) -> bool {
        let time = self.service > GROWTH * self.floor.max(1.0);
        time || self.cpu.is_some_and(|cpu| cpu > GROWTH) || self.memory.is_some_and(|memory| memory >= MEMORY)
    }

    /// The row as a line of the table.
    pub(super) fn line(&self) -> String {
        let PodsRow { pods, service, floor, ratio, cpu, memory, requests } = self;
        let untold = || "-".to_owned();
        let cpu = cpu.map_or_else(untold, |cpu| format!("x{cpu:.2}"));
        let memory = memory.map_or_else(untold, |memory| format!("{:.1} MiB", memory as f64 / 1_024.0));
        let ok = if self.missed() { "MISSED" } else { "ok" };
        format!("| {pods} | x{service:.2} | x{floor:.2} | {ratio:.2} | {cpu} | {memory} | {requests:.1} | {ok} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAR: PodsRow = PodsRow {
        pods: 20_000,
        service: 1.3,
        floor: 1.0,
        ratio: 2.5,
        cpu: Some(1.3),
        memory: Some(2_048),
        requests: 200.0,
    };

    #[test]
    fn a_row_tells_all_figures_and_a_verdict() {
        assert_eq!(LINEAR.line(), "| 20000 | x1.30 | x1.00 | 2.50 | x1.30 | 2.0 MiB | 200.0 | ok |");
        assert_eq!(LINEAR.line().matches('|').count(), HEAD.lines().next().unwrap().matches('|').count());
        let untold = PodsRow { cpu: None, memory: None, ..LINEAR };
        assert!(untold.line().contains("| - | - |") && !untold.missed());
    }

    #[test]
    fn time_may_grow_as_the_floor_does_and_cpu_may_not() {
        assert!(PodsRow { service: 1.31, ..LINEAR }.missed());
        assert!(PodsRow { service: 1.31, floor: 0.5, ..LINEAR }.missed());
        assert!(!PodsRow { service: 2.5, floor: 2.0, ..LINEAR }.missed());
        assert!(PodsRow { service: 2.7, floor: 2.0, ..LINEAR }.missed());
        assert!(PodsRow { floor: 2.0, cpu: Some(1.31), ..LINEAR }.missed());
    }

    #[test]
    fn memory_has_a_bound_whatever_the_length() {
        assert!(!PodsRow { memory: Some(MEMORY - 1), ..LINEAR }.missed());
        assert!(PodsRow { memory: Some(MEMORY), ..LINEAR }.missed());
        assert!(PodsRow { memory: Some(MEMORY), ..LINEAR }.line().ends_with("| MISSED |"));
    }
}
