"""jsrun: V8 in the process."""

from __future__ import annotations

from typing import Any

import jsrun

from .adapter import Peer, Sandbox, main


class Opened(Sandbox):
    """A runtime, which has a thread of its own."""

    def __init__(self) -> None:
        self.runtime = jsrun.Runtime(jsrun.RuntimeConfig(timeout=60))

    def eval(self, code: str) -> Any:
        return self.runtime.eval(code)

    def close(self) -> None:
        self.runtime.close()

    def bind(self, name: str, function: Any) -> None:
        self.runtime.bind_function(name, function)


class Jsrun(Peer):
    """As it comes."""

    def open(self) -> Sandbox:
        return Opened()


if __name__ == "__main__":
    main({"full": Jsrun})
