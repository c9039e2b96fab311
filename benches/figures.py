"""The figures of README.md: what a runtime, an evaluation, a tool call and a value cost.

    make bench-own                        everything
    .venv/bin/python benches/figures.py   this file alone

Prints the median and the 95th percentile of many rounds. Nothing here fails for being slow. First comes the machine's
floor: what it takes to ask another process and hear from it, which every evaluation and every tool call contains.
docs/latency.md says more.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pydeno import WEB_POLYFILLS, IsolatedRuntime, Runtime, RuntimeConfig, sandbox_status

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = """
import time
started = time.perf_counter()
from pydeno import IsolatedRuntime
imported = time.perf_counter()
with IsolatedRuntime() as runtime:
    assert runtime.eval("1+1") == 2
print(imported - started, time.perf_counter() - imported)
"""


def show(name: str, samples: list[float], per: int = 1) -> float:
    """One line of the result; returns the median."""
    ordered = sorted(sample / per for sample in samples)
    median, late = statistics.median(ordered), ordered[int(len(ordered) * 0.95)]
    print(f"{name:58} {in_words(median):>10}  95 %: {in_words(late):>10}")
    return median


def in_words(seconds: float) -> str:
    """A duration with the unit that suits it."""
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def measure(
    name: str, action: Callable[[], object], rounds: int, per: int = 1, pause: float | None = None
) -> float:
    """Times `action`, which does its work `per` times, after a pause if there is one; returns the median."""
    for _ in range(max(1, rounds // 20)):
        action()
    samples = []
    for _ in range(rounds):
        if pause is not None:
            time.sleep(pause)
        started = time.perf_counter()
        action()
        samples.append(time.perf_counter() - started)
    return show(name, samples, per)


def floor(rounds: int = 20_000) -> None:
    """What a byte to another process and back takes, by where the two run and whether they sleep."""
    cores = sorted(os.sched_getaffinity(0))
    places = {
        "one core": (cores[:1], cores[:1], 0),
        "two cores": (cores[:1], cores[1:2], 0),
        "two cores, both awake": (cores[:1], cores[1:2], socket.MSG_DONTWAIT),
        "any core": (cores, cores, 0),
    }
    for place, (ours, theirs, flags) in places.items():
        if not theirs:
            continue
        here, there = socket.socketpair()
        child = os.fork()
        if child == 0:
            here.close()
            os.sched_setaffinity(0, theirs)
            while byte := hear(there, flags):
                there.send(byte)
            os._exit(0)
        there.close()
        os.sched_setaffinity(0, ours)
        try:
            with here:
                ask = lambda here=here, flags=flags: (here.send(b"?"), hear(here, flags))  # noqa: E731 - a call less
                measure(f"the machine: a byte and back, {place}", ask, rounds)
        finally:
            os.waitpid(child, 0)
            os.sched_setaffinity(0, cores)


def hear(end: socket.socket, flags: int) -> bytes:
    """The next byte, asleep or, with `MSG_DONTWAIT`, awake until it is there."""
    while True:
        with contextlib.suppress(BlockingIOError):
            return end.recv(1, flags)


def whole_processes() -> None:
    """What a process pays once: the import over bare Python's start, and the first runtime."""
    started = [float(number) for _ in range(20) for number in python(FIRST).split()]
    show("import pydeno", started[0::2])
    show("first runtime of a process: start, eval('1+1'), close", started[1::2])


