"""The group of a worker in the cgroup v2 tree: used where delegated, and never quietly left out where one is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pydeno

if TYPE_CHECKING:
    from collections.abc import Iterator

TREE = Path("/sys/fs/cgroup")

PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
import pydeno
told = {}
try:
    with pydeno.IsolatedRuntime(sandbox=sys.argv[1], max_memory=256 << 20) as runtime:
        told["value"] = runtime.eval("40 + 2")
        told["degraded"] = runtime.sandbox_degraded
        told["probes"] = next(layer.detail for layer in runtime.sandbox_layers if layer.name == "resource_probes")
        told["pid"] = runtime.worker_pid
        print(json.dumps(told), flush=True)
        sys.stdin.readline()
        told["value"] = runtime.eval("41 + 2")
except pydeno.PydenoError as error:
    told |= {"kind": error.kind, "message": str(error)}
print(json.dumps(told), flush=True)
"""


def start(cgroup: str | Path | None, mode: str = "require", program: str = PROGRAM) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYDENO_CGROUP"}
    if cgroup is not None:
        environment["PYDENO_CGROUP"] = str(cgroup)
    return subprocess.Popen(
        [sys.executable, "-c", program, mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def said(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


@pytest.mark.parametrize("named", ["/tmp", "relative", "/sys/fs/cgroup/pydeno-is-not-here"])
def test_a_named_group_that_cannot_be_used_refuses_a_start_that_requires_the_sandbox(named: str) -> None:
    with start(named) as process:
        told = said(process)
        process.communicate()
    assert told["kind"] == "sandbox_unavailable"
    assert f"PYDENO_CGROUP={named}" in told["message"]


def test_a_named_group_that_cannot_be_used_degrades_one_that_does_not() -> None:
    with start("/tmp", "auto") as process:
        told = said(process)
        process.communicate("\n")
    assert (told["value"], told["degraded"]) == (42, True)
    assert "no directory of a cgroup v2 file system" in told["probes"]


def test_the_status_says_what_is_wrong_with_a_named_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pydeno.sandbox_status().resource_probes.applied
    monkeypatch.setenv("PYDENO_CGROUP", "/tmp")
    status = pydeno.sandbox_status()
    assert not status.resource_probes.applied
    assert not status.complete
    assert "PYDENO_CGROUP=/tmp" in status.resource_probes.detail


def group_of(pid: int, parent: Path) -> Path:
    """The group that holds this process and no other."""
    (group,) = (group for group in parent.glob("pydeno-*") if processes_in(group) == [str(pid)])
    return group


def processes_in(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()


def assert_none_left(parent: Path) -> None:
    """Every group of a worker is removed: at once, or when the process that it held has ended."""
    deadline = time.monotonic() + 10
    while list(parent.glob("pydeno-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(parent.glob("pydeno-*")) == []


@pytest.fixture
def parent() -> Iterator[Path | None]:
    """A group whose groups can have limits, where this process may make one; otherwise None."""
    group = TREE / f"test-{os.getpid()}"
    try:
        if "memory" not in (TREE / "cgroup.controllers").read_text().split():
            yield None
            return
        (TREE / "cgroup.subtree_control").write_text("+memory")
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        group.rmdir()


def test_a_worker_is_in_a_group_of_its_own_or_its_layer_says_why_not(parent: Path | None) -> None:
    with start(parent) as process:
        told = said(process)
        assert told["value"] == 42
        if parent is None:
            assert "sampled; " in told["probes"]
            assert "cgroup v2" in told["probes"]
            process.communicate("\n")
            return
        group = group_of(told["pid"], parent)
        assert (group / "memory.max").read_text().strip() == str((256 + 64) << 20)
        assert f"memory.max is {256 + 64} MiB" in told["probes"]
        # The kernel ends what does not fit, which is told as what it is.
        (group / "memory.max").write_text("100K")
        process.communicate("\n")
    assert_none_left(parent)


POOL = """
import json
import pydeno
library = "const n = 41; const fill = mib => new Uint8Array(mib << 20).fill(1).length"
config = pydeno.RuntimeConfig(bootstrap=library, timeout=60)
with pydeno.SandboxPool(config, size=2, template=True, max_memory=256 << 20, checkout_timeout=60) as pool:
    with pool.checkout() as one, pool.checkout() as two:
        told = {"pids": [one.worker_pid, two.worker_pid], "values": [one.eval("n + 1"), two.eval("n + 2")]}
        told["probes"] = [layer.detail for rt in (one, two) for layer in rt.sandbox_layers
                          if layer.name == "resource_probes"]
        print(json.dumps(told), flush=True)
        input()
        try:
            one.eval("fill(512)")
        except pydeno.MemoryLimitExceeded as error:
            print(json.dumps({"kind": error.kind, "other": two.eval("n")}), flush=True)
"""


def test_workers_of_a_template_are_each_in_a_group_of_their_own(parent: Path | None) -> None:
    with start(parent, program=POOL) as process:
        told = said(process)
        assert told["values"] == [42, 43]
        if parent is None:
            assert all("sampled; " in probes for probes in told["probes"])
        else:
            assert len({group_of(pid, parent) for pid in told["pids"]}) == 2
            assert all(f"memory.max is {256 + 64} MiB" in probes for probes in told["probes"])
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert said(process) == {"kind": "memory_limit", "other": 41}
        process.communicate()
    if parent is not None:
        assert_none_left(parent)
