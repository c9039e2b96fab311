//! The invariants of `crates/preflight` on whatever the fuzzer makes. A folder of real scripts is a good corpus.

#![no_main]

#[path = "../../crates/preflight/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|source: &[u8]| invariants::hold(source));
