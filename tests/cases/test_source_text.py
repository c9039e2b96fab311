"""Sources that a scanner may misread run as the language says, and the check finds in them what is there.

`tests/test_preflight_oracle.py` compares the scanner with a parser on far more; here each source also runs.
"""

from __future__ import annotations

import pytest

from conftest import AnyRuntime
from pydeno import JavaScriptError, check_source


def rules(code: str) -> list[str]:
    return [finding.rule for finding in check_source(code).findings]


# A call that is found shows that the scanner has not lost its place before it.
MARK = "\nif (false) fetch(1);"


RUNS = [
    # https://github.com/endojs/endo/issues/1837, https://github.com/Agoric/realms-shim/issues/37
    ("let n = 3, seen = []; while (n --> 0) seen.push(n); seen", [2, 1, 0]),
    ("let m = 1; // an arrow --> in a comment\nm", 1),
    ("let k = 1; <!-- hides the rest of the line, fetch(2)\nk", 1),
    ("let j = 1;\n--> hides it too, fetch(2)\nj", 1),
    ("let h = 5; [h-->0, h]", [True, 4]),
    # https://github.com/Agoric/SwingSet/issues/115, https://github.com/endojs/endo/issues/773,
    # https://github.com/endojs/endo/issues/498
    ("// this is what we import\n// (from nowhere)\n1", 1),
    (
        "class A { import() { return 2 } static require() { return 3 } } [new A().import(), A.require()]",
        [2, 3],
    ),
    ("/** @type {import('./x').Y} */ let typed = 4; typed", 4),
    ("'import(1)'.length + /import\\(1\\)/.source.length", 20),
    ("({import: 1, require: 2, eval: 3, Function: 4, process: 5, constructor: 6}).import", 1),
    ("const o = {import: 7}; o.import + `import(1) require(2)`.length", 27),
    ("const p = {process: {env: 1}}; p.process.env", 1),
    # https://github.com/guybedford/es-module-lexer/issues/177
    ("let of = 8, g = 2; if (of / 2 / g) of / g / 2", 2),
    ("var async = 8, get = 2, set = 2, let_ = 1; async / get / set", 2),
    ("var yield = 8, await = 2, static = 2; yield / await / static", 2),
    ("var let = 6; let / 2 / 3", 1),
    ("(() => { return /`/ })().source", "`"),
    ("typeof /'/ + (x => /\"/)().source", 'object"'),
    ("switch ('`') { case /`/.source: 1; break }", 1),
    ("if (0) 1; else /'/.test(\"'\")", True),
    ("do /`/.test('`'); while (0)", True),
    # https://github.com/jerryscript-project/jerryscript/issues/652, https://github.com/frostney/GocciaScript/issues/743,
    # https://github.com/espruino/Espruino/issues/2424, https://github.com/calmjs/calmjs.parse/pull/26
    ("(function () { return this / 2 / '1' }).call(8)", 4),
    ("let i = 8; i++ / 2 / '1'", 4),
    ("(8) / 2 / '1'", 4),
    ("[8][0] / 2 / '1'", 4),
    ("+{valueOf() { return 8 }} / 2 / '1'", 4),
    ("({return: 8}).return / 2 / '1'", 4),
    ("true / 2 / '1'", 0.5),
    ("if (1) { 0 } /'/.test(\"'\")", True),
    ("let a = 8, b = 2, c = '4'; a / b + '/' + c / b", "4/2"),
    ("let q = 8; q /* ' */ / /* ` */ 2", 4),
    ("/[/'`]/.test('/')", True),
    # https://github.com/rokucommunity/brighterscript/pull/1789
    ("`${/[}]/.test('}')}`", "true"),
    ("`a${`b${`c${1}`}`}`", "abc1"),
    ("(strings => strings.raw[0])`\\u{bad}\\xg`", "\\u{bad}\\xg"),
    ("`${/* ` } */ 1}${ {a: 2}.a }${(() => { return 3 })()}${`$${4}`}`", "123$4"),
]


@pytest.mark.parametrize(("code", "value"), RUNS)
def test_a_source_that_looks_like_something_else_runs_and_is_read_as_it_is(
    rt: AnyRuntime, code: str, value: object
) -> None:
    assert rt.eval(code) == value
    assert rules(code) == []
    assert rules(code + MARK) == ["fetch"]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import/* split */('x')", ["dynamic-import"]),
        ("import\n\n('x')", ["dynamic-import"]),
        ("import // split\n('x')", ["dynamic-import"]),
        ("`${import('x')}`", ["dynamic-import"]),
        ("while (x --> 0) fetch(1)", ["fetch"]),
        ("`${/[}]/.test(fetch(1))}`", ["fetch"]),
        ("if (of / 2) require('a') / 2", ["require"]),
    ],
)
def test_what_is_really_there_is_found_between_such_forms(code: str, found: list[str]) -> None:
    assert rules(code) == found


def test_a_default_export_of_a_regular_expression_is_read_to_its_end() -> None:
    assert rules("export default /`/; fetch(1)") == ["static-export", "fetch"]


def test_a_dynamic_import_is_refused_by_the_runtime_itself(rt: AnyRuntime) -> None:
    with pytest.raises(JavaScriptError):
        rt.eval("import('x')")
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("import.meta")
    assert caught.value.name == "SyntaxError"
