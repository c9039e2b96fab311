"""quickjs-ng: an interpreter in the process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import quickjs

from .adapter import Peer, Sandbox, Unsupported, main

if TYPE_CHECKING:
    from collections.abc import Callable


class Opened(Sandbox):
    """A context. Objects cross as JSON text, with the package's own `json` and `parse_json`."""

    def __init__(self) -> None:
        self.context = quickjs.Context()
        # Some libraries nest deeper than its default of 256 KiB allows.
        self.context.set_max_stack_size(1 << 20)

    def eval(self, code: str) -> Any:
        return self.context.eval(code)

    def close(self) -> None:
        del self.context

    def bind(self, name: str, function: Any) -> None:
        self.context.add_callable(name, function)

    def make(self, what: str) -> None:
        if what == "bytes":
            raise Unsupported("knows no bytes")
        super().make(what)

    def take(self) -> Any:
        value = self.context.eval("made")
        return value if isinstance(value, str) else json.loads(value.json())

    def giver(self, value: object) -> Callable[[], object]:
        def give() -> object:
            given = value if isinstance(value, str) else self.context.parse_json(json.dumps(value))
            self.context.set("given", given)
            return self.context.eval("given.length")

        return give


class QuickJs(Peer):
    """As it comes."""

    def open(self) -> Sandbox:
        return Opened()


if __name__ == "__main__":
    main({"off": QuickJs})
