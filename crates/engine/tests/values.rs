//! Values cross unchanged, out of the guest and into it.

mod guest;

use guest::{Guest, number, object, string};
use pydeno_wire::{BigInt, Text, Value};

/// The values of the contract's table, as source and as what they are outside.
fn table() -> Vec<(&'static str, Value)> {
    let two_to_200 = BigInt::new(false, [vec![1], vec![0; 25]].concat());
    vec![
        ("undefined", Value::Undefined),
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("0", number(0.0)),
        ("-75", number(-75.0)),
        ("0.1", number(0.1)),
        ("1e300", number(1e300)),
        ("Number.MIN_VALUE", number(f64::from_bits(1))),
        ("Number.MAX_SAFE_INTEGER", number(9_007_199_254_740_991.0)),
        ("Infinity", number(f64::INFINITY)),
        ("-Infinity", number(f64::NEG_INFINITY)),
        ("''", string("")),
        ("'plain'", string("plain")),
        ("'h\\u00e9 \\u4e16'", string("h\u{e9} \u{4e16}")),
        ("'\\u{1f600}\\u{1f601}'", string("\u{1f600}\u{1f601}")),
        ("'a\\0b'", string("a\0b")),
        ("'\\ufffd'", string("\u{fffd}")),
        ("'a\\ud800'", Value::String(Text::from_utf16(&[0x61, 0xd800]))),
        ("'\\udc00\\ud800'", Value::String(Text::from_utf16(&[0xdc00, 0xd800]))),
        ("0n", Value::BigInt(BigInt::new(false, vec![]))),
        ("-1n", Value::BigInt(BigInt::new(true, vec![1]))),
        ("2n ** 63n", Value::BigInt(BigInt::new(false, vec![0x80, 0, 0, 0, 0, 0, 0, 0]))),
        ("-(2n ** 63n)", Value::BigInt(BigInt::new(true, vec![0x80, 0, 0, 0, 0, 0, 0, 0]))),
        ("2n ** 200n", Value::BigInt(two_to_200.clone())),
        ("-(2n ** 200n)", Value::BigInt(BigInt::new(true, two_to_200.magnitude().to_vec()))),
        ("new Date(0)", Value::Date(0)),
        ("new Date(-8.64e15)", Value::Date(-8_640_000_000_000_000)),
        ("new Date(1700000000123)", Value::Date(1_700_000_000_123)),
        ("new Uint8Array()", Value::Bytes(vec![])),
        ("new Uint8Array([0, 1, 255])", Value::Bytes(vec![0, 1, 255])),
        ("[]", Value::Array(vec![])),
        (
            "[[], [1, ['x']]]",
            Value::Array(vec![
                Value::Array(vec![]),
                Value::Array(vec![number(1.0), Value::Array(vec![string("x")])]),
            ]),
        ),
        ("({})", object([])),
        (
            "({ b: 1, a: undefined, 'a b': null, '\\ud800': 1 })",
            Value::Object(vec![
                ("b".into(), number(1.0)),
                ("a".into(), Value::Undefined),
                ("a b".into(), Value::Null),
                (Text::from_utf16(&[0xd800]), number(1.0)),
            ]),
        ),
        (
            "({ 2: 'c', 1: 'b', x: 'd' })",
            object([("1", string("b")), ("2", string("c")), ("x", string("d"))]),
        ),
        ("({ ['__proto__']: { a: 1 } })", object([("__proto__", object([("a", number(1.0))]))])),
        ("({ ['__proto__']: new Date(1) })", object([("__proto__", Value::Date(1))])),
        ("new Set()", Value::Set(vec![])),
        ("new Set([1, 'x', undefined])", Value::Set(vec![number(1.0), string("x"), Value::Undefined])),
        ("new Map()", Value::Map(vec![])),
        (
            "new Map([[{ a: 1 }, new Set([2n])], [undefined, -0]])",
            Value::Map(vec![
                (object([("a", number(1.0))]), Value::Set(vec![Value::BigInt(BigInt::new(false, vec![2]))])),
                (Value::Undefined, number(-0.0)),
            ]),
        ),
    ]
}

#[test]
fn every_value_of_the_table_comes_out() {
    let guest = Guest::new();
    for (source, expected) in table() {
        assert_eq!(guest.eval(source), Ok(expected), "{source}");
    }
}

#[test]
fn every_value_of_the_table_goes_in_and_comes_back() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    for (source, expected) in table() {
        assert_eq!(guest.eval(&format!("same({source})")), Ok(expected), "{source}");
    }
}

