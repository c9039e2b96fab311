"""What an item of a stream costs, both ways, and what it saves to put many into one.

    make bench-own                        everything
    .venv/bin/python benches/streams.py   this file alone

Prints the time for an item: the median and the 95th percentile of some rounds. Nothing here fails for being slow.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from figures import show
from pydeno import AsyncIsolatedRuntime, IsolatedRuntime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

ITEMS = 2000
ROUNDS = 10
COUNT = """async function* count(n, width) {
    for (let i = 0; i < n; i += width) yield Array.from({length: width}, (_, k) => i + k);
}"""
SUM = "(async () => { let sum = 0; for await (const n of rows()) sum += n; return sum })()"


def rows() -> Iterator[int]:
    """A stream of Python."""
    yield from range(ITEMS)


async def async_rows() -> AsyncIterator[int]:
    """The same for an event loop."""
    for n in range(ITEMS):
        yield n


def blocking(name: str, action: Callable[[], object]) -> None:
    """Times rounds of a whole stream."""
    samples = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        action()
        samples.append(time.perf_counter() - started)
    show(name, samples, ITEMS)


async def awaited(name: str, action: Callable[[], Awaitable[object]]) -> None:
    """The same on an event loop."""
    samples = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        await action()
        samples.append(time.perf_counter() - started)
    show(name, samples, ITEMS)


def on_a_thread() -> None:
    """Without an event loop."""
    with IsolatedRuntime() as runtime:
        runtime.eval(COUNT)
        runtime.bind_function("rows", rows)
        blocking("an item of a script, for", lambda: list(runtime.eval(f"count({ITEMS}, 1)")))
        blocking("the same, a hundred in an array", lambda: list(runtime.eval(f"count({ITEMS}, 100)")))
        blocking("an item of Python, for await in the script", lambda: runtime.eval(SUM))


async def on_a_loop() -> None:
    """With one."""
    async with AsyncIsolatedRuntime() as runtime:
        await runtime.eval(COUNT)
        runtime.bind_function("rows", async_rows)

        async def take(width: int) -> None:
            async for _ in await runtime.eval(f"count({ITEMS}, {width})"):
                pass

        await awaited("an item of a script, async for", lambda: take(1))
        await awaited("the same, a hundred in an array", lambda: take(100))
        await awaited("an item of Python, for await, on an event loop", lambda: runtime.eval(SUM))


def main() -> None:
    """Both."""
    on_a_thread()
    asyncio.run(on_a_loop())


if __name__ == "__main__":
    main()
