"""Writes docs/benchmarks.md and its plots from the numbers of one run.

.venv/bin/python benches/page.py     writes them again from docs/benchmarks/results.json
"""

from __future__ import annotations

import json
import math
import re
import statistics
from typing import TYPE_CHECKING, Any

from contenders import BENCHES, CONTENDERS

if TYPE_CHECKING:
    from pathlib import Path

Results = dict[str, Any]

LABELS = {entry.key: entry.label for entry in CONTENDERS}
REQUIREMENTS = sorted({entry.requirement for entry in CONTENDERS if entry.requirement})

#: What stands in the tables: the quantity, its name, its unit. A rate is better when it is larger.
BASIC = [
    ("first", "first sandbox of a process", "s"),
    ("cold", "each further sandbox: start, `1+1`, end", "s"),
    ("checkout", "checkout from a pool", "s"),
    ("checkout and eval", "checkout and first `1+1`", "s"),
    ("eval", "`1+1` in a warm sandbox", "s"),
    ("tool", "one tool call, alone in an evaluation", "s"),
    ("tool in a loop", "each of 1,000 tool calls in a loop", "s"),
    ("objects out", "50,000 objects of three fields, out", "s"),
    ("objects in", "50,000 objects of three fields, in", "s"),
    ("bytes out", "1 MiB of bytes, out", "s"),
    ("bytes in", "1 MiB of bytes, in", "s"),
    ("text out", "a string of 1 MiB, out", "s"),
    ("text in", "a string of 1 MiB, in", "s"),
    ("memory", "memory of one more idle sandbox", "MiB"),
    ("rate 1", "sandboxes per second, one thread", "/s"),
    ("rate 2", "sandboxes per second, two threads", "/s"),
]
TOOLS = [
    ("import", "import, beyond bare Python", "s"),
    ("sandbox_status", "`sandbox_status()`", "s"),
    ("check snippet", "`check_source`, a snippet of 20 lines", "s"),
    ("check acorn", "`check_source`, acorn.js", "s"),
    ("check d3", "`check_source`, d3.min.js", "s"),
    ("check echarts", "`check_source`, echarts.min.js", "s"),
]
PROGRAMS = [
    "recursion",
    "properties",
    "strings",
    "json",
    "sort",
    "arrays",
    "regexps",
    "maps",
    "classes",
    "typed",
]
LIBRARIES = ["acorn", "d3", "echarts", "katex", "marked", "papaparse"]

BOUNDED = ["v8", "v8-template", "monty", "deno", "quickjs-rs"]
UNBOUNDED = ["v8-runtime", "jsrun", "mini-racer", "quickjs-ng"]
INTERPRETED = ["pydeno", "baseline", "v8", "deno-off", "quickjs-ng", "quickjs-rs"]
COMPILED = ["full", "v8-full", "deno", "jsrun", "mini-racer"]


def value(results: Results, key: str, quantity: str) -> float | None:
    """A median, where there is one."""
    found = results["quantities"].get(key, {}).get(quantity)
    return found["median"] if found else None


def ratio(results: Results, reference: str, peer: str, quantity: str) -> float | None:
    """How many times as much the peer takes; for rates, how many times as many pydeno does."""
    own, other = value(results, reference, quantity), value(results, peer, quantity)
    if not own or not other:
        return None
    return own / other if quantity.startswith("rate") else other / own


def mean(results: Results, key: str, quantities: list[str]) -> float | None:
    """The geometric mean, where every part was measured."""
    found = [value(results, key, quantity) for quantity in quantities]
    parts = [number for number in found if number]
    return statistics.geometric_mean(parts) if len(parts) == len(quantities) else None


def shown(number: float, unit: str) -> str:
    """A quantity with its unit, in three digits."""
    if unit == "s":
        scale, unit = (1e6, "µs") if number < 1e-3 else (1e3, "ms") if number < 1 else (1, "s")
        number *= scale
    digits = max(0, 2 - math.floor(math.log10(number))) if number > 0 else 0
    return f"{number:,.{digits}f}{unit if unit == '/s' else ' ' + unit}"


