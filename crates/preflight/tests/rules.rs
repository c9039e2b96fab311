//! Each rule finds what it is for, and nothing that only looks like it.

use pydeno_preflight::{Options, Severity, check};

fn rules_of(source: &str) -> Vec<&'static str> {
    rules_with(source, Options::default())
}

fn rules_with(source: &str, options: Options) -> Vec<&'static str> {
    check(source.as_bytes(), options).findings.iter().map(|finding| finding.rule).collect()
}

fn places(source: &str) -> Vec<(usize, usize)> {
    let report = check(source.as_bytes(), Options::default());
    report.findings.iter().map(|finding| (finding.line, finding.column)).collect()
}

#[track_caller]
fn expect(source: &str, rules: &[&str]) {
    assert_eq!(rules_of(source), rules, "{source:?}");
}

#[test]
fn modules_are_found_and_their_meta_object_is_not() {
    for source in [
        "import a from 'a'",
        "import {a} from 'a'",
        "import * as a from 'a'",
        "import 'a'",
        "import a, {b} from 'a'",
        "import/**/a from 'a'",
        "f()\nimport a from 'a'",
    ] {
        expect(source, &["static-import"]);
    }
    for source in ["export {a}", "export default 1", "export * from 'a'", "export const a = 1"] {
        assert_eq!(rules_of(source)[0], "static-export", "{source:?}");
    }
    expect("import.meta.url", &[]);
    expect("({import: 1, export: 2}).import.export", &[]);
    expect("class A { import() {} export = 1 }", &[]);
}

#[test]
fn dynamic_imports_have_a_rule_and_a_permission_of_their_own() {
    for source in ["import('a')", "await import ( 'a' )", "import.source('a')", "import.defer('a')"] {
        expect(source, &["dynamic-import"]);
    }
    let modules = Options { allow_import: true, ..Options::default() };
    assert_eq!(rules_with("import a from 'a'; export {a}; import('b')", modules), ["dynamic-import"]);
    let dynamic = Options { allow_dynamic_import: true, ..Options::default() };
    assert_eq!(rules_with("import a from 'a'; import('b')", dynamic), ["static-import"]);
}

#[test]
fn what_only_exists_outside_is_found() {
    expect("require('fs')", &["require"]);
    expect("await fetch(url)", &["fetch"]);
    expect("fetch?.(url)", &["fetch"]);
    expect("fetch // why\n (url)", &["fetch"]);
    expect("[...fetch(url)]", &["fetch"]);
    expect("new XMLHttpRequest", &["xhr"]);
    expect("let s = {WebSocket}", &["websocket"]);
    expect("process.env.HOME", &["process"]);
    expect("process?.env", &["process"]);
    expect("Deno.readFile('a')", &["deno"]);
    expect("child_process.exec('ls')", &["child-process"]);
}

#[test]
fn the_same_word_as_a_property_a_key_a_longer_name_or_a_mention_is_not() {
    for source in [
        "obj.fetch(1)",
        "obj?.fetch(1)",
        "obj\n.fetch(1)",
        "this.#fetch(1)",
        "({fetch: 1, process: 2, WebSocket: 3})",
        "({fetch(url) {}, async require() {}, get process() { return 1 }})",
        "class A { fetch() {} static require() {} process = 1; WebSocket = 2 }",
        "class A { x = 1\n fetch() {} }",
        "fetchData(1); prefetch(2); $fetch(3); fetch_(4)",
        "typeof fetch; typeof process",
        "function fetch(url) {}",
        "process; Deno; require",
    ] {
        expect(source, &[]);
    }
}

