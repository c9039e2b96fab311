//! Modules: loading, linking, evaluating, and what is left of them when the guest was stopped.

mod guest;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use guest::{Calls, Guest, Noted, number, object, string};
use pydeno_engine::{Bound, EvalLimits, Module};
use pydeno_wire::message::{Failure, HostError, JsError, Language, Place};
use pydeno_wire::{Text, Value};

/// Kind and source, by name.
type Sources = HashMap<String, (&'static str, String)>;

/// A guest whose imports find these modules by their names at once.
fn world(modules: &[(&str, &str)]) -> Guest {
    let sources = modules.iter().map(|&(name, source)| (name.to_owned(), (kind_of(name), source.to_owned())));
    world_of(sources.collect()).0
}

/// The same, and the specifiers that were asked for.
fn world_of(sources: Sources) -> (Guest, Rc<RefCell<Vec<String>>>) {
    let guest = Guest::new();
    let asked = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&asked);
    let answer = move |_, arguments: Vec<Value>| {
        let specifier = text(&arguments[0]);
        noted.borrow_mut().push(format!("{specifier} from {}", text(&arguments[1])));
        Ok(answer(&sources, &specifier))
    };
    bind_import(&guest, Bound::Synchronous(Box::new(answer)));
    (guest, asked)
}

fn bind_import(guest: &Guest, function: Bound) {
    guest
        .0
        .bind_in(&Place::Import, &"import".into(), function)
        .expect("imports are not the guest's to forbid");
}

fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "ts")) => "ts",
        Some((_, "json")) => "json",
        _ => "js",
    }
}

fn answer(sources: &Sources, specifier: &str) -> Value {
    let null = Value::Null;
    Value::Array(match sources.get(specifier) {
        Some((kind, source)) => {
            vec![null.clone(), string(specifier), string(kind), string(source), null.clone(), null]
        }
        None => vec![
            string("there is no such module"),
            null.clone(),
            null.clone(),
            null.clone(),
            null.clone(),
            null,
        ],
    })
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string_lossy().into_owned(),
        other => panic!("not a string: {other:?}"),
    }
}

/// Begins to evaluate a module.
fn begin(guest: &Guest, request: u64, name: &str, source: &str) {
    begin_within(guest, Duration::from_secs(60), request, name, source);
}

fn begin_within(guest: &Guest, timeout: Duration, request: u64, name: &str, source: &str) {
    let source = Text::from(source);
    let language = if kind_of(name) == "ts" { Language::TypeScript } else { Language::JavaScript };
    let limits = EvalLimits { timeout, ..EvalLimits::default() };
    guest.0.begin_module(request, &Module { source: &source, name, language }, &limits);
}

fn evaluated(guest: &Guest, name: &str, source: &str) -> Result<Value, Failure> {
    // Of requests that fail the isolate remembers the number.
    thread_local!(static LAST: Cell<u64> = const { Cell::new(1000) });
    let request = LAST.replace(LAST.get() + 1);
    begin(guest, request, name, source);
    guest.ended().1
}

fn exports(guest: &Guest, name: &str, source: &str) -> Value {
    evaluated(guest, name, source).unwrap_or_else(|failure| panic!("{source}\nfailed: {failure:?}"))
}

fn error(guest: &Guest, name: &str, source: &str) -> JsError {
    match evaluated(guest, name, source) {
        Err(Failure::Js(error)) => error,
        other => panic!("{source}\nthrew nothing: {other:?}"),
    }
}

fn place(error: &JsError) -> (String, u32, u32) {
    let frame = error.frames.first().unwrap_or_else(|| panic!("no frame: {error:?}"));
    (frame.file.to_string_lossy().into_owned(), frame.line, frame.column)
}

#[test]
fn a_module_gives_its_exports_in_the_order_of_their_names() {
    let guest = Guest::new();
    let source = "export const b = 1; export function f() {} export default 7; export { b as 'a b' };";
    let Value::Object(properties) = exports(&guest, "main.js", source) else { panic!("no object") };
    let names: Vec<_> = properties.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["a b", "b", "default", "f"]);
    assert_eq!(exports(&guest, "main.js", "export {}"), object([]));
}

