"""Values keep their meaning in both directions, through both doors."""

from __future__ import annotations

import array
import json
import math
import re
from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pydeno import ConversionError, IsolatedRuntime, Runtime, undefined

AnyRuntime = Runtime | IsolatedRuntime


def echo(rt: AnyRuntime, value: object) -> Any:
    """`value` through the script and back."""
    rt.bind_function("give", lambda: value)
    return rt.eval("give()")


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("null", None),
        ("true", True),
        ("1 + 1", 2),
        ("-7", -7),
        ("0.5", 0.5),
        ("2 ** 53 - 1", 2**53 - 1),
        ("2 ** 53", 2.0**53),
        ("1e300", 1e300),
        ("'héllo 😀'", "héllo 😀"),
        ("''", ""),
        ("'a\\0b'", "a\0b"),
        ("'x\\ud800'", "x\ud800"),
        ("[1, 'a', null, [2]]", [1, "a", None, [2]]),
        ("[]", []),
        ("({})", {}),
        ("({a: 1, b: {c: [true]}})", {"a": 1, "b": {"c": [True]}}),
        ("12345678901234567890n", 12345678901234567890),
        ("-(2n ** 200n)", -(2**200)),
        ("0n", 0),
        ("new Uint8Array([1, 2, 255])", b"\x01\x02\xff"),
        ("new Uint16Array([1, 2]).buffer", b"\x01\x00\x02\x00"),
        ("new Uint8Array([1, 2, 3, 4]).subarray(1, 3)", b"\x02\x03"),
        ("new DataView(new Uint8Array([9, 8, 7]).buffer, 1)", b"\x08\x07"),
        ("new Float16Array([1.5])", b"\x00\x3e"),
        ("new BigInt64Array([-2n])", b"\xfe" + b"\xff" * 7),
        ("Object.create(Uint8Array.prototype)", {}),
        ("new Set([1, 'a'])", {1, "a"}),
        ("new Map([['a', 1], [2, 'b']])", {"a": 1, 2: "b"}),
        ("new Date(86400123)", datetime(1970, 1, 2, 0, 0, 0, 123000, tzinfo=timezone.utc)),
        ("new Date(-1)", datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc)),
        ("new (class Point { x = 1; move() {} })()", {"x": 1}),
        ("Object.create(null)", {}),
        ("({1: 'one', a: 'letter', 0: 'zero'})", {"0": "zero", "1": "one", "a": "letter"}),
        ("({['__proto__']: 5})", {"__proto__": 5}),
        ("Promise.resolve(3).then(x => x * 2)", 6),
        ("(async () => { await null; return [1] })()", [1]),
    ],
)
def test_a_value_comes_out_as_its_python_form(rt: AnyRuntime, code: str, value: object) -> None:
    result = rt.eval(code)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize("code", ["undefined", "void 0", "(() => {})()", "let x = 1;"])
def test_undefined_is_its_own_object_and_false(rt: AnyRuntime, code: str) -> None:
    assert rt.eval(code) is undefined
    assert not undefined
    assert repr(undefined) == "undefined"


def test_numbers_that_json_loses_are_kept_at_the_top_and_inside(rt: AnyRuntime) -> None:
    for code, index in (("{}", None), ("[{}]", 0), ("({{x: {}}})", "x")):
        nan, inf, minus_inf, minus_zero = (
            result if index is None else result[index]
            for result in (rt.eval(code.format(value)) for value in ("NaN", "Infinity", "-Infinity", "-0"))
        )
        assert math.isnan(nan)
        assert (inf, minus_inf) == (math.inf, -math.inf)
        assert isinstance(minus_zero, float)
        assert math.copysign(1, minus_zero) == -1


def test_null_stays_plain_json_inside_structures(rt: AnyRuntime) -> None:
    result = rt.eval("({a: null, b: [null, 1], c: {d: null}})")
    assert json.dumps(result) == '{"a": null, "b": [null, 1], "c": {"d": null}}'


def test_holes_read_as_undefined(rt: AnyRuntime) -> None:
    assert rt.eval("[1, , 3]") == [1, undefined, 3]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -75,
        2**53 - 1,
        -(2**53) + 1,
        2**53 + 1,
        -(2**63),
        2**200,
        0.5,
        math.inf,
        "",
        "héllo 😀",
        "a\0b",
        "x\ud800y",
        b"",
        b"\x00\xff",
        [],
        {},
        [1, [2, [3]]],
        {"a": {"b": [None]}},
        {"__proto__": {"x": 1}, "constructor": 2, "": 3},
        {"\ud800": 1},
        {1, 2},
        undefined,
        [undefined, None],
        datetime(1, 1, 1, tzinfo=timezone.utc),
        datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=timezone.utc),
    ],
    ids=repr,
)
def test_a_value_goes_in_and_comes_back_the_same(rt: AnyRuntime, value: object) -> None:
    result = echo(rt, value)
    assert result == value
    assert type(result) is type(value)


