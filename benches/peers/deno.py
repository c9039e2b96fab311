"""Deno as a child process that was given no permission, spoken to in lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .adapter import Peer, Sandbox, Unsupported, main

if TYPE_CHECKING:
    from collections.abc import Callable

EXECUTABLE = Path(sys.executable).parent / "deno"
SESSION = Path(__file__).with_name("deno_session.js")


class Opened(Sandbox):
    """One process. What it says is believed: a script could speak in its stead."""

    flags: tuple[str, ...] = ()

    def __init__(self, flags: tuple[str, ...]) -> None:
        self.process = subprocess.Popen(
            [str(EXECUTABLE), "run", "--no-prompt", "--quiet", "--no-config", *flags, str(SESSION)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.functions: dict[str, Callable[[], object]] = {}

    def ask(self, message: dict[str, object]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        while True:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
            if "call" not in answer:
                break
            message = {"value": self.functions[answer["call"]]()}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer.get("value")

    def eval(self, code: str) -> Any:
        return self.ask({"code": code})

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def bind(self, name: str, function: Callable[[], object]) -> None:
        self.functions[name] = function
        self.ask({"bind": name})

    def make(self, what: str) -> None:
        if what == "bytes":
            raise Unsupported("JSON has no bytes")
        super().make(what)


class Deno(Peer):
    """With V8's compilers."""

    flags: tuple[str, ...] = ()

    def open(self) -> Sandbox:
        return Opened(self.flags)


class Interpreted(Deno):
    """Without them."""

    flags = ("--v8-flags=--jitless",)


if __name__ == "__main__":
    main({"full": Deno, "off": Interpreted})
