//! What the guest throws is described whole, and without running its code.

mod guest;

use guest::{Guest, number};
use pydeno_wire::message::{Failure, Frame, JsError};
use pydeno_wire::{Text, Value};

fn frame(function: &str, line: u32, column: u32) -> Frame {
    Frame { function: function.into(), file: "test.js".into(), line, column }
}

#[test]
fn an_error_has_name_message_stack_and_frames() {
    let error = Guest::new().error("function f() {\n  throw new TypeError('wrong')\n}\nf()");
    assert_eq!((error.name, error.message), ("TypeError".into(), "wrong".into()));
    assert_eq!(error.stack, "f@test.js:2:22\nglobal code@test.js:4:2");
    assert_eq!(error.frames, [frame("f", 2, 22), frame("", 4, 2)]);
}

#[test]
fn a_message_of_several_lines_is_kept_whole_and_apart_from_the_stack() {
    let error = Guest::new().error("throw new Error('one\\ntwo\\nthree')");
    assert_eq!(error.message, "one\ntwo\nthree");
    assert!(!error.stack.to_string().contains("two"));
}

#[test]
fn line_and_name_are_those_of_the_script_as_it_was_given() {
    let guest = Guest::new();
    for (source, line) in [
        ("\n\n\n\n\n\nthrow new Error('x')", 7),
        ("\r\n\r\nthrow new Error('x')", 3),
        ("\u{2028}\nthrow new Error('x')", 3),
        ("1;\nthrow new Error('x')\n//# sourceURL=other.js", 2),
    ] {
        let error = guest.error(source);
        assert_eq!(error.frames.last().map(|frame| frame.line), Some(line), "{source:?}");
    }
    let named =
        guest.0.eval(&Text::from("throw new Error()"), "a b:c@d.js", &pydeno_engine::EvalLimits::default());
    let Err(Failure::Js(error)) = named else { panic!("it throws") };
    assert_eq!(error.frames[0].file, "a b:c@d.js");
}

