"""Mixed operations on many runtimes from several threads, with workers that are killed at random; then what is left.

    .venv/bin/python benches/stress.py --operations 50000 --threads 8

Prints one JSON object: how many operations of each kind there were, what came of them, and processes, descriptors,
threads and memory before and after. Exits with 1 when an operation had an outcome that it must not have.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gc
import json
import os
import random
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydeno import AsyncIsolatedRuntime, IsolatedRuntime, JsFunction, PydenoError

if TYPE_CHECKING:
    from collections.abc import Callable

#: What a runtime may say whose worker is killed or that is closed at that moment.
ENDS = {"worker_crashed", "terminated", "closed"}
#: Evaluations of one runtime before it is replaced.
PER_RUNTIME = 12


class Tally:
    """What came of the operations."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.lock = threading.Lock()
        self.operations: collections.Counter[str] = collections.Counter()
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.surprises: list[str] = []
        self.left = 0

    def take(self) -> bool:
        """Whether there is another operation to do."""
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def add(self, operation: str, outcome: str) -> None:
        """Count an operation and what came of it."""
        with self.lock:
            self.operations[operation] += 1
            self.outcomes[outcome] += 1

    def surprise(self, operation: str, what: object) -> None:
        """Note an outcome that must not be."""
        with self.lock:
            self.surprises.append(f"{operation}: {what!r}")


def double(value: int) -> int:
    """Answer at once."""
    return 2 * value


def apply(function: JsFunction, value: int) -> Any:
    """Call back into the script."""
    return function(value)


async def later(value: int) -> int:
    """Answer in a moment."""
    await asyncio.sleep(0.0005)
    return value


def fail() -> None:
    """Raise what the script is to catch."""
    raise ValueError


#: Scripts with their values, of a number that is put in.
SCRIPTS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "sum": ("{n} + 1", lambda n: n + 1),
    "objects": ("Array.from({{length: 50}}, (_, i) => ({{i, n: {n}}})).at(-1)", lambda n: {"i": 49, "n": n}),
    "host function": ("double({n})", lambda n: 2 * n),
    "nested": ("apply(x => double(x) + 1, {n})", lambda n: 2 * n + 1),
    "failure": ("try {{ fail() }} catch (error) {{ {n} }}", lambda n: n),
    "microtasks": ("(async () => {{ for (let i = 0; i < 20; i++) await i; return {n} }})()", lambda n: n),
    "buffer": ("new Uint8Array({n} % 5000)", lambda n: bytes(n % 5000)),
}
ASYNC_SCRIPTS: dict[str, tuple[str, Callable[[int], Any]]] = {
    **SCRIPTS,
    "async function": ("later({n})", lambda n: n),
    "async functions": ("Promise.all([later({n}), later(1), later(2)])", lambda n: [n, 1, 2]),
    "not awaited": ("later(1); later(2); {n}", lambda n: n),
}


def equip(rt: Any, *, asynchronous: bool) -> None:
    """Bind the functions that the scripts call."""
    rt.bind_function("double", double)
    rt.bind_function("apply", apply)
    rt.bind_function("fail", fail)
    if asynchronous:
        rt.bind_function("later", later)


def blocking(tally: Tally, dice: random.Random) -> None:
    """Operations that block this thread."""
    while True:
        rt = IsolatedRuntime(timeout=10)
        asynchronous = dice.random() < 0.2
        equip(rt, asynchronous=asynchronous)
        scripts = ASYNC_SCRIPTS if asynchronous else SCRIPTS
        held: list[JsFunction] = []
        for _ in range(PER_RUNTIME):
            if not tally.take():
                rt.close()
                return
            operation, ends = (
                dice.choice([*scripts, "function", "kill", "terminate", "close", "throw"]),
                False,
            )
            number = dice.randrange(1 << 20)
            try:
                if operation == "function":
                    function = rt.eval(f"x => x + {number}")
                    held.append(function)
                    _expect(tally, operation, function(1), number + 1)
                elif operation == "throw":
                    if rt.execute("throw new Error('x')").status != "js_error":
                        tally.surprise(operation, "no error")
                elif operation in ("kill", "terminate", "close"):
                    ends = True
                    _end_soon(rt, operation, dice.random() * 0.003)
                    rt.eval("const end = Date.now() + 1000; while (Date.now() < end) {}; 0")
                    tally.surprise(operation, "the script came to its end")
                else:
                    code, value = scripts[operation]
                    _expect(tally, operation, rt.eval(code.format(n=number)), value(number))
                outcome = "value"
            except PydenoError as error:
                outcome = error.kind
                if not (ends and outcome in ENDS):
                    tally.surprise(operation, error)
            tally.add(f"blocking {operation}", outcome)
            if rt.is_closed():
                break
        if dice.random() < 0.5:
            rt.close()
        # Otherwise it ends when nothing refers to it any more.


