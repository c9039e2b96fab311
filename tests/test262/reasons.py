"""Why a worker may differ from the engine: each reason by its name, and the differences that it explains."""

from __future__ import annotations

import re

from .engines import Verdict
from .suite import Scenario

REASONS = {
    "code-from-text": "`import()` in code made from text (`eval`, `Function`) is rejected",
    "loader": "pydeno's loader of modules is right where the engine's own is not",
    "shared-memory": "`SharedArrayBuffer` and `Atomics` are removed",
}


def reason_for(scenario: Scenario, worker: Verdict, engine: Verdict) -> str | None:
    """The name of the reason for a difference; `None` when there is none."""
    if worker.passed:
        return "loader" if scenario.imports and not engine.passed else None
    if not engine.passed:
        return None
    declared = scenario.features & {"SharedArrayBuffer", "Atomics"}
    if declared and re.search("SharedArrayBuffer|Atomics|ReferenceError", worker.ending):
        return "shared-memory"
    # The engine's own words: the call never came to pydeno's loader.
    from_text = "Could not import the module" in worker.ending
    return "code-from-text" if from_text and re.search(r"\b(eval|Function)\(", scenario.source) else None
