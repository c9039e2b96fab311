"""The ways to run a scenario: in pydeno's worker, in the library without pydeno, in the engine's own shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydeno import ConversionError, IsolatedRuntime, JavaScriptError, PydenoError, RuntimeConfig

from .suite import Scenario, Suite

#: How long one scenario may run, in seconds.
TIME_LIMIT = 20.0

#: Locale, time zone and compilers as a zygote of pydeno has them, and shared memory, which the library has when asked.
ENVIRONMENT = {"LANG": "en_US.UTF-8", "TZ": "UTC", "JSC_useJIT": "0", "JSC_useSharedArrayBuffer": "1"}


@dataclass(frozen=True)
class Verdict:
    """Whether a scenario passed, and how it ended."""

    passed: bool
    ending: str


class Engine(Protocol):
    """Something that runs scenarios."""

    def run(self, scenario: Scenario) -> Verdict:
        """Run a scenario in a fresh context."""

    def close(self) -> None:
        """Let go of what it holds."""


def judge(scenario: Scenario, thrown: tuple[str, str] | None, outcome: str) -> Verdict:
    """Say whether an ending is the one that the test asks for.

    Args:
        scenario: What was run.
        thrown: Name and message of the exception that ended it.
        outcome: What the script told `$DONE`.
    """
    if thrown is not None:
        name, message = thrown
        return Verdict(scenario.negative == name, f"{name}: {message}")
    if scenario.negative is not None:
        return Verdict(passed=False, ending="ended without the expected error")
    if scenario.is_async and outcome != "done":
        return Verdict(passed=False, ending=outcome or "$DONE was not called")
    return Verdict(passed=True, ending="")


class Worker:
    """A confined worker of its own for each scenario, as users get it.

    It loads what tests import from their suite. `bootstrap` is a script that runs before the scenario.
    """

    def __init__(self, suite: Suite, bootstrap: str | None = None, timeout: float = TIME_LIMIT) -> None:
        self._suite = suite
        self._config = RuntimeConfig(timeout=timeout, bootstrap=bootstrap)

    def run(self, scenario: Scenario) -> Verdict:
        """Run a scenario in a fresh `IsolatedRuntime`."""
        try:
            with IsolatedRuntime(self._config) as runtime:
                runtime.eval(scenario.harness)
                if scenario.imports:
                    runtime.set_module_loader(self._suite.file)
                try:
                    if scenario.is_module:
                        runtime.eval_module(scenario.source, name=scenario.path, language="js")
                    else:
                        runtime.eval(scenario.source, name=scenario.path)
                except JavaScriptError as error:
                    if error.name or not isinstance(error.value, dict):
                        return judge(scenario, (error.name, error.message), "")
                    # An object of a class that the harness makes is no `Error` to pydeno.
                    return judge(scenario, ("Test262Error", str(error.value.get("message"))), "")
                except ConversionError:
                    pass  # It ended with a value, which is all that was asked for.
                outcome = runtime.eval("$outcome") if scenario.is_async else ""
        except PydenoError as error:
            return Verdict(passed=False, ending=f"<{error.kind}>")
        return judge(scenario, None, outcome)

    def close(self) -> None:
        """Nothing is held between scenarios."""


class Library:
    """The same library in a process that has nothing of pydeno: `engine_shell.py`, one for each thread."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._all: list[subprocess.Popen[str]] = []

    def run(self, scenario: Scenario) -> Verdict:
        """Run a scenario in a fresh context."""
        shell: subprocess.Popen[str] | None = getattr(self._own, "shell", None)
        if shell is None or shell.poll() is not None:
            shell = self._own.shell = self._start()
        watchdog = threading.Timer(TIME_LIMIT, shell.kill)
        watchdog.start()
        try:
            answer = _ask(shell, json.dumps([scenario.harness, scenario.source]) + "\n")
        finally:
            watchdog.cancel()
        if not answer:
            shell.kill()
            shell.wait()
            return Verdict(passed=False, ending="<stopped>")
        thrown, outcome = json.loads(answer)
        return judge(scenario, thrown and (thrown[0], thrown[1]), outcome)

    def close(self) -> None:
        """End its processes."""
        for shell in self._all:
            shell.kill()
            shell.communicate()

    def _start(self) -> subprocess.Popen[str]:
        shell = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "engine_shell.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYDENO_JSC": os.environ.get("PYDENO_JSC", ""), **ENVIRONMENT},
            text=True,
        )
        self._all.append(shell)
        return shell


