//! Streams: objects of the guest that are asked for items, and streams of the host that the guest asks.

mod guest;

use std::time::Duration;

use guest::{Guest, number, object, stream_of_host, string};
use pydeno_engine::EvalLimits;
use pydeno_wire::message::{Failure, StreamRequest};
use pydeno_wire::{Function, Stream, StreamOwner, Value};

fn js_message(outcome: Result<Value, Failure>) -> String {
    match outcome {
        Err(Failure::Js(error)) => error.message.to_string(),
        other => panic!("threw nothing: {other:?}"),
    }
}

#[test]
fn an_async_generator_gives_its_items_one_by_one_and_then_ends() {
    let guest = Guest::new();
    let stream = guest.value("(async function* () { yield 1; yield {a: [2]}; yield undefined })()");
    assert_eq!(guest.next(&stream), Ok(number(1.0)));
    assert_eq!(guest.next(&stream), Ok(object([("a", Value::Array(vec![number(2.0)]))])));
    assert_eq!(guest.next(&stream), Ok(Value::Undefined));
    assert_eq!(guest.next(&stream), Err(Failure::StreamEnded));
    assert_eq!(guest.next(&stream), Err(Failure::StreamEnded));
    assert!(guest.still_answers());
}

#[test]
fn nothing_runs_ahead_of_what_is_asked() {
    let guest = Guest::new();
    let stream =
        guest.value("globalThis.made = 0; (async function* () { for (;;) { made++; yield made } })()");
    assert_eq!(guest.value("made"), number(0.0));
    assert_eq!(guest.next(&stream), Ok(number(1.0)));
    assert_eq!(guest.value("made"), number(1.0));
}

#[test]
fn whatever_has_an_async_iterator_as_data_is_a_stream_anywhere_in_a_value() {
    let guest = Guest::new();
    for source in [
        "({async *[Symbol.asyncIterator]() { yield 'x' }})",
        "new (class { async *[Symbol.asyncIterator]() { yield 'x' } })()",
        "new (class extends class { async *[Symbol.asyncIterator]() { yield 'x' } } {})()",
        "({__proto__: null, [Symbol.asyncIterator]: async function* () { yield 'x' }})",
        "({[Symbol.asyncIterator]() { return {next: () => ({value: 'x', done: false})} }})",
        "new Proxy({}, {}), (async function* () { yield 'x' })()",
    ] {
        let stream = guest.value(source);
        assert_eq!(guest.next(&stream), Ok(string("x")), "{source}");
    }
    let Value::Object(entries) = guest.value("({rows: (async function* () { yield 'x' })(), n: 1})") else {
        panic!("an object is one")
    };
    assert_eq!(guest.next(&entries[0].1), Ok(string("x")));
    assert_eq!(entries[1].1, number(1.0));
}

#[test]
fn what_only_guest_code_could_say_is_a_stream_is_none() {
    let guest = Guest::new();
    let empty = object([]);
    guest.value("globalThis.ran = 0");
    for source in [
        "({get [Symbol.asyncIterator]() { ran++; return async function* () {} }})",
        "({__proto__: new Proxy({}, {get() { ran++ }, has() { ran++ }, getPrototypeOf() { ran++ }})})",
        "({[Symbol.asyncIterator]: 1})",
        "Object.prototype[Symbol.asyncIterator] = () => ran++; ({})",
    ] {
        assert_eq!(guest.value(source), empty, "{source}");
    }
    assert_eq!(guest.value("ran"), number(0.0));
    let (path, _) = guest.refused("({g: (function* () { yield 1 })()})");
    assert_eq!(path, "$.g");
    let (path, reason) = guest.refused("[new Proxy((async function* () {})(), {})]");
    assert_eq!(path, "$[0]");
    assert!(reason.contains("proxy"), "{reason}");
}

#[test]
fn objects_of_one_shape_are_streams_or_not_each_by_itself() {
    let guest = Guest::new();
    let value = guest.value(
        "class Rows { constructor(n) { this.n = n } async *[Symbol.asyncIterator]() { yield this.n } }
         Array.from({length: 40}, (_, i) => i % 2 ? new Rows(i) : {n: i})",
    );
    let Value::Array(items) = value else { panic!("an array is one") };
    for (index, item) in items.iter().enumerate() {
        if index % 2 == 0 {
            assert_eq!(*item, object([("n", number(index as f64))]));
        } else {
            assert_eq!(guest.next(item), Ok(number(index as f64)));
        }
    }
}

