//! Requests that wait for asynchronous host functions: how they go on, end, and keep apart.

mod guest;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use guest::{Guest, Noted, number, object, string};
use pydeno_engine::{EvalLimits, StepLimits};
use pydeno_wire::message::{Failure, HostError};
use pydeno_wire::{Text, Value};

const SHORT: Duration = Duration::from_millis(150);

#[test]
fn an_awaited_call_gives_its_value_when_it_is_settled() {
    let guest = Guest::new();
    let calls = guest.bind_async("fetch_row");
    guest.begin(7, "(async () => (await fetch_row('A', { deep: [1] })).x + 1)()");
    assert!(guest.0.is_pending());
    assert_eq!(guest.0.take_ended(), None);
    let noted = Noted {
        id: 1,
        request: 7,
        arguments: vec![string("A"), object([("deep", Value::Array(vec![number(1.0)]))])],
    };
    assert_eq!(calls.noted.borrow().as_slice(), [noted]);
    guest.settle(1, object([("x", number(41.0))]));
    assert_eq!(guest.ended(), (7, Ok(number(42.0))));
    assert!(!guest.0.is_pending());
}

#[test]
fn an_asynchronous_function_looks_like_any_other_and_gives_a_plain_promise() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(
        1,
        "const promise = tool(); [typeof tool, tool.name, promise instanceof Promise, \
         Object.getPrototypeOf(promise) === Promise.prototype, Reflect.ownKeys(promise).length].join()",
    );
    guest.settle(calls.id(0), Value::Null);
    assert_eq!(guest.ended(), (1, Ok(string("function,tool,true,true,0"))));
}

#[test]
fn a_rejected_call_throws_an_error_of_the_guests_own() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(
        1,
        "(async () => { try { await tool() } catch (error) { return [error instanceof TypeError, error.message] } })()",
    );
    let error = HostError { name: "TypeError".into(), message: "no such row".into() };
    guest.0.settle(calls.id(0), Err(error), &StepLimits::default());
    assert_eq!(guest.ended(), (1, Ok(Value::Array(vec![Value::Bool(true), string("no such row")]))));
    guest.begin(2, "tool()");
    guest.reject(calls.id(1), "lost");
    let (_, outcome) = guest.ended();
    assert!(matches!(outcome, Err(Failure::Js(error)) if error.message == "lost"));
}

#[test]
fn a_call_that_cannot_be_started_and_one_whose_arguments_do_not_cross_are_rejected_promises() {
    let guest = Guest::new();
    let fail = |_, _| Err(HostError { name: "RangeError".into(), message: "too many".into() });
    guest.0.bind_async(None, &"full".into(), Box::new(fail)).expect("a new name can be bound");
    let calls = guest.bind_async("tool");
    let told =
        |call: &str| format!("{call}.then(() => 'fine', (error) => `${{error.name}}: ${{error.message}}`)");
    guest.begin(1, &told("full()"));
    assert_eq!(guest.ended(), (1, Ok(string("RangeError: too many"))));
    guest.begin(2, &told("tool(1, { a: [Symbol()] })"));
    let (_, outcome) = guest.ended();
    assert!(
        matches!(&outcome, Ok(Value::String(text))
            if text.to_string().starts_with("TypeError: argument 2 cannot cross: $.a[0] is a symbol")),
        "{outcome:?}"
    );
    assert_eq!(calls.len(), 0);
}

#[test]
fn several_requests_wait_at_once_and_each_gets_its_own() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    for request in 1..=20 {
        guest.begin(request, &format!("(async () => [{request}, await tool({request})])()"));
    }
    for index in (0..20).rev() {
        let call = calls.noted.borrow()[index].clone();
        assert_eq!(call.arguments, [number(call.request as f64)]);
        guest.settle(call.id, string("done"));
        let value = Value::Array(vec![number(call.request as f64), string("done")]);
        assert_eq!(guest.ended(), (call.request, Ok(value)));
    }
    assert!(!guest.0.is_pending());
}