#[test]
fn every_value_of_the_table_crosses_inside_an_array_an_object_a_set_and_a_map() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    for (source, value) in table() {
        let nested = format!(
            "same([0, {{ x: [{source}] }}, new Set([{source}]), new Map([[1, {source}]]), {source}])"
        );
        let expected = Value::Array(vec![
            number(0.0),
            object([("x", Value::Array(vec![value.clone()]))]),
            Value::Set(vec![match value.clone() {
                // A `Set` knows one zero only.
                Value::Number(0.0) => number(0.0),
                other => other,
            }]),
            Value::Map(vec![(number(1.0), value.clone())]),
            value,
        ]);
        assert_eq!(guest.eval(&nested), Ok(expected), "{source}");
    }
}

#[test]
fn minus_zero_and_nan_are_kept_both_ways_and_at_every_depth() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    for source in ["-0", "same(-0)"] {
        assert!(matches!(guest.value(source), Value::Number(zero) if zero == 0.0 && zero.is_sign_negative()));
    }
    let Value::Array(numbers) = guest.value("same([NaN, -0, [NaN]])") else { panic!("an array is one") };
    assert!(matches!(numbers[0], Value::Number(nan) if nan.is_nan()));
    assert!(matches!(numbers[1], Value::Number(zero) if zero == 0.0 && zero.is_sign_negative()));
    assert!(
        matches!(&numbers[2], Value::Array(inner) if matches!(inner[0], Value::Number(nan) if nan.is_nan()))
    );
    assert!(matches!(guest.value("NaN"), Value::Number(nan) if nan.is_nan()));
}

#[test]
fn what_the_guest_sees_of_a_host_value_is_what_it_would_have_made_itself() {
    let guest = Guest::new();
    let items = Value::Object(vec![
        ("__proto__".into(), number(7.0)),
        ("date".into(), Value::Date(5)),
        ("bytes".into(), Value::Bytes(vec![1, 2])),
        ("map".into(), Value::Map(vec![(string("k"), string("v"))])),
        ("set".into(), Value::Set(vec![number(1.0)])),
        ("big".into(), Value::BigInt(BigInt::new(true, vec![1; 9]))),
    ]);
    guest.bind("get", Box::new(move |_| Ok(items.clone())));
    for claim in [
        "Object.getPrototypeOf(get()) === Object.prototype",
        "Object.keys(get()).join() === '__proto__,date,bytes,map,set,big'",
        "get().date instanceof Date && get().date.getTime() === 5",
        "get().bytes instanceof Uint8Array && get().bytes.join() === '1,2'",
        "get().bytes.buffer.transfer().byteLength === 2",
        "(() => { const { buffer } = get().bytes; buffer.transfer(); return buffer.detached })()",
        "get().map instanceof Map && get().map.get('k') === 'v'",
        "get().set instanceof Set && get().set.has(1)",
        "get().big === -0x010101010101010101n",
    ] {
        assert_eq!(guest.eval(claim), Ok(Value::Bool(true)), "{claim}");
    }
}

#[test]
fn bytes_of_every_kind_of_view_are_those_that_it_shows() {
    let guest = Guest::new();
    for (source, expected) in [
        ("new Uint8Array([1, 2, 3, 4]).buffer", vec![1, 2, 3, 4]),
        ("new Uint8Array([1, 2, 3, 4]).subarray(1, 3)", vec![2, 3]),
        ("new Uint16Array([0x0201, 0x0403])", vec![1, 2, 3, 4]),
        ("new DataView(new Uint8Array([1, 2, 3, 4]).buffer, 2)", vec![3, 4]),
        ("new BigInt64Array([1n])", vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("new Float64Array([0])", vec![0; 8]),
        ("new ArrayBuffer(2, { maxByteLength: 8 })", vec![0, 0]),
        (
            "(() => { const b = new ArrayBuffer(2, { maxByteLength: 8 }); b.resize(5); return b })()",
            vec![0; 5],
        ),
        (
            "(() => { const b = new ArrayBuffer(8, { maxByteLength: 8 }); const v = new Uint8Array(b, 4); b.resize(2); return v })()",
            vec![],
        ),
        ("new (class extends Uint8Array {})([9])", vec![9]),
    ] {
        assert_eq!(guest.eval(source), Ok(Value::Bytes(expected)), "{source}");
    }
}

#[test]
fn reading_bytes_leaves_the_guests_buffer_transferable() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    guest.value("const view = new Uint8Array([1, 2]); same(view); view");
    let moved = "(() => { const moved = view.buffer.transfer(); return [moved.byteLength, view.length] })()";
    assert_eq!(guest.eval(moved), Ok(Value::Array(vec![number(2.0), number(0.0)])));
}

