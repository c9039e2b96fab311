"""Why a worker may differ from the engine: each reason by its name, and the differences that it explains."""

from __future__ import annotations

import re

from .engines import Verdict
from .suite import Scenario

REASONS = {
    "loader": "`import()` is pydeno's and looks at its arguments; the library's has no loader and rejects before that",
    "no-loader": "there is no loader of modules, so `import()` fails before it looks at its arguments",
    "shared-memory": "`SharedArrayBuffer` and `Atomics` are removed",
}


def reason_for(scenario: Scenario, worker: Verdict, engine: Verdict) -> str | None:
    """The name of the reason for a difference; `None` when there is none."""
    if worker.passed and not engine.passed and "dynamic-import" in scenario.features:
        return "loader"
    if worker.passed or not engine.passed:
        return None
    declared = scenario.features & {"SharedArrayBuffer", "Atomics"}
    if declared and re.search("SharedArrayBuffer|Atomics|ReferenceError", worker.ending):
        return "shared-memory"
    # The library has no loader either; the engine's own shell has one.
    if "dynamic-import" in scenario.features and worker.ending:
        return "no-loader"
    return None
