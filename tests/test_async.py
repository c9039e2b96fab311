"""Evaluations on an event loop: they overlap, each under its own limits, and nothing is left behind when they end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from pydeno import (
    AsyncIsolatedRuntime,
    EvaluationCancelled,
    GateContext,
    GateDenied,
    GateUnavailable,
    HostCallBudgetExceeded,
    HostWaitExceeded,
    InflightLimitExceeded,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    PydenoError,
    Runtime,
    RuntimeClosed,
    RuntimeConfig,
    RuntimeTerminated,
    RuntimeTimeout,
    SandboxDegradedWarning,
    Verdict,
    WorkerCrashed,
)

RunOnLoop = Callable[[Coroutine[Any, Any, Any]], Any]
Any3 = type[Runtime] | type[IsolatedRuntime] | type[AsyncIsolatedRuntime]


@pytest.fixture(params=[Runtime, IsolatedRuntime, AsyncIsolatedRuntime], ids=lambda cls: cls.__name__)
def kind(request: pytest.FixtureRequest) -> Any3:
    cls: Any3 = request.param
    return cls


@pytest.fixture(params=[IsolatedRuntime, AsyncIsolatedRuntime], ids=lambda cls: cls.__name__)
def isolated_kind(request: pytest.FixtureRequest) -> type[Any]:
    cls: type[Any] = request.param
    return cls


class Gauge:
    """An async host function that knows how many of its calls run at a time."""

    def __init__(self) -> None:
        self.now = self.most = self.calls = self.cancelled = 0

    async def __call__(self, value: Any = None, delay: float = 0.01) -> Any:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.now -= 1
        return value


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is about to happen; pytest's timeout is the limit."""
    while not condition():
        await asyncio.sleep(0.001)


