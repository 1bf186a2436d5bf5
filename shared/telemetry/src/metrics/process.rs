//! What the system says of this process. Where there is no `/proc`, these metrics are absent.

use super::{
    PROCESS_CPU, PROCESS_MAX_FDS, PROCESS_OPEN_FDS, PROCESS_RESIDENT_MEMORY, PROCESS_START_TIME, PROCESS_THREADS,
    PROCESS_VIRTUAL_MEMORY,
};
use std::fs;

/// Ticks of a second in `/proc`: Linux promises this number to programs, whatever the kernel counts in.
const TICKS: f64 = 100.0;

/// Looks once.
pub(super) fn look() {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (stat, status, limits) = (read("/proc/self/stat"), read("/proc/self/status"), read("/proc/self/limits"));
    if let Some(ProcessTimes { cpu, started }) = ProcessTimes::read(&stat) {
        PROCESS_CPU.set([], cpu);
        if let Some(booted) = number_after(&read("/proc/stat"), "btime ") {
            PROCESS_START_TIME.set([], booted + started);
        }
    }
    let kilobytes = |key| number_after(&status, key).map(|number| number * 1024.0);
    for (gauge, value) in [
        (&PROCESS_RESIDENT_MEMORY, kilobytes("VmRSS:")),
        (&PROCESS_VIRTUAL_MEMORY, kilobytes("VmSize:")),
        (&PROCESS_THREADS, number_after(&status, "Threads:")),
        (&PROCESS_MAX_FDS, number_after(&limits, "Max open files")),
        // The descriptor that is open for looking is not counted.
        (&PROCESS_OPEN_FDS, fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1) as f64)),
    ] {
        if let Some(value) = value {
            gauge.set([], value);
        }
    }
}

/// Seconds of CPU, and seconds from the start of the machine to that of the process.
struct ProcessTimes {
    cpu: f64,
    started: f64,
}

impl ProcessTimes {
    fn read(stat: &str) -> Option<ProcessTimes> {
        // The name of the program stands in brackets and may hold anything, so the fields are counted behind it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(ProcessTimes { cpu: (ticks(11)? + ticks(12)?) / TICKS, started: ticks(19)? / TICKS })
    }
}

/// The first number behind a key that begins a line.
fn number_after(text: &str, key: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_name_looks_like_fields_is_read_all_the_same() {
        let stat = "7 (a ) 9 (b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 1200 1000 20";
        let times = ProcessTimes::read(stat).unwrap();
        assert_eq!((times.cpu, times.started), (3.0, 12.0));
        assert!(ProcessTimes::read("").is_none());
    }

    #[test]
    fn numbers_stand_behind_their_keys() {
        assert_eq!(number_after("VmPeak:\t 9 kB\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12.0));
        assert_eq!(
            number_after("Max open files            1024                 524288  files", "Max open files"),
            Some(1024.0)
        );
        assert_eq!(number_after("Max open files            unlimited", "Max open files"), None);
    }
}