def times(number: float | None) -> str:
    """A ratio; in bold where the peer does better."""
    if number is None:
        return "–"
    digits = 0 if number >= 9.95 else 1 if number >= 1 else 2
    text = f"{number:,.{digits}f}×"
    return f"**{text}**" if number < 0.95 else text


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown, numbers to the right."""
    return [
        "| " + " | ".join(head) + " |",
        "|---" + "|--:" * (len(head) - 1) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
    ]


def ratios(
    results: Results, reference: str, peers: list[str], quantities: list[tuple[str, str, str]]
) -> list[str]:
    """A row for each quantity: pydeno's own value, and each peer's ratio to it."""
    rows = []
    for quantity, name, unit in quantities:
        own = value(results, reference, quantity)
        if own is not None:
            cells = [times(ratio(results, reference, peer, quantity)) for peer in peers]
            rows.append([name, shown(own, unit), *cells])
    return table(["", LABELS[reference], *(LABELS[peer] for peer in peers)], rows)


def faster(results: Results, reference: str, peers: list[str]) -> list[str]:
    """Where a peer does better than this form of pydeno."""
    lines = []
    for quantity, name, _ in BASIC + TOOLS:
        found = [(ratio(results, reference, peer, quantity), LABELS[peer]) for peer in peers]
        better = [f"{label} {1 / number:.1f}×" for number, label in found if number and number < 0.95]
        if better:
            lines.append(f"- {name}: {', '.join(better)}")
    return lines


def computes_faster(results: Results, reference: str, peers: list[str], how: str) -> list[str]:
    """Where a peer does better at computing."""
    lines = []
    for what, parts in (("ten programs", PROGRAMS), ("six libraries", LIBRARIES)):
        own = mean(results, reference, parts)
        found = [(mean(results, peer, parts), LABELS[peer]) for peer in peers]
        better = [
            f"{label} {own / other:.1f}×" for other, label in found if own and other and other < 0.95 * own
        ]
        if better:
            lines.append(f"- {what}, {how}: {', '.join(better)}")
    return lines


def compute(results: Results, reference: str, contenders: list[str]) -> list[str]:
    """Geometric means of the programs and the libraries, and how they compare."""
    loads = [f"load {name}" for name in LIBRARIES]
    rows = []
    for key in contenders:
        cells = [LABELS[key]]
        for parts in (PROGRAMS, LIBRARIES, loads):
            own, other = mean(results, reference, parts), mean(results, key, parts)
            if other is None or own is None:
                cells += ["–", "–"]
            else:
                cells += [shown(other, "s"), "1" if key == reference else times(other / own)]
        rows.append(cells)
    return table(["", "ten programs", "", "six libraries", "", "loading them", ""], rows)


def everything(results: Results, quantities: list[tuple[str, str, str]], contenders: list[str]) -> list[str]:
    """Medians and 95th percentiles."""
    rows = []
    for quantity, name, unit in quantities:
        cells = []
        for key in contenders:
            found = results["quantities"].get(key, {}).get(quantity)
            cells.append(f"{shown(found['median'], unit)} / {shown(found['p95'], unit)}" if found else "–")
        if set(cells) != {"–"}:
            rows.append([name, *cells])
    return table(["", *(LABELS[key] for key in contenders)], rows)


def missing(results: Results) -> list[str]:
    """What a contender could not do, and why."""
    lines = []
    for key, reasons in results["reasons"].items():
        grouped: dict[str, list[str]] = {}
        for measure, reason in reasons.items():
            grouped.setdefault(reason, []).append(measure)
        lines += [f"- {LABELS[key]}: {reason} ({', '.join(what)})" for reason, what in grouped.items()]
    return lines


def file_of(curve: dict[str, Any]) -> str:
    """The name of a curve's plot."""
    return f"growth-{curve['key']}"


def growth(results: Results) -> list[str]:
    """The plots, two in a row, and the exponents."""
    curves = results["growth"]
    images = [f"![{curve['title']}](benchmarks/{file_of(curve)}.svg)" for curve in curves]
    rows = [
        [curve["title"], name, f"{curve['y']} by {curve['x']}", f"{exponent:.2f}"]
        for curve in curves
        for name, exponent in curve["exponents"].items()
    ]
    pairs = [f"{' '.join(images[at : at + 2])}\n" for at in range(0, len(images), 2)]
    return [*pairs, *table(["", "curve", "of", "exponent"], rows)]


