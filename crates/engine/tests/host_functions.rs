//! The guest calls the host: what it finds, what crosses, what is thrown.

mod guest;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use guest::{Guest, number, string};
use pydeno_engine::BindError;
use pydeno_wire::message::{Failure, HostError};
use pydeno_wire::{Text, Value};

#[test]
fn a_host_function_is_a_plain_native_function() {
    let guest = Guest::new();
    guest.bind("tool", Box::new(|_| Ok(Value::Undefined)));
    for claim in [
        "typeof tool === 'function'",
        "tool.name === 'tool'",
        "tool instanceof Function",
        "Object.getPrototypeOf(tool) === Function.prototype",
        "Function.prototype.toString.call(tool).includes('[native code]')",
        "Reflect.ownKeys(tool).join() === 'length,name'",
        "tool.prototype === undefined",
        "(() => { try { new tool() } catch (error) { return error instanceof TypeError } })()",
        "Object.keys(globalThis).includes('tool') === false",
        "(() => { const { writable, configurable, enumerable } = Object.getOwnPropertyDescriptor(globalThis, 'tool'); \
          return writable && configurable && !enumerable })()",
        "tool() === undefined",
    ] {
        assert_eq!(guest.eval(claim), Ok(Value::Bool(true)), "{claim}");
    }
}

#[test]
fn arguments_and_value_cross_and_this_does_not_matter() {
    let guest = Guest::new();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    guest.bind(
        "sum",
        Box::new(move |arguments| {
            log.borrow_mut().push(arguments.len());
            Ok(number(
                arguments.iter().map(|argument| if let Value::Number(n) = argument { *n } else { 0.0 }).sum(),
            ))
        }),
    );
    assert_eq!(
        guest.value(
            "[sum(), sum(1), sum.call({}, 1, 2), sum.apply(null, [1, 2, 3]), sum(...Array(100).fill(1))]"
        ),
        Value::Array([0.0, 1.0, 3.0, 6.0, 100.0].map(number).to_vec())
    );
    assert_eq!(seen.borrow().as_slice(), [0, 1, 2, 3, 100]);
    assert_eq!(
        guest.value("[1, 2].map(sum)"),
        Value::Array(vec![number(1.0), number(3.0)]),
        "what is no number counts 0"
    );
}

#[test]
fn objects_hold_host_functions_and_are_made_where_they_are_missing() {
    let guest = Guest::new();
    let bind = |object: &str, name: &str, answer: f64| {
        guest
            .0
            .bind(Some(&object.into()), &name.into(), Box::new(move |_, _| Ok(number(answer))))
            .expect("it can be bound");
    };
    bind("tools", "one", 1.0);
    bind("tools", "two", 2.0);
    bind("Math", "three", 3.0);
    assert_eq!(
        guest.value("[tools.one(), tools.two(), Math.three(), Math.max(4, 1)]"),
        Value::Array([1.0, 2.0, 3.0, 4.0].map(number).to_vec())
    );
    guest.bind("tools", Box::new(|_| Ok(number(5.0))));
    assert_eq!(guest.value("tools()"), number(5.0));
}

#[test]
fn a_later_binding_replaces_an_earlier_one_and_names_may_be_anything() {
    let guest = Guest::new();
    guest.bind("f", Box::new(|_| Ok(number(1.0))));
    guest.value("globalThis.old = f; 0");
    guest.bind("f", Box::new(|_| Ok(number(2.0))));
    assert_eq!(guest.value("[f(), old()]"), Value::Array(vec![number(2.0), number(1.0)]));
    for name in ["a b", "__proto__", "0", "constructor", "a\0b", "\u{1f600}"] {
        guest
            .0
            .bind(Some(&"odd".into()), &name.into(), Box::new(|_, _| Ok(number(3.0))))
            .expect("it can be bound");
    }
    assert_eq!(guest.value("[odd['a b'](), Object.getOwnPropertyDescriptor(odd, '__proto__').value(), odd[0](), odd['a\\0b']()]"),
        Value::Array(vec![number(3.0); 4]));
}

#[test]
fn a_name_that_the_guest_made_read_only_cannot_be_bound() {
    let guest = Guest::new();
    guest.value(
        "Object.defineProperty(globalThis, 'taken', { value: 1 }); globalThis.frozen = Object.freeze({}); \
                 globalThis.trap = new Proxy({}, { defineProperty() { throw 1 } }); 0",
    );
    for (object, name) in [(None, "taken"), (Some("frozen"), "x"), (Some("trap"), "x")] {
        let object = object.map(Text::from);
        let refused = guest.0.bind(object.as_ref(), &name.into(), Box::new(|_, _| Ok(number(1.0))));
        assert_eq!(refused, Err(BindError { object, name: name.into() }));
    }
    assert!(guest.still_answers());
}

