"""Runs test262 in pydeno's worker and in the engine without pydeno, and says where they differ and why.

    make test262                                            everything
    .venv/bin/python tests/test262/run.py language/eval     the tests whose paths begin so
    .venv/bin/python tests/test262/run.py --imports         what is about modules

Scripts are compared with the library that pydeno loads, and what is about modules with the engine's own shell, since
the library's C interface loads none. The exit status is 1 when a difference has no reason in `reasons.py`.
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

from test262.engines import Engine, Jsc, Library, Recorded, Verdict, WithoutPydeno, Worker
from test262.reasons import REASONS, reason_for
from test262.suite import PARTS, Scenario, Suite

ENVIRONMENT = Path(__file__).parent.parent.parent / ".venv"
DEFAULT_SUITE = ENVIRONMENT / "test262"
DEFAULT_SHELL = ENVIRONMENT / "jsc" / "jsc"


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
    suite: Suite,
    paths: Iterable[str],
    worker: Engine,
    engine: Engine,
    jobs: int = 2,
    *,
    imports_only: bool = False,
) -> Iterator[Comparison]:
    """Run tests on both sides, each in every mode that it asks for.

    `imports_only` leaves out what is not about modules.
    """

    def both(path: str) -> list[Comparison]:
        return [
            Comparison(scenario, None, None)
            if scenario.needs
            else Comparison(scenario, worker.run(scenario), engine.run(scenario))
            for scenario in suite.scenarios(path)
            if scenario.imports or not imports_only
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
        #: Failures on both sides in different words, among which is what fails in a worker for a reason of its own.
        self.unlike = 0
        #: What is about modules, which is counted in its part as well.
        self.imports: Counter[str] = Counter()
        #: What of it fails in the engine.
        self.shell_failures: list[str] = []

    def add(self, comparison: Comparison) -> None:
        """Count a scenario."""
        scenario, worker, engine = comparison.scenario, comparison.worker, comparison.engine
        if worker is None or engine is None:
            self.needs[scenario.needs] += 1
            return
        for counts in [
            self.parts[scenario.path.split("/")[0]],
            *([self.imports] if scenario.imports else []),
        ]:
            counts["run"] += 1
            counts["worker"] += worker.passed
            counts["engine"] += engine.passed
            counts["differ"] += comparison.differs
        if scenario.imports and not engine.passed:
            self.shell_failures.append(scenario.name)
        if comparison.differs:
            reason = comparison.reason
            self.reasons[reason or "no reason"] += 1
            self.differences.append(
                {
                    "scenario": scenario.name,
                    "worker": worker.ending,
                    "engine": engine.ending,
                    "reason": reason,
                }
            )
        elif not worker.passed:
            failure = {"scenario": scenario.name, "worker": worker.ending, "engine": engine.ending}
            self.failures.append(failure)
            self.unlike += engine.ending not in {"", worker.ending}

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
        lines += [_row("all", total), _row("of these, about modules", self.imports)]
        lines += ["", "| reason of a difference | scenarios |", "|---|---|"]
        lines += [f"| {REASONS.get(name, name)} | {count:,} |" for name, count in self.reasons.most_common()]
        lines += ["", "| fails on both sides | scenarios |", "|---|---|"]
        lines += [f"| in the same words | {len(self.failures) - self.unlike:,} |"]
        lines += [f"| in other words | {self.unlike:,} |"]
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
    parser.add_argument("--shell", type=Path, default=DEFAULT_SHELL, help="the engine's own shell, `jsc`")
    parser.add_argument(
        "--everything-in-shell", action="store_true", help="compare scripts with the shell too"
    )
    parser.add_argument("--imports", action="store_true", help="run what is about modules, and nothing else")
    parser.add_argument("--every", type=int, default=1, help="run each n-th test only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write every difference and every failure here")
    parser.add_argument("--record", action="store_true", help="keep which tests of modules the shell fails")
    options = parser.parse_args()

    # Rejections that a test leaves unhandled on purpose.
    logging.getLogger("pydeno").addHandler(logging.NullHandler())
    suite = Suite(options.suite)
    shell: Engine = Recorded()
    if options.shell.exists():
        shell = Jsc(str(options.shell), suite)
    elif options.record or options.everything_in_shell:
        parser.error(f"there is no shell at {options.shell}")
    else:
        print(
            "there is no shell of the engine here: modules are compared with a record of it", file=sys.stderr
        )
    engine: Engine = shell if options.everything_in_shell else WithoutPydeno(Library(), shell)
    prefixes = tuple(options.prefixes) or ("",)
    paths = [path for path in suite.paths() if path.startswith(prefixes)][:: options.every]
    tally, began = Tally(), time.monotonic()
    compared = compare(suite, paths, Worker(suite), engine, options.jobs, imports_only=options.imports)
    for number, comparison in enumerate(compared):
        tally.add(comparison)
        if number % 5000 == 0 and number:
            print(f"{number:,} scenarios in {time.monotonic() - began:.0f} s", file=sys.stderr)
    engine.close()
    print(tally.table())
    print(f"\n{len(paths):,} tests in {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.record:
        Recorded.FAILURES.write_text("".join(f"{name}\n" for name in tally.shell_failures), encoding="utf-8")
    if options.json:
        report = {
            "parts": tally.parts,
            "imports": tally.imports,
            "needs": tally.needs,
            "reasons": tally.reasons,
            "differences": tally.differences,
            "failures": tally.failures,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if tally.reasons["no reason"] else 0


if __name__ == "__main__":
    sys.exit(main())