#[test]
fn own_enumerable_string_keys_are_all_that_an_object_has() {
    let guest = Guest::new();
    for (source, expected) in [
        (
            "Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true }, hidden: { value: 3 } })",
            object([("own", number(2.0))]),
        ),
        ("({ [Symbol('s')]: 1, a: 2 })", object([("a", number(2.0))])),
        ("new (class Point { x = 1; #y = 2; z() {} })", object([("x", number(1.0))])),
        ("Object.assign(Object.create(null), { a: 1 })", object([("a", number(1.0))])),
        ("Object.create(Map.prototype)", object([])),
        ("Object.create(new Proxy({}, {}))", object([])),
        ("Object.assign(Object.create(Set.prototype), { a: 1 })", object([("a", number(1.0))])),
    ] {
        assert_eq!(guest.eval(source), Ok(expected), "{source}");
    }
}

#[test]
fn subclasses_of_collections_are_collections() {
    let guest = Guest::new();
    assert_eq!(
        guest.value("new (class Names extends Map {})([['a', 1]])"),
        Value::Map(vec![(string("a"), number(1.0))])
    );
    assert_eq!(guest.value("new (class Bag extends Set {})([1])"), Value::Set(vec![number(1.0)]));
    assert_eq!(
        guest.value("(class List extends Array {}).of(1, 2)"),
        Value::Array(vec![number(1.0), number(2.0)])
    );
    assert_eq!(guest.value("new (class Day extends Date {})(3)"), Value::Date(3));
}

#[test]
fn holes_read_as_undefined() {
    let guest = Guest::new();
    assert_eq!(guest.value("[1, , 2]"), Value::Array(vec![number(1.0), Value::Undefined, number(2.0)]));
    assert_eq!(guest.value("new Array(2)"), Value::Array(vec![Value::Undefined, Value::Undefined]));
    assert_eq!(
        guest.value("(() => { const a = [1]; a[3] = 2; a.extra = 1; return a })()"),
        Value::Array(vec![number(1.0), Value::Undefined, Value::Undefined, number(2.0)])
    );
}

#[test]
fn a_value_that_stands_in_two_places_crosses_twice() {
    let guest = Guest::new();
    let twice = object([("a", object([("x", number(1.0))])), ("b", object([("x", number(1.0))]))]);
    assert_eq!(guest.value("(() => { const shared = { x: 1 }; return { a: shared, b: shared } })()"), twice);
}

#[test]
fn rows_of_one_shape_and_of_several_keep_their_names() {
    let guest = Guest::new();
    let row = |id: f64| object([("id", number(id)), ("at", object([("x", number(id))]))]);
    let mixed = object([("id", string("last")), ("other", Value::Null)]);
    assert_eq!(
        guest.value("[{ id: 1, at: { x: 1 } }, { id: 2, at: { x: 2 } }, { id: 'last', other: null }, { id: 3, at: { x: 3 } }]"),
        Value::Array(vec![row(1.0), row(2.0), mixed, row(3.0)])
    );
}

#[test]
fn a_large_table_crosses_both_ways() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    let rows: Vec<Value> = (0..20_000)
        .map(|id| {
            object([("id", number(f64::from(id))), ("name", Value::String(format!("näme {id}").into()))])
        })
        .collect();
    let made = guest
        .value("globalThis.rows = Array.from({ length: 20000 }, (_, id) => ({ id, name: `näme ${id}` }))");
    assert_eq!(made, Value::Array(rows.clone()));
    assert_eq!(guest.value("same(rows)"), Value::Array(rows));
}

#[test]
fn what_is_alike_comes_out_the_same_as_what_is_not() {
    let guest = Guest::new();
    let at = |x: f64| object([("x", number(x)), ("y", string("y"))]);
    let rows = |count: u32| {
        Value::Array(
            (0..count)
                .map(|id| {
                    object([
                        ("id", number(f64::from(id))),
                        ("name", string(&format!("n\u{e9} {id}"))),
                        ("at", at(f64::from(id))),
                        ("tags", Value::Array(vec![string("a"), number(f64::from(id))])),
                        ("odd", if id % 2 == 1 { Value::Null } else { string("even") }),
                        ("nothing", Value::Undefined),
                        ("minus", number(-0.0)),
                    ])
                })
                .collect(),
        )
    };
    let row = "(_, id) => ({ id, name: `n\u{e9} ${id}`, at: { x: id, y: 'y' }, tags: ['a', id], \
               odd: id % 2 ? null : 'even', nothing: undefined, minus: -0 })";
    for count in [0, 1, 2, 3, 5, 6, 7, 30, 700] {
        let made = guest.value(&format!("Array.from({{ length: {count} }}, {row})"));
        assert_eq!(format!("{made:?}"), format!("{:?}", rows(count)), "{count}");
    }
    for (source, expected) in [
        ("[1, 2.5, -0, NaN, 3]", "[1.0, 2.5, -0.0, NaN, 3.0]"),
        ("[1, 2, 3, 4, null]", "[1.0, 2.0, 3.0, 4.0, Null]"),
        ("['a', '\\ud800', '', 'd']", "[\"a\", \"\\ud800\", \"\", \"d\"]"),
        ("[1, , 3, 4, , 6]", "[1.0, Undefined, 3.0, 4.0, Undefined, 6.0]"),
        ("[[1, 2, 3, 4], [5, 6, 7, 8]]", "[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]"),
    ] {
        let Value::Array(items) = guest.value(source) else { panic!("{source} is an array") };
        let shown = format!("{items:?}").replace("Number(", "").replace("String(", "").replace("Array(", "");
        assert_eq!(shown.replace(')', ""), expected, "{source}");
    }
}

