"""What a worker may use, held from outside: however it behaves, it ends as the right error and the host stays small."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import fake_worker
import pydeno
from conftest import fresh_runtime_answers
from pydeno import IsolatedRuntime, MemoryLimitExceeded, PydenoError, RuntimeConfig

MIB = 1 << 20

#: What a worker that has been taken over does, and the kinds of error that may come of it.
MISBEHAVIOUR = {
    "says nothing": "timeout",
    "says nothing and ignores signals": "timeout",
    "writes garbage": "protocol_violation",
    "announces more than it may send": "protocol_violation",
    "floods within an announced frame": "protocol_violation",
    "sends a value that is too deep": "protocol_violation",
    "sends a value that promises too much": "protocol_violation",
    "answers another request": "protocol_violation",
    "calls what nobody bound": "protocol_violation",
    "calls for another request": "protocol_violation",
    "waits for nothing": "protocol_violation",
    "waits again and again": "timeout",
    "calls without an end": "protocol_violation",
    "asks for streams that nobody gave": "protocol_violation",
    "ends a stream that nobody asked": "protocol_violation",
    "floods the notes on its console": "timeout",
    "floods the console": "timeout",
    "dribbles": "timeout",
    "hangs up in a word": "worker_crashed",
    "eats memory": "memory_limit",
    "starts threads": "thread_limit",
    "burns processor time while the host waits": "cpu_limit",
}

HOST = """
import json, sys, time
import pydeno, pydeno._isolated
worker, source_bytes = sys.argv[1], int(sys.argv[2])
pydeno._isolated._WORKER = worker

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024

def gone():
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True

def wait_until_gone():
    end = time.monotonic() + 20
    while not gone() and time.monotonic() < end:
        time.sleep(0.01)

config = pydeno.RuntimeConfig(on_console=lambda level, text: None, max_serialization_bytes=8 << 20)
limits = {"timeout": 0.5, "request_timeout": 60, "max_memory": 64 << 20}
source = "/" * source_bytes or "1"
errors = []
with pydeno.IsolatedRuntime(config, **limits) as rt:
    pid = rt.worker_pid
    rt.bind_function("nothing", lambda: None)
    rt.bind_function("wait", wait_until_gone)
    before = peak()
    for _ in range(2):
        try:
            rt.eval(source)
        except pydeno.PydenoError as error:
            errors.append(error.kind)
            break
    # Memory of the host that the worker's behaviour has cost it, at its highest.
    grown = peak() - before
    closed = rt.is_closed()
    wait_until_gone()
    print(json.dumps({"errors": errors, "grown": grown, "closed": closed, "gone": gone()}))
