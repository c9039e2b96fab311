"""Evaluating in a Python process of its own, so that a script without an end fails one test and hangs none."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

#: Far more than any limit in these tests takes, in seconds; whoever is still there then hangs.
PATIENCE = 60

PROGRAM = """
import json, sys, pydeno
from pydeno import RuntimeConfig
door, code, config, options = json.loads(sys.stdin.read())
cls = getattr(pydeno, door)
told = {"class": None, "kind": None, "value": None, "message": "", "survives": True}
with cls(RuntimeConfig(**config), **options) as rt:
    rt.bind_function("host", lambda *values: 5)
    try:
        told["value"] = rt.eval(code)
    except pydeno.PydenoError as error:
        told |= {"class": type(error).__name__, "kind": error.kind, "message": str(error)[:200]}
        told["survives"] = error.runtime_survives
    if told["survives"]:
        assert rt.eval("1 + 1") == 2
    elif door == "IsolatedRuntime":
        assert rt.is_closed()
with cls() as fresh:
    assert fresh.eval("1 + 1") == 2
# Not what `getrusage` says, which a process inherits from the one that started it.
with open("/proc/self/status") as status:
    told["resident"] = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps(told, default=repr))
"""


def outcome(
    code: str,
    *,
    door: str = "IsolatedRuntime",
    config: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What became of `code`.

    The process must end by itself with a value or one of pydeno's exceptions, and the runtime, or a fresh one where
    that had to die, must still add.
    """
    told: dict[str, Any] = json.loads(run(PROGRAM, json.dumps([door, code, config or {}, options])))
    return told


def run(program: str, text: str = "") -> str:
    """What a Python program prints that must end by itself and well."""
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
    return process.stdout
