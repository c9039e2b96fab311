//! Modules, by their outputs and as a loader runs them in the engine.

mod guest;

use guest::{Guest, number, object, string};
use pydeno_transform::{
    ErrorKind, Export, ExportedAs, Import, ImportedName, Module, ModuleOptions, Position, Request,
    TransformError, module,
};
use pydeno_wire::Value;
use pydeno_wire::message::Failure;

fn transformed(source: &str) -> Module {
    module(source, &ModuleOptions::default()).unwrap_or_else(|error| panic!("{source}\nis refused: {error}"))
}

fn refused(source: &str) -> TransformError {
    module(source, &ModuleOptions::default()).err().unwrap_or_else(|| panic!("{source}\nis not refused"))
}

fn at(line: u32, column: u32) -> Position {
    Position { line, column }
}

/// The text between what every module begins and ends with, where it exports nothing.
fn body(source: &str) -> String {
    let text = transformed(source).text;
    let start = "(function*($m,$i){\"use strict\";$m.define({__proto__:null});yield;";
    text.strip_prefix(start).and_then(|text| text.strip_suffix("\n})")).expect(&text).to_owned()
}

fn namespace(sources: &[(&str, &str)]) -> Value {
    Guest::new().modules(sources).unwrap_or_else(|failure| panic!("{sources:?}\nfailed: {failure:?}"))
}

fn thrown(sources: &[(&str, &str)]) -> (String, String) {
    match Guest::new().modules(sources) {
        Err(Failure::Js(error)) => {
            (error.name.to_string_lossy().into_owned(), error.message.to_string_lossy().into_owned())
        }
        other => panic!("{sources:?}\nthrew nothing: {other:?}"),
    }
}

#[test]
fn a_module_is_a_function_of_a_record_and_keeps_its_text() {
    let module = transformed(
        "import a from 'x'\nexport const b = a + 1 // two\nexport default function () { return b }",
    );
    assert_eq!(
        module.text,
        "(function*($m,$i){\"use strict\";$m.define({__proto__:null,b:()=>b,default:()=>$d});\
         const $d={default:function () { return b }}.default;yield;;\nconst b = $i.a + 1 // two\n;\n})"
    );
    assert!(!module.asynchronous);
}

#[test]
fn imports_are_read_at_each_use() {
    let cases = [
        ("a", "$i.a"),
        ("a.b", "$i.a.b"),
        ("x = a(1)", "x = (0,$i.a)(1)"),
        ("a(1)", ";(0,$i.a)(1)"),
        ("if (1) a(1); else a()", "if (1) (0,$i.a)(1); else (0,$i.a)()"),
        ("a?.(1)", ";(0,$i.a)?.(1)"),
        ("(a)(1)", "((0,$i.a))(1)"),
        ("a`x`", ";(0,$i.a)`x`"),
        ("a.b()", "$i.a.b()"),
        ("new a(1)", "new $i.a(1)"),
        ("x = {a, b: a, [a]: 1}", "x = {a:$i.a, b: $i.a, [$i.a]: 1}"),
        ("typeof a", "typeof $i.a"),
        ("class C extends a {}", "class C extends $i.a {}"),
        ("(x) => a(x)", "(x) => (0,$i.a)(x)"),
        ("(a) => a(1)", "(a) => a(1)"),
        ("{ let a; a() }", "{ let a; a() }"),
        ("x.a", "x.a"),
        ("[a] = x", "[$i.a] = x"),
        ("({a} = x)", "({a:$i.a} = x)"),
        ("x = y.map(a)", "x = y.map($i.a)"),
    ];
    for (source, output) in cases {
        assert_eq!(body(&format!("import {{a}} from 'm'; {source}")), format!("; {output}"), "{source}");
    }
}

#[test]
fn meta_and_dynamic_imports_are_the_records() {
    assert_eq!(body("import.meta.url"), "$m.meta.url");
    assert_eq!(body("x = import('y', {with: {}})"), "x = $m.import('y', {with: {}})");
}

#[test]
fn what_begins_a_comment_in_a_script_only_is_taken_apart() {
    assert_eq!(body("x<!--y"), "x< !--y");
    assert_eq!(body("x = /<!--/.test('<!--')"), "x = /<!--/.test('<!--')");
    assert_eq!(body("while (n-->0) ;"), "while (n-->0) ;");
    for source in ["<!-- x", "x\n--> y"] {
        assert_eq!(refused(source).kind, ErrorKind::Syntax, "{source}");
    }
}

