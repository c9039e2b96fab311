//! TypeScript, decorators and `using`, by what the engine makes of the outputs.

mod guest;

use guest::{Guest, TYPESCRIPT, array, javascript, number, object, string};
use pydeno_transform::{
    Completion, Decorators, ErrorKind, Language, ModuleOptions, Position, ScriptOptions, module, script,
};
use pydeno_wire::Value;

const LEGACY: ScriptOptions<'_> = ScriptOptions { decorators: Decorators::Legacy, ..TYPESCRIPT };

fn text(source: &str) -> String {
    script(source, &TYPESCRIPT)
        .unwrap_or_else(|error| panic!("{source}\nis refused: {error}"))
        .text
        .into_owned()
}

#[test]
fn types_leave_nothing() {
    let cases = [
        ("let x: number = 1 as any as number", "let x = 1;\n"),
        ("interface A { a: string }\ntype B = A | null", ""),
        (
            "function f<T extends object>(this: Window, a?: T, ...b: T[]): a is T { return a! }",
            "function f(a, ...b) {\n\treturn a;\n}\n",
        ),
        (
            "abstract class A<T> extends B<T> implements C { declare x: T; private y?: T; abstract z(): void }",
            "class A extends B {\n\ty;\n}\n",
        ),
        ("const a = <T,>(b: T) => b satisfies T", "const a = (b) => b;\n"),
        ("declare const a: number; declare function f(): void; declare namespace N { const b: 1 }", ""),
    ];
    for (source, output) in cases {
        assert_eq!(text(source), output, "{source}");
    }
}

