"""What the tests of event loops share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

from pydeno import (
    AsyncIsolatedRuntime,
    IsolatedRuntime,
    Runtime,
)

RunOnLoop = Callable[[Coroutine[Any, Any, Any]], Any]
Any3 = type[Runtime] | type[IsolatedRuntime] | type[AsyncIsolatedRuntime]


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


class Meeting:
    """An async host function whose calls return when so many of them run at the same time."""

    def __init__(self, size: int) -> None:
        self.size, self.inside, self.complete = size, 0, asyncio.Event()

    async def __call__(self, value: Any = None) -> Any:
        self.inside += 1
        if self.inside == self.size:
            self.complete.set()
        await self.complete.wait()
        return value


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is about to happen; pytest's timeout is the limit."""
    while not condition():
        await asyncio.sleep(0.001)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
