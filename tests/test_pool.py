"""Runtimes of a pool: what they can do, who gets one when, and what is an error."""

from __future__ import annotations

import asyncio
import functools
import gc
import pickle
import threading
import time

import pytest

from processes import PATIENCE, wait_until
from pydeno import (
    AsyncSandboxPool,
    CheckoutTimeout,
    GateDenied,
    HostCallBudgetExceeded,
    InvalidInput,
    JavaScriptError,
    PoolStats,
    RuntimeClosed,
    RuntimeConfig,
    RuntimeTerminated,
    RuntimeTimeout,
    SandboxDegradedWarning,
    SandboxPool,
    SourcePolicy,
    static_gate,
    undefined,
)


def wait_until_ready(pool: SandboxPool | AsyncSandboxPool, number: int) -> None:
    wait_until(lambda: pool.stats().ready == number, f"{number} ready workers")


def waiters_are(pool: SandboxPool, number: int) -> bool:
    return pool.stats().waiting == number


def test_a_checkout_is_a_confined_runtime_with_the_pools_options() -> None:
    with SandboxPool(RuntimeConfig(timeout=1), size=1, strict_eval=True) as pool, pool.checkout() as rt:
        assert rt.eval("40 + 2") == 42
        assert rt.sandbox != "none"
        assert not rt.sandbox_degraded
        with pytest.raises(JavaScriptError, match="EvalError"):
            rt.eval("eval('1')")


def test_no_two_checkouts_share_a_worker_or_its_state() -> None:
    with SandboxPool(size=2) as pool:
        pids = set()
        for _ in range(6):
            with pool.checkout() as rt:
                assert rt.eval("typeof secret") == "undefined"
                assert rt.eval("let secret = 1; secret") == 1
                pids.add(rt.worker_pid)
        assert len(pids) == 6


def test_workers_are_ready_before_anybody_asks() -> None:
    with SandboxPool(size=3) as pool:
        wait_until_ready(pool, 3)
        with pool.checkout() as rt:
            assert rt.eval("1") == 1
        assert pool.stats().waits == 0
        assert pool.stats().checkouts == 1
        wait_until_ready(pool, 3)
        assert pool.stats().created == 4


def test_functions_bound_before_and_after_a_worker_was_made_ready_are_there() -> None:
    with SandboxPool(size=1) as pool:
        pool.bind_function("double", lambda x: 2 * x)
        wait_until_ready(pool, 1)

        @pool.bind
        def triple(x: int) -> int:
            return 3 * x

        pool.bind_object("tools", {"square": lambda x: x * x})
        for _ in range(3):
            with pool.checkout() as rt:
                assert rt.eval("[double(2), triple(2), tools.square(3)]") == [4, 6, 9]
                rt.bind_function("own", lambda: "mine")
                assert rt.eval("own() + double(1)") == "mine2"


def test_a_function_bound_after_a_checkout_is_not_in_that_runtime() -> None:
    with SandboxPool(size=1) as pool, pool.checkout() as rt:
        pool.bind_function("late", lambda: 1)
        assert rt.eval("typeof late") == "undefined"
        with pool.checkout() as later:
            assert later.eval("late()") == 1


def test_an_async_function_of_the_pool_is_awaited_by_a_blocking_eval() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    with SandboxPool(size=1) as pool:
        pool.bind_function("answer", answer)
        assert pool.eval("answer().then(x => x + 1)") == 43


def test_a_name_that_no_script_can_write_is_refused_at_once() -> None:
    with SandboxPool(size=1) as pool, pytest.raises(InvalidInput):
        pool.bind_function("no identifier", print)


def test_the_bootstrap_script_has_run_and_its_console_reaches_the_checkout() -> None:
    bootstrap = "const library = {version: 7}; console.log('loaded'); 1"
    with SandboxPool(RuntimeConfig(bootstrap=bootstrap), size=2, capture_console=True) as pool:
        wait_until_ready(pool, 2)
        for _ in range(3):
            with pool.checkout() as rt:
                assert [line.text for line in rt.take_console()] == ["loaded"]
                assert rt.eval("library.version") == 7


def test_a_bootstrap_script_that_fails_is_an_error_of_each_checkout_and_not_an_endless_loop() -> None:
    with SandboxPool(RuntimeConfig(bootstrap="throw new RangeError('no library')"), size=2) as pool:
        for _ in range(3):
            with pytest.raises(JavaScriptError, match="no library"):
                pool.checkout()
        stats = pool.stats()
        # Nobody asks, so nothing is tried.
        time.sleep(0.1)
        assert pool.stats().failures <= stats.failures + stats.starting
        assert pool.stats().starting == 0