#[test]
fn a_second_script_has_its_own_positions() {
    let guest = Guest::new();
    guest.value("function later() {\n\n  null.x\n}; 0");
    let error = guest.error("\nlater()");
    assert_eq!(error.frames.iter().map(|frame| frame.line).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn a_syntax_error_says_where() {
    let guest = Guest::new();
    for (source, line) in [("+", 1), ("\n\nfoo(", 3), ("1;\nlet x = ;", 2)] {
        let error = guest.error(source);
        assert_eq!(error.name, "SyntaxError", "{source:?}");
        assert_eq!(
            (error.frames[0].file.clone(), error.frames[0].line),
            ("test.js".into(), line),
            "{source:?}"
        );
        assert!(guest.still_answers());
    }
}

#[test]
fn native_frames_and_nested_evaluation_are_told() {
    let error = Guest::new().error("[2, 1].sort(function compare() { throw new Error('x') })");
    let functions: Vec<String> = error.frames.iter().map(|frame| frame.function.to_string()).collect();
    assert_eq!(functions, ["compare", "sort", ""]);
    assert_eq!((error.frames[1].file.clone(), error.frames[1].line), (Text::default(), 0));
    assert_eq!(Guest::new().error("eval('throw new Error(1)')").message, "1");
}

#[test]
fn what_is_thrown_need_not_be_an_error() {
    let guest = Guest::new();
    for (source, message) in [
        ("throw undefined", "undefined"),
        ("throw null", "null"),
        ("throw 1", "1"),
        ("throw -0", "-0"),
        ("throw 10n", "10n"),
        ("throw 'text\\nof two lines'", "text\nof two lines"),
        ("throw Symbol('s')", "Symbol(s)"),
        ("throw { code: 7, nested: { list: [1] } }", "{ \"code\": 7, \"nested\": { \"list\": [1] } }"),
        ("throw [1, 'x']", "[1, \"x\"]"),
        ("throw () => 1", "[Function]"),
        ("throw { toString() { throw 1 } }", "{ \"toString\": [Function: toString] }"),
        ("throw new Proxy(new Error('x'), {})", "[Proxy]"),
        ("throw Object.create(new Proxy({}, {}))", "{}"),
        ("throw { name: 'Error', message: 'forged' }", "{ \"name\": \"Error\", \"message\": \"forged\" }"),
    ] {
        let expected = JsError { message: message.into(), ..JsError::default() };
        assert_eq!(guest.error(source), expected, "{source}");
        assert!(guest.still_answers(), "{source}");
    }
}

#[test]
fn a_name_that_is_no_string_is_told_as_best_as_can_be() {
    let guest = Guest::new();
    guest.value("globalThis.calls = 0; 0");
    for (change, name, message) in [
        ("error.name = Symbol('n')", "Error", "m"),
        ("error.name = 5", "Error", "m"),
        ("Object.defineProperty(error, 'name', { get() { calls++; throw 1 } })", "Error", "m"),
        ("error.name = new Proxy({}, { get() { calls++ } })", "Error", "m"),
        ("error.name = { toString() { for (;;) calls++ } }", "Error", "m"),
        ("Object.defineProperty(error, 'message', { get() { calls++; throw 1 } })", "Error", ""),
        ("error.message = Symbol('m')", "Error", "Symbol(m)"),
        ("error.message = { a: 1 }", "Error", "{ \"a\": 1 }"),
        ("error.message = error", "Error", ""),
        ("Object.setPrototypeOf(error, new Proxy(Error.prototype, { get() { calls++ } }))", "", ""),
        ("error.stack = 7", "Error", "m"),
        ("Object.defineProperty(error, 'stack', { get() { calls++ } })", "Error", "m"),
        ("error.line = { valueOf() { calls++ } }", "Error", "m"),
        ("Object.freeze(error)", "Error", "m"),
        ("Error.prepareStackTrace = () => { calls++ }", "Error", "m"),
        ("error.name = 'Own'", "Own", "m"),
    ] {
        let source = format!("(() => {{ const error = new Error('m'); {change}; throw error }})()");
        let told = guest.error(&source);
        assert_eq!(told.name, name, "{change}");
        if !message.is_empty() {
            assert_eq!(told.message, message, "{change}");
        }
        let rejected = guest.error(&source.replace("(() =>", "(async () =>"));
        assert_eq!(rejected.name, name, "{change}");
        assert!(guest.still_answers(), "{change}");
    }
    assert_eq!(guest.value("calls"), number(0.0));
}

#[test]
fn aggregates_subclasses_and_causes_are_errors() {
    let guest = Guest::new();
    let error = guest.error("const all = new AggregateError([], 'all'); all.errors.push(all); throw all");
    assert_eq!((error.name, error.message), ("AggregateError".into(), "all".into()));
    let error =
        guest.error("class Own extends RangeError { name = 'Own' }; throw new Own('x', { cause: 1 })");
    assert_eq!((error.name, error.message), ("Own".into(), "x".into()));
}

#[test]
fn awkward_strings_are_kept_in_messages() {
    let guest = Guest::new();
    for (literal, units) in [
        ("a\\0b", vec![0x61, 0, 0x62]),
        ("a\\ud800", vec![0x61, 0xd800]),
        ("\\u{1f600}", vec![0xd83d, 0xde00]),
        ("\\x1b[31mred", "\u{1b}[31mred".encode_utf16().collect()),
    ] {
        assert_eq!(guest.error(&format!("throw new Error('{literal}')")).message, Text::from_utf16(&units));
        assert_eq!(guest.error(&format!("throw '{literal}'")).message, Text::from_utf16(&units));
    }
}

#[test]
fn a_source_with_a_lone_surrogate_or_a_nul_is_a_source_like_any_other() {
    let guest = Guest::new();
    let mut source: Vec<u16> = "'a".encode_utf16().collect();
    source.extend([0xd800, 0, 0x27]);
    let value = guest.0.eval(&Text::from_utf16(&source), "test.js", &pydeno_engine::EvalLimits::default());
    assert_eq!(value, Ok(Value::String(Text::from_utf16(&[0x61, 0xd800, 0]))));
    assert_eq!(guest.error("\u{fffd}").name, "SyntaxError");
}

#[test]
fn no_frame_speaks_of_the_prelude() {
    let guest = Guest::new();
    guest.bind("take", Box::new(|_| Ok(Value::Undefined)));
    let source = "(() => { try { take({ f: Symbol() }) } catch (error) { return error.stack } })()";
    let Value::String(stack) = guest.value(source) else { panic!("a stack is a text") };
    let stack = stack.to_string();
    let functions: Vec<&str> = stack.lines().filter_map(|line| line.split('@').next()).collect();
    assert_eq!(functions, ["take", "", "global code"], "{stack}");
}
