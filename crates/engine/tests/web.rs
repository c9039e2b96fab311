//! The interfaces of the web, and timers on a time of their own.

mod guest;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use guest::{Guest, number, string};
use pydeno_engine::StepLimits;
use pydeno_wire::Value;
use pydeno_wire::message::Failure;

const NEVER: &str = "new Promise(() => {})";

fn web() -> Guest {
    let guest = Guest::new();
    guest.0.install_web().expect("the interfaces can be made");
    guest
}

fn frozen(milliseconds: i64) -> Guest {
    let guest = Guest::new();
    guest.0.freeze_clock(milliseconds).expect("the clock can be frozen");
    guest.0.install_web().expect("the interfaces can be made");
    guest
}

/// Lets timers go off until none can.
fn fire_all(guest: &Guest) {
    while guest.0.next_timer().is_some() {
        guest.0.fire_timers(&StepLimits::default());
    }
}

#[test]
fn without_them_nothing_of_it_is_there() {
    let guest = Guest::new();
    let names = "['setTimeout', 'URL', 'TextEncoder', 'structuredClone', 'AbortSignal', 'crypto', 'performance', 'self']";
    assert_eq!(guest.value(&format!("{names}.filter(name => name in globalThis).length")), number(0.0));
    assert_eq!(web().value(&format!("{names}.filter(name => name in globalThis).length")), number(8.0));
}

#[test]
fn time_begins_where_it_is_said_to_when_the_interfaces_were_there_before() {
    let read = "[Date.now(), performance.timeOrigin, performance.now(), new Event('x').timeStamp].join()";
    let guest = web();
    guest.0.freeze_clock(5_000).expect("the clock can be frozen");
    guest.0.begin_time().expect("time can begin");
    assert_eq!(guest.value(read), string("5000,5000,0,0"));
    let ahead = web();
    ahead.0.freeze_clock(5_000).expect("the clock can be frozen");
    assert_ne!(ahead.value(read), string("5000,5000,0,0"), "beginning it makes no difference");
}

#[test]
fn timers_go_off_in_the_order_of_their_times_and_take_none() {
    let guest = web();
    let order = guest.value(
        "const order = []; const note = what => () => order.push(what);
         setTimeout(note('c'), 86400000); setTimeout(note('b'), 1000); setTimeout(note('a'), 1000);
         setTimeout(note('0')); queueMicrotask(note('now'));
         new Promise(resolve => setTimeout(() => resolve(order.join(' ')), 86400001))",
    );
    assert_eq!(order, string("now 0 b a c"));
}

#[test]
fn every_clock_follows_the_timers_and_nothing_else() {
    let guest = frozen(1_000_000);
    let read = "[Date.now(), +new Date(), Date.parse(Date()), new Intl.DateTimeFormat('en', \
                { minute: '2-digit', second: '2-digit' }).format(), performance.now()].join()";
    assert_eq!(guest.value(read), string("1000000,1000000,1000000,16:40,0"));
    guest.value("new Promise(done => setTimeout(done, 61000))");
    assert_eq!(guest.value(read), string("1061000,1061000,1061000,17:41,61000"));
}

#[test]
fn no_timer_goes_off_where_no_request_waits() {
    let guest = web();
    guest.value("globalThis.n = 0; setTimeout(() => n++); 0");
    assert_eq!(guest.0.next_timer(), None);
    guest.begin(7, NEVER);
    assert_eq!(guest.0.next_timer(), Some(7));
    fire_all(&guest);
    assert_eq!(guest.ended(), (7, Err(Failure::NeverSettles)));
    assert_eq!(guest.value("n"), number(1.0));
}

#[test]
fn time_does_not_jump_while_a_call_is_in_flight() {
    let guest = web();
    let calls = guest.bind_async("ask");
    guest.begin(1, "globalThis.log = []; setTimeout(() => log.push('due')); setTimeout(() => log.push('later'), 1); \
                    ask().then(answer => log.push(answer)).then(() => new Promise(done => setTimeout(done, 2))).then(() => log.join())");
    fire_all(&guest);
    assert_eq!(calls.len(), 1);
    assert_eq!(guest.0.take_ended(), None);
    guest.settle(calls.id(0), string("answer"));
    fire_all(&guest);
    assert_eq!(guest.ended(), (1, Ok(string("due,answer,later"))));
}