#[test]
fn requests_imports_and_exports_are_listed_with_positions() {
    let module = transformed(
        "export * from 'z'\nimport a, {b as c} from \"x\" with {type: 'json', a: '1'}\nimport * as ns from './y.js'
export {c as d, ns, local as 'a b', a as default}; export * as q from 'z'; export {default as w} from 'z'
let local; import {v} from \"x\" with {a: '1', type: 'json'}",
    );
    let request = |specifier: &str, attributes: &[(&str, &str)], position| Request {
        specifier: specifier.to_owned(),
        attributes: attributes.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect(),
        position,
    };
    assert_eq!(
        module.requests,
        [
            request("z", &[], at(1, 15)),
            request("x", &[("a", "1"), ("type", "json")], at(2, 25)),
            request("./y.js", &[], at(3, 21)),
        ]
    );
    let name = |name: &str| ImportedName::Name(name.to_owned());
    let import =
        |local: &str, request, name, position| Import { local: local.to_owned(), request, name, position };
    assert_eq!(
        module.imports,
        [
            import("a", 1, name("default"), at(2, 8)),
            import("c", 1, name("b"), at(2, 12)),
            import("ns", 2, ImportedName::Namespace, at(3, 8)),
            import("v", 1, name("v"), at(5, 20)),
        ]
    );
    let export = |name: Option<&str>, exported_as, position| Export {
        name: name.map(str::to_owned),
        exported_as,
        position,
    };
    let indirect = |request, name| ExportedAs::Indirect { request, name };
    assert_eq!(
        module.exports,
        [
            export(None, ExportedAs::Star { request: 0 }, at(1, 1)),
            export(Some("d"), indirect(1, name("b")), at(4, 9)),
            export(Some("ns"), indirect(2, ImportedName::Namespace), at(4, 17)),
            export(Some("a b"), ExportedAs::Local, at(4, 21)),
            export(Some("default"), indirect(1, name("default")), at(4, 37)),
            export(Some("q"), indirect(0, ImportedName::Namespace), at(4, 64)),
            export(Some("w"), indirect(0, name("default")), at(4, 84)),
        ]
    );
}

#[test]
fn what_no_module_may_be_is_refused_with_its_position() {
    let cases = [
        ("let a\nexport {a}; export {a}", at(2, 21)),
        ("let a\nexport {a, b as a}; let b", at(2, 17)),
        ("export default 1\nexport default 2", at(2, 8)),
        ("let a\nexport {nope}", at(2, 9)),
        ("import {a} from 'x'\nlet a", at(2, 5)),
        ("import {a} from 'x'; import {a} from 'y'", at(1, 30)),
        ("with (x) y", at(1, 1)),
        ("let await", at(1, 5)),
        ("return 1", at(1, 1)),
        ("1\nnew.target", at(2, 1)),
        ("export {'\\ud800' as x} from 'y'", at(1, 9)),
        ("import x from 'y' with {a: '1', a: '2'}", at(1, 33)),
        ("import x from 'y' assert {type: 'json'}", at(1, 26)),
        ("export * from 'y' assert {}", at(1, 26)),
        ("{ import x from 'y' }", at(1, 3)),
        ("{ export let x }", at(1, 3)),
    ];
    for (source, position) in cases {
        let error = refused(source);
        assert_eq!((error.kind, error.position), (ErrorKind::Syntax, position), "{source}: {error}");
    }
    assert_eq!(refused("import source x from 'y'").kind, ErrorKind::Unsupported);
    assert_eq!(refused("let x = <a/>").kind, ErrorKind::Jsx);
}

#[test]
fn an_import_called_proto_is_a_property_like_any_other() {
    let value = namespace(&[
        (
            "a",
            "import {__proto__} from 'b'; const object = {__proto__, x: 1}
             export const names = Object.keys(object).join(); export const value = object.__proto__",
        ),
        ("b", "export const __proto__ = 5"),
    ]);
    assert_eq!(value, object([("names", string("__proto__,x")), ("value", number(5.0))]));
}

#[test]
fn bindings_are_live_and_calls_have_no_this() {
    let value = namespace(&[
        (
            "a",
            "import counter, {count, increment, self} from 'b'
             export const before = count; increment(); export const after = count
             export const receiver = self() === undefined && self`x` === undefined && (self)() === undefined
             export const fallback = counter",
        ),
        (
            "b",
            "export let count = 1; export function increment() { count++ }
             export function self() { return this }; export default 'd'",
        ),
    ]);
    let expected = [
        ("after", number(2.0)),
        ("before", number(1.0)),
        ("fallback", string("d")),
        ("receiver", Value::Bool(true)),
    ];
    assert_eq!(value, object(expected));
}

