//! The value of a promise is the evaluation's value; what is left over harms nobody.

mod guest;

use guest::{Guest, number, string};
use pydeno_wire::Value;
use pydeno_wire::message::Failure;

#[test]
fn a_fulfilled_promise_gives_its_value() {
    let guest = Guest::new();
    for source in [
        "Promise.resolve(7)",
        "(async () => 7)()",
        "(async () => { await null; await new Promise((done) => done()); return 7 })()",
        "new Promise((done) => done(Promise.resolve(7)))",
        "Promise.all([3, Promise.resolve(4)]).then(([a, b]) => a + b)",
        "new (class Own extends Promise {})((done) => done(7))",
        "Promise.resolve({ then(done) { done(7) } })",
    ] {
        assert_eq!(guest.eval(source), Ok(number(7.0)), "{source}");
    }
    assert_eq!(guest.value("(async () => ({ a: [1n] }))()"), guest.value("({ a: [1n] })"));
}

#[test]
fn a_rejected_promise_gives_its_reason() {
    let guest = Guest::new();
    assert_eq!(guest.error("Promise.reject(new TypeError('no'))").name, "TypeError");
    assert_eq!(guest.error("Promise.reject(5)").message, "5");
    assert_eq!(guest.error("(async () => { await 1; null.x })()").name, "TypeError");
}

#[test]
fn a_promise_that_nothing_can_settle_says_so() {
    let guest = Guest::new();
    for source in ["new Promise(() => {})", "(async () => { await new Promise(() => {}) })()"] {
        assert_eq!(guest.eval(source), Err(Failure::NeverSettles), "{source}");
        assert!(guest.still_answers());
    }
}

#[test]
fn a_promise_settled_by_a_later_evaluation_gives_its_value_then() {
    let guest = Guest::new();
    assert_eq!(
        guest.eval("const later = new Promise((done) => { globalThis.done = done }); later"),
        Err(Failure::NeverSettles)
    );
    assert_eq!(guest.eval("done('now'); later"), Ok(string("now")));
}

#[test]
fn reactions_have_run_when_the_evaluation_ends() {
    let guest = Guest::new();
    guest.value(
        "let order = []; Promise.resolve().then(() => order.push('reaction')); order.push('script'); 0",
    );
    assert_eq!(guest.value("order.join()"), string("script,reaction"));
}

#[test]
fn a_rejection_that_is_not_the_value_fails_nothing() {
    let guest = Guest::new();
    assert_eq!(guest.eval("Promise.reject(new Error('lost')); 3"), Ok(number(3.0)));
    assert_eq!(guest.eval("Promise.resolve().then(() => { throw 1 }); 4"), Ok(number(4.0)));
    assert!(guest.still_answers());
}

#[test]
fn awaiting_leaves_no_trace_on_the_promise_and_runs_no_constructor() {
    let guest = Guest::new();
    guest.value(
        "globalThis.made = 0; class Own extends Promise { constructor(run) { super(run); made++ } } \
         globalThis.plain = Promise.resolve(1); globalThis.own = new Own((done) => done(2)); \
         globalThis.marked = Promise.resolve(3); marked.constructor = Own; made = 0; 0",
    );
    assert_eq!(guest.value("plain"), number(1.0));
    assert_eq!(guest.value("own"), number(2.0));
    assert_eq!(guest.value("marked"), number(3.0));
    assert_eq!(
        guest.value(
            "[made, Reflect.ownKeys(plain).length, Reflect.ownKeys(own).length, marked.constructor === Own]"
        ),
        Value::Array(vec![number(0.0), number(0.0), number(0.0), Value::Bool(true)])
    );
}

#[test]
fn what_only_looks_like_a_promise_is_not_awaited() {
    let guest = Guest::new();
    assert!(matches!(guest.value("({ then(done) { done(1) } })"), Value::Object(_)));
    assert_eq!(
        guest.refused("Object.create(Promise.prototype)"),
        ("$".into(), "is a promise that cannot be awaited from outside; await it in the script".into())
    );
}

#[test]
fn a_frozen_promise_is_awaited_unless_that_would_run_guest_code() {
    let guest = Guest::new();
    assert_eq!(guest.value("Object.freeze(Promise.resolve(1))"), number(1.0));
    assert_eq!(guest.value("Object.freeze((async () => { await null; return 2 })())"), number(2.0));
    assert_eq!(guest.error("Object.freeze(Promise.reject(new TypeError('m')))").message, "m");
    for change in [
        "Object.defineProperty(Promise.prototype, 'constructor', { get() { ran++; return Promise }, configurable: true })",
        "Promise.prototype.constructor = class Other extends Promise { constructor(done) { ran++; super(done) } }",
        "Object.defineProperty(Promise, Symbol.species, { get() { ran++; return Promise } })",
        "delete Promise[Symbol.species]; Function.prototype[Symbol.species] = function () { ran++ }",
        "Object.setPrototypeOf(Promise.prototype, new Proxy({}, { get() { ran++ } })); delete Promise.prototype.constructor",
    ] {
        let guest = Guest::new();
        guest.value(&format!("globalThis.ran = 0; const promise = Promise.resolve(1); {change}; 0"));
        assert_eq!(guest.refused("Object.freeze(promise)").0, "$", "{change}");
        assert_eq!(guest.value("ran"), number(0.0), "{change}");
    }
}
