"""What scripts throw is told whole, with its place, and cannot be made to break or to fake the telling."""

from __future__ import annotations

import copy
import pickle
import unicodedata
from typing import Any

import pytest

from conftest import AnyRuntime, Door
from pydeno import Frame, JavaScriptError, RuntimeConfig, undefined


def thrown(rt: AnyRuntime, code: str, **options: Any) -> JavaScriptError:
    with pytest.raises(JavaScriptError) as caught:
        rt.eval(code, **options)
    assert caught.value.runtime_survives
    assert rt.eval("1 + 1") == 2
    return caught.value


# https://github.com/rubyjs/mini_racer/issues/262, https://github.com/rubyjs/mini_racer/issues/129,
# https://github.com/rubyjs/mini_racer/issues/61, https://github.com/sqreen/PyMiniRacer/issues/42


def test_a_message_of_three_lines_is_whole_and_apart_from_the_stack(rt: AnyRuntime) -> None:
    error = thrown(rt, "throw new Error('one\\ntwo\\nthree')")
    assert error.message == "one\ntwo\nthree"
    assert "two" not in error.stack
    assert str(error) == "Error: one\ntwo\nthree"


def test_a_place_counts_the_users_own_source_and_has_the_given_name(rt: AnyRuntime) -> None:
    source = "\n" * 5 + "function outer() {\n  throw new RangeError('here')\n}\nouter()"
    error = thrown(rt, source, name="dir/report.js")
    assert error.frames == [
        Frame("outer", "dir/report.js", 7, 23),
        Frame("", "dir/report.js", 9, 6),
    ]
    assert error.format() == ("RangeError: here\n    at outer (dir/report.js:7:23)\n    at dir/report.js:9:6")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\u2029"], ids=ascii)
def test_every_line_end_of_the_language_counts_as_one(rt: AnyRuntime, end: str) -> None:
    assert thrown(rt, end.join(["1", "2", "null.x"])).frames[0].line == 3
    error = thrown(rt, end.join(["1", "2", "  let x = ;"]))
    assert error.frames == [Frame("", "script.js", 3, 11)]


def test_a_source_url_does_not_rename_a_script(rt: AnyRuntime) -> None:
    for mark in ("//# sourceURL=other.js", "//@ sourceURL=other.js"):
        for code in (f"null.x\n{mark}", f"{mark}\nnull.x", f"+\n{mark}"):
            assert {frame.file for frame in thrown(rt, code, name="own.js").frames} == {"own.js"}


def test_code_made_from_text_has_its_own_place_and_the_one_where_it_was_made(rt: AnyRuntime) -> None:
    error = thrown(rt, "1;\n\neval('1;\\n  null.x //# sourceURL=other.js')", name="own.js")
    assert error.frames[0] == Frame("", "<eval>", 2, 7)
    assert error.frames[-1] == Frame("", "own.js", 3, 5)
    assert "<eval>:2:7" in error.format()
    error = thrown(rt, "1;\n\nnew Function('null.x')()", name="own.js")
    assert (error.frames[0].file, error.frames[-1].line) == ("<eval>", 3)


def test_a_second_run_has_its_own_places_and_keeps_those_of_the_first(rt: AnyRuntime) -> None:
    rt.eval("function early() {\n\n  null.x\n}", name="first.js")
    error = thrown(rt, "\nearly()", name="second.js")
    assert [(frame.file, frame.line) for frame in error.frames] == [("first.js", 3), ("second.js", 2)]
    assert thrown(rt, "\n\n\n+", name="third.js").frames == [Frame("", "third.js", 4, 2)]


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("+", 1, 2),
        ("foo(", 1, 5),
        ("a b", 1, 3),
        ("x = {\n  a: 1,,\n}", 2, 8),
        ("'open\n1", 1, 6),
        ("1;\n@", 2, 1),
    ],
)
def test_a_syntax_error_has_its_place_to_the_column(
    rt: AnyRuntime, source: str, line: int, column: int
) -> None:
    error = thrown(rt, source)
    assert error.name == "SyntaxError"
    assert error.message
    assert error.frames == [Frame("", "script.js", line, column)]


