"""What several test files use: a runtime of each door."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pydeno
from pydeno import IsolatedRuntime, Runtime

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


def fresh_runtime_answers() -> bool:
    """Whether this process can still run scripts."""
    with pydeno.IsolatedRuntime() as runtime:
        return bool(runtime.eval("40 + 2") == 42)
