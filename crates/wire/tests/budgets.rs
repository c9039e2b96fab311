//! A budget is exact at its edge, in both directions, and an error names the place.

mod strategies;

use proptest::prelude::*;
use pydeno_wire::message::{Failure, HostMessage, Limits, WorkerMessage};
use pydeno_wire::{Budget, DecodeError, EncodeError, MAX_DATE_MILLISECONDS, Message, Value};

const ENDLESS: Budget = Budget { bytes: usize::MAX, nodes: usize::MAX, depth: u32::MAX };

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes, &ENDLESS).unwrap();
    bytes
}

/// The error of encoding, which must leave the buffer alone.
fn refusal(value: &Value, budget: &Budget) -> EncodeError {
    let mut bytes = vec![7, 7];
    let error = value.encode(&mut bytes, budget).unwrap_err();
    assert_eq!(bytes, [7, 7], "{error}");
    error
}

/// Nodes and depth, counted by the definition.
fn measure(value: &Value) -> (usize, u32) {
    let inside: Vec<&Value> = match value {
        Value::Array(items) | Value::Set(items) => items.iter().collect(),
        Value::Object(entries) => entries.iter().map(|(_, value)| value).collect(),
        Value::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
        _ => return (1, 0),
    };
    inside
        .into_iter()
        .map(measure)
        .fold((1, 1), |(nodes, depth), (more, deep)| (nodes + more, depth.max(deep + 1)))
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn a_value_passes_with_exactly_what_it_needs_and_with_nothing_less(value in strategies::value()) {
        let bytes = encoded(&value);
        let (nodes, depth) = measure(&value);
        let exact = Budget { bytes: bytes.len(), nodes, depth };
        let mut again = Vec::new();
        value.encode(&mut again, &exact).unwrap();
        prop_assert_eq!(&again, &bytes);
        prop_assert!(Value::decode(&bytes, &exact).is_ok());

        let fewer_bytes = Budget { bytes: bytes.len() - 1, ..exact };
        let refused = refusal(&value, &fewer_bytes);
        let is_exact = matches!(refused, EncodeError::Bytes { limit, .. } if limit == bytes.len() - 1);
        prop_assert!(is_exact, "{}", refused);
        prop_assert_eq!(Value::decode(&bytes, &fewer_bytes), Err(DecodeError::Bytes { limit: bytes.len() - 1 }));

        let fewer_nodes = Budget { nodes: nodes - 1, ..exact };
        let refused = refusal(&value, &fewer_nodes);
        let is_exact = matches!(refused, EncodeError::Nodes { limit, .. } if limit == nodes - 1);
        prop_assert!(is_exact, "{}", refused);
        let refused = Value::decode(&bytes, &fewer_nodes).unwrap_err();
        let is_exact = matches!(refused, DecodeError::Nodes { limit, .. } if limit == nodes - 1);
        prop_assert!(is_exact, "{}", refused);

        if let Some(limit) = depth.checked_sub(1) {
            let shallower = Budget { depth: limit, ..exact };
            let refused = refusal(&value, &shallower);
            prop_assert!(matches!(refused, EncodeError::Depth { limit: found, .. } if found == limit), "{}", refused);
            let refused = Value::decode(&bytes, &shallower).unwrap_err();
            prop_assert!(matches!(refused, DecodeError::Depth { limit: found, .. } if found == limit), "{}", refused);
        }
    }
}

#[test]
fn an_error_says_where_the_budget_ran_out() {
    let row = |x: Value| Value::Object(vec![("id".into(), Value::Null), ("x".into(), x)]);
    let table = |x: Value| {
        let rows = Value::Array(vec![row(Value::Null), row(Value::Null), row(x)]);
        Value::Object(vec![("items".into(), rows)])
    };
    for (value, budget, message) in [
        (
            table(Value::Bytes(vec![0; 1000])),
            Budget { bytes: 1000, ..ENDLESS },
            "$.items[2].x: the value takes more than 1000 bytes; return less, or raise the limit on bytes",
        ),
        (
            table(Value::Array(vec![Value::Null; 100])),
            Budget { nodes: 100, ..ENDLESS },
            "$.items[2].x: the value has more than 100 nodes; return less, or raise the limit on nodes",
        ),
        (
            table(nested(1)),
            Budget { depth: 3, ..ENDLESS },
            "$.items[2].x: the value is nested more than 3 deep; flatten it, or raise the limit on depth",
        ),
        (
            table(Value::Date(MAX_DATE_MILLISECONDS + 1)),
            ENDLESS,
            "$.items[2].x: 8640000000000001 ms from 1970 is no date in JavaScript; keep within ±8.64e15",
        ),
        (
            table(Value::Object(vec![("a b".into(), Value::Null), ("a b".into(), Value::Null)])),
            ENDLESS,
            r#"$.items[2].x["a b"]: the object has this key twice; keep one"#,
        ),
    ] {
        assert_eq!(refusal(&value, &budget).to_string(), message);
    }
}