#[test]
fn functions_of_a_cycle_can_be_called_before_their_module_was_evaluated() {
    let odd = "import {even} from 'even'; export function odd(n) { return n > 0 && even(n - 1) }
        export const early = typeof even === 'function' && even(4)";
    let even = "import {odd} from 'odd'; export function even(n) { return n === 0 || odd(n - 1) }
        export const early = odd(3)";
    assert_eq!(namespace(&[("even", even), ("odd", odd)]).property("early"), Some(&Value::Bool(true)));
    assert_eq!(namespace(&[("odd", odd), ("even", even)]).property("early"), Some(&Value::Bool(true)));
}

trait Property {
    fn property(&self, name: &str) -> Option<&Value>;
}

impl Property for Value {
    fn property(&self, name: &str) -> Option<&Value> {
        let Self::Object(properties) = self else { return None };
        properties.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
    }
}

#[test]
fn a_binding_of_a_cycle_is_in_its_dead_zone_until_it_is_evaluated() {
    for declaration in ["export let x = 1", "export const x = 1", "export class x {}"] {
        let (name, _) =
            thrown(&[("a", &format!("import 'b'; {declaration}")), ("b", "import {x} from 'a'; x")]);
        assert_eq!(name, "ReferenceError", "{declaration}");
    }
    for declaration in ["export default 1", "export default class {}", "export default () => 1"] {
        let (name, _) =
            thrown(&[("a", &format!("import 'b'; {declaration}")), ("b", "import x from 'a'; typeof x")]);
        assert_eq!(name, "ReferenceError", "{declaration}");
    }
    let value = namespace(&[
        ("a", "import {y} from 'b'; export var x = 1; export {y}"),
        ("b", "import {x} from 'a'; export const y = x"),
    ]);
    assert_eq!(value, object([("x", number(1.0)), ("y", Value::Undefined)]));
}

#[test]
fn default_exports_have_the_name_that_the_language_gives_them() {
    for (declaration, name) in [
        ("export default function () {}", "default"),
        ("export default async () => {}", "default"),
        ("export default class {}", "default"),
        ("export default (class {})", "default"),
        ("export default function named() {}", "named"),
        ("export default class Named {}", "Named"),
        ("export default class { static name = 'own' }", "own"),
    ] {
        let value = namespace(&[("a", "import d from 'b'; export const name = d.name"), ("b", declaration)]);
        assert_eq!(value, object([("name", string(name))]), "{declaration}");
    }
    let value = namespace(&[("a", "let x = 5\nexport default x\n++x"), ("b", "")]);
    assert_eq!(value, object([("default", number(5.0))]), "what follows is a statement of its own");
}

#[test]
fn names_and_namespaces_go_through_other_modules() {
    let value = namespace(&[
        (
            "a",
            "export * from 'b'; export * as all from 'c'; export {'two words' as two, default} from 'c'
             import * as ns from 'c'; import {'two words' as renamed} from 'c'
             export const keys = Object.keys(ns).join(), direct = ns['two words'] + renamed, proto = ns.__proto__",
        ),
        ("b", "export const one = 1; export {one as uno}; export default 'not this'; export * from 'c'"),
        ("c", "const two = 2; export {two as 'two words', two as __proto__}; export default 'c'"),
    ]);
    let all = object([("__proto__", number(2.0)), ("default", string("c")), ("two words", number(2.0))]);
    let Value::Object(properties) = value else { panic!("{value:?}") };
    let get =
        |name: &str| properties.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value);
    assert_eq!(get("all"), Some(&all));
    assert_eq!(get("keys"), Some(&string("__proto__,default,two words")));
    for (name, expected) in
        [("one", 1.), ("uno", 1.), ("two", 2.), ("two words", 2.), ("direct", 4.), ("proto", 2.)]
    {
        assert_eq!(get(name), Some(&number(expected)), "{name}");
    }
    assert_eq!(get("default"), Some(&string("c")));
}

