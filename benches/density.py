"""How many idle runtimes one machine holds, and whether making them in a row leaves anything behind.

    .venv/bin/python benches/density.py                 2,000 at a time, 20,000 in a row, and a pool
    .venv/bin/python benches/density.py 500 1000        other numbers of both

Nothing here fails for being slow.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from pathlib import Path

from figures import private_bytes, show
from pydeno import IsolatedRuntime, SandboxPool


def need_descriptors(number: int) -> None:
    """Raise the soft limit of this process, which is no wish of anybody's, to what is needed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(number, 1024)), hard))


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def field(pid: int, index: int) -> int:
    """A number of `/proc/PID/stat`, counted from the process's state."""
    line = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    return int(line.rpartition(")")[2].split()[index])


def ticks(pids: list[int]) -> int:
    """The processor time of all of them, in clock ticks."""
    return sum(field(pid, 11) + field(pid, 12) for pid in pids)


def resident() -> float:
    """This process's memory in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def many_at_a_time(number: int) -> None:
    """Live idle runtimes, each of which has evaluated something."""
    need_descriptors(8 * number)
    before, memory = descriptors(), resident()
    started = time.perf_counter()
    runtimes = [IsolatedRuntime() for _ in range(number)]
    for runtime in runtimes:
        runtime.eval("globalThis.own = [1, 2, 3]; 1+1")
    elapsed = time.perf_counter() - started
    pids = [runtime.worker_pid for runtime in runtimes]
    print(f"{number} runtimes started and evaluated in {elapsed:.1f} s, {elapsed / number * 1e3:.2f} ms each")
    time.sleep(1)
    print(f"  descriptors of the host, each         {(descriptors() - before) / number:10.2f}")
    print(f"  memory of the host, each              {(resident() - memory) * 1024 / number:10.2f} KiB")
    sizes = [private_bytes(pid) / 2**20 for pid in pids[:: max(1, number // 200)]]
    print(
        f"  private memory of a worker, median    {statistics.median(sizes):10.2f} MiB, most {max(sizes):.2f}"
    )
    used = ticks(pids) + ticks([os.getpid()])
    time.sleep(2)
    # This process first: looking at thousands of others takes time of its own.
    own = ticks([os.getpid()]) + ticks(pids) - used
    print(f"  processor time while idle for 2 s     {own:10d} ticks")
    assert all(runtime.eval("own.length") == 3 for runtime in runtimes)
    started = time.perf_counter()
    for runtime in runtimes:
        runtime.close()
    print(f"  closed in {time.perf_counter() - started:.2f} s")


def many_in_a_row(number: int) -> None:
    """Runtimes made and closed one after the other."""
    rounds = 10
    for part in range(rounds + 1):
        started = time.perf_counter()
        for _ in range(number // rounds if part else 1):
            with IsolatedRuntime() as runtime:
                runtime.eval("1+1")
        elapsed = time.perf_counter() - started
        threads = len(list(Path("/proc/self/task").iterdir()))
        print(
            f"  after {part * (number // rounds):6d}: {descriptors():4d} descriptors, {resident():6.1f} MiB, "
            f"{threads} threads, {elapsed:6.1f} s"
        )


def pool() -> None:
    """What a checkout costs when a worker is ready, and in a burst."""
    with SandboxPool(size=8, max_workers=200) as workers:
        workers.bind_function("tool", lambda: 1)
        checkouts, firsts, both = [], [], []
        for _ in range(300):
            while workers.stats().ready < 8:
                time.sleep(0.001)
            started = time.perf_counter()
            runtime = workers.checkout()
            checked_out = time.perf_counter()
            runtime.eval("1+1")
            evaluated = time.perf_counter()
            runtime.close()
            checkouts.append(checked_out - started)
            firsts.append(evaluated - checked_out)
            both.append(evaluated - started)
        show("pool: checkout of a ready worker", checkouts)
        show("pool: its first eval('1+1')", firsts)
        show("pool: both", both)
        with SandboxPool(size=64) as filled:
            while filled.stats().ready < 64:
                time.sleep(0.001)
            times = []
            for _ in range(48):
                started = time.perf_counter()
                runtime = filled.checkout()
                times.append(time.perf_counter() - started)
                runtime.close()
            show("pool: checkout, 48 in a row from 64 ready", times)
        while workers.stats().ready < 8:
            time.sleep(0.001)
        started = time.perf_counter()
        burst = [workers.checkout() for _ in range(100)]
        show("pool: each checkout of a burst of 100 from 8 ready", [time.perf_counter() - started], per=100)
        for runtime in burst:
            runtime.close()


def main() -> None:
    """Everything."""
    numbers = [int(number) for number in sys.argv[1:]] or [2000, 20_000]
    pool()
    many_at_a_time(numbers[0])
    print(f"{numbers[1]} runtimes in a row")
    many_in_a_row(numbers[1])


if __name__ == "__main__":
    main()