@pytest.mark.parametrize(
    ("literal", "value", "message"),
    [
        ("undefined", undefined, "undefined"),
        ("null", None, "null"),
        ("0", 0, "0"),
        ("-1.5", -1.5, "-1.5"),
        ("10n", 10, "10n"),
        ("''", "", ""),
        ("'a\\nb'", "a\nb", "a\nb"),
        ("true", True, "true"),
        ("[1, 'x']", [1, "x"], '[1, "x"]'),
        ("{code: 7, extra: {why: [null]}}", {"code": 7, "extra": {"why": [None]}}, None),
        ("new Map([['a', 1]])", {"a": 1}, None),
        ("{name: 'Error', message: 'forged'}", {"name": "Error", "message": "forged"}, None),
    ],
)
def test_what_is_thrown_and_is_no_error_keeps_its_value(
    rt: AnyRuntime, literal: str, value: object, message: str | None
) -> None:
    for code in (f"throw {literal}", f"Promise.reject({literal})"):
        error = thrown(rt, code)
        assert (error.name, error.value, type(error.value)) == ("", value, type(value))
        assert message is None or error.message == message
        assert (error.cause, error.errors, error.properties) == (None, [], {})


def test_extra_fields_name_and_cause_of_an_error_are_there(rt: AnyRuntime) -> None:
    error = thrown(
        rt,
        """class HttpError extends Error { name = 'HttpError'; status = 404; headers = {retry: [1, null]} }
        throw new HttpError('not found', {cause: new TypeError('inner', {cause: 'a text'})})""",
    )
    assert (error.name, error.message) == ("HttpError", "not found")
    assert error.properties == {"status": 404, "headers": {"retry": [1, None]}}
    assert error.value is undefined
    assert isinstance(error.cause, JavaScriptError)
    assert (error.cause.name, error.cause.message, error.cause.cause) == ("TypeError", "inner", "a text")
    assert error.__cause__ is None, "that is for the host's own exceptions"
    assert error.format().splitlines()[0] == "HttpError: not found"
    assert "caused by: TypeError: inner" in error.format()
    assert "caused by: 'a text'" in error.format()


def test_the_errors_of_an_aggregate_are_there(rt: AnyRuntime) -> None:
    error = thrown(rt, "Promise.any([Promise.reject(new RangeError('one')), Promise.reject(2)])")
    first, second = error.errors
    assert error.name == "AggregateError"
    assert isinstance(first, JavaScriptError)
    assert (first.name, first.message, second) == ("RangeError", "one", 2)
    assert "error 1: RangeError: one" in error.format()


def test_a_host_exception_stays_the_cause_that_python_shows(rt: AnyRuntime) -> None:
    def fail() -> None:
        raise ValueError("of the host")

    rt.bind_function("fail", fail)
    error = thrown(rt, "fail()")
    assert isinstance(error.__cause__, ValueError)
    assert error.cause is None


def test_an_error_can_be_copied_and_pickled(rt: AnyRuntime) -> None:
    error = thrown(
        rt,
        "throw Object.assign(new AggregateError([1, new Error('in')], 'm', {cause: 2}), {code: undefined})",
    )
    for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (same.format(), same.properties, same.errors[0]) == (error.format(), error.properties, 1)
        assert same.runtime_survives


# https://github.com/patriksimek/vm2/pull/547, https://github.com/patriksimek/vm2/issues/562

