"""The page about speed says what was measured, and what is measured gives the right results. Nothing is timed here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

import pydeno

PROJECT = Path(__file__).parent.parent
DOCS = PROJECT / "docs"

sys.path.insert(0, str(PROJECT / "benches"))

import compare  # noqa: E402
import growth  # noqa: E402
import page  # noqa: E402
from contenders import CONTENDERS  # noqa: E402


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    return found


def test_the_page_is_what_its_numbers_give() -> None:
    assert page.render(results()) == (DOCS / "benchmarks.md").read_text(encoding="utf-8")


def test_every_plot_of_the_page_was_drawn() -> None:
    drawn = {path.stem for path in (DOCS / "benchmarks").glob("*.svg")}
    assert drawn == page.plots(results()).keys()


def test_every_contender_was_measured_or_has_a_reason() -> None:
    found = results()
    for entry in CONTENDERS:
        assert found["quantities"][entry.key] or found["reasons"][entry.key], entry.label


def test_a_peer_that_takes_less_is_named_as_faster() -> None:
    found = results()
    for key, median in (("pydeno", 2.0), ("v8", 1.0), ("monty", 1.9999)):
        found["quantities"].setdefault(key, {})["eval"] = {"median": median, "p95": median, "n": 1}
    (line,) = [line for line in page.faster(found, "pydeno", ["v8", "monty"]) if "`1+1` in a warm" in line]
    assert "V8 package 2.0" in line
    assert "monty" not in line


def test_a_rate_is_better_when_it_is_larger() -> None:
    found = {
        "quantities": {
            "pydeno": {"rate 1": {"median": 300.0}, "cold": {"median": 0.004}},
            "v8": {"rate 1": {"median": 10.0}, "cold": {"median": 0.1}},
        }
    }
    assert page.ratio(found, "pydeno", "v8", "rate 1") == 30
    assert page.ratio(found, "pydeno", "v8", "cold") == 25


@pytest.mark.parametrize(("power", "said"), [(0, 0.0), (1, 1.0), (2, 2.0)])
def test_the_exponent_of_a_curve_is_its_power(power: int, said: float) -> None:
    assert growth.exponent([(10.0**step, 3.0 * 10 ** (step * power)) for step in range(6)]) == said


@pytest.mark.parametrize("jit", ["off", "baseline", "full"])
def test_each_program_gives_the_same_answer_in_every_tier(jit: Literal["off", "baseline", "full"]) -> None:
    source = (PROJECT / "benches" / "programs.js").read_text(encoding="utf-8")
    with pydeno.IsolatedRuntime(jit=jit) as runtime:
        answers = runtime.eval(
            f"{source}; Object.fromEntries(Object.entries(programs).map(([name, run]) => [name, run()]))"
        )
    assert answers == compare.PROGRAMS
