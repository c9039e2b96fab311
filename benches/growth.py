"""How time and memory grow with the size of a value, live runtimes, concurrent callers, and the size of a script.

.venv/bin/python benches/growth.py     prints the curves; `make bench` puts them on its page
"""

from __future__ import annotations

import asyncio
import gc
import math
import re
import resource
import statistics
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from density import resident
from figures import private_bytes
from pydeno import AsyncIsolatedRuntime, IsolatedRuntime, RuntimeConfig, check_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Point = tuple[float, float]
CONFIG = RuntimeConfig(timeout=60, max_serialization_bytes=1 << 30)


def median_time(action: Callable[[], object], least: int = 3, budget: float = 0.15) -> float:
    """The median duration, in seconds."""
    action()
    samples: list[float] = []
    began = time.perf_counter()
    while len(samples) < least or time.perf_counter() - began < budget:
        started = time.perf_counter()
        action()
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def peak(pid: int | str) -> float:
    """The most memory that a process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def always(value: object) -> Callable[[], object]:
    """A host function that returns the value."""
    return lambda: value


def curve(key: str, title: str, x: str, y: str, **series: Sequence[Point]) -> dict[str, Any]:
    """One plot: names of series to points, with the exponent of the growth at their upper end."""
    return {
        "key": key,
        "title": title,
        "x": x,
        "y": y,
        "series": {name.replace("_", " "): points for name, points in series.items()},
        "exponents": {name.replace("_", " "): exponent(points) for name, points in series.items()},
    }


def exponent(points: Sequence[Point]) -> float:
    """The slope of the upper half in doubly logarithmic paper: 1 is linear, 0 is constant."""
    upper = [(math.log(x), math.log(y)) for x, y in points[len(points) // 2 :] if y > 0]
    mean_x, mean_y = (statistics.mean(values) for values in zip(*upper, strict=True))
    spread: float = sum((x - mean_x) ** 2 for x, _ in upper)
    together: float = sum((x - mean_x) * (y - mean_y) for x, y in upper)
    return round(together / spread, 2)


def values() -> list[dict[str, Any]]:
    """Objects of three fields, and bytes."""
    out, into, memory, data_out, data_in = [], [], [], [], []
    for number in (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000):
        given = [{"id": i, "name": f"item {i}", "v": i / 7} for i in range(number)]
        with IsolatedRuntime(CONFIG) as runtime:
            runtime.bind_function("given", always(given))
            runtime.eval("1")
            before = peak(runtime.worker_pid)
            into.append((number, median_time(partial(runtime.eval, "given().length"))))
            runtime.eval("const kept = given(); 0")
            out.append((number, median_time(partial(runtime.eval, "kept"))))
            memory.append((number, peak(runtime.worker_pid) - before))
    for size in [4**power << 10 for power in range(9)]:
        block = b"\7" * size
        with IsolatedRuntime(CONFIG) as runtime:
            runtime.bind_function("given", always(block))
            data_in.append((size, median_time(partial(runtime.eval, "given().length"))))
            runtime.eval("const kept = given(); 0")
            data_out.append((size, median_time(partial(runtime.eval, "kept"))))
    gc.collect()
    return [
        curve("objects", "Objects of three fields", "objects", "seconds", to_Python=out, to_JavaScript=into),
        curve(
            "object-memory",
            "Peak memory of a worker that has them",
            "objects",
            "bytes",
            worker=memory,
        ),
        curve("bytes", "Bytes", "bytes", "seconds", to_Python=data_out, to_JavaScript=data_in),
    ]


def runtimes() -> list[dict[str, Any]]:
    """Live idle runtimes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(2000, hard // 8)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    live: list[IsolatedRuntime] = []
    starting, calling, workers, host = [], [], [], []
    IsolatedRuntime().close()
    before = resident()
    try:
        for number in [number for number in (10, 30, 100, 300, 1000, 2000) if number <= most]:
            times = []
            while len(live) < number:
                started = time.perf_counter()
                live.append(IsolatedRuntime())
                live[-1].eval("globalThis.own = [1, 2, 3]; 1")
                times.append(time.perf_counter() - started)
            starting.append((number, statistics.median(times[-100:])))
            sample = live[:: max(1, number // 50)]
            rounds = [median_time(partial(one.eval, "own.length"), 3, 0) for one in sample]
            calling.append((number, statistics.median(rounds)))
            workers.append(
                (number, number * statistics.mean(private_bytes(one.worker_pid) for one in sample))
            )
            # There is no zero on a logarithmic axis; a page is the least that the kernel tells.
            host.append((number, max(4096.0, (resident() - before) * 2**20)))
    finally:
        for runtime in live:
            runtime.close()
    return [
        curve(
            "live-time",
            "Time while so many runtimes are live",
            "live runtimes",
            "seconds",
            start_of_another=starting,
            eval_in_one=calling,
        ),
        curve("live-memory", "Memory of all of them", "live runtimes", "bytes", workers=workers, host=host),
    ]


def callers() -> list[dict[str, Any]]:
    """Threads and tasks that evaluate at the same time, each in a runtime of its own."""
    by_threads = []
    for number in (1, 2, 4, 8, 16, 32, 64):
        live = [IsolatedRuntime() for _ in range(number)]
        calls = max(20, 2000 // number)

        def work(runtime: IsolatedRuntime, calls: int = calls) -> None:
            for _ in range(calls):
                runtime.eval("1+1")

        threads = [threading.Thread(target=work, args=(runtime,)) for runtime in live]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        by_threads.append((number, (time.perf_counter() - started) / calls))
        for runtime in live:
            runtime.close()

    async def tasks(number: int) -> float:
        live = [AsyncIsolatedRuntime() for _ in range(number)]
        calls = max(5, 2000 // number)

        async def work(runtime: AsyncIsolatedRuntime) -> None:
            for _ in range(calls):
                await runtime.eval("1+1")

        await asyncio.gather(*(runtime.eval("1+1") for runtime in live))
        started = time.perf_counter()
        await asyncio.gather(*(work(runtime) for runtime in live))
        elapsed = (time.perf_counter() - started) / calls
        for runtime in live:
            runtime.close()
        return elapsed

    by_tasks = [(number, asyncio.run(tasks(number))) for number in (1, 4, 16, 64, 256)]
    return [
        curve(
            "callers",
            "One evaluation by each of so many callers",
            "concurrent callers",
            "seconds",
            threads=by_threads,
            asyncio_tasks=by_tasks,
        )
    ]


def scripts() -> list[dict[str, Any]]:
    """Scripts of many statements, and many calls of a host function in one script."""
    evaluating, checking, calling = [], [], []
    for lines in [4**power for power in range(3, 10)]:
        source = (
            "let total = 0;\n"
            + "".join(f"total += `${{total}} ${{{i}}}`.length;\n" for i in range(lines))
            + "total"
        )
        checking.append((len(source), median_time(partial(check_source, source))))
        with IsolatedRuntime(CONFIG) as runtime:
            block = f"{{ {source} }}"
            evaluating.append((len(source), median_time(partial(runtime.eval, block))))
    with IsolatedRuntime(CONFIG, max_host_calls=10**7) as runtime:
        runtime.bind_function("tool", lambda: 1)
        for number in (10, 100, 1000, 10_000, 100_000):
            code = f"for (let i = 0; i < {number}; i += 1) tool();"
            calling.append((number, median_time(partial(runtime.eval, code), 2)))
    return [
        curve(
            "scripts", "Scripts", "characters of source", "seconds", eval=evaluating, check_source=checking
        ),
        curve("host-calls", "Calls of a host function in one evaluation", "calls", "seconds", eval=calling),
    ]


def measure() -> list[dict[str, Any]]:
    """Every curve."""
    curves = []
    # The runtimes first: what the host frees later would hide what they take.
    for part in (runtimes, callers, values, scripts):
        print(f"growth: {part.__name__}", flush=True)
        curves += part()
    return curves


def main() -> None:
    """Prints the points."""
    for found in measure():
        print(f"{found['title']} ({found['y']} by {found['x']})")
        for name, points in found["series"].items():
            shown = "  ".join(f"{x:g}: {y:.3g}" for x, y in points)
            print(f"  {name} (exponent {found['exponents'][name]}): {shown}")


if __name__ == "__main__":
    main()
