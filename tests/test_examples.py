"""The main example runs as documented, and its own checks would notice what they are there to notice."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SVG = "{http://www.w3.org/2000/svg}"

sys.path.insert(0, str(EXAMPLES))

import exchange_rates  # noqa: E402
from chart_store import ChartRefusedError, ChartStore  # noqa: E402


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    out = tmp_path_factory.mktemp("report")
    command = [sys.executable, str(EXAMPLES / "data_report.py"), "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False), out


@pytest.mark.timeout(300)
def test_the_report_is_right_and_every_hostile_twin_is_survived(
    run: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    finished, _ = run
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "agree with Python's own" in finished.stdout
    assert "Every figure was right and every attack was survived." in finished.stdout
    assert "NOT SURVIVED" not in finished.stdout


@pytest.mark.timeout(300)
def test_the_report_covers_more_than_ten_thousand_real_rows(
    run: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    report = json.loads((run[1] / "report.json").read_text(encoding="utf-8"))
    assert report["rows"] > 200_000
    assert len(report["currencies"]) == len(exchange_rates.load().columns)


@pytest.mark.timeout(300)
def test_the_chart_is_a_picture_with_a_title_and_labelled_lines(
    run: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    root = ET.fromstring((run[1] / "euro.svg").read_text(encoding="utf-8"))
    words = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert root.findtext(f"{SVG}title") == "What one euro buys"
    assert len(root.findall(f"{SVG}polyline")) == 6
    assert "2000" in words
    assert any(re.fullmatch(r"Swiss Franc -\d+(\.\d)?%", word) for word in words)


def test_the_check_notices_a_figure_that_is_off_by_a_millionth() -> None:
    rates = exchange_rates.load()
    honest: dict[str, Any] = {
        "rows": len(rates.rows()),
        "currencies": [
            {"currency": name, **exchange_rates.expected(column)} for name, column in rates.columns.items()
        ],
    }
    assert exchange_rates.check(rates, honest) == []
    honest["currencies"][0]["mean"] *= 1.000001
    assert len(exchange_rates.check(rates, honest)) == 1


def test_the_check_notices_a_currency_that_is_missing() -> None:
    rates = exchange_rates.load()
    assert exchange_rates.check(rates, {"rows": len(rates.rows()), "currencies": []})


@pytest.mark.parametrize("name", ["../escaped", "a/b", "", "x" * 41, "euro.svg", None, 7])
def test_a_chart_cannot_be_kept_outside_its_folder(tmp_path: Path, name: object) -> None:
    with pytest.raises(ChartRefusedError):
        ChartStore(tmp_path).save_chart(name, '<svg xmlns="http://www.w3.org/2000/svg"/>')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "<script>alert(1)</script>",
        '<rect onclick="alert(1)"/>',
        '<a href="https://example.org"><text>x</text></a>',
        '<image href="https://example.org/pixel.png"/>',
        '<rect fill="url(https://example.org/#x)"/>',
        '<rect style="fill:red"/>',
        "<foreignObject/>",
        "<rect>",
        "<!-- hidden -->",
        "\ud800",
    ],
)
def test_a_chart_that_runs_or_loads_something_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ChartRefusedError):
        ChartStore(tmp_path).save_chart("chart", f'<svg xmlns="http://www.w3.org/2000/svg">{content}</svg>')
    assert list(tmp_path.iterdir()) == []


def test_a_plain_chart_is_kept(tmp_path: Path) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><text x="1" y="2">10 €</text></svg>'
    assert ChartStore(tmp_path).save_chart("chart", svg) == "chart.svg"
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8") == svg


def test_an_agents_session_is_killed_while_it_waits_and_ends_in_another_process() -> None:
    finished = subprocess.run(
        [sys.executable, "-u", str(EXAMPLES / "agent_session.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    first, second = finished.stdout.split("the first process ended with -9")
    assert first.count("tool: stock") == 2
    assert "waiting: approve({'what': 'order cake'})" in first
    assert "tool: stock" not in second, "a replay calls no tool"
    assert "program ended: ordered 10 x cake, approved by Ada" in second


if sys.version_info >= (3, 11):  # which Pydantic AI needs

    def test_an_agent_in_code_mode_waits_for_an_approval_in_the_middle_of_a_program() -> None:
        finished = subprocess.run(
            [sys.executable, str(EXAMPLES / "pydantic_ai_code_mode.py")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        before, after = finished.stdout.split("to approve: order(")
        assert "the model has these tools: ['run_code']" in before
        assert before.count("tool: items_in") == 1
        assert "tool: items_in" not in after, "what was called is not called again"
        assert "tool: order" in after
        assert "'total': 2950" in after