#[test]
fn text_is_no_code_and_code_inside_a_template_is() {
    for source in [
        "'fetch(1)'; \"require(1)\"",
        "// fetch(1)\n/* require(1) */",
        "`fetch(1) ${a} require(1)`",
        "/fetch(1)/.test(x)",
        "/[/]fetch(1)/v",
        "/[[a]--[b\\/]]fetch(1)/v.test(x)",
        "#!fetch(1)",
        "<!-- fetch(1)\n--> fetch(1)",
        "a = 1 /* \n */ --> fetch(1)",
        "'\\\nfetch(1)'",
        "'\u{2028}fetch(1)'",
    ] {
        assert_eq!(rules_of(source), Vec::<&str>::new(), "{source:?}");
    }
    expect("`${fetch(1)}`", &["fetch"]);
    expect("`${`${`${{a: fetch(1)}}`}`}`; '`'", &["fetch"]);
    expect("a --> fetch(1)", &["fetch"]);
}

#[test]
fn a_slash_divides_after_a_value_and_starts_an_expression_elsewhere() {
    for source in [
        "a / fetch(1) / b",
        "a++ / fetch(1) / b",
        "f() / fetch(1) / b",
        "a[0] / fetch(1) / b",
        "x = {} / fetch(1) / b",
        "x = function () {} / fetch(1) / b",
        "x = class {} / fetch(1) / b",
        "x = async function () {} / fetch(1) / b",
        "`t` / fetch(1) / b",
        "this / fetch(1) / b",
        "o.if / fetch(1) / b",
        "o.return / fetch(1) / b",
        "(a) / fetch(1) / b",
        "of / fetch(1) / b",
        "yield / fetch(1) / b",
        "async / fetch(1) / b",
        "let / fetch(1) / b",
        "1 << 2; a / fetch(1) / b",
    ] {
        expect(source, &["fetch"]);
    }
    for source in [
        "if (a) / fetch(1) /.test(b)",
        "while (a) / fetch(1) /.test(b)",
        "a\n++/ fetch(1) /.lastIndex",
        "{} / fetch(1) /.test(b)",
        "function f() {} / fetch(1) /.test(b)",
        "async function f() {} / fetch(1) /.test(b)",
        "class A {} / fetch(1) /.test(b)",
        "x = () => {}\n/ fetch(1) /.test(b)",
        "x => / fetch(1) /.test(x)",
        "function f() { return / fetch(1) / }",
        "function* f() { yield / fetch(1) / }",
        "({*f() { yield / fetch(1) / }})",
        "for (const a of / fetch(1) /.exec(b)) ;",
        "typeof / fetch(1) /",
        "a ? / fetch(1) / : b",
        "switch (a) { case / fetch(1) /: default: / fetch(1) /.test(b) }",
        "a: / fetch(1) /.test(b)",
        "do / fetch(1) /.test(b); while (c) / fetch(1) /.test(d)",
        "`${/ fetch(1) /}`",
    ] {
        expect(source, &[]);
    }
}

#[test]
fn escapes_in_a_name_do_not_change_it() {
    expect(r"\u0066etch(1)", &["fetch"]);
    expect(r"\u{66}et\u{00063}h(1)", &["fetch"]);
    expect(r"a.\u0066etch(1)", &[]);
    expect(r"globalThis.f\u0065tch", &["global-alias"]);
    expect(r"globalThis['\x66etch']", &["global-alias"]);
}

#[test]
fn the_global_object_is_seen_through() {
    for source in [
        "globalThis.fetch",
        "self.fetch(1)",
        "window?.process",
        "global['require']('fs')",
        "globalThis?.[\"Deno\"]",
        "globalThis[`WebSocket`]",
        "globalThis . /**/ fetch",
        "window.self.globalThis['global'].XMLHttpRequest",
        "window [ 'child_process' ]",
    ] {
        expect(source, &["global-alias"]);
    }
    for source in ["globalThis.fetchData", "obj.window.fetch", "globalThis.x.fetch", "({self: 1}).fetch"] {
        expect(source, &[]);
    }
}

