"""Builds the three Rust artefacts of the wheel; everything declarative is in pyproject.toml.

    pydeno/_pydeno.abi3.so   the extension module         crates/python
    pydeno/pydeno-worker     the process that runs code   crates/worker
    bin/pydeno               the command                  crates/cli

The worker lies inside the package, so that the package finds it next to itself and never through PATH.
"""

import re
from pathlib import Path

from setuptools import setup
from setuptools_rust import Binding, RustBin, RustExtension

MANIFEST = Path(__file__).parent / "Cargo.toml"

# Cargo.lock is committed: a build uses exactly the versions that were tested. The three artefacts share one
# target directory, so a dependency is compiled once.
LOCKED = ["--locked"]


def workspace_version() -> str:
    """The version every crate and the wheel carry."""
    section = MANIFEST.read_text(encoding="utf-8").partition("[workspace.package]\n")[2].partition("\n[")[0]
    found = re.search(r'^version = "(.+)"$', section, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{MANIFEST}: no version in [workspace.package]")
    return found[1]


setup(
    version=workspace_version(),
    rust_extensions=[
        RustExtension(
            "pydeno._pydeno", "crates/python/Cargo.toml", binding=Binding.PyO3, cargo_manifest_args=LOCKED
        ),
        RustExtension(
            {"pydeno-worker": "pydeno.pydeno-worker"},
            "crates/worker/Cargo.toml",
            binding=Binding.Exec,
            cargo_manifest_args=LOCKED,
        ),
        RustBin("pydeno", "crates/cli/Cargo.toml", cargo_manifest_args=LOCKED),
    ],
    # One wheel for every CPython from 3.10 on: the extension uses the stable ABI (pyo3's abi3-py310).
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
    zip_safe=False,
)