#[test]
fn a_getter_of_a_result_runs_as_guest_code_and_none_of_an_item_runs_at_all() {
    let guest = Guest::new();
    let stream = guest.value(
        "globalThis.seen = [];
         ({[Symbol.asyncIterator]: () => ({next: () => ({
             get done() { seen.push('done'); return false },
             get value() { seen.push('value'); return 7 },
         })})})",
    );
    assert_eq!(guest.next(&stream), Ok(number(7.0)));
    assert_eq!(guest.value("seen.join()"), string("done,value"));
    let stream = guest.value(
        "({[Symbol.asyncIterator]: () => ({next: () => ({done: false, value: {get x() { seen.push('x') }}})})})",
    );
    assert!(
        matches!(guest.next(&stream), Err(Failure::Conversion { path, .. }) if path == "$.x"),
        "the path begins at the item"
    );
    assert_eq!(guest.value("seen.join()"), string("done,value"));
    // A getter that never ends is stopped like any other code.
    let stream = guest.value(
        "({[Symbol.asyncIterator]: () => ({next: () => ({done: false, get value() { for (;;) {} }})})})",
    );
    let limits = EvalLimits { timeout: Duration::from_millis(100), ..EvalLimits::default() };
    guest.0.begin_pull(1, guest::handle_of(&stream), StreamRequest::Next, &limits);
    assert_eq!(guest.ended(), (1, Err(Failure::Timeout)));
    assert!(guest.still_answers());
}

#[test]
fn results_that_are_none_are_errors_of_the_guest() {
    let guest = Guest::new();
    let of = |next: &str| guest.value(&format!("({{[Symbol.asyncIterator]: () => ({{next: {next}}})}})"));
    assert_eq!(js_message(guest.next(&of("() => 1"))), "next() did not give an object");
    assert_eq!(js_message(guest.next(&of("() => { throw new Error('mine') }"))), "mine");
    assert_eq!(js_message(guest.next(&of("() => Promise.reject(new Error('mine'))"))), "mine");
    assert!(matches!(guest.next(&of("undefined")), Err(Failure::Js(_))));
    assert!(matches!(guest.next(&guest.value("({[Symbol.asyncIterator]: () => 1})")), Err(Failure::Js(_))));
    // Itself, which is no end and has no value.
    assert_eq!(guest.next(&of("function () { return this }")), Ok(Value::Undefined));
    // A thenable is awaited, as `for await` does.
    assert_eq!(guest.next(&of("() => ({then(f) { f({value: 5, done: 0}) }})")), Ok(number(5.0)));
    // A promise as the item, too, as it would be as a result.
    assert_eq!(guest.next(&of("() => ({value: Promise.resolve(6)})")), Ok(number(6.0)));
    assert_eq!(guest.next(&of("() => new Promise(() => {})")), Err(Failure::NeverSettles));
    assert_eq!(guest.next(&of("() => ({then() {}})")), Err(Failure::NeverSettles));
    assert!(guest.still_answers());
}

#[test]
fn poisoned_built_ins_neither_break_the_pulling_nor_see_its_records() {
    let guest = Guest::new();
    let stream = guest.value(
        "globalThis.stolen = [];
         const stream = (async function* () { yield 1; yield 2 })();
         Promise.prototype.then = function () { stolen.push('then') };
         Reflect.apply = () => stolen.push('apply');
         Function.prototype.call = Function.prototype.apply = () => stolen.push('call');
         Object.defineProperty(Object.prototype, 'done', {get() { stolen.push('done'); return true }});
         Object.defineProperty(Object.prototype, 'then', {get() { stolen.push(this) }});
         stream",
    );
    assert_eq!(guest.next(&stream), Ok(number(1.0)));
    // What the language itself looks up are the guest's own results.
    let seen = guest.value("stolen.every((entry) => typeof entry === 'object' && 'value' in entry)");
    assert_eq!(seen, Value::Bool(true));
    let foreign = guest.value("stolen.some((entry) => Object.getPrototypeOf(entry) === null)");
    assert_eq!(foreign, Value::Bool(false));
}

