"""How evaluations on an event loop end, and runtimes, and loops: nothing is left behind, and nothing hangs."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from on_a_loop import Any3, Gauge, RunOnLoop, is_alive, until
from pydeno import (
    AsyncIsolatedRuntime,
    EvaluationCancelled,
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
    WorkerCrashed,
)


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
            await until(lambda: not is_alive(pid))  # noqa: B023

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
        await until(lambda: not is_alive(pid))
        return pid

    pid = run_on_loop(main())
    assert not is_alive(pid)


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


def in_a_fork(action: Callable[[], object]) -> None:
    """Run something in a copy of this process that ends at once."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_fork_that_closes_its_copy_leaves_the_loop_of_its_parent_alone(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = AsyncIsolatedRuntime(), Gauge()
        rt.bind_function("work", gauge)
        assert await rt.eval("work(1, 0)") == 1
        in_a_fork(rt.close)
        assert await asyncio.wait_for(rt.eval("work(2, 0)"), 20) == 2
        rt.close()

    run_on_loop(main())


def test_a_fork_that_closes_its_copy_leaves_the_parents_own_loop_alone() -> None:
    with IsolatedRuntime(request_timeout=20) as rt:
        rt.bind_function("work", Gauge())
        assert rt.eval("work(1, 0)") == 1
        in_a_fork(rt.close)
        assert rt.eval("work(2, 0)") == 2


def test_a_forked_loop_is_told_that_the_runtime_is_its_parents() -> None:
    with IsolatedRuntime(request_timeout=20) as rt:
        rt.bind_function("work", Gauge())
        assert rt.eval("work(1, 0)") == 1
        read, write = os.pipe()

        def child() -> None:
            try:
                rt.eval("work(2, 0)")
            except InvalidInput as error:
                os.write(write, str(error).encode())

        in_a_fork(child)
        os.close(write)
        assert b"fork" in os.read(read, 1000)
        os.close(read)
        assert rt.eval("work(3, 0)") == 3
