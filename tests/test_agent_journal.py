"""Sessions on paper: what is dumped is had again elsewhere, and nothing else is taken for it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pydeno
from pydeno import AgentSandbox, AsyncAgentSandbox, Done, ToolCall

KEY = b"k" * 32
Calls = list[Any]


def ask(question: str) -> str:
    """Ask somebody."""
    raise AssertionError("no tool is called in a replay")


def recording(calls: Calls) -> Any:
    def ask(question: str) -> str:
        calls.append(question)
        return f"{question}!"

    return ask


def test_a_session_that_is_dumped_between_runs_goes_on_elsewhere() -> None:
    calls: Calls = []
    with AgentSandbox([recording(calls)]) as agent:
        agent.run(
            "globalThis.answer = await ask('a'); globalThis.when = Date.now(); globalThis.r = Math.random()"
        )
        expected = agent.run("[answer, when, r, Math.random(), Date.now()]")
        data = agent.dump(KEY)
    with AgentSandbox.load(data, KEY, tools=[ask]) as again:
        assert again.run("[answer, when, r]") == expected[:3]
        assert again.run("Date.now() === when") is True
    assert calls == ["a"]


def test_a_session_that_waits_is_dumped_and_resumed_elsewhere() -> None:
    with AgentSandbox([ask]) as agent:
        step = agent.start("const all = await Promise.all([ask('a'), ask('b'), ask('c')]); return all.join()")
        assert isinstance(step, ToolCall)
        step = agent.resume(1)
        assert isinstance(step, ToolCall)
        waiting = (step.id, step.name, step.arguments)
        data = agent.dump(KEY)
    with AgentSandbox.load(data, KEY, tools=[ask]) as again:
        assert again.paused is not None
        assert (again.paused.id, again.paused.name, again.paused.arguments) == waiting
        assert isinstance(again.resume(2), ToolCall)
        twice = again.dump(KEY)
    with AgentSandbox.load(twice, KEY, tools=[ask]) as third:
        step = third.resume(3)
        assert isinstance(step, Done)
        assert step.value == "1,2,3"


def test_errors_and_refusals_are_had_again_as_they_were() -> None:
    calls: Calls = []
    with AgentSandbox([recording(calls)], tool_budgets={"ask": 1}) as agent:
        agent.run("globalThis.seen = []; try { await ask(7) } catch (error) { seen.push(error.message) }")
        agent.run("try { await ask('b') } catch (error) { seen.push(error.message) }")
        with pytest.raises(pydeno.JavaScriptError):
            agent.run("throw new Error('kept')")
        expected = agent.run("seen")
        data = agent.dump(KEY)
    assert len(expected) == 2
    with AgentSandbox.load(data, KEY, tools=[ask], tool_budgets={"ask": 1}) as again:
        assert again.run("seen") == expected


def test_spent_budgets_stay_spent() -> None:
    calls: Calls = []
    with AgentSandbox([recording(calls)], max_tool_calls=2, tool_budgets={"ask": 2}) as agent:
        agent.run("await ask('a')")
        data = agent.dump(KEY)
    with AgentSandbox.load(
        data, KEY, tools=[recording(calls)], max_tool_calls=2, tool_budgets={"ask": 2}
    ) as again:
        assert again.run("await ask('b')") == "b!"
        with pytest.raises((pydeno.HostCallBudgetExceeded, pydeno.ToolBudgetExceeded)):
            again.run("await ask('c')")
    assert calls == ["a", "b"]


def test_a_session_whose_worker_is_lost_goes_on_from_its_last_run() -> None:
    calls: Calls = []

    def crash() -> None:
        os.kill(agent.worker_pid, signal.SIGKILL)

    with AgentSandbox({"ask": recording(calls), "crash": crash}, max_tool_calls=4) as agent:
        agent.run("globalThis.kept = await ask('a')")
        before = agent.worker_pid
        with pytest.raises(pydeno.WorkerCrashed) as caught:
            agent.run("globalThis.lost = await ask('b'); await crash()")
        assert caught.value.runtime_survives
        assert agent.run("[kept, typeof lost]") == ["a!", "undefined"]
        assert agent.worker_pid != before
        assert calls == ["a", "b"]
        # Three calls were made, also by the run that is gone.
        assert agent.run("await ask('c')") == "c!"
        with pytest.raises(pydeno.HostCallBudgetExceeded):
            agent.run("await ask('d')")


def test_a_session_without_a_journal_is_closed_when_its_worker_is_lost() -> None:
    with AgentSandbox(durable=False) as agent:
        os.kill(agent.worker_pid, signal.SIGKILL)
        with pytest.raises(pydeno.WorkerCrashed) as caught:
            agent.run("1")
        assert not caught.value.runtime_survives
        with pytest.raises(pydeno.JournalError):
            agent.dump(KEY)


def dumped(**options: Any) -> bytes:
    with AgentSandbox([recording([])], **options) as agent:
        agent.run("globalThis.x = await ask('a')")
        return agent.dump(KEY, b"user 7")


def refused(
    data: bytes, key: bytes = KEY, associated_data: bytes = b"user 7", **options: Any
) -> pydeno.PydenoError:
    with pytest.raises(pydeno.PydenoError) as caught:
        AgentSandbox.load(data, key, tools=[ask], associated_data=associated_data, **options)
    return caught.value


def test_what_was_changed_anywhere_is_refused() -> None:
    data = dumped()
    for at in range(0, len(data), max(1, len(data) // 60)):
        changed = bytearray(data)
        changed[at] ^= 1
        assert refused(bytes(changed)).kind == "journal_invalid"


def test_the_same_bytes_unchanged_are_taken() -> None:
    with AgentSandbox.load(dumped(), KEY, tools=[ask], associated_data=b"user 7") as agent:
        assert agent.run("x") == "a!"


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 39, 40, 41, -1])
def test_what_was_cut_off_is_refused(cut: int) -> None:
    assert refused(dumped()[:cut]).kind == "journal_invalid"


def test_a_journal_is_refused_before_any_worker_starts(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(dumped())
    script = (
        "import sys, pydeno\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "data = data[:-1] + bytes([data[-1] ^ int(sys.argv[2])])\n"
        "try: pydeno.AgentSandbox.load(data, b'k' * 32, tools={'ask': lambda question: 1}, associated_data=b'user 7')\n"
        "except pydeno.PydenoError as error: print(error.kind)"
    )
    # Where no worker can start, what is changed is refused as that, and only what is not gets as far as a worker.
    environment = {**os.environ, "PYDENO_JSC": "/nowhere/libengine.so"}
    for flip, kind in (("1", "journal_invalid"), ("0", "engine_unavailable")):
        command = [sys.executable, "-c", script, str(tmp_path / "journal"), flip]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert finished.stdout.strip() == kind


def test_another_key_and_other_associated_data_are_refused() -> None:
    data = dumped()
    assert refused(data, key=b"x" * 32).kind == "journal_invalid"
    assert refused(data, associated_data=b"user 8").kind == "journal_invalid"
    assert refused(data, associated_data=b"").kind == "journal_invalid"
    assert refused(data, key=b"short").kind == "invalid_input"


def test_a_journal_of_other_options_or_tools_is_refused() -> None:
    data = dumped()
    assert refused(data, mode="script").kind == "journal_invalid"
    assert refused(data, namespace="tools").kind == "journal_invalid"
    with pytest.raises(pydeno.JournalError):
        AgentSandbox.load(data, KEY, tools={"other": ask}, associated_data=b"user 7")


def test_an_oversized_journal_is_refused_and_a_session_outgrows_its_own() -> None:
    data = dumped()
    assert refused(data, max_journal_bytes=len(data) - 1).kind == "journal_invalid"
    with AgentSandbox({"big": lambda: "x" * 100_000}, max_journal_bytes=50_000) as agent:
        assert agent.run("(await big()).length") == 100_000
        with pytest.raises(pydeno.JournalError, match="outgrown"):
            agent.dump(KEY)
        assert agent.run("1 + 1") == 2


def test_a_replay_that_is_not_what_the_journal_says_is_noticed() -> None:
    # Signed again with the key, since nothing else gets this far: as if the engine did something else.
    with AgentSandbox([recording([])], config=pydeno.RuntimeConfig(bootstrap="globalThis.v = 1")) as agent:
        agent.run("globalThis.x = v")
        data = agent.dump(KEY)
    assert b"globalThis.x = v" in data
    import hashlib
    import hmac

    payload = data[40:].replace(b"globalThis.x = v", b"globalThis.x = w")
    magic = data[:8]
    tag = hmac.new(KEY, magic + (0).to_bytes(8, "big") + payload, hashlib.sha256).digest()
    with pytest.raises(pydeno.ReplayDivergence) as caught:
        AgentSandbox.load(
            magic + tag + payload, KEY, tools=[ask], config=pydeno.RuntimeConfig(bootstrap="globalThis.v = 1")
        )
    assert caught.value.kind == "replay_divergence"
    assert "run 1" in str(caught.value)


def test_a_call_with_other_arguments_is_a_divergence_and_calls_no_tool() -> None:
    import hashlib
    import hmac

    with AgentSandbox([recording([])]) as agent:
        agent.run("await ask('aa')")
        data = agent.dump(KEY)
    payload = data[40:].replace(b"await ask('aa')", b"await ask('bb')")
    tag = hmac.new(KEY, data[:8] + (0).to_bytes(8, "big") + payload, hashlib.sha256).digest()
    with pytest.raises(pydeno.ReplayDivergence, match="other arguments"):
        AgentSandbox.load(data[:8] + tag + payload, KEY, tools=[ask])


def test_async_sessions_are_dumped_and_loaded_too() -> None:
    async def slow(n: int) -> int:
        await asyncio.sleep(0.02 * (3 - n))
        return n

    async def main() -> None:
        async with AsyncAgentSandbox([slow]) as agent:
            # The answers come in another order than the calls.
            code = "globalThis.order = []; await Promise.all([0, 1, 2].map(n => slow(n).then(v => order.push(v))))"
            await agent.run(code)
            expected = await agent.run("order")
            data = agent.dump(KEY)
        assert expected == [2, 1, 0]
        again = await AsyncAgentSandbox.load(data, KEY, tools=[slow])
        assert await again.run("order") == expected
        again.close()

    asyncio.run(main())
