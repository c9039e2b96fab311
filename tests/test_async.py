"""Evaluations on an event loop: they overlap, each under its own limits."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any

import pytest

from on_a_loop import Any3, Gauge, Meeting, RunOnLoop, until
from pydeno import (
    AsyncIsolatedRuntime,
    HostCallBudgetExceeded,
    HostWaitExceeded,
    InflightLimitExceeded,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    RuntimeConfig,
    RuntimeTimeout,
)


def test_calls_of_an_async_function_run_at_the_same_time(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        rt.bind_function("meet", Meeting(50))
        code = "Promise.all(Array.from({length: 50}, (_, i) => meet(i)))"
        assert await rt.eval_async(code) == list(range(50))
        rt.close()

    run_on_loop(main())


def test_calls_that_are_awaited_one_by_one_keep_their_order(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        code = "(async () => { const out = []; for (let i = 0; i < 20; i++) out.push(await work(i, 0)); return out })()"
        assert await rt.eval_async(code) == list(range(20))
        assert gauge.most == 1
        rt.close()

    run_on_loop(main())


def test_evaluations_of_one_runtime_overlap(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        rt.bind_function("meet", Meeting(30))
        values = await asyncio.gather(*(rt.eval_async(f"meet({i}).then(v => v * 2)") for i in range(30)))
        assert values == [2 * i for i in range(30)]
        rt.close()

    run_on_loop(main())


def test_evaluations_that_begin_while_another_is_in_a_function_that_is_not_async_wait_for_it(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(), Gauge()
        calls: list[int] = []
        rt.bind_function("note", calls.append)
        rt.bind_function("work", gauge)
        await rt.eval_async("0")
        function = await rt.eval_async("x => { note(x); return x }")
        busy = rt.eval_async(
            "(async () => { for (let i = 0; i < 50; i++) { note(-1); await work(i, 0.0005) } })()"
        )

        async def others(pause: float) -> list[Any]:
            values = []
            for i in range(20):
                await asyncio.sleep(pause)
                values.append(await rt.eval_async(f"note({i}); note({i}); {i}"))
                values.append(await function.call_async(i))
            return values

        _, *rest = await asyncio.gather(busy, others(0.0003), others(0.0007), others(0))
        assert rest == [[i for i in range(20) for _ in range(2)]] * 3
        assert len(calls) == 50 + 3 * 60
        rt.close()

    run_on_loop(main())


def test_a_value_waits_for_calls_that_nothing_awaited(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        assert await rt.eval_async("work(1); work(2); 'value'") == "value"
        assert (gauge.calls, gauge.now, gauge.cancelled) == (2, 0, 0)
        rt.close()

    run_on_loop(main())


def test_calls_of_an_evaluation_that_fails_are_cancelled(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        with pytest.raises(JavaScriptError, match="enough"):
            await rt.eval_async(
                "work(1, 60).then(() => {}); work(2, 0.02).then(() => { throw 1 }, () => {}); "
                "work(3, 0).then(() => { throw new Error('enough') })"
            )
        await until(lambda: gauge.now == 0)
        assert gauge.cancelled == 2
        assert await rt.eval_async("work(4, 0)") == 4
        rt.close()

    run_on_loop(main())


def test_an_evaluation_that_fails_leaves_the_calls_of_others(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        good = asyncio.ensure_future(rt.eval_async("work('good', 0.05)"))
        with pytest.raises(JavaScriptError):
            await rt.eval_async("work('bad', 0).then(() => null.x)")
        assert await good == "good"
        rt.close()

    run_on_loop(main())


def test_a_promise_that_nothing_can_settle_is_an_error_at_once(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        with pytest.raises(JavaScriptError):
            await rt.eval_async("new Promise(() => {})")
        # While another evaluation waits, that one may yet settle it.
        never = asyncio.ensure_future(rt.eval_async("new Promise(done => { globalThis.done = done })"))
        other = asyncio.ensure_future(rt.eval_async("work(1, 0.02).then(() => done('settled'))"))
        outcomes = await asyncio.gather(never, other, return_exceptions=True)
        assert outcomes[0] == "settled" or isinstance(outcomes[0], JavaScriptError)
        assert await rt.eval_async("40 + 2") == 42
        rt.close()

    run_on_loop(main())


def test_a_rejection_that_nothing_handled_is_reported_once(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(capture_console=True), Gauge()
        rt.bind_function("work", gauge)
        assert (
            await rt.eval_async("Promise.reject(new Error('lost')); work(1, 0).then(() => 'value')")
            == "value"
        )
        assert [line.text for line in rt.take_console() if "lost" in line.text] == [
            "Uncaught (in promise) Error: lost"
        ]
        # Handled in time, or the evaluation's own.
        assert await rt.eval_async("const p = Promise.reject(1); p.catch(() => {}); 2") == 2
        with pytest.raises(JavaScriptError, match="own"):
            await rt.eval_async("Promise.reject(new Error('own'))")
        assert rt.take_console() == []
        rt.close()

    run_on_loop(main())


def test_the_promise_of_a_cancelled_call_is_rejected(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()

        async def cancelled() -> None:
            raise asyncio.CancelledError

        rt.bind_function("cancelled", cancelled)
        assert await rt.eval_async("cancelled().then(() => 'value', error => String(error))") == (
            "Error: the host function cancelled failed"
        )
        rt.close()

    run_on_loop(main())


def test_an_async_function_that_takes_too_long_is_cancelled_and_the_script_told(
    kind: Any3, run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt, gauge = kind(tool_timeout=0.05), Gauge()
        rt.bind_function("work", gauge)
        assert await rt.eval_async("work(1, 60).catch(error => error.name)") == "Error"
        assert gauge.cancelled == 1
        assert await rt.eval_async("work(2, 0)") == 2
        rt.close()

    run_on_loop(main())


def test_every_evaluation_has_a_budget_of_calls_of_its_own(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(max_host_calls=10, max_inflight_host_calls=5), Gauge()
        rt.bind_function("work", gauge)
        five = "Promise.all(Array.from({length: 5}, () => work(1))).then(all => all.length)"
        assert await asyncio.gather(*(rt.eval_async(five) for _ in range(10))) == [5] * 10
        with pytest.raises(InflightLimitExceeded):
            await rt.eval_async("Promise.all(Array.from({length: 6}, () => work(1)))")
        with pytest.raises(HostCallBudgetExceeded):
            await rt.eval_async("(async () => { for (;;) await work(1, 0).catch(() => {}) })()")
        await until(lambda: gauge.now == 0)
        assert await rt.eval_async("40 + 2") == 42
        rt.close()

    run_on_loop(main())


def test_a_wait_for_functions_has_a_limit_and_the_runtime_survives(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(max_host_wait=0.1), Gauge()
        rt.bind_function("work", gauge)
        with pytest.raises(HostWaitExceeded):
            await rt.eval_async("work(1, 60)")
        await until(lambda: gauge.now == 0)
        assert await rt.eval_async("work(2, 0)") == 2
        rt.close()

    run_on_loop(main())


def test_a_script_that_runs_too_long_times_out_and_others_are_told_apart(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(timeout=0.3), Gauge()
        rt.bind_function("work", gauge)
        with pytest.raises(RuntimeTimeout) as caught:
            await rt.eval_async("work(1, 0).then(() => { for (;;) {} })")
        assert caught.value.runtime_survives
        assert await rt.eval_async("work(2, 0.5)") == 2  # Waiting is not running.
        rt.close()

    run_on_loop(main())


def test_a_guest_that_floods_its_console_does_not_hold_up_the_loop(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        turns = 0
        config = RuntimeConfig(timeout=1, enable_console=True, on_console=lambda level, text: None)
        async with AsyncIsolatedRuntime(config) as rt:
            task = asyncio.ensure_future(rt.eval("for (;;) console.log('')"))
            while not task.done():
                await asyncio.sleep(0)
                turns += 1
            assert isinstance(task.exception(), RuntimeTimeout)
            assert turns > 20
            assert await rt.eval("40 + 2") == 42

    run_on_loop(main())


@pytest.mark.parametrize("escaping", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["def", "async def"])
def test_what_no_script_may_catch_leaves_the_loop(
    kind: Any3, run_on_loop: RunOnLoop, escaping: type[BaseException], asynchronous: bool
) -> None:
    rt = kind()

    def leave() -> None:
        raise escaping

    async def leave_later() -> None:
        raise escaping

    rt.bind_function("leave", leave_later if asynchronous else leave)

    async def main() -> None:
        await rt.eval_async("(async () => { for (;;) { try { await leave() } catch {} } })()")

    with pytest.raises(escaping):
        run_on_loop(main())
    again: Coroutine[Any, Any, Any] = rt.eval_async("40 + 2")
    assert run_on_loop(again) == 42
    rt.close()


@pytest.mark.parametrize(
    "exception",
    [
        ValueError("v"),
        StopIteration(),
        StopAsyncIteration(),
        RecursionError(),
        MemoryError(),
        OSError(2, "x"),
    ],
    ids=lambda exception: type(exception).__name__,
)
def test_an_exception_of_an_async_function_rejects_the_promise(
    kind: Any3, run_on_loop: RunOnLoop, exception: Exception
) -> None:
    async def main() -> None:
        rt = kind()

        async def fail() -> None:
            raise exception

        rt.bind_function("fail", fail)
        assert await rt.eval_async("fail().catch(error => error.message)") == "the host function fail failed"
        with pytest.raises(JavaScriptError) as caught:
            await rt.eval_async("fail()")
        cause = caught.value.__cause__
        # Python itself turns a StopIteration of a coroutine into a RuntimeError.
        assert cause is exception or isinstance(cause, RuntimeError)
        assert await rt.eval_async("40 + 2") == 42
        rt.close()

    run_on_loop(main())


def test_an_error_of_a_call_that_nothing_awaits_does_not_surface_later(
    kind: Any3, run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt = kind(capture_console=True)

        async def fail() -> None:
            raise ValueError("what happened")

        rt.bind_function("fail", fail)
        assert await rt.eval_async("fail(); 'value'") == "value"
        assert "the host function fail failed" in rt.take_console()[0].text
        assert await rt.eval_async("40 + 2") == 42
        assert rt.take_console() == []
        rt.close()

    run_on_loop(main())


def test_python_script_python_script_and_an_error_at_the_bottom(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind(expose_host_errors=(KeyError,))
        inner: list[Any] = []

        def middle() -> Any:
            return inner[0]()

        def bottom() -> None:
            raise KeyError("bottom")

        rt.bind_function("middle", middle)
        rt.bind_function("bottom", bottom)
        inner.append(await rt.eval_async("() => bottom()"))
        assert (
            await rt.eval_async("try { middle() } catch (error) { error.message }")
            == "the host function middle failed"
        )
        with pytest.raises(JavaScriptError) as caught:
            await rt.eval_async("middle()")
        nested = caught.value.__cause__
        assert isinstance(nested, JavaScriptError)
        assert isinstance(nested.__cause__, KeyError)
        rt.close()

    run_on_loop(main())


def test_an_async_function_sees_the_context_of_the_evaluation(kind: Any3, run_on_loop: RunOnLoop) -> None:
    from contextvars import ContextVar

    user: ContextVar[str] = ContextVar("user")

    async def main() -> None:
        rt = kind()

        async def who() -> str:
            await asyncio.sleep(0)
            return user.get()

        rt.bind_function("who", who)

        async def ask(name: str) -> Any:
            user.set(name)
            return await rt.eval_async("(async () => [await who(), await who()])()")

        seen = await asyncio.gather(ask("a"), ask("b"))
        assert list(seen) == [["a", "a"], ["b", "b"]]
        rt.close()

    run_on_loop(main())


def test_eval_runs_async_functions_without_a_loop(door: type[Any]) -> None:
    with door() as rt:
        gauge = Gauge()
        rt.bind_function("work", gauge)
        rt.bind_object("tools", {"work": gauge})
        assert rt.eval("Promise.all([work(1), tools.work(2)])") == [1, 2]
        with pytest.raises(JavaScriptError, match="no"):
            rt.eval("work(1, 60); throw new Error('no')")
        with pytest.raises(JavaScriptError, match="late"):
            rt.eval("work(1, 60); work(2, 0).then(() => { throw new Error('late') })")
        assert gauge.now == 0
        assert rt.eval("40 + 2") == 42


def test_eval_inside_a_loop_says_what_to_do_instead(door: type[Any]) -> None:
    async def main() -> None:
        with door() as rt:
            rt.bind_function("work", Gauge())
            with pytest.raises(InvalidInput, match="eval_async"):
                rt.eval("work(1)")
            assert await rt.eval_async("work(1)") == 1

    asyncio.run(main())


def test_threads_share_a_runtime_with_async_functions() -> None:
    with IsolatedRuntime() as rt:
        gauge = Gauge()
        rt.bind_function("work", gauge)
        values: list[Any] = []
        threads = [
            threading.Thread(target=lambda i=i: values.append(rt.eval(f"work({i}, 0.001)")))
            for i in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(values) == list(range(16))


@pytest.mark.parametrize("async_functions", [False, True])
def test_ctrl_c_ends_eval_with_async_functions_and_leaves_the_runtime(async_functions: bool) -> None:
    with IsolatedRuntime() as rt:
        gauge = Gauge()
        if async_functions:
            rt.bind_function("work", gauge)
        code = "work(1, 60)" if async_functions else "for (;;) {}"
        pid, main = os.getpid(), threading.get_ident()
        assert main == threading.main_thread().ident
        timer = threading.Timer(0.2, os.kill, (pid, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            rt.eval(code)
        timer.join()
        assert gauge.now == 0
        assert rt.eval("40 + 2") == 42


def test_ctrl_c_inside_a_console_callback_ends_the_evaluation(door: type[Any]) -> None:
    def interrupt(level: str, text: str) -> None:
        raise KeyboardInterrupt

    with door(RuntimeConfig(enable_console=True, on_console=interrupt)) as rt:
        with pytest.raises(KeyboardInterrupt):
            rt.eval("for (;;) { try { console.log('x') } catch {} }")
        assert rt.eval("40 + 2") == 42


def test_eager_tasks_answer_too(kind: Any3) -> None:
    factory = getattr(asyncio, "eager_task_factory", None)

    async def main() -> None:
        if factory is not None:
            asyncio.get_running_loop().set_task_factory(factory)
        rt = kind()

        async def at_once(value: int) -> int:
            return value

        rt.bind_function("atOnce", at_once)
        code = "(async () => { let sum = 0; for (let i = 0; i < 2000; i++) sum += await atOnce(i); return sum })()"
        assert await rt.eval_async(code) == sum(range(2000))
        rt.close()

    asyncio.run(main())


def test_awaitable_values_are_ordinary_coroutines(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = AsyncIsolatedRuntime()
        pending: Awaitable[Any] = rt.eval("1")
        assert await pending == 1
        rt.close()

    run_on_loop(main())