def test_eval_uses_a_runtime_of_its_own_and_gives_its_place_back() -> None:
    with SandboxPool(size=1, max_workers=1) as pool:
        for _ in range(4):
            assert pool.eval("globalThis.x = (globalThis.x ?? 0) + 1") == 1
        with pytest.raises(JavaScriptError):
            pool.eval("throw 1")
        assert pool.eval("undefined") is undefined


def test_a_full_pool_times_out_and_everybody_else_goes_on() -> None:
    with SandboxPool(size=1, max_workers=1, checkout_timeout=0.05) as pool:
        wait_until_ready(pool, 1)
        rt = pool.checkout()
        with pytest.raises(CheckoutTimeout, match="1 workers") as caught:
            pool.checkout()
        assert caught.value.kind == "checkout_timeout"
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.runtime_survives
        assert rt.eval("40 + 2") == 42
        assert pool.stats().timeouts == 1
        rt.close()
        wait_until_ready(pool, 1)
        assert pool.eval("1") == 1


def test_no_more_workers_than_allowed_exist() -> None:
    most = 3
    with SandboxPool(size=2, max_workers=most) as pool:
        peak = []

        def use() -> None:
            for _ in range(4):
                with pool.checkout() as rt:
                    rt.eval("1")
                    stats = pool.stats()
                    peak.append(stats.ready + stats.starting + stats.in_use)

        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(peak) == 32
        assert max(peak) <= most


def test_those_who_wait_are_served_in_the_order_in_which_they_came() -> None:
    with SandboxPool(size=1, max_workers=1) as pool:
        served: list[int] = []
        held = pool.checkout()

        def wait_for_one(number: int) -> None:
            with pool.checkout():
                served.append(number)

        threads = []
        for number in range(5):
            thread = threading.Thread(target=wait_for_one, args=(number,))
            thread.start()
            threads.append(thread)
            wait_until(functools.partial(waiters_are, pool, number + 1), "the wait")
        held.close()
        for thread in threads:
            thread.join(PATIENCE)
        assert served == [0, 1, 2, 3, 4]


def test_a_runtime_that_is_forgotten_gives_its_place_back() -> None:
    with SandboxPool(size=1, max_workers=1) as pool:
        rt = pool.checkout()
        rt.eval("1")
        assert pool.stats().in_use == 1
        del rt
        gc.collect()
        assert pool.stats().in_use == 0
        assert pool.eval("2") == 2


def test_a_caller_that_raises_gives_its_place_back() -> None:
    with SandboxPool(size=1, max_workers=1) as pool:
        with pytest.raises(KeyError), pool.checkout():
            raise KeyError
        assert pool.eval("2") == 2


def test_a_terminated_runtime_gives_its_place_back_while_it_is_still_held() -> None:
    with SandboxPool(size=1, max_workers=1) as pool:
        rt = pool.checkout()
        rt.terminate()
        with pytest.raises(RuntimeTerminated):
            rt.eval("1")
        assert pool.eval("2") == 2


def test_a_closed_pool_hands_out_nothing_and_leaves_checked_out_runtimes_alone() -> None:
    pool = SandboxPool(size=1)
    with pool.checkout() as rt:
        pool.close()
        pool.close()
        assert pool.is_closed()
        assert rt.eval("40 + 2") == 42
        with pytest.raises(RuntimeClosed, match="pool is closed"):
            pool.checkout()
        with pytest.raises(RuntimeClosed):
            pool.bind_function("f", print)
        assert "closed" in repr(pool)


def test_closing_the_pool_ends_every_wait() -> None:
    pool = SandboxPool(size=1, max_workers=1)
    errors: list[Exception] = []

    def wait_for_one() -> None:
        try:
            pool.checkout()
        except RuntimeClosed as error:
            errors.append(error)

    with pool.checkout():
        threads = [threading.Thread(target=wait_for_one) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: pool.stats().waiting == 3, "three waits")
        pool.close()
        for thread in threads:
            thread.join(PATIENCE)
    assert len(errors) == 3


def test_a_pool_without_a_sandbox_warns_at_each_checkout() -> None:
    with SandboxPool(size=1, sandbox="off") as pool:
        for _ in range(2):
            with pytest.warns(SandboxDegradedWarning, match="not complete") as caught, pool.checkout() as rt:
                assert rt.sandbox_degraded
            assert caught[0].filename == __file__


def test_the_pools_gate_stands_in_front_of_every_runtime() -> None:
    with SandboxPool(size=1, gate=static_gate(SourcePolicy(forbid_eval=True))) as pool:
        with pytest.raises(GateDenied):
            pool.eval("eval('1')")
        assert pool.eval("40 + 2") == 42
    with SandboxPool(size=1) as pool:
        assert pool.eval("eval('1')") == 1


