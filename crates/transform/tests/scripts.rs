//! Scripts that are left alone, scripts with top-level `await`, and names that can be declared again.

mod guest;

use std::borrow::Cow;

use guest::{Guest, REPL, javascript, number, object, refused, string, transformed};
use pydeno_transform::{Completion, ErrorKind, Position, ScriptOptions, needs_transform, script};
use pydeno_wire::Value;
use pydeno_wire::message::Failure;

fn text(source: &str) -> String {
    transformed(source).text.into_owned()
}

fn at(line: u32, column: u32) -> Position {
    Position { line, column }
}

#[test]
fn a_script_in_which_nothing_has_to_change_is_not_copied() {
    for source in [
        "1 + 1",
        "const x = 1",
        "async function f() { await 1 }",
        "// await\n1",
        "'await'",
        "x.await",
        "var await = 1; await + 1",
        "import('x')",
        "let using = 1; using",
        "this does not parse",
        "for (var i = 0 in {}) ;",
    ] {
        let script = transformed(source);
        assert!(matches!(script.text, Cow::Borrowed(text) if text == source), "{source}");
        assert_eq!(script.completion, Completion::Value, "{source}");
        assert!(script.map.is_identity(), "{source}");
    }
}

#[test]
fn the_words_decide_whether_a_script_is_looked_at() {
    assert!(!needs_transform("const x = f(1)", &javascript()));
    assert!(needs_transform("const x = f(1)", &REPL));
    assert!(!needs_transform("x = f(1)", &REPL));
    for source in ["await f()", "import('x')", "export {}", "{ using x = f() }"] {
        assert!(needs_transform(source, &javascript()), "{source}");
    }
}

#[test]
fn top_level_await_keeps_lines_and_text() {
    assert_eq!(
        text("const x = await f()\nlet y\nfunction g() { return x }\ng(y) + 1 // done"),
        "let x,y;(async()=>{let $v; x = await f();\n y=void 0;\n;\n$v=(g(y) + 1); // done\n\
         ;return{__proto__:null,value:$v}})();function g() { return x }\n"
    );
}

#[test]
fn every_kind_of_declaration_becomes_an_assignment() {
    let cases = [
        ("await 0; var a = 1, b", "var a,b;", " a = 1, 0;"),
        ("await 0; var {a, b: [c]} = d", "var a,c;", ";( {a, b: [c]} = d);"),
        ("await 0; let [a] = b, {c} = d", "let a,c;", "; [a] = b, ({c} = d);"),
        ("await 0; if (1) var [a] = b; else var {c} = d", "var a,c;", "if (1)  [a] = b; else ( {c} = d);"),
        ("await 0; for (var i = 0, j; ;) ;", "var i,j;", "for ( i = 0, 0; ;) ;"),
        ("await 0; for (var {k} of o) ;", "var k;", "for ( {k} of o) ;"),
        ("await 0; for (var async of o) ;", "var async;", "for ( (async) of o) ;"),
        ("await 0; for (let i of o) { let j }", "", "for (let i of o) { let j }"),
        ("await 0; class A extends B {}", "let A;", "A=class A extends B {};"),
    ];
    for (source, before, after) in cases {
        let text = text(source);
        assert!(text.starts_with(&format!("{before}(async()=>{{")), "{source}\n{text}");
        assert!(text.contains(after), "{source}\n{text}");
    }
}

#[test]
fn the_value_of_a_script_with_await_is_that_of_its_last_statement() {
    let cases = [
        ("await 1", "1"),
        ("await 1; 2", "2"),
        ("await 1; var x = 5", "1"),
        ("await 1; let y = 5; {}", "1"),
        ("await 1; function f() { 3 }", "1"),
        ("await 1; { 2; { 3 } }", "3"),
        ("await 1; if (true) 2; else 3", "2"),
        ("await 1; if (false) 2", "undefined"),
        ("await 1; for (const i of [1, 2]) i * 2", "4"),
        ("await 1; for (const i of []) i", "undefined"),
        ("await 1; try { 2 } finally { 3 }", "2"),
        ("await 1; try { throw 2 } catch (e) { e + 1 }", "3"),
        ("await 1; switch (1) { case 1: 7 }", "7"),
        ("await 1; switch (1) { default: }", "undefined"),
        ("await 1; l: { 4; break l }", "4"),
        ("await 1; do { 8; break } while (1)", "8"),
        ("await 1; (2, 3)", "3"),
        ("await 1; class A { static { 9 } }", "1"),
        ("await 1; (() => { 9 })", "'function'"),
        ("x = 1\nx++\n;[5][0]\nawait 0\nx", "2"),
    ];
    for (source, expected) in cases {
        let mut guest = Guest::new();
        let typed =
            if expected == "'function'" { format!("{source}; typeof (() => 1)") } else { source.to_owned() };
        let expected = guest.value(expected, &javascript());
        assert_eq!(guest.value(&typed, &javascript()), expected, "{source}");
    }
}

