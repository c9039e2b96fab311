"""A pool's processes and descriptors live exactly as long as they should."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from processes import PATIENCE, children, is_alive, parent_of, python, ticks_of, wait_until, wait_until_ended
from pydeno import AsyncSandboxPool, InvalidInput, IsolatedRuntime, SandboxPool, WorkerCrashed


def wait_until_ready(pool: SandboxPool | AsyncSandboxPool, number: int) -> None:
    wait_until(lambda: pool.stats().ready == number, f"{number} ready workers")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def settles(measure: Callable[[], int], at_most: int) -> None:
    wait_until(lambda: measure() <= at_most, f"at most {at_most}")


@contextlib.contextmanager
def crowded_processor() -> Iterator[int]:
    """A processor that somebody keeps busy: what wants to run there has to wait."""
    processor = max(os.sched_getaffinity(0))
    script = f"import os; os.sched_setaffinity(0, {{{processor}}}); print(flush=True)\nwhile True: pass"
    with python(script) as busy:
        try:
            assert busy.stdout is not None
            busy.stdout.readline()
            yield processor
        finally:
            busy.kill()


def test_a_closed_pool_leaves_no_process_thread_or_descriptor() -> None:
    with IsolatedRuntime() as rt:
        rt.eval("1")
    before = (len(children(os.getpid())), threads(), descriptors())
    with SandboxPool(size=3) as pool:
        wait_until_ready(pool, 3)
        # And the zygote.
        assert len(children(os.getpid())) >= 4
        pool.eval("1")
    del pool
    settles(lambda: len(children(os.getpid())), before[0])
    settles(threads, before[1])
    settles(descriptors, before[2])


def test_a_forgotten_pool_ends_its_workers() -> None:
    pool = SandboxPool(size=2)
    wait_until_ready(pool, 2)
    before = len(children(os.getpid()))
    # A cycle through a bound function, so that the garbage collector has to find it.
    pool.bind_function("own", functools.partial(SandboxPool.stats, pool))
    del pool
    gc.collect()
    settles(lambda: len(children(os.getpid())), before - 2)


def test_a_ready_worker_that_is_killed_is_replaced_before_anybody_gets_it() -> None:
    with SandboxPool(size=2) as pool:
        wait_until_ready(pool, 2)
        with pool.checkout() as rt:
            parent = parent_of(rt.worker_pid)
            wait_until_ready(pool, 2)
            created = pool.stats().created
            victims = [pid for pid in children(parent) if pid != rt.worker_pid]
            assert len(victims) >= 2
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: pool.stats().created >= created + 2, "two successors")
            wait_until_ready(pool, 2)
            assert pool.stats().failures >= 2
            assert pool.eval("40 + 2") == 42
            assert rt.eval("1") == 1


def test_a_worker_that_dies_in_use_gives_its_place_back_when_it_is_noticed() -> None:
    with SandboxPool(size=1, max_workers=1) as pool:
        rt = pool.checkout()
        os.kill(rt.worker_pid, signal.SIGKILL)
        with pytest.raises(WorkerCrashed):
            rt.eval("1")
        assert pool.eval("2") == 2


def test_a_pool_survives_the_end_of_its_zygote() -> None:
    with SandboxPool(size=1) as pool:
        with pool.checkout() as rt:
            parent = parent_of(rt.worker_pid)
        os.kill(parent, signal.SIGKILL)
        wait_until_ended(parent, "the zygote")
        for _ in range(3):
            assert pool.eval("40 + 2") == 42


def test_a_worker_whose_zygote_has_ended_is_not_handed_out_however_long_its_own_end_takes() -> None:
    outlived = 0
    with crowded_processor() as processor:
        for _ in range(20):
            with SandboxPool(size=1) as pool:
                with pool.checkout() as rt:
                    parent = parent_of(rt.worker_pid)
                    wait_until_ready(pool, 1)
                    [spare] = [pid for pid in children(parent) if pid != rt.worker_pid]
                os.sched_setaffinity(spare, {processor})
                os.sched_setscheduler(spare, os.SCHED_IDLE, os.sched_param(0))
                os.kill(parent, signal.SIGKILL)
                wait_until_ended(parent, "the zygote")
                outlived += is_alive(spare)
                assert pool.eval("40 + 2") == 42
    assert outlived > 0, "a control: this test has shown something"


def test_a_forked_copy_of_the_host_cannot_use_the_pool_and_does_it_no_harm() -> None:
    with python(
        """
        import os, gc
        from pydeno import InvalidInput, SandboxPool
        pool = SandboxPool(size=2, max_workers=3)
        rt = pool.checkout()
        assert rt.eval("1") == 1
        child = os.fork()
        if child == 0:
            for attempt in (pool.checkout, pool.stats, lambda: pool.bind_function("f", print)):
                try:
                    attempt()
                except InvalidInput as error:
                    assert "forked" in str(error)
                else:
                    os._exit(1)
            assert pool.is_closed()
            del pool, rt
            gc.collect()
            with SandboxPool(size=1) as own:
                assert own.eval("40 + 2") == 42
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert rt.eval("2") == 2
        assert pool.stats().in_use == 1
        assert pool.eval("3") == 3
        print("fine")
        """
    ) as host:
        out, err = host.communicate(timeout=PATIENCE * 3)
        assert out == "fine\n", err
        assert host.returncode == 0


def test_a_host_that_exits_with_an_open_pool_leaves_nothing() -> None:
    with python(
        """
        from pydeno import SandboxPool
        pool = SandboxPool(size=3)
        rt = pool.checkout()
        print(rt.worker_pid, flush=True)
        input()
        """
    ) as host:
        assert host.stdout is not None
        assert host.stdin is not None
        int(host.stdout.readline())
        below = children(host.pid)
        host.stdin.write("\n")
        host.stdin.close()
        assert host.wait(PATIENCE) == 0
        wait_until(lambda: not any(map(is_alive, below)), "the end of the workers")


def test_a_signal_handler_ends_a_wait_for_a_worker() -> None:
    with python(
        """
        import signal
        from pydeno import SandboxPool
        with SandboxPool(size=1, max_workers=1, checkout_timeout=600) as pool, pool.checkout():
            try:
                print("waiting", flush=True)
                pool.checkout()
            except KeyboardInterrupt:
                print("interrupted", pool.stats().waiting)
        """
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "waiting\n"
        host.send_signal(signal.SIGINT)
        assert host.stdout.read() == "interrupted 0\n"
        assert host.wait(PATIENCE) == 0


def test_a_machine_that_gives_no_descriptors_is_an_error_of_the_checkout() -> None:
    with python(
        """
        import os, resource
        from pydeno import SandboxPool, WorkerCrashed
        with SandboxPool(size=1, checkout_timeout=20) as pool:
            assert pool.eval("1") == 1
            while pool.stats().starting or not pool.stats().ready:
                pass
            held = pool.checkout()
            while pool.stats().starting or not pool.stats().ready:
                pass
            used = max(int(name) for name in os.listdir("/proc/self/fd"))
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1, hard))
            last = pool.checkout()
            fillers = []
            try:
                while True:
                    fillers.append(os.dup(0))
            except OSError:
                pass
            for _ in range(3):
                try:
                    pool.checkout()
                except WorkerCrashed as error:
                    assert "ulimit -n" in str(error), error
                else:
                    raise SystemExit("a worker without a descriptor")
            for fd in fillers:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            assert pool.eval("40 + 2") == 42
            print("fine")
        """
    ) as host:
        out, err = host.communicate(timeout=PATIENCE * 3)
        assert out == "fine\n", err


def test_a_hundred_idle_runtimes_cost_two_descriptors_and_no_thread_each_and_use_no_processor() -> None:
    count = 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft >= 512, (soft, hard)
    with IsolatedRuntime() as rt:
        rt.eval("1")
    before, threads_before = descriptors(), threads()
    runtimes = [IsolatedRuntime() for _ in range(count)]
    try:
        for number, rt in enumerate(runtimes):
            assert rt.eval(f"let own = {number}; own") == number
        # The monitor gives back what it measured with when nothing is busy any more.
        settles(descriptors, before + 2 * count + 8)
        assert threads() <= threads_before

        def ticks() -> int:
            return sum(ticks_of(rt.worker_pid) for rt in runtimes)

        def used_in_a_while() -> int:
            before = ticks()
            time.sleep(0.5)
            return ticks() - before

        # The kernel charges a whole tick to whoever it finds running, which may be the end of a start. What goes on
        # for ever would be seen each time.
        assert 0 in (used_in_a_while() for _ in range(5))
        assert [rt.eval("own") for rt in runtimes] == list(range(count))
    finally:
        for rt in runtimes:
            rt.close()
        del rt
        runtimes.clear()
    settles(descriptors, before + 8)


def test_closing_many_runtimes_in_a_row_leaves_as_many_descriptors_as_before() -> None:
    with IsolatedRuntime() as rt:
        rt.eval("1")
    before, processes = descriptors(), len(children(os.getpid()))
    for number in range(50):
        with IsolatedRuntime() as rt:
            assert rt.eval(f"{number}") == number
    settles(descriptors, before + 8)
    settles(lambda: len(children(os.getpid())), processes + 1)


def test_an_inherited_pool_says_so() -> None:
    with SandboxPool(size=1) as pool:
        pool.eval("1")
        child = os.fork()
        if child == 0:
            try:
                pool.checkout()
            except InvalidInput:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