#[test]
fn calls_that_a_callback_makes_belong_to_the_request_that_waits() {
    let guest = web();
    let calls = guest.bind_async("ask");
    guest.value("setTimeout(() => { globalThis.answer = ask() }, 5); 0");
    guest.begin(3, "new Promise(done => setTimeout(done, 10, 'done'))");
    fire_all(&guest);
    assert_eq!(calls.noted.borrow()[0].request, 3);
    assert_eq!(guest.0.take_ended(), None, "it waits for the call");
    guest.settle(calls.id(0), number(1.0));
    fire_all(&guest);
    assert_eq!(guest.ended(), (3, Ok(string("done"))));
}

#[test]
fn a_request_that_fails_takes_its_timers_with_it() {
    let guest = web();
    assert_eq!(
        guest.within(Duration::from_millis(50), "setInterval(() => 0, 1); new Promise(() => {})"),
        Err(Failure::Timeout)
    );
    // Were the interval still there, this would never end either.
    assert_eq!(guest.eval(NEVER), Err(Failure::NeverSettles));
    assert!(matches!(guest.eval("setInterval(() => 0, 1); throw 1"), Err(Failure::Js(_))));
    assert_eq!(guest.eval(NEVER), Err(Failure::NeverSettles));
    // One that has ended well leaves them.
    assert_eq!(guest.value("setInterval(() => 0, 1)"), number(3.0));
    assert_eq!(guest.within(Duration::from_millis(50), NEVER), Err(Failure::Timeout));
}

#[test]
fn a_waiting_request_can_be_cancelled_between_two_timers() {
    let guest = web();
    guest.begin(1, "setInterval(() => { globalThis.n = 1 }, 1); new Promise(() => {})");
    guest.0.fire_timers(&StepLimits::default());
    assert_eq!(guest.value("n"), number(1.0));
    guest.0.cancel(1);
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    assert_eq!(guest.0.next_timer(), None);
}

#[test]
fn the_cancel_question_is_asked_between_timers_that_are_short() {
    let guest = web();
    guest.begin(1, "setInterval(() => 0, 1); new Promise(() => {})");
    let limits = StepLimits { cancelled: &|| true };
    while guest.0.next_timer().is_some() {
        guest.0.fire_timers(&limits);
    }
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
}

#[test]
fn what_a_callback_throws_is_told_with_the_request() {
    let guest = web();
    guest.begin(
        1,
        "setTimeout(() => { throw new RangeError('thrown') }); queueMicrotask(() => { throw 'text' }); \
         new Promise(done => setTimeout(done, 1, 'value'))",
    );
    fire_all(&guest);
    let ended = guest.0.take_ended().expect("it has ended");
    assert_eq!(ended.outcome, Ok(string("value")));
    let told: Vec<String> = ended.unhandled.iter().map(|error| error.message.to_string()).collect();
    assert_eq!(told, ["text", "thrown"]);
    assert_eq!(ended.unhandled[1].name, "RangeError");
    assert_eq!(ended.unhandled[1].frames[0].file, "test.js");
}

#[test]
fn no_timer_goes_off_within_a_host_function() {
    let guest = Rc::new(web());
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (inner, noted) = (Rc::downgrade(&guest), Rc::clone(&seen));
    guest.bind(
        "host",
        Box::new(move |_| {
            let guest = inner.upgrade().expect("it is being used");
            noted.borrow_mut().push(guest.0.next_timer());
            guest.0.fire_timers(&StepLimits::default());
            Ok(Value::Undefined)
        }),
    );
    guest.value("globalThis.n = 0; setTimeout(() => n++); host(); globalThis.during = n; new Promise(done => setTimeout(done, 1))");
    assert_eq!(*seen.borrow(), [None]);
    assert_eq!(guest.value("[during, n].join()"), string("0,1"));
}

#[test]
fn a_script_that_was_stopped_while_an_interface_was_made_can_have_it_later() {
    let guest = web();
    // The stack ends somewhere inside.
    let code = "(function deeper() { try { return deeper() } catch { return typeof URL } })()";
    let _ = guest.eval(code);
    assert_eq!(guest.value("new URL('http://h').href"), string("http://h/"));
}

#[test]
fn a_frozen_global_object_still_has_the_interfaces() {
    let guest = web();
    guest.value("Object.freeze(globalThis); 0");
    assert_eq!(guest.value("new URL('http://h').href + (URL === URL)"), string("http://h/true"));
}
