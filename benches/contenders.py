"""Who is measured: pydeno in each of its forms, and its peers, each in an environment of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BENCHES = Path(__file__).parent
ENVIRONMENTS = BENCHES.parent / ".venv" / "peers"

#: What stands between the guest and the host.
SANDBOX = "operating system's sandbox"
PROCESS = "process of its own"
WEBASSEMBLY = "WebAssembly"
NONE = "none"


@dataclass(frozen=True)
class Contender:
    """One package with one set of options; `module` is its adapter in `peers`."""

    key: str
    label: str
    module: str
    variant: str
    boundary: str
    #: What pip installs; None is the package of this checkout.
    requirement: str | None
    #: What a program imports; None where nothing is.
    imported: str | None
    measures: list[str]

    @property
    def python(self) -> Path:
        """The interpreter that has the package."""
        if self.requirement is None:
            return Path(sys.executable)
        return ENVIRONMENTS / self.requirement / "bin" / "python"


CALLS = ["first", "cold", "calls", "tools", "objects", "data", "text", "memory", "rate"]
COMPUTE = ["programs", "libraries"]


V8 = "pydeno==0.13.2"
DENO = "deno==2.9.8"
EVERYTHING = ["import", "checkout", *CALLS, *COMPUTE, "sources", "status"]

CONTENDERS = [
    Contender("pydeno", "pydeno", "this", "off", SANDBOX, None, "pydeno", EVERYTHING),
    Contender("baseline", "pydeno, jit=baseline", "this", "baseline", SANDBOX, None, "pydeno", COMPUTE),
    Contender("full", "pydeno, jit=full", "this", "full", SANDBOX, None, "pydeno", COMPUTE),
    Contender("v8", "V8 package", "v8_package", "off", SANDBOX, V8, "pydeno", EVERYTHING),
    Contender(
        "v8-template", "V8 package, fork template", "v8_package", "template", SANDBOX, V8, "pydeno",
        ["cold", "memory", "rate"],
    ),
    Contender("v8-full", "V8 package, JIT", "v8_package", "full", SANDBOX, V8, "pydeno", COMPUTE),
    Contender(
        "monty", "pydantic-monty", "monty", "off", PROCESS, "pydantic-monty==1.4.0", "pydantic_monty",
        ["import", "checkout", *CALLS],
    ),
    Contender("deno-off", "Deno, no JIT", "deno", "off", PROCESS, DENO, None, COMPUTE),
    Contender("deno", "Deno", "deno", "full", PROCESS, DENO, None, [*CALLS, *COMPUTE]),
    Contender(
        "quickjs-rs", "quickjs-rs", "quickjs_rs", "off", WEBASSEMBLY, "quickjs-rs==0.2.6", "quickjs_rs",
        ["import", *CALLS, *COMPUTE],
    ),
    Contender("runtime", "pydeno.Runtime", "this", "in process", NONE, None, "pydeno", CALLS),
    Contender("v8-runtime", "V8 package, Runtime", "v8_package", "in process", NONE, V8, "pydeno", CALLS),
    Contender("jsrun", "jsrun", "jsrun", "full", NONE, "jsrun==0.3.0", "jsrun", ["import", *CALLS, *COMPUTE]),
    Contender(
        "mini-racer", "mini-racer", "mini_racer", "full", NONE, "mini-racer==0.14.1", "py_mini_racer",
        ["import", *CALLS, *COMPUTE],
    ),
    Contender(
        "quickjs-ng", "quickjs-ng", "quickjs_ng", "off", NONE, "quickjs-ng==0.17.0.2", "quickjs",
        ["import", *CALLS, *COMPUTE],
    ),
]  # fmt: skip


def install() -> dict[str, str]:
    """Makes the environments that are missing; what could not be installed, with pip's last line."""
    failures = {}
    for requirement in sorted({entry.requirement for entry in CONTENDERS if entry.requirement}):
        environment = ENVIRONMENTS / requirement
        done = environment / ".installed"
        if done.exists():
            continue
        print(f"==> installing {requirement} in {environment.relative_to(BENCHES.parent)}", flush=True)
        steps = [
            [sys.executable, "-m", "venv", "--clear", str(environment)],
            [str(environment / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:", requirement],
        ]
        for step in steps:
            finished = subprocess.run(step, capture_output=True, text=True, check=False)
            if finished.returncode:
                told = (finished.stderr or finished.stdout).strip().splitlines()
                failures[requirement] = told[-1][:200] if told else f"exit status {finished.returncode}"
                break
        else:
            done.touch()
    return failures
