"""The report's hostile twins: scripts that start like it, with the same tools, and then attack.

Each runs in a runtime of its own with small limits. What comes back is a value or one of pydeno's exceptions,
and the next runtime works as if nothing had happened.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydeno import IsolatedRuntime, PydenoError

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT = 0.5
MAX_MEMORY = 256 << 20
MAX_HOST_CALLS = 1000
# The timeout of attacks on another limit: a slow machine must not meet the clock first.
PATIENT = 20.0


@dataclass(frozen=True)
class Twin:
    """An attack, and the outcomes that mean it was survived: kinds of error, or `value`."""

    name: str
    source: str
    survived_as: frozenset[str]
    timeout: float


@dataclass(frozen=True)
class Outcome:
    """What one twin came to."""

    twin: Twin
    kind: str
    shown: str
    seconds: float
    next_sum: object

    @property
    def survived(self) -> bool:
        """The attack came to an end that was foreseen, and a fresh runtime still works."""
        return self.kind in self.twin.survived_as and self.next_sum == 2


def twin(name: str, source: str, *survived_as: str, timeout: float = TIMEOUT) -> Twin:
    """An attack after an innocent beginning."""
    return Twin(name, f"const page = read_rows(0, 100);\n{source}", frozenset(survived_as), timeout)


TWINS = (
    # Time and memory. Which limit is met first may depend on the machine; that one of them is met does not.
    twin("endless loop", "while (true) {}", "timeout"),
    twin("endless loop that catches everything", "for (;;) try { for (;;); } catch {}", "timeout"),
    twin(
        "endless chain of promises",
        "const again = () => Promise.resolve().then(again); again();",
        "timeout",
        "cpu_limit",
        "memory_limit",
    ),
    twin(
        "memory bomb",
        "const hoard = []; for (;;) hoard.push(new Uint8Array(1 << 20).fill(hoard.length));",
        "memory_limit",
        timeout=PATIENT,
    ),
    twin(
        "string that doubles for ever",
        "let text = 'x'; for (;;) text += text;",
        "memory_limit",
        "timeout",
        "js_error",
    ),
    twin("new Array(2**32-1).fill(0)", "new Array(2**32-1).fill(0)", "timeout", "memory_limit", "js_error"),
    twin("deep recursion", "const deeper = (n) => deeper(n + 1) + 1; deeper(0)", "js_error"),
    twin(
        "ten million tool calls",
        "for (let i = 0; i < 1e7; i += 1) tools.rate('USD');",
        "host_call_budget",
        timeout=PATIENT,
    ),
    # Ways out of the process.
    twin("read a file", "require('fs').readFileSync('/etc/passwd', 'utf8')", "js_error"),
    twin(
        "import a file system",
        "import('node:fs').then((fs) => fs.readFileSync('/etc/passwd', 'utf8'))",
        "js_error",
    ),
    twin("open a connection", "fetch('http://127.0.0.1/').then((response) => response.text())", "js_error"),
    twin("read the environment", "process.env", "js_error"),
    twin("ask Deno", "Deno.readTextFileSync('/etc/passwd')", "js_error"),
    twin("climb out through a tool", "read_rows.constructor('return process.env')()", "js_error"),
    twin("write outside the folder", "tools.save_chart('../../escaped', '<svg/>')", "js_error"),
    twin(
        "draw a picture that runs code",
        """tools.save_chart('trap', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>')""",
        "js_error",
    ),
    twin(
        "look for anything useful",
        "['Deno', 'process', 'require', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Worker', 'WebAssembly',"
        " 'SharedArrayBuffer', 'read', 'load', 'readFile', 'run'].filter((name) => name in globalThis)",
        "value",
    ),
)


def face(twin: Twin, bind: Callable[[IsolatedRuntime], None]) -> Outcome:
    """Runs one twin with the report's tools, then a sum in a fresh runtime."""
    started = time.perf_counter()
    with IsolatedRuntime(
        timeout=twin.timeout, max_memory=MAX_MEMORY, max_host_calls=MAX_HOST_CALLS
    ) as runtime:
        bind(runtime)
        try:
            kind, shown = "value", repr(runtime.eval(twin.source))
        except PydenoError as error:
            kind, shown = error.kind, f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    with IsolatedRuntime() as fresh:
        return Outcome(twin, kind, shown, seconds, fresh.eval("1 + 1"))
