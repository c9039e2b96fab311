//! Types are not code: they give no findings, and what follows them is read as if they were not there.

use pydeno_preflight::{Options, check};

#[track_caller]
fn expect(source: &str, rules: &[&str]) {
    let report = check(source.as_bytes(), Options::default());
    let found: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(found, rules, "{source:?}");
}

#[test]
fn names_in_types_are_no_findings() {
    for source in [
        "let socket: WebSocket",
        "let socket: WebSocket | null = null",
        "const sockets: Map<string, WebSocket[]> = new Map()",
        "function f(socket: WebSocket, request?: XMLHttpRequest): WebSocket {}",
        "const f = (socket: WebSocket): Promise<WebSocket> => 1",
        "async <T extends WebSocket>(x: T) => x",
        "type Handler = (socket: WebSocket) => process.Result",
        "type A<T = WebSocket> = T extends WebSocket ? XMLHttpRequest : { a: WebSocket }",
        "type A =\n  | WebSocket\n  | XMLHttpRequest\nlet x = 1",
        "interface Client extends Base<WebSocket> { socket: WebSocket; fetch(url: string): void }",
        "export interface Client { fetch(url: string): void }",
        "class A<T extends WebSocket> extends B<WebSocket> implements C<WebSocket>, D { private s?: WebSocket = 1; t!: WebSocket }",
        "class A { constructor(private readonly socket: WebSocket) {} get(x: WebSocket): WebSocket { return x } }",
        "x as WebSocket",
        "x satisfies WebSocket as any",
        "const f = function <T extends WebSocket>(x: T): x is WebSocket { return true }",
        "new Map<string, WebSocket>()",
        "let a: typeof import('a')",
        "let a: import('a').B = 1",
        "let a: b[] | import('c').D<import('e').F> | import('g').H = 1",
        "function f(): import('a').B { }",
        "function f(this: WebSocket, ...rest: WebSocket[]): asserts this is WebSocket {}",
        "let a: new (x: WebSocket) => WebSocket",
        "let a: readonly WebSocket[], b: keyof WebSocket, c: [WebSocket, s: WebSocket]",
        "let {a, b}: WebSocket = x",
        "({ f(): WebSocket { return 1 } })",
        "for (const a of b as WebSocket[]) ;",
        "declare function f(a: WebSocket): void",
        "enum A { fetch = 1 }",
        "abstract class A { abstract f(): WebSocket; protected g(): void {} }",
        "import type { WebSocket } from 'ws'",
        "import type A from 'a'",
        "import type * as a from 'a'",
        "import type from from 'a'",
        "export type { A } from 'a'",
        "export type A = WebSocket",
        "function f(a: WebSocket): void\nfunction f(a: any) {}",
    ] {
        expect(source, &[]);
    }
}

#[test]
fn code_around_types_is_read() {
    for source in [
        "let a: WebSocket = fetch(1)",
        "let a: import('b').C = fetch(1)",
        "const f = (a: WebSocket): void => { fetch(1) }",
        "const f = (a: WebSocket): void => fetch(1)",
        "function f(a: WebSocket = fetch(1)): void {}",
        "function f(): { a: string } { fetch(1) }",
        "type A = WebSocket; fetch(1)",
        "type A = { a: WebSocket }\nfetch(1)",
        "interface A { a: WebSocket }\nfetch(1)",
        "class A { a: WebSocket = fetch(1) }",
        "class A { a: WebSocket\n b() { fetch(1) } }",
        "(x as WebSocket).y; fetch(1)",
        "x! / fetch(1) / y",
        "f<T>(fetch(1))",
        "a < b; fetch(1); c > d",
        "a < b / fetch(1) / c",
        "if (a < b && c > d) fetch(1)",
        "new Map<string, WebSocket>(fetch(1))",
        "@decorate(fetch(1)) class A {}",
        "class A { @decorate() a: WebSocket; @decorate b = fetch(1) }",
        "import type A from 'a'; fetch(1)",
        "let a = <WebSocket>fetch(1)",
        "a ? b as WebSocket : fetch(1)",
        "function f(a: WebSocket): void\nfunction f(a: any) { fetch(1) }",
    ] {
        expect(source, &["fetch"]);
    }
}

#[test]
fn plain_javascript_is_not_taken_for_types() {
    for source in [
        "a ? b : WebSocket",
        "a ? b ? c : d : WebSocket",
        "a ? {b: 1} : WebSocket",
        "a ? (b) : WebSocket",
        "a ?.5 : WebSocket",
        "({a: WebSocket})",
        "({a: b ? c : WebSocket})",
        "({[a]: WebSocket})",
        "({'a': WebSocket, 1: b})",
        "f({a: WebSocket})",
        "a: WebSocket",
        "switch (a) { case b: WebSocket }",
        "switch (a) { case b ? c : d: WebSocket }",
        "switch (a) { default: WebSocket }",
        "type = WebSocket",
        "type\nWebSocket",
        "a = b\nas\nWebSocket",
        "a < WebSocket && b > c",
        "a << WebSocket",
        "x = y < WebSocket, z > w",
        "let {a: b = WebSocket} = c",
        "for (a of WebSocket) ;",
    ] {
        expect(source, &["websocket"]);
    }
    expect("import type from 'a'", &["static-import"]);
    expect("import type, {a} from 'a'", &["static-import"]);
    expect("import {type A} from 'a'", &["static-import"]);
}
