//! Whatever is decoded as a journal is encoded as the same bytes again, and nothing panics or uses memory without bound.

#![no_main]

use pydeno_host::agent::Journal;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(journal) = Journal::decode(bytes) {
        assert_eq!(journal.encode(usize::MAX).as_deref(), Some(bytes));
    }
});
