"""mini-racer: V8 in the process."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import py_mini_racer

from .adapter import Peer, Sandbox, Unsupported, main

if TYPE_CHECKING:
    from collections.abc import Callable


class Opened(Sandbox):
    """An isolate. Objects cross as JSON text, with the package's own `execute` and `call`."""

    def __init__(self) -> None:
        self.isolate = py_mini_racer.MiniRacer()
        self.composite = False
        # Both end when they are collected.
        self.open_for_tools = ExitStack()
        self.wrapped: Any = None

    def eval(self, code: str) -> Any:
        return self.isolate.eval(code)

    def close(self) -> None:
        self.isolate.close()

    def make(self, what: str) -> None:
        super().make(what)
        self.composite = what == "objects"

    def take(self) -> Any:
        return self.isolate.execute("made") if self.composite else self.isolate.eval("made")

    def giver(self, value: object) -> Callable[[], object]:
        if isinstance(value, bytes):
            raise Unsupported("takes no bytes")
        return lambda: self.isolate.call("(value => value.length)", value)

    def tools(self) -> tuple[Callable[[], object], Callable[[], object]]:
        """Only coroutine functions can be called, from asyncio; the guest awaits them."""
        loop = asyncio.new_event_loop()

        async def tool(*_: object) -> int:
            return 1

        async def begin() -> Any:
            isolate = self.open_for_tools.enter_context(py_mini_racer.mini_racer())
            self.wrapped = isolate.wrap_py_function(tool)
            bound = await self.wrapped.__aenter__()
            isolate.eval("(tool) => { globalThis.tool = tool }")(bound)
            return isolate

        isolate = loop.run_until_complete(begin())

        async def run(code: str) -> object:
            return await isolate.eval(code)

        many = "(async () => { for (let i = 0; i < 1000; i += 1) await tool(); return 0 })()"
        return lambda: loop.run_until_complete(run("tool()")), lambda: loop.run_until_complete(run(many))


class MiniRacer(Peer):
    """As it comes."""

    def open(self) -> Sandbox:
        return Opened()


if __name__ == "__main__":
    main({"full": MiniRacer})
