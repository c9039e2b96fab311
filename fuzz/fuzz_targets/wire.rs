//! The invariants of `crates/wire` on whatever the fuzzer makes.

#![no_main]

#[path = "../../crates/wire/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::hold(bytes));
