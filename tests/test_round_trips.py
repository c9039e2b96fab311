"""Whatever crosses comes back as it went, through both doors and from either side."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pydeno import ConversionError, IsolatedRuntime, Runtime, undefined

AnyRuntime = Runtime | IsolatedRuntime

# The same examples each time: a run that fails elsewhere fails here.
PROFILE = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
FIRST = datetime.min.replace(tzinfo=timezone.utc)
LAST = datetime.max.replace(tzinfo=timezone.utc, microsecond=999000)
MILLISECOND = timedelta(milliseconds=1)
DATES = st.one_of(
    st.sampled_from([EPOCH, FIRST, LAST, EPOCH - MILLISECOND, FIRST + MILLISECOND]),
    st.integers((FIRST - EPOCH) // MILLISECOND, (LAST - EPOCH) // MILLISECOND).map(
        lambda milliseconds: EPOCH + timedelta(milliseconds=milliseconds)
    ),
)
# Characters of every kind, lone surrogates among them. A pair of two surrogates is one character in JavaScript, so a
# string of Python's that has one comes back with the character.
TEXTS = st.text(st.characters(codec=None, exclude_categories=())).map(
    lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
KEYS = TEXTS | st.sampled_from(
    [
        "__proto__",
        "constructor",
        "then",
        "toJSON",
        "length",
        "valueOf",
        "",
        "0",
        "-0",
        "1e3",
        "4294967295",
        "\0",
        "\ud800",
    ]
)
INTEGERS = st.one_of(
    st.integers(),
    st.sampled_from([0, 2**53 - 1, 2**53, 1 - 2**53, -(2**53), 2**63, -(2**63), 2**64]),
    st.sampled_from([1, -1]).map(lambda sign: sign * 10**5000),
)
SCALARS = st.one_of(
    st.none(), st.just(undefined), st.booleans(), INTEGERS, st.floats(), TEXTS, st.binary(max_size=300), DATES
)
# What two members have in common in Python (1 and True) could not come back as two.
MEMBERS = st.one_of(st.integers(), TEXTS, st.binary(max_size=20), DATES, st.none())
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.sets(MEMBERS, max_size=20),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(KEYS, inner, max_size=8),
    max_leaves=40,
)
# Rows of one shape, and now and then one of another.
TABLES = st.lists(
    st.fixed_dictionaries({"id": INTEGERS, "name": TEXTS, "v": st.floats(), "x": SCALARS}), max_size=40
)


def form(value: object) -> object:
    """A value as it comes back, in a form that tells apart what Python calls equal.

    JavaScript has one kind of number, so an integral float comes back as an `int`, and it puts keys that are indices
    first, so the order of keys is left out.
    """
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 2**53 and value.hex() != "-0x0.0p+0":
            return (int, int(value))
        return (float, value.hex())
    if isinstance(value, list):
        return [form(item) for item in value]
    if isinstance(value, dict):
        return ("dict", {key: form(item) for key, item in value.items()})
    if isinstance(value, set):
        return ("set", {(type(member), member) for member in value})
    return (type(value), value)


class Echo:
    """A runtime whose script gives back what it gets."""

    def __init__(self, runtime: AnyRuntime) -> None:
        self.runtime = runtime
        self.value: object = None
        runtime.bind_function("take", lambda: self.value)
        runtime.bind_function("give", self.remember)
        runtime.eval("let kept; 0")

    def remember(self, value: object) -> None:
        """Takes what the script gives."""
        self.value = value

    def through(self, value: object) -> object:
        """In as a host function's result, out as an evaluation's."""
        self.value = value
        return self.runtime.eval("kept = take()")

    def again(self) -> object:
        """Out once more, as an argument."""
        self.runtime.eval("give(kept); 0")
        return self.value


@pytest.fixture(scope="module", params=[Runtime, IsolatedRuntime], ids=["in-process", "isolated"])
def echo(request: pytest.FixtureRequest) -> Iterator[Echo]:
    """An `Echo` of each door."""
    with request.param() as runtime:
        yield Echo(runtime)


@PROFILE
@given(value=VALUES)
def test_a_value_of_python_comes_back_as_it_went(echo: Echo, value: object) -> None:
    assert form(echo.through(value)) == form(value)
    assert form(echo.again()) == form(value)


@PROFILE
@given(value=TABLES)
def test_a_table_of_python_comes_back_as_it_went(echo: Echo, value: object) -> None:
    assert form(echo.through(value)) == form(value)


def test_what_would_come_back_changed_is_told_apart() -> None:
    """The form must see a difference for the tests above to show anything."""
    for one, other in [
        (1, True),
        (0.0, -0.0),
        (0, False),
        (0.5, math.nan),
        ("a", b"a"),
        (None, undefined),
        ([], {}),
    ]:
        assert form(one) != form(other)
        assert form([one]) != form([other])
        assert form({"k": one}) != form({"k": other})
    assert form({1}) != form({True})


@pytest.mark.parametrize("nest", [lambda inner: [inner], lambda inner: {"k": inner}], ids=["lists", "dicts"])
def test_the_deepest_value_comes_back_and_a_deeper_one_is_refused(echo: Echo, nest: Any) -> None:
    value: object = 1
    for _ in range(100):
        value = nest(value)
    assert echo.through(value) == value
    echo.value = nest(value)
    assert (
        echo.runtime.eval("(() => { try { take(); return 'taken' } catch { return 'refused' } })()")
        == "refused"
    )
    with pytest.raises(ConversionError):
        echo.runtime.eval("[kept]")


# Values that a script makes, from a number. What Python has another form for is left out: a Map, which comes back as
# an object, a small BigInt, which comes back as a number, and whatever views bytes but a Uint8Array.
BUILD = r"""
const build = seed => {
  let state = seed + 1;
  const below = limit => { state = Math.imul(state, 48271) >>> 0 || 1; return state % limit };
  const pick = items => items[below(items.length)];
  const text = () => Array.from({ length: below(6) }, () =>
    String.fromCharCode(pick([below(128), below(65536), 0xd800 + below(2048), 0]))).join('');
  const scalar = () => pick([
    () => undefined, () => null, () => true, () => false, () => -0, () => NaN, () => Infinity, () => below(100),
    () => below(1e9) / 7, () => -(2 ** 53) * below(9), () => 5e-324, () => 2n ** 53n * BigInt(1 + below(1e6)),
    () => -(2n ** 200n), text, text, () => new Date(below(2 ** 31) * 1000 - 1),
    () => new Uint8Array(below(9)).fill(below(256)),
  ])();
  const key = () => pick([text, () => '__proto__', () => 'then', () => String(below(5)), () => 'constructor'])();
  const object = depth => {
    const made = {};
    for (let i = below(5); i > 0; i--) {
      const descriptor = { value: value(depth - 1), enumerable: true, writable: true, configurable: true };
      Object.defineProperty(made, key(), descriptor);
    }
    return made;
  };
  const rows = depth => Array.from({ length: below(40) }, (_, id) => ({ id, text: text(), any: value(depth - 2) }));
  const holes = depth => {
    const made = [];
    for (let i = 0; i < 9; i++) if (below(2)) made[i] = value(depth - 1);
    return made;
  };
  const value = depth => depth <= 0 ? scalar() : pick([
    () => scalar(), () => object(depth), () => Array.from({ length: below(9) }, () => value(depth - 1)),
    () => holes(depth), () => rows(depth), () => new Set(Array.from({ length: below(9) }, text)),
    () => Array.from({ length: below(30) }, () => below(1000) / 8), () => Array.from({ length: below(30) }, text),
  ])();
  return value(4);
};
const same = (a, b) => {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Date) return a.getTime() === b.getTime();
  if (a instanceof Set) return a.size === b.size && [...a].every(member => b.has(member));
  if (Array.isArray(a)) return a.length === b.length && Array.from(a).every((item, index) => same(item, b[index]));
  if (a instanceof Uint8Array) return a.join() === b.join();
  const keys = Object.keys(a);
  return keys.join() === Object.keys(b).join() && keys.every(key => same(a[key], b[key]));
};
let made;
0
"""


def test_a_value_of_a_script_comes_back_as_it_went(echo: Echo) -> None:
    echo.runtime.eval(BUILD)
    for seed in range(400):
        echo.value = echo.runtime.eval(f"made = build({seed})")
        assert echo.runtime.eval("same(made, take())") is True, seed
    assert echo.runtime.eval("same([1, { a: -0 }], [1, { a: 0 }]) || same([,], [1])") is False
