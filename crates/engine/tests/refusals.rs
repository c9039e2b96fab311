//! What does not cross is refused with its path and reason, and the isolate goes on.

mod guest;

use std::time::Duration;

use guest::Guest;
use pydeno_engine::EvalLimits;
use pydeno_wire::message::Failure;
use pydeno_wire::{Budget, Text, Value};

#[test]
fn what_does_not_cross_is_named_by_its_path() {
    let guest = Guest::new();
    for (source, path, reason) in [
        ("Symbol()", "$", "is a symbol"),
        ("Symbol.iterator", "$", "is a symbol"),
        ("[1, Symbol('x')]", "$[1]", "is a symbol"),
        ("({ items: [0, 1, 2, { x: Symbol() }] })", "$.items[3].x", "is a symbol"),
        ("({ 'a b': Symbol() })", "$[\"a b\"]", "is a symbol"),
        ("new Set([1, Symbol()])", "$<member 1>", "is a symbol"),
        ("new Map([[Symbol(), 1]])", "$<key 0>", "is a symbol"),
        ("new Map([[0, 0], [1, { f: Symbol() }]])", "$<value 1>.f", "is a symbol"),
        ("new Proxy({}, {})", "$", "is a proxy"),
        ("[new Proxy([], {})]", "$[0]", "is a proxy"),
        ("new Proxy(() => 1, {})", "$", "is a proxy"),
        (
            "({ a: (() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy })() })",
            "$.a",
            "is a proxy",
        ),
        ("({ get a() { return 1 } })", "$.a", "is a getter"),
        ("({ set a(value) {} })", "$.a", "is a getter"),
        ("Object.defineProperty([1, 2], 1, { get() { return 1 } })", "$[1]", "is a getter"),
        ("({ a: Promise.resolve(1) })", "$.a", "is a promise"),
        ("[new TypeError('x')]", "$[0]", "is an error"),
        ("new (class Lost extends Error { code = 7 })", "$", "is an error"),
        ("({ a: /a/ })", "$.a", "of a built-in class"),
        ("(function* () {})()", "$", "of a built-in class"),
        ("[].values()", "$", "of a built-in class"),
        ("new Number(1)", "$", "of a built-in class"),
        ("new WeakMap()", "$", "of a built-in class"),
        ("new Intl.NumberFormat()", "$", "of a built-in class"),
        ("new Date(NaN)", "$", "is an invalid date"),
        ("[new Date('x')]", "$[0]", "is an invalid date"),
        ("(() => { const v = new Uint8Array(2); v.buffer.transfer(); return { v } })()", "$.v", "detached"),
        ("(() => { const b = new ArrayBuffer(2); b.transfer(); return b })()", "$", "detached"),
        (
            "(() => { const v = new DataView(new ArrayBuffer(2)); v.buffer.transfer(); return v })()",
            "$",
            "detached",
        ),
    ] {
        let (refused, why) = guest.refused(source);
        assert_eq!(refused, path, "{source}");
        assert!(why.contains(reason), "{source}: {why}");
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn a_cycle_is_named_where_it_closes() {
    let guest = Guest::new();
    for (source, path) in [
        ("(() => { const a = []; a[0] = a; return a })()", "$[0]"),
        ("(() => { const a = { b: { c: [] } }; a.b.c.push(a.b); return a })()", "$.b.c[0]"),
        ("(() => { const m = new Map(); m.set('self', m); return [m] })()", "$[0]<value 0>"),
        ("(() => { const s = new Set(); s.add([s]); return s })()", "$<member 0>[0]"),
        ("globalThis.self = globalThis; ({ self })", "$.self.self"),
    ] {
        let (refused, reason) = guest.refused(source);
        assert_eq!((refused.as_str(), reason.contains("cycle")), (path, true), "{source}: {reason}");
        assert!(guest.still_answers());
    }
}

fn within(guest: &Guest, budget: Budget, source: &str) -> Result<Value, Failure> {
    guest.0.eval(&Text::from(source), "test.js", &EvalLimits { budget, ..EvalLimits::default() })
}

fn reason(outcome: Result<Value, Failure>) -> String {
    match outcome {
        Err(Failure::Conversion { reason, .. }) => reason,
        other => panic!("it was converted: {other:?}"),
    }
}

#[test]
fn depth_is_what_the_budget_allows_and_not_one_more() {
    let guest = Guest::new();
    let budget = Budget { depth: 3, ..Budget::default() };
    assert!(within(&guest, budget, "[[[1]]]").is_ok());
    assert!(within(&guest, budget, "({ a: new Map([[1, new Set([1])]]) })").is_ok());
    assert!(reason(within(&guest, budget, "[[[[]]]]")).contains("deep"));
    assert!(reason(within(&guest, budget, "({ a: { b: { c: {} } } })")).contains("deep"));
    let none = Budget { depth: 0, ..Budget::default() };
    assert!(within(&guest, none, "1n").is_ok());
    assert!(reason(within(&guest, none, "[]")).contains("deep"));
}

#[test]
fn the_deepest_value_of_all_crosses_both_ways() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    let budget = Budget { depth: Budget::MAX_DEPTH, ..Budget::default() };
    let deep = |depth| {
        format!("(() => {{ let v = 0; for (let i = 0; i < {depth}; i++) v = [v]; return same(v) }})()")
    };
    assert!(within(&guest, budget, &deep(Budget::MAX_DEPTH)).is_ok());
    let beyond = Budget { depth: u32::MAX, ..Budget::default() };
    let outcome = within(&guest, beyond, &deep(Budget::MAX_DEPTH + 1));
    assert!(matches!(outcome, Err(Failure::Js(error)) if error.message.to_string().contains("deep")));
}

#[test]
fn nodes_are_counted_before_they_are_looked_at() {
    let guest = Guest::new();
    let budget = Budget { nodes: 4, ..Budget::default() };
    assert!(within(&guest, budget, "[1, 2, 3]").is_ok());
    assert!(within(&guest, budget, "new Map([[1, 2]])").is_ok());
    for source in ["[1, 2, 3, 4]", "({ a: [1, 2, 3] })", "new Map([[1, 2], [3, 4]])", "new Set([1, 2, 3, 4])"]
    {
        assert!(reason(within(&guest, budget, source)).contains("parts"), "{source}");
    }
    assert!(reason(within(&guest, Budget::default(), "new Array(2 ** 32 - 1)")).contains("parts"));
    assert!(reason(within(&guest, Budget { nodes: 0, ..budget }, "1")).contains("parts"));
}

#[test]
fn bytes_are_counted_for_texts_keys_and_buffers() {
    let guest = Guest::new();
    let budget = Budget { bytes: 10, ..Budget::default() };
    for source in ["'0123456789'", "['01234', '56789']", "({ '01234': '56789' })", "new Uint8Array(10)"] {
        assert!(within(&guest, budget, source).is_ok(), "{source}");
    }
    for source in [
        "'0123456789x'",
        "['01234', '56789x']",
        "({ '01234': '56789x' })",
        "new Uint8Array(11)",
        "2n ** 100n",
        "[{ aaaa: 1 }, { aaaa: 2 }, { aaaa: 3 }]",
    ] {
        assert!(reason(within(&guest, budget, source)).contains("bytes"), "{source}");
    }
}

#[test]
fn the_arguments_of_a_call_share_one_budget() {
    let guest = Guest::new();
    guest.bind("take", Box::new(|_| Ok(Value::Undefined)));
    let budget = Budget { bytes: 10, nodes: 6, depth: 5 };
    assert!(within(&guest, budget, "take('01234', ['56789'])").is_ok());
    for source in ["take('01234', ['567890'])", "take([1, 2, 3], [4, 5])", "take(1, 2, 3, 4, 5, 6, 7)"] {
        let outcome = within(&guest, budget, source);
        assert!(matches!(outcome, Err(Failure::Js(error)) if error.name == "TypeError"), "{source}");
    }
}

#[test]
fn a_symbol_key_is_not_looked_at() {
    let guest = Guest::new();
    assert_eq!(guest.value("({ [Symbol('x')]: () => 1 })"), Value::Object(vec![]));
}

#[test]
fn the_deadline_covers_the_conversion() {
    let guest = Guest::new();
    // A million arrays of a million parts each would be read for hours; the budget here would let them.
    let source =
        "const inner = new Array(2 ** 20).fill(0); const outer = new Array(2 ** 20).fill(inner); outer";
    let budget = Budget { nodes: usize::MAX, bytes: usize::MAX, depth: 10 };
    let limits = EvalLimits { timeout: Duration::from_millis(300), budget, ..EvalLimits::default() };
    assert_eq!(guest.0.eval(&Text::from(source), "test.js", &limits), Err(Failure::Timeout));
    assert!(guest.still_answers());
}
