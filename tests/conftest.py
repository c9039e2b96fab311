"""What several test files use: a runtime of each door, an event loop of each kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop

import pydeno
from pydeno import AsyncIsolatedRuntime, IsolatedRuntime, Runtime

AnyRuntime = Runtime | IsolatedRuntime
Door = type[Runtime] | type[IsolatedRuntime]


@pytest.fixture(params=[Runtime, IsolatedRuntime], ids=["in-process", "isolated"])
def door(request: pytest.FixtureRequest) -> Door:
    """The class of a runtime, each in turn."""
    cls: Door = request.param
    return cls


@pytest.fixture
def rt(door: Door) -> Iterator[Runtime | IsolatedRuntime]:
    """A runtime of each door that still answers a sum when its test is over."""
    with door() as runtime:
        yield runtime
        assert runtime.eval("40 + 2") == 42


@pytest.fixture
def isolated() -> Iterator[IsolatedRuntime]:
    """An isolated runtime with a short timeout."""
    with IsolatedRuntime(timeout=1) as runtime:
        yield runtime


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run_on_loop(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine on a loop of each kind, as `asyncio.run` does."""

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        loop: asyncio.AbstractEventLoop = request.param()
        try:
            return loop.run_until_complete(main)
        finally:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    return run


@pytest.fixture(params=[Runtime, IsolatedRuntime, AsyncIsolatedRuntime], ids=lambda cls: cls.__name__)
def kind(request: pytest.FixtureRequest) -> type[Any]:
    """The class of a runtime that a loop can drive, each in turn."""
    cls: type[Any] = request.param
    return cls


@pytest.fixture(params=[IsolatedRuntime, AsyncIsolatedRuntime], ids=lambda cls: cls.__name__)
def isolated_kind(request: pytest.FixtureRequest) -> type[Any]:
    """Those of them that have a worker."""
    cls: type[Any] = request.param
    return cls


def fresh_runtime_answers() -> bool:
    """Whether this process can still run scripts."""
    with pydeno.IsolatedRuntime() as runtime:
        return bool(runtime.eval("40 + 2") == 42)
