"""pydeno beside its peers, in one run: the same work, done in turns, so that a slow moment of the machine shows on all.

    make bench                                      everything, about seven minutes; writes docs/benchmarks.md
    .venv/bin/python benches/compare.py --quick     one short round, into out/benchmarks
    .venv/bin/python benches/compare.py --only calls,tools --peers pydeno,monty

Each measure is a fresh process in the environment of its package (`peers/`). Nothing here fails for being slow; what a
package cannot do, or does wrong, is told on the page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import growth
import page
import pydeno
from check_source import SNIPPET
from contenders import BENCHES, CONTENDERS, Contender, install

ROOT = BENCHES.parent
MODULES = ROOT / ".venv" / "workloads" / "node_modules"
LIMIT = 60.0

#: In the order in which they are done; one process gives one sample of the first two.
MEASURES = [
    "import",
    "first",
    "cold",
    "checkout",
    "calls",
    "tools",
    "objects",
    "data",
    "text",
    "memory",
    "rate",
    "status",
    "sources",
    "programs",
    "libraries",
]
PROCESSES = {"import": 4, "first": 3}
TURNS = 3

#: What each program of programs.js returns.
PROGRAMS = {
    "recursion": 1380,
    "properties": 3371,
    "strings": 56709,
    "json": 337896,
    "sort": 919150,
    "arrays": 32090197,
    "regexps": 37564510,
    "maps": 1273656,
    "classes": 104101,
    "typed": 1490815,
}

#: Each library's file, and what its workload in `libraries/` returns.
LIBRARIES = {
    "acorn": ("acorn/dist/acorn.js", 7203),
    "d3": ("d3/dist/d3.min.js", 553),
    "echarts": ("echarts/dist/echarts.min.js", 369),
    "katex": ("katex/dist/katex.min.js", 1356),
    "marked": ("marked/lib/marked.umd.js", 3661),
    "papaparse": ("papaparse/papaparse.min.js", 68922),
}

IMPORT = """
import importlib, time
started = time.perf_counter()
importlib.import_module({module!r})
print(time.perf_counter() - started)
"""


def read(path: Path) -> str:
    """A file of text."""
    return path.read_text(encoding="utf-8")


def needed(measure: str) -> dict[str, Any]:
    """What a measure gets on its standard input."""
    if measure == "programs":
        return {"source": read(BENCHES / "programs.js"), "answers": PROGRAMS}
    if measure == "libraries":
        given = f"var input = {json.dumps(read(MODULES / 'papaparse' / 'papaparse.js'))};"
        timers = read(BENCHES / "libraries" / "timers.js")
        return {
            "workloads": {
                name: {
                    "load": [timers, read(MODULES / file), given, read(BENCHES / "libraries" / f"{name}.js")],
                    "answer": answer,
                }
                for name, (file, answer) in LIBRARIES.items()
            }
        }
    if measure == "sources":
        names = ("acorn", "d3", "echarts")
        bundles = {f"check {name}": read(MODULES / LIBRARIES[name][0]) for name in names}
        return {"scripts": {"check snippet": SNIPPET, **bundles}}
    return {}


def run(entry: Contender, measure: str) -> dict[str, Any]:
    """One process: `samples` by quantity, or why there are none."""
    if measure == "import":
        command = [str(entry.python), "-c", IMPORT.format(module=entry.imported)]
    else:
        command = [str(entry.python), "-m", f"peers.{entry.module}", entry.variant, measure]
    process = subprocess.Popen(
        command,
        cwd=BENCHES,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        told, complaints = process.communicate(json.dumps(needed(measure)), timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return {"failed": f"was not done after {LIMIT:.0f} s"}
    try:
        if measure == "import":
            return {"samples": {"import": [float(told)]}}
        outcome: dict[str, Any] = json.loads(told.splitlines()[-1])
    except (ValueError, IndexError):
        last = complaints.strip().splitlines()[-1:]
        return {"failed": f"exit status {process.returncode}" + "".join(f": {line[:200]}" for line in last)}
    if "failed" in outcome:
        print(complaints, file=sys.stderr)
    return outcome


def summary(samples: list[float]) -> dict[str, float]:
    """The median, the 95th percentile and the number of them."""
    ordered = sorted(samples)
    return {
        "median": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))],
        "n": len(ordered),
    }


class Run:
    """What has been measured so far, and what has not."""

    def __init__(self, contenders: list[Contender], failures: dict[str, str]) -> None:
        """`failures` are the packages that could not be installed, and why."""
        self.contenders = contenders
        self.samples: dict[str, dict[str, list[float]]] = {entry.key: {} for entry in contenders}
        self.reasons: dict[str, dict[str, str]] = {entry.key: {} for entry in contenders}
        self.given_up: set[tuple[str, str]] = set()
        for entry in contenders:
            if entry.requirement in failures:
                told = f"could not be installed: {failures[entry.requirement]}"
                self.reasons[entry.key] = dict.fromkeys(entry.measures, told)
                self.given_up |= {(entry.key, measure) for measure in entry.measures}

    def turn(self, number: int, measures: list[str]) -> None:
        """Each measure by each contender; another one begins each turn."""
        for measure in measures:
            able = [entry for entry in self.contenders if measure in entry.measures]
            for entry in able[number % len(able) :] + able[: number % len(able)] if able else []:
                for _ in range(PROCESSES.get(measure, 1)):
                    if (entry.key, measure) not in self.given_up:
                        print(f"turn {number + 1}, {measure}: {entry.label}", flush=True)
                        self.take(entry, measure, run(entry, measure))

    def take(self, entry: Contender, measure: str, outcome: dict[str, Any]) -> None:
        """Adds what one process told."""
        for quantity, values in outcome.get("samples", {}).items():
            self.samples[entry.key].setdefault(quantity, []).extend(values)
        for kind in ("unsupported", "failed"):
            if kind in outcome:
                print(f"    {kind}: {outcome[kind]}", flush=True)
                self.reasons[entry.key][measure] = outcome[kind]
                # What can be done in part is done again.
                if kind == "failed" or not outcome["samples"]:
                    self.given_up.add((entry.key, measure))

    def summaries(self) -> dict[str, dict[str, dict[str, float]]]:
        """By contender and quantity."""
        return {
            key: {quantity: summary(values) for quantity, values in found.items()}
            for key, found in self.samples.items()
        }


def machine() -> dict[str, str]:
    """What it ran on."""
    processor = re.search(r"^model name\s*: (.+)$", read(Path("/proc/cpuinfo")), re.MULTILINE)
    total = re.search(r"^MemTotal: +(\d+) kB", read(Path("/proc/meminfo")), re.MULTILINE)
    release = platform.freedesktop_os_release()
    pydeno_command = str(Path(sys.executable).parent / "pydeno")
    doctor = subprocess.run([pydeno_command, "doctor"], capture_output=True, text=True, check=False)
    engine = re.search(r"^engine +yes +(\S+)", doctor.stdout, re.MULTILINE)
    # Debian names the package after the library.
    package = engine[1].replace(".so.", "-") if engine else ""
    query = ["dpkg-query", "--show", package]
    known = (
        subprocess.run(query, capture_output=True, text=True, check=False) if shutil.which(query[0]) else None
    )
    return {
        "processor": f"{os.cpu_count()} x {processor[1] if processor else platform.processor()}",
        "memory": f"{int(total[1]) / 2**20:.0f} GiB" if total else "unknown",
        "system": f"{release['PRETTY_NAME']}, kernel {platform.release()}, {platform.machine()}",
        "python": platform.python_version(),
        "engine": " ".join(known.stdout.split()) if known and known.stdout else package,
    }


def main() -> None:
    """Measures, then writes the numbers, the plots and the page."""
    parser = argparse.ArgumentParser(description="pydeno beside its peers")
    parser.add_argument("--quick", action="store_true", help="one turn of each measure, and no growth")
    parser.add_argument("--only", metavar="MEASURE,...", help=f"of {', '.join(MEASURES)}, growth")
    parser.add_argument("--peers", metavar="KEY,...", help=", ".join(entry.key for entry in CONTENDERS))
    parser.add_argument(
        "--minutes", type=float, default=7.5, help="no turn begins that would not end by then"
    )
    parser.add_argument(
        "--out", type=Path, help="the folder of the page; docs/ for a full run, else out/benchmarks"
    )
    arguments = parser.parse_args()

    only = arguments.only.split(",") if arguments.only else [*MEASURES, "growth"]
    keys = arguments.peers.split(",") if arguments.peers else [entry.key for entry in CONTENDERS]
    if unknown := (set(only) - {*MEASURES, "growth"}) | (set(keys) - {entry.key for entry in CONTENDERS}):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    partial = arguments.quick or arguments.only or arguments.peers
    out = arguments.out or (ROOT / "out" / "benchmarks" if partial else ROOT / "docs")

    run_all = Run([entry for entry in CONTENDERS if entry.key in keys], install())
    began, load, ran_on = time.monotonic(), os.getloadavg()[0], machine()
    curves = growth.measure() if "growth" in only and not arguments.quick else []
    turns = 0
    while turns < (1 if arguments.quick else TURNS):
        turn_began = time.monotonic()
        run_all.turn(turns, [measure for measure in MEASURES if measure in only])
        turns += 1
        now = time.monotonic()
        print(f"turn {turns} took {now - turn_began:.0f} s", flush=True)
        if now + (now - turn_began) > began + 60 * arguments.minutes:
            break
    results = {
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "version": pydeno.__version__,
        "load": round(load, 2),
        "machine": ran_on,
        "turns": turns,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "quantities": run_all.summaries(),
        "reasons": run_all.reasons,
        "growth": curves,
    }
    print(f"measured in {results['minutes']} minutes; writing {out / 'benchmarks.md'}", flush=True)
    page.write(results, out)


if __name__ == "__main__":
    main()
