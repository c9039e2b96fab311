//! A guest that has changed every built-in it can reach neither runs code during a conversion nor changes a value.

mod guest;

use std::cell::RefCell;
use std::rc::Rc;

use guest::{Guest, number, object, string};
use pydeno_engine::HookTime;
use pydeno_wire::message::{ConsoleLevel, Failure, HostError};
use pydeno_wire::{BigInt, Text, Value};

type Shared<T> = Rc<RefCell<Vec<T>>>;

/// Replaces what can be replaced: every function of every built-in object and prototype by one that counts its calls,
/// and every name that the bridge or the language could look up on a prototype by a counting accessor.
const POISON: &str = r"
globalThis.calls = 0;
globalThis.called = Object.setPrototypeOf([], null);
(() => {
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Object;
  const { ownKeys } = Reflect;
  const spy = (what) => function () { calls++; called[calls] = what; return 0; };
  const TypedArray = getPrototypeOf(Uint8Array);
  const holders = [
    Object, Array, Map, Set, Date, Promise, Reflect, JSON, Math, Symbol, String, Number, BigInt, Boolean, Error,
    TypeError, RangeError, Function, Uint8Array, Float64Array, ArrayBuffer, DataView, Proxy, TypedArray, RegExp,
    WeakMap, WeakSet, WeakRef,
  ];
  const prototypes = holders.map((holder) => holder.prototype).filter((prototype) => prototype !== undefined);
  for (const iterator of [[].values(), new Map().values(), new Set().values(), ''.matchAll(/a/g)]) {
    prototypes.push(getPrototypeOf(iterator), getPrototypeOf(getPrototypeOf(iterator)));
  }
  const names = [
    'value', 'get', 'set', 'done', 'next', 'then', 'toJSON', 'constructor', 'length', 'name', 'writable', 'enumerable',
    'configurable', 'has', 'size', 'message', 'stack', 'cause', 'line', 'column', 'sourceURL', 'call', 'apply', 'bind',
    'toString', 'valueOf', 'join', 'tape', 'end', 'text', 'buffers', 'path', 'state', 'species', 'steps', 'nodes', 'functions',
    Symbol.iterator, Symbol.toPrimitive, Symbol.toStringTag, Symbol.hasInstance, Symbol.isConcatSpreadable,
    Symbol.species, 0, 1, 2, 3, 4, 5, 6, 7,
  ];
  // The plan is made first and carried out afterwards, because its own means are among what it poisons.
  const plan = setPrototypeOf([], null);
  let steps = 0;
  const replace = (target, key) => {
    const old = getOwnPropertyDescriptor(target, key);
    if (old && !old.configurable) return;
    const descriptor = { __proto__: null, configurable: true, get: spy('get ' + String(key)), set: spy('set ' + String(key)) };
    plan[steps++] = () => defineProperty(target, key, descriptor);
  };
  for (const target of [...prototypes, ...holders]) {
    for (const key of ownKeys(target)) replace(target, key);
  }
  for (const target of prototypes) {
    for (const name of names) replace(target, name);
  }
  const keep = ['calls', 'called', 'host', 'log', 'made', 'tables', 'parts', 'behindProxy', 'thrown', 'strange', 'globalThis'];
  for (const name of ownKeys(globalThis)) {
    const { configurable, writable } = getOwnPropertyDescriptor(globalThis, name);
    if (configurable && writable && !keep.includes(name)) plan[steps++] = () => { globalThis[name] = 1; };
  }
  for (let i = 0; i < steps; i++) plan[i]();
})();
calls = 0;
0";

/// What is made before the poison, so that making it calls nothing.
const MADE: &str = r"
globalThis.made = {
  array: [1, 'two', [3]], object: { a: 1, b: { c: 2 } }, map: new Map([['k', { v: 1 }]]), set: new Set([1]),
  date: new Date(5), bytes: new Uint8Array([1, 2]), view: new DataView(new ArrayBuffer(1)), big: -300n,
  buffer: new ArrayBuffer(1), nothing: undefined, hole: [, 1], point: new (class Point { x = 1 })(),
};
globalThis.parts = { function: () => 1, proxy: new Proxy({}, {
  get() { calls++ }, getPrototypeOf() { calls++; return null }, ownKeys() { calls++; return [] },
  getOwnPropertyDescriptor() { calls++ }, has() { calls++ }, isExtensible() { calls++ },
}), promise: Promise.resolve(1), cycle: [], getter: { get x() { calls++ } }, symbol: Symbol('s') };
parts.cycle[0] = parts.cycle;
globalThis.behindProxy = Object.create(parts.proxy);
globalThis.thrown = Object.assign(new TypeError('told'), { extra: 1 });
globalThis.strange = new Error('x');
Object.defineProperty(strange, 'name', { get() { calls++ } });
Object.defineProperty(strange, 'message', { get() { calls++ } });
0";

