//! `await` and `yield` are operators in some functions and names in others, which decides what a slash after them is.

use pydeno_preflight::{Options, check};

#[track_caller]
fn expect(source: &str, rules: &[&str]) {
    let options = Options { allow_import: true, ..Options::default() };
    let report = check(source.as_bytes(), options);
    let found: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(found, rules, "{source:?}");
}

#[test]
fn await_is_an_operator_in_async_functions() {
    for source in [
        "async function f() { await / fetch(1) / }",
        "x = async function () { await / fetch(1) / }",
        "async function* f() { await / fetch(1) / }",
        "async /* why */ function f() { await / fetch(1) / }",
        "export default async function () { await / fetch(1) / }",
        "({ async f() { await / fetch(1) / } })",
        "({ async f(a, b = {c}, ...d) { await / fetch(1) / } })",
        "({ async *f() { await / fetch(1) / } })",
        "({ async 'f'() { await / fetch(1) / } })",
        "class A { async f() { await / fetch(1) / } }",
        "class A { x = 1\n async f() { await / fetch(1) / } }",
        "class A { static async [f]() { await / fetch(1) / } }",
        "class A { async #f() { await / fetch(1) / } }",
        "async () => { await / fetch(1) / }",
        "async () => await / fetch(1) /",
        "async x => await / fetch(1) /",
        "async (x = (1), {y}) => await / fetch(1) /",
        "async /* why */ (x) => { await / fetch(1) / }",
        "f(async x => x, 1, async x => await / fetch(1) /)",
        "async x => y ? z : await / fetch(1) /",
        "async function f() { function g() {} await / fetch(1) / }",
        "async function f() { (x => y); await / fetch(1) / }",
        "async function f() { a.map(x => y, await / fetch(1) /) }",
        "async function f() { x => y\n await / fetch(1) / }",
        "async function f() { class A { [await / fetch(1) /] = 1 } }",
        "async (x): Promise<y> => { await / fetch(1) / }",
        "async <T,>(x: T) => { await / fetch(1) / }",
    ] {
        expect(source, &[]);
    }
}

#[test]
fn await_is_a_name_in_all_other_functions() {
    for source in [
        "function f() { await / fetch(1) / b }",
        "function* f() { await / fetch(1) / b }",
        "({ f() { await / fetch(1) / b } })",
        "({ async() { await / fetch(1) / b } })",
        "({ async, f() { await / fetch(1) / b } })",
        "class A { async\n f() { await / fetch(1) / b } }",
        "() => { await / fetch(1) / b }",
        "() => await / fetch(1) / b",
        "async(x); y => await / fetch(1) / b",
        "async function f() { function g() { await / fetch(1) / b } }",
        "async function f() { () => await / fetch(1) / b }",
        "async function f() { ({ g(x = await / fetch(1) / b) {} }) }",
        "async function f() { class A { x = await / fetch(1) / b } }",
        "async function f() {} await / fetch(1) / b",
        "async x => y\n await / fetch(1) / b",
        "f(async x => y, await / fetch(1) / b)",
        "a ? async x => y : await / fetch(1) / b",
    ] {
        expect(source, &["fetch"]);
    }
}

#[test]
fn outside_of_functions_what_was_read_before_tells_what_await_is() {
    for source in [
        "import a from 'a'; await / fetch(1) /",
        "export {}; await / fetch(1) /",
        "await a; await / fetch(1) /",
        "await 'a'; await / fetch(1) /",
        "for await (const a of b) await / fetch(1) /",
    ] {
        expect(source, &[]);
    }
    for source in [
        "var await; await / fetch(1) / b",
        "await = 1; await / fetch(1) / b",
        "await.a; await / fetch(1) / b",
    ] {
        expect(source, &["fetch"]);
    }
}

#[test]
fn outside_of_functions_await_is_a_name_where_nothing_tells_so_that_no_code_is_hidden() {
    expect("await / fetch(1) / b", &["fetch"]);
    expect("await /fetch(1)/.exec(b)", &["fetch"]);
    expect("import('a'); await / fetch(1) / b", &["dynamic-import", "fetch"]);
}

#[test]
fn yield_is_an_operator_in_generators_alone() {
    for source in [
        "function* f() { yield / fetch(1) / }",
        "({ *f(a, b) { yield / fetch(1) / } })",
        "class A { *f() { yield / fetch(1) / } }",
        "async function* f() { yield / fetch(1) / }",
        "function* f() { (x => y); yield / fetch(1) / }",
    ] {
        expect(source, &[]);
    }
    for source in [
        "yield / fetch(1) / b",
        "async function f() { yield / fetch(1) / b }",
        "function* f() { function g() { yield / fetch(1) / b } }",
        "function* f() { x => yield / fetch(1) / b }",
        "function* f() {} yield / fetch(1) / b",
    ] {
        expect(source, &["fetch"]);
    }
}
