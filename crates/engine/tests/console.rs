//! What the guest writes to its console reaches the hook as readable text, and never fails the script.

mod guest;

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use guest::{Guest, string};
use pydeno_engine::HookTime;
use pydeno_wire::message::{ConsoleLevel, Failure};
use pydeno_wire::{Text, Value};

type Lines = Rc<RefCell<Vec<(ConsoleLevel, Text)>>>;

fn with_console() -> (Guest, Lines) {
    let guest = Guest::new();
    let lines = Lines::default();
    let write = Rc::clone(&lines);
    guest.0.set_console(Box::new(move |level, text| write.borrow_mut().push((level, text))), HookTime::Guest);
    (guest, lines)
}

fn logged(source: &str) -> Text {
    let (guest, lines) = with_console();
    assert_eq!(guest.value(&format!("console.log({source}); 'done'")), string("done"), "{source}");
    let mut lines = lines.borrow_mut();
    assert_eq!(lines.len(), 1, "{source}");
    lines.remove(0).1
}

#[test]
fn there_is_no_console_unless_the_host_gives_one() {
    assert_eq!(Guest::new().value("typeof console"), string("undefined"));
    assert_eq!(
        with_console().0.value("Object.getOwnPropertyNames(console).join()"),
        string("debug,log,info,warn,error")
    );
}

#[test]
fn every_method_has_its_level() {
    let (guest, lines) = with_console();
    guest.value(
        "console.debug(1); console.log(2); console.info(3); console.warn(4); console.error(5); console.log()",
    );
    let expected = [
        (ConsoleLevel::Debug, "1"),
        (ConsoleLevel::Log, "2"),
        (ConsoleLevel::Info, "3"),
        (ConsoleLevel::Warn, "4"),
        (ConsoleLevel::Error, "5"),
        (ConsoleLevel::Log, ""),
    ];
    assert_eq!(lines.borrow().as_slice(), expected.map(|(level, text)| (level, text.into())));
}