/// What is read by column and without a look at each element, where no prototype has elements.
const TABLES: &str = r"
globalThis.tables = {
  rows: Array.from({ length: 300 }, (_, id) => ({ id, name: 'n' + id, at: { x: id / 2 }, odd: id % 2 ? null : [id] })),
  numbers: Array.from({ length: 300 }, (_, id) => id / 2), strings: Array.from({ length: 300 }, (_, id) => 's' + id),
  holes: [1, , 3, , 5, , 7], map: new Map([[1, 'a'], [2, 'b'], [3, 'c']]), set: new Set([1, 2, 3, 4, 5, 6, 7, 8]),
};
0";

fn tables() -> Value {
    let (ids, each) = (|| (0..300).map(f64::from), Value::Array);
    let row = |id: f64| {
        object([
            ("id", number(id)),
            ("name", string(&format!("n{id}"))),
            ("at", object([("x", number(id / 2.0))])),
            ("odd", if id % 2.0 == 1.0 { Value::Null } else { Value::Array(vec![number(id)]) }),
        ])
    };
    let hole = |id: u32| if id.is_multiple_of(2) { Value::Undefined } else { number(f64::from(id)) };
    object([
        ("rows", each(ids().map(row).collect())),
        ("numbers", each(ids().map(|id| number(id / 2.0)).collect())),
        ("strings", each(ids().map(|id| string(&format!("s{id}"))).collect())),
        ("holes", each((1..=7).map(hole).collect())),
        (
            "map",
            Value::Map(vec![
                (number(1.0), string("a")),
                (number(2.0), string("b")),
                (number(3.0), string("c")),
            ]),
        ),
        ("set", Value::Set((1..=8).map(|id| number(f64::from(id))).collect())),
    ])
}

/// The guest, what its `host` function was given, and what it logged.
fn poisoned() -> (Guest, Shared<Value>, Shared<String>) {
    poisoned_by(POISON)
}

fn poisoned_by(poison: &str) -> (Guest, Shared<Value>, Shared<String>) {
    let guest = Guest::new();
    let taken = Rc::new(RefCell::new(Vec::new()));
    let lines = Rc::new(RefCell::new(Vec::new()));
    let (take, write) = (Rc::clone(&taken), Rc::clone(&lines));
    guest.bind(
        "host",
        Box::new(move |mut arguments| match arguments.pop() {
            Some(Value::String(word)) if word == "fail" => {
                Err(HostError { name: "TypeError".into(), message: "no".into() })
            }
            Some(argument) => {
                take.borrow_mut().push(argument.clone());
                Ok(argument)
            }
            None => Ok(expected()),
        }),
    );
    guest.0.set_console(
        Box::new(move |_: ConsoleLevel, line: Text| write.borrow_mut().push(line.to_string())),
        HookTime::Guest,
    );
    guest.value("console.log; globalThis.log = console.log; 0");
    guest.value(MADE);
    guest.value(TABLES);
    guest.value(poison);
    (guest, taken, lines)
}

fn expected() -> Value {
    object([
        ("array", Value::Array(vec![number(1.0), string("two"), Value::Array(vec![number(3.0)])])),
        ("object", object([("a", number(1.0)), ("b", object([("c", number(2.0))]))])),
        ("map", Value::Map(vec![(string("k"), object([("v", number(1.0))]))])),
        ("set", Value::Set(vec![number(1.0)])),
        ("date", Value::Date(5)),
        ("bytes", Value::Bytes(vec![1, 2])),
        ("view", Value::Bytes(vec![0])),
        ("big", Value::BigInt(BigInt::new(true, vec![1, 44]))),
        ("buffer", Value::Bytes(vec![0])),
        ("nothing", Value::Undefined),
        ("hole", Value::Array(vec![Value::Undefined, number(1.0)])),
        ("point", object([("x", number(1.0))])),
    ])
}

fn calls(guest: &Guest) -> Value {
    guest.value("calls")
}

#[test]
fn the_poison_works() {
    let (guest, ..) = poisoned();
    assert_eq!(calls(&guest), number(0.0));
    guest.value("({}).value; [].length; ({}).then; [][3]; 0");
    assert_eq!(calls(&guest), number(3.0), "a control: an own `length` is not asked, everything else is");
}

#[test]
fn a_value_comes_out_unchanged() {
    let (guest, ..) = poisoned();
    assert_eq!(guest.value("made"), expected());
    assert_eq!(guest.value("behindProxy"), object([]));
    assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
}

#[test]
fn a_value_goes_in_and_out_again_unchanged() {
    let (guest, taken, _) = poisoned();
    assert_eq!(guest.value("host(made)"), expected());
    assert_eq!(guest.value("host()"), expected());
    assert_eq!(guest.value("host(host())"), expected());
    assert_eq!(taken.borrow().as_slice(), [expected(), expected()]);
    assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
}