#[test]
fn an_error_of_the_host_is_one_of_the_guests_own() {
    let guest = Guest::new();
    let fail = |name: &'static str| {
        Box::new(move |_| Err(HostError { name: name.into(), message: "why\nnot".into() }))
    };
    for name in ["Error", "TypeError", "RangeError", "SyntaxError", "ReferenceError", "URIError", "EvalError"]
    {
        guest.bind("fail", fail(name));
        let caught = format!(
            "(() => {{ try {{ fail() }} catch (error) {{ return [error.name, error.message, \
            error.constructor === {name}, error instanceof Error, Object.keys(error).length, typeof error.stack] }} }})()"
        );
        let expected = vec![
            string(name),
            string("why\nnot"),
            Value::Bool(true),
            Value::Bool(true),
            number(0.0),
            string("string"),
        ];
        assert_eq!(guest.value(&caught), Value::Array(expected), "{name}");
    }
    guest.bind("fail", fail("ToolError"));
    let caught = "(() => { try { fail() } catch (error) { return [error.name, error.constructor === Error, \
                  Object.keys(error).length, `${error}`] } })()";
    assert_eq!(
        guest.value(caught),
        Value::Array(vec![
            string("ToolError"),
            Value::Bool(true),
            number(0.0),
            string("ToolError: why\nnot")
        ])
    );
    let error = guest.error("function f() { fail() }\nf()");
    assert_eq!((error.name, error.message), ("ToolError".into(), "why\nnot".into()));
    assert_eq!(
        error.frames.iter().map(|frame| frame.function.to_string()).collect::<Vec<_>>(),
        ["fail", "f", ""]
    );
}

#[test]
fn an_argument_that_does_not_cross_is_a_type_error_that_the_guest_can_catch() {
    let guest = Guest::new();
    guest.bind("take", Box::new(|_| Ok(Value::Undefined)));
    let caught = "(() => { try { take(1, { f: [Symbol()] }) } catch (error) { return [error instanceof TypeError, error.message] } })()";
    let Value::Array(told) = guest.value(caught) else { panic!("an array is one") };
    assert_eq!(told[0], Value::Bool(true));
    assert!(
        matches!(&told[1], Value::String(text) if text.to_string().starts_with("argument 2 cannot cross: $.f[0] is a symbol"))
    );
    assert_eq!(guest.error("take(new Proxy(take, {}))").name, "TypeError");
}

#[test]
fn an_awaited_call_rejects_and_a_forgotten_rejection_harms_nobody() {
    let guest = Guest::new();
    guest.bind("fail", Box::new(|_| Err(HostError { name: "Error".into(), message: "no".into() })));
    assert_eq!(guest.value("(async () => { await fail() })(); 1"), number(1.0));
    assert_eq!(guest.error("(async () => { await fail() })()").message, "no");
    assert_eq!(
        guest.value("(async () => { try { await fail() } catch (error) { return error.message } })()"),
        string("no")
    );
    assert!(guest.still_answers());
}

#[test]
fn a_panic_of_a_host_function_is_resumed_when_the_engine_has_returned() {
    let guest = Guest::new();
    guest.bind("burst", Box::new(|_| panic!("host bug")));
    guest.bind("count", Box::new(|_| Ok(Value::Undefined)));
    for source in [
        "burst()",
        "try { burst() } catch { count(); for (;;) count() }",
        "Promise.resolve().then(burst); 1",
        "try { burst() } finally { try { burst() } catch {} }",
    ] {
        let burst = catch_unwind(AssertUnwindSafe(|| guest.within(Duration::from_millis(500), source)));
        assert_eq!(burst.unwrap_err().downcast_ref::<&str>(), Some(&"host bug"), "{source}");
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn nested_calls_through_callbacks_of_the_guest_are_calls_like_any_other() {
    let guest = Guest::new();
    guest.bind(
        "next",
        Box::new(|mut arguments| match arguments.remove(0) {
            Value::Number(n) => Ok(number(n + 1.0)),
            other => Ok(other),
        }),
    );
    assert_eq!(guest.value("next(next(next(0)))"), number(3.0));
    assert_eq!(
        guest.value("[3, 1, 2].sort((a, b) => next(a) - next(b)).map((n) => next(n))"),
        Value::Array([2.0, 3.0, 4.0].map(number).to_vec())
    );
}

#[test]
fn two_isolates_on_one_thread_keep_apart() {
    let (one, other) = (Guest::new(), Guest::new());
    one.bind("who", Box::new(|_| Ok(number(1.0))));
    other.bind("who", Box::new(|_| Ok(number(2.0))));
    one.value("globalThis.x = 'one'; 0");
    assert_eq!(other.value("typeof x"), string("undefined"));
    assert_eq!((one.value("who()"), other.value("who()")), (number(1.0), number(2.0)));
    drop(one);
    assert_eq!(other.value("who()"), number(2.0));
}

#[test]
fn an_isolate_may_be_used_and_ended_within_a_call_of_another() {
    let outer = Guest::new();
    outer.bind(
        "inner",
        Box::new(|_| {
            let inner = Guest::new();
            inner.bind("deep", Box::new(|_| Ok(number(20.0))));
            let value = inner.value("deep() + 1");
            assert_eq!(inner.within(Duration::from_millis(60), "for (;;);"), Err(Failure::Timeout));
            Ok(value)
        }),
    );
    assert_eq!(outer.value("inner() + inner()"), number(42.0));
}

#[test]
fn an_isolate_with_pending_promises_ends_quietly() {
    let guest = Guest::new();
    guest.bind("keep", Box::new(|_| Ok(Value::Undefined)));
    guest.value("globalThis.waiting = new Promise(() => {}).then(keep); for (let i = 0; i < 100; i++) waiting.then(keep); 0");
    drop(guest);
    assert!(Guest::new().still_answers());
}

#[test]
fn dropping_the_isolate_drops_the_closures() {
    let held = Rc::new(());
    let guest = Guest::new();
    let captured = Rc::clone(&held);
    guest.bind(
        "hold",
        Box::new(move |_| {
            let _ = &captured;
            Ok(Value::Undefined)
        }),
    );
    guest.value("globalThis.kept = hold; hold(); 0");
    assert_eq!(Rc::strong_count(&held), 2);
    drop(guest);
    assert_eq!(Rc::strong_count(&held), 1);
}