"""


def host_with(tmp_path: Path, behaviour: str, source_bytes: int = 0) -> dict[str, object]:
    """What becomes of a host, a process of its own, whose workers behave like this."""
    worker = fake_worker.install(tmp_path, behaviour, pydeno.__version__)
    done = subprocess.run(
        [sys.executable, "-c", HOST, worker, str(source_bytes)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("behaviour", "kind"), MISBEHAVIOUR.items(), ids=MISBEHAVIOUR.keys())
def test_a_misbehaving_worker_is_killed_and_the_host_stays_small(
    tmp_path: Path, behaviour: str, kind: str
) -> None:
    found = host_with(tmp_path, behaviour)
    assert found["errors"] == [kind]
    assert found["closed"]
    assert found["gone"]
    grown = found["grown"]
    assert isinstance(grown, int)
    assert grown < 32 * MIB


def test_an_answer_that_nobody_asked_for_is_noticed_at_the_next_evaluation(tmp_path: Path) -> None:
    # The first of two answers is a good one.
    found = host_with(tmp_path, "answers twice")
    assert found["errors"] == ["protocol_violation"]
    assert found["closed"]
    assert found["gone"]


def test_a_worker_that_stops_reading_does_not_hang_the_host(tmp_path: Path) -> None:
    # Far more than a socket holds, so that the host is left in the middle of writing it.
    found = host_with(tmp_path, "says nothing", source_bytes=7 * MIB)
    assert found["errors"] == ["timeout"]
    assert found["gone"]


def test_every_behaviour_is_tried() -> None:
    assert fake_worker.BEHAVIOURS.keys() == MISBEHAVIOUR.keys() | {"answers twice"}


BOMBS = {
    "typed arrays": "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))",
    "one array that grows": "const a = []; for (;;) a.push(0, 1, 2, 3, 4, 5, 6, 7)",
    "many small objects": "const a = []; for (;;) a.push({a: {}, b: [1]})",
    "strings": "const a = []; for (let i = 0;; i++) a.push((String(i) + '\\u2603').repeat(1000))",
    "a string that doubles": "let s = 'ab'; for (;;) s = (s + s).replace('a', 'b')",
    "an array of a thousand million": "new Array(1e9).fill(1.5)",
    "a map": "const m = new Map(); for (let i = 0;; i++) m.set(i, {i})",
    "closures": "let f = () => 0; for (;;) { const g = f; f = () => g }",
    "big integers": "let n = 3n; const a = []; for (;;) { n *= 3n ** 1000n; a.push(n) }",
    "array buffers": "const a = []; for (;;) { const b = new ArrayBuffer(1 << 22); a.push(new Uint8Array(b).fill(7)) }",
    "spreading": "let a = [1]; for (;;) a = [...a, ...a]",
    "a regular expression's matches": "const a = []; for (;;) a.push('x'.repeat(1e5).match(/x/g))",
    "parsed text": "const a = []; const t = JSON.stringify(Array(1e4).fill({a: 1})); for (;;) a.push(JSON.parse(t))",
}

WEBASSEMBLY_BOMBS = {
    "one memory that grows": """
        const memory = new WebAssembly.Memory({initial: 1});
        for (;;) { memory.grow(100); new Uint8Array(memory.buffer).fill(1) }
    """,
    "many memories": """
        const memories = [];
        for (;;) {
            const memory = new WebAssembly.Memory({initial: 100});
            new Uint8Array(memory.buffer).fill(1);
            memories.push(memory);
        }
    """,
    "tables": "const tables = []; for (;;) tables.push(new WebAssembly.Table({initial: 1e6, element: 'anyfunc'}))",
}


@pytest.mark.parametrize("tier", ["off", "full"])
@pytest.mark.parametrize("bomb", WEBASSEMBLY_BOMBS.values(), ids=WEBASSEMBLY_BOMBS.keys())
def test_a_memory_bomb_of_webassembly_is_a_memory_limit(bomb: str, tier: str) -> None:
    config = RuntimeConfig(max_heap_size=64 << 30)
    limits: dict[str, Any] = {"timeout": 60, "max_memory": 192 * MIB, "jit": tier}
    with IsolatedRuntime(config, webassembly=True, **limits) as rt:
        with pytest.raises(MemoryLimitExceeded) as caught:
            rt.eval(bomb)
        assert not caught.value.runtime_survives
    config = RuntimeConfig(max_heap_size=64 * MIB)
    with IsolatedRuntime(config, webassembly=True) as rt, pytest.raises(MemoryLimitExceeded):
        rt.eval(bomb)
    assert fresh_runtime_answers()


@pytest.mark.parametrize("tier", ["off", "full"])
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_memory_bomb_of_any_kind_is_a_memory_limit(bomb: str, tier: str) -> None:
    # A heap limit beyond reach: what ends the bomb is the host, which only sees a process that grows.
    config = RuntimeConfig(max_heap_size=64 << 30)
    before = peak_memory()
    with IsolatedRuntime(config, timeout=60, max_memory=192 * MIB, jit=tier) as rt:  # type: ignore[arg-type]
        with pytest.raises(PydenoError) as caught:
            rt.eval(bomb)
        # The engine refuses some of them by itself before they are large.
        assert caught.value.kind in ("memory_limit", "js_error"), caught.value
        if caught.value.kind == "memory_limit":
            assert isinstance(caught.value, MemoryLimitExceeded)
            assert rt.is_closed()
    assert peak_memory() - before < 16 * MIB
    assert fresh_runtime_answers()


def test_a_bomb_below_the_limit_is_left_alone() -> None:
    with IsolatedRuntime(max_memory=192 * MIB) as rt:
        assert rt.eval("new Uint8Array(64 << 20).fill(1).length") == 64 * MIB
        assert rt.eval("1") == 1


def test_time_that_a_host_function_takes_costs_the_worker_no_processor_time() -> None:
    with IsolatedRuntime(timeout=0.2) as rt:
        rt.bind_function("wait", lambda: time.sleep(2))
        assert rt.eval("wait(); 1") == 1


def test_a_flood_of_output_is_cut_while_the_script_goes_on() -> None:
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FLOOD)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    kept, answer, grown = map(int, out.split())
    assert 0 < kept <= MIB
    assert answer == 7
    assert grown < 32 * MIB


FLOOD = """
import pydeno
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024
kept = 0
def line(level, text):
    global kept
    kept += len(text)
with pydeno.IsolatedRuntime(pydeno.RuntimeConfig(on_console=line), timeout=60) as rt:
    rt.eval("console.log('warm up')")
    before = peak()
    answer = rt.eval("for (let i = 0; i < 100000; i++) console.log('x'.repeat(4000)); 7")
    print(kept, answer, peak() - before)
"""


def peak_memory() -> int:
    """The most memory that this process has ever had, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024
