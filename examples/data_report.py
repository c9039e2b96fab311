"""Lets an untrusted script write a report over real data, checks its figures, then faces its hostile twins.

    python examples/data_report.py [--out FOLDER]

The script (`data_report.js`) groups 220,000 exchange rates, formats money and dates, and draws a chart. It
reaches the data and the disk through four Python functions and nothing else. Exit status 1 when a figure is
wrong or a twin got away.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import exchange_rates
import hostile_twins
from chart_store import ChartStore
from pydeno import IsolatedRuntime

if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT = Path(__file__).with_suffix(".js")
MAX_PAGE = 10_000


class Tools:
    """What the script may do. Its arguments are foreign input and are checked like any other."""

    def __init__(self, rates: exchange_rates.Rates, charts: ChartStore) -> None:
        """The script reads `rates` and draws into `charts`."""
        self.rows = rates.rows()
        self.today = rates.today()
        self.charts = charts
        self.calls = 0

    def bind(self, runtime: IsolatedRuntime) -> None:
        """Gives one runtime the tools: a global function and an object."""
        runtime.bind_function("read_rows", self.read_rows)
        runtime.bind_object("tools", {"rate": self.rate, "save_chart": self.save_chart, "log": self.log})

    def read_rows(self, offset: object, limit: object) -> list[dict[str, object]]:
        """One page of the data."""
        self.calls += 1
        if not (isinstance(offset, int) and isinstance(limit, int) and offset >= 0 < limit <= MAX_PAGE):
            raise ValueError(f"offset is a count of rows, limit is 1 to {MAX_PAGE}")
        return self.rows[offset : offset + limit]

    def rate(self, currency: object) -> float | None:
        """What one euro buys today, None for a currency no longer quoted."""
        self.calls += 1
        return self.today.get(currency) if isinstance(currency, str) else None

    def save_chart(self, name: object, svg: object) -> str:
        """Keeps a picture."""
        self.calls += 1
        return self.charts.save_chart(name, svg)

    def log(self, message: object) -> None:
        """Shows one line, without what could confuse a terminal."""
        self.calls += 1
        print("   script:", plain(message, 100))


def plain(text: object, width: int) -> str:
    """The start of a foreign text, printable characters only."""
    line = "".join(character if character.isprintable() else " " for character in str(text))
    return line if len(line) <= width else line[: width - 3] + "..."


def table(columns: dict[str, str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table; `columns` maps each heading to its alignment, `<` or `>`."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    for row in [list(columns), ["-" * width for width in widths], *rows]:
        cells = zip(row, columns.values(), widths, strict=True)
        print("  ", "  ".join(f"{cell:{align}{width}}" for cell, align, width in cells).rstrip())


def write_report(tools: Tools, rates: exchange_rates.Rates, out: Path) -> bool:
    """Runs the script, shows what it found, and says whether its figures are right."""
    started = time.perf_counter()
    with IsolatedRuntime(timeout=30.0) as runtime:
        layers = ", ".join([runtime.sandbox, *runtime.sandbox_extras])
        print(f"1. The report, by {SCRIPT.name}, which nobody vetted\n\n   sandbox: {layers}")
        tools.bind(runtime)
        report: dict[str, Any] = runtime.eval(SCRIPT.read_text(encoding="utf-8"))
    seconds = time.perf_counter() - started

    print(f"\n   {report['headline']}\n")
    quoted = [entry for entry in report["currencies"] if entry["quoted"]]
    table(
        {"currency": "<", "since": "<", "change": ">", "100 euros buy": ">", "largest move in a day": "<"},
        [
            [
                entry["name"],
                entry["text"]["since"],
                entry["text"]["change"],
                entry["text"]["hundred_euros"],
                entry["text"]["leap"] or "none",
            ]
            for entry in quoted[:5] + quoted[-5:]
        ],
    )
    print(
        f"\n   the same amount for a reader in Germany, France, Japan, India: {'   '.join(report['amounts'])}"
    )
    print(f"   {seconds:.2f} s for {report['rows']:,} rows and {tools.calls} tool calls")
    figures = out / "report.json"
    figures.write_text(json.dumps(report, default=str, indent=2, ensure_ascii=False), encoding="utf-8")
    print(f"   chart: {out / report['chart']}   figures: {figures}")

    wrong = exchange_rates.check(rates, report)
    if wrong:
        print(f"   WRONG: {len(wrong)} figures differ from Python's own:", *wrong[:10], sep="\n      ")
    else:
        print(f"   checked: all figures of {len(report['currencies'])} currencies agree with Python's own")
    return not wrong


def face_twins(tools: Tools) -> bool:
    """Runs every hostile twin, shows what came back, and says whether all were survived."""
    print(
        f"\n2. Its hostile twins, each with the same tools, {hostile_twins.TIMEOUT} s, "
        f"{hostile_twins.MAX_MEMORY >> 20} MiB and {hostile_twins.MAX_HOST_CALLS:,} tool calls\n"
    )
    outcomes = [hostile_twins.face(twin, tools.bind) for twin in hostile_twins.TWINS]
    table(
        {"attack": "<", "seconds": ">", "kind": "<", "what Python got": "<", "then 1 + 1": "<"},
        [
            [
                outcome.twin.name,
                f"{outcome.seconds:.3f}",
                outcome.kind,
                plain(outcome.shown, 60),
                f"{outcome.next_sum}" if outcome.survived else f"{outcome.next_sum}  NOT SURVIVED",
            ]
            for outcome in outcomes
        ],
    )
    return all(outcome.survived for outcome in outcomes)


def main() -> int:
    """The whole example."""
    parser = argparse.ArgumentParser(description="An untrusted script writes a report over real data.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the chart and the figures")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    rates = exchange_rates.load()
    charts = ChartStore(out)
    tools = Tools(rates, charts)
    right = write_report(tools, rates, out)
    kept = list(charts.saved)
    survived = face_twins(tools)
    contained = charts.saved == kept

    print()
    if right and survived and contained:
        print("Every figure was right and every attack was survived.")
        return 0
    print("FAILED:", "a twin kept a picture" if not contained else "see WRONG and NOT SURVIVED above")
    return 1


if __name__ == "__main__":
    sys.exit(main())
