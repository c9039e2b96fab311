"""pydantic-monty: pooled worker processes with an interpreter of their own, for a Python and not for JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pydantic_monty

from .adapter import Peer, Pool, Sandbox, main

if TYPE_CHECKING:
    from collections.abc import Callable

PYTHON = {
    "objects": "made = [{'id': i, 'name': 'item ' + str(i), 'v': i / 7} for i in range(50000)]\n0",
    "bytes": "made = b'\\7' * 1048576\n0",
    "text": "made = 'x' * 1048576\n0",
}
LIMITS: Any = {"max_suspensions": 1_000_000}


class Opened(Sandbox):
    """A session, and its pool where it has one to itself."""

    def __init__(self, pool: Any = None) -> None:
        self.own = None
        if pool is None:
            self.own = pool = pydantic_monty.Monty()
            pool.__enter__()
        self.checked_out = pool.checkout(limits=LIMITS)
        self.session = self.checked_out.__enter__()

    def eval(self, code: str) -> Any:
        return self.session.feed_run(code)

    def close(self) -> None:
        self.checked_out.__exit__(None, None, None)
        if self.own is not None:
            self.own.__exit__(None, None, None)

    def make(self, what: str) -> None:
        self.eval(PYTHON[what])

    def giver(self, value: object) -> Callable[[], object]:
        return lambda: self.session.feed_run("len(given)", inputs={"given": value})

    def tools(self) -> tuple[Callable[[], object], Callable[[], object]]:
        found = {"tool": lambda: 1}
        loop = "for i in range(1000):\n    tool()\n0"
        return (
            lambda: self.session.feed_run("tool()", external_lookup=found),
            lambda: self.session.feed_run(loop, external_lookup=found),
        )


class Ready(Pool):
    """A pool of four, whose workers serve one session after another."""

    def __init__(self) -> None:
        self.workers = pydantic_monty.Monty(min_processes=4, max_processes=8)
        self.workers.__enter__()

    def wait(self) -> None:
        """A session that ended has given its worker back."""

    def checkout(self) -> Sandbox:
        return Opened(self.workers)

    def close(self) -> None:
        self.workers.__exit__(None, None, None)


class Monty(Peer):
    """As it comes."""

    def open(self) -> Sandbox:
        return Opened()

    def pool(self) -> Pool:
        return Ready()


if __name__ == "__main__":
    main({"off": Monty})