#[test]
fn a_value_that_is_a_promise_or_a_thenable_is_not_awaited() {
    for source in ["await 1; ({ then() { throw 'called' } })", "await 1; new Promise(() => {})"] {
        let script = transformed(source);
        let mut guest = Guest::new();
        let text = format!(
            "var kind; {}.then(({{value}}) => {{ kind = typeof value.then }}); 0",
            script.text.trim_end().trim_end_matches(';')
        );
        assert_eq!(guest.raw(&text), Ok(number(0.0)), "{source}");
        assert_eq!(guest.raw("kind"), Ok(string("function")), "{source}");
    }
}

#[test]
fn what_a_script_with_await_declares_stays() {
    let mut guest = Guest::new();
    let first =
        "var a = await 1; let b = await 2, {c} = {c: await 3}; const d = 4; class E { f() { return d } }
        function g() { return a + b + c + d }
        for (var i = 0; i < 3; i++) await i; b++";
    assert_eq!(guest.value(first, &javascript()), number(2.0));
    let second = "[a, b, c, d, new E().f(), g(), i, 'a' in globalThis, 'b' in globalThis]";
    let mut expected = [1., 3., 3., 4., 4., 11., 3.].map(number).to_vec();
    expected.extend([Value::Bool(true), Value::Bool(false)]);
    assert_eq!(guest.value(second, &javascript()), Value::Array(expected));
    assert_eq!(guest.value("b = 10; g()", &javascript()), number(18.0));
}

#[test]
fn a_function_can_be_called_before_its_text_and_before_the_await() {
    let mut guest = Guest::new();
    assert_eq!(
        guest.value("const x = f(1); await 0; x; function f(n) { return n + 1 }", &javascript()),
        number(2.0)
    );
}

#[test]
fn a_script_that_begins_with_a_function_leaves_nothing_else_behind() {
    assert_eq!(
        text("function f() {}await f()"),
        "(async()=>{let $v;;$v=(await f());\n;return{__proto__:null,value:$v}})();function f() {}\n"
    );
    let mut guest = Guest::new();
    for _ in 0..2 {
        assert_eq!(guest.value("function f() { return 1 }\nawait f()", &javascript()), number(1.0));
    }
}

#[test]
fn a_name_that_was_declared_cannot_be_declared_again_by_a_script_with_await() {
    let mut guest = Guest::new();
    guest.value("let x = 1", &javascript());
    assert_eq!(guest.error("let x = await 2", &javascript()).name.to_string_lossy(), "SyntaxError");
    assert_eq!(guest.value("x", &javascript()), number(1.0));
}

#[test]
fn assignment_to_a_constant_is_a_type_error_in_the_same_script() {
    for assignment in [
        "x = 2",
        "x++",
        "[x] = [2]",
        "({x} = {x: 2})",
        "({y: x} = {y: 2})",
        "for (x of [2]) ;",
        "x ||= 2, x &&= 2",
    ] {
        for (options, start) in [(javascript(), "await 0; "), (REPL, ""), (REPL, "await 0; ")] {
            let mut guest = Guest::new();
            let source = format!("{start}const x = 1;\n{assignment}");
            assert_eq!(guest.error(&source, &options).name.to_string_lossy(), "TypeError", "{source}");
            assert_eq!(guest.value("x", &options), number(1.0), "{source}");
        }
    }
    // Another variable of the same name is not meant.
    let mut guest = Guest::new();
    assert_eq!(guest.value("await 0; const x = 1; { let x = 2; x = 3; x }", &javascript()), number(3.0));
}

#[test]
fn sloppy_and_strict_code_stay_what_they_are() {
    let mut guest = Guest::new();
    assert_eq!(guest.value("await 0; x = 010; this === globalThis && x", &javascript()), number(8.0));
    let strict = "'use strict'\nawait 0; (function () { return this === undefined && f() })()
        function f() { return this === undefined }";
    assert_eq!(guest.value(strict, &javascript()), Value::Bool(true));
    assert_eq!(
        guest.error("'use strict'; await 0; undeclared = 1", &javascript()).name.to_string_lossy(),
        "ReferenceError"
    );
}

#[test]
fn a_rejected_await_is_the_scripts_error() {
    let mut guest = Guest::new();
    let error = guest.error("let y = 1; await Promise.reject(new RangeError('no'))", &javascript());
    assert_eq!(
        (error.name.to_string_lossy().as_ref(), error.message.to_string_lossy().as_ref()),
        ("RangeError", "no")
    );
    assert_eq!(guest.value("y", &javascript()), number(1.0));
}