#[test]
fn imports_are_live_bindings() {
    let guest = world(&[("counter", "export let count = 0; export function raise() { count++ }")]);
    let source = "import { count, raise } from 'counter'; const before = count; raise(); export default [before, count];";
    assert_eq!(
        exports(&guest, "main.js", source),
        object([("default", Value::Array(vec![number(0.0), number(1.0)]))])
    );
    let error = error(&guest, "main.js", "import { count } from 'counter';\ncount = 3");
    assert_eq!((error.name.as_str(), place(&error)), (Some("TypeError"), ("main.js".into(), 2, 1)));
}

#[test]
fn every_form_of_import_and_export_meets() {
    let guest = world(&[
        (
            "a",
            "export * from 'b'; export * as inner from 'b'; export { x as y, default as z } from 'b'; export let own = 1",
        ),
        ("b", "export let x = 2; export default class Named {}; export let hidden = 3"),
    ]);
    let source = "import d, * as all from 'a'; import { x, y, inner, z as Z } from 'a';
        export default [x, y, inner.x, Z.name, Object.keys(all).join(), 'default' in all, typeof d]";
    // There is no default export to import.
    assert_eq!(error(&guest, "main.js", source).name.as_str(), Some("SyntaxError"));
    let source = source.replace("d, ", "").replace("typeof d", "0");
    let expected = ["Named", "hidden,inner,own,x,y,z"].map(string);
    let [named, keys] = expected;
    let values = vec![number(2.0), number(2.0), number(2.0), named, keys, Value::Bool(false), number(0.0)];
    assert_eq!(exports(&guest, "main.js", &source), object([("default", Value::Array(values))]));
}

#[test]
fn modules_that_import_each_other_work_from_either_side() {
    let modules = [
        (
            "even",
            "import { odd } from 'odd'; export function even(n) { return n === 0 || odd(n - 1) } globalThis.log = (globalThis.log ?? '') + 'e'",
        ),
        (
            "odd",
            "import { even } from 'even'; export function odd(n) { return n !== 0 && even(n - 1) } globalThis.log = (globalThis.log ?? '') + 'o'",
        ),
    ];
    for (entry, order) in [("even", "oe"), ("odd", "eo")] {
        let guest = world(&modules);
        let source = format!("import {{ {entry} as f }} from '{entry}'; export default f(4) + log");
        let expected = format!("{}{order}", entry == "even");
        assert_eq!(exports(&guest, "main.js", &source), object([("default", string(&expected))]));
    }
}

#[test]
fn a_variable_that_has_no_value_yet_cannot_be_read() {
    let guest =
        world(&[("a", "import 'b'; export const late = 1"), ("b", "import { late } from 'a';\nlate")]);
    let error = error(&guest, "main.js", "import 'a'");
    assert_eq!(error.name.as_str(), Some("ReferenceError"));
    assert!(
        error.frames.iter().any(|frame| frame.file.as_str() == Some("b") && frame.line == 2),
        "{error:?}"
    );
}

#[test]
fn a_module_is_evaluated_once_and_its_error_stays() {
    let (guest, asked) = world_of(HashMap::from([(
        "bad".to_owned(),
        (
            "js",
            "globalThis.times = (globalThis.times ?? 0) + 1;\nthrow new RangeError('no ' + times)".to_owned(),
        ),
    )]));
    let first = error(&guest, "main.js", "import 'bad'");
    assert_eq!((first.message.as_str(), place(&first)), (Some("no 1"), ("bad".into(), 2, 21)));
    assert_eq!(error(&guest, "other.js", "import 'bad'").message.as_str(), Some("no 1"));
    assert_eq!(guest.error("await import('bad')").message.as_str(), Some("no 1"));
    assert_eq!(asked.borrow().len(), 3);
}

