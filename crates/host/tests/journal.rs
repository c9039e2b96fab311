//! Journals on paper: exactly what was written is read again, and nothing else.

use pydeno_host::agent::{
    Answer, Event, Journal, JournalFault, RecordedRun, Spent, ToolError, ToolErrorKind, open, seal,
};
use pydeno_wire::Value;
use pydeno_wire::message::Language;

const KEY: &[u8] = b"0123456789abcdef";

fn journal() -> Journal {
    let error = ToolError { kind: ToolErrorKind::Budget, name: "Error".into(), message: "\u{0}é".into() };
    let run = RecordedRun {
        source: "await f()".into(),
        name: "program.js".into(),
        language: Language::TypeScript,
        first_call: 3,
        events: vec![
            Event::Call { function: 1, arguments: [7; 32] },
            Event::Call { function: 0, arguments: [8; 32] },
            Event::Answer { call: 1, answer: Answer::Error(error) },
            Event::Answer { call: 0, answer: Answer::Value(nested(400)) },
        ],
        outcome: Some([9; 32]),
    };
    Journal {
        engine: "libengine.so".into(),
        fingerprint: [1; 32],
        clock: Some(-8_640_000_000_000_000),
        random_seed: Some(u64::MAX),
        spent: Spent { calls: 2, by_tool: [("f".to_owned(), 2), ("g".to_owned(), 3)].into(), next_call: 5 },
        runs: vec![run.clone(), RecordedRun { outcome: None, ..run }],
    }
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(Value::Undefined, |inside, _| Value::Array(vec![inside]))
}

#[test]
fn what_is_sealed_is_opened_as_it_was() {
    let sealed = seal(&journal(), KEY, b"a", usize::MAX).unwrap();
    assert_eq!(open(&sealed, &[KEY], b"a", sealed.len()), Ok(journal()));
}

#[test]
fn any_of_the_keys_will_do_and_without_one_nothing_is_opened() {
    let sealed = seal(&journal(), KEY, b"a", usize::MAX).unwrap();
    let newer: &[u8] = b"a newer key, which signs now";
    assert_eq!(open(&sealed, &[newer, KEY], b"a", usize::MAX), Ok(journal()));
    assert_eq!(open(&sealed, &[newer], b"a", usize::MAX), Err(JournalFault::Signature));
    assert_eq!(open(&sealed, &[KEY, b"short"], b"a", usize::MAX), Err(JournalFault::ShortKey));
    assert_eq!(open::<&[u8]>(&sealed, &[], b"a", usize::MAX), Err(JournalFault::ShortKey));
}

#[test]
fn another_key_other_data_and_every_changed_byte_are_noticed() {
    let sealed = seal(&journal(), KEY, b"a", usize::MAX).unwrap();
    assert_eq!(open(&sealed, &[b"0123456789abcdeF"], b"a", usize::MAX), Err(JournalFault::Signature));
    assert_eq!(open(&sealed, &[KEY], b"", usize::MAX), Err(JournalFault::Signature));
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 0x10;
        let expected = if at < 8 { JournalFault::NoJournal } else { JournalFault::Signature };
        assert_eq!(open(&changed, &[KEY], b"a", usize::MAX), Err(expected), "byte {at}");
    }
}

#[test]
fn where_the_associated_data_ends_is_signed_too() {
    let sealed = seal(&journal(), KEY, b"ab", usize::MAX).unwrap();
    let mut moved = sealed.clone();
    moved.insert(40, b'b');
    assert_eq!(open(&moved, &[KEY], b"a", usize::MAX), Err(JournalFault::Signature));
}

#[test]
fn a_short_key_and_a_journal_over_its_limit_are_refused_both_ways() {
    let sealed = seal(&journal(), KEY, b"", usize::MAX).unwrap();
    let most = sealed.len() - 1;
    assert_eq!(seal(&journal(), KEY, b"", most), Err(JournalFault::TooLong { most }));
    assert_eq!(open(&sealed, &[KEY], b"", most), Err(JournalFault::TooLong { most }));
    assert_eq!(seal(&journal(), b"short", b"", usize::MAX), Err(JournalFault::ShortKey));
    assert_eq!(open(&sealed, &[b"short"], b"", usize::MAX), Err(JournalFault::ShortKey));
}

#[test]
fn of_bytes_that_nobody_vouches_for_only_the_one_encoding_is_read() {
    let bytes = journal().encode(usize::MAX).unwrap();
    assert_eq!(Journal::decode(&bytes), Ok(journal()));
    let mut read = 0;
    for at in 0..bytes.len() {
        for flip in [1, 0x20, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            if let Ok(other) = Journal::decode(&changed) {
                assert_eq!(other.encode(usize::MAX), Some(changed), "byte {at}");
                read += 1;
            }
        }
        assert!(Journal::decode(&bytes[..at]).is_err());
    }
    assert!(read > 0, "digests may be anything");
}

#[test]
fn another_order_and_another_zero_are_other_encodings_and_not_read() {
    let plain = Journal { clock: Some(0), ..journal() };
    let bytes = plain.encode(usize::MAX).unwrap();
    let replaced = |from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        [&bytes[..at], to, &bytes[at + from.len()..]].concat()
    };
    let fingerprint = [1; 32];
    let minus_zero = [&fingerprint[..], b"\xfb\x80\0\0\0\0\0\0\0"].concat();
    assert!(Journal::decode(&replaced(&[&fingerprint[..], b"\0"].concat(), &minus_zero)).is_err());
    assert!(Journal::decode(&replaced(b"\x61f\x02\x61g\x03", b"\x61g\x03\x61f\x02")).is_err());
    assert_eq!(Journal::decode(&bytes), Ok(plain));
}

#[test]
fn a_run_that_waits_before_another_is_no_journal() {
    let mut journal = journal();
    journal.runs.reverse();
    let bytes = journal.encode(usize::MAX).unwrap();
    assert!(matches!(Journal::decode(&bytes), Err(JournalFault::Malformed(_))));
}