def test_calls_of_an_async_function_run_at_the_same_time(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        code = "Promise.all(Array.from({length: 50}, (_, i) => work(i)))"
        assert await rt.eval_async(code) == list(range(50))
        assert gauge.most == 50
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
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        values = await asyncio.gather(*(rt.eval_async(f"work({i}).then(v => v * 2)") for i in range(30)))
        assert values == [2 * i for i in range(30)]
        assert gauge.most == 30
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


def test_a_cancelled_evaluation_stops_and_the_runtime_goes_on(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        task = asyncio.ensure_future(
            rt.eval_async("globalThis.before = 1; work(1, 60).then(() => { before = 2 })")
        )
        await until(lambda: gauge.now == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: gauge.now == 0)
        assert gauge.cancelled == 1
        assert await rt.eval_async("before") == 1
        rt.close()

    run_on_loop(main())


def test_a_cancelled_endless_loop_stops(isolated_kind: type[Any], run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = isolated_kind()
        started = asyncio.Event()
        rt.bind_function("started", started.set)
        task = asyncio.ensure_future(rt.eval_async("started(); for (;;) {}"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await rt.eval_async("40 + 2") == 42
        rt.close()

    run_on_loop(main())


def test_a_cancelled_chain_of_promises_that_nothing_stops_ends_with_its_worker(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt = isolated_kind(timeout=0.5)
        started = asyncio.Event()
        rt.bind_function("started", started.set)
        task = asyncio.ensure_future(rt.eval_async("(async () => { started(); for (;;) await 0 })()"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        try:
            assert await rt.eval_async("40 + 2") == 42
        except RuntimeTimeout:
            await until(rt.is_closed)
        rt.close()

    run_on_loop(main())


def test_cancellation_at_every_moment_leaves_a_usable_runtime(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(), Gauge()
        rt.bind_function("work", gauge)
        rt.bind_function("now", lambda: 1)
        code = (
            "(async () => { for (let i = 0; i < 5; i++) { now(); await work(i, 0.0005) } return 'value' })()"
        )
        assert await rt.eval_async(code) == "value"
        for turns in range(60):
            task = asyncio.ensure_future(rt.eval_async(code))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            assert (await asyncio.gather(task, return_exceptions=True))[0] == "value" or task.cancelled()
        assert await rt.eval_async("40 + 2") == 42
        await until(lambda: gauge.now == 0)
        rt.close()

    run_on_loop(main())


def test_a_timeout_of_the_loop_stops_the_script(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        rt.bind_function("work", gauge)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(rt.eval_async("work(1, 60)"), 0.05)
        await until(lambda: gauge.now == 0)
        assert await rt.eval_async("40 + 2") == 42
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


@pytest.mark.parametrize("ending", ["close", "terminate"])
@pytest.mark.parametrize("place", ["task", "thread", "function", "async function", "console", "callback"])
def test_an_end_from_anywhere_ends_what_runs(
    isolated_kind: type[Any], run_on_loop: RunOnLoop, ending: str, place: str
) -> None:
    async def main() -> None:
        end: Callable[..., None] = lambda *_: getattr(rt, ending)()  # noqa: E731
        config = RuntimeConfig(enable_console=True, on_console=end if place == "console" else None)
        rt, gauge = isolated_kind(config), Gauge()

        async def end_later() -> None:
            end()

        rt.bind_function("work", gauge)
        rt.bind_function("end", end_later if place == "async function" else end)
        waiting = [asyncio.ensure_future(rt.eval_async("work(1, 60)")) for _ in range(3)]
        await until(lambda: gauge.now == 3)
        if place == "task":
            end()
        elif place == "thread":
            thread = threading.Thread(target=end)
            thread.start()
            thread.join()
        elif place == "callback":
            task = asyncio.ensure_future(rt.eval_async("work(2, 0)"))
            task.add_done_callback(end)
        else:
            code = "console.log('')" if place == "console" else "end()"
            waiting.append(asyncio.ensure_future(rt.eval_async(code)))
        expected = RuntimeClosed if ending == "close" else RuntimeTerminated
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        # A line of the console arrives together with the value.
        ended = outcomes[:3] if place == "console" else outcomes
        assert [type(outcome) for outcome in ended] == [expected] * len(ended)
        await until(lambda: gauge.now == 0)
        assert rt.is_closed()
        with pytest.raises(PydenoError):
            await rt.eval_async("1")
        rt.close()

    run_on_loop(main())


def test_closing_an_in_process_runtime_ends_what_waits(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = Runtime(), Gauge()
        rt.bind_function("work", gauge)
        waiting = asyncio.ensure_future(rt.eval_async("work(1, 60)"))
        await until(lambda: gauge.now == 1)
        rt.close()
        with pytest.raises(RuntimeClosed):
            await waiting
        await until(lambda: gauge.now == 0)

    run_on_loop(main())


def test_a_worker_that_is_killed_is_every_evaluations_error(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(), Gauge()
        rt.bind_function("work", gauge)
        waiting = [asyncio.ensure_future(rt.eval_async("work(1, 60)")) for _ in range(5)]
        await until(lambda: gauge.now == 5)
        os.kill(rt.worker_pid, signal.SIGKILL)
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [WorkerCrashed] * 5
        await until(lambda: gauge.now == 0)
        assert rt.is_closed()

    run_on_loop(main())


def test_a_worker_that_is_killed_at_any_moment_is_an_error_and_no_hang(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        code = "(async () => { for (let i = 0; i < 10; i++) { now(); await work(i, 0) } return 'value' })()"
        for turns in range(0, 40, 2):
            rt, gauge = AsyncIsolatedRuntime(), Gauge()
            rt.bind_function("work", gauge)
            rt.bind_function("now", lambda: 1)
            await rt.start()
            task = asyncio.ensure_future(rt.eval(code))
            for _ in range(turns):
                await asyncio.sleep(0)
            os.kill(rt.worker_pid, signal.SIGKILL)
            outcome = (await asyncio.gather(task, return_exceptions=True))[0]
            assert outcome == "value" or isinstance(outcome, WorkerCrashed)
            await until(lambda: gauge.now == 0)  # noqa: B023
            rt.close()

    run_on_loop(main())


def test_a_start_that_is_cancelled_leaves_no_worker_and_can_be_tried_again(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        for turns in (0, 1, 2, 3, 5, 50):
            rt = AsyncIsolatedRuntime()
            task = asyncio.ensure_future(rt.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await rt.eval("40 + 2") == 42
            pid = rt.worker_pid
            rt.close()
            await until(lambda: not _is_alive(pid))  # noqa: B023

    run_on_loop(main())


def test_a_runtime_that_is_closed_while_it_starts_does_not_start(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = AsyncIsolatedRuntime()
        task = asyncio.ensure_future(rt.start())
        await asyncio.sleep(0)
        rt.close()
        with pytest.raises(RuntimeClosed):
            await task
        assert rt.is_closed()
        # Also while its bootstrap script runs.
        slow = AsyncIsolatedRuntime(RuntimeConfig(bootstrap="for (;;) {}"))
        task = asyncio.ensure_future(slow.start())
        await until(lambda: hasattr(slow, "_driver") and slow._driver is not None)
        slow.close()
        with pytest.raises(RuntimeClosed):
            await task

    run_on_loop(main())


def test_a_bootstrap_script_runs_before_anything_else_and_does_not_hold_up_the_loop(
    run_on_loop: RunOnLoop,
) -> None:
    async def main() -> None:
        code = "const end = Date.now() + 200; while (Date.now() < end) {} var ready = 'ready'"
        rt = AsyncIsolatedRuntime(RuntimeConfig(bootstrap=code))
        task = asyncio.ensure_future(rt.eval("ready"))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert await task == "ready"
        assert turns > 10
        rt.close()
        broken = AsyncIsolatedRuntime(RuntimeConfig(bootstrap="null.x"))
        for _ in range(2):
            with pytest.raises(JavaScriptError):
                await broken.start()
        broken.close()

    run_on_loop(main())


def test_a_runtime_that_nobody_refers_to_any_more_ends_without_being_closed(run_on_loop: RunOnLoop) -> None:
    async def use() -> int:
        rt = AsyncIsolatedRuntime()
        held: list[Any] = []

        async def itself() -> int:
            # A cycle, which only the collector can undo.
            held.append(await rt.eval("() => 1"))
            return rt.worker_pid

        rt.bind_function("itself", itself)
        pid: int = await rt.eval("itself()")
        return pid

    async def main() -> int:
        pid = await use()
        gc.collect()
        await until(lambda: not _is_alive(pid))
        return pid

    pid = run_on_loop(main())
    assert not _is_alive(pid)


def test_a_runtime_outlives_the_loop_that_it_was_used_on(kind: Any3, run_on_loop: RunOnLoop) -> None:
    rt, gauge = kind(), Gauge()
    rt.bind_function("work", gauge)

    async def leave_behind() -> None:
        task = asyncio.ensure_future(rt.eval_async("globalThis.x = 5; work(1, 60)"))
        await until(lambda: gauge.now == 1)
        del task

    run_on_loop(leave_behind())

    async def use() -> None:
        assert await rt.eval_async("x") == 5
        assert await rt.eval_async("work(2, 0)") == 2

    run_on_loop(use())
    run_on_loop(use())
    rt.close()


def test_a_start_that_its_loop_left_behind_is_begun_again_on_the_next(run_on_loop: RunOnLoop) -> None:
    rt = AsyncIsolatedRuntime()

    async def leave_behind() -> None:
        asyncio.ensure_future(rt.start())  # noqa: RUF006 - this is the point
        await asyncio.sleep(0)

    run_on_loop(leave_behind())
    again: Coroutine[Any, Any, Any] = rt.eval("40 + 2")
    assert run_on_loop(again) == 42
    rt.close()


def test_a_loop_that_is_busy_with_a_runtime_keeps_it_from_another_loop() -> None:
    rt = IsolatedRuntime()
    gauge = Gauge()
    rt.bind_function("work", gauge)
    refused: list[Exception] = []

    async def elsewhere() -> None:
        try:
            await rt.eval_async("1")
        except InvalidInput as error:
            refused.append(error)

    async def main() -> None:
        task = asyncio.ensure_future(rt.eval_async("work(1, 0.3)"))
        await until(lambda: gauge.now == 1)
        await asyncio.to_thread(asyncio.run, elsewhere())
        assert await task == 1

    asyncio.run(main())
    assert "another event loop" in str(refused[0])
    rt.close()


def test_a_thread_that_evaluates_does_not_hold_up_a_loop(run_on_loop: RunOnLoop) -> None:
    rt = IsolatedRuntime(timeout=1)

    def evaluate() -> str:
        # It may be refused, too, while the loop evaluates.
        while (result := rt.execute("for (;;) {}")).status == "invalid_input":
            pass
        return result.status

    async def main() -> None:
        assert await rt.eval_async("1") == 1
        thread = asyncio.ensure_future(asyncio.to_thread(evaluate))
        refused = 0
        while not thread.done():
            try:
                await rt.eval_async("2")
            except InvalidInput:
                refused += 1
            await asyncio.sleep(0.005)
        assert await thread == "timeout"
        assert refused > 0
        assert await rt.eval_async("3") == 3

    run_on_loop(main())
    rt.close()


def test_eval_runs_async_functions_without_a_loop(door: type[Any]) -> None:
    with door() as rt:
        gauge = Gauge()
        rt.bind_function("work", gauge)
        rt.bind_object("tools", {"work": gauge})
        assert rt.eval("Promise.all([work(1), tools.work(2)])") == [1, 2]
        assert gauge.most == 2
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


Ask = Callable[[str, GateContext], Any]


def test_a_gate_decides_on_a_loop_too(kind: Any3, run_on_loop: RunOnLoop) -> None:
    seen: list[tuple[str, str]] = []

    def gate(source: str, context: GateContext) -> Verdict:
        seen.append((source, context.runtime))
        return Verdict("no" not in source, "it says no")

    async def async_gate(source: str, context: GateContext) -> Verdict:
        await asyncio.sleep(0)
        return gate(source, context)

    async def main(ask: Ask) -> None:
        rt = kind(gate=ask)
        assert await rt.eval_async("'yes'") == "yes"
        with pytest.raises(GateDenied, match="it says no"):
            await rt.eval_async("globalThis.x = 'no'")
        assert await rt.eval_async("typeof x") == "undefined"
        rt.close()

    for ask in (gate, async_gate):
        seen.clear()
        run_on_loop(main(ask))
        assert seen[0] == ("'yes'", kind.__name__)


@pytest.mark.parametrize(
    "raised", [ValueError, StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError]
)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["def", "async def"])
def test_a_gate_that_fails_on_a_loop_is_no_permission(
    kind: Any3, run_on_loop: RunOnLoop, raised: type[BaseException], asynchronous: bool
) -> None:
    def fails(source: str, context: GateContext) -> Verdict:
        raise raised

    async def fails_later(source: str, context: GateContext) -> Verdict:
        raise raised

    async def main() -> None:
        rt = kind(gate=fails_later if asynchronous else fails)
        with pytest.raises(GateUnavailable):
            await rt.eval_async("1")
        rt.close()

    run_on_loop(main())


def test_a_gate_that_never_answers_holds_up_neither_the_loop_nor_its_end(
    kind: Any3, run_on_loop: RunOnLoop
) -> None:
    never = threading.Event()

    def gate(source: str, context: GateContext) -> Verdict:
        never.wait()
        return Verdict(allow=True)

    async def main() -> None:
        rt = kind(gate=gate, gate_timeout=0.05)
        with pytest.raises(GateUnavailable, match="gate_timeout"):
            await rt.eval_async("1")
        task = asyncio.ensure_future(kind(gate=gate).eval_async("1"))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        rt.close()

    run_on_loop(main())
    never.set()


def test_a_runtime_without_its_sandbox_warns_and_one_that_warns_into_an_error_leaves_no_worker(
    run_on_loop: RunOnLoop,
) -> None:
    async def main() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(SandboxDegradedWarning):
                await AsyncIsolatedRuntime(sandbox="off").start()
        with pytest.warns(SandboxDegradedWarning):
            async with AsyncIsolatedRuntime(sandbox="off") as rt:
                assert await rt.eval("40 + 2") == 42
                assert rt.sandbox_degraded

    run_on_loop(main())


def test_functions_can_be_bound_and_revoked_before_the_start(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = AsyncIsolatedRuntime()
        rt.bind_function("f", lambda: 1)
        rt.bind_object("tools", {"g": lambda: 2, "h": lambda: 3})
        assert rt.revoke_function("tools.g")
        assert not rt.revoke_function("tools.g")
        assert await rt.eval("[f(), typeof tools.g, tools.h()]") == [1, "undefined", 3]
        assert rt.revoke_function("f")
        assert (
            await rt.eval("try { f() } catch (error) { error.message }")
            == "the host function f has been revoked"
        )
        rt.close()

    run_on_loop(main())


def test_a_loop_that_is_cancelled_from_a_function_stops_its_evaluation(
    isolated_kind: type[Any], run_on_loop: RunOnLoop
) -> None:
    async def main() -> None:
        rt = isolated_kind()
        tasks: list[asyncio.Task[Any]] = []
        rt.bind_function("cancel", lambda: [task.cancel() for task in tasks])
        tasks.append(asyncio.ensure_future(rt.eval_async("cancel(); for (;;) {}")))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        assert await rt.eval_async("40 + 2") == 42
        rt.close()

    run_on_loop(main())


def test_the_kind_of_a_cancelled_evaluation_is_cancelled() -> None:
    assert EvaluationCancelled("x").kind == "cancelled"


def test_awaitable_values_are_ordinary_coroutines(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = AsyncIsolatedRuntime()
        pending: Awaitable[Any] = rt.eval("1")
        assert await pending == 1
        rt.close()

    run_on_loop(main())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