def _end_soon(rt: Any, how: str, seconds: float) -> None:
    pid = rt.worker_pid

    def end() -> None:
        time.sleep(seconds)
        if how == "kill":
            os.kill(pid, signal.SIGKILL)
        else:
            getattr(rt, how)()

    threading.Thread(target=end).start()


def _expect(tally: Tally, operation: str, value: object, expected: object) -> None:
    if value != expected:
        tally.surprise(operation, value)


async def overlapping(tally: Tally, dice: random.Random) -> None:
    """Operations on a loop of this thread's own."""
    while True:
        rt = AsyncIsolatedRuntime(timeout=10)
        equip(rt, asynchronous=True)
        batch = 0
        while batch < PER_RUNTIME and tally.take():
            batch += 1
        if not batch:
            return
        end = dice.choice(["none", "none", "close", "kill", "terminate", "cancel", "cancel start"])
        if end == "cancel start":
            start = asyncio.ensure_future(rt.start())
            await asyncio.sleep(dice.random() * 0.002)
            start.cancel()
            await asyncio.gather(start, return_exceptions=True)
        await rt.start()
        tasks = {asyncio.ensure_future(_one(tally, rt, dice, end)) for _ in range(batch)}
        if end not in ("none", "cancel start"):
            await asyncio.sleep(dice.random() * 0.003)
        if end == "cancel":
            for task in tasks:
                task.cancel()
        elif end == "kill":
            os.kill(rt.worker_pid, signal.SIGKILL)
        elif end in ("close", "terminate"):
            getattr(rt, end)()
        await asyncio.gather(*tasks, return_exceptions=True)
        if end == "cancel":
            _expect(tally, end, await rt.eval("40 + 2"), 42)
        if dice.random() < 0.5:
            rt.close()


async def _one(tally: Tally, rt: AsyncIsolatedRuntime, dice: random.Random, end: str) -> None:
    operation = dice.choice([*ASYNC_SCRIPTS, "function"])
    number = dice.randrange(1 << 20)
    outcome = "value"
    try:
        if operation == "function":
            function = await rt.eval(f"async x => await later(x) + {number}")
            _expect(tally, operation, await function(1), number + 1)
        else:
            code, value = ASYNC_SCRIPTS[operation]
            _expect(tally, operation, await rt.eval(code.format(n=number)), value(number))
    except asyncio.CancelledError:
        outcome = "cancelled by the loop"
        if end != "cancel":
            tally.surprise(operation, outcome)
        raise
    except PydenoError as error:
        outcome = error.kind
        if not (end in ("kill", "close", "terminate") and outcome in ENDS):
            tally.surprise(operation, error)
    except BaseException as error:
        outcome = type(error).__name__
        tally.surprise(operation, error)
        raise
    finally:
        tally.add(f"async {operation}", outcome)


def measure() -> dict[str, int]:
    """What this process has now, and how many processes there are below it."""
    gc.collect()
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {
        "processes": len(below) - 1,
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "resident_kib": int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024,
    }


def settled(before: dict[str, int]) -> dict[str, int]:
    """What is left when what is ending has had time to."""
    for _ in range(200):
        now = measure()
        if all(now[what] <= before[what] for what in ("processes", "descriptors", "threads")):
            break
        time.sleep(0.05)
    return now


def run(tally: Tally, operations: int, threads: int, seed: int) -> None:
    """Do so many operations on so many threads, half of which run an event loop."""
    tally.left = operations
    workers = []
    for index in range(threads):
        dice = random.Random(seed * 1000 + index)
        work = (
            (lambda dice=dice: blocking(tally, dice))
            if index % 2
            else (lambda dice=dice: asyncio.run(overlapping(tally, dice)))
        )
        workers.append(threading.Thread(target=_guarded, args=(tally, work)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _guarded(tally: Tally, work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - the tally tells of it
        tally.surprise("thread", error)


def main() -> int:
    """Measure, work, measure again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--operations", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # What the first operations need stays: the zygote, the worker ahead, the monitor, Python's own caches.
    run(Tally(), max(arguments.operations // 10, 200), arguments.threads, arguments.seed + 1)
    time.sleep(0.5)
    before = measure()
    tally, start = Tally(), time.monotonic()
    run(tally, arguments.operations, arguments.threads, arguments.seed)
    seconds = time.monotonic() - start
    report = {
        "operations": sum(tally.operations.values()),
        "seconds": round(seconds, 1),
        "kinds": dict(sorted(tally.operations.items())),
        "outcomes": dict(sorted(tally.outcomes.items())),
        "surprises": tally.surprises[:20],
        "before": before,
        "after": settled(before),
    }
    print(json.dumps(report, indent=2))
    return 1 if tally.surprises else 0


if __name__ == "__main__":
    sys.exit(main())
