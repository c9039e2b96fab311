//! The text of JSX is no code, what is in its braces is, and types of TypeScript are not taken for elements.

use pydeno_preflight::{Options, Span, SpanKind, TextKind, check, spans};

#[track_caller]
fn expect(source: &str, rules: &[&str]) {
    let report = check(source.as_bytes(), Options::default());
    let found: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(found, rules, "{source:?}");
}

#[test]
fn text_and_attributes_are_no_code() {
    for source in [
        "x = <p>Don't fetch(1) here</p>",
        "x = <p>https://fetch(1) `</p>",
        "x = <p title='fetch(1)\nfetch(2)'>/* fetch(1) */</p>",
        "x = <p title=\"\\\">fetch(1)</p>",
        "x = <>fetch(1)</>",
        "x = <p><b>fetch(1)</b> fetch(2) <br/> fetch(3)</p>",
        "x = <a.b.c d-fetch e:fetch>fetch(1)</a.b.c>",
        "x = <my-tag>fetch(1)</my-tag>",
        "return (\n <p>\n fetch(1)\n </p>\n)",
        "x => <p>fetch(1)</p>",
        "f(<p>fetch(1)</p>, <br/>)",
        "x = a && <p>fetch(1)</p>",
        "x = a ? <p>fetch(1)</p> : <p>fetch(2)</p>",
        "x = <p a=<b>fetch(1)</b>>fetch(2)</p>",
        "x = <p>a > fetch(1) < fetch(2)</p>",
        "x = <Select<string> a='b'>fetch(1)</Select>",
        "x = <p /* fetch(1) */ a // fetch(2)\n>fetch(3)</p>",
    ] {
        expect(source, &[]);
    }
}

#[test]
fn code_in_braces_and_behind_an_element_is_read() {
    for source in [
        "x = <p>{fetch(1)}</p>",
        "x = <p>it's {fetch(1)} isn't</p>",
        "x = <p a={fetch(1)}/>",
        "x = <p {...fetch(1)}>'</p>",
        "x = <p>{a.map(b => <b key={b}>{fetch(1)}</b>)}'</p>",
        "x = <p>{`${<b>'{fetch(1)}</b>}`}</p>",
        "x = <p>'</p>; fetch(1)",
        "x = <p/>; fetch(1)",
        "x = <p>'</p> / fetch(1) / y",
        "x = <p>{/* ' */}</p>; fetch(1)",
        "x = <><p>'</p></>; fetch(1)",
        "x = <p><b/><b></b>'</p>; fetch(1)",
    ] {
        expect(source, &["fetch"]);
    }
    expect("x = <XMLHttpRequest/>", &["xhr"]);
    expect("x = <process.A>'</process.A>", &["process"]);
}

#[test]
fn types_and_comparisons_are_no_elements() {
    for source in [
        "f = <T>(x: T) => fetch(x)",
        "f = <T,>(x: T) => fetch(x)",
        "f = <T, U>(x: T) => fetch(x)",
        "f = <T extends U>(x: T) => fetch(x)",
        "f = <T extends {}>(x: T) => fetch(x)",
        "f = <const T>(x: T) => fetch(x)",
        "f = <T = string>(x: T) => fetch(x)",
        "x = <string>fetch(1)",
        "x = <A.B>fetch(1)",
        "x = <T[]>fetch(1)",
        "x = <Map<string, T>>fetch(1)",
        "x = <keyof T>fetch(1)",
        "x = <typeof y>fetch(1)",
        "x = <readonly string[]>fetch(1)",
        "x = <{ a: b }>fetch(1)",
        "x = <'a'>fetch(1)",
        "if (a < b) fetch(1)",
        "a <b> fetch(1)",
        "x = a<b; fetch(1); c>d",
    ] {
        expect(source, &["fetch"]);
    }
}

#[test]
fn the_text_between_tags_is_told_as_such() {
    let source = "x = <p a='b'>it's {c} <b/>d</p>";
    let found: Vec<_> = spans(source.as_bytes())
        .into_iter()
        .filter(|span| matches!(span.kind, SpanKind::Text(_)))
        .map(|Span { kind, range }| (kind, &source[range]))
        .collect();
    let (jsx, string) = (SpanKind::Text(TextKind::Jsx), SpanKind::Text(TextKind::String));
    assert_eq!(found, [(string, "'b'"), (jsx, "it's "), (jsx, " "), (jsx, "d")]);
}

#[test]
fn what_is_never_closed_is_read_to_its_end() {
    for source in
        ["x = <p a", "x = <p a='", "x = <p a={", "x = <><", "x = <></", "x = <>{", "x = <p b></p", "x = <p>}"]
    {
        check(source.as_bytes(), Options::default());
        check(source.repeat(1000).as_bytes(), Options::default());
    }
}
