"""Runs test262 in pydeno's worker and in the engine without pydeno, and says where they differ and why.

    make test262                                            everything, against the library that pydeno loads
    .venv/bin/python tests/test262/run.py --engine jsc      against the engine's own shell
    .venv/bin/python tests/test262/run.py language/eval     the tests whose paths begin so

The exit status is 1 when a difference has no reason in `reasons.py`.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent))

from test262.engines import Engine, Jsc, Library, Verdict, Worker
from test262.reasons import REASONS, reason_for
from test262.suite import PARTS, Scenario, Suite

DEFAULT_SUITE = Path(__file__).parent.parent.parent / ".venv" / "test262"


@dataclass(frozen=True)
class Comparison:
    """How one scenario ended on both sides; `None` where it needs what neither side has."""

    scenario: Scenario
    worker: Verdict | None
    engine: Verdict | None

    @property
    def differs(self) -> bool:
        """Whether one side passed and the other failed."""
        return (
            self.worker is not None and self.engine is not None and self.worker.passed != self.engine.passed
        )

    @property
    def reason(self) -> str | None:
        """The documented reason for a difference, by its name."""
        if self.worker is None or self.engine is None:
            return None
        return reason_for(self.scenario, self.worker, self.engine)


def compare(
    suite: Suite, paths: Iterable[str], worker: Engine, engine: Engine, jobs: int = 2
) -> Iterator[Comparison]:
    """Run tests on both sides, each in every mode that it asks for."""

    def both(path: str) -> list[Comparison]:
        return [
            Comparison(scenario, None, None)
            if scenario.needs
            else Comparison(scenario, worker.run(scenario), engine.run(scenario))
            for scenario in suite.scenarios(path)
        ]

    with ThreadPoolExecutor(jobs) as pool:
        for comparisons in pool.map(both, paths):
            yield from comparisons


class Tally:
    """What is kept of a run."""

    def __init__(self) -> None:
        self.parts = {part: Counter[str]() for part in PARTS}
        self.needs: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.differences: list[dict[str, str | None]] = []
        self.failures: list[dict[str, str]] = []

    def add(self, comparison: Comparison) -> None:
        """Count a scenario."""
        part = self.parts[comparison.scenario.path.split("/")[0]]
        worker, engine = comparison.worker, comparison.engine
        if worker is None or engine is None:
            self.needs[comparison.scenario.needs] += 1
            return
        part["run"] += 1
        part["worker"] += worker.passed
        part["engine"] += engine.passed
        if comparison.differs:
            part["differ"] += 1
            reason = comparison.reason
            self.reasons[reason or "no reason"] += 1
            self.differences.append(
                {
                    "scenario": comparison.scenario.name,
                    "worker": worker.ending,
                    "engine": engine.ending,
                    "reason": reason,
                }
            )
        elif not worker.passed:
            self.failures.append({"scenario": comparison.scenario.name, "ending": worker.ending})

    def table(self) -> str:
        """The numbers for people."""
        lines = [
            "| part | scenarios run | pass in a worker | pass in the engine | differ |",
            "|---|---|---|---|---|",
        ]
        total: Counter[str] = Counter()
        for part, counts in self.parts.items():
            total += counts
            lines.append(_row(f"`{part}`", counts))
        lines.append(_row("all", total))
        lines += ["", "| reason of a difference | scenarios |", "|---|---|"]
        lines += [f"| {REASONS.get(name, name)} | {count:,} |" for name, count in self.reasons.most_common()]
        lines += ["", "| not run, because it needs | scenarios |", "|---|---|"]
        lines += [f"| {name} | {count:,} |" for name, count in self.needs.most_common()]
        return "\n".join(lines)


def _row(name: str, counts: Counter[str]) -> str:
    return (
        f"| {name} | {counts['run']:,} | {counts['worker']:,} | {counts['engine']:,} | {counts['differ']:,} |"
    )


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description="Run test262 in pydeno's worker and in the engine without pydeno."
    )
    parser.add_argument(
        "prefixes", nargs="*", help="run the tests whose paths begin so; all when there is none"
    )
    parser.add_argument("--suite", type=Path, default=DEFAULT_SUITE, help="a copy of test262")
    parser.add_argument("--engine", default="library", help="`library`, or the path of the shell `jsc`")
    parser.add_argument("--every", type=int, default=1, help="run each n-th test only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write every difference and every failure here")
    options = parser.parse_args()

    # Rejections that a test leaves unhandled on purpose.
    logging.getLogger("pydeno").addHandler(logging.NullHandler())
    suite = Suite(options.suite)
    engine: Engine = Library() if options.engine == "library" else Jsc(options.engine)
    prefixes = tuple(options.prefixes) or ("",)
    paths = [path for path in suite.paths() if path.startswith(prefixes)][:: options.every]
    tally, began = Tally(), time.monotonic()
    for number, comparison in enumerate(compare(suite, paths, Worker(), engine, options.jobs)):
        tally.add(comparison)
        if number % 5000 == 0 and number:
            print(f"{number:,} scenarios in {time.monotonic() - began:.0f} s", file=sys.stderr)
    engine.close()
    print(tally.table())
    print(f"\n{len(paths):,} tests in {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.json:
        report = {
            "parts": tally.parts,
            "needs": tally.needs,
            "reasons": tally.reasons,
            "differences": tally.differences,
            "failures": tally.failures,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if tally.reasons["no reason"] else 0


if __name__ == "__main__":
    sys.exit(main())
