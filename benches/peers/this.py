"""This package: isolated in each tier, and `Runtime`, which has no boundary."""

from __future__ import annotations

import time
from typing import Any, Literal

import pydeno

from .adapter import Peer, Pool, Sandbox, main


class Opened(Sandbox):
    """A runtime, isolated or not."""

    def __init__(self, runtime: pydeno.IsolatedRuntime | pydeno.Runtime) -> None:
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
        self.workers = pydeno.SandboxPool(size=4)

    def wait(self) -> None:
        while self.workers.stats().ready < 4:
            time.sleep(0.001)

    def checkout(self) -> Sandbox:
        return Opened(self.workers.checkout())

    def close(self) -> None:
        self.workers.close()


class Isolated(Peer):
    """As it comes: JIT off."""

    jit: Literal["off", "baseline", "full"] = "off"

    def open(self) -> Sandbox:
        return Opened(pydeno.IsolatedRuntime(jit=self.jit))

    def pool(self) -> Pool:
        return Ready()

    def check_source(self, code: str) -> object:
        return pydeno.check_source(code)

    def sandbox_status(self) -> object:
        return pydeno.sandbox_status()


class Baseline(Isolated):
    """With the first compiler."""

    jit = "baseline"


class Full(Isolated):
    """With every compiler."""

    jit = "full"


class InProcess(Peer):
    """`Runtime`."""

    def open(self) -> Sandbox:
        return Opened(pydeno.Runtime())


if __name__ == "__main__":
    main({"off": Isolated, "baseline": Baseline, "full": Full, "in process": InProcess})