def test_what_has_another_form_in_javascript_comes_back_as_that(rt: AnyRuntime) -> None:
    class Colour(IntEnum):
        RED = 3

    assert echo(rt, 3.0) == 3
    assert isinstance(echo(rt, 3.0), int)
    assert echo(rt, Colour.RED) == 3
    assert echo(rt, (1, 2)) == [1, 2]
    assert echo(rt, bytearray(b"ab")) == b"ab"
    assert echo(rt, memoryview(b"abcd")[::2]) == b"ac"
    assert echo(rt, frozenset({1})) == {1}
    east = timezone(timedelta(hours=2))
    assert echo(rt, datetime(2020, 1, 1, 2, tzinfo=east)) == datetime(2020, 1, 1, tzinfo=timezone.utc)


def test_minus_zero_and_nan_go_in(rt: AnyRuntime) -> None:
    rt.bind_function("minus_zero", lambda: -0.0)
    rt.bind_function("nan", lambda: math.nan)
    assert rt.eval("Object.is(minus_zero(), -0)") is True
    assert rt.eval("Object.is([nan()][0], NaN)") is True


def test_host_objects_have_no_prototype_surprises(rt: AnyRuntime) -> None:
    rt.bind_function("give", lambda: {"__proto__": {"polluted": True}, "a": 1})
    assert rt.eval(
        "const o = give(); [o.polluted, Object.getPrototypeOf(o) === Object.prototype, Object.keys(o)]"
    ) == [
        undefined,
        True,
        ["__proto__", "a"],
    ]


def test_types_arrive_as_javascript_has_them(rt: AnyRuntime) -> None:
    rt.bind_function("give", lambda: [b"a", {1}, datetime(2020, 1, 1, tzinfo=timezone.utc), 2**70, undefined])
    code = "give().map(v => Object.prototype.toString.call(v))"
    assert rt.eval(code) == [
        "[object Uint8Array]",
        "[object Set]",
        "[object Date]",
        "[object BigInt]",
        "[object Undefined]",
    ]


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("Symbol('x')", "$"),
        ("[1, Symbol.iterator]", "$[1]"),
        ("({items: [0, 1, 2, {x: Symbol()}]})", "$.items[3].x"),
        ("({a: {get b() { return 1 }}})", "$.a.b"),
        ("({a: new Proxy({}, {})})", "$.a"),
        ("({a: Proxy.revocable({}, {}).proxy})", "$.a"),
        ("const c = {}; c.me = {c}; c", "$.me.c"),
        ("new Date(NaN)", "$"),
        ("({a: [Promise.resolve(1)]})", "$.a[0]"),
        ("({'a b': Symbol()})", '$["a b"]'),
        ("({e: new RangeError('lost otherwise')})", "$.e"),
        ("[/a+/g]", "$[0]"),
        ("(function* () {})()", "$"),
        ("[1, 2].entries()", "$"),
        ("new WeakRef({})", "$"),
        ("new String('s')", "$"),
        ("new Intl.NumberFormat()", "$"),
    ],
)
def test_what_cannot_come_out_is_an_error_that_names_the_place(rt: AnyRuntime, code: str, path: str) -> None:
    with pytest.raises(ConversionError) as caught:
        rt.eval(code)
    assert caught.value.path == path
    assert caught.value.kind == "invalid_input"
    assert caught.value.runtime_survives


@pytest.mark.parametrize(
    ("value", "path", "hint"),
    [
        (object(), "$", "object"),
        ({"a": [1, object()]}, "$.a[1]", "object"),
        ({1: 2}, "$", "keys must be str"),
        (datetime(2020, 1, 1), "$", "time zone"),  # noqa: DTZ001
        (1 + 2j, "$", "complex"),
    ],
    ids=repr,
)
def test_what_cannot_go_in_is_the_host_functions_error(value: object, path: str, hint: str) -> None:
    with IsolatedRuntime(redact_host_errors=False) as rt:
        rt.bind_function("give", lambda: value)
        message = rt.eval("let m; try { give() } catch (e) { m = e.message }; m")
        assert "ConversionError" in message
        assert path in message
        assert hint in message


def test_a_list_that_contains_itself_does_not_go_in(rt: AnyRuntime) -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    rt.bind_function("give", lambda: cyclic)
    assert rt.eval("try { give(); 'taken' } catch (e) { e.name }") == "Error"


def test_depth_is_bounded_both_ways(rt: AnyRuntime) -> None:
    assert rt.eval("let d = []; for (let i = 0; i < 99; i++) d = [d]; d") is not None
    with pytest.raises(ConversionError):
        rt.eval("let e = []; for (let i = 0; i < 100; i++) e = [e]; e")
    with pytest.raises(ConversionError):
        rt.eval("let f = []; for (let i = 0; i < 1e6; i++) f = [f]; f")