#[test]
fn a_step_runs_on_behalf_of_the_request_that_made_the_call() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(1, "(async () => { await tool(); await tool(); return 'one' })()");
    guest.begin(2, "(async () => { await tool(); return 'two' })()");
    guest.settle(calls.id(0), Value::Undefined);
    assert_eq!(calls.noted.borrow().iter().map(|call| call.request).collect::<Vec<_>>(), [1, 2, 1]);
    guest.settle(calls.id(1), Value::Undefined);
    assert_eq!(guest.ended(), (2, Ok(string("two"))));
    guest.settle(calls.id(2), Value::Undefined);
    assert_eq!(guest.ended(), (1, Ok(string("one"))));
}

#[test]
fn a_request_waits_for_calls_that_it_does_not_await() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    for source in ["tool(); 5", "(async () => { tool(); return 5 })()", "tool().then(() => 6); 5"] {
        guest.begin(1, source);
        assert_eq!(guest.0.take_ended(), None, "{source}");
        guest.settle(calls.id(calls.len() - 1), Value::Undefined);
        assert_eq!(guest.ended(), (1, Ok(number(5.0))), "{source}");
    }
    guest.begin(2, "tool().then(() => { tool() }); 5");
    guest.settle(calls.id(3), Value::Undefined);
    assert_eq!(guest.0.take_ended(), None, "a reaction has made another call");
    guest.settle(calls.id(4), Value::Undefined);
    assert_eq!(guest.ended(), (2, Ok(number(5.0))));
}

#[test]
fn a_value_is_read_when_its_request_ends() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(1, "const seen = { count: 0 }; tool().then((n) => { seen.count = n }); seen");
    guest.settle(calls.id(0), number(3.0));
    assert_eq!(guest.ended(), (1, Ok(object([("count", number(3.0))]))));
    guest.begin(2, "const other = [1]; tool().then(() => { other[0] = Symbol() }); other");
    guest.settle(calls.id(1), Value::Null);
    assert!(matches!(guest.ended(), (2, Err(Failure::Conversion { path, .. })) if path == "$[0]"));
}

#[test]
fn a_request_that_fails_ends_at_once_and_its_calls_are_given_up() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    for source in [
        "tool().then(() => { ran = true }); null.x",
        "tool().then(() => { ran = true }); Promise.reject(new TypeError('no'))",
        "(async () => { tool().then(() => { ran = true }); throw new TypeError('no') })()",
    ] {
        guest.value("globalThis.ran = false");
        guest.begin(1, source);
        let (_, outcome) = guest.ended();
        assert!(matches!(outcome, Err(Failure::Js(error)) if error.name == "TypeError"), "{source}");
        assert!(!guest.0.is_pending());
        guest.settle(calls.id(calls.len() - 1), Value::Undefined);
        assert_eq!(guest.value("ran"), Value::Bool(false), "{source}");
        assert_eq!(guest.0.take_ended(), None);
    }
    guest.begin(1, "tool().then(() => { ran = true }); 0");
    guest.settle(calls.id(3), Value::Undefined);
    assert_eq!(guest.value("ran"), Value::Bool(true), "a control");
}

#[test]
fn a_rejection_is_not_kept_waiting_by_other_calls() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(1, "Promise.all([tool(), tool(), tool()])");
    guest.reject(calls.id(1), "second");
    let (_, outcome) = guest.ended();
    assert!(matches!(outcome, Err(Failure::Js(error)) if error.message == "second"));
    guest.settle(calls.id(0), Value::Undefined);
    guest.settle(calls.id(2), Value::Undefined);
    assert_eq!(guest.0.take_ended(), None);
    assert!(guest.still_answers());
}

#[test]
fn a_call_is_settled_once_and_an_unknown_one_never() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.settle(99, Value::Null);
    guest.begin(1, "(async () => [await tool(), await tool()])()");
    guest.settle(calls.id(0), number(1.0));
    guest.settle(calls.id(0), number(2.0));
    guest.reject(calls.id(0), "again");
    guest.settle(12345, number(3.0));
    guest.settle(calls.id(1), number(4.0));
    assert_eq!(guest.ended(), (1, Ok(Value::Array(vec![number(1.0), number(4.0)]))));
}