#[test]
fn ways_to_a_prototype_are_warnings_and_code_from_text_is_information() {
    let severity = |source: &str| {
        let report = check(source.as_bytes(), Options::default());
        assert!(report.ok, "{source:?}");
        report.findings.iter().map(|finding| (finding.rule, finding.severity)).collect::<Vec<_>>()
    };
    assert_eq!(severity("a.__proto__"), [("proto", Severity::Warning)]);
    assert_eq!(severity("({__proto__: null})"), [("proto", Severity::Warning)]);
    let constructors = [("constructor-constructor", Severity::Warning)];
    assert_eq!(severity("a.constructor.constructor('x')"), constructors);
    assert_eq!(severity("a?.constructor?.['constructor']"), constructors);
    assert_eq!(severity("a.constructor.constructor.constructor"), constructors);
    assert_eq!(severity("a.constructor.name"), []);
    assert_eq!(severity("eval('1')"), [("eval", Severity::Info)]);
    assert_eq!(severity("new Function('1')"), [("eval", Severity::Info)]);
    for source in ["new Function", "Function('1')", "a.eval('1')", "(0, eval)('1')"] {
        assert_eq!(severity(source), [], "{source}");
    }
    let silent = Options { report_eval: false, ..Options::default() };
    assert!(rules_with("eval('1'); new Function('1')", silent).is_empty());
}

#[test]
fn evasions_stay_undetected() {
    for source in [
        "globalThis['req' + 'uire']('fs')",
        "globalThis[`${'fetch'}`](1)",
        "const f = 'fetch'; globalThis[f](1)",
        "(globalThis).fetch(1)",
        "const {fetch: f} = globalThis; f(1)",
        "(0, fetch)(1)",
        "Reflect.get(globalThis, 'fetch')",
        "'fet'.concat('ch')",
    ] {
        expect(source, &[]);
    }
}

#[test]
fn places_count_code_points_and_every_line_end() {
    assert_eq!(places("\nx fetch(1)"), [(2, 3)]);
    assert_eq!(places("a\r\nb\rc\u{2028}d\u{2029} fetch(1)"), [(5, 2)]);
    assert_eq!(places("'é😀' + fetch(1) + fetch(2)"), [(1, 8), (1, 19)]);
    assert_eq!(places("x = globalThis\n.fetch"), [(1, 5)]);
    assert_eq!(places("window[fetch(1)].x; fetch(2)"), [(1, 8), (1, 21)]);
}

#[test]
fn a_finding_is_told_in_a_line_with_a_remedy() {
    let report = check(b"\n  fetch(url)", Options::default());
    let text = report.to_string();
    assert!(text.starts_with("2:3 error [fetch] "), "{text}");
    assert!(text.contains("bind a function"), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn findings_are_bounded_and_all_of_them_count() {
    let warnings = "a.__proto__;".repeat(pydeno_preflight::MAX_FINDINGS);
    let report = check(format!("{warnings}a.__proto__;fetch(1)").as_bytes(), Options::default());
    assert_eq!(report.findings.len(), pydeno_preflight::MAX_FINDINGS);
    assert_eq!(report.omitted, 2);
    assert!(!report.ok, "the error that is not listed counts, too");
    assert_eq!(report.to_string().lines().last(), Some("... and 2 more"));
    assert!(check(warnings.as_bytes(), Options::default()).ok);
}

#[test]
fn whatever_does_not_parse_is_read_to_its_end() {
    for source in
        ["'", "\"abc\n fetch(1)", "`${`${", "/*", "/[/", "\\", "\\u{", "}}}", ")]}", "a?.", "#", "<!--"]
    {
        check(source.as_bytes(), Options::default());
    }
    expect("'abc\n fetch(1)", &["fetch"]);
    expect("}}) fetch(1)", &["fetch"]);
    for length in 0..4 {
        check(&vec![0xff; length], Options::default());
        check(&[b"\xe2\x80\xa8\xf0"[..length].to_vec(), b"'\\".to_vec()].concat(), Options::default());
    }
}
