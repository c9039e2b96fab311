//! Functions of the guest as values: held by the host, called, given back, let go of.

mod guest;

use std::time::Duration;

use guest::{Guest, number, object, string};
use pydeno_engine::EvalLimits;
use pydeno_wire::message::Failure;
use pydeno_wire::{Budget, Function, Text, Value};

fn name_of(value: &Value) -> String {
    match value {
        Value::Function(function) => function.name.to_string(),
        other => panic!("not a function: {other:?}"),
    }
}

#[test]
fn every_kind_of_function_is_a_value_with_its_name() {
    let guest = Guest::new();
    guest.bind("host", Box::new(|_| Ok(Value::Undefined)));
    guest.bind_async("later");
    for (source, name) in [
        ("(function named() {})", "named"),
        ("() => 1", ""),
        ("const arrow = () => 1; arrow", "arrow"),
        ("class Point {}; Point", "Point"),
        ("(function f() {}).bind(null)", "bound f"),
        ("async () => 1", ""),
        ("(function* rows() {})", "rows"),
        ("(async function* pages() {})", "pages"),
        ("host", "host"),
        ("later", "later"),
        ("Math.max", "max"),
        ("Map", "Map"),
        ("({ method() {} }).method", "method"),
        ("Object.setPrototypeOf(function cut() {}, null)", "cut"),
        ("Object.setPrototypeOf(function array() {}, Array.prototype)", "array"),
        ("Object.assign(function odd() {}, { then: 1 })", "odd"),
        ("Object.defineProperty(() => 1, 'name', { value: 'told' })", "told"),
        ("Object.defineProperty(function f() {}, 'name', { get() { throw 1 } })", ""),
        ("Object.defineProperty(function f() {}, 'name', { value: { toString() { throw 1 } } })", ""),
        ("(() => { const f = function () {}; delete f.name; return f })()", ""),
        ("class { static name() {} }", ""),
    ] {
        assert_eq!(
            name_of(
                &guest.value(
                    &format!("({source})")
                        .replace("(const arrow = () => 1; arrow)", "const arrow = () => 1; arrow")
                        .replace("(class Point {}; Point)", "class Point {}; Point")
                )
            ),
            name,
            "{source}"
        );
    }
    assert_eq!(
        name_of(&guest.value("Object.defineProperty(() => 1, 'name', { value: 'n'.repeat(1000) })")).len(),
        200
    );
}

#[test]
fn functions_stand_anywhere_in_a_value() {
    let guest = Guest::new();
    let Value::Object(properties) = guest.value(
        "({ run() { return 1 }, list: [1, () => 2, 'x', new Uint8Array([7])], map: new Map([[() => 3, () => 4]]), n: 5, \
         set: new Set([() => 6]) })",
    ) else {
        panic!("an object is one")
    };
    let field =
        |name: &str| &properties.iter().find(|(key, _)| key == &Text::from(name)).expect("it is there").1;
    assert_eq!(guest.call(field("run"), &[]), Ok(number(1.0)));
    let Value::Array(list) = field("list") else { panic!("an array is one") };
    assert_eq!(guest.call(&list[1], &[]), Ok(number(2.0)));
    assert_eq!((&list[2], &list[3]), (&string("x"), &Value::Bytes(vec![7])));
    let Value::Map(map) = field("map") else { panic!("a map is one") };
    assert_eq!((guest.call(&map[0].0, &[]), guest.call(&map[0].1, &[])), (Ok(number(3.0)), Ok(number(4.0))));
    let Value::Set(set) = field("set") else { panic!("a set is one") };
    assert_eq!(guest.call(&set[0], &[]), Ok(number(6.0)));
    assert_eq!(field("n"), &number(5.0));
}

#[test]
fn many_functions_and_other_values_keep_their_places() {
    let guest = Guest::new();
    let Value::Array(rows) = guest.value(
        "Array.from({ length: 3000 }, (_, id) => ({ id, f: () => id, g: () => -id, h: () => id * 2, name: `n${id}` }))",
    ) else {
        panic!("an array is one")
    };
    for (id, row) in rows.iter().enumerate().step_by(577) {
        let Value::Object(row) = row else { panic!("an object is one") };
        assert_eq!(guest.call(&row[1].1, &[]), Ok(number(id as f64)));
        assert_eq!(guest.call(&row[3].1, &[]), Ok(number(id as f64 * 2.0)));
        assert_eq!(row[4].1, string(&format!("n{id}")));
    }
}

