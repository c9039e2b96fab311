"""Values that have broken other sandboxes, each with the one outcome that it has here."""

from __future__ import annotations

import enum
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import pydeno
from conftest import AnyRuntime, Door
from pydeno import ConversionError, JavaScriptError, RuntimeConfig, undefined

# In Python source these are what they say; in JavaScript source they are written with escapes.
STRINGS = {
    "a NUL in the middle": ("a\0b", "'a\\0b'"),
    "a lone high surrogate at the end": ("ab\ud83d", "'ab\\ud83d'"),
    "a lone low surrogate": ("\ude00b", "'\\ude00b'"),
    "characters outside the basic plane": ("\U0001f600\U0001d49c", "'\\u{1f600}\\u{1d49c}'"),
}
AWKWARD = pytest.mark.parametrize(("text", "literal"), STRINGS.values(), ids=STRINGS.keys())


def refused(rt: AnyRuntime, code: str) -> tuple[str, str]:
    """The path and the text of a value that does not cross."""
    with pytest.raises(ConversionError) as caught:
        rt.eval(code)
    assert isinstance(caught.value, TypeError)
    assert caught.value.runtime_survives
    assert rt.eval("1 + 1") == 2
    return caught.value.path, str(caught.value)


# https://github.com/PetterS/quickjs/issues/69, https://github.com/justjake/quickjs-emscripten/issues/77


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("Symbol()", "$"),
        ("Symbol('short')", "$"),
        ("Symbol.iterator", "$"),
        ("Symbol.for('registered')", "$"),
        ("[1, Symbol('inside')]", "$[1]"),
        ("({a: [{b: Symbol()}]})", "$.a[0].b"),
        ("new Map([[Symbol(), 1]])", "$"),
    ],
)
def test_a_symbol_is_a_conversion_error_that_says_where(rt: AnyRuntime, code: str, path: str) -> None:
    found, text = refused(rt, code)
    assert found.startswith(path)
    assert "symbol" in text


def test_a_symbol_as_a_key_is_no_part_of_the_value(rt: AnyRuntime) -> None:
    assert rt.eval("({[Symbol('key')]: 1, a: 2})") == {"a": 2}


def test_a_thrown_symbol_is_an_error_with_its_description(rt: AnyRuntime) -> None:
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("throw Symbol('thrown')")
    assert (caught.value.name, caught.value.message) == ("", "Symbol(thrown)")


def test_a_symbol_given_to_a_host_function_is_a_type_error_in_the_script(rt: AnyRuntime) -> None:
    rt.bind_function("take", lambda *_: None)
    assert "symbol" in rt.eval(
        "try { take(1, [Symbol()]) } catch (e) { e instanceof TypeError && e.message }"
    )


# https://github.com/sqreen/PyMiniRacer/pull/35, https://github.com/rubyjs/mini_racer/pull/335,
# https://github.com/Distributive-Network/PythonMonkey/issues/89, https://github.com/pydantic/monty/pull/355


@AWKWARD
def test_an_awkward_string_is_kept_as_result_key_argument_and_answer(
    rt: AnyRuntime, text: str, literal: str
) -> None:
    taken: list[object] = []
    rt.bind_function("take", taken.append)
    rt.bind_function("give", lambda: text)
    assert rt.eval(literal) == text
    assert rt.eval(f"[{literal}, {{[{literal}]: {literal}}}]") == [text, {text: text}]
    rt.eval(f"take({literal}); take({{[{literal}]: 1}})")
    assert taken == [text, {text: 1}]
    assert rt.eval(f"give() === {literal}") is True


@AWKWARD
def test_an_awkward_string_is_kept_in_errors_and_on_the_console(door: Door, text: str, literal: str) -> None:
    lines: list[tuple[str, str]] = []
    with door(RuntimeConfig(on_console=lambda level, line: lines.append((level, line)))) as rt:
        rt.eval(f"console.log({literal}); console.error({literal}, {literal})")
        with pytest.raises(JavaScriptError) as caught:
            rt.eval(f"throw new Error({literal})")
        assert rt.eval("1 + 1") == 2
    assert lines == [("log", text), ("error", f"{text} {text}")]
    assert caught.value.message == text
    str(caught.value).encode("utf-8")