#[test]
fn what_does_not_cross_is_still_refused_by_its_path() {
    let (guest, ..) = poisoned();
    for (source, path, reason) in [
        ("({ a: parts.proxy })", "$.a", "is a proxy"),
        ("({ a: parts.promise })", "$.a", "is a promise"),
        ("({ a: parts.cycle })", "$.a[0]", "is part of a cycle"),
        ("parts.getter", "$.x", "is a getter"),
        ("[parts.symbol]", "$[0]", "is a symbol"),
    ] {
        let (refused, why) = guest.refused(source);
        assert_eq!((refused.as_str(), why.contains(reason)), (path, true), "{source}: {why}");
    }
    assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
}

#[test]
fn errors_are_described_and_thrown_all_the_same() {
    let (guest, ..) = poisoned();
    let error = guest.error("throw thrown");
    assert_eq!((error.message, error.stack.is_empty()), ("told".into(), false));
    assert_eq!(guest.error("throw parts.proxy").message, "[Proxy]");
    assert_eq!(guest.error("throw parts.getter").message, "{ \"x\": [Getter] }");
    assert_eq!(guest.error("throw strange").name, "Error");
    assert_eq!(guest.error("host('fail')").message, "no");
    assert_eq!(guest.error("null.x").message, "null is not an object (evaluating 'null.x')");
    assert_eq!(guest.error("host(parts.symbol)").message.to_string().matches("is a symbol").count(), 1);
    assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
}

#[test]
fn logging_shows_the_same_and_calls_nothing() {
    let (guest, _, lines) = poisoned();
    guest.value("log('a', made, parts, thrown, strange, behindProxy)");
    assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
    let lines = lines.borrow();
    for part in
        ["a {", "\"c\": 2", "Map(1) { \"k\" => { \"v\": 1 } }", "[Proxy]", "[Promise]", "[Circular]", "told"]
    {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
}

#[test]
fn a_promise_of_a_value_gives_the_value() {
    let (guest, ..) = poisoned();
    // Awaiting looks `constructor` up on the promise, as the language says; the value is what counts here.
    assert_eq!(guest.eval("parts.promise"), Ok(number(1.0)));
    assert_eq!(guest.eval("(async () => made)()"), Ok(expected()));
    assert!(
        matches!(guest.eval("(async () => { throw thrown })()"), Err(Failure::Js(error)) if error.message == "told")
    );
}

#[test]
fn binding_after_the_poison_still_works() {
    let (guest, ..) = poisoned();
    guest
        .0
        .bind(Some(&"tools".into()), &"late".into(), Box::new(|_, _| Ok(number(9.0))))
        .expect("it can be bound");
    assert_eq!(guest.value("tools.late()"), number(9.0));
    assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
}

#[test]
fn functions_and_asynchronous_calls_work_all_the_same() {
    let (guest, ..) = poisoned();
    let tool = guest.bind_async("tool");
    let Value::Array(functions) = guest.value("[parts.function, () => parts.function]") else {
        panic!("an array is one")
    };
    assert_eq!(guest.call(&functions[0], &[]), Ok(number(1.0)));
    assert!(matches!(guest.call(&functions[1], &[expected()]), Ok(Value::Function(_))));
    let same = guest.value("(value) => value");
    assert_eq!(guest.call(&same, &[expected()]), Ok(expected()));
    guest.begin(1, "tool(made)");
    assert_eq!(tool.noted.borrow()[0].arguments, [expected()]);
    guest.settle(tool.id(0), number(5.0));
    assert_eq!(guest.ended(), (1, Ok(number(5.0))));
    guest.begin(2, "tool()");
    guest.reject(tool.id(1), "no");
    assert!(matches!(guest.ended(), (2, Err(Failure::Js(error))) if error.message == "no"));
    assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
    // The language itself looks `then` up on an object that a promise is resolved with.
    guest.begin(3, "tool()");
    guest.settle(tool.id(2), expected());
    assert_eq!(guest.ended(), (3, Ok(expected())));
}

#[test]
fn tables_come_out_unchanged_whether_or_not_prototypes_have_elements() {
    let without_elements = POISON.replace(" 0, 1, 2, 3, 4, 5, 6, 7,", "");
    assert_ne!(without_elements, POISON);
    for poison in [POISON, &without_elements] {
        let (guest, taken, _) = poisoned_by(poison);
        assert_eq!(guest.value("tables"), tables());
        assert_eq!(guest.value("host(tables)"), tables());
        assert_eq!(taken.borrow().as_slice(), [tables()]);
        assert_eq!(calls(&guest), number(0.0), "{:?}", guest.eval("called"));
        guest.value("({}).value; [].map; 0");
        assert_eq!(calls(&guest), number(2.0), "a control: it is poisoned");
    }
}

#[test]
fn long_bytes_cross_both_ways_without_a_call_of_the_guests() {
    let guest = Guest::new();
    guest.bind("host", Box::new(|mut arguments| Ok(arguments.remove(0))));
    guest.value("globalThis.made = new Uint8Array(700000).fill(7); 0");
    guest.value(POISON);
    assert_eq!(guest.value("host(made)"), Value::Bytes(vec![7; 700_000]));
    assert_eq!(guest.value("calls"), number(0.0));
}