#[test]
fn what_is_code_of_typescript_becomes_code() {
    let cases = [
        (
            "enum E { A = 1, B, C = B * 2, D = 'd' } [E.A, E[2], E.C, E.D]",
            array([number(1.), string("B"), number(4.), string("d")]),
        ),
        ("const enum E { A = 3 } E.A", number(3.0)),
        (
            "namespace N { export const a = 1; export namespace M { export function f() { return a + 1 } } } N.M.f()",
            number(2.0),
        ),
        (
            "class A { constructor(private x: number, readonly y = 2) {} sum() { return this.x + this.y } } new A(1).sum()",
            number(3.0),
        ),
        ("class A { x: number; y = 1 } Object.keys(new A()).join()", string("x,y")),
        ("let x = await Promise.resolve<number>(4)\nx!", number(4.0)),
        (
            "function f(a: string): void\nfunction f(a: any) { return a }\nf('over' as never) as string",
            string("over"),
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(Guest::new().value(source, &TYPESCRIPT), expected, "{source}\n{}", text(source));
    }
}

#[test]
fn names_of_typescript_can_be_declared_again_too() {
    let options = ScriptOptions { redeclare: true, ..TYPESCRIPT };
    let mut guest = Guest::new();
    for _ in 0..2 {
        let source = "enum E { A = 1 } namespace N { export let a = 1 } const c: number = 2; class K {}\nE.A + N.a + c";
        assert_eq!(guest.value(source, &options), number(4.0));
    }
}

#[test]
fn a_newer_syntax_that_the_engine_knows_is_not_lowered() {
    let source =
        "class A {\n\t#x = 1;\n\tstatic {\n\t\tthis.y ??= a?.b ?? 2n ** 3n;\n\t}\n}\nconst r = /(?<a>x)/v;\n";
    assert_eq!(text(source), source);
}

#[test]
fn decorators_are_refused_unless_the_older_ones_are_asked_for() {
    let error = script("class A {\n  @dec m() {}\n}", &TYPESCRIPT).expect_err("they are refused");
    assert_eq!((error.kind, error.position), (ErrorKind::Decorators, Position { line: 2, column: 3 }));
    let source = "
        const log: string[] = []
        const note = (text: string) => (target: any, key?: any, third?: any) => { log.push(text + ':' + String(key) + ':' + typeof third) }
        const double = (target: any, key: string, d: any) => ({ ...d, value() { return 2 * d.value.call(this) } })
        @note('class') class A {
            @note('property') p = 1
            @double m() { return 21 }
            n(@note('parameter') a: number) {}
            @note('static') static s() {}
            constructor(@note('constructor') b?: number) {}
        }
        [new A().m(), ...log]";
    let value = Guest::new().value(source, &LEGACY);
    let notes = [
        "property:p:undefined",
        "parameter:n:number",
        "static:s:object",
        "constructor:undefined:number",
        "class:undefined:undefined",
    ];
    let mut expected = vec![number(42.0)];
    expected.extend(notes.map(string));
    assert_eq!(value, Value::Array(expected));
    let value = Guest::new()
        .value("const replace = (_: any) => class { x = 'other' }; @replace class A {} new A().x", &LEGACY);
    assert_eq!(value, string("other"));
}

#[test]
fn jsx_is_refused_at_its_position() {
    let error = script("let a: number = 1\nlet b = <div>{a}</div>", &TYPESCRIPT).expect_err("it is JSX");
    assert_eq!((error.kind, error.position), (ErrorKind::Jsx, Position { line: 2, column: 9 }));
    assert_eq!(text("let b = <any>a"), "let b = a;\n");
}

#[test]
fn errors_have_the_authors_position() {
    let cases = [
        ("let a: number =\n  ;", ErrorKind::Syntax, (2, 3)),
        ("let a: string\nlet a", ErrorKind::Syntax, (2, 5)),
        ("await f()\nlet '€😀'", ErrorKind::Syntax, (2, 5)),
        ("let a: T\nimport b from 'c'", ErrorKind::ModuleSyntax, (2, 1)),
        ("interface A {}\nreturn 1", ErrorKind::Syntax, (2, 1)),
    ];
    for (source, kind, (line, column)) in cases {
        let error = script(source, &TYPESCRIPT).expect_err(source);
        assert_eq!((error.kind, error.position), (kind, Position { line, column }), "{source}: {error}");
    }
    let options = ModuleOptions { language: Language::TypeScript, ..ModuleOptions::default() };
    let error = module("let x = 1\nexport = x", &options).expect_err("it is CommonJS");
    assert_eq!((error.kind, error.position.line), (ErrorKind::Unsupported, 2), "{error}");
    let error = module("let x = 1\nimport y = require('y'); y", &options).expect_err("it is CommonJS");
    assert_eq!((error.kind, error.position.line), (ErrorKind::Unsupported, 2), "{error}");
}

#[test]
fn modules_lose_what_is_used_as_a_type_only() {
    let sources = [
        (
            "a",
            "import type { T } from 'nowhere'; import { type U, value, V } from 'b'; export type { T }
             export interface I { a: V }; export const sum: number = value + 1; export enum E { A = 5 }
             export default (1 as any satisfies U)",
        ),
        ("b", "export type U = number; export class V {}; export const value: U = 1"),
    ];
    let value = Guest::new().modules_in(Language::TypeScript, &sources).expect("they run");
    let enumeration = object([("5", string("A")), ("A", number(5.0))]);
    assert_eq!(value, object([("E", enumeration), ("default", number(1.0)), ("sum", number(2.0))]));
}

/// An object whose disposal is noted.
const RESOURCE: &str = "
    const log = []
    Symbol.dispose ??= Symbol.for('Symbol.dispose'); Symbol.asyncDispose ??= Symbol.for('Symbol.asyncDispose')
    const open = (name, fail) => ({ name, [Symbol.dispose]() { log.push('-' + name); if (fail) throw new Error(name) } })
    const openLater = (name) => ({ name, async [Symbol.asyncDispose]() { await 0; log.push('~' + name) } });
    ";

fn disposed(source: &str) -> String {
    let source = format!("{RESOURCE}{source}\nlog.join()");
    let Value::String(text) = Guest::new().value(&source, &javascript()) else { panic!("{source}") };
    text.to_string_lossy().into_owned()
}

#[test]
fn using_disposes_in_reverse_order_whatever_happens() {
    assert_eq!(
        disposed("{ using a = open('a'), b = open('b'), n = null; log.push(a.name + b.name) }"),
        "ab,-b,-a"
    );
    assert_eq!(disposed("try { using a = open('a'); throw 1 } catch (e) { log.push(e) }"), "-a,1");
    assert_eq!(disposed("for (using a of [open('x'), open('y')]) log.push(a.name)"), "x,-x,y,-y");
    assert_eq!(disposed("(function () { using a = open('a'); return log.push('r') })()"), "r,-a");
    assert_eq!(disposed("try { using a = {} } catch (e) { log.push(e.name) }"), "TypeError");
    assert_eq!(
        disposed(
            "await (async () => { await using a = openLater('a'); using b = open('b'); log.push(1) })()"
        ),
        "1,-b,~a"
    );
    assert_eq!(
        disposed(
            "await (async () => { await using a = open('a'), b = openLater('b'), c = null })(); log.push(2)"
        ),
        "~b,-a,2"
    );
}

#[test]
fn an_error_of_a_disposal_keeps_the_one_before() {
    let source = "try { using a = open('a', true), b = open('b', true); throw new Error('c') }
        catch (e) { log.push([e.name, e.error.message, e.suppressed.error.message, e.suppressed.suppressed.message].join(' ')) }";
    assert_eq!(disposed(source), "-b,-a,SuppressedError a b c");
}

#[test]
fn using_at_the_top_level_of_a_module_disposes_at_its_end() {
    let value = Guest::new().modules(&[
        ("a", "import {log} from 'b'; export const seen = log.join()"),
        (
            "b",
            "export const log = []; const symbol = Symbol.dispose ?? Symbol.for('Symbol.dispose')
             using x = { [symbol]() { log.push('-x') } }; export function f() {}; log.push('end')",
        ),
    ]);
    assert_eq!(value, Ok(object([("seen", string("end,-x"))])));
}

#[test]
fn a_script_in_typescript_without_await_has_its_value_at_once() {
    let script = script("let x: number = 1; x", &TYPESCRIPT).expect("it parses");
    assert_eq!((script.completion, script.text.as_ref()), (Completion::Value, "let x = 1;\nx;\n"));
}
