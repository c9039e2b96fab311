"""Gates that are asked on an event loop: whatever is no clear permission is a refusal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from on_a_loop import Any3, RunOnLoop
from pydeno import (
    GateContext,
    GateDenied,
    GateUnavailable,
    Verdict,
)

Ask = Callable[[str, GateContext], Any]


def test_a_gate_decides_on_a_loop_too(kind: Any3, run_on_loop: RunOnLoop) -> None:
    seen: list[tuple[str, str]] = []

    def gate(source: str, context: GateContext) -> Verdict:
        seen.append((source, context.runtime))
        return Verdict("no" not in source, "it says no")

    async def async_gate(source: str, context: GateContext) -> Verdict:
        await asyncio.sleep(0)
        return gate(source, context)

    async def main(ask: Ask) -> None:
        rt = kind(gate=ask)
        assert await rt.eval_async("'yes'") == "yes"
        with pytest.raises(GateDenied, match="it says no"):
            await rt.eval_async("globalThis.x = 'no'")
        assert await rt.eval_async("typeof x") == "undefined"
        rt.close()

    for ask in (gate, async_gate):
        seen.clear()
        run_on_loop(main(ask))
        assert seen[0] == ("'yes'", kind.__name__)


@pytest.mark.parametrize(
    "raised", [ValueError, StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError]
)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["def", "async def"])
def test_a_gate_that_fails_on_a_loop_is_no_permission(
    kind: Any3, run_on_loop: RunOnLoop, raised: type[BaseException], asynchronous: bool
) -> None:
    def fails(source: str, context: GateContext) -> Verdict:
        raise raised

    async def fails_later(source: str, context: GateContext) -> Verdict:
        raise raised

    async def main() -> None:
        rt = kind(gate=fails_later if asynchronous else fails)
        with pytest.raises(GateUnavailable):
            await rt.eval_async("1")
        rt.close()

    run_on_loop(main())


def test_a_gate_that_never_answers_holds_up_neither_the_loop_nor_its_end(
    kind: Any3, run_on_loop: RunOnLoop
) -> None:
    never = threading.Event()

    def gate(source: str, context: GateContext) -> Verdict:
        never.wait()
        return Verdict(allow=True)

    async def main() -> None:
        rt = kind(gate=gate, gate_timeout=0.05)
        with pytest.raises(GateUnavailable, match="gate_timeout"):
            await rt.eval_async("1")
        task = asyncio.ensure_future(kind(gate=gate).eval_async("1"))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        rt.close()

    run_on_loop(main())
    never.set()