#[test]
fn linking_names_the_module_that_lacks_a_name_and_the_line_that_wants_it() {
    let guest = world(&[
        ("empty", "export {}"),
        ("both", "export * from 'left'; export * from 'right'"),
        ("left", "export let x = 1"),
        ("right", "export let x = 2"),
        ("loop", "export { x } from 'loop'"),
        ("through", "\nexport { gone } from 'empty'"),
    ]);
    for (source, message, at) in [
        ("\n  import { gone } from 'empty'", "the module 'empty' has no export 'gone'", ("main.js", 2, 12)),
        ("import { x } from 'both'", "the module 'both' has more than one export 'x'", ("main.js", 1, 10)),
        ("import { x } from 'loop'", "the module 'loop' has no export 'x'", ("loop", 1, 10)),
        ("import 'through'", "the module 'empty' has no export 'gone'", ("through", 2, 10)),
    ] {
        let error = error(&guest, "main.js", source);
        assert_eq!((error.name.as_str(), error.message.as_str()), (Some("SyntaxError"), Some(message)));
        assert_eq!(place(&error), (at.0.into(), at.1, at.2), "{source}");
    }
    assert_eq!(
        exports(&guest, "main.js", "import * as b from 'both'; export default Object.keys(b).length"),
        object([("default", number(0.0))])
    );
}

#[test]
fn an_import_that_is_not_given_names_specifier_referrer_and_place() {
    let guest = world(&[("a", "\n\nimport 'missing'")]);
    let error = error(&guest, "main.js", "import 'a'");
    assert_eq!(error.message.as_str(), Some("cannot import 'missing' from 'a': there is no such module"));
    assert_eq!(place(&error), ("a".into(), 3, 8));
    let error = guest.error("\nconst later = () => import('missing');\nawait later()");
    assert_eq!(
        error.message.as_str(),
        Some("cannot import 'missing' from 'test.js': there is no such module")
    );
    assert_eq!(place(&error).1, 2, "{error:?}");
    let nothing = Guest::new();
    let error = nothing.error("await import('x')");
    assert!(error.message.to_string_lossy().contains("this runtime has no modules"), "{error:?}");
}

#[test]
fn a_source_that_does_not_parse_names_its_own_place() {
    let guest =
        world(&[("bad", "let a = 1;\nlet = ;"), ("broken.json", "{"), ("typed.ts", "let a: number = ;")]);
    for (source, file, line) in [
        ("import 'bad'", "bad", 2),
        ("import 'broken.json' with { type: 'json' }", "broken.json", 1),
        ("import 'typed.ts'", "typed.ts", 1),
        ("\n)", "main.js", 2),
    ] {
        let error = error(&guest, "main.js", source);
        assert_eq!(
            (error.name.as_str(), place(&error).0.as_str(), place(&error).1),
            (Some("SyntaxError"), file, line),
            "{error:?}"
        );
    }
}

