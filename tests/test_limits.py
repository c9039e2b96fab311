"""Hostile scripts end within their limits, and the host is as it was.

Limits here are real, but no test depends on how fast the machine is: a script that has to be stopped would run for
ever, and one that has to end by itself gets the default half minute.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from conftest import fresh_runtime_answers
from pydeno import (
    IsolatedRuntime,
    JavaScriptError,
    MemoryLimitExceeded,
    PydenoError,
    Runtime,
    RuntimeConfig,
    RuntimeTimeout,
)

STOPPABLE = {
    "an endless loop": "for (;;);",
    "a loop that catches everything": "for (;;) { try { for (;;); } catch {} finally { for (;;); } }",
    "a loop in a promise reaction": "Promise.resolve().then(() => { for (;;); }); 1",
    "a loop in an async function": "(async () => { await null; for (;;); })()",
    "a loop in a getter of the result's promise": "({then(f) { for (;;); }}); (async () => { for (;;); })()",
    "an error whose text has no end": "throw {toString() { for (;;); }}",
    "a sparse sort": "const a = []; a[2 ** 32 - 2] = 1; a.sort()",
    "a sparse search": "const b = []; b[2 ** 32 - 2] = 1; b.indexOf(2)",
    "a huge fill": "new Array(2 ** 32 - 1).fill(0)",
}


@pytest.mark.parametrize("code", STOPPABLE.values(), ids=STOPPABLE.keys())
def test_a_script_without_an_end_is_stopped_and_the_runtime_stays(code: str) -> None:
    with IsolatedRuntime(timeout=0.2) as rt:
        rt.eval("let kept = 1")
        with pytest.raises((RuntimeTimeout, JavaScriptError, MemoryLimitExceeded)) as caught:
            rt.eval(code)
        if caught.value.runtime_survives:
            assert rt.eval("kept + 1") == 2
    assert fresh_runtime_answers()


def test_an_endless_loop_is_a_timeout_that_the_runtime_survives(rt: Runtime | IsolatedRuntime) -> None:
    with type(rt)(RuntimeConfig(timeout=0.1)) as short:
        short.eval("let kept = 1")
        for _ in range(3):
            with pytest.raises(RuntimeTimeout) as caught:
                short.eval("for (;;);")
            assert isinstance(caught.value, TimeoutError)
            assert caught.value.kind == "timeout"
            assert caught.value.runtime_survives
            assert short.eval("++kept") > 1


def test_a_script_stopped_in_a_promise_reaction_leaves_a_runtime_that_binds_and_converts(
    rt: Runtime | IsolatedRuntime,
) -> None:
    with type(rt)(RuntimeConfig(timeout=0.1)) as short:
        for code in (
            "(async () => { await null; for (;;); })()",
            "Promise.resolve().then(() => { for (;;); }); ({a: 1})",
        ):
            with pytest.raises(RuntimeTimeout):
                short.eval(code)
            short.bind_function("give", lambda: [1, {"a": 2}])
            assert short.eval("give()") == [1, {"a": 2}]


def test_an_endless_chain_of_promises_costs_the_worker() -> None:
    with IsolatedRuntime(timeout=0.1) as rt:
        with pytest.raises(RuntimeTimeout) as caught:
            rt.eval("const again = () => Promise.resolve().then(again); again()")
        assert caught.value.kind == "timeout"
        assert caught.value.runtime_survives is not rt.is_closed()
    assert fresh_runtime_answers()


@pytest.mark.parametrize(
    "code",
    [
        "const f = () => f(); f()",
        "const f = () => { try { return f() } finally { f() } }; f()",
        "'x'.repeat(2 ** 30).padEnd(2 ** 31 - 1)",
        "let s = 'x'; for (;;) s += s",
        "new ArrayBuffer(2 ** 40)",
        "2n ** (2n ** 40n)",
        "new Array(-1)",
        "JSON.parse('['.repeat(1e6))",
    ],
)
def test_what_the_engine_refuses_by_itself_is_an_error_of_the_script(code: str) -> None:
    with (
        IsolatedRuntime(timeout=5) as rt,
        pytest.raises((JavaScriptError, RuntimeTimeout, MemoryLimitExceeded)),
    ):
        rt.eval(code)
    assert fresh_runtime_answers()


MEMORY_BOMBS = {
    "typed arrays": "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "objects": "const a = []; for (;;) a.push({a: [1, 2, 3]})",
    "strings": "const a = []; for (let i = 0;; i++) a.push(String(i).repeat(1000))",
    "one large buffer": "new Uint8Array(2 ** 30).fill(1)",
    "spreading a giant string": "[...'x'.repeat(2 ** 29)]",
    "work left behind": "(async () => { await null; const a = []; for (;;) a.push([1]) })(); 1",
}


@pytest.mark.parametrize("code", MEMORY_BOMBS.values(), ids=MEMORY_BOMBS.keys())
def test_a_memory_bomb_meets_its_limit_and_spares_the_host(code: str) -> None:
    before = resident_memory()
    with IsolatedRuntime(timeout=20, max_memory=128 << 20) as rt:
        with pytest.raises((MemoryLimitExceeded, JavaScriptError)) as caught:
            rt.eval(code)
        assert caught.value.kind in ("memory_limit", "js_error")
    assert resident_memory() - before < 64 << 20
    assert fresh_runtime_answers()


def test_memory_is_bounded_from_outside_where_the_engine_does_not_look() -> None:
    config = RuntimeConfig(max_heap_size=8 << 30)
    with IsolatedRuntime(config, timeout=20, max_memory=128 << 20) as rt:
        with pytest.raises(MemoryLimitExceeded) as caught:
            rt.eval("const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))")
        assert not caught.value.runtime_survives
        assert rt.is_closed()


def test_an_ordinary_script_fits_the_limit_that_stops_a_bomb() -> None:
    with IsolatedRuntime(max_memory=128 << 20) as rt:
        assert rt.eval("new Uint8Array(16 << 20).fill(1).length") == 16 << 20


def test_a_heap_limit_stops_the_script_and_keeps_the_state() -> None:
    with IsolatedRuntime(RuntimeConfig(max_heap_size=64 << 20), timeout=20) as rt:
        rt.eval("let kept = 1")
        with pytest.raises(MemoryLimitExceeded) as caught:
            rt.eval("{ const a = []; for (;;) a.push([1, 2, 3]) }")
        assert caught.value.runtime_survives
        assert rt.eval("kept") == 1


def test_time_in_host_functions_does_not_count_against_the_script() -> None:
    import time

    with IsolatedRuntime(timeout=1) as rt:
        rt.bind_function("wait", lambda: time.sleep(0.8))
        assert rt.eval("wait(); wait(); 1") == 1


def test_the_request_timeout_covers_host_functions() -> None:
    import time

    with IsolatedRuntime(timeout=0.2, request_timeout=0.4) as rt:
        rt.bind_function("wait", lambda: time.sleep(0.3))
        with pytest.raises(RuntimeTimeout, match="request_timeout") as caught:
            rt.eval("for (;;) wait()")
        assert caught.value.runtime_survives
        assert rt.eval("1 + 1") == 2
        rt.bind_function("wait_long", lambda: time.sleep(2))
        with pytest.raises(RuntimeTimeout) as caught:
            rt.eval("wait_long()")
        assert not caught.value.runtime_survives, "a function that does not return costs the worker"


def test_a_regular_expression_without_an_end_does_not_hang_the_host() -> None:
    with IsolatedRuntime(timeout=0.5) as rt:
        try:
            assert rt.eval("/^(a+)+$/.test('a'.repeat(40) + 'b')") is False
        except PydenoError as error:
            assert error.kind in ("timeout", "js_error")  # noqa: PT017
    assert fresh_runtime_answers()


def test_a_result_too_large_is_an_error_and_the_runtime_stays() -> None:
    with IsolatedRuntime(RuntimeConfig(max_serialization_bytes=1 << 20)) as rt:
        for code in ("'x'.repeat(2 ** 21)", "new Uint8Array(2 ** 21)", "new Array(2 ** 32 - 1)"):
            with pytest.raises(PydenoError) as caught:
                rt.eval(code)
            assert caught.value.runtime_survives
        assert rt.eval("'x'.repeat(1000).length") == 1000


def test_a_flood_of_console_lines_is_cut() -> None:
    lines: list[str] = []
    config = RuntimeConfig(on_console=lambda _, text: lines.append(text))
    with IsolatedRuntime(config, timeout=20) as rt:
        rt.eval("for (let i = 0; i < 20000; i++) console.log('x'.repeat(1000))")
        assert 0 < sum(map(len, lines)) <= 1 << 20
        assert rt.eval("1") == 1


@pytest.mark.parametrize("tier", ["off", "baseline", "full"])
def test_every_tier_computes_and_is_stopped(tier: str) -> None:
    with IsolatedRuntime(timeout=0.5, jit=tier) as rt:  # type: ignore[arg-type]
        assert rt.eval("let s = 0; for (let i = 0; i < 1e5; i++) s += i; s") == 4999950000
        with pytest.raises(RuntimeTimeout):
            rt.eval("const f = x => x * 2 + 1; let v = 0; for (;;) v = f(v) % 1000")
        if not rt.is_closed():
            assert rt.eval("s") == 4999950000


def resident_memory() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