#[test]
fn an_object_of_a_known_shape_that_has_changed_is_read_as_it_is() {
    let guest = Guest::new();
    let rows = "const rows = Array.from({ length: 40 }, (_, id) => ({ id, v: 1 }));";
    for (change, expected) in [
        ("delete r.v", object([("id", number(30.0))])),
        ("delete r.id; r.id = 5", object([("v", number(1.0)), ("id", number(5.0))])),
        ("r.more = 2", object([("id", number(30.0)), ("v", number(1.0)), ("more", number(2.0))])),
        ("r[0] = 2", object([("0", number(2.0)), ("id", number(30.0)), ("v", number(1.0))])),
        ("Object.defineProperty(r, 'v', { enumerable: false })", object([("id", number(30.0))])),
        ("Object.freeze(r)", object([("id", number(30.0)), ("v", number(1.0))])),
        ("Object.setPrototypeOf(r, null)", object([("id", number(30.0)), ("v", number(1.0))])),
        ("r[Symbol()] = 1", object([("id", number(30.0)), ("v", number(1.0))])),
    ] {
        let value = guest.value(&format!("(() => {{ {rows} const r = rows[30]; {change}; return rows }})()"));
        let Value::Array(rows) = value else { panic!("rows are an array") };
        assert_eq!((&rows[29], &rows[30]), (&object([("id", number(29.0)), ("v", number(1.0))]), &expected));
    }
    for (change, at) in [
        ("Object.defineProperty(r, 'v', { get() { ran++ }, enumerable: true })", "$[30].v"),
        ("r.__defineSetter__('id', () => { ran++ })", "$[30].id"),
        ("rows[30] = new Proxy(r, { ownKeys() { ran++; return [] } })", "$[30]"),
        ("Object.setPrototypeOf(r, Error.prototype)", "$[30]"),
        (
            "rows[30] = new (class { get v() { ran++ } id = 1; constructor() { return Object.create(Promise.prototype) } })()",
            "$[30]",
        ),
        ("Object.defineProperty(rows, 30, { get() { ran++ } })", "$[30]"),
        ("r.v = Symbol()", "$[30].v"),
        ("r.v = [[{}, {}, {}, {}, { deep: Symbol() }]]", "$[30].v[0][4].deep"),
    ] {
        let (path, _) = guest.refused(&format!(
            "globalThis.ran = 0; (() => {{ {rows} const r = rows[30]; {change}; return rows }})()"
        ));
        assert_eq!((path.as_str(), guest.value("ran")), (at, number(0.0)), "{change}");
    }
}

#[test]
fn a_hole_reads_as_undefined_also_where_arrays_inherit_elements() {
    for inherit in [
        "Array.prototype[1] = 'inherited'",
        "Object.prototype[1] = 'inherited'",
        "Object.defineProperty(Array.prototype, 1, { get() { return 'inherited' } })",
        "Object.setPrototypeOf(Array.prototype, { 1: 'inherited' })",
        "Object.setPrototypeOf(Array.prototype, new Proxy({}, { get() { return 'inherited' }, has() { return true } }))",
    ] {
        let guest = Guest::new();
        guest.value(&format!("{inherit}; 0"));
        assert_eq!(guest.value("[1, , 3][1]"), string("inherited"), "a control: {inherit}");
        let expected = [number(1.0), Value::Undefined, number(3.0), Value::Undefined];
        assert_eq!(guest.value("[1, , 3, ,]"), Value::Array(expected.to_vec()), "{inherit}");
        assert_eq!(guest.value("new Array(9)"), Value::Array(vec![Value::Undefined; 9]), "{inherit}");
    }
}

#[test]
fn an_array_of_large_objects_and_many_small_values_fits_the_tape() {
    let guest = Guest::new();
    let Value::Array(items) = guest.value("[...Array(1000).fill({ a: 1 }), ...Array(1040).fill(7)]") else {
        panic!("an array is one")
    };
    assert_eq!((items.len(), &items[999], &items[2039]), (2040, &object([("a", number(1.0))]), &number(7.0)));
    let Value::Object(properties) = guest.value(
        "const o = { k: Array(1200).fill(true) }; for (let i = 0; i < 1400; i++) o['b' + i] = i % 2 ? i : null; o",
    ) else {
        panic!("an object is one")
    };
    assert_eq!((properties.len(), &properties[1400].1), (1401, &number(1399.0)));
}