#[test]
fn a_promise_that_nothing_can_settle_says_so_when_no_call_is_in_flight() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(1, "new Promise(() => {})");
    assert_eq!(guest.ended(), (1, Err(Failure::NeverSettles)));
    guest.begin(2, "(async () => { globalThis.later = Promise.withResolvers(); await tool(); return 2 })()");
    guest.begin(3, "later.promise");
    guest.begin(4, "new Promise(() => {})");
    assert_eq!(guest.0.take_ended(), None, "the call of another request may settle them");
    guest.settle(calls.id(0), Value::Undefined);
    assert_eq!(guest.ended(), (2, Ok(number(2.0))));
    assert_eq!(guest.ended(), (3, Err(Failure::NeverSettles)));
    assert_eq!(guest.ended(), (4, Err(Failure::NeverSettles)));
    assert!(!guest.0.is_pending());
}

#[test]
fn one_request_may_settle_what_another_waits_for() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(1, "globalThis.later = Promise.withResolvers(); tool(); later.promise");
    guest.begin(2, "later.resolve('from two'); 2");
    assert_eq!(guest.ended(), (2, Ok(number(2.0))), "its own end comes first");
    assert_eq!(guest.0.take_ended(), None, "the first still has a call in flight");
    guest.settle(calls.id(0), Value::Undefined);
    assert_eq!(guest.ended(), (1, Ok(string("from two"))));
}

#[test]
fn a_waiting_request_is_cancelled_at_once_and_the_others_go_on() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(1, "globalThis.ran = []; tool().then(() => ran.push(1))");
    guest.begin(2, "tool().then(() => ran.push(2))");
    guest.0.cancel(1);
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    guest.0.cancel(1);
    guest.0.cancel(77);
    guest.settle(calls.id(0), Value::Undefined);
    guest.settle(calls.id(1), Value::Undefined);
    assert_eq!(guest.ended(), (2, Ok(number(1.0))));
    assert_eq!(guest.value("ran"), Value::Array(vec![number(2.0)]));
    assert_eq!(guest.0.take_ended(), None);
}

#[test]
fn a_request_that_waited_for_the_call_of_a_cancelled_one_never_settles() {
    let guest = Guest::new();
    guest.bind_async("tool");
    guest.begin(1, "globalThis.shared = tool()");
    guest.begin(2, "shared");
    guest.0.cancel(1);
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    assert_eq!(guest.ended(), (2, Err(Failure::NeverSettles)));
}

#[test]
fn waiting_is_not_the_guests_time() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin_within(SHORT, 1, "(async () => { await tool(); return 'done' })()");
    guest.begin_within(SHORT, 2, "(async () => { await tool(); for (;;); })()");
    std::thread::sleep(2 * SHORT);
    guest.settle(calls.id(0), Value::Undefined);
    assert_eq!(guest.ended(), (1, Ok(string("done"))));
    guest.settle(calls.id(1), Value::Undefined);
    assert_eq!(guest.ended(), (2, Err(Failure::Timeout)), "a control");
    assert!(guest.still_answers());
}

#[test]
fn every_request_whose_time_is_up_when_the_guest_is_stopped_fails() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin_within(SHORT, 1, "tool()");
    guest.begin_within(Duration::from_secs(60), 2, "tool()");
    guest.begin_within(Duration::from_secs(60), 3, "for (;;);");
    let mut ended = [guest.ended(), guest.ended()];
    ended.sort_by_key(|(request, _)| *request);
    assert_eq!(ended, [(1, Err(Failure::Timeout)), (3, Err(Failure::Timeout))]);
    guest.settle(calls.id(1), number(2.0));
    assert_eq!(guest.ended(), (2, Ok(number(2.0))));
    assert_eq!(guest.0.take_ended(), None);
}

