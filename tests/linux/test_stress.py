"""Thousands of mixed operations with workers that are killed at random, in a process of their own: nothing is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

STRESS = Path(__file__).parents[2] / "benches" / "stress.py"


@pytest.mark.timeout(300)
def test_thousands_of_mixed_operations_leave_nothing_behind() -> None:
    command = [sys.executable, "-W", "error", str(STRESS), "--operations", "3000", "--threads", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["surprises"] == []
    assert done.stderr == ""
    assert done.returncode == 0
    assert report["operations"] == 3000
    assert {"value", "worker_crashed", "terminated", "closed", "cancelled by the loop"} <= set(
        report["outcomes"]
    )
    before, after = report["before"], report["after"]
    # One worker ahead may be there or not.
    assert after["processes"] <= before["processes"] + 1
    assert after["descriptors"] <= before["descriptors"] + 4
    assert after["threads"] <= before["threads"]
    assert after["resident_kib"] < before["resident_kib"] + 30_000
