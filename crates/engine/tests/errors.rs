//! What the guest throws is described whole, and without running its code.

mod guest;

use guest::{Guest, number, object, string};
use pydeno_wire::codec::bounds;
use pydeno_wire::message::{ErrorDetails, Failure, Frame, JsError};
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
    for (source, line, column) in [
        ("+", 1, 2),
        ("\n\nfoo(", 3, 5),
        ("1;\nlet x = ;", 2, 9),
        ("1;\r\n  a bcd e", 2, 5),
        ("1;\u{2028}  a bcd", 2, 5),
        ("1;\r  a bcd", 2, 5),
        ("let y = 1 23; 4 5", 1, 11),
        ("x = 'abc\n1", 1, 9),
        ("'\u{1f600}' b", 1, 6),
        ("({a: 1,, b: 2})", 1, 8),
        ("a \"b\" c", 1, 3),
        ("if (1) { ] }", 1, 10),
        ("let q;\nlet q;", 2, 5),
        ("1 = 2; 3", 1, 3),
        ("function f() {\n  return )\n}", 2, 10),
        ("a `x\ny` b", 2, 4),
        ("1;\n@\n//# sourceURL=other.js", 2, 1),
    ] {
        let error = guest.error(source);
        assert_eq!(error.name, "SyntaxError", "{source:?}");
        let [frame] = &error.frames[..] else { panic!("one frame says where: {error:?}") };
        assert_eq!(
            (frame.file.clone(), frame.line, frame.column),
            ("test.js".into(), line, column),
            "{source:?}: {}",
            error.message
        );
        assert!(guest.still_answers());
    }
}

#[test]
fn the_column_of_a_syntax_error_far_into_a_large_source_is_not_searched_for() {
    let guest = Guest::new();
    let line = "let x = 0;".repeat(100);
    let near = guest.error(&format!("{{{line}}}{{{line} a b}}").replace("let", "var"));
    assert_eq!((near.frames[0].line, near.frames[0].column), (1, 2007));
    let far = guest.error(&format!("{{{}}} a b", "1;".repeat(1 << 18)));
    assert_eq!((far.frames[0].line, far.frames[0].column), (1, 0));
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
        assert_eq!(JsError { details: None, ..guest.error(source) }, expected, "{source}");
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
fn what_was_thrown_arrives_as_a_value_where_it_crosses() {
    let guest = Guest::new();
    for (source, value) in [
        ("throw undefined", Some(Value::Undefined)),
        ("throw null", Some(Value::Null)),
        ("throw 1", Some(number(1.0))),
        ("throw 'x'", Some(string("x"))),
        (
            "throw { code: 7, list: [1] }",
            Some(object([("code", number(7.0)), ("list", Value::Array(vec![number(1.0)]))])),
        ),
        ("throw Symbol('s')", None),
        ("throw () => 1", None),
        ("throw new Proxy({}, {})", None),
        ("throw new Uint8Array(1 << 20)", None),
        ("throw new Array(1e6).fill(0)", None),
    ] {
        let carried = guest.error(source).details.and_then(|details| details.value);
        assert_eq!(carried, value, "{source}");
    }
    let partly = guest.error("const o = { code: 7, f() {}, get g() { throw 1 } }; o.self = o; throw o");
    assert_eq!(details(&partly).properties, [("code".into(), number(7.0))]);
}

#[test]
fn properties_of_an_error_arrive_without_running_anything() {
    let guest = Guest::new();
    guest.value("globalThis.calls = 0; 0");
    let error = guest.error(
        "class Own extends Error {
           name = 'Own'; code = 'E_OWN'; status = 404; nested = { list: [1, null] }; f = () => 1; [Symbol()] = 1;
           get computed() { calls++ }
         }
         const error = new Own('m');
         Object.defineProperty(error, 'own', { enumerable: true, get() { calls++ } });
         Object.defineProperty(error, 'hidden', { value: 1 });
         error.proxy = new Proxy({}, { ownKeys() { calls++ } });
         error.self = error;
         error.stack = 'x@y:1:1';
         throw error",
    );
    let nested = object([("list", Value::Array(vec![number(1.0), Value::Null]))]);
    let expected = [("code", string("E_OWN")), ("status", number(404.0)), ("nested", nested)]
        .map(|(k, v)| (k.into(), v));
    assert_eq!(details(&error).properties, expected);
    assert_eq!(guest.value("calls"), number(0.0));
    assert_eq!(guest.error("throw new Error('plain')").details, None);
    assert_eq!(guest.error("null.x").details, None, "the engine's own errors carry nothing more");

    let many = guest.error(
        "throw Object.assign(new Error(), Object.fromEntries([...Array(1e4).keys()].map(i => ['k' + i, i])))",
    );
    assert_eq!(details(&many).properties.len(), bounds::ERROR_PROPERTIES);
    let large = guest.error("throw Object.assign(new Error('m'), { big: 'x'.repeat(1e6), small: 1 })");
    assert_eq!(details(&large).properties, [("small".into(), number(1.0))]);
}

