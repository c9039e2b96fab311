"""The notebook runs, and shows what it was kept with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent

WRONG = """{"cells": [{"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "source": "print(1 + 1)",
"outputs": [{"name": "stdout", "output_type": "stream", "text": "3\\n"}]}],
"metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
"nbformat": 4, "nbformat_minor": 5}"""


def run(notebook: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROJECT / "scripts" / "run_notebook.py"), str(notebook)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(300)
def test_the_notebook_runs_and_every_cell_shows_what_it_was_kept_with() -> None:
    finished = run(PROJECT / "examples" / "notebook.ipynb")
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.timeout(300)
def test_an_output_that_has_changed_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "wrong.ipynb").write_text(WRONG, encoding="utf-8")
    finished = run(tmp_path / "wrong.ipynb")
    assert finished.returncode == 1
    assert "code cell 0 shows" in finished.stdout
