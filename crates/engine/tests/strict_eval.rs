//! A guest that may not make code from text.

mod guest;

use guest::{Guest, number, object, string};
use pydeno_wire::Value;

/// Every way to make code from text that the language has.
const WAYS: [&str; 20] = [
    "eval('1')",
    "(0, eval)('1')",
    "globalThis.eval.call(null, '1')",
    "Reflect.apply(eval, null, ['1'])",
    "['1'].map(eval)[0]",
    "Function('return 1')()",
    "new Function('return 1')()",
    "new Function('a', 'b', 'return 1')()",
    "Function.prototype.constructor('return 1')()",
    "(() => {}).constructor('return 1')()",
    "(class {}).constructor('return 1')()",
    "Reflect.construct(Function, ['return 1'])()",
    "Reflect.construct(Function, ['return 1'], class {})",
    "new (class extends Function { constructor() { super('return 1') } })()",
    "[].map.constructor('return 1')()",
    "Function.bind(null, 'return 1')()()",
    "new (Object.getPrototypeOf(async () => {}).constructor)('return 1')",
    "Object.getPrototypeOf(function* () {}).constructor('yield 1')().next()",
    "new (Object.getPrototypeOf(async function* () {}).constructor)('yield 1')",
    "new (class extends (async () => {}).constructor {})('return 1')",
];

#[test]
fn every_way_to_make_code_from_text_throws() {
    let guest = Guest::new();
    guest.0.forbid_eval().expect("this engine can be told");
    for way in WAYS {
        let error = guest.error(way);
        assert_eq!(error.name, "EvalError", "{way}: {error:?}");
    }
    assert_eq!(guest.value("eval(5)"), number(5.0), "what is no text is no code");
}

#[test]
fn without_the_switch_each_way_works() {
    let guest = Guest::new();
    for way in WAYS {
        guest.value(&format!("{way}; 0"));
    }
}

#[test]
fn everything_else_works_as_ever() {
    let guest = Guest::new();
    guest.0.forbid_eval().expect("this engine can be told");
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    let calls = guest.bind_async("tool");
    assert_eq!(
        guest.value("same({ a: [1n, new Map([[1, new Set([2])]])] })"),
        guest.value("({ a: [1n, new Map([[1, new Set([2])]])] })")
    );
    assert_eq!(guest.error("throw new TypeError('x')").name, "TypeError");
    guest.begin(1, "(async () => (await tool()).x)()");
    guest.settle(calls.id(0), object([("x", string("y"))]));
    assert_eq!(guest.ended(), (1, Ok(string("y"))));
    let function = guest.value("(a) => a + 1");
    assert_eq!(guest.call(&function, &[number(1.0)]), Ok(number(2.0)));
    guest.bind("late", Box::new(|_| Ok(Value::Null)));
    assert_eq!(guest.value("JSON.parse('[1]').length + 'aXb'.replace(/x/i, () => '-').length"), number(4.0));
}

#[test]
fn it_holds_after_a_failure_and_with_a_clock_that_stands_still() {
    let guest = Guest::new();
    guest.0.freeze_clock(0).expect("the clock can be frozen");
    guest.0.forbid_eval().expect("this engine can be told");
    assert!(guest.within(std::time::Duration::from_millis(60), "for (;;);").is_err());
    assert_eq!(guest.error("eval('1')").name, "EvalError");
    assert_eq!(guest.error("new Date().constructor.constructor('return 1')").name, "EvalError");
    assert_eq!(guest.value("Date.now()"), number(0.0));
    assert_eq!(guest.error("Date.constructor('return 1')").name, "EvalError");
    assert_eq!(guest.error("Date.now.constructor('return 1')").name, "EvalError");
}