#[test]
fn json_is_imported_as_json_and_nothing_else_is() {
    let guest = world(&[("d.json", r#"{"a": [1], "__proto__": 2}"#), ("code", "export default 1")]);
    let source = "import d from 'd.json' with { type: 'json' }; export default [d.a[0], Object.keys(d).length, (await import('d.json', { with: { type: 'json' } })).default === d]";
    assert_eq!(
        exports(&guest, "main.js", source),
        object([("default", Value::Array(vec![number(1.0), number(2.0), Value::Bool(true)]))])
    );
    for source in [
        "import d from 'd.json'",
        "import d from 'code' with { type: 'json' }",
        "import d from 'code' with { type: 'css' }",
        "await import('code', { with: { type: 'json' } })",
    ] {
        assert_eq!(error(&guest, "main.js", source).name.as_str(), Some("TypeError"), "{source}");
    }
    assert_eq!(
        error(&guest, "main.js", "import 'code' with { mode: 'x' }").name.as_str(),
        Some("SyntaxError")
    );
    assert_eq!(guest.error("await import('code', { with: { mode: 'x' } })").name.as_str(), Some("TypeError"));
}

#[test]
fn dynamic_imports_know_who_imports_also_later() {
    let sources =
        ["x", "y", "z"].map(|name| (name.to_owned(), ("js", format!("export const name = '{name}'"))));
    let (guest, asked) = world_of(HashMap::from(sources));
    exports(
        &guest,
        "lib.js",
        "globalThis.later = () => import('x'); export const own = await import('y').then((y) => y.name)",
    );
    guest.value("const lazy = (what) => import(what); 0");
    assert_eq!(
        guest.value("[(await later()).name, (await lazy('z')).name]"),
        Value::Array(vec![string("x"), string("z")])
    );
    assert_eq!(*asked.borrow(), ["y from lib.js", "x from lib.js", "z from test.js"]);
    // The same specifier of the same module is the same module, without another question.
    assert_eq!(guest.value("await later() === await later()"), Value::Bool(true));
    assert_eq!(asked.borrow().len(), 3);
}

#[test]
fn a_dynamic_import_does_not_run_before_its_caller_has_returned() {
    let guest = world(&[("a", "log.push('module')")]);
    let source = "globalThis.log = []; const p = import('a'); log.push('script'); await p; log.join()";
    assert_eq!(guest.value(source), string("script,module"));
}

#[test]
fn what_import_is_given_is_taken_as_the_language_has_it() {
    let guest =
        world(&[("5", "export default 'five'"), ("then", "export function then(done) { done('called') }")]);
    assert_eq!(guest.value("(await import(5)).default"), string("five"));
    assert_eq!(guest.value("await import({ toString: () => '5' }).then((m) => m.default)"), string("five"));
    assert_eq!(guest.value("await import(Symbol()).catch((e) => e.name)"), string("TypeError"));
    assert_eq!(guest.value("await import({ toString() { throw 3 } }).catch((e) => e)"), number(3.0));
    assert_eq!(guest.value("await import('5', 1).catch((e) => e.name)"), string("TypeError"));
    assert_eq!(guest.value("await import('then')"), string("called"));
}

#[test]
fn a_namespace_is_what_the_language_says() {
    let guest =
        world(&[("m", "export let a = 1; export const b = 2; export const set = (value) => { a = value }")]);
    let source = "const m = await import('m'); 'use strict'; [
        Object.getPrototypeOf(m), Object.isExtensible(m), m[Symbol.toStringTag], Object.prototype.toString.call(m),
        JSON.stringify(Object.getOwnPropertyDescriptor(m, 'a')), Reflect.set(m, 'a', 5), Reflect.deleteProperty(m, 'a'),
        Reflect.deleteProperty(m, 'nope'), Reflect.defineProperty(m, 'a', { value: 1 }), Reflect.defineProperty(m, 'a', { value: 2 }),
        Reflect.defineProperty(m, 'n', { value: 2 }), Reflect.setPrototypeOf(m, null), Reflect.setPrototypeOf(m, {}),
        Reflect.ownKeys(m).map(String).join(), 'a' in m, 'zz' in m, m.zz, (m.set(9), m.a), m === await import('m'),
        (() => { try { Object.freeze(m); return 'frozen' } catch (e) { return e.name } })()]";
    let Value::Array(found) = guest.value(source) else { panic!("no array") };
    let (yes, no) = (Value::Bool(true), Value::Bool(false));
    let expected = vec![
        Value::Null,
        no.clone(),
        string("Module"),
        string("[object Module]"),
        string(r#"{"value":1,"writable":true,"enumerable":true,"configurable":false}"#),
        no.clone(),
        no.clone(),
        yes.clone(),
        yes.clone(),
        no.clone(),
        no.clone(),
        yes.clone(),
        no.clone(),
        string("a,b,set,Symbol(Symbol.toStringTag)"),
        yes.clone(),
        no,
        Value::Undefined,
        number(9.0),
        yes,
        string("TypeError"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_namespace_crosses_as_a_record() {
    let guest = world(&[
        ("m", "export let a = 1; export default 'd'; export * as self from 'n'"),
        ("n", "export const z = [1]"),
    ]);
    let inner = object([("z", Value::Array(vec![number(1.0)]))]);
    let record = object([("a", number(1.0)), ("default", string("d")), ("self", inner)]);
    assert_eq!(guest.value("await import('m')"), record);
    assert_eq!(
        guest.value("const m = await import('m'); ({ inside: [m] })"),
        object([("inside", Value::Array(vec![record]))])
    );
    // Any other proxy is still refused.
    assert_eq!(guest.refused("new Proxy({}, {})").0, "$");
}

#[test]
fn a_module_awaits_and_its_siblings_keep_their_order() {
    let guest = world(&[
        ("slow", "log.push('slow begins'); await 0; await 0; log.push('slow ends')"),
        ("quick", "log.push('quick begins'); await 0; log.push('quick ends')"),
        ("plain", "log.push('plain')"),
        ("parent", "import 'slow'; log.push('parent')"),
    ]);
    guest.value("globalThis.log = []; 0");
    let source = "import 'slow'; import 'quick'; import 'plain'; import 'parent'; export default log.join()";
    let order = "slow begins,quick begins,plain,quick ends,slow ends,parent";
    assert_eq!(exports(&guest, "main.js", source), object([("default", string(order))]));
}

#[test]
fn a_rejection_of_a_module_reaches_all_that_need_it_and_stays() {
    let guest = world(&[
        ("bad", "await 0; throw new Error('late')"),
        ("middle", "import 'bad'; globalThis.ran = true"),
        ("good", "await 0; export default 1"),
    ]);
    for _ in 0..2 {
        assert_eq!(error(&guest, "main.js", "import 'good'; import 'middle'").message.as_str(), Some("late"));
    }
    assert_eq!(guest.value("globalThis.ran"), Value::Undefined);
    assert_eq!(guest.value("(await import('good')).default"), number(1.0));
}

#[test]
fn cycles_with_await_settle() {
    let guest = world(&[
        ("a", "import { b } from 'b'; export const a = 'a'; export const seen = b()"),
        (
            "b",
            "import { a } from 'a'; await 0; export function b() { return 'b' } export const late = () => a",
        ),
    ]);
    let source = "import { seen } from 'a'; import { late } from 'b'; export default seen + late()";
    assert_eq!(exports(&guest, "main.js", source), object([("default", string("ba"))]));
    assert_eq!(exports(&guest, "again.js", source), object([("default", string("ba"))]));
}

#[test]
fn a_chain_of_modules_is_followed_to_its_end() {
    let length = 300;
    let mut sources = Sources::new();
    for index in 0..length {
        let source = format!("export * from 'm{}'; export const own = {index}", index + 1);
        sources.insert(format!("m{index}"), ("js", source));
    }
    sources.insert(format!("m{length}"), ("js", "await 0; export const end = 'reached'".to_owned()));
    let (guest, asked) = world_of(sources);
    let found = exports(&guest, "main.js", "import { end, own } from 'm0'; export default end + own");
    assert_eq!(found, object([("default", string("reached0"))]));
    assert_eq!(asked.borrow().len(), length + 1);
}

#[test]
fn typescript_and_javascript_mix_in_one_graph() {
    let guest = world(&[
        ("types.ts", "export interface Shape { area(): number }\nexport enum Unit { Metre = 1 }"),
        ("js", "import { Unit } from 'types.ts'; export const unit = Unit.Metre"),
        ("thrower.ts", "type T = 1;\n\nexport function fail(): never { throw new Error('here') }"),
    ]);
    let source = "import type { Shape } from 'types.ts';\nimport { unit } from 'js';\nexport const shape: Shape = null!; export default unit as number";
    assert_eq!(
        exports(&guest, "main.ts", source),
        object([("default", number(1.0)), ("shape", Value::Null)])
    );
    let error = error(&guest, "main.ts", "import { fail } from 'thrower.ts';\n\nfail()");
    assert_eq!(place(&error), ("thrower.ts".into(), 3, 43));
    assert!(
        error.frames.iter().all(|frame| !frame.file.to_string_lossy().starts_with("pydeno")),
        "{error:?}"
    );
    assert_eq!((error.frames.len(), error.frames[1].line), (2, 3));
}

#[test]
fn meta_tells_the_name_and_this_is_undefined() {
    let guest = world(&[("lib/x", "export default import.meta.url")]);
    let source = "import url from 'lib/x'; export default [url, import.meta.url, typeof this, Object.getPrototypeOf(import.meta)]";
    let expected = vec![string("lib/x"), string("main.js"), string("undefined"), Value::Null];
    assert_eq!(exports(&guest, "main.js", source), object([("default", Value::Array(expected))]));
}

#[test]
fn a_module_of_values_exports_them_and_functions_of_the_host() {
    let guest = Guest::new();
    bind_import(
        &guest,
        Bound::Synchronous(Box::new(|_, _| {
            let values = object([("limit", number(3.0)), ("__proto__", string("plain"))]);
            let null = Value::Null;
            Ok(Value::Array(vec![
                null.clone(),
                string("config"),
                string("values"),
                null,
                values,
                Value::Array(vec![string("double")]),
            ]))
        })),
    );
    let double = |_: u64, arguments: Vec<Value>| match arguments.first() {
        Some(Value::Number(value)) => Ok(Value::Number(value * 2.0)),
        _ => Err(HostError { name: "Error".into(), message: "no number".into() }),
    };
    let place = Place::Module("config".into());
    guest.0.bind_in(&place, &"double".into(), Bound::Synchronous(Box::new(double))).unwrap();
    let source = "import { limit, double, __proto__ as p } from 'config'; export default [double(limit), p]";
    assert_eq!(
        exports(&guest, "main.js", source),
        object([("default", Value::Array(vec![number(6.0), string("plain")]))])
    );
    assert_eq!(guest.value("typeof double + typeof globalThis.config"), string("undefinedundefined"));
}

#[test]
fn a_module_that_is_evaluated_again_takes_the_place_of_the_first() {
    let guest = world(&[]);
    exports(&guest, "cell", "export const value = 1");
    let first = exports(&guest, "main.js", "export const f = () => 1");
    exports(&guest, "cell", "export const value = 2");
    assert!(matches!(first, Value::Object(_)));
    assert_eq!(exports(&guest, "cell", "export const value = 3"), object([("value", number(3.0))]));
}

/// A guest whose imports are asynchronous, and their questions.
fn asynchronous() -> (Guest, Calls) {
    let guest = Guest::new();
    let calls = Calls::default();
    let noted = Rc::clone(&calls.noted);
    let start = move |request, arguments: Vec<Value>| {
        let id = noted.borrow().len() as u64 + 1;
        noted.borrow_mut().push(Noted { id, request, arguments });
        Ok(id)
    };
    bind_import(&guest, Bound::Asynchronous(Box::new(start)));
    (guest, calls)
}

fn give(guest: &Guest, calls: &Calls, index: usize, source: &str) {
    let (id, name) = (calls.id(index), text(&calls.noted.borrow()[index].arguments[0]));
    guest.settle(id, answer(&HashMap::from([(name.clone(), (kind_of(&name), source.to_owned()))]), &name));
}

#[test]
fn asynchronous_answers_may_come_in_any_order() {
    let (guest, calls) = asynchronous();
    begin(&guest, 1, "main.js", "import { a } from 'a'; import { b } from 'b'; export default a + b");
    assert_eq!(calls.len(), 2);
    give(&guest, &calls, 1, "export { a as b } from 'a'");
    assert_eq!(calls.len(), 3);
    give(&guest, &calls, 2, "export const a = 'once;'");
    give(&guest, &calls, 0, "export const a = 'a second text of the same name is not looked at'");
    assert_eq!(guest.ended(), (1, Ok(object([("default", string("once;once;"))]))));
}

#[test]
fn a_refusal_of_the_host_is_the_cause_of_the_importers_error() {
    let (guest, calls) = asynchronous();
    begin(&guest, 1, "main.js", "\nimport 'a'");
    guest.reject(calls.id(0), "the host function import failed");
    let (_, Err(Failure::Js(error))) = guest.ended() else { panic!("it did not fail") };
    assert_eq!(error.message.as_str(), Some("cannot import 'a' from 'main.js': the host failed"));
    assert_eq!(place(&error), ("main.js".into(), 2, 8));
    let cause = error.details.unwrap().cause.unwrap();
    assert_eq!(cause.message.as_str(), Some("the host function import failed"));
}

#[test]
fn a_request_that_fails_takes_no_other_requests_imports_with_it() {
    let (guest, calls) = asynchronous();
    begin(&guest, 1, "one.js", "import 'a'");
    begin(&guest, 2, "two.js", "import { a } from 'a'; export default a");
    guest.0.cancel(1);
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    give(&guest, &calls, 1, "export const a = 1");
    assert_eq!(guest.ended(), (2, Ok(object([("default", number(1.0))]))));
}

#[test]
fn a_module_whose_evaluation_was_stopped_says_so() {
    let guest =
        world(&[("endless", "for (;;) {}"), ("around", "import 'endless'"), ("fine", "export default 1")]);
    begin_within(&guest, Duration::from_millis(100), 1, "main.js", "import 'fine'; import 'around'");
    assert_eq!(guest.ended(), (1, Err(Failure::Timeout)));
    for name in ["endless", "around"] {
        let error = error(&guest, "again.js", &format!("import '{name}'"));
        assert!(error.message.to_string_lossy().contains("was stopped"), "{error:?}");
    }
    assert_eq!(guest.value("(await import('fine')).default"), number(1.0));
}

#[test]
fn a_module_that_waits_for_a_request_that_failed_says_so() {
    let guest = world(&[("waits", "await hold()"), ("fine", "export default 1")]);
    let calls = guest.bind_async("hold");
    begin(&guest, 1, "main.js", "import 'waits'");
    assert_eq!(calls.len(), 1);
    guest.0.cancel(1);
    assert_eq!(guest.ended(), (1, Err(Failure::Cancelled)));
    for (request, importer) in [(2, "one.js"), (3, "two.js")] {
        begin(&guest, request, importer, "import 'waits'");
        let (_, Err(Failure::Js(error))) = guest.ended() else { panic!("it did not fail") };
        assert!(error.message.to_string_lossy().contains("was stopped"), "{error:?}");
    }
    assert!(guest.still_answers());
}

#[test]
fn poisoned_prototypes_neither_break_nor_observe_the_loader() {
    let modules = [
        ("a", "export * from 'b'; import { late } from 'b'; export const sum = late + 1;"),
        ("b", "export let late = 1; export default import.meta.url"),
        ("d.json", r#"{"v": 4}"#),
    ];
    let poison = "globalThis.seen = '';
        const note = (what) => { seen += `${String(what)} ` };
        const spy = (holder, name) => Object.defineProperty(holder, name, { __proto__: null, configurable: true,
            get() { note(name); return undefined }, set() { note(`set ${String(name)}`) } });
        const { getPrototypeOf } = Object;
        for (const f of [function* () {}, async function* () {}]) spy(getPrototypeOf(f.prototype), 'next');
        for (const name of ['then', 'get', 'set', 'value', 'name', 'kind', 'run', 'source', 'cause', '0', '1', 'done', 'next',
            'known', 'link', 'writable']) spy(Object.prototype, name);
        spy(Array.prototype, Symbol.iterator); spy(Array.prototype, 'sort'); spy(Array.prototype, 'push');
        spy(Promise.prototype, 'then'); spy(Promise.prototype, 'constructor'); spy(Promise, Symbol.species);
        JSON.parse = Map.prototype.get = WeakMap.prototype.get = Reflect.apply = () => { note('called') };
        globalThis.Proxy = globalThis.Promise = globalThis.SyntaxError = undefined; 0";
    let source =
        "import { sum } from 'a'; import d from 'd.json' with { type: 'json' }; import * as b from 'b';
        export const found = [sum, d.v, b.late, b.default]; export const noticed = seen";
    let guest = world(&modules);
    guest.value(poison);
    let Value::Object(found) = exports(&guest, "main.js", source) else { panic!("no object") };
    let array = |values: Vec<Value>| Value::Array(values);
    assert_eq!(found[0].1, array(vec![number(2.0), number(4.0), number(1.0), string("b")]));
    assert_eq!(found[1].1, string(""));
    // The same spies do notice what a script does itself.
    assert_eq!(guest.value("seen = ''; ({}).value; seen"), string("value "));
}