def render(results: Results) -> str:
    """The page: the text of page.md, with what was measured in the place of each `{{name}}`."""
    machine = results["machine"]
    single = [(name, name, "s") for name in PROGRAMS + LIBRARIES]
    single += [(f"load {name}", f"loading {name}", "s") for name in LIBRARIES]
    importers = ["v8", "monty", "quickjs-rs", "jsrun", "mini-racer", "quickjs-ng"]
    parts = {
        "date": [results["date"]],
        "machine": [f"{machine['processor']}, {machine['memory']}, {machine['system']}"],
        "versions": [f"Python {machine['python']}, pydeno {results['version']}, {machine['engine']}"],
        "boundary": ratios(results, "pydeno", BOUNDED, BASIC),
        "faster": faster(results, "pydeno", BOUNDED)
        + computes_faster(results, "pydeno", [key for key in INTERPRETED if key != "baseline"], "JIT off")
        + computes_faster(results, "full", COMPILED, "every compiler")
        or ["- nowhere in this run"],
        "faster in process": faster(results, "runtime", UNBOUNDED) or ["- nowhere in this run"],
        "in process": ratios(results, "runtime", UNBOUNDED, BASIC),
        "interpreted": compute(results, "pydeno", INTERPRETED),
        "compiled": compute(results, "full", COMPILED),
        "tools": ratios(results, "pydeno", ["v8"], TOOLS[1:]),
        "import": ratios(results, "pydeno", importers, TOOLS[:1]),
        "growth": growth(results),
        "every boundary": everything(results, BASIC + TOOLS, ["pydeno", *BOUNDED]),
        "every in process": everything(results, BASIC + TOOLS[:1], ["runtime", *UNBOUNDED]),
        "every interpreted": everything(results, single, INTERPRETED),
        "every compiled": everything(results, single, COMPILED),
        "peers": [", ".join(f"`{requirement}`" for requirement in REQUIREMENTS)],
        "load": [str(results["load"])],
        "minutes": [str(results["minutes"])],
        "turns": [str(results["turns"])],
        "missing": missing(results) or ["- nothing"],
    }
    text = (BENCHES / "page.md").read_text(encoding="utf-8")
    return re.sub(r"\{\{([a-z ]+)\}\}", lambda found: "\n".join(parts[found[1]]).rstrip("\n"), text)


def plots(results: Results) -> dict[str, tuple[str, dict[str, Any]]]:
    """What plots.js is to draw, by file name."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for name, title, reference, peers in (
        ("boundary", "Behind a boundary: times IsolatedRuntime", "pydeno", BOUNDED),
        ("in-process", "In the host's process: times Runtime", "runtime", UNBOUNDED),
    ):
        rows = [row for row in BASIC if value(results, reference, row[0]) is not None]
        shares = {
            peer: [ratio(results, reference, peer, quantity) for quantity, _, _ in rows] for peer in peers
        }
        if any(number for numbers in shares.values() for number in numbers):
            found[name] = (
                "ratios",
                {
                    "title": title,
                    "reference": LABELS[reference],
                    "rows": [label.replace("`", "") for _, label, _ in rows],
                    "peers": [{"label": LABELS[peer], "ratios": numbers} for peer, numbers in shares.items()],
                },
            )
    for name, title, parts in (
        ("programs", "Ten programs, geometric mean", PROGRAMS),
        ("libraries", "Work of six libraries, geometric mean", LIBRARIES),
    ):
        means = [(key, mean(results, key, parts)) for key in [*INTERPRETED, *COMPILED]]
        entries = [
            {
                "label": LABELS[key] + (", no JIT" if key in ("pydeno", "v8") else ""),
                "value": number,
                "own": key in ("pydeno", "baseline", "full"),
            }
            for key, number in means
            if number is not None
        ]
        if entries:
            found[name] = ("bars", {"title": title, "unit": "seconds", "entries": entries})
    for curve in results["growth"]:
        found[file_of(curve)] = ("curves", curve)
    return found


def write(results: Results, out: Path) -> None:
    """The page, its plots and its numbers."""
    from plots import draw  # noqa: PLC0415 - only this needs the libraries

    folder = out / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for stale in folder.glob("*.svg"):
        stale.unlink()
    for name, svg in draw(plots(results)).items():
        (folder / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
    (out / "benchmarks.md").write_text(render(results), encoding="utf-8")


def main() -> None:
    """Writes everything again from the numbers."""
    docs = BENCHES.parent / "docs"
    write(json.loads((docs / "benchmarks" / "results.json").read_text(encoding="utf-8")), docs)


if __name__ == "__main__":
    main()
