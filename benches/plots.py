"""Draws plots as SVG: ECharts, in a sandbox of pydeno's own, by the functions of plots.js."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydeno import IsolatedRuntime, RuntimeConfig

BENCHES = Path(__file__).parent
ECHARTS = BENCHES.parent / ".venv" / "workloads" / "node_modules" / "echarts" / "dist" / "echarts.min.js"


def draw(plots: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """The SVG of each plot: which function of plots.js, and its data."""
    with IsolatedRuntime(RuntimeConfig(timeout=60)) as runtime:
        for file in (BENCHES / "libraries" / "timers.js", ECHARTS, BENCHES / "plots.js"):
            runtime.eval(file.read_text(encoding="utf-8") + "\n;0", name=file.name)
        runtime.bind_function("data", lambda name: plots[name][1])
        return {name: runtime.eval(f"{function}(data({name!r}))") for name, (function, _) in plots.items()}
