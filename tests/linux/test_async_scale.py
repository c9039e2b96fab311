"""A thousand runtimes on one event loop: no thread each, few descriptors each, and nothing left when they end."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from pydeno import AsyncIsolatedRuntime, IsolatedRuntime

MANY = 1000


@pytest.fixture
def enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 10 * MANY
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(wanted, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def workers() -> int:
    """Processes below this one that are not its zygotes."""
    found = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            parent = int(fields["PPid"])
            grandparent = Path(f"/proc/{parent}/stat").read_text().rsplit(")", 1)[1].split()[1]
        except (OSError, KeyError, IndexError, ValueError):
            continue
        found += (
            fields["Name"].startswith("pydeno")
            and int(grandparent) == os.getpid()
            and "Z" not in fields["State"]
        )
    return found


@pytest.mark.timeout(300)
def test_a_thousand_runtimes_share_one_loop(
    run_on_loop: Callable[[Coroutine[Any, Any, Any]], Any], enough_descriptors: None
) -> None:
    async def start(pool: list[AsyncIsolatedRuntime]) -> None:
        rt = AsyncIsolatedRuntime()

        async def wait(value: int) -> int:
            await asyncio.sleep(0.01)
            return value

        rt.bind_function("wait", wait)
        await rt.start()
        pool.append(rt)

    async def main() -> dict[str, float]:
        pool: list[AsyncIsolatedRuntime] = []
        # As many at a time as the loop's own pool has threads, so that their number is known.
        for _ in range(MANY // 50):
            await asyncio.gather(*(start(pool) for _ in range(50)))
        before = threads()
        evaluations = [rt.eval(f"wait({number}).then(x => x + 1)") for number, rt in enumerate(pool)]
        most = before
        pending = asyncio.gather(*evaluations)
        while not pending.done():
            most = max(most, threads())
            await asyncio.sleep(0.005)
        assert await pending == [number + 1 for number in range(MANY)]
        measured = {
            "threads": most - before,
            "descriptors": descriptors() / MANY,
            "memory": resident() / MANY,
            "workers": workers(),
        }
        for rt in pool:
            rt.close()
        pool.clear()
        return measured

    with IsolatedRuntime() as warm:
        warm.eval("1")
    gc.collect()
    descriptors_before, workers_before = descriptors(), workers()
    measured = run_on_loop(main())
    gc.collect()
    assert measured["threads"] == 0
    assert measured["workers"] >= MANY
    assert measured["descriptors"] < 5
    assert measured["memory"] < 1 << 20
    assert descriptors() <= descriptors_before + 10
    for _ in range(500):
        if workers() <= workers_before + 1:
            break
        asyncio.run(asyncio.sleep(0.02))
    # Each kind that is used has one ahead.
    assert workers() <= workers_before + 1
    with IsolatedRuntime() as after:
        assert after.eval("40 + 2") == 42
