"""Why a worker may differ from the engine: each reason by its name, and the differences that it explains."""

from __future__ import annotations

import re

from .engines import Verdict
from .suite import Scenario

REASONS = {
    "shared-memory": "`SharedArrayBuffer` and `Atomics` are removed",
}


def reason_for(scenario: Scenario, worker: Verdict, engine: Verdict) -> str | None:
    """The name of the reason for a difference; `None` when there is none."""
    if worker.passed or not engine.passed:
        return None
    declared = scenario.features & {"SharedArrayBuffer", "Atomics"}
    if declared and re.search("SharedArrayBuffer|Atomics|ReferenceError", worker.ending):
        return "shared-memory"
    return None