#[test]
fn a_call_has_arguments_value_error_and_no_this() {
    let guest = Guest::new();
    let sum = guest.value("(...all) => all.reduce((a, b) => a + b, 0)");
    assert_eq!(guest.call(&sum, &[number(1.0), number(2.0), number(3.0)]), Ok(number(6.0)));
    assert_eq!(guest.call(&sum, &[]), Ok(number(0.0)));
    let echo = guest.value("(...all) => all");
    let odd =
        [Value::Undefined, number(f64::INFINITY), Value::Date(5), object([("a", Value::Bytes(vec![1]))])];
    assert_eq!(guest.call(&echo, &odd), Ok(Value::Array(odd.to_vec())));
    let own = guest.value("(function () { 'use strict'; return this === undefined })");
    assert_eq!(guest.call(&own, &[]), Ok(Value::Bool(true)));
    let fail = guest.value("(function fail() {\n  null.x })");
    let Err(Failure::Js(error)) = guest.call(&fail, &[]) else { panic!("it throws") };
    assert_eq!(error.name, "TypeError");
    let functions: Vec<String> = error.frames.iter().map(|frame| frame.function.to_string()).collect();
    assert_eq!(functions, ["fail"], "{}", error.stack);
    assert_eq!(error.frames[0].line, 2);
    let class = guest.value("(class Point {})");
    assert!(matches!(guest.call(&class, &[]), Err(Failure::Js(error)) if error.name == "TypeError"));
    let throws = guest.value("() => { throw { toString() { throw 1 } } }");
    assert!(matches!(guest.call(&throws, &[]), Err(Failure::Js(_))));
    let stuck = guest.value("() => Symbol()");
    assert!(matches!(guest.call(&stuck, &[]), Err(Failure::Conversion { .. })));
}

#[test]
fn a_call_may_wait_like_an_evaluation() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    let twice = guest.value("(async (n) => [await tool(n), await tool(n + 1)])");
    guest.invoke(5, &twice, &[number(1.0)]);
    assert!(guest.0.is_pending());
    guest.settle(calls.id(0), string("a"));
    guest.settle(calls.id(1), string("b"));
    assert_eq!(guest.ended(), (5, Ok(Value::Array(vec![string("a"), string("b")]))));
    assert_eq!(calls.noted.borrow()[1].request, 5);
    let reject = guest.value("(async () => { throw new RangeError('no') })");
    assert!(matches!(guest.call(&reject, &[]), Err(Failure::Js(error)) if error.name == "RangeError"));
    let never = guest.value("() => new Promise(() => {})");
    assert_eq!(guest.call(&never, &[]), Err(Failure::NeverSettles));
}

#[test]
fn a_call_is_stopped_at_its_timeout() {
    let guest = Guest::new();
    let forever = guest.value("() => { for (;;); }");
    let Value::Function(Function { handle, .. }) = forever else { panic!("a function is one") };
    let limits = EvalLimits { timeout: Duration::from_millis(100), ..EvalLimits::default() };
    guest.0.begin_invoke(1, handle, &[], &limits);
    assert_eq!(guest.ended(), (1, Err(Failure::Timeout)));
    let reaction = guest.value("() => { Promise.resolve().then(() => { for (;;); }); return 1 }");
    let Value::Function(Function { handle, .. }) = reaction else { panic!("a function is one") };
    guest.0.begin_invoke(2, handle, &[], &limits);
    assert_eq!(guest.ended(), (2, Err(Failure::Timeout)));
    assert!(guest.still_answers());
}

#[test]
fn what_a_function_throws_is_told_whatever_its_reactions_do() {
    let guest = Guest::new();
    guest.bind("take", Box::new(|_| Ok(Value::Undefined)));
    let source = "() => { Promise.resolve().then(() => { for (let i = 0; i < 9; i++) try { take(Symbol()) } catch {} \
                  (function deep() { try { deep() } catch { take({ a: [[[1]]] }) } })() }).catch(() => {}); throw new URIError('mine') }";
    let function = guest.value(source);
    assert!(matches!(guest.call(&function, &[]), Err(Failure::Js(error)) if error.message == "mine"));
}

#[test]
fn a_function_that_is_not_held_cannot_be_called() {
    let guest = Guest::new();
    let function = guest.value("globalThis.f = () => 1; f");
    let Value::Function(Function { handle, .. }) = function.clone() else { panic!("a function is one") };
    assert_eq!(guest.call(&function, &[]), Ok(number(1.0)));
    guest.0.release(&[handle, 98765]);
    assert_eq!(guest.call(&function, &[]), Err(Failure::UnknownFunction));
    let Value::Function(again) = guest.value("f") else { panic!("a function is one") };
    assert!(again.handle > handle, "a handle is never used again");
    for unknown in [0, 98765, u64::MAX] {
        let unknown = Value::Function(Function { handle: unknown, name: "f".into() });
        assert_eq!(guest.call(&unknown, &[]), Err(Failure::UnknownFunction));
    }
}

#[test]
fn a_function_goes_back_to_the_guest_as_itself() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    for claim in [
        "const f = () => 1; same(f) === f",
        "same({ a: [f] }).a[0] === f",
        "same(new Map([[f, 1]])).get(f) === 1",
        "class Own extends Map {}; same([Own, same, Math.max]).every((g, i) => g === [Own, same, Math.max][i])",
    ] {
        assert_eq!(guest.eval(claim), Ok(Value::Bool(true)), "{claim}");
    }
    let identity = guest.value("(g) => g === f");
    let held = guest.value("f");
    assert_eq!(guest.call(&identity, std::slice::from_ref(&held)), Ok(Value::Bool(true)));
    let gone = Value::Function(Function { handle: 98765, name: "f".into() });
    let Err(Failure::Js(error)) = guest.call(&identity, &[Value::Array(vec![gone.clone()])]) else {
        panic!("it throws")
    };
    assert_eq!(
        (error.name, error.message.to_string().contains("no longer held")),
        ("TypeError".into(), true)
    );
    guest.bind("give", Box::new(move |_| Ok(gone.clone())));
    assert_eq!(guest.error("give()").name, "TypeError");
}

