"""Pools of several processes on one store: no budget is spent twice, and who is killed takes nothing along."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pydeno
from pydeno import SessionPool, SQLiteSessionStore

KEY = b"k" * 32
BUDGET = 7

#: Calls the tool, which writes a line to a file, until the budget is used up.
SPENDER = """
import json, os, sys, pydeno
store, calls, lease, budget = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
def act():
    with open(calls, "a") as file:
        file.write(f"{os.getpid()}\\n")
kept = conflicts = 0
with pydeno.SessionPool(store, b"k" * 32, tools=[act], tool_budgets={"act": budget}, lease=lease) as pool:
    print("ready", flush=True)
    sys.stdin.readline()
    while True:
        try:
            with pool.session("a") as session:
                session.run("await act()")
        except pydeno.ToolBudgetExceeded:
            break
        except pydeno.VersionConflict:
            conflicts += 1
        else:
            kept += 1
print(json.dumps([kept, conflicts]))
"""

#: Stores one run, and dies within a tool of the next.
VICTIM = """
import os, signal, sys, pydeno
def act():
    os.write(1, b"acted\\n")
    if len(sys.argv) > 2:
        os.kill(os.getpid(), signal.SIGKILL)
with pydeno.SessionPool(sys.argv[1], b"k" * 32, tools=[act], tool_budgets={"act": 3}, lease=0.2) as pool:
    with pool.session("a") as session:
        session.run("globalThis.n = (globalThis.n ?? 0) + 1")
        session.save()
        session.run("globalThis.n = 'lost'; await Promise.all([act(), act()])")
"""


def spend(path: Path, calls: Path, lease: float) -> list[list[int]]:
    command = [sys.executable, "-c", SPENDER, str(path), str(calls), str(lease), str(BUDGET)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    told = [process.communicate("go\n", timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return [json.loads(line) for line in told]


@pytest.mark.parametrize("lease", [15, 0.0001], ids=["with leases", "with leases that are over at once"])
def test_two_processes_that_race_for_a_budget_spend_it_once(tmp_path: Path, lease: float) -> None:
    calls = tmp_path / "calls"
    told = spend(tmp_path / "s.db", calls, lease)
    made = calls.read_text().splitlines()
    assert len(made) == BUDGET
    # A run that lost its session after it had paid is not kept; nothing is kept that was not paid.
    assert 0 < sum(kept for kept, _ in told) <= BUDGET
    if lease > 1:
        assert told[0][1] == told[1][1] == 0


def test_a_store_without_versions_would_have_it_spent_twice(tmp_path: Path) -> None:
    class Careless(SQLiteSessionStore):
        """Stores whatever it is given."""

        __slots__ = ()

        def put(self, session_id: str, data: bytes | None, *, expected: int, note: bytes = b"") -> int:
            with self._step() as (connection, _):
                connection.execute("UPDATE sessions SET version = ? WHERE id = ?", (expected, session_id))
            return super().put(session_id, data, expected=expected, note=note)

        def lease(self, session_id: str, holder: str, duration: float) -> bool:
            return super().lease(session_id, holder, 1e-9)

    calls: list[int] = []
    options = {"tools": {"act": lambda: calls.append(1)}, "tool_budgets": {"act": 1}}
    with (
        Careless(tmp_path / "s.db") as store,
        SessionPool(store, KEY, **options) as first,  # type: ignore[arg-type]
        SessionPool(store, KEY, **options) as second,  # type: ignore[arg-type]
        first.session("a") as a,
        second.session("a") as b,
    ):
        a.run("await act()")
        b.run("await act()")
    assert len(calls) == 2


def test_a_process_that_is_killed_leaves_what_was_stored_and_what_was_spent(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    command = [sys.executable, "-c", VICTIM, str(path)]
    killed = subprocess.run([*command, "die"], capture_output=True, text=True, check=False)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "acted\n")
    # Two calls were paid for, also the one that was not made. One is left, and the next program wants two: it fails by
    # the second, before the first has its turn.
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.stdout == "", finished.stderr
    assert "ToolBudgetExceeded" in finished.stderr
    with (
        SessionPool(path, KEY, tools={"act": lambda: None}, tool_budgets={"act": 3}) as pool,
        pool.session("a") as session,
    ):
        assert not session.is_new
        assert session.run("n") == "lost", "the run failed after it had set this, and was kept as that"
        with pytest.raises(pydeno.ToolBudgetExceeded):
            session.run("await act()")