def test_no_guest_code_runs_during_a_conversion(rt: AnyRuntime) -> None:
    rt.bind_function("give", lambda: {"a": [1, {"b": 2}], "d": datetime(2020, 1, 1, tzinfo=timezone.utc)})
    rt.eval(
        """
        var ran = '';
        const note = name => function () { ran += name + ' '; return undefined };
        Object.defineProperty(Object.prototype, 'a', {get: note('get a'), set: note('set a'), configurable: true});
        Object.defineProperty(Array.prototype, '0', {get: note('get 0'), set: note('set 0'), configurable: true});
        Object.prototype.toJSON = note('toJSON');
        Array.prototype[Symbol.iterator] = note('iterator');
        Map.prototype.entries = Set.prototype.values = note('entries');
        Array.prototype.push = Array.prototype.map = Object.keys = note('builtin');
        Date.prototype.getTime = Date.prototype.valueOf = note('date');
        Object.defineProperty(Object.prototype, 'then', {get: note('then'), configurable: true}); 0;
        """
    )
    assert rt.eval("var taken = give(); ran") == ""
    assert rt.eval("({a: [7], m: new Map(), t: new Date(0)})")["a"] == [7]
    assert rt.eval("ran") == ""
    # The traps must work for this to show anything.
    assert rt.eval("({}).a; [].push(1); ran") == "get a builtin "


DOCUMENT = (Path(__file__).parent.parent / "docs" / "values.md").read_text(encoding="utf-8")


@dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"


NAMES: dict[str, object] = {
    known.__name__: known
    for known in (Colour, Decimal, Fraction, Point, array, date, datetime, math, time, timedelta, timezone)
} | {"undefined": undefined}


def table(columns: str) -> list[tuple[str, ...]]:
    """The rows of the table of docs/values.md with this head; what is code is without its marks."""
    body = DOCUMENT.partition(f"| {columns} |\n")[2].partition("\n\n")[0].splitlines()[1:]
    rows = [tuple(cell.strip() for cell in row.strip("|").split(" | ")) for row in body]
    assert rows
    return [tuple(re.sub(r"^`(.*)`$", r"\1", cell) for cell in row) for row in rows]


def same(value: object) -> object:
    return value


def test_the_first_table_of_the_document_is_so(rt: AnyRuntime) -> None:
    for code, python, *_ in table("JavaScript | Python |"):
        expected = eval(python, dict(NAMES))
        result = rt.eval(code)
        assert result == expected, code
        assert (type(result), repr(result)) == (type(expected), repr(result)), code


def test_the_second_table_of_the_document_is_so(rt: AnyRuntime) -> None:
    for code, path, reason in table("JavaScript | refused at | because"):
        with pytest.raises(ConversionError) as caught:
            rt.eval(code)
        assert (caught.value.path, reason in str(caught.value)) == (path, True), f"{code}: {caught.value}"


def test_the_third_table_of_the_document_is_so(rt: AnyRuntime) -> None:
    for python, claim, *_ in table("Python | what holds of `value` in JavaScript |"):
        value = eval(python, dict(NAMES))
        rt.bind_function("give", partial(same, value))
        assert rt.eval(f"{{ const value = give(); {claim} }}") is True, python


def test_the_fourth_table_of_the_document_is_so() -> None:
    with IsolatedRuntime(redact_host_errors=False) as rt:
        for python, advice in table("Python | refused, and the advice"):
            rt.bind_function("give", partial(same, [eval(python, dict(NAMES))]))
            message = rt.eval("(() => { try { return give() } catch (e) { return e.message } })()")
            assert message.startswith("ConversionError: $[0] cannot cross: it is a Python "), python
            assert message.endswith(advice), message


def test_subclasses_cross_as_what_they_extend(rt: AnyRuntime) -> None:
    class Text(str):
        __slots__ = ()

    class Pair(NamedTuple):
        x: int
        y: int

    assert echo(rt, Text("a")) == "a"
    assert echo(rt, OrderedDict(b=1, a=2)) == {"b": 1, "a": 2}
    assert list(echo(rt, OrderedDict(b=1, a=2))) == ["b", "a"]
    assert echo(rt, defaultdict(int, a=1)) == {"a": 1}
    assert echo(rt, Counter("aab")) == {"a": 2, "b": 1}
    assert echo(rt, Pair(1, 2)) == [1, 2]


def test_rows_that_share_keys_and_rows_that_do_not_keep_theirs(rt: AnyRuntime) -> None:
    rows: list[dict[str, Any]] = [{"id": n, "at": {"x": n}, "name": f"n{n}"} for n in range(50)]
    rows[20] = {"other": 1, "id": 2}
    rows[21] = {"at": {"y": [{"id": 1}]}, "name": "n", "id": 3}
    rows[22] = {}
    result = echo(rt, rows)
    assert result == rows
    assert [list(row) for row in result] == [list(row) for row in rows]