#[test]
fn no_more_than_ten_thousand_are_held() {
    let guest = Guest::new();
    let Value::Array(held) = guest.value("Array.from({ length: 10000 }, () => () => 1)") else {
        panic!("an array is one")
    };
    assert_eq!(guest.refused("() => 1").0, "$");
    let Value::Function(Function { handle, .. }) = held[17] else { panic!("a function is one") };
    guest.0.release(&[handle]);
    let (path, reason) = guest.refused("({ a: [() => 1, () => 2] })");
    assert_eq!((path.as_str(), reason.contains("than the host holds")), ("$.a[1]", true), "{reason}");
    guest.value("() => 1");
    assert_eq!(guest.refused("() => 1").0, "$");
}

#[test]
fn a_conversion_that_fails_holds_nothing() {
    let guest = Guest::new();
    guest.bind("take", Box::new(|_| Ok(Value::Undefined)));
    let functions = "Array.from({ length: 9000 }, () => () => 1)";
    for source in [
        format!("[{functions}, Symbol()]"),
        format!("(async () => [{functions}, Symbol()])()"),
        format!("take({functions}, Symbol())"),
        format!("take([{functions}, new Proxy(() => 1, {{}})])"),
    ] {
        for _ in 0..3 {
            let outcome = guest.eval(&source);
            assert!(
                matches!(outcome, Err(Failure::Conversion { .. } | Failure::Js(_))),
                "{source}: {outcome:?}"
            );
        }
    }
    assert!(matches!(guest.value(functions), Value::Array(all) if all.len() == 9000));
    assert!(matches!(guest.eval(functions), Err(Failure::Conversion { .. })), "a control: these are held");
}

#[test]
fn names_count_as_bytes() {
    let guest = Guest::new();
    let budget = Budget { bytes: 100, ..Budget::default() };
    let limits = EvalLimits { budget, ..EvalLimits::default() };
    let named = |count: usize| {
        Text::from(format!("Array.from({{ length: {count} }}, () => function name_of_ten() {{}})"))
    };
    assert!(guest.0.eval(&named(9), "test.js", &limits).is_ok());
    assert!(matches!(guest.0.eval(&named(10), "test.js", &limits), Err(Failure::Conversion { .. })));
}

#[test]
fn a_held_function_is_kept_alive_and_one_let_go_of_is_not() {
    let guest = Guest::new();
    let make = "globalThis.seen = []; Array.from({ length: 200 }, (_, id) => { \
                const f = () => id; seen.push(new WeakRef(f)); return f })";
    let Value::Array(held) = guest.value(make) else { panic!("an array is one") };
    let alive = || {
        // The collector takes what is left on the stack for references, and the array of all of them may be among it.
        guest.value("(function deep(n) { return n === 0 ? 0 : deep(n - 1) + 1 })(1000)");
        // The engine collects everything before it says that a heap is over its limit.
        let limits = EvalLimits { max_heap_bytes: 1, ..EvalLimits::default() };
        let collected = guest.0.eval(&Text::from("for (;;);"), "test.js", &limits);
        assert_eq!(collected, Err(Failure::HeapLimit));
        match guest.value("seen.filter((f) => f.deref() !== undefined).length") {
            Value::Number(alive) => alive as usize,
            other => panic!("a length is a number: {other:?}"),
        }
    };
    assert_eq!(alive(), held.len());
    assert_eq!(guest.call(&held[17], &[]), Ok(number(17.0)));
    let handles: Vec<u64> = held
        .iter()
        .map(|function| match function {
            Value::Function(function) => function.handle,
            other => panic!("not a function: {other:?}"),
        })
        .collect();
    guest.0.release(&handles);
    // Some of it may be left all the same.
    assert!(alive() < held.len() / 4);
}

#[test]
fn a_proxy_of_a_function_stays_refused() {
    let guest = Guest::new();
    for source in [
        "new Proxy(() => 1, {})",
        "new Proxy(class {}, { getOwnPropertyDescriptor() { throw 1 } })",
        "(() => { const { proxy, revoke } = Proxy.revocable(() => 1, {}); revoke(); return proxy })()",
    ] {
        let (path, reason) = guest.refused(source);
        assert_eq!((path.as_str(), reason.contains("is a proxy")), ("$", true), "{source}: {reason}");
    }
    let bound = guest.value("new Proxy(() => 5, {}).bind()");
    assert_eq!(guest.call(&bound, &[]), Ok(number(5.0)), "what is bound to one is none");
}
