"""Scripts that run again the same way: a clock that stands still, seeded random numbers, no code from text."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from pydeno import InvalidInput, IsolatedRuntime, JavaScriptError

MOMENT = datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=timezone.utc)


def test_every_clock_of_the_script_stands_still() -> None:
    with IsolatedRuntime(clock=MOMENT) as rt:
        assert rt.eval("new Date()") == MOMENT
        now = int(MOMENT.timestamp() * 1000)
        assert rt.eval(
            "const seen = new Set(); for (let i = 0; i < 1e5; i++) seen.add(Date.now()); [...seen]"
        ) == [now]
        assert rt.eval(
            "[Date() === String(new Date()), new Date().getTime(), Date.prototype.constructor.now()]"
        ) == [True, now, now]
        assert (
            rt.eval("new Intl.DateTimeFormat('en-US', {timeZone: 'UTC', dateStyle: 'short'}).format()")
            == "2/29/24"
        )
        assert rt.eval("class D extends Date {}; new D().getTime()") == now
        assert rt.eval("Reflect.construct(Date, []).getTime()") == now


def test_dates_with_arguments_are_themselves() -> None:
    with IsolatedRuntime(clock=0) as rt:
        assert rt.eval(
            "[new Date(5).getTime(), new Date('2024-01-01').getTime(), Date.UTC(1970, 0), Date.parse('1970-01-02')]"
        ) == [
            5,
            1704067200000,
            0,
            86400000,
        ]


def test_the_clock_is_not_to_be_set_going_again() -> None:
    with IsolatedRuntime(clock=0) as rt:
        code = "Date.now.call(null) + new (Object.getPrototypeOf(new Date()).constructor)().getTime()"
        assert rt.eval(code) == 0
        assert rt.eval("delete Date.now; typeof performance + typeof Temporal") == "undefinedundefined"
        assert rt.eval("new Date().getTime()") == 0


def test_without_a_clock_time_passes() -> None:
    with IsolatedRuntime() as rt:
        assert abs(rt.eval("Date.now()") / 1000 - datetime.now(timezone.utc).timestamp()) < 60
        assert rt.eval("const start = Date.now(); while (Date.now() === start) {} Date.now() > start") is True


def test_a_seed_gives_the_same_numbers_each_time() -> None:
    draw = "Array.from({length: 20}, () => Math.random())"
    runs = []
    for seed in (7, 7, 8, None, None):
        with IsolatedRuntime(random_seed=seed) as rt:
            runs.append(rt.eval(draw))
    assert runs[0] == runs[1]
    assert len({tuple(run) for run in runs}) == 4
    assert all(0 <= number < 1 for run in runs for number in run)


@pytest.mark.parametrize("seed", [0, (1 << 64) - 1])
def test_any_64_bits_are_a_seed(seed: int) -> None:
    with IsolatedRuntime(random_seed=seed) as rt:
        assert rt.eval("new Set(Array.from({length: 100}, () => Math.random())).size") == 100


def test_what_is_no_seed_and_no_moment_is_refused() -> None:
    for seed in (-1, 1 << 64):
        with pytest.raises(InvalidInput):
            IsolatedRuntime(random_seed=seed)
    with pytest.raises((InvalidInput, TypeError)):
        IsolatedRuntime(clock=datetime(2024, 1, 1))  # noqa: DTZ001
    with pytest.raises((InvalidInput, TypeError)):
        IsolatedRuntime(clock=float("nan"))


@pytest.mark.parametrize(
    "code",
    [
        "eval('1')",
        "(0, eval)('1')",
        "new Function('return 1')()",
        "Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
        "(function* () {}).constructor('yield 1')()",
        "Reflect.construct(Function, ['return 1'])()",
        "[].map.constructor('return 1')()",
    ],
)
def test_code_from_text_throws_where_it_is_forbidden_and_runs_elsewhere(code: str) -> None:
    with IsolatedRuntime(strict_eval=True) as strict:
        with pytest.raises(JavaScriptError) as caught:
            strict.eval(code)
        assert caught.value.name == "EvalError"
        assert strict.eval("(x => x + 1)(1)") == 2
    with IsolatedRuntime() as rt:
        rt.eval(f"{code}; 0")


def test_host_functions_and_the_bridge_work_where_code_from_text_is_forbidden() -> None:
    with IsolatedRuntime(strict_eval=True, clock=0, random_seed=1, capture_console=True) as rt:
        rt.bind_function("give", lambda: {"a": [1]})
        rt.bind_object("tools", {"f": lambda g: g(2)})
        assert rt.eval("console.log('x'); [give(), tools.f(x => x * 2)]") == [{"a": [1]}, 4]