def python(script: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout


def start_and_close() -> None:
    """One runtime's whole life."""
    with IsolatedRuntime() as runtime:
        runtime.eval("1+1")


def first_results(rounds: int = 200) -> None:
    """From nothing to a first result where the worker of this kind had the time to be made ready."""
    kinds = {"": RuntimeConfig(), ", with WEB_POLYFILLS": RuntimeConfig(bootstrap=WEB_POLYFILLS)}
    samples: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, config in kinds.items():
            time.sleep(0.02)
            began = time.perf_counter()
            with IsolatedRuntime(config) as runtime:
                runtime.eval("1+1")
                samples[kind].append(time.perf_counter() - began)
    for kind, times in samples.items():
        show(f"first result of a runtime after a pause{kind}", times[5:])


def modules() -> None:
    """What imports cost: a whole life with one module, and each of many small modules."""

    def start_and_import() -> None:
        with IsolatedRuntime() as runtime:
            runtime.eval_module("export default 1")

    measure("runtime: start, eval_module('export default 1'), close", start_and_import, 100)
    code = "".join(f"import m{index} from './m{index}.mjs';" for index in range(100))

    def import_many() -> None:
        with IsolatedRuntime() as runtime:
            runtime.set_module_loader(lambda name: f"export default {name!r}")
            began = time.perf_counter()
            runtime.eval_module(code)
            samples.append(time.perf_counter() - began)

    samples: list[float] = []
    for _ in range(20):
        import_many()
    show("each of 100 modules that a loader gives", samples, per=100)


def private_bytes(pid: int) -> int:
    """The memory that a process shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def idle_memory(workers: int = 20) -> None:
    """The private memory of idle workers, each of which has evaluated something."""
    runtimes = [IsolatedRuntime() for _ in range(workers)]
    try:
        for runtime in runtimes:
            runtime.eval("1+1")
        sizes = [private_bytes(runtime.worker_pid) for runtime in runtimes]
        median = statistics.median(sizes) / 2**20
        print(f"{f'private memory of an idle worker, one of {workers}':58} {median:7.2f} MiB")
    finally:
        for runtime in runtimes:
            runtime.close()


def one_runtime() -> None:
    """What a warm runtime costs."""
    objects = [{"id": i, "name": f"item {i}", "v": i / 7} for i in range(50_000)]
    with IsolatedRuntime(timeout=30.0) as runtime:
        runtime.bind_function("tool", lambda: 1)
        runtime.bind_function("objects", lambda: objects)
        runtime.eval("const made = objects(), bytes = new Uint8Array(1 << 20), text = 'x'.repeat(1.7e6);")
        plain = measure("eval('1+1')", lambda: runtime.eval("1+1"), 5000)
        numbers = itertools.count()
        measure("eval of a script that is new each time", lambda: runtime.eval(f"1+{next(numbers)}"), 5000)
        calling = measure("eval of one tool call", lambda: runtime.eval("tool()"), 5000)
        print(f"{'the tool call of it':58} {in_words(calling - plain):>10}")
        measure("eval('1+1') after a millisecond of nothing", lambda: runtime.eval("1+1"), 1000, pause=0.001)
        loop = "for (let i = 0; i < 1000; i += 1) tool();"
        measure("each of 1,000 tool calls in one eval", lambda: runtime.eval(loop), 30, per=1000)
        measure("50,000 objects of three fields to Python", lambda: runtime.eval("made"), 20)
        measure("50,000 objects of three fields to JavaScript", lambda: runtime.eval("objects().length"), 20)
        measure("1 MiB of bytes to Python", lambda: runtime.eval("bytes"), 100)
        measure("a string of 1.7 million characters to Python", lambda: runtime.eval("text"), 100)


def in_process() -> None:
    """The same where there is no other process."""
    with Runtime() as runtime:
        runtime.bind_function("tool", lambda: 1)
        plain = measure("in process: eval('1+1')", lambda: runtime.eval("1+1"), 5000)
        numbers = itertools.count()
        new = lambda: runtime.eval(f"1+{next(numbers)}")  # noqa: E731 - as above
        measure("in process: eval of a script that is new each time", new, 5000)
        calling = measure("in process: eval of one tool call", lambda: runtime.eval("tool()"), 5000)
        print(f"{'in process: the tool call of it':58} {in_words(calling - plain):>10}")


def main() -> None:
    """Everything, the quick ones last."""
    floor()
    whole_processes()
    measure("runtime: start, eval('1+1'), close", start_and_close, 200)
    first_results()
    modules()
    measure("sandbox_status()", sandbox_status, 200)
    idle_memory()
    one_runtime()
    in_process()


if __name__ == "__main__":
    main()
