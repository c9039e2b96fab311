//! Whatever goes in comes out as it went.

mod guest;
#[path = "../../wire/tests/strategies/mod.rs"]
mod strategies;

use std::cell::RefCell;
use std::rc::Rc;

use guest::Guest;
use proptest::collection::vec;
use proptest::prelude::*;
use pydeno_wire::{Text, Value};

/// What JavaScript makes of a value: a function or stream belongs to a guest, and there is none; keys that are indices come
/// first; a collection has each primitive once, and one zero.
fn in_javascript(value: Value) -> Value {
    match value {
        Value::Function(_) | Value::Stream(_) => Value::Null,
        Value::Array(items) => Value::Array(items.into_iter().map(in_javascript).collect()),
        Value::Object(entries) => {
            let mut entries: Vec<(Text, Value)> =
                entries.into_iter().map(|(key, value)| (key, in_javascript(value))).collect();
            entries.sort_by_key(|(key, _)| index(key).unwrap_or(u32::MAX));
            Value::Object(entries)
        }
        Value::Set(members) => {
            let mut kept: Vec<Value> = Vec::new();
            for member in members.into_iter().map(|member| positive_zero(in_javascript(member))) {
                if !kept.iter().any(|earlier| are_one(earlier, &member)) {
                    kept.push(member);
                }
            }
            Value::Set(kept)
        }
        Value::Map(entries) => {
            let mut kept: Vec<(Value, Value)> = Vec::new();
            for (key, value) in entries {
                let (key, value) = (positive_zero(in_javascript(key)), in_javascript(value));
                match kept.iter_mut().find(|(earlier, _)| are_one(earlier, &key)) {
                    Some((_, last)) => *last = value,
                    None => kept.push((key, value)),
                }
            }
            Value::Map(kept)
        }
        scalar => scalar,
    }
}

/// The key as an array's index, of which 2^32 - 1 is none.
fn index(key: &Text) -> Option<u32> {
    let text = key.as_str()?;
    text.parse().ok().filter(|index: &u32| *index < u32::MAX && index.to_string() == text)
}

fn positive_zero(value: Value) -> Value {
    if value == Value::Number(0.0) { Value::Number(0.0) } else { value }
}

/// Whether a collection takes the two for the same: objects are each their own.
fn are_one(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.is_nan() && other.is_nan(),
        (Value::Undefined | Value::Null | Value::Bool(_) | Value::String(_) | Value::BigInt(_), _) => {
            one == other
        }
        _ => false,
    }
}

/// As `Debug` has it, which tells `-0` from `0` and NaN from everything else.
fn shown(value: &Value) -> String {
    format!("{value:?}")
}

/// Rows that share names, with values of a kind by column or of any.
fn tables() -> impl Strategy<Value = Value> {
    let cell = || prop_oneof![3 => strategies::number().prop_map(Value::Number), 1 => strategies::value()];
    let name = || prop_oneof![3 => strategies::text().prop_map(Value::String), 1 => strategies::value()];
    let row = (strategies::number(), name(), cell(), prop::option::weighted(0.95, Just(())));
    vec(row, 0..60).prop_map(|rows| {
        Value::Array(
            rows.into_iter()
                .map(|(id, name, v, whole)| {
                    let mut row =
                        vec![("id".into(), Value::Number(id)), ("name".into(), name), ("v".into(), v)];
                    if whole.is_none() {
                        row.swap(0, 2);
                    }
                    Value::Object(row)
                })
                .collect(),
        )
    })
}

fn lists() -> impl Strategy<Value = Value> {
    prop_oneof![
        vec(strategies::number().prop_map(Value::Number), 0..40).prop_map(Value::Array),
        vec(strategies::text().prop_map(Value::String), 0..40).prop_map(Value::Array),
        vec(strategies::text().prop_map(Value::String), 0..40).prop_map(Value::Set),
    ]
}

struct Mirror {
    guest: Guest,
    value: Rc<RefCell<Value>>,
}

impl Mirror {
    fn new() -> Self {
        let (guest, value) = (Guest::new(), Rc::new(RefCell::new(Value::Null)));
        let (given, taken) = (Rc::clone(&value), Rc::clone(&value));
        guest.bind("give", Box::new(move |_| Ok(given.borrow().clone())));
        guest.bind(
            "take",
            Box::new(move |mut arguments| {
                *taken.borrow_mut() = arguments.remove(0);
                Ok(Value::Undefined)
            }),
        );
        Self { guest, value }
    }

    fn shows(&self, value: Value) {
        let expected = shown(&in_javascript(value.clone()));
        *self.value.borrow_mut() = in_javascript(value);
        assert_eq!(shown(&self.guest.value("globalThis.kept = give()")), expected);
        self.guest.value("take(kept)");
        assert_eq!(shown(&self.value.borrow()), expected);
        assert_eq!(shown(&self.guest.value("give()")), expected);
    }
}

#[test]
fn any_value_comes_out_as_it_went_in() {
    let mirror = Mirror::new();
    proptest!(ProptestConfig::with_cases(500), |(value in strategies::value())| mirror.shows(value));
}

#[test]
fn any_table_comes_out_as_it_went_in() {
    let mirror = Mirror::new();
    proptest!(ProptestConfig::with_cases(200), |(value in tables())| mirror.shows(value));
    proptest!(ProptestConfig::with_cases(200), |(value in lists())| mirror.shows(value));
}

/// As many bytes as a piece has in which long ones cross, and around it.
const LENGTHS: [usize; 8] = [
    (256 << 10) - 1,
    256 << 10,
    (256 << 10) + 1,
    512 << 10,
    (512 << 10) + 7,
    1 << 20,
    (1 << 20) + 1,
    3 << 20,
];

#[test]
fn bytes_of_any_length_come_out_as_they_went_in() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    let function = guest.value("(bytes) => same(bytes)");
    for length in LENGTHS {
        let bytes = Value::Bytes((0..length).map(|index| ((index * 31) >> 3) as u8).collect());
        assert_eq!(guest.call(&function, std::slice::from_ref(&bytes)), Ok(bytes), "{length}");
    }
}

#[test]
fn long_bytes_are_those_of_the_view_and_stay_the_guests() {
    let guest = Guest::new();
    guest.value("globalThis.all = new Uint8Array(2 << 20).map((_, index) => index % 251); 0");
    let expected: Vec<u8> = (0..2 << 20).map(|index: usize| (index % 251) as u8).collect();
    for source in [
        "[all.subarray(5, 5 + 700000), 'between', new DataView(all.buffer, 77, 300000)]",
        "[new Int32Array(all.buffer, 4 * 1000, 100000), 'between', all.buffer]",
    ] {
        let Value::Array(parts) = guest.value(source) else { panic!("a list is expected") };
        let [Value::Bytes(first), _, Value::Bytes(second)] = &parts[..] else { panic!("bytes are expected") };
        let places = if first.len() == 700_000 { [5, 77] } else { [4000, 0] };
        assert_eq!(first[..], expected[places[0]..places[0] + first.len()], "{source}");
        assert_eq!(second[..], expected[places[1]..places[1] + second.len()], "{source}");
    }
    // What is pinned cannot be transferred.
    assert_eq!(guest.value("all.buffer.transfer(); all.length"), Value::Number(0.0));
}

#[test]
fn long_bytes_from_the_host_can_be_transferred() {
    let guest = Guest::new();
    let function = guest.value("(bytes) => { bytes.buffer.transfer(); return bytes.length }");
    assert_eq!(guest.call(&function, &[Value::Bytes(vec![7; 1 << 20])]), Ok(Value::Number(0.0)));
}
