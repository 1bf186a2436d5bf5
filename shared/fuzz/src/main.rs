//! One target of `targets.rs` under libFuzzer. `deploy/fuzz` starts it; the variable `FUZZ_TARGET` says which.
#![no_main]

mod targets;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TARGET: LazyLock<targets::FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    match targets::TARGETS.iter().find(|(known, _)| *known == name) {
        Some((_, target)) => *target,
        None => panic!("FUZZ_TARGET is one of {:?}", targets::TARGETS.map(|(name, _)| name)),
    }
});

fuzz_target!(|bytes: &[u8]| (*TARGET)(bytes));
