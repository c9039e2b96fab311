"""Executes a notebook, and says where its outputs are no longer those that it was kept with.

scripts/run_notebook.py examples/notebook.ipynb            exit status 1 when an output is another
scripts/run_notebook.py --write examples/notebook.ipynb    keeps the outputs of now
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

TIMEOUT = 120
"""How long one cell may take, in seconds."""


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run every cell in a kernel of its own, which starts in `folder`; a cell that raises ends it."""
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def outputs(notebook: NotebookNode) -> list[object]:
    """What the cells show, without what differs from run to run."""
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def main() -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description="Execute a notebook and compare its outputs.")
    parser.add_argument("--write", action="store_true", help="keep the outputs of now")
    parser.add_argument("notebook", type=Path)
    options = parser.parse_args()

    kept = nbformat.read(options.notebook, as_version=4)
    before = outputs(kept)
    executed = execute(nbformat.read(options.notebook, as_version=4), options.notebook.resolve().parent)
    if options.write:
        executed.metadata = kept.metadata
        nbformat.write(executed, options.notebook)
        return 0
    differ = [
        number
        for number, pair in enumerate(zip(before, outputs(executed), strict=True))
        if pair[0] != pair[1]
    ]
    for number in differ:
        print(f"code cell {number} shows {outputs(executed)[number]!r}, and was kept with {before[number]!r}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
