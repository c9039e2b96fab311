//! The invariants of `crates/transform` on whatever the fuzzer makes. A folder of real scripts is a good corpus.

#![no_main]

#[path = "../../crates/transform/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|source: &[u8]| invariants::hold(source));
