//! An evaluation ends at its limits, says why, and leaves the isolate usable.

mod guest;

use std::cell::Cell;
use std::time::{Duration, Instant};

use guest::{Guest, number};
use pydeno_engine::EvalLimits;
use pydeno_wire::message::Failure;
use pydeno_wire::{Text, Value};

const SHORT: Duration = Duration::from_millis(150);

#[test]
fn endless_code_of_every_kind_ends_at_the_timeout() {
    let guest = Guest::new();
    for source in [
        "while (true) {}",
        "for (;;) { try { for (;;); } catch {} finally { continue } }",
        "(function forever() { for (;;) [1].map(() => 1) })()",
        "new Array(2 ** 32 - 1).fill(0)",
        "(() => { const a = []; a[2 ** 32 - 2] = 1; a.sort(); return 0 })()",
        "(() => { const a = []; a.length = 2 ** 32 - 1; return a.indexOf(1) })()",
        "Promise.resolve().then(() => { for (;;); }); 1",
        "(async () => { await 1; for (;;); })()",
        "(async () => { try { await 1; for (;;); } finally { for (;;); } })()",
        "JSON.parse('[1]', () => { for (;;); })",
        "[2, 1].sort(() => { for (;;); })",
        "(function* () { for (;;) yield 1 })().forEach(() => 1)",
        "new Proxy({}, { get() { for (;;); } }).x",
        "eval('for (;;);')",
    ] {
        assert_eq!(guest.within(SHORT, source), Err(Failure::Timeout), "{source}");
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn a_timeout_does_not_leak_into_the_evaluations_that_follow() {
    let guest = Guest::new();
    for _ in 0..3 {
        assert_eq!(guest.within(Duration::from_millis(60), "for (;;);"), Err(Failure::Timeout));
        for _ in 0..1000 {
            assert_eq!(guest.eval("1 + 1"), Ok(number(2.0)));
        }
        // Longer than the engine's timer that may still be on its way.
        let busy = "(() => { const end = Date.now() + 80; while (Date.now() < end); return 7 })()";
        assert_eq!(guest.eval(busy), Ok(number(7.0)));
    }
}

#[test]
fn state_survives_a_timeout() {
    let guest = Guest::new();
    guest.value("let kept = 1; const list = [1]; function f() { return kept + list.length } 0");
    assert_eq!(guest.within(SHORT, "kept = 2; for (;;);"), Err(Failure::Timeout));
    assert_eq!(guest.value("f()"), number(3.0));
}

#[test]
fn a_timeout_that_is_not_reached_changes_nothing() {
    let guest = Guest::new();
    let busy = "(() => { const end = Date.now() + 200; while (Date.now() < end); return 7 })()";
    assert_eq!(guest.within(Duration::from_secs(600), busy), Ok(number(7.0)));
    assert_eq!(guest.within(Duration::MAX, "1"), Ok(number(1.0)));
}

#[test]
fn time_in_host_functions_is_not_the_guests() {
    let guest = Guest::new();
    guest.bind(
        "sleep",
        Box::new(|_| {
            std::thread::sleep(Duration::from_millis(400));
            Ok(Value::Undefined)
        }),
    );
    let source = "sleep(); (() => { let n = 0; for (let i = 0; i < 1e5; i++) n += i; return 'done' })()";
    assert_eq!(guest.within(Duration::from_millis(350), source), Ok(guest::string("done")));
    assert_eq!(guest.within(SHORT, "sleep(); for (;;);"), Err(Failure::Timeout), "a control");
    assert!(guest.still_answers());
}

#[test]
fn a_chain_of_promise_reactions_that_calls_the_host_ends_at_the_timeout() {
    let guest = Guest::new();
    guest.bind("tick", Box::new(|_| Ok(Value::Undefined)));
    let source = "(function again() { tick(); Promise.resolve().then(again) })(); 1";
    assert_eq!(guest.within(SHORT, source), Err(Failure::Timeout));
    assert!(guest.still_answers());
}

#[test]
fn a_cancel_question_that_says_yes_ends_the_evaluation() {
    let guest = Guest::new();
    let asked = Cell::new(0);
    let cancelled = || {
        asked.set(asked.get() + 1);
        asked.get() > 2
    };
    let limits = EvalLimits { cancelled: &cancelled, ..EvalLimits::default() };
    assert_eq!(guest.0.eval(&Text::from("for (;;);"), "test.js", &limits), Err(Failure::Cancelled));
    assert!(asked.get() > 2);
    assert!(guest.still_answers());
}

#[test]
fn a_guest_that_uses_too_much_heap_is_told_apart_from_one_that_takes_too_long() {
    let guest = Guest::new();
    for source in [
        "(() => { const all = []; for (let i = 0; ; i++) all.push({ i, text: 'x' + i }) })()",
        "(() => { const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)) })()",
        "(() => { const all = new Map(); for (let i = 0; ; i++) all.set(i, [i]) })()",
    ] {
        let limits = EvalLimits { max_heap_bytes: 64 << 20, ..EvalLimits::default() };
        assert_eq!(
            guest.0.eval(&Text::from(source), "test.js", &limits),
            Err(Failure::HeapLimit),
            "{source}"
        );
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn buffers_that_nobody_writes_to_may_be_refused_by_the_engine_first() {
    let guest = Guest::new();
    // They take address space and no memory, so a look at the heap may come too late to be the first to notice.
    let source = "(() => { const all = []; for (;;) all.push(new Uint8Array(1 << 20)) })()";
    let limits = EvalLimits { max_heap_bytes: 64 << 20, ..EvalLimits::default() };
    let outcome = guest.0.eval(&Text::from(source), "test.js", &limits);
    assert!(
        matches!(&outcome, Err(Failure::HeapLimit))
            || matches!(&outcome, Err(Failure::Js(error)) if error.name == "RangeError")
    );
    assert!(guest.still_answers());
}

#[test]
fn garbage_does_not_count_as_heap() {
    let guest = Guest::new();
    let source = "(() => { const end = Date.now() + 700; let n = 0; \
                  while (Date.now() < end) n += [1, 2, { a: 'x' + n }].length; return n > 0 })()";
    let limits = EvalLimits { max_heap_bytes: 64 << 20, ..EvalLimits::default() };
    assert_eq!(guest.0.eval(&Text::from(source), "test.js", &limits), Ok(Value::Bool(true)));
}

#[test]
fn after_a_heap_limit_the_memory_can_be_had_again() {
    let guest = Guest::new();
    let source = "(() => { const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)) })()";
    for _ in 0..5 {
        let limits = EvalLimits { max_heap_bytes: 64 << 20, ..EvalLimits::default() };
        assert_eq!(guest.0.eval(&Text::from(source), "test.js", &limits), Err(Failure::HeapLimit));
    }
    assert!(guest.still_answers());
}

#[test]
fn what_the_engine_refuses_itself_is_an_error_of_the_guest() {
    let guest = Guest::new();
    for source in [
        "(function f() { return f() + 1 })()",
        "new Array(-1)",
        "new ArrayBuffer(2 ** 40)",
        "'x'.repeat(2 ** 31)",
        "let text = 'xx'; for (;;) text += text",
        "'x'.padEnd(2 ** 31)",
    ] {
        assert_eq!(guest.error(source).name, "RangeError", "{source}");
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn recursion_without_end_through_the_host_and_into_conversions_is_an_error_of_the_guest() {
    let guest = Guest::new();
    guest.bind("same", Box::new(|mut arguments| Ok(arguments.remove(0))));
    for source in [
        "(function f(value) { return f(same({ a: [value] }).a[0]) })(1)",
        "(function f() { same([[[[[[[[[[1]]]]]]]]]]); f() })()",
        "(function f() { try { f() } catch (error) { same({ deep: [[[[[[1]]]]]] }); throw error } })()",
        "(function f() { try { f() } catch { f() } })()",
    ] {
        match guest.within(Duration::from_millis(1500), source) {
            Err(Failure::Js(error)) => {
                assert_eq!(error.name, "RangeError", "{source}");
                assert!(!error.stack.to_string().contains("properties@"), "{source}: {}", error.stack);
            }
            Err(Failure::Timeout) => {}
            other => panic!("{source}: {other:?}"),
        }
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn a_regular_expression_that_backtracks_for_long_ends() {
    let guest = Guest::new();
    let outcome = guest.within(Duration::from_secs(60), "/^(a+)+$/.test('a'.repeat(30) + 'b')");
    assert!(
        matches!(outcome, Ok(Value::Bool(false)) | Err(Failure::Timeout | Failure::Js(_))),
        "{outcome:?}"
    );
    assert!(guest.still_answers());
}

#[test]
fn the_timeout_is_kept_within_reason() {
    let guest = Guest::new();
    let began = Instant::now();
    assert_eq!(guest.within(SHORT, "for (;;);"), Err(Failure::Timeout));
    assert!(began.elapsed() >= SHORT);
}

#[test]
fn what_a_guest_has_thrown_survives_a_look_at_its_heap() {
    // The engine asks after 25 ms of processor time, and may do so while the frames of a deep stack are left.
    for busy in (18..25).cycle().take(49) {
        let guest = Guest::new();
        let source = format!(
            "(() => {{ const end = Date.now() + {busy}; while (Date.now() < end); \
             const endless = {{ toString() {{ return '' + this }} }}; return '' + endless }})()"
        );
        assert_eq!(guest.error(&source).name, "RangeError");
    }
}
