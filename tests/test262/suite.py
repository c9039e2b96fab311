"""What is in a copy of test262: the tests, what each expects, and the scripts to run before it.

Two layouts are read: that of the suite's own repository (`test/` and `harness/`), and that of SpiderMonkey's sources,
where the harness is spread over files called `shell.js`. A *scenario* is a test in one mode, sloppy or strict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

#: The parts of the suite that state the language; the rest tests the harness, or proposals that are not settled.
PARTS = ("annexB", "built-ins", "intl402", "language")

#: What the suite asks of a host. Detaching needs no host since `ArrayBuffer.prototype.transfer`.
HOST = """\
let $outcome = "";
let $tell = function () {};
function $DONE(error) {
  if ($outcome !== "") $outcome = "$DONE was called twice";
  else if (error) $outcome = "rejected: " + (error.name || "") + ": " + error.message;
  else $outcome = "done";
  $tell($outcome);
}
function reportCompare() {}
var $262 = (function () {
  const transfer = ArrayBuffer.prototype.transfer;
  const apply = Reflect.apply;
  return {
    global: globalThis,
    detachArrayBuffer(buffer) {
      apply(transfer, buffer, []);
    },
  };
})();
"""

#: Features that JavaScriptCore does not have at all: thousands of tests that fail on both sides say no more than that.
ABSENT = frozenset({"Temporal"})

_FRONT_MATTER = re.compile(r"/\*---(.*?)---\*/", re.DOTALL)
_HOST_HOOK = re.compile(r"\$262\s*\.\s*(createRealm|evalScript|agent|gc|IsHTMLDDA|AbstractModuleSource)\b")
_HARNESS_OF_SPIDERMONKEY = "// file: test262-host.js"


@dataclass(frozen=True)
class Scenario:
    """A test in one mode.

    `needs` says why it cannot be run, and is empty when it can.
    """

    path: str
    mode: str
    harness: str
    source: str
    negative: str | None
    is_async: bool
    features: frozenset[str]
    needs: str

    @property
    def name(self) -> str:
        """The test's path and its mode."""
        return f"{self.path} ({self.mode})"

    @property
    def is_module(self) -> bool:
        """Whether it is a module, and not a script."""
        return self.mode == "module"

    @property
    def imports(self) -> bool:
        """Whether it is about modules, so that it can only be run where something loads them."""
        return self.is_module or "dynamic-import" in self.features


class Suite:
    """A copy of test262 in a folder."""

    def __init__(self, root: Path) -> None:
        self._is_of_spidermonkey = (root / "shell.js").is_file()
        self._root = root
        #: The folder that paths of tests begin in.
        self.tests = (root if self._is_of_spidermonkey else root / "test").resolve()
        if not (self.tests / "language").is_dir():
            raise FileNotFoundError(f"{root} is no copy of test262: it has no tests of the language")
        self._harness = cache(self._read_harness)

    def paths(self) -> list[str]:
        """Every test, by its path."""
        return sorted(
            str(file.relative_to(self.tests))
            for part in PARTS
            for file in (self.tests / part).rglob("*.js")
            if file.name not in {"shell.js", "browser.js"} and not file.stem.endswith("_FIXTURE")
        )

    def file(self, name: str) -> str | None:
        """The text of a file by its path, which a test may import; `None` for one that is not there."""
        file = (self.tests / name).resolve()
        if not file.is_relative_to(self.tests) or not file.is_file():
            return None
        return file.read_bytes().decode("utf-8")

    def scenarios(self, path: str) -> Iterator[Scenario]:
        """A test in each mode that it asks for."""
        source = (self.tests / path).read_bytes().decode("utf-8")
        found = _FRONT_MATTER.search(source)
        if found is None:
            raise ValueError(f"{path} has no front matter")
        metadata: dict[str, Any] = yaml.load(found[1].replace("\r", "\n"), yaml.CSafeLoader) or {}
        flags = set(metadata.get("flags") or ())
        negative = (metadata.get("negative") or {}).get("type")
        if "raw" in flags:
            # A raw test has no harness, but SpiderMonkey has each end with a call of its own.
            harness = "function reportCompare() {}\n" if self._is_of_spidermonkey else ""
        elif self._is_of_spidermonkey:
            harness = HOST + "".join(self._harness(folder) for folder in Path(path).parents[::-1])
        else:
            files = ("assert.js", "sta.js", *(metadata.get("includes") or ()))
            harness = HOST + "".join(self._harness(Path(file)) for file in files)
        if flags.isdisjoint({"raw", "module"}) and negative is None:
            # The value of a script is not what is tested, and not every value leaves a worker.
            source += "\n;undefined;\n"
        hook = _HOST_HOOK.search(source) or _HOST_HOOK.search(harness)
        features = frozenset(metadata.get("features") or ())
        needs = f"$262.{hook[1]}" if hook else "".join(ABSENT & features)
        for mode in _modes(flags):
            yield Scenario(
                path,
                mode,
                harness,
                f'"use strict";\n{source}' if mode == "strict" else source,
                negative,
                "async" in flags,
                features,
                needs,
            )

    def _read_harness(self, path: Path) -> str:
        if not self._is_of_spidermonkey:
            return (self._root / "harness" / path).read_text(encoding="utf-8") + "\n"
        file = self._root / path / "shell.js"
        if not file.is_file():
            return ""
        return file.read_text(encoding="utf-8").split(_HARNESS_OF_SPIDERMONKEY)[0] + "\n"


def _modes(flags: set[str]) -> tuple[str, ...]:
    if "module" in flags:
        return ("module",)
    if flags & {"noStrict", "raw"}:
        return ("sloppy",)
    if "onlyStrict" in flags:
        return ("strict",)
    return ("sloppy", "strict")