@AWKWARD
def test_an_awkward_string_may_stand_in_the_source_itself(rt: AnyRuntime, text: str, literal: str) -> None:
    assert rt.eval(f"'{text}'") == text
    assert rt.eval(f"'{text}' === {literal}") is True


def test_a_surrogate_pair_written_in_two_halves_stays_two_halves(door: Door) -> None:
    lines: list[str] = []
    with door(RuntimeConfig(on_console=lambda _, line: lines.append(line))) as rt:
        rt.eval("console.log('\\ud83d'); console.log('\\ude00'); console.log('\\ud83d', '\\ude00')")
        assert rt.eval("'\\ud83d' + '\\ude00'") == "\U0001f600"
    assert lines == ["\ud83d", "\ude00", "\ud83d \ude00"]


def test_a_source_that_no_lexer_takes_is_a_syntax_error_of_the_script(rt: AnyRuntime) -> None:
    for source in ("a\ud800 = 1", "\ud800", "\0", "\ufffd"):
        with pytest.raises(JavaScriptError) as caught:
            rt.eval(source)
        assert caught.value.name == "SyntaxError"
        assert caught.value.frames[0].line == 1


def test_a_name_that_cannot_stand_in_a_stack_is_refused(rt: AnyRuntime) -> None:
    for name in ("a\ud800.js", "a\nb.js"):
        with pytest.raises(pydeno.InvalidInput, match="well-formed"):
            rt.eval("1", name=name)
    with pytest.raises(TypeError, match="name must be str"):
        rt.eval("1", name=1)  # type: ignore[arg-type]
    for name in ("a\0b.js", "\U0001f600.js", "dir:1/x y@z.js"):
        with pytest.raises(JavaScriptError) as caught:
            rt.eval("throw new Error()", name=name)
        assert caught.value.frames[0].file == name


# https://github.com/Distributive-Network/PythonMonkey/pull/8, https://github.com/pyodide/pyodide/pull/1407,
# https://github.com/pyodide/pyodide/issues/5084


class Number(enum.IntEnum):
    THREE = 3