HOSTILE = {
    "a symbol as name": "error.name = Symbol('n')",
    "a number as name": "error.name = 5",
    "a throwing getter as name": "Object.defineProperty(error, 'name', {get() { called(); throw 1 }})",
    "a proxy as name": "error.name = new Proxy({}, {get() { called() }})",
    "a name whose text has no end": "error.name = {toString() { called(); for (;;); }}",
    "a throwing getter as message": "Object.defineProperty(error, 'message', {get() { called(); throw 1 }})",
    "a proxy as message": "error.message = new Proxy({}, {get() { called() }})",
    "a message whose text has no end": "error.message = {toString() { called(); for (;;); }}",
    "a symbol as message": "error.message = Symbol('m')",
    "another stack": "error.stack = 'not@a:stack\\n\\u202e'",
    "a throwing getter as stack": "Object.defineProperty(error, 'stack', {get() { called(); throw 1 }})",
    "a hook that formats stacks": "Error.prepareStackTrace = () => { called(); for (;;); }",
    "a limit of stacks": "Error.stackTraceLimit = {valueOf() { called(); for (;;); }}",
    "a frozen error": "Object.freeze(error)",
    "an error that causes itself": "error.cause = error",
    "a throwing getter as cause": "Object.defineProperty(error, 'cause', {get() { called(); throw 1 }})",
    "a proxy as cause": "error.cause = new Proxy(new Error(), {get() { called() }, getPrototypeOf() { called() }})",
    "an error that has itself": "error.self = {deep: [error]}",
    "a throwing getter as extra field": "Object.defineProperty(error, 'code', {enumerable: true, get() { called() }})",
    "a proxy as prototype": "Object.setPrototypeOf(error, new Proxy(Error.prototype, {get() { called() }}))",
    "no prototype": "Object.setPrototypeOf(error, null)",
    "a place that is no number": "error.line = {valueOf() { called(); return 1 }}; error.column = Symbol()",
    "an aggregate of a proxy": "error.errors = new Proxy([error], {get() { called() }})",
    "an aggregate that holds itself": "error.errors = [error, [error]]",
    "a hundred thousand fields": "for (let i = 0; i < 1e5; i++) error['field' + i] = i",
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_an_error_made_to_break_its_reporting_is_reported_without_running_its_code(
    door: Door, change: str
) -> None:
    calls: list[int] = []
    with door(RuntimeConfig(timeout=5)) as rt:
        rt.bind_function("called", lambda: calls.append(1))
        rt.eval("let error")
        make = f"error = new TypeError('m'); error.stack; {change};"
        for code in (
            f"{make} throw error",
            f"{make} Promise.reject(error)",
            f"(async () => {{ {make} throw error }})()",
        ):
            error = thrown(rt, code)
            assert isinstance(str(error), str)
            assert isinstance(error.format(), str)
            assert len(error.properties) <= 64
            # The guest is never handed the error of the host's telling.
            assert (
                rt.eval(f"(() => {{ try {{ {make} throw error }} catch (e) {{ return e === error }} }})()")
                is True
            )
        assert calls == []


@pytest.mark.parametrize("name", ["name", "message", "stack", "cause"])
def test_the_same_getters_do_run_when_the_script_itself_looks(rt: AnyRuntime, name: str) -> None:
    calls: list[int] = []
    rt.bind_function("called", lambda: calls.append(1))
    rt.eval("let error")
    change = next(change for what, change in HOSTILE.items() if what == f"a throwing getter as {name}")
    thrown(rt, f"error = new Error('m'); {change}; throw error")
    assert calls == []
    rt.eval(f"try {{ error.{name} }} catch {{}} 0")
    assert calls == [1]


def test_causes_and_aggregates_without_an_end_are_cut(rt: AnyRuntime) -> None:
    error: Any = thrown(
        rt, "let e = new Error(0); for (let i = 1; i < 1e4; i++) e = new Error(i, {cause: e}); throw e"
    )
    depth = 0
    while error is not None:
        depth, error = depth + 1, error.cause
    assert depth == 9
    rt.eval("const tree = d => new AggregateError(d ? Array.from({length: 30}, () => tree(d - 1)) : [], 'm')")
    error = thrown(rt, "throw tree(2)")
    assert 1 <= len(error.errors) <= 16
    assert len(error.format()) < 1 << 17


# Every kind of character that a terminal obeys or a person does not see, and what else is stripped for the same reason.
UNSAFE = {
    "C0": [*range(0x09), *range(0x0B, 0x20), 0x7F],
    "C1": [*range(0x80, 0xA0)],
    "bidirectional marks": [0x061C, 0x200E, 0x200F],
    "bidirectional embeddings, overrides and isolates": [*range(0x202A, 0x202F), *range(0x2066, 0x206A)],
    "zero-width": [0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF],
    "invisible operators": [*range(0x2061, 0x2065)],
    "deprecated format controls": [*range(0x206A, 0x2070)],
    "line and paragraph separators": [0x2028, 0x2029],
    "soft hyphen and joiners": [0x00AD, 0x034F, 0x180E],
    "fillers": [0x115F, 0x1160, 0x3164, 0xFFA0],
    "variation selectors": [*range(0xFE00, 0xFE10), 0xE0100, 0xE01EF],
    "tags": [0xE0001, *range(0xE0020, 0xE0030), *range(0xE0060, 0xE0080)],
    "interlinear annotations": [0xFFF9, 0xFFFA, 0xFFFB],
}
CLEAN = "a\tb\nc é ß 漢字 \U0001f600 עברית"


@pytest.mark.parametrize("points", UNSAFE.values(), ids=UNSAFE.keys())
def test_no_character_that_a_terminal_obeys_or_a_person_misses_is_shown(
    rt: AnyRuntime, points: list[int]
) -> None:
    unsafe = "".join(map(chr, points))
    units = unsafe.encode("utf-16-be")
    literal = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    code = f"""class Own extends Error {{ name = 'N{literal}n' }}
        const error = new Own('m{literal}m', {{cause: 'c{literal}c'}});
        error.stack = 'f{literal}n@file{literal}.js:1:2\\nlast@[native code]';
        throw error"""
    error = thrown(rt, code)
    assert (error.name, error.message) == (f"N{unsafe}n", f"m{unsafe}m")
    assert error.frames[0] == Frame(f"f{unsafe}n", f"file{unsafe}.js", 1, 2)
    assert str(error) == "Nn: mm"
    shown = str(error) + error.format()
    assert not set(shown) & set(unsafe)
    assert error.format().splitlines()[1:3] == ["    at fn (file.js:1:2)", "    at last"]


def test_text_that_does_no_harm_is_shown_as_it_is(rt: AnyRuntime) -> None:
    rt.bind_function("clean", lambda: CLEAN)
    error = thrown(rt, "throw new Error(clean())")
    assert str(error) == f"Error: {CLEAN}"
    assert error.format().startswith("Error: a\tb\n  | c é ß 漢字 \U0001f600 עברית\n    at ")


def test_nothing_of_the_format_class_is_shown(rt: AnyRuntime) -> None:
    controls = [
        chr(point)
        for point in range(0x110000)
        if unicodedata.category(chr(point)) in {"Cc", "Zl", "Zp"} and chr(point) not in "\t\n"
    ]
    rt.bind_function("controls", lambda: "".join(controls))
    assert str(thrown(rt, "throw new Error(controls())")) == "Error"


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[31m",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x9b31m",
        "\x1bc",
        "\x1b[2J",
        "\r",
        "\x08",
        "\x07",
    ],
    ids=ascii,
)
def test_a_sequence_for_a_terminal_arrives_as_harmless_letters(rt: AnyRuntime, sequence: str) -> None:
    rt.bind_function("sequence", lambda: f"a{sequence}b")
    error = thrown(rt, "throw new Error(sequence())")
    assert error.message == f"a{sequence}b"
    assert str(error) == "Error: a" + "".join(c for c in sequence if c.isprintable()) + "b"
    assert str(thrown(rt, "throw sequence()")) == str(error).removeprefix("Error: ")
    assert not set(error.format()) & set("\x1b\x9b\x07\x08\r")


def test_a_message_cannot_pass_for_frames_or_causes(rt: AnyRuntime) -> None:
    error = thrown(
        rt, "throw new Error('x\\n    at forged (bank.js:1:1)\\ncaused by: nothing')", name="own.js"
    )
    assert error.format().splitlines() == [
        "Error: x",
        "  |     at forged (bank.js:1:1)",
        "  | caused by: nothing",
        "    at own.js:1:16",
    ]


def test_what_is_shown_is_bounded_and_what_is_kept_is_whole(rt: AnyRuntime) -> None:
    error = thrown(rt, "throw new Error('x'.repeat(2e5))")
    assert len(error.message) == 200_000
    assert len(str(error)) < 70_000
    assert str(error).endswith("…")
    deep = thrown(rt, "(function f() { f() })()")
    assert deep.name == "RangeError"
    assert len(deep.format().splitlines()) < 80
