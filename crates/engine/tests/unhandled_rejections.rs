//! Rejections that nothing handles are told with the request on whose behalf they came about.

mod guest;

use guest::{Guest, number};
use pydeno_engine::Ended;
use pydeno_wire::Value;
use pydeno_wire::codec::bounds;
use pydeno_wire::message::Failure;

fn messages(ended: &Ended) -> Vec<String> {
    ended.unhandled.iter().map(|error| error.message.to_string()).collect()
}

fn unhandled(guest: &Guest, source: &str) -> Vec<String> {
    guest.begin(1, source);
    messages(&guest.0.take_ended().expect("it has ended"))
}

#[test]
fn what_nothing_handles_is_told_and_what_is_handled_is_not() {
    let guest = Guest::new();
    for (source, expected) in [
        ("Promise.reject(new Error('lost')); 3", &["lost"][..]),
        ("Promise.resolve().then(() => { throw new Error('in a reaction') }); 4", &["in a reaction"]),
        ("(async () => { throw new Error('not awaited') })(); 5", &["not awaited"]),
        ("Promise.reject(1); Promise.reject('two'); 6", &["1", "two"]),
        ("Promise.reject(new Error('x')).catch(() => {}); 7", &[]),
        ("const p = Promise.reject(new Error('x')); Promise.resolve().then(() => p.catch(() => {})); 8", &[]),
        ("(async () => { try { await Promise.reject(1) } catch {} })(); 9", &[]),
        ("Promise.allSettled([Promise.reject(1)]).then(() => 10)", &[]),
        ("11", &[]),
    ] {
        assert_eq!(unhandled(&guest, source), expected, "{source}");
    }
    guest.begin(1, "(async function lost() {\n  null.x })(); 0");
    let ended = guest.0.take_ended().expect("it has ended");
    assert_eq!(ended.unhandled[0].name, "TypeError");
    assert_eq!(
        (ended.unhandled[0].frames[0].function.to_string(), ended.unhandled[0].frames[0].line),
        ("lost".into(), 2)
    );
}

#[test]
fn the_requests_own_result_is_not_one() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    for source in [
        "Promise.reject(new Error('own'))",
        "(async () => { throw new Error('own') })()",
        "(async () => { await 1; throw new Error('own') })()",
        "Promise.reject(new Error('first')); Promise.reject(new Error('own'))",
    ] {
        guest.begin(1, source);
        let ended = guest.0.take_ended().expect("it has ended");
        assert!(matches!(&ended.outcome, Err(Failure::Js(error)) if error.message == "own"), "{source}");
        assert!(!messages(&ended).contains(&"own".to_owned()), "{source}");
    }
    guest.begin(2, "(async () => { await tool(); throw new Error('later') })()");
    guest.settle(calls.id(0), Value::Undefined);
    assert!(matches!(guest.ended(), (2, Err(Failure::Js(error))) if error.message == "later"));
    let reject = guest.value("async () => { throw new Error('called') }");
    assert!(matches!(guest.call(&reject, &[]), Err(Failure::Js(error)) if error.message == "called"));
}

#[test]
fn each_belongs_to_the_request_on_whose_behalf_it_came_about() {
    let guest = Guest::new();
    let calls = guest.bind_async("tool");
    guest.begin(
        1,
        "Promise.reject(new Error('one at once')); tool().then(() => { throw new Error('one later') }); 1",
    );
    guest.begin(2, "tool().then(() => 2)");
    guest.settle(calls.id(1), Value::Undefined);
    assert_eq!(guest.ended(), (2, Ok(number(2.0))));
    guest.settle(calls.id(0), Value::Undefined);
    let ended = guest.0.take_ended().expect("it has ended");
    assert_eq!(
        (ended.request, messages(&ended)),
        (1, vec!["one at once".to_owned(), "one later".to_owned()])
    );
    guest.begin(3, "tool(); 3");
    guest.reject(calls.id(2), "nobody awaits it");
    let ended = guest.0.take_ended().expect("it has ended");
    assert_eq!(
        (ended.outcome.clone(), messages(&ended)),
        (Ok(number(3.0)), vec!["nobody awaits it".to_owned()])
    );
    assert_eq!(unhandled(&guest, "0"), [""; 0], "each is told once");
}

#[test]
fn a_failing_request_tells_of_them_too() {
    let guest = Guest::new();
    guest.begin(1, "Promise.reject(new Error('lost')); throw new Error('thrown')");
    let ended = guest.0.take_ended().expect("it has ended");
    assert!(matches!(&ended.outcome, Err(Failure::Js(error)) if error.message == "thrown"));
    assert_eq!(messages(&ended), ["lost"]);
    guest.begin(2, "Promise.reject(new Error('lost')); new Promise(() => {})");
    let ended = guest.0.take_ended().expect("it has ended");
    assert_eq!(
        (ended.outcome.clone(), messages(&ended)),
        (Err(Failure::NeverSettles), vec!["lost".to_owned()])
    );
}

#[test]
fn no_more_are_told_than_may_cross() {
    let guest = Guest::new();
    let told = unhandled(&guest, "for (let i = 0; i < 10000; i++) Promise.reject(i); 0");
    let first: Vec<String> = (0..bounds::UNHANDLED).map(|index| index.to_string()).collect();
    assert_eq!(told, first);
    let all_but_own = format!(
        "for (let i = 0; i < {}; i++) Promise.reject(i); Promise.reject(new Error('own'))",
        bounds::UNHANDLED
    );
    assert_eq!(unhandled(&guest, &all_but_own), first);
    let own_first =
        "const own = Promise.reject(new Error('own')); for (let i = 0; i < 100; i++) Promise.reject(i); own";
    assert_eq!(unhandled(&guest, own_first), first);
}

#[test]
fn describing_them_runs_no_guest_code() {
    let guest = Guest::new();
    let source = "globalThis.ran = 0; const spy = { get() { ran++ } }; \
                  const odd = new Error('x'); for (const name of ['name', 'message', 'stack', 'cause']) Object.defineProperty(odd, name, spy); \
                  Promise.reject(odd); Promise.reject(new Proxy({}, { get() { ran++ }, getPrototypeOf() { ran++ } })); \
                  Promise.reject({ toString() { ran++ }, [Symbol.toPrimitive]() { ran++ } }); \
                  const own = Promise.reject(1); Object.defineProperty(own, 'constructor', spy); Object.defineProperty(own, 'then', spy); 0";
    assert_eq!(unhandled(&guest, source).len(), 4);
    assert_eq!(guest.value("ran"), number(0.0));
}
