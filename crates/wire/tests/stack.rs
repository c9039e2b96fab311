//! The deepest value that can be decoded is safe on a small stack, in a debug build too.

use std::process::{Command, ExitStatus};
use std::thread;

use pydeno_wire::{Budget, Value};

/// The stacks that the documentation of [`Budget::MAX_DEPTH`] speaks of.
const SMALL_STACK_BYTES: usize = 256 << 10;
const ORDINARY_STACK_BYTES: usize = 2 << 20;

const DEEP: Budget = Budget { bytes: usize::MAX, nodes: usize::MAX, depth: u32::MAX };

/// Set in the child process whose stack is to overflow.
const OVERFLOW: &str = "PYDENO_WIRE_TEST_OVERFLOW";

/// A container of each kind around `inner`.
fn around(inner: Value, kind: usize) -> Value {
    match kind {
        0 => Value::Array(vec![inner]),
        1 => Value::Set(vec![inner]),
        2 => Value::Object(vec![("key".into(), inner)]),
        3 => Value::Map(vec![(inner, Value::Null)]),
        _ => Value::Map(vec![(Value::Null, inner)]),
    }
}

fn nested(depth: u32, kind: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| around(inner, kind))
}

fn on_a_stack_of(bytes: usize, work: impl FnOnce() + Send + 'static) -> thread::Result<()> {
    thread::Builder::new().stack_size(bytes).spawn(work).unwrap().join()
}

#[test]
fn the_deepest_value_is_encoded_decoded_and_dropped_on_a_small_stack() {
    on_a_stack_of(SMALL_STACK_BYTES, || {
        for kind in 0..5 {
            let value = nested(Budget::MAX_DEPTH, kind);
            let mut bytes = Vec::new();
            value.encode(&mut bytes, &DEEP).unwrap();
            drop(value);
            drop(Value::decode(&bytes, &DEEP).unwrap());
        }
    })
    .unwrap();
}

#[test]
fn the_deepest_value_is_cloned_compared_and_printed_on_an_ordinary_stack() {
    on_a_stack_of(ORDINARY_STACK_BYTES, || {
        for kind in 0..5 {
            let value = nested(Budget::MAX_DEPTH, kind);
            assert_eq!(value.clone(), value);
            assert!(format!("{value:?}").contains("Null"));
        }
    })
    .unwrap();
}

#[test]
fn a_depth_bomb_is_dropped_in_the_middle_on_a_small_stack() {
    on_a_stack_of(SMALL_STACK_BYTES, || {
        let bomb = vec![0x81; 1_000_000];
        assert!(Value::decode(&bomb, &DEEP).is_err());
    })
    .unwrap();
}

#[test]
fn without_the_bound_the_stack_would_overflow() {
    if std::env::var_os(OVERFLOW).is_some() {
        drop(on_a_stack_of(SMALL_STACK_BYTES, || drop(nested(200 * Budget::MAX_DEPTH, 0))));
        return;
    }
    let status = child(true);
    assert!(!status.success(), "the child survived: {status}");
    let status = child(false);
    assert!(status.success(), "a child that does nothing must succeed: {status}");
}

/// How a process ends that runs one test of this file.
fn child(overflows: bool) -> ExitStatus {
    let (name, set) = if overflows {
        ("without_the_bound_the_stack_would_overflow", OVERFLOW)
    } else {
        ("a_depth_bomb_is_dropped_in_the_middle_on_a_small_stack", "PYDENO_WIRE_TEST_NOTHING")
    };
    let output =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(set, "1").output();
    output.unwrap().status
}
