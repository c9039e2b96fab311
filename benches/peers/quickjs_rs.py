"""quickjs-rs: an interpreter in WebAssembly, in the process."""

from __future__ import annotations

import json
from typing import Any

from quickjs_rs import Runtime

from .adapter import Peer, Sandbox, main


class Opened(Sandbox):
    """A runtime with one context. Objects leave as JSON text: its own conversion takes milliseconds for each."""

    def __init__(self) -> None:
        self.runtime = Runtime(memory_limit=1 << 30)
        self.context = self.runtime.new_context(timeout=60)
        self.composite = False

    def eval(self, code: str) -> Any:
        return self.context.eval(code)

    def close(self) -> None:
        self.context.close()
        self.runtime.close()

    def bind(self, name: str, function: Any) -> None:
        self.context.register(name, function)

    def make(self, what: str) -> None:
        super().make(what)
        self.composite = what == "objects"

    def take(self) -> Any:
        return json.loads(self.eval("JSON.stringify(made)")) if self.composite else self.eval("made")


class QuickJs(Peer):
    """As it comes."""

    def open(self) -> Sandbox:
        return Opened()


if __name__ == "__main__":
    main({"off": QuickJs})
