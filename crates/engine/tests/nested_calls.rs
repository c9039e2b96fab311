//! A host function calls back into the guest that calls it.

mod guest;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use guest::{Guest, number, string};
use pydeno_engine::{EvalLimits, HookTime, Isolate, RequestId};
use pydeno_wire::message::{Failure, HostError, JsError};
use pydeno_wire::{Function, Text, Value};

type Outcomes = Rc<RefCell<Vec<Result<Value, Failure>>>>;

/// A guest with `callback(f, ...arguments)`, which calls `f` and throws what it fails with; and what came of each call.
fn calling_back(timeout: Duration) -> (Rc<Guest>, Outcomes) {
    let guest = Rc::new(Guest::new());
    let outcomes = Outcomes::default();
    let (inner, told) = (Rc::downgrade(&guest), Rc::clone(&outcomes));
    let callback = move |request: RequestId, mut arguments: Vec<Value>| {
        let guest = inner.upgrade().expect("it is alive");
        let Value::Function(Function { handle, .. }) = arguments.remove(0) else {
            panic!("a function is expected")
        };
        let limits = EvalLimits { timeout, ..EvalLimits::default() };
        guest.0.begin_invoke(request + 1, handle, &arguments, &limits);
        let ended = guest.0.take_ended().expect("a nested request ends at once");
        assert_eq!(ended.request, request + 1);
        guest.0.release(&[handle]);
        told.borrow_mut().push(ended.outcome.clone());
        ended.outcome.map_err(|failure| HostError {
            name: if let Failure::Js(JsError { name, .. }) = &failure {
                name.clone()
            } else {
                "Error".into()
            },
            message: format!("{failure:?}").into(),
        })
    };
    guest.0.bind(None, &"callback".into(), Box::new(callback)).expect("a new name can be bound");
    (guest, outcomes)
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(150);

#[test]
fn a_callback_returns_and_throws_through_the_host() {
    let (guest, _) = calling_back(LONG);
    assert_eq!(guest.value("callback((a, b) => a + b, 1, 2)"), number(3.0));
    assert_eq!(guest.value("let n = 0; callback(() => { n = 5 }); n"), number(5.0));
    assert_eq!(guest.error("callback(() => { throw new TypeError('deep') })").name, "TypeError");
    assert_eq!(
        guest.value("[3, 1, 2].sort((a, b) => callback((x, y) => x - y, a, b)).join()"),
        string("1,2,3")
    );
    assert!(guest.still_answers());
}

#[test]
fn a_host_function_may_be_called_again_before_it_returns() {
    let (guest, outcomes) = calling_back(LONG);
    assert_eq!(guest.value("callback(() => callback(() => callback(() => 'bottom')))"), string("bottom"));
    assert_eq!(outcomes.borrow().len(), 3);
}

#[test]
fn nesting_has_a_bottom() {
    let (guest, outcomes) = calling_back(LONG);
    let deepest = Isolate::DEEPEST_NESTING;
    let nested =
        |depth| format!("(function f(n) {{ return n === 0 ? 'bottom' : callback(f, n - 1) }})({depth})");
    assert_eq!(guest.value(&nested(deepest)), string("bottom"));
    outcomes.borrow_mut().clear();
    assert_eq!(guest.error(&nested(deepest + 1)).name, "RangeError");
    assert!(matches!(&outcomes.borrow()[0], Err(Failure::Js(error)) if error.name == "RangeError"));
    assert_eq!(
        guest.value(&format!(
            "(() => {{ try {{ {} }} catch (error) {{ return error.name }} }})()",
            nested(1000)
        )),
        string("RangeError")
    );
    assert!(guest.still_answers());
}

#[test]
fn reactions_wait_until_the_guest_around_has_returned() {
    let (guest, outcomes) = calling_back(LONG);
    assert_eq!(
        guest.value(
            "const order = []; callback(() => { Promise.resolve().then(() => order.push('reaction')); order.push('callback') }); \
             order.push('script'); Promise.resolve().then(() => order.join())"
        ),
        string("callback,script,reaction")
    );
    for source in
        ["async () => 1", "() => new Promise(() => {})", "() => Promise.reject(new Error('told to none'))"]
    {
        outcomes.borrow_mut().clear();
        let caught =
            format!("(() => {{ try {{ callback({source}) }} catch (error) {{ return 'caught' }} }})()");
        guest.begin(1, &caught);
        assert_eq!(guest.ended(), (1, Ok(string("caught"))), "{source}");
        assert_eq!(outcomes.borrow().as_slice(), [Err(Failure::CannotWait)], "{source}");
    }
}

#[test]
fn the_time_of_a_callback_is_its_callers_too() {
    let (guest, outcomes) = calling_back(LONG);
    for source in [
        "callback(() => { for (;;); })",
        "try { callback(() => { for (;;); }) } catch {} for (;;);",
        "for (;;) try { callback(() => { for (;;); }) } catch {}",
        "callback(() => { try { callback(() => { for (;;); }) } finally { for (;;); } })",
        "(async () => { await 1; callback(() => { for (;;); }) })()",
    ] {
        outcomes.borrow_mut().clear();
        assert_eq!(guest.within(SHORT, source), Err(Failure::Timeout), "{source}");
        assert_eq!(outcomes.borrow()[0], Err(Failure::Timeout), "{source}");
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn a_callback_that_is_stopped_takes_its_caller_with_it() {
    let (guest, outcomes) = calling_back(SHORT);
    for source in [
        "try { callback(() => { for (;;); }) } catch {} 1",
        "try { callback(() => callback(() => { for (;;); })) } catch {} for (;;);",
        "(async () => { await 1; try { callback(() => { for (;;); }) } catch {} return 2 })()",
        "try { callback(() => { for (;;); }) } finally { callback(() => 1) }",
    ] {
        outcomes.borrow_mut().clear();
        assert_eq!(guest.within(LONG, source), Err(Failure::Timeout), "{source}");
        assert_eq!(outcomes.borrow()[0], Err(Failure::Timeout), "{source}");
        assert!(guest.still_answers(), "{source}");
    }
    assert_eq!(guest.within(LONG, "callback(() => 1)"), Ok(number(1.0)), "a control");
}

#[test]
fn cancelling_the_caller_stops_the_callback() {
    let (guest, outcomes) = calling_back(LONG);
    let inner = Rc::downgrade(&guest);
    let stop = Box::new(move |_, _| {
        inner.upgrade().expect("it is alive").0.cancel(10);
        Ok(Value::Undefined)
    });
    guest.0.bind(None, &"stop".into(), stop).expect("a new name can be bound");
    guest.begin(10, "try { callback(() => { stop(); for (;;); }) } catch {} for (;;);");
    assert_eq!(guest.ended(), (10, Err(Failure::Cancelled)));
    assert_eq!(outcomes.borrow().as_slice(), [Err(Failure::Cancelled)]);
    assert!(guest.still_answers());
    // One that calls the host again gets nothing from it, and cannot end well.
    outcomes.borrow_mut().clear();
    let lines = Rc::new(RefCell::new(Vec::new()));
    let written = Rc::clone(&lines);
    guest.0.set_console(Box::new(move |_, text| written.borrow_mut().push(text)), HookTime::Guest);
    guest.begin(
        10,
        "console.log('before'); stop(); console.log('after'); try { callback(() => 1) } catch {} 2",
    );
    assert_eq!(guest.ended(), (10, Err(Failure::Cancelled)));
    assert_eq!(lines.borrow().as_slice(), [Text::from("before")]);
    assert_eq!(outcomes.borrow().as_slice(), []);
    guest.begin(10, "stop(); try { callback(() => 1) } catch {} 2");
    assert_eq!(guest.ended(), (10, Err(Failure::Cancelled)));
    assert_eq!(outcomes.borrow().as_slice(), []);
    assert!(guest.still_answers());
}

#[test]
fn asynchronous_calls_of_a_callback_are_its_outermost_callers() {
    let (guest, _) = calling_back(LONG);
    let calls = guest.bind_async("tool");
    guest.begin(1, "callback(() => { tool('inner'); }); 5");
    assert_eq!(guest.0.take_ended(), None);
    assert_eq!(calls.noted.borrow()[0].request, 1);
    guest.settle(calls.id(0), Value::Undefined);
    assert_eq!(guest.ended(), (1, Ok(number(5.0))));
    guest.begin(2, "globalThis.waits = tool(); callback(() => { waits.then((value) => { globalThis.got = value }) }); waits.then(() => got)");
    guest.settle(calls.id(1), string("x"));
    assert_eq!(guest.ended(), (2, Ok(string("x"))));
}

#[test]
fn a_script_may_be_evaluated_within_a_host_function() {
    let guest = Rc::new(Guest::new());
    let inner = Rc::downgrade(&guest);
    guest.bind(
        "run",
        Box::new(move |mut arguments| {
            let Value::String(source) = arguments.remove(0) else { panic!("a text is expected") };
            let guest = inner.upgrade().expect("it is alive");
            guest
                .0
                .eval(&source, "inner.js", &EvalLimits::default())
                .map_err(|failure| HostError { name: "Error".into(), message: format!("{failure:?}").into() })
        }),
    );
    assert_eq!(guest.value("var a = 1; run('a += 1; a * 10') + a"), number(22.0));
    assert_eq!(guest.error("run('(')").message.to_string().matches("SyntaxError").count(), 1);
    assert!(guest.still_answers());
}

#[test]
fn a_panic_below_a_callback_comes_out_at_the_top() {
    let (guest, _) = calling_back(LONG);
    guest.bind("burst", Box::new(|_| panic!("host bug")));
    for source in [
        "callback(burst)",
        "callback(() => { try { burst() } catch { for (;;); } })",
        "try { callback(() => burst()) } catch { for (;;); }",
    ] {
        let burst = catch_unwind(AssertUnwindSafe(|| guest.within(Duration::from_secs(5), source)));
        assert_eq!(burst.unwrap_err().downcast_ref::<&str>(), Some(&"host bug"), "{source}");
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn the_end_of_the_native_stack_is_an_error_of_the_guest() {
    let (guest, _) = calling_back(LONG);
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    let nested = |depth| (0..depth).fold(Value::Undefined, |value, _| Value::Array(vec![value]));
    guest.bind("give", Box::new(move |_| Ok(nested(512))));
    guest.value(
        "globalThis.deep = (n) => { let v = 0; for (let i = 0; i < n; i++) v = i % 2 ? [v] : { v }; return v }; \
         globalThis.deepest = deep(500); 0",
    );
    for source in [
        "(function f() { same(deepest); f() })()",
        "(function f() { try { f() } catch (error) { same(deepest); throw error } })()",
        "(function f() { try { f() } catch (error) { callback(() => deepest); throw error } })()",
        "(function f() { try { f() } catch (error) { callback(f); throw error } })()",
        "(function f() { callback(f); f() })()",
        "(function f() { new Promise(f); same(deepest) })()",
        "(function f() { try { f() } catch (error) { give(); throw error } })()",
        "(function f() { try { f() } catch (error) { callback(() => 1, give()); throw error } })()",
    ] {
        let limits = EvalLimits {
            timeout: Duration::from_millis(400),
            budget: pydeno_wire::Budget { depth: 512, ..pydeno_wire::Budget::default() },
            ..EvalLimits::default()
        };
        let outcome = guest.0.eval(&Text::from(source), "test.js", &limits);
        assert!(
            matches!(&outcome, Err(Failure::Js(error)) if error.name == "RangeError")
                || matches!(outcome, Err(Failure::Timeout)),
            "{source}: {outcome:?}"
        );
        assert!(guest.still_answers(), "{source}");
    }
}