#[test]
fn values_are_shown_for_a_person_to_read() {
    for (source, shown) in [
        (
            "'plain text', 1, -0, 10n, null, undefined, true, NaN",
            "plain text 1 -0 10n null undefined true NaN",
        ),
        ("{ a: 1, 'b c': 'x\"y' }", r#"{ "a": 1, "b c": "x\"y" }"#),
        ("{}, [], [[]]", "{} [] [[]]"),
        ("[1, , 'two']", r#"[1, undefined, "two"]"#),
        (
            "new Map([['k', { v: 1 }]]), new Set([1, 'x']), new Map(), new Set()",
            r#"Map(1) { "k" => { "v": 1 } } Set(2) { 1, "x" } Map(0) {} Set(0) {}"#,
        ),
        ("new Date(0), new Date(NaN)", "1970-01-01T00:00:00.000Z [Invalid Date]"),
        ("Symbol('s'), [Symbol()]", "Symbol(s) [Symbol()]"),
        ("function named() {}, () => 1, class A {}", "[Function: named] [Function] [Function: A]"),
        (
            "new Uint8Array(3), new ArrayBuffer(2), new DataView(new ArrayBuffer(4))",
            "[3 bytes] [2 bytes] [4 bytes]",
        ),
        ("Promise.resolve(1), new Proxy({}, {}), new Proxy(() => 1, {})", "[Promise] [Proxy] [Proxy]"),
        ("new TypeError('wrong'), [new Error('in')]", "TypeError: wrong [[Error: in]]"),
        ("{ get a() { throw 1 }, set b(v) {} }", r#"{ "a": [Getter], "b": [Getter] }"#),
        ("{ a: { b: { c: { d: { e: 1 } } } } }", r#"{ "a": { "b": { "c": { "d": {…} } } } }"#),
        ("Object.create(null), Object.create(Map.prototype)", "{} {}"),
    ] {
        assert_eq!(logged(source), shown, "{source}");
    }
}

#[test]
fn cycles_and_hostile_objects_are_shown_too() {
    for (source, shown) in [
        ("(() => { const a = {}; a.self = a; return a })()", r#"{ "self": [Circular] }"#),
        ("(() => { const m = new Map(); m.set(m, m); return m })()", "Map(1) { [Circular] => [Circular] }"),
        (
            "(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy })()",
            "[Proxy]",
        ),
        ("Object.create(new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } }))", "{}"),
        (
            "{ toString() { throw 1 }, toJSON() { throw 1 }, [Symbol.toPrimitive]() { throw 1 } }",
            r#"{ "toString": [Function: toString], "toJSON": [Function: toJSON] }"#,
        ),
        ("Object.defineProperty(() => 1, 'name', { get() { throw 1 } })", "[Function]"),
        ("Object.defineProperty([1], 0, { get() { throw 1 } })", "[[Getter]]"),
    ] {
        assert_eq!(logged(source), shown, "{source}");
    }
}

#[test]
fn what_is_large_is_cut() {
    for source in [
        "new Array(2 ** 32 - 1)",
        "Array.from({ length: 1e5 }, (_, i) => ({ i, list: [i, i, i] }))",
        "Object.fromEntries(Array.from({ length: 1e4 }, (_, i) => [i, i]))",
        "new Set(Array.from({ length: 1e5 }, (_, i) => [i]))",
        "['x'.repeat(1e6)]",
        "new Error('x'.repeat(1e6))",
    ] {
        let text = logged(source);
        assert!(text.len_bytes() < 25_000, "{source}: {} bytes", text.len_bytes());
        assert!(text.to_string().contains('…'), "{source}");
    }
    assert_eq!(logged("'x'.repeat(1e6)").len_bytes(), 1_000_000, "a string itself is the host's to cut");
}

#[test]
fn awkward_strings_arrive_whole() {
    for (literal, units) in [
        ("'a\\0b'", vec![0x61, 0, 0x62]),
        ("'a\\ud800'", vec![0x61, 0xd800]),
        ("'\\u{1f600}'", vec![0xd83d, 0xde00]),
        ("'\\ud83d', '\\ude00'", vec![0xd83d, 0x20, 0xde00]),
    ] {
        assert_eq!(logged(literal), Text::from_utf16(&units), "{literal}");
    }
}

#[test]
fn logging_where_the_stack_is_nearly_full_ends_as_recursion_does() {
    let (guest, _) = with_console();
    let error = guest.error("(function f() { console.log({ a: [{ b: 1 }] }); f() })()");
    assert_eq!(error.name, "RangeError");
    assert!(guest.still_answers());
}

#[test]
fn a_second_hook_takes_over() {
    let (guest, first) = with_console();
    guest.value("console.log('one'); 0");
    let second = Lines::default();
    let write = Rc::clone(&second);
    guest.0.set_console(Box::new(move |level, text| write.borrow_mut().push((level, text))), HookTime::Guest);
    assert_eq!(guest.value("console.log('two')"), Value::Undefined);
    assert_eq!((first.borrow().len(), second.borrow().len()), (1, 1));
}

#[test]
fn what_a_hook_takes_is_the_guests_time_or_the_hosts() {
    let run = |time| {
        let guest = Guest::new();
        guest.0.set_console(Box::new(|_, _| thread::sleep(Duration::from_millis(2))), time);
        let began = Instant::now();
        let ended =
            guest.within(Duration::from_millis(100), "for (let i = 0; i < 500; i++) console.log(i); 'done'");
        (ended, began.elapsed())
    };
    assert_eq!(run(HookTime::Host).0, Ok(string("done")));
    let (ended, took) = run(HookTime::Guest);
    assert_eq!(ended, Err(Failure::Timeout), "though it used little of the processor");
    assert!(took < Duration::from_millis(1000), "it ran to its end all the same: {took:?}");
}
