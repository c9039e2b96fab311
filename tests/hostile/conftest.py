"""What the hostile scripts find: functions that give back what they are given, fail, and call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pydeno import IsolatedRuntime, JavaScriptError, Runtime, RuntimeConfig

AnyRuntime = Runtime | IsolatedRuntime


@pytest.fixture
def victim(door: type[Any]) -> Iterator[AnyRuntime]:
    """A runtime whose functions a script attacks, and that is as good as before when the test is over."""
    lines: list[str] = []
    config = RuntimeConfig(timeout=5, enable_console=True, on_console=lambda level, text: lines.append(text))
    with door(config) as rt:
        equip(rt)
        yield rt
        assert rt.eval("1 + 1") == 2
        assert rt.eval("echo('still here')") == "still here"
        assert rt.eval("later('still here')") == "still here"
    with door() as fresh:
        assert fresh.eval("1 + 1") == 2


def equip(rt: AnyRuntime) -> None:
    """Bind the functions that a hostile script attacks."""

    async def later(value: Any = None) -> Any:
        return value

    async def fail_later() -> None:
        raise ValueError("secret")

    def fail() -> None:
        raise ValueError("secret")

    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    rt.bind_function("echo", lambda value=None, *_: value)
    rt.bind_function("later", later)
    rt.bind_function("fail", fail)
    rt.bind_function("failLater", fail_later)
    rt.bind_function("call", call)
    rt.bind_object("tools", {"echo": lambda value=None: value})


def outcome(rt: AnyRuntime, code: str) -> Any:
    """The value, or the name of the script's error; anything else is not for a script to bring about."""
    try:
        return rt.eval(code)
    except JavaScriptError as error:
        return f"{error.name}!"