#[test]
fn reactions_that_are_left_over_from_a_stopped_request_are_stopped_too() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.bind("tick", Box::new(|_| Ok(Value::Undefined)));
    for source in [
        "for (let i = 0; i < 5; i++) Promise.resolve().then(() => { for (;;); }); 1",
        "(async () => { for (let i = 0; i < 5; i++) tool().then(() => { for (;;); }); for (;;); })()",
        "(function again() { Promise.resolve().then(again); tick(); for (;;); })()",
        "(function again() { Promise.resolve().then(again); try { tick() } catch {} })(); for (;;);",
        "Promise.resolve().then(() => { for (;;); }); Promise.reject(new Error('left over')); 1",
    ] {
        guest.begin_within(SHORT, 1, source);
        assert_eq!(guest.ended(), (1, Err(Failure::Timeout)), "{source}");
        assert!(!guest.0.is_pending());
        assert!(guest.still_answers(), "{source}");
    }
    assert_eq!(calls.len(), 5);
}

#[test]
fn a_stop_in_a_step_fails_the_request_that_made_the_call_and_no_other() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(1, "(async () => { await tool(); for (;;); })()");
    guest.begin(2, "(async () => { await tool(); return 2 })()");
    let asked = Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 1
    };
    guest.0.settle(calls.id(0), Ok(Value::Undefined), &StepLimits { cancelled: &cancelled });
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    assert!(asked.get() > 1);
    guest.settle(calls.id(1), Value::Undefined);
    assert_eq!(guest.ended(), (2, Ok(number(2.0))));
}

#[test]
fn a_running_request_can_be_cancelled_from_a_host_function() {
    let guest = Rc::new(Guest::new());
    let inner = Rc::downgrade(&guest);
    let stop = Box::new(move |request, _| {
        inner.upgrade().expect("it is alive").0.cancel(request);
        Ok(Value::Undefined)
    });
    guest.0.bind(None, &"stop".into(), stop).expect("a new name can be bound");
    guest.begin(1, "stop(); for (;;);");
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    let calls = guest.bind_async("tool");
    guest.begin(2, "(async () => { await tool(); stop(); for (;;); })()");
    guest.settle(calls.id(0), Value::Null);
    assert_eq!(guest.ended(), (2, Err(Failure::Cancelled)));
    assert!(guest.still_answers());
}

#[test]
fn the_heap_limit_holds_in_a_step() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    let source = "(async () => { await tool(); const all = []; for (let i = 0; ; i++) all.push({ i, text: 'x' + i }) })()";
    let limits = EvalLimits { max_heap_bytes: 64 << 20, ..EvalLimits::default() };
    guest.0.begin_eval(1, &Text::from(source), "test.js", &limits);
    guest.settle(calls.id(0), Value::Undefined);
    assert_eq!(guest.ended(), (1, Err(Failure::HeapLimit)));
    assert!(guest.still_answers());
}

#[test]
fn a_value_that_the_guest_has_made_a_thenable_runs_under_the_limits_of_the_step() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin_within(SHORT, 1, "tool()");
    guest.value(
        "Object.defineProperty(Object.prototype, 'then', { configurable: true, get() { for (;;); } }); 0",
    );
    guest.settle(calls.id(0), object([("x", number(1.0))]));
    assert_eq!(guest.ended(), (1, Err(Failure::Timeout)));
    guest.value("delete Object.prototype.then; 0");
    guest.begin(2, "tool()");
    guest.value(
        "Object.prototype.then = function (done) { delete Object.prototype.then; done('taken over') }; 0",
    );
    guest.settle(calls.id(1), object([("x", number(1.0))]));
    assert_eq!(guest.ended(), (2, Ok(string("taken over"))));
    guest.begin(3, "tool()");
    guest.value(
        "Object.defineProperty(Object.prototype, 'then', { configurable: true, get() { throw new Error('got') } }); 0",
    );
    guest.settle(calls.id(2), object([]));
    assert!(matches!(guest.ended(), (3, Err(Failure::Js(error))) if error.message == "got"));
}

