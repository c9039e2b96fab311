"""How far a memory bomb gets past its limit, and how soon after passing it the worker is gone.

    .venv/bin/python benches/limits.py

A sampler, a process of its own, reads the worker's memory without pause; what it prints is the most that it saw.
Nothing here fails for being slow.
"""

from __future__ import annotations

import os
import subprocess
import sys

from pydeno import IsolatedRuntime, PydenoError, RuntimeConfig

LIMIT = 256 << 20

BOMBS = {
    "typed arrays": "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "one buffer, filled": "new Uint8Array(2 ** 31).fill(1)",
    "strings": "const a = []; for (let i = 0;; i++) a.push((String(i) + '\\u2603').repeat(100000))",
    "small objects": "const a = []; for (;;) a.push({a: {}, b: [1]})",
    "new Array(1e9).fill(1.5)": "new Array(1e9).fill(1.5)",
    "[...a, ...a]": "let a = [1]; for (;;) a = [...a, ...a]",
}

SAMPLER = """
import os, sys, time
pid, limit = int(sys.argv[1]), int(sys.argv[2])
page = os.sysconf("SC_PAGE_SIZE")
statm = os.open(f"/proc/{pid}/statm", os.O_RDONLY)
passed, most = None, 0
print("ready", flush=True)
try:
    while True:
        resident, shared = os.pread(statm, 100, 0).split()[1:3]
        used = (int(resident) - int(shared)) * page
        if used == 0 and passed:
            break
        most = max(most, used)
        if used > limit and passed is None:
            passed = time.monotonic()
except ProcessLookupError:
    pass
print(most, (time.monotonic() - passed) if passed else -1)
"""


def overshoot(bomb: str, tier: str) -> tuple[int, float]:
    """The bytes past the limit and the seconds from passing it to the end; -1 where it was never seen past it."""
    config = RuntimeConfig(max_heap_size=64 << 30)
    with IsolatedRuntime(config, timeout=60, max_memory=LIMIT, jit=tier) as rt:  # type: ignore[arg-type]
        sampler = subprocess.Popen(
            [sys.executable, "-c", SAMPLER, str(rt.worker_pid), str(LIMIT)], stdout=subprocess.PIPE, text=True
        )
        assert sampler.stdout is not None
        sampler.stdout.readline()
        try:
            rt.eval(bomb)
            kind = "no error"
        except PydenoError as error:
            kind = error.kind
    most, late = sampler.communicate()[0].split()
    if kind != "memory_limit":
        print(f"  ({kind})", end="")
    return int(most) - LIMIT, float(late)


def main() -> None:
    """One line a bomb and tier: the worst of several runs."""
    rounds = 5
    print(
        f"limit {LIMIT >> 20} MiB, worst of {rounds}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    for tier in ("off", "full"):
        for name, bomb in BOMBS.items():
            found = [overshoot(bomb, tier) for _ in range(rounds)]
            most, late = max(past for past, _ in found), max(late for _, late in found)
            past = f"{most / (1 << 20):6.1f} MiB past" if most > 0 else "   not past it"
            print(f"{name:28} jit={tier:5} {past}  gone after {max(late, 0) * 1e3:5.1f} ms", flush=True)


main()