#[test]
fn a_loader_can_tell_names_that_are_not_there() {
    let missing = thrown(&[("a", "import {nope} from 'b'"), ("b", "export const x = 1")]);
    assert_eq!(missing, ("SyntaxError".to_owned(), "b has no export nope".to_owned()));
    let ambiguous = thrown(&[
        ("a", "import {x} from 'b'"),
        ("b", "export * from 'c'; export * from 'd'"),
        ("c", "export const x = 1"),
        ("d", "export const x = 2"),
    ]);
    assert_eq!(ambiguous.1, "b has more than one export x");
    assert_eq!(thrown(&[("a", "export {x} from 'b'"), ("b", "export * from 'a'")]).0, "SyntaxError");
}

#[test]
fn imports_cannot_be_assigned_and_code_is_strict() {
    for assignment in
        ["x = 2", "x++", "[x] = [2]", "({x} = {x: 2})", "for (x of [1]) ;", "ns = 1", "ns.x = 1"]
    {
        let sources = [("a", format!("import {{x}} from 'b'; import * as ns from 'b'; {assignment}"))];
        let (name, _) = thrown(&[("a", &sources[0].1), ("b", "export let x = 1")]);
        assert_eq!(name, "TypeError", "{assignment}");
    }
    assert_eq!(thrown(&[("a", "undeclared = 1")]).0, "ReferenceError");
    let value = namespace(&[("a", "export const self = this === undefined && (() => this === undefined)()")]);
    assert_eq!(value, object([("self", Value::Bool(true))]));
}

#[test]
fn a_module_that_awaits_is_waited_for() {
    let value = namespace(&[
        (
            "a",
            "import {x} from 'b'; export const y = x + 1; for await (const z of [1]) ; export const w = (await import('c')).v",
        ),
        ("b", "export let x = 0; x = await Promise.resolve(5)"),
        ("c", "export const v = 7"),
    ]);
    assert_eq!(value, object([("w", number(7.0)), ("y", number(6.0))]));
    assert!(transformed("for await (const x of y) ;").asynchronous);
    assert!(transformed("class A { [await x] = 1 }").asynchronous);
    assert!(!transformed("async () => await x").asynchronous);
    assert_eq!(
        thrown(&[("a", "await Promise.reject(new RangeError('r'))")]),
        ("RangeError".into(), "r".into())
    );
    assert_eq!(thrown(&[("a", "await import('nowhere')")]).0, "TypeError");
}

#[test]
fn import_meta_and_attributes_reach_the_loader() {
    let value = namespace(&[
        (
            "a",
            "import 'b' with {type: 'json'}; export const url = import.meta.url, attributes = import.meta.attributes",
        ),
        ("b", ""),
    ]);
    let attributes =
        Value::Array(vec![Value::Array(vec![Value::Array(vec![string("type"), string("json")])])]);
    assert_eq!(value, object([("attributes", attributes), ("url", string("a"))]));
}

#[test]
fn modules_share_no_names_with_each_other_or_with_scripts() {
    let mut guest = Guest::new();
    let value = guest.modules(&[
        ("a", "import 'b'; const x = 1; var y = 2; function f() {}; export {x}"),
        ("b", "const x = 2"),
    ]);
    assert_eq!(value, Ok(object([("x", number(1.0))])));
    let kinds = guest.raw("[typeof x, typeof y, typeof f, typeof $m].join()");
    assert_eq!(kinds, Ok(string("undefined,undefined,undefined,undefined")));
}

#[test]
fn a_parameter_has_a_name_that_the_module_does_not_use() {
    let value = namespace(&[
        (
            "a",
            "import {$m} from 'b'; const \\u0024m1 = 2, $i = 3, $d = 4; export const sum = $m + $m1 + $i + $d; export default 1",
        ),
        ("b", "export const $m = 1"),
    ]);
    assert_eq!(value, object([("default", number(1.0)), ("sum", number(10.0))]));
}

#[test]
fn statements_that_went_away_still_end_the_line_before() {
    let value = namespace(&[
        (
            "a",
            "let n = 1\nlet m = n\nimport {f} from 'b'\n;(m)\nexport {n}\n[1].forEach(() => {})\nn = m\nf(n)\nexport default n\nf(1)",
        ),
        ("b", "export function f() { return 2 }"),
    ]);
    assert!(matches!(value, Value::Object(_)), "{value:?}");
}

#[test]
fn a_hashbang_goes_away_and_the_lines_stay() {
    let module = transformed("#!/usr/bin/env node\nexport let x = 1");
    assert!(module.text.ends_with("yield;\nlet x = 1\n})"), "{}", module.text);
}
