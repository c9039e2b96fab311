"""What a large bootstrap library costs each worker of a pool, with a template and without.

    .venv/bin/python benches/templates.py                 a made-up library of 1 MB
    .venv/bin/python benches/templates.py three.js        a library of your own

Prints medians. Nothing here fails for being slow.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from figures import in_words, private_bytes
from pydeno import RuntimeConfig, SandboxPool

ROUNDS = 30


def made_up(size: int) -> str:
    """A library of this many bytes: classes, closures, tables, as bundles have them."""
    parts: list[str] = []
    length = number = 0
    while length < size:
        parts.append(
            f"""
class Shape{number} {{
    constructor(x, y) {{ this.x = x; this.y = y; this.name = "shape {number}"; }}
    area(scale) {{ let sum = 0; for (let i = 0; i < 4; i++) sum += this.x * this.y * scale + i; return sum; }}
    toString() {{ return `${{this.name}} at ${{this.x}}, ${{this.y}}`; }}
}}
registry.set("shape{number}", {{ make: (x, y) => new Shape{number}(x, y), tags: ["a", "b", {number}] }});
"""
        )
        length += len(parts[-1])
        number += 1
    return "const registry = new Map();\n" + "".join(parts) + "registry.size;\n"


def proportional_bytes(pid: int) -> int:
    """The memory of a process, with what it shares divided by those who share it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))


def wait_until_ready(pool: SandboxPool) -> None:
    """Wait until nothing is being started any more."""
    while pool.stats().ready == 0:
        time.sleep(0.0002)


def measure(name: str, bootstrap: str | None, *, template: bool) -> None:
    """Workers one after the other: until one is ready, and its checkout and first evaluation."""
    ready, first = [], []
    config = RuntimeConfig(bootstrap=bootstrap)
    started = time.perf_counter()
    with SandboxPool(config, size=1, max_workers=1, template=template) as pool:
        wait_until_ready(pool)
        whole = time.perf_counter() - started
        for _ in range(ROUNDS):
            started = time.perf_counter()
            with pool.checkout() as runtime:
                runtime.eval("1+1")
                first.append(time.perf_counter() - started)
            closed = time.perf_counter()
            wait_until_ready(pool)
            ready.append(time.perf_counter() - closed)
    with SandboxPool(config, size=20, max_workers=20, template=template) as pool:
        runtimes = [pool.checkout() for _ in range(20)]
        private = statistics.median(private_bytes(runtime.worker_pid) for runtime in runtimes)
        share = statistics.median(proportional_bytes(runtime.worker_pid) for runtime in runtimes)
    print(
        f"{name:34} pool {in_words(whole):>9}  worker ready {in_words(statistics.median(ready)):>9}  "
        f"checkout+eval {in_words(statistics.median(first)):>9}  private {private / 2**20:6.2f} MiB  "
        f"share of anonymous {share / 2**20:6.2f} MiB"
    )


def main() -> None:
    """Measure all."""
    library = Path(sys.argv[1]).read_text(encoding="utf-8") if sys.argv[1:] else made_up(1_000_000)
    print(f"library of {len(library) / 1e6:.2f} MB, {ROUNDS} workers one after the other")
    measure("empty", None, template=False)
    measure("empty, template", None, template=True)
    measure("library", library, template=False)
    measure("library, template", library, template=True)


if __name__ == "__main__":
    main()