#[test]
fn a_guest_that_has_patched_promises_does_not_get_between() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.value(
        "globalThis.calls = 0; const spy = () => { calls++; throw new Error('spy') }; \
         const { prototype } = Promise; const real = prototype.then; \
         globalThis.Promise = new Proxy(Promise, { construct: spy, apply: spy, get: spy }); \
         for (const key of ['then', 'catch', 'finally']) prototype[key] = spy; \
         Object.defineProperty(prototype, 'constructor', { get: spy }); \
         Object.defineProperty(real.constructor.prototype, 'call', { value: spy }); \
         Object.defineProperty(prototype, Symbol.toStringTag, { get: spy }); 0",
    );
    guest.begin(1, "globalThis.waits = tool(1); waits");
    guest.settle(calls.id(0), number(5.0));
    assert_eq!(guest.ended(), (1, Ok(number(5.0))));
    assert_eq!(guest.value("calls"), number(0.0));
}

#[test]
fn a_call_settled_within_a_host_function_takes_effect_afterwards() {
    let guest = Rc::new(Guest::new());
    let calls = guest.bind_async("tool");
    let (inner, noted) = (Rc::downgrade(&guest), calls.clone());
    guest.bind(
        "settle_it",
        Box::new(move |_| {
            inner.upgrade().expect("it is alive").settle(noted.id(0), string("late"));
            Ok(Value::Undefined)
        }),
    );
    guest.begin(1, "globalThis.order = []; tool().then((value) => { order.push(value); return order })");
    guest.begin(2, "settle_it(); order.push('script'); 2");
    let mut ended = [guest.ended(), guest.ended()];
    ended.sort_by_key(|(request, _)| *request);
    let order = Value::Array(vec![string("script"), string("late")]);
    assert_eq!(ended, [(1, Ok(order)), (2, Ok(number(2.0)))]);
}

#[test]
fn a_panic_of_a_function_that_starts_a_call_is_resumed_and_the_others_go_on() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.0.bind_async(None, &"burst".into(), Box::new(|_, _| panic!("host bug"))).expect("it can be bound");
    guest.begin(1, "tool()");
    let burst = catch_unwind(AssertUnwindSafe(|| guest.begin(2, "tool(); burst(); 2")));
    assert_eq!(burst.unwrap_err().downcast_ref::<&str>(), Some(&"host bug"));
    guest.begin(3, "(async () => { await tool(); burst() })()");
    let burst = catch_unwind(AssertUnwindSafe(|| guest.settle(calls.id(2), Value::Undefined)));
    assert_eq!(burst.unwrap_err().downcast_ref::<&str>(), Some(&"host bug"));
    assert_eq!(guest.0.take_ended(), None);
    guest.settle(calls.id(0), number(1.0));
    assert_eq!(guest.ended(), (1, Ok(number(1.0))));
    assert!(guest.still_answers());
}

#[test]
fn evaluating_in_one_go_does_not_wait() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    assert_eq!(guest.eval("tool()"), Err(Failure::CannotWait));
    assert_eq!(guest.eval("tool(); 1"), Err(Failure::CannotWait));
    assert!(!guest.0.is_pending());
    guest.settle(calls.id(0), Value::Null);
    assert_eq!(guest.0.take_ended(), None);
    assert_eq!(guest.eval("new Promise(() => {})"), Err(Failure::NeverSettles));
    assert_eq!(guest.0.take_ended(), None);
}

#[test]
fn an_isolate_with_waiting_requests_ends_quietly() {
    let held = Rc::new(RefCell::new(0));
    let guest = Guest::new();
    let (captured, ids) = (Rc::clone(&held), Cell::new(0));
    let start = move |_, _| {
        *captured.borrow_mut() += 1;
        ids.set(ids.get() + 1);
        Ok(ids.get())
    };
    guest.0.bind_async(None, &"tool".into(), Box::new(start)).expect("it can be bound");
    for request in 1..100 {
        guest.begin(request, "tool().then(() => tool())");
    }
    assert_eq!((*held.borrow(), Rc::strong_count(&held)), (99, 2));
    drop(guest);
    assert_eq!(Rc::strong_count(&held), 1);
    assert!(Guest::new().still_answers());
}