class Scalar:
    """An integer of another library, as its protocol has it."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Broken:
    """Says that it is an integer, and fails."""

    def __index__(self) -> int:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "value",
    [-75, 0, 2**53 - 1, -(2**53) + 1, 2**53, 2**53 + 1, -(2**63), 2**64, 2**200, -(2**200), True, False],
)
def test_an_integer_comes_back_as_it_went_in(rt: AnyRuntime, value: int) -> None:
    rt.bind_function("identity", lambda x: x)
    rt.bind_function("give", lambda: value)
    for code in ("give()", "identity(give())", "[give()][0]", "({a: give()}).a"):
        back = rt.eval(code)
        assert (back, type(back)) == (value, type(value))


def test_integers_are_numbers_as_long_as_they_are_safe_and_bigints_beyond(rt: AnyRuntime) -> None:
    values = [2**53 - 1, 2**53, -(2**53), True]
    rt.bind_function("give", lambda: values)
    assert rt.eval("give().map(value => typeof value)") == ["number", "bigint", "bigint", "boolean"]


def test_a_whole_float_comes_back_as_an_integer_and_any_other_as_it_was(rt: AnyRuntime) -> None:
    rt.bind_function("identity", lambda x: x)
    values = [3.0, 2.0**60, 0.1, 1e308]
    rt.bind_function("give", lambda: values)
    back = rt.eval("identity(give())")
    assert back == values
    assert [type(value) for value in back] == [int, float, float, float]


def test_a_member_of_an_enumeration_of_integers_is_its_integer(rt: AnyRuntime) -> None:
    rt.bind_function("give", lambda: [Number.THREE, {"n": Number.THREE}])
    assert rt.eval("give()") == [3, {"n": 3}]


def test_an_integer_of_another_library_is_its_integer_or_an_error(rt: AnyRuntime) -> None:
    rt.bind_function("give", lambda value: Scalar(int(value)))
    assert rt.eval("[give(-75), give(2n ** 63n)]") == [-75, 2**63]
    rt.bind_function("broken", Broken)
    with pytest.raises(JavaScriptError):
        rt.eval("broken()")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (Decimal("1.5"), "$"),
        (Fraction(1, 2), "$"),
        (1j, "$"),
        ({1: 2}, "$"),
        ([{2**60: 1}], "$[0]"),
        ({"a": [Decimal(1)]}, "$.a[0]"),
    ],
)
def test_what_is_nearly_a_number_is_refused_with_its_place_and_a_way_out(
    rt: AnyRuntime, value: object, path: str
) -> None:
    rt.bind_function("give", lambda: value)
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("give()")
    cause = caught.value.__cause__
    assert isinstance(cause, ConversionError)
    assert (isinstance(cause, TypeError), cause.path) == (True, path)
    assert "; pass " in str(cause) or "convert" in str(cause)


# https://github.com/vercel-labs/agent-browser/issues/1936, https://github.com/vercel-labs/agent-browser/pull/1937

SPECIAL = ["NaN", "Infinity", "-Infinity", "-0", "undefined", "null", "0"]


def told_apart(values: list[Any]) -> bool:
    nan, infinity, minus_infinity, minus_zero, nothing, null, zero = values
    return (
        (isinstance(nan, float) and math.isnan(nan))
        and (infinity, minus_infinity) == (math.inf, -math.inf)
        and (isinstance(minus_zero, float) and math.copysign(1, minus_zero) == -1 and minus_zero == 0)
        and (nothing is undefined and null is None)
        and (type(zero) is int and zero == 0)
    )


def test_numbers_that_json_has_not_are_told_apart_at_the_top_inside_and_as_arguments(rt: AnyRuntime) -> None:
    taken: list[Any] = []
    rt.bind_function("take", lambda *values: taken.extend(values))
    rt.bind_function("identity", lambda x: x)
    listed = f"[{', '.join(SPECIAL)}]"
    assert told_apart([rt.eval(code) for code in SPECIAL])
    assert told_apart(rt.eval(listed))
    assert told_apart(list(rt.eval(f"Object.fromEntries({listed}.map((v, i) => ['k' + i, v]))").values()))
    rt.eval(f"take(...{listed})")
    assert told_apart(taken)
    same = f"{listed}.every((v, i) => Object.is(v, back[i]))"
    assert rt.eval(f"const back = identity({listed}); {same}") is True


def test_holes_and_properties_without_a_value_read_as_undefined(rt: AnyRuntime) -> None:
    assert rt.eval("[1, , 2]") == [1, undefined, 2]
    assert rt.eval("const sparse = []; sparse[3] = 1; sparse") == [undefined, undefined, undefined, 1]
    assert rt.eval("({a: undefined})") == {"a": undefined}


# https://github.com/pyodide/pyodide/issues/5849, https://github.com/pyodide/pyodide/issues/5740


def test_null_is_none_at_every_depth_and_json_takes_it(rt: AnyRuntime) -> None:
    value = rt.eval("({a: null, b: {c: [null, {d: null}]}, e: [[[null]]]})")
    assert value == {"a": None, "b": {"c": [None, {"d": None}]}, "e": [[[None]]]}
    assert json.loads(json.dumps(value)) == value
    mixed = rt.eval("({a: null, b: undefined, c: [null, undefined]})")
    assert mixed == {"a": None, "b": undefined, "c": [None, undefined]}
    assert json.dumps(mixed, default=lambda _: None) == '{"a": null, "b": null, "c": [null, null]}'


def test_none_goes_in_as_null_everywhere(rt: AnyRuntime) -> None:
    rt.bind_function("nothing", lambda: None)
    rt.bind_function("inside", lambda: {"a": None, "b": [None]})
    rt.bind_function("defaulted", lambda value=None: value)
    assert (
        rt.eval("[nothing(), inside().a, inside().b[0], defaulted()].every(value => value === null)") is True
    )
    assert rt.eval("defaulted(undefined) === undefined && defaulted(null) === null") is True


# https://github.com/laverdet/isolated-vm/issues/317, https://github.com/laverdet/isolated-vm/issues/482,
# https://github.com/laverdet/isolated-vm/issues/234


def test_logging_never_fails_the_script(door: Door) -> None:
    lines: list[str] = []
    with door(RuntimeConfig(on_console=lambda _, line: lines.append(line))) as rt:
        trap = "{get() { throw 1 }, ownKeys() { throw 2 }, getPrototypeOf() { throw 3 }}"
        for value in (
            "new Proxy({a: 1}, {})",
            f"new Proxy({{a: 1}}, {trap})",
            f"[new Proxy(() => 1, {trap})]",
            "Proxy.revocable({}, {}).proxy",
            "{get a() { throw 1 }, toString() { throw 2 }}",
            "Object.create(null)",
            "(function* () { yield 1 })()",
        ):
            assert rt.eval(f"console.log({value}); 'went on'") == "went on"
    assert lines[:3] == ["[Proxy]", "[Proxy]", "[[Proxy]]"]
    assert len(lines) == 7


@pytest.mark.parametrize(
    ("code", "path", "what"),
    [
        ("new Proxy({a: 1}, {})", "$", "proxy"),
        ("({a: [new Proxy({}, {})]})", "$.a[0]", "proxy"),
        ("({a: {b: Promise.resolve(1)}})", "$.a.b", "promise"),
        ("({a: new Promise(() => {})})", "$.a", "promise"),
        ("[(function* () { yield 1 })()]", "$[0]", "built-in"),
        ("({a: new WeakRef({})})", "$.a", "built-in"),
    ],
)
def test_what_has_no_form_outside_is_an_error_that_names_its_place(
    rt: AnyRuntime, code: str, path: str, what: str
) -> None:
    found, text = refused(rt, code)
    assert found == path
    assert what in text


def test_an_instance_of_a_class_is_its_own_data_without_its_methods(rt: AnyRuntime) -> None:
    code = (
        "class Point { #hidden = 1; constructor() { this.x = 2 } length() { return 3 } get y() { return 4 } }"
    )
    assert rt.eval(f"{code} new Point()") == {"x": 2}


# https://github.com/LTplus-AG/ifc-lite/pull/1918


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("({get x() { called(); throw new Error('from the getter') }})", "$.x"),
        ("({a: [{get x() { called(); for (;;); }}]})", "$.a[0].x"),
        ("({get x() { called(); delete this.y; return 1 }, y: 2})", "$.x"),
        ("({get x() { return called() }})", "$.x"),
        ("(() => { const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); return proxy })()", "$"),
        ("new Proxy({}, {ownKeys() { called(); throw new Error('from the trap') }})", "$"),
        ("new Proxy([], {get() { called(); throw new Error('from the trap') }})", "$"),
        ("Object.defineProperty([1], 0, {get() { called(); throw 1 }})", "$[0]"),
    ],
)
def test_no_getter_and_no_trap_runs_while_the_host_reads_the_result(
    door: Door, value: str, path: str
) -> None:
    calls: list[int] = []
    with door(RuntimeConfig(timeout=5)) as rt:
        rt.bind_function("called", lambda: calls.append(1))
        assert refused(rt, value)[0] == path
        # The counter counts: read by the script itself, what can be read is run.
        if "called()" in value and "for (;;)" not in value:
            rt.eval(f"try {{ const v = {value}; v.x; v[0]; Object.keys(v) }} catch {{}} 0")
            assert calls
            calls.clear()
    with door() as rt:
        assert rt.eval("1 + 1") == 2
    assert calls == []


def test_a_method_that_json_would_call_is_not_called(rt: AnyRuntime) -> None:
    calls: list[int] = []
    rt.bind_function("called", lambda: calls.append(1))
    rt.eval("class Custom { a = 1; toJSON() { called(); throw 1 } }")
    assert rt.eval("new Custom()") == {"a": 1}
    assert calls == []
    rt.eval("try { JSON.stringify(new Custom()) } catch {} 0")
    assert calls == [1]
