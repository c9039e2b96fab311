"""Looking at processes, for the tests of how long they live."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

#: What waits for the kernel to do something waits this long, in seconds, and goes on as soon as it is done.
PATIENCE = 20


def python(script: str) -> subprocess.Popen[str]:
    """A Python process of its own that runs `script`."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for something, and fail where it does not happen."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.005)


def fields_of(pid: int) -> list[str]:
    """What `/proc/PID/stat` says from the process's state on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and is not waited for does not."""
    try:
        return fields_of(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_ended(pid: int, what: str) -> None:
    """Wait for the end of a process."""
    wait_until(lambda: not is_alive(pid), f"the end of {what}")


def parent_of(pid: int) -> int:
    """The parent's process id."""
    return int(fields_of(pid)[1])


def ticks_of(pid: int) -> int:
    """The processor time that it has used, in clock ticks."""
    return int(fields_of(pid)[11]) + int(fields_of(pid)[12])


def children(pid: int) -> list[int]:
    """Every process below `pid`, whatever its state."""
    below: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = parent_of(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == pid:
                below += [int(entry.name), *children(int(entry.name))]
    return below