#[test]
fn ending_a_stream_early_calls_return_once_it_was_asked() {
    let guest = Guest::new();
    let source = "globalThis.log = []; (async function* () { try { yield 1; yield 2 } finally { log.push('end') } })()";
    let stream = guest.value(source);
    assert_eq!(guest.next(&stream), Ok(number(1.0)));
    assert_eq!(guest.ask(&stream, StreamRequest::Return), Err(Failure::StreamEnded));
    assert_eq!(guest.value("log.join()"), string("end"));
    assert_eq!(guest.next(&stream), Err(Failure::StreamEnded));
    let untouched = guest.value(source);
    assert_eq!(guest.ask(&untouched, StreamRequest::Return), Err(Failure::StreamEnded));
    assert_eq!(guest.value("log.join()"), string(""));
    let without = guest.value("({[Symbol.asyncIterator]: () => ({next: () => ({value: 1})})})");
    assert_eq!(guest.next(&without), Ok(number(1.0)));
    assert_eq!(guest.ask(&without, StreamRequest::Return), Err(Failure::StreamEnded));
    let failing = guest.value(
        "({[Symbol.asyncIterator]: () => ({next: () => ({value: 1}), return() { throw new Error('no') }})})",
    );
    assert_eq!(guest.next(&failing), Ok(number(1.0)));
    assert_eq!(js_message(guest.ask(&failing, StreamRequest::Return)), "no");
}

#[test]
fn a_pull_waits_for_asynchronous_calls_and_an_end_for_those_that_nobody_awaits() {
    let guest = Guest::new();
    let calls = guest.bind_async("fetch");
    let stream = guest.value("(async function* () { yield await fetch(1); fetch(2) })()");
    guest.begin_pull(1, &stream, StreamRequest::Next);
    assert!(guest.0.take_ended().is_none());
    guest.settle(calls.id(0), string("a"));
    assert_eq!(guest.ended(), (1, Ok(string("a"))));
    guest.begin_pull(2, &stream, StreamRequest::Next);
    assert!(guest.0.take_ended().is_none(), "the second call is under way");
    guest.settle(calls.id(1), Value::Null);
    assert_eq!(guest.ended(), (2, Err(Failure::StreamEnded)));
}

#[test]
fn a_pull_can_be_cancelled_while_it_waits() {
    let guest = Guest::new();
    let calls = guest.bind_async("fetch");
    let stream = guest.value("(async function* () { yield await fetch(1) })()");
    guest.begin_pull(1, &stream, StreamRequest::Next);
    assert_eq!(calls.len(), 1);
    guest.0.cancel(1);
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    // The generator still awaits what nobody will give it.
    assert_eq!(guest.ask(&stream, StreamRequest::Return), Err(Failure::NeverSettles));
    assert!(guest.still_answers());
}

#[test]
fn a_stream_that_is_passed_back_is_the_same_object() {
    let guest = Guest::new();
    let stream = guest.value("globalThis.s = (async function* () { yield 1 })(); s");
    let is_same = guest.value("(x) => x === s");
    assert_eq!(guest.call(&is_same, std::slice::from_ref(&stream)), Ok(Value::Bool(true)));
    let inside = guest.value("(x) => x.list[1] === s");
    let value = object([("list", Value::Array(vec![Value::Null, stream.clone()]))]);
    assert_eq!(guest.call(&inside, &[value]), Ok(Value::Bool(true)));
    guest.0.release(&[guest::handle_of(&stream)]);
    assert!(js_message(guest.call(&is_same, &[stream])).contains("no longer held"));
}

#[test]
fn a_handle_is_of_a_function_or_of_a_stream() {
    let guest = Guest::new();
    let stream = guest.value("(async function* () { yield 1 })()");
    let handle = guest::handle_of(&stream);
    let function = Value::Function(Function { handle, name: "".into() });
    assert_eq!(guest.call(&function, &[]), Err(Failure::UnknownFunction));
    let Value::Function(function) = guest.value("() => 1") else { panic!("a function is one") };
    let stream = Value::Stream(Stream { handle: function.handle, owner: StreamOwner::Guest });
    assert_eq!(guest.next(&stream), Err(Failure::UnknownFunction));
    let nothing = Value::Stream(Stream { handle: 98_765, owner: StreamOwner::Guest });
    assert_eq!(guest.next(&nothing), Err(Failure::UnknownFunction));
}