#[test]
fn an_error_inside_a_set_or_map_says_which_member() {
    let too_deep = Budget { depth: 1, ..ENDLESS };
    for (value, path) in [
        (Value::Set(vec![Value::Null, nested(1)]), "$<member 1>"),
        (Value::Map(vec![(Value::Null, Value::Null), (nested(1), Value::Null)]), "$<key 1>"),
        (Value::Map(vec![(Value::Null, nested(1)), (Value::Null, Value::Null)]), "$<value 0>"),
    ] {
        assert_eq!(refusal(&value, &too_deep).path().unwrap().to_string(), path);
    }
}

#[test]
fn a_key_counts_as_bytes_and_not_as_a_node() {
    let value = Value::Object(vec![("key".into(), Value::Null)]);
    assert!(value.encode(&mut Vec::new(), &Budget { bytes: 6, nodes: 2, depth: 1 }).is_ok());
    let error = refusal(&value, &Budget { bytes: 4, nodes: 2, depth: 1 });
    assert_eq!(error.path().unwrap().to_string(), "$.key");
}

#[test]
fn no_budget_allows_more_than_the_greatest_depth() {
    let limit = Budget::MAX_DEPTH;
    let deepest = nested(limit as usize);
    let mut bytes = encoded(&deepest);
    assert_eq!(Value::decode(&bytes, &ENDLESS), Ok(deepest));

    let deeper = nested(limit as usize + 1);
    assert!(matches!(refusal(&deeper, &ENDLESS), EncodeError::Depth { limit: found, .. } if found == limit));
    bytes.insert(0, 0x81);
    let offset = limit as usize;
    assert_eq!(Value::decode(&bytes, &ENDLESS), Err(DecodeError::Depth { offset, limit }));
}

#[test]
fn the_arguments_of_a_call_share_bytes_and_nodes_but_not_depth() {
    let call = |arguments| WorkerMessage::Call { id: 1, request: 7, function: 2, arguments };
    let arguments = vec![nested(2), nested(2), nested(2)];
    let exact = Budget { bytes: 9, nodes: 9, depth: 2 };
    let mut bytes = Vec::new();
    call(arguments.clone()).encode(&mut bytes, &exact).unwrap();
    assert_eq!(WorkerMessage::decode(&bytes, &exact), Ok(call(arguments.clone())));
    for less in [Budget { bytes: 8, ..exact }, Budget { nodes: 8, ..exact }, Budget { depth: 1, ..exact }] {
        assert!(call(arguments.clone()).encode(&mut Vec::new(), &less).is_err(), "{less:?}");
        assert!(WorkerMessage::decode(&bytes, &less).is_err(), "{less:?}");
    }
    let error = call(arguments).encode(&mut Vec::new(), &Budget { bytes: 8, ..exact }).unwrap_err();
    assert_eq!(error.path().unwrap().to_string(), "$[2][0][0]");
}

#[test]
fn an_outcome_over_budget_leaves_no_part_of_its_message() {
    let budget = Budget { bytes: 10, ..Budget::default() };
    let value = Value::Bytes(vec![0; 100]);
    let mut out = vec![1, 2, 3];
    let done = WorkerMessage::Done { id: 1, outcome: Ok(value.clone()), unhandled: vec![] };
    let error = done.encode(&mut out, &budget).unwrap_err();
    assert_eq!(out, [1, 2, 3]);
    assert!(HostMessage::Answer { id: 1, outcome: Ok(value) }.encode(&mut out, &budget).is_err());
    assert_eq!(out, [1, 2, 3]);

    let path = error.path().unwrap().to_string();
    let instead = WorkerMessage::Done {
        id: 1,
        outcome: Err(Failure::Conversion { path, reason: error.reason() }),
        unhandled: vec![],
    };
    assert!(instead.encode(&mut out, &budget).is_ok());
}

#[test]
fn limits_beyond_this_machine_are_its_largest_budget() {
    let limits = Limits {
        max_heap_bytes: 0,
        max_value_bytes: u64::MAX,
        max_value_nodes: 5,
        max_value_depth: 6,
        console: false,
    };
    assert_eq!(Budget::from(&limits), Budget { bytes: usize::MAX, nodes: 5, depth: 6 });
}
