"""What a module beside a script costs: to start with WebAssembly, to load, and to call.

    .venv/bin/python benches/webassembly.py                a module of one function
    .venv/bin/python benches/webassembly.py lib.wasm       a module of your own is loaded, too

Prints medians. Nothing here fails for being slow.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from figures import in_words
from pydeno import IsolatedRuntime, Runtime
from pydeno._pydeno import WasmOutline

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 31
CALLS = 200_000
#: (module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
ADD = bytes.fromhex("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b")
#: The same function of the script, of an instance as it is, and as `load_wasm` gives it.
CALLEES = {"a function of the script": "plain", "an instance's own": "raw.add", "load_wasm": "lib.add"}

DOORS: dict[str, Callable[[], Any]] = {
    "isolated": lambda: IsolatedRuntime(webassembly="host"),
    "in process": Runtime,
}
TIERS: tuple[Literal["off", "full"], ...] = ("off", "full")


def median(measured: Callable[[], object], rounds: int = ROUNDS) -> float:
    """How long something takes, in seconds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        measured()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def start(*, webassembly: bool | Literal["host"]) -> float:
    """A start with this option, ended again outside of the time."""
    started: list[IsolatedRuntime] = []
    took = median(lambda: started.append(IsolatedRuntime(webassembly=webassembly)))
    for runtime in started:
        runtime.close()
    return took


def given(code: bytes) -> dict[str, dict[str, Callable[..., int]]]:
    """Something for everything that a module imports."""
    imports: dict[str, dict[str, Callable[..., int]]] = {}
    for module, name in WasmOutline(code).imports:
        imports.setdefault(module, {})[name] = lambda *_: 0
    return imports


def load(make: Callable[[], Any], code: bytes) -> tuple[float, float]:
    """The first module of a runtime, and a second one."""
    imports = given(code)
    first, second = [], []
    for _ in range(ROUNDS):
        with make() as runtime:
            first.append(median(lambda: runtime.load_wasm("a", code, imports=imports), 1))
            second.append(median(lambda: runtime.load_wasm("b", code, imports=imports), 1))
    return statistics.median(first), statistics.median(second)


def main() -> None:
    """Measure everything."""
    start(webassembly=False)  # The zygotes.
    start(webassembly="host")
    without, host = start(webassembly=False), start(webassembly="host")
    print(f"start without WebAssembly: {in_words(without)}, with it for the host: {in_words(host)}")
    modules = {"one function": ADD} | {path: Path(path).read_bytes() for path in sys.argv[1:]}
    for name, code in modules.items():
        for door, make in DOORS.items():
            first, second = load(make, code)
            print(
                f"load {name} ({len(code)} bytes), {door}: {in_words(first)}, and once more: {in_words(second)}"
            )
    for jit in TIERS:
        with IsolatedRuntime(webassembly=True, jit=jit) as runtime:
            runtime.load_wasm("lib", ADD)
            runtime.bind_function("code", lambda: ADD)
            runtime.eval(
                "const raw = new WebAssembly.Instance(new WebAssembly.Module(code())).exports;"
                "const plain = (a, b) => a + b | 0; 0"
            )
            for name, callee in CALLEES.items():
                body = (
                    f"let n = 0; const f = {callee}; for (let i = 0; i < {CALLS}; i++) n = f(n, i); return n"
                )
                whole = median(lambda: runtime.eval(f"(() => {{ {body} }})()"), 9)  # noqa: B023 - called at once
                print(f"a call of {name}, jit={jit}: {whole / CALLS * 1e9:.0f} ns")


if __name__ == "__main__":
    main()
