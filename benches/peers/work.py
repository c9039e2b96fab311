"""The work. Samples are seconds by quantity, but for `memory` (MiB) and `rate` (sandboxes per second)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .adapter import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from .adapter import Peer, Sandbox

Samples = Iterator[tuple[str, list[float]]]

#: How long one quantity is measured in one go, in seconds.
BUDGET = 0.2
#: The same for what computes, of which there is much.
COMPUTE_BUDGET = 0.08
COUNT = 50_000


def expect(found: object, wanted: object) -> None:
    """What was not done right is not measured."""
    if found != wanted:
        raise AssertionError(f"expected {wanted!r}, got {found!r}")


def timed(
    action: Callable[[], object], wanted: object, *, per: int = 1, budget: float = BUDGET
) -> list[float]:
    """The duration of three to 2,000 runs, after one that nobody times; each must give what is wanted."""
    expect(action(), wanted)
    samples: list[float] = []
    began = time.perf_counter()
    while len(samples) < 3 or (time.perf_counter() - began < budget and len(samples) < 2000):
        started = time.perf_counter()
        found = action()
        samples.append((time.perf_counter() - started) / per)
        expect(found, wanted)
    return samples


def live(peer: Peer) -> None:
    """One sandbox's whole life."""
    sandbox = peer.open()
    expect(sandbox.eval("1+1"), 2)
    sandbox.close()


def first(peer: Peer) -> Samples:
    """The first sandbox of a process."""
    started = time.perf_counter()
    live(peer)
    yield "first", [time.perf_counter() - started]


def cold(peer: Peer) -> Samples:
    """Each further sandbox of a process: start, one evaluation, end."""
    yield "cold", timed(lambda: live(peer), None)


def checkout(peer: Peer) -> Samples:
    """Taking a sandbox that is ready, and its first evaluation."""
    pool = peer.pool()
    taken: list[float] = []
    both: list[float] = []
    began = time.perf_counter()
    while len(taken) < 5 or (time.perf_counter() - began < 3 * BUDGET and len(taken) < 300):
        pool.wait()
        started = time.perf_counter()
        sandbox = pool.checkout()
        had = time.perf_counter()
        found = sandbox.eval("1+1")
        evaluated = time.perf_counter()
        expect(found, 2)
        sandbox.close()
        taken.append(had - started)
        both.append(evaluated - started)
    pool.close()
    # The first ones find what the package prepares once.
    yield "checkout", taken[1:]
    yield "checkout and eval", both[1:]


def calls(peer: Peer) -> Samples:
    """A warm evaluation."""
    sandbox = peer.open()
    yield "eval", timed(lambda: sandbox.eval("1+1"), 2)


def tools(peer: Peer) -> Samples:
    """Calls of a host function: alone in an evaluation, and each of 1,000 in a loop."""
    sandbox = peer.open()
    once, loop = sandbox.tools()
    yield "tool", timed(once, 1)
    yield "tool in a loop", timed(loop, 0, per=1000)


def objects(peer: Peer) -> Samples:
    """50,000 objects of three fields, to Python and to the guest."""
    value = [{"id": i, "name": f"item {i}", "v": i / 7} for i in range(COUNT)]
    sandbox = peer.open()
    sandbox.make("objects")
    expect(list(sandbox.take()), value)
    yield "objects out", timed(lambda: len(sandbox.take()), COUNT)
    yield "objects in", timed(sandbox.giver(value), COUNT)


def data(peer: Peer) -> Samples:
    """1 MiB of bytes, to Python and to the guest."""
    sandbox = peer.open()
    sandbox.make("bytes")
    expect(bytes(sandbox.take()), b"\7" * MIB)
    yield "bytes out", timed(lambda: len(sandbox.take()), MIB)
    yield "bytes in", timed(sandbox.giver(b"\7" * MIB), MIB)


def text(peer: Peer) -> Samples:
    """A string of 1 MiB, to Python and to the guest."""
    sandbox = peer.open()
    sandbox.make("text")
    expect(sandbox.take(), "x" * MIB)
    yield "text out", timed(lambda: len(sandbox.take()), MIB)
    yield "text in", timed(sandbox.giver("x" * MIB), MIB)


def family() -> list[int]:
    """This process and its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "stat").read_text(encoding="utf-8")
            except OSError:
                continue  # it has ended
            parents.setdefault(int(line.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found = [os.getpid()]
    for pid in found:
        found += parents.get(pid, [])
    return found


def memory_of_family() -> float:
    """What this process and its descendants have in memory, in MiB; what they share counts once.

    The kernel divides each shared page among those who share it (the proportional set size).
    """
    total = 0
    for pid in family():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except ProcessLookupError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def memory(peer: Peer) -> Samples:
    """What each sandbox beyond the first adds to the memory of the process and its workers, in MiB."""
    sandboxes: list[Sandbox] = []

    def another() -> None:
        sandboxes.append(peer.open())
        expect(sandboxes[-1].eval("1+1"), 2)

    another()
    another()
    time.sleep(0.3)
    before = memory_of_family()
    number = 10
    for _ in range(number):
        another()
    time.sleep(0.3)
    yield "memory", [(memory_of_family() - before) / number]


def rate(peer: Peer) -> Samples:
    """Whole lives of sandboxes per second, by one thread and by two."""
    for threads in (1, 2):
        live(peer)
        done = [0] * threads
        began = time.perf_counter()
        until = began + 2 * BUDGET

        def work(index: int, done: list[int] = done, until: float = until) -> None:
            while time.perf_counter() < until:
                live(peer)
                done[index] += 1

        workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        yield f"rate {threads}", [sum(done) / (time.perf_counter() - began)]


def programs(peer: Peer, source: str, answers: dict[str, int]) -> Samples:
    """The ten compute programs, each in the same warm sandbox."""
    sandbox = peer.open()
    sandbox.eval(source + "\n0")
    for name, answer in answers.items():
        yield name, timed(partial(sandbox.eval, f"programs.{name}()"), answer, budget=COMPUTE_BUDGET)


def libraries(peer: Peer, workloads: dict[str, dict[str, Any]]) -> Samples:
    """What real libraries do, each in a sandbox of its own: loading them once, then the work, warm."""
    for name, workload in workloads.items():
        sandbox = peer.open()
        started = time.perf_counter()
        for source in workload["load"]:
            sandbox.eval(source + "\n;0")
        yield f"load {name}", [time.perf_counter() - started]
        yield name, timed(partial(sandbox.eval, "work()"), workload["answer"], budget=COMPUTE_BUDGET)
        sandbox.close()


def sources(peer: Peer, scripts: dict[str, str]) -> Samples:
    """`check_source` of each script."""
    for name, script in scripts.items():
        repeats = max(1, 20_000 // len(script))

        def action(script: str = script, repeats: int = repeats) -> None:
            for _ in range(repeats):
                peer.check_source(script)

        yield name, timed(action, None, per=repeats)


def status(peer: Peer) -> Samples:
    """`sandbox_status()`."""
    peer.sandbox_status()
    yield "sandbox_status", timed(lambda: bool(peer.sandbox_status()), True)


MEASURES: dict[str, Callable[..., Samples]] = {
    measure.__name__: measure
    for measure in (
        first,
        cold,
        checkout,
        calls,
        tools,
        objects,
        data,
        text,
        memory,
        rate,
        programs,
        libraries,
        sources,
        status,
    )
}
