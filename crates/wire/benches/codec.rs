//! Prints medians of what values cost in the codec: `cargo bench -p pydeno-wire`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use pydeno_wire::{Budget, Value};

fn main() {
    let row = |id: i32| {
        Value::Object(vec![
            ("id".into(), Value::Number(f64::from(id))),
            ("name".into(), Value::String(format!("item {id}").into())),
            ("v".into(), Value::Number(f64::from(id) / 7.0)),
        ])
    };
    value("50,000 objects {id, name, v}", 31, &Value::Array((0..50_000).map(row).collect()));
    value(
        "1,000,000 numbers",
        15,
        &Value::Array((0..1_000_000).map(|i| (f64::from(i) / 3.0).into()).collect()),
    );
    value("1 MiB of bytes", 200, &Value::Bytes(vec![7; 1 << 20]));
    value("a string of 1.7 MB", 200, &Value::String("a1b2c3d4e5".repeat(170_000).into()));
}

/// Both directions of one value, and what it takes to be rid of it.
fn value(what: &str, rounds: usize, value: &Value) {
    let budget = Budget::default();
    let mut encoded = Vec::new();
    measure(&format!("encode {what}"), rounds, || {
        encoded.clear();
        value.encode(&mut encoded, &budget).expect("it is within the budget");
    });
    measure(&format!("decode and drop {what}"), rounds, || {
        drop(black_box(Value::decode(black_box(&encoded), &budget).expect("it was encoded")));
    });
}

fn measure(what: &str, rounds: usize, mut action: impl FnMut()) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            action();
            began.elapsed()
        })
        .collect();
    times.sort();
    println!("{what:50} {:>12?}", times[rounds / 2]);
}