def _ask(shell: subprocess.Popen[str], line: str) -> str:
    if shell.stdin is None or shell.stdout is None:
        raise ValueError("the shell was not started with pipes")
    try:
        shell.stdin.write(line)
        shell.stdin.flush()
        return shell.stdout.readline()
    except BrokenPipeError:
        return ""


class Jsc:
    """`jsc`, the shell that WebKit builds for its own tests (Debian: `libjavascriptcoregtk-4.0-bin`)."""

    def __init__(self, program: str, suite: Suite) -> None:
        self._program = program
        self._suite = suite
        self._folder = tempfile.TemporaryDirectory(prefix="pydeno-test262-")
        self._lock = threading.Lock()
        self._harnesses: dict[str, Path] = {}
        self._copied: set[Path] = set()

    def run(self, scenario: Scenario) -> Verdict:
        """Run a scenario in a process of its own."""
        with self._lock:
            harness, folder = self._harness(scenario.harness), self._beside(scenario)
        if scenario.is_module:
            files = [str(harness), f"--module-file={folder / Path(scenario.path).name}"]
        else:
            test = folder / f"pydeno-{threading.get_ident()}.js"
            test.write_bytes(scenario.source.encode())
            files = [str(harness), str(test)]
        try:
            finished = subprocess.run(
                [self._program, *files],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIME_LIMIT,
                env=ENVIRONMENT | {"LD_LIBRARY_PATH": str(Path(self._program).resolve().parent)},
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Verdict(passed=False, ending="<timeout>")
        told = finished.stdout.decode(errors="replace")
        if finished.returncode not in {0, 3}:
            return Verdict(passed=False, ending=f"<exit status {finished.returncode}>")
        thrown = None
        if finished.returncode == 3:
            found = re.search(r"^Exception: (?:(\w+)(?:: |$))?(.*)", told, re.MULTILINE)
            thrown = (found[1] or "", found[2]) if found else ("", told)
        # The last: a test may fail after it was done.
        outcomes = re.findall(r"^outcome: (.*)", told, re.MULTILINE)
        return judge(scenario, thrown, outcomes[-1] if outcomes else "")

    def close(self) -> None:
        """Remove its files."""
        self._folder.cleanup()

    def _harness(self, harness: str) -> Path:
        file = self._harnesses.get(harness)
        if file is None:
            file = Path(self._folder.name) / f"harness-{len(self._harnesses)}.js"
            # The shell runs what promises are waiting for after its last script.
            tell = '{ const write = print; $tell = (outcome) => write("outcome: " + outcome); }\n'
            file.write_text(harness and harness + tell, encoding="utf-8")
            self._harnesses[harness] = file
        return file

    def _beside(self, scenario: Scenario) -> Path:
        """The folder of our own for a test, with a copy of what it may import."""
        if not scenario.imports:
            return Path(self._folder.name)
        within = Path(scenario.path).parent
        folder = Path(self._folder.name) / within
        if within not in self._copied:
            self._copied.add(within)
            shutil.copytree(self._suite.tests / within, folder, dirs_exist_ok=True)
        return folder


class Recorded:
    """What the shell has said about tests of modules when it was last asked, for where it is not at hand.

    In which words a test failed is not kept.
    """

    FAILURES = Path(__file__).parent / "shell_failures.txt"

    def __init__(self) -> None:
        self._failures = frozenset(self.FAILURES.read_text(encoding="utf-8").splitlines())

    def run(self, scenario: Scenario) -> Verdict:
        """Look a scenario up."""
        return Verdict(passed=scenario.name not in self._failures, ending="")

    def close(self) -> None:
        """Nothing is held."""


class WithoutPydeno:
    """What a worker is compared with: one engine for scripts, and another for what imports.

    The C interface of the library has no loader of modules; the engine's shell has one of its own.
    """

    def __init__(self, scripts: Engine, modules: Engine) -> None:
        self._scripts = scripts
        self._modules = modules

    def run(self, scenario: Scenario) -> Verdict:
        """Run a scenario in a fresh context."""
        return (self._modules if scenario.imports else self._scripts).run(scenario)

    def close(self) -> None:
        """Let both go."""
        self._scripts.close()
        self._modules.close()
