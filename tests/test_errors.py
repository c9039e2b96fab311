"""Errors say what happened, where, and what is still alive."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pydeno
from pydeno import IsolatedRuntime, JavaScriptError, Runtime, RuntimeClosed, RuntimeConfig

AnyRuntime = Runtime | IsolatedRuntime


def error_of(rt: AnyRuntime, code: str, name: str = "script.js") -> JavaScriptError:
    with pytest.raises(JavaScriptError) as caught:
        rt.eval(code, name=name)
    assert caught.value.kind == "js_error"
    assert caught.value.runtime_survives
    return caught.value


def test_an_error_keeps_name_message_and_frames(rt: AnyRuntime) -> None:
    error = error_of(rt, "function f() {\n  null.x\n}\nf()", name="report.js")
    assert error.name == "TypeError"
    assert "null" in error.message
    assert str(error).startswith("TypeError: ")
    inner, outer = error.frames[:2]
    assert (inner.function, inner.file, inner.line) == ("f", "report.js", 2)
    assert (outer.file, outer.line) == ("report.js", 4)


def test_a_message_of_several_lines_stays_whole(rt: AnyRuntime) -> None:
    assert error_of(rt, "throw new RangeError('one\\ntwo\\nthree')").message == "one\ntwo\nthree"


def test_a_syntax_error_has_its_place(rt: AnyRuntime) -> None:
    error = error_of(rt, "1;\n2;\n+", name="broken.js")
    assert error.name == "SyntaxError"
    assert error.frames[0].file == "broken.js"
    assert error.frames[0].line == 3


@pytest.mark.parametrize(
    ("thrown", "message"), [("'text'", "text"), ("42", "42"), ("null", "null"), ("undefined", "undefined")]
)
def test_what_is_no_error_keeps_its_text(rt: AnyRuntime, thrown: str, message: str) -> None:
    error = error_of(rt, f"throw {thrown}")
    assert error.name == ""
    assert error.message == message


@pytest.mark.parametrize(
    "code",
    [
        "const e = new Error('m'); e.name = Symbol('n'); throw e",
        "const e = new Error('m'); Object.defineProperty(e, 'name', {get() { throw 1 }}); throw e",
        "const e = new Error('m'); Object.defineProperty(e, 'stack', {get() { throw 1 }}); throw e",
        "throw new Proxy(new Error('m'), {get() { throw 1 }})",
        "throw {toString() { throw 1 }}",
        "throw Object.create(null)",
        "throw Symbol('s')",
        "throw () => 1",
        "Promise.reject(Object.freeze(new Error('m')))",
        "const e = new AggregateError([], 'm'); e.errors.push(e); throw e",
    ],
)
def test_an_error_made_to_break_its_reporting_is_still_an_error(rt: AnyRuntime, code: str) -> None:
    assert isinstance(str(error_of(rt, code)), str)


def test_a_rejected_promise_is_its_reason(rt: AnyRuntime) -> None:
    error = error_of(rt, "Promise.reject(new TypeError('late'))")
    assert (error.name, error.message) == ("TypeError", "late")


def test_a_promise_that_can_never_settle_is_an_error_at_once(rt: AnyRuntime) -> None:
    assert "never settle" in str(error_of(rt, "new Promise(() => {})"))


def test_text_of_the_guest_cannot_talk_to_the_terminal(rt: AnyRuntime) -> None:
    error = error_of(rt, "throw new Error('a\\u001b[31m\\u202e\\u0007b')")
    assert str(error) == "Error: a[31mb"
    assert error.message == "a\x1b[31m\u202e\x07b"


@pytest.mark.parametrize("code", [b"1", 1, None, ["1"]])
def test_a_source_that_is_not_text_is_a_type_error(rt: AnyRuntime, code: Any) -> None:
    with pytest.raises(TypeError, match="code must be str"):
        rt.eval(code)


def test_a_source_with_a_lone_surrogate_runs(rt: AnyRuntime) -> None:
    assert rt.eval("'\ud800'.length") == 1


def test_a_closed_runtime_says_so(door: Any) -> None:
    runtime = door()
    runtime.close()
    runtime.close()
    assert runtime.is_closed()
    uses: list[Callable[[], object]] = [
        lambda: runtime.eval("1"),
        lambda: runtime.bind_function("f", int),
        lambda: runtime.bind_object("o", {"f": int}),
    ]
    for use in uses:
        with pytest.raises(RuntimeClosed, match="closed") as caught:
            use()
        assert caught.value.kind == "closed"


def test_every_exported_name_exists_and_every_error_has_a_kind() -> None:
    for name in pydeno.__all__:
        exported = getattr(pydeno, name)
        if isinstance(exported, type) and issubclass(exported, pydeno.PydenoError):
            assert isinstance(exported.kind, str)
            assert exported.__doc__


def test_undefined_survives_pickle_and_copy() -> None:
    assert pickle.loads(pickle.dumps(pydeno.undefined)) is pydeno.undefined
    assert pydeno.UndefinedType() is pydeno.undefined


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout": 0}, pydeno.InvalidInput),
        ({"timeout": -1}, pydeno.InvalidInput),
        ({"timeout": float("nan")}, pydeno.InvalidInput),
        ({"timeout": float("inf")}, pydeno.InvalidInput),
        ({"timeout": "1"}, TypeError),
        ({"max_memory": 0}, pydeno.InvalidInput),
        ({"max_memory": 1.5}, TypeError),
        ({"max_memory": True}, TypeError),
        ({"max_host_calls": -1}, pydeno.InvalidInput),
        ({"sandbox": "maybe"}, pydeno.InvalidInput),
        ({"jit": "on"}, pydeno.InvalidInput),
        ({"redact_host_errors": 1}, TypeError),
        ({"no_such_option": 1}, TypeError),
    ],
)
def test_an_option_out_of_range_is_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        IsolatedRuntime(**options)


def test_a_configuration_is_checked_and_stays_as_it_is() -> None:
    config = RuntimeConfig(timeout=2, max_serialization_depth=10)
    assert config.timeout == 2.0
    with pytest.raises(AttributeError):
        config.timeout = 3
    with pytest.raises(pydeno.InvalidInput):
        RuntimeConfig(max_serialization_depth=0)
    with pytest.raises(pydeno.InvalidInput):
        RuntimeConfig(max_serialization_depth=513)
    with pytest.raises(TypeError):
        RuntimeConfig(bootstrap=b"1")  # type: ignore[arg-type]


def test_state_persists_between_evaluations(rt: AnyRuntime) -> None:
    rt.eval("let a = 1; const b = 2; function f() { return a + b } class C { m() { return f() } }")
    assert rt.eval("a = 10; new C().m()") == 12


def test_bootstrap_runs_first_and_its_names_stay(door: Any) -> None:
    with door(RuntimeConfig(bootstrap="const library = {twice: x => 2 * x}")) as runtime:
        assert runtime.eval("library.twice(21)") == 42


def test_console_lines_arrive_in_order_and_exist_only_when_asked_for(door: Any) -> None:
    lines: list[tuple[str, str]] = []
    with door(RuntimeConfig(on_console=lambda level, text: lines.append((level, text)))) as runtime:
        runtime.eval("console.log('a', 1, true, null); console.error(new Proxy({}, {})); console.warn('z')")
    assert lines[0] == ("log", "a 1 true null")
    assert [level for level, _ in lines] == ["log", "error", "warn"]
    with door() as runtime:
        assert runtime.eval("typeof console") == "undefined"


def test_names_and_numbers_at_their_ends_are_taken_or_refused() -> None:
    with IsolatedRuntime(RuntimeConfig(max_heap_size=2**62), max_memory=2**62, max_host_calls=2**62) as rt:
        assert rt.eval("1", name="") == 1
        with pytest.raises(pydeno.InvalidInput):
            rt.eval("1", name="n" * (1 << 20))
        with pytest.raises(pydeno.InvalidInput):
            rt.bind_function("n" * (1 << 20), int)
        assert rt.eval("1 + 1") == 2