#[test]
fn causes_are_followed_and_cycles_are_cut() {
    let guest = Guest::new();
    let error =
        guest.error("throw new Error('outer', { cause: new TypeError('middle', { cause: { code: 1 } }) })");
    let middle = details(&error).cause.as_ref().expect("there is a cause");
    assert_eq!((middle.name.clone(), middle.message.clone()), ("TypeError".into(), "middle".into()));
    assert_eq!(middle.frames.len(), 1);
    let inner = details(middle).cause.as_ref().expect("the cause has one too");
    assert_eq!(details(inner).value, Some(object([("code", number(1.0))])));

    for source in [
        "const a = new Error('a'); a.cause = a; throw a",
        "const b = new Error('b'), c = new Error('c', { cause: b }); b.cause = c; throw b",
        "let deep = new Error(0); for (let i = 1; i < 1e4; i++) deep = new Error(i, { cause: deep }); throw deep",
    ] {
        let error = guest.error(source);
        assert!((1..=bounds::ERROR_DEPTH + 1).contains(&length_of_chain(&error)), "{source}");
    }
    assert_eq!(length_of_chain(&guest.error("const d = new Error(); d.cause = d; throw d")), 1);
    for hostile in [
        "Object.defineProperty(new Error('m'), 'cause', { get() { throw 1 } })",
        "Object.assign(new Error('m'), { cause: new Proxy(new Error(), {}) })",
        "Object.setPrototypeOf(new Error('m'), { cause: 1, __proto__: Error.prototype })",
    ] {
        let error = guest.error(&format!("throw {hostile}"));
        assert_eq!(error.message, "m");
        let cause = error.details.and_then(|details| details.cause);
        assert!(cause.is_none_or(|cause| cause.message == "[Proxy]"), "{hostile}");
    }
}

#[test]
fn the_errors_of_an_aggregate_arrive_and_one_that_holds_itself_is_cut() {
    let guest = Guest::new();
    let error = guest.error("throw new AggregateError([new TypeError('one'), 2, null], 'all')");
    let texts: Vec<_> = details(&error).errors.iter().map(|error| error.message.to_string()).collect();
    assert_eq!(texts, ["one", "2", "null"]);
    assert_eq!(details(&details(&error).errors[1]).value, Some(number(2.0)));

    let error =
        guest.error("const all = new AggregateError([1], 'all'); all.errors.push(all, all); throw all");
    assert_eq!(details(&error).errors.len(), 1);
    let error =
        guest.error("const own = new AggregateError([], 'm'); own.errors = new Proxy([1], {}); throw own");
    assert_eq!(error.details, None);
    let wide =
        "const tree = d => new AggregateError(d ? Array.from({ length: 50 }, () => tree(d - 1)) : [], 'm');";
    let error = guest.error(&format!("{wide} throw tree(2)"));
    assert!(count(&error) <= 1 + bounds::RELATED_ERRORS, "{}", count(&error));
    assert!(guest.still_answers());
}

#[test]
fn errors_of_code_made_from_text_say_where_it_was_made() {
    let guest = Guest::new();
    let error = guest.error("1;\neval('\\n\\nthrow new Error(1)')");
    let made_from_text = |function: &str, line, column| Frame {
        function: function.into(),
        file: "<eval>".into(),
        line,
        column,
    };
    assert_eq!(error.frames.first(), Some(&made_from_text("", 3, 16)));
    assert_eq!(error.frames.last(), Some(&frame("", 2, 5)));
    let error = guest.error("eval('function f() { null.x }; \\n f()')");
    let nowhere = |function: &str| Frame { function: function.into(), ..Frame::default() };
    assert_eq!(error.frames[..2], [nowhere("f"), made_from_text("", 0, 0)]);
    let error = guest.error("class Own extends Error {}; throw new Own()");
    assert_eq!(error.frames, [nowhere("Own"), frame("", 1, 42)]);
    assert_eq!(guest.error("new Function('null.x')()").frames[0], made_from_text("anonymous", 0, 0));
    let error = guest.error("eval('[1].map(parseInt.bind.bind(3))')");
    let functions: Vec<String> = error.frames.iter().map(|frame| frame.function.to_string()).collect();
    assert_eq!(functions, ["bind", "map", "", "eval", ""]);
    assert_eq!(error.frames[2], made_from_text("", 1, 8));
    let error = guest.error("1;\n\neval('1 +')");
    assert_eq!(error.name, "SyntaxError");
    assert_eq!(error.frames.last(), Some(&frame("", 3, 5)));
    let error = guest.error("let once = 1; 0;\nlet once = 2");
    assert_eq!((error.name.clone(), error.frames[0].line), ("SyntaxError".into(), 2));
}

fn details(error: &JsError) -> &ErrorDetails {
    error.details.as_deref().expect("it carries something")
}

fn length_of_chain(error: &JsError) -> usize {
    let cause = error.details.as_ref().and_then(|details| details.cause.as_ref());
    1 + cause.map_or(0, length_of_chain)
}

fn count(error: &JsError) -> usize {
    let errors = error.details.iter().flat_map(|details| details.cause.iter().chain(&details.errors));
    1 + errors.map(count).sum::<usize>()
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