#[test]
fn streams_count_among_the_functions_that_are_held() {
    let guest = Guest::new();
    let (_, reason) = guest.refused("Array.from({length: 10001}, () => (async function* () {})())");
    assert!(reason.contains("more than the host holds"), "{reason}");
    assert!(matches!(
        guest.value("Array.from({length: 10000}, () => (async function* () {})())"),
        Value::Array(_)
    ));
    guest.refused("(async function* () {})()");
}

#[test]
fn a_stream_of_the_host_is_an_async_iterator() {
    let guest = Guest::new();
    let calls = guest.host_streams();
    let take = guest
        .value("(async (s) => { const out = []; for await (const x of s) out.push(x); return out.join() })");
    guest.invoke(1, &take, &[stream_of_host(5)]);
    let item = |value| Value::Array(vec![value]);
    for (index, value) in ["a", "b"].into_iter().enumerate() {
        assert_eq!(calls.noted.borrow()[index].arguments, [number(5.0), number(0.0)]);
        guest.settle(calls.id(index), item(string(value)));
    }
    guest.settle(calls.id(2), Value::Array(vec![]));
    assert_eq!(guest.ended(), (1, Ok(string("a,b"))));
    assert_eq!(calls.len(), 3, "a stream that has ended is not asked again");
}

#[test]
fn leaving_early_throwing_and_failing_end_a_stream_of_the_host() {
    let guest = Guest::new();
    let calls = guest.host_streams();
    let run = |request, body: &str| {
        guest.invoke(request, &guest.value(body), &[stream_of_host(request)]);
    };
    let asked = |index: usize| calls.noted.borrow()[index].arguments.clone();
    run(1, "async (s) => { for await (const x of s) return x }");
    guest.settle(calls.id(0), Value::Array(vec![number(1.0)]));
    assert_eq!(asked(1), [number(1.0), number(1.0)]);
    guest.settle(calls.id(1), Value::Array(vec![]));
    assert_eq!(guest.ended(), (1, Ok(number(1.0))));

    run(
        2,
        "async (s) => { try { await s.throw(new Error('mine')) } catch (e) { return [e.message, (await s.next()).done] } }",
    );
    assert_eq!(asked(2), [number(2.0), number(1.0)]);
    guest.settle(calls.id(2), Value::Array(vec![]));
    assert_eq!(guest.ended(), (2, Ok(Value::Array(vec![string("mine"), Value::Bool(true)]))));

    run(3, "async (s) => { try { for await (const x of s); } catch (e) { return e.message } }");
    guest.reject(calls.id(3), "the host function failed");
    assert_eq!(asked(4), [number(3.0), number(1.0)]);
    guest.settle(calls.id(4), Value::Array(vec![]));
    assert_eq!(guest.ended(), (3, Ok(string("the host function failed"))));
}

#[test]
fn an_iterator_over_a_stream_of_the_host_shows_nothing_of_how_it_is_made() {
    let guest = Guest::new();
    guest.host_streams();
    let look = guest.value(
        "(s) => [Object.keys(s).length, typeof s.next, s.next.name, s.next.hasOwnProperty('prototype'),
                 /native code/.test(Function.prototype.toString.call(s.next)), s[Symbol.asyncIterator]() === s,
                 Object.getOwnPropertyNames(s).join()]",
    );
    let shown = [
        number(0.0),
        string("function"),
        string("next"),
        Value::Bool(false),
        Value::Bool(true),
        Value::Bool(true),
        string("next,return,throw"),
    ];
    assert_eq!(guest.call(&look, &[stream_of_host(1)]), Ok(Value::Array(shown.to_vec())));
}

#[test]
fn without_a_function_to_ask_them_streams_of_the_host_do_not_cross() {
    let guest = Guest::new();
    let take = guest.value("(s) => 1");
    assert!(js_message(guest.call(&take, &[stream_of_host(1)])).contains("no longer held"));
}