def test_limits_of_the_pool_hold_in_its_runtimes() -> None:
    with SandboxPool(RuntimeConfig(timeout=0.2), size=1, max_host_calls=3) as pool:
        pool.bind_function("tick", lambda: 1)
        with pool.checkout() as rt:
            with pytest.raises(RuntimeTimeout):
                rt.eval("for (;;);")
            with pytest.raises(HostCallBudgetExceeded):
                rt.eval("for (let i = 0; i < 4; i += 1) tick();")
            assert rt.eval("tick()") == 1


def test_workers_with_an_address_space_of_their_own_can_wait_ready_too() -> None:
    with SandboxPool(size=2, worker_start="exec") as pool:
        wait_until_ready(pool, 2)
        assert [pool.eval(f"{number}") for number in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"size": 0}, InvalidInput),
        ({"size": 3, "max_workers": 2}, InvalidInput),
        ({"size": True}, TypeError),
        ({"checkout_timeout": 0}, InvalidInput),
        ({"checkout_timeout": float("nan")}, InvalidInput),
        ({"max_memory": 0}, InvalidInput),
        ({"no_such_option": 1}, TypeError),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, float], error: type[Exception]) -> None:
    with pytest.raises(error):
        SandboxPool(**options)  # type: ignore[arg-type]


def test_statistics_are_a_record_that_cannot_be_changed() -> None:
    with SandboxPool(size=1) as pool:
        wait_until_ready(pool, 1)
        stats = pool.stats()
    assert isinstance(stats, PoolStats)
    assert (stats.ready, stats.in_use, stats.starting) == (1, 0, 0)
    assert stats == pickle.loads(pickle.dumps(stats))
    with pytest.raises(AttributeError):
        stats.ready = 2


def test_many_threads_get_a_runtime_each() -> None:
    with SandboxPool(size=2, max_workers=4) as pool:
        pool.bind_function("double", lambda x: 2 * x)
        results: list[int] = []

        def use(number: int) -> None:
            results.extend(pool.eval(f"double({number})") for _ in range(3))

        threads = [threading.Thread(target=use, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert sorted(results) == sorted([2 * number for number in range(10)] * 3)


def test_an_async_checkout_is_awaited_and_closed_at_the_end_of_its_block() -> None:
    async def answer(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    async def main() -> None:
        async with AsyncSandboxPool(size=1, max_workers=2) as pool:
            pool.bind_function("answer", answer)
            async with pool.checkout() as rt:
                assert await rt.eval("answer(41)") == 42
            assert rt.is_closed()
            held = await pool.checkout()
            assert await held.eval("1") == 1
            held.close()
            assert await pool.eval("answer(1)") == 2

    asyncio.run(main())


def test_more_tasks_than_workers_are_served_by_one_loop() -> None:
    async def main() -> None:
        async with AsyncSandboxPool(size=2, max_workers=3) as pool:
            results = await asyncio.gather(*(pool.eval(f"{number} + 1") for number in range(20)))
            assert results == list(range(1, 21))
            assert pool.stats().in_use == 0

    asyncio.run(main())


def test_an_async_wait_times_out_without_holding_up_the_loop() -> None:
    async def main() -> None:
        async with AsyncSandboxPool(size=1, max_workers=1, checkout_timeout=0.05) as pool:
            wait_until_ready(pool, 1)
            async with pool.checkout() as rt:
                waiting = asyncio.ensure_future(pool.eval("1"))
                assert await rt.eval("40 + 2") == 42
                with pytest.raises(CheckoutTimeout):
                    await waiting
                assert pool.stats().waiting == 0
                assert pool.stats().timeouts == 1

    asyncio.run(main())


def test_a_task_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    async def main() -> None:
        async with AsyncSandboxPool(size=1, max_workers=1) as pool:
            async with pool.checkout():
                waiting = asyncio.ensure_future(pool.eval("1"))
                while pool.stats().waiting == 0:
                    await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert pool.stats().waiting == 0
            assert await pool.eval("2") == 2

    asyncio.run(main())


def test_closing_an_async_pool_ends_its_waits() -> None:
    async def main() -> None:
        pool = AsyncSandboxPool(size=1, max_workers=1)
        async with pool.checkout():
            waiting = asyncio.ensure_future(pool.eval("1"))
            while pool.stats().waiting == 0:
                await asyncio.sleep(0)
            pool.close()
            with pytest.raises(RuntimeClosed):
                await waiting

    asyncio.run(main())


def test_an_async_pool_serves_one_loop_after_another() -> None:
    pool = AsyncSandboxPool(size=1, max_workers=1)

    async def main() -> list[object]:
        return list(await asyncio.gather(pool.eval("1"), pool.eval("2")))

    assert asyncio.run(main()) == [1, 2]
    assert asyncio.run(main()) == [1, 2]
    pool.close()
