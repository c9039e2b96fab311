"""Sessions for agents: tools, steps, budgets, and what is left when a run has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pydeno
from pydeno import AgentSandbox, AsyncAgentSandbox, Done, Failed, ToolCall

Calls = list[tuple[Any, ...]]


@pytest.fixture
def calls() -> Calls:
    """What tools were called with."""
    return []


@pytest.fixture
def session(calls: Calls) -> Iterator[AgentSandbox]:
    """A session with a sync tool, an async one and one that fails, which still answers a sum when its test is over."""

    def price(item: str) -> int:
        calls.append(("price", item))
        return {"tea": 3, "cake": 5}[item]

    def fail(text: str) -> None:
        raise ValueError(text)

    with AgentSandbox({"price": price, "fail": fail}, timeout=2) as agent:
        yield agent
        assert agent.run("40 + 2") == 42


def test_a_run_calls_tools_and_returns_the_value(session: AgentSandbox, calls: Calls) -> None:
    code = "const [a, b] = await Promise.all([price('tea'), price('cake')]); return {a, b}"
    assert session.run(code) == {"a": 3, "b": 5}
    assert calls == [("price", "tea"), ("price", "cake")]


def test_globals_stay_from_run_to_run_and_variables_of_a_function_do_not(session: AgentSandbox) -> None:
    session.run("globalThis.kept = await price('tea'); const gone = 1")
    assert session.run("[kept, typeof gone]") == [3, "undefined"]


def test_in_script_mode_declarations_stay_and_nothing_is_tolerated() -> None:
    with AgentSandbox(mode="script") as agent:
        assert agent.run("const x = 20; let y = 1; x + y") == 21
        assert agent.run("x * 2 + y * 2") == 42
        with pytest.raises(pydeno.JavaScriptError, match="SyntaxError"):
            agent.run("return 1")


def test_a_call_that_nobody_awaits_is_answered_before_the_run_ends(
    session: AgentSandbox, calls: Calls
) -> None:
    assert session.run("price('tea'); return 1") == 1
    assert calls == [("price", "tea")]


def test_calls_surface_one_at_a_time_in_the_order_made(session: AgentSandbox) -> None:
    step = session.start("Promise.all(['b', 'a', 'c'].map(x => price(x)))")
    seen = []
    while isinstance(step, ToolCall):
        seen.append((step.name, step.arguments))
        assert session.paused is not None
        assert session.paused.id == step.id
        step = session.resume(len(seen))
    assert seen == [("price", {"item": x}) for x in "bac"]
    assert isinstance(step, Done)
    assert step.value == [1, 2, 3]
    assert session.paused is None


def test_a_call_may_be_answered_with_an_error_that_the_program_catches(session: AgentSandbox) -> None:
    step = session.start("try { await price('x') } catch (error) { return error.message }")
    assert isinstance(step, ToolCall)
    step = session.resume(error=RuntimeError("secret"))
    assert isinstance(step, Done)
    assert step.value == "the host function price failed"


def test_a_tool_that_raises_can_be_caught(session: AgentSandbox) -> None:
    assert session.run("await fail('a').catch(() => 'caught')") == "caught"


def test_a_tool_that_raises_uncaught_is_the_cause_of_the_error(session: AgentSandbox) -> None:
    with pytest.raises(pydeno.ToolFailed) as caught:
        session.run("await fail('why')")
    error = caught.value
    assert (error.kind, error.tool, error.runtime_survives) == ("tool_failed", "fail", True)
    assert isinstance(error.__cause__, ValueError)
    assert str(error.__cause__) == "why"


def test_an_error_of_the_program_is_not_taken_for_a_tools(session: AgentSandbox) -> None:
    with pytest.raises(pydeno.JavaScriptError) as caught:
        session.run("throw new Error('the host function fail failed')")
    assert caught.value.kind == "js_error"
    assert caught.value.__cause__ is None


def test_calls_are_left_behind_by_no_run(session: AgentSandbox, calls: Calls) -> None:
    step = session.start("await Promise.all([price('tea'), price('cake'), fail('x')])")
    assert isinstance(step, ToolCall)
    step = session.resume(error=ValueError("no"))
    assert isinstance(step, Failed)
    assert step.error.kind == "tool_failed"
    assert session.run("await price('cake')") == 5
    assert calls == [("price", "cake")]


def test_a_run_cannot_begin_while_another_waits(session: AgentSandbox) -> None:
    session.start("price('tea')")
    with pytest.raises(pydeno.InvalidInput, match="waits"):
        session.run("1")
    session.cancel()
    with pytest.raises(pydeno.InvalidInput, match="does not wait"):
        session.resume(1)


def test_the_budget_of_the_session_ends_the_run_and_stays_spent(calls: Calls) -> None:
    def tool(n: int) -> int:
        calls.append((n,))
        return n

    with AgentSandbox([tool], max_tool_calls=3) as agent:
        with pytest.raises(pydeno.HostCallBudgetExceeded) as caught:
            agent.run("for (let i = 0; ; i++) { try { await tool(i) } catch {} }")
        assert caught.value.kind == "host_call_budget"
        assert calls == [(0,), (1,), (2,)]
        with pytest.raises(pydeno.HostCallBudgetExceeded):
            agent.run("await tool(9)")
        assert agent.run("1 + 1") == 2
        assert calls == [(0,), (1,), (2,)]


def test_a_budget_that_is_not_used_up_ends_nothing(calls: Calls) -> None:
    with AgentSandbox({"tool": lambda: calls.append(())}, max_tool_calls=3) as agent:
        agent.run("await tool(); await tool(); await tool()")
    assert len(calls) == 3


def test_a_tools_own_budget_is_an_error_that_can_be_caught() -> None:
    with AgentSandbox({"rare": lambda: 1, "plain": lambda: 2}, tool_budgets={"rare": 1}) as agent:
        code = "await rare(); try { await rare() } catch (error) { return [error.name, await plain()] }"
        assert agent.run(code) == ["ToolBudgetError", 2]
        with pytest.raises(pydeno.ToolBudgetExceeded) as caught:
            agent.run("await rare()")
        assert (caught.value.kind, caught.value.tool) == ("tool_budget", "rare")


def test_time_paused_counts_against_max_pause_and_not_against_timeout() -> None:
    with AgentSandbox({"ask": lambda: 1}, timeout=0.5, max_pause=60) as agent:
        step = agent.start("await ask(); return 1")
        assert isinstance(step, ToolCall)
        # Longer than the timeout.
        time.sleep(1.2)
        assert isinstance(agent.resume(1), Done)
    with AgentSandbox({"ask": lambda: 1}, max_pause=0.2) as agent:
        assert isinstance(agent.start("await ask(); return 1"), ToolCall)
        time.sleep(0.4)
        step = agent.resume(1)
        assert isinstance(step, Failed)
        assert step.error.kind == "max_pause"
        assert agent.run("1 + 1") == 2


def test_a_run_that_nobody_resumes_is_ended_and_the_session_goes_on() -> None:
    with AgentSandbox({"ask": lambda: 1}, timeout=0.2, max_pause=0.2) as agent:
        agent.run("globalThis.kept = 7")
        assert isinstance(agent.start("await ask(); return 1"), ToolCall)
        worker = agent.worker_pid
        until = time.monotonic() + 30
        while not is_gone(worker) and time.monotonic() < until:
            time.sleep(0.05)
        step = agent.resume(1)
        assert isinstance(step, Failed)
        assert step.error.kind == "max_pause"
        assert agent.run("kept") == 7


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_program_that_computes_too_long_is_stopped_and_leaves_nothing_behind() -> None:
    with AgentSandbox(timeout=0.5) as agent:
        agent.run("globalThis.n = 1")
        with pytest.raises(pydeno.RuntimeTimeout) as caught:
            agent.run("n = 2; while (true) {}")
        assert caught.value.runtime_survives
        assert agent.run("n") == 1


def test_without_a_journal_a_stopped_program_leaves_what_it_did() -> None:
    with AgentSandbox(timeout=0.5, durable=False) as agent:
        agent.run("globalThis.n = 1")
        with pytest.raises(pydeno.RuntimeTimeout):
            agent.run("n = 2; while (true) {}")
        assert agent.run("n") == 2


def test_an_exception_that_no_program_may_catch_ends_the_run() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with AgentSandbox([stop]) as agent:
        with pytest.raises(KeyboardInterrupt):
            agent.run("try { await stop() } catch {} while (true) await 1")
        assert agent.run("1 + 1") == 2


def test_async_tools_of_a_sync_session_overlap() -> None:
    running = 0
    most = 0

    async def slow(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return n

    with AgentSandbox([slow]) as agent:
        assert agent.run("Promise.all([1, 2, 3].map(n => slow(n)))") == [1, 2, 3]
    assert most == 3


def test_a_tool_that_takes_too_long_is_an_error() -> None:
    async def slow() -> None:
        await asyncio.sleep(60)

    with AgentSandbox([slow], tool_timeout=0.1) as agent, pytest.raises(pydeno.ToolFailed) as caught:
        agent.run("await slow()")
    assert isinstance(caught.value.__cause__, (TimeoutError, asyncio.TimeoutError))


def test_execute_returns_output_and_errors_as_data(session: AgentSandbox) -> None:
    with AgentSandbox({"fail": lambda: 1 / 0}, capture_console=True) as agent:
        result = agent.execute("console.log('a'); console.error('b'); await fail()")
    assert (result.status, result.stdout, result.stderr) == ("tool_failed", "a\n", "b\n")
    assert result.error_type == "ToolFailed"


def test_a_namespace_holds_the_tools() -> None:
    with AgentSandbox({"one": lambda: 1}, namespace="tools") as agent:
        assert agent.run("[await tools.one(), typeof one]") == [1, "undefined"]


def test_a_catalog_is_searched_and_called_and_declares_three_functions_however_large() -> None:
    catalog = {f"tool_{n}": (lambda n=n: n) for n in range(300)}

    def send_invoice(customer: str, amount: float) -> str:
        """Send an invoice to a customer."""
        return f"{customer}: {amount}"

    with AgentSandbox(tools_catalog={**catalog, "send_invoice": send_invoice}) as agent:
        found = agent.run("await search_tools('invoice for a customer', 3)")
        assert found[0] == {"name": "send_invoice", "description": "Send an invoice to a customer."}
        described = agent.run("await describe_tool('send_invoice')")
        assert described["inputSchema"]["required"] == ["customer", "amount"]
        assert agent.run("await call_tool('send_invoice', {customer: 'Ada', amount: 2})") == "Ada: 2"
        assert agent.run("await call_tool('tool_7')") == 7
        assert agent.run("typeof send_invoice") == "undefined"
        assert agent.describe_tools().count("- ") == 3
        with pytest.raises(pydeno.ToolNotFound) as caught:
            agent.run("await call_tool('nope', {})")
        assert caught.value.kind == "tool_not_found"
        assert agent.run("await describe_tool('nope').catch(error => error.name)") == "ToolNotFoundError"


@pytest.mark.parametrize("code", ["() => 1", "[price]", "price(() => 1)"])
def test_a_function_crosses_in_neither_direction(session: AgentSandbox, code: str) -> None:
    if code == "() => 1":
        assert session.run(code) == 1
        code = "return () => 1"
    with pytest.raises((pydeno.ConversionError, pydeno.JavaScriptError), match="function"):
        session.run(code)


def test_a_program_that_breaks_out_of_its_function_calls_no_tool(session: AgentSandbox, calls: Calls) -> None:
    with pytest.raises(pydeno.JavaScriptError, match="SyntaxError"):
        session.run("}, price('tea'), async function () {")
    assert calls == []


def test_an_error_says_where_in_the_program_it_is(session: AgentSandbox) -> None:
    for code in ("let a = null\n  a.x", "let a = null; a.x", "null.x", "let é = 'é'; return null.x"):
        with pytest.raises(pydeno.JavaScriptError) as caught:
            session.run(code, name="mine.js")
        # A script has no `return`; what stands before the dot is what counts.
        with AgentSandbox(mode="script") as script, pytest.raises(pydeno.JavaScriptError) as plain:
            script.run(code.replace("return ", "       "), name="mine.js")
        assert caught.value.frames[0] == plain.value.frames[0]


def test_a_gate_sees_the_program_and_stops_it(calls: Calls) -> None:
    def gate(source: str, context: pydeno.GateContext) -> pydeno.Verdict:
        calls.append((source,))
        return pydeno.Verdict(allow="bad" not in source)

    with AgentSandbox(gate=gate) as agent:
        assert agent.run("1 + 1") == 2
        with pytest.raises(pydeno.GateDenied):
            agent.run("bad()")
    assert calls == [("1 + 1",), ("bad()",)]


def test_the_async_session_does_what_the_sync_one_does() -> None:
    async def price(item: str) -> int:
        await asyncio.sleep(0)
        return {"tea": 3, "cake": 5}[item]

    async def main() -> None:
        async with AsyncAgentSandbox([price]) as agent:
            assert await agent.run("Promise.all([price('tea'), price('cake')])") == [3, 5]
            step = await agent.start("await price('tea') + await price('cake')")
            assert isinstance(step, ToolCall)
            step = await agent.resume(20)
            assert isinstance(step, ToolCall)
            step = await agent.resume(22)
            assert isinstance(step, Done)
            assert step.value == 42
            with pytest.raises(pydeno.ToolFailed) as caught:
                await agent.run("await price('nothing')")
            assert isinstance(caught.value.__cause__, KeyError)
            result = await agent.execute("throw new RangeError('x')")
            assert (result.status, result.error_type) == ("js_error", "RangeError")

    asyncio.run(main())


def test_cancelling_the_task_stops_the_run_and_its_tools() -> None:
    cancelled = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def main() -> None:
        async with AsyncAgentSandbox([wait]) as agent:
            task = asyncio.create_task(agent.run("globalThis.n = 1; await wait()"))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await agent.run("1 + 1") == 2
        assert cancelled == [True]

    asyncio.run(main())


def test_twenty_sessions_of_one_loop_run_at_a_time() -> None:
    async def double(n: int) -> int:
        await asyncio.sleep(0.01)
        return 2 * n

    async def one(n: int) -> Any:
        async with AsyncAgentSandbox([double]) as agent:
            return await agent.run(f"await double({n})")

    async def main() -> None:
        assert await asyncio.gather(*(one(n) for n in range(20))) == [2 * n for n in range(20)]

    asyncio.run(main())


def test_a_session_says_what_confines_it() -> None:
    with AgentSandbox() as agent:
        assert "seccomp" in agent.sandbox
        assert any(layer.name == "seccomp" and layer.applied for layer in agent.sandbox_layers)
        assert agent.sandbox in repr(agent)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["def", "async def"])
def test_a_call_has_its_turn_when_the_program_waits_and_not_before(asynchronous: bool) -> None:
    made = []

    def act() -> None:
        made.append("made")

    async def act_later() -> None:
        act()

    act_later.__name__ = "act"
    with AgentSandbox(tools=[act_later if asynchronous else act]) as session:
        with pytest.raises(pydeno.JavaScriptError, match="no more"):
            session.run("act(); for (let i = 0; i < 2e7; i++); throw new Error('no more')")
        assert made == []
        session.run("const call = act(); for (let i = 0; i < 2e7; i++); await call")
        assert made == ["made"]