#[test]
fn lines_that_ended_by_themselves_still_do() {
    let mut guest = Guest::new();
    let sources = [
        "var n = 1\nn++\n;(5)\nn + await 0",
        "let n = 2\nlet m\n(n)\nn + await 0",
        "let n = 2, f = () => {}\nf\n`x`\nn + await 0",
        "class C {}\n(await 0)\n2",
        "let n\nn = 1\n++n\nn + await 0",
        "let n = 1\nif (0) n\nelse n++\n;[n + await 0][0]",
        "let n = 1; do n++\nwhile (n < 2) n + await 0",
    ];
    for source in sources {
        assert_eq!(
            guest.value(source, &REPL),
            number(2.0),
            "{source}\n{}",
            script(source, &REPL).expect("it is").text
        );
        assert_eq!(Guest::new().value(source, &javascript()), number(2.0), "{source}");
    }
}

#[test]
fn a_source_cannot_leave_the_function_around_it() {
    for source in ["await 1 }); evil(); (async()=>{", "await 1})(),(()=>{", "await 1\n}\nfunction x() {"] {
        let error = refused(source, &javascript());
        assert_eq!(error.kind, ErrorKind::Syntax, "{source}");
        assert!(error.position.column > 1 || error.position.line > 1, "{source}: {error}");
    }
    // The same text inside a string is no way out.
    assert_eq!(Guest::new().value("await 1; '}); evil(); (async()=>{'.length", &javascript()), number(23.0));
}

#[test]
fn errors_have_the_authors_position() {
    let cases = [
        ("await 1\nlet a = ;", ErrorKind::Syntax, at(2, 9)),
        ("await 1; '€😀'; let let = 1", ErrorKind::Syntax, at(1, 21)),
        ("await 1\nlet a; let a", ErrorKind::Syntax, at(2, 12)),
        ("await 1\n  return 2", ErrorKind::Syntax, at(2, 3)),
        ("await 1\nimport a from 'b'", ErrorKind::ModuleSyntax, at(2, 1)),
        ("1\nexport const a = 1", ErrorKind::ModuleSyntax, at(2, 1)),
        ("await 1\nf(<div/>)", ErrorKind::Jsx, at(2, 3)),
    ];
    for (source, kind, position) in cases {
        let error = refused(source, &javascript());
        assert_eq!((error.kind, error.position), (kind, position), "{source}: {error}");
    }
}

#[test]
fn a_frame_of_the_engine_leads_to_the_authors_line_and_column() {
    let source = "const a = await 1\nfunction thrower() { throw new Error('x') }\n\n  thrower()";
    let script = transformed(source);
    let mut guest = Guest::new();
    let Err(Failure::Js(error)) = guest.raw(&script.text) else { panic!("it threw nothing") };
    let places: Vec<_> = error
        .frames
        .iter()
        .filter(|frame| frame.line > 0)
        .map(|frame| script.map.original(at(frame.line, frame.column)))
        .collect();
    assert_eq!(places, [at(2, 37), at(4, 10)], "{:?}", error.frames);
}

#[test]
fn names_can_be_declared_again_where_that_is_asked_for() {
    let mut guest = Guest::new();
    for (source, expected) in [
        ("const x = 1; let y = 2; class A { v() { return 1 } }\nx + y + new A().v()", 4.0),
        (
            "const x = 10; let y; class A { v() { return 2 } }\nx + Number(y === undefined) + new A().v()",
            13.0,
        ),
        ("let x = await 20; const {y} = {y: 1}; class A {}\nx + y", 21.0),
        ("var x = 3; x", 3.0),
        ("function x() { return 4 } x()", 4.0),
        ("let x = 5; { let x = 6 } x", 5.0),
    ] {
        assert_eq!(guest.value(source, &REPL), number(expected), "{source}");
    }
}

#[test]
fn a_function_of_an_earlier_script_sees_the_new_value() {
    let mut guest = Guest::new();
    guest.value("const x = 1; const f = () => x", &REPL);
    assert_eq!(guest.value("const x = 2; f()", &REPL), number(2.0));
}

#[test]
fn import_calls_the_function_that_is_named() {
    let options = ScriptOptions { import_function: Some("load"), ..javascript() };
    let source = "import('x', {with: {type: 'json'}})";
    assert_eq!(script(source, &options).expect("it parses").text, "load('x', {with: {type: 'json'}})");
    let mut guest = Guest::new();
    guest.value("function load(name, options) { return Promise.resolve({name, options}) }", &options);
    let value = guest.value("const {name} = await import('y'); name", &options);
    assert_eq!(value, string("y"));
}

#[test]
fn a_variable_that_is_added_has_a_name_of_its_own() {
    let mut guest = Guest::new();
    assert_eq!(
        guest.value("let $v = 5; await 0; $v; let \\u0024v1 = 6; $v + $v1", &javascript()),
        number(11.0)
    );
}

#[test]
fn a_value_can_be_an_object() {
    assert_eq!(Guest::new().value("await 0; ({a: 1})", &javascript()), object([("a", number(1.0))]));
}
