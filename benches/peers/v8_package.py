"""The V8-based package that has the name pydeno on PyPI."""

from __future__ import annotations

import importlib
from typing import Any

from .adapter import Peer, Pool, Sandbox, main

# Imported by name: its interface is not the one that these files are checked against.
v8: Any = importlib.import_module("pydeno")


class Opened(Sandbox):
    """A runtime."""

    def __init__(self, runtime: Any) -> None:
        self.runtime = runtime

    def eval(self, code: str) -> Any:
        return self.runtime.eval(code)

    def close(self) -> None:
        self.runtime.close()

    def bind(self, name: str, function: Any) -> None:
        self.runtime.bind_function(name, function)


class Ready(Pool):
    """A pool of four."""

    def __init__(self) -> None:
        self.workers = v8.SandboxPool(size=4)

    def wait(self) -> None:
        if not self.workers.wait_ready(30):
            raise TimeoutError("the pool did not become ready")

    def checkout(self) -> Sandbox:
        return Opened(self.workers.checkout())

    def close(self) -> None:
        self.workers.close()


class Isolated(Peer):
    """As it comes: without compilers."""

    jitless = True

    def open(self) -> Sandbox:
        return Opened(v8.IsolatedRuntime(v8.RuntimeConfig(timeout=60), jitless=self.jitless))

    def pool(self) -> Pool:
        return Ready()

    def check_source(self, code: str) -> object:
        return v8.check_source(code)

    def sandbox_status(self) -> object:
        return v8.sandbox_status()


class Compiled(Isolated):
    """With V8's compilers."""

    jitless = False


class Template(Isolated):
    """Workers forked from a template that is prepared once."""

    def __init__(self) -> None:
        v8.enable_fork_template()


class InProcess(Peer):
    """Its runtime without a boundary."""

    def open(self) -> Sandbox:
        return Opened(v8.Runtime())


if __name__ == "__main__":
    main({"off": Isolated, "full": Compiled, "template": Template, "in process": InProcess})
