"""Driving a session on an asyncio event loop, where async tools overlap."""

# ruff: noqa: SLF001 - it drives sessions, whose part it is; programs that do not use asyncio do not import it
from __future__ import annotations

import asyncio

from ._errors import PydenoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._agent_session import AgentBase
    from ._agent_steps import ReadyCall

#: How long tools that were cancelled have to end, in seconds.
_CANCEL_PATIENCE = 1.0


class Caller:
    """Calls tools for a run.

    A call that raises one of `leaves` is left without an answer, for the time being: when the run waits for nothing
    else, it is left, too. One that raises one of `escapes` ends the run, with that.
    """

    leaves: tuple[type[BaseException], ...] = ()
    escapes: tuple[type[BaseException], ...] = ()

    def __init__(self) -> None:
        #: The calls that were left, with the reason.
        self.left: list[tuple[ReadyCall, BaseException]] = []

    def invoke(self, call: ReadyCall) -> Any:
        """Call an async tool: an awaitable of its value."""
        return call.tool.invoke(call.arguments)


async def finish(
    session: AgentBase, caller: Caller | None = None, first: Iterable[ReadyCall] = ()
) -> tuple[bool, Any] | None:
    """Go on to the end of the run and call tools, these first; those that are async overlap.

    `None` when the run waits for calls that the caller has left, and for nothing else.
    """
    caller = Caller() if caller is None else caller
    core = session._running_core()
    tasks: set[asyncio.Task[None]] = set()
    loop = asyncio.get_running_loop()
    tasks.update(loop.create_task(_call(session, ready, caller)) for ready in first)
    try:
        while True:
            steps, wants_to_write, look_again = core.advance()
            ended = session._take(steps)
            if ended is not None:
                return session._ended(ended)
            # As when it is stepped through: what is called does not depend on how soon a call is heard of.
            waits = core.is_waiting()
            called = waits and bool(session._pending)
            while waits and (ready := session._next_ready()) is not None:
                await pay_first(session)
                if ready.tool.is_async:
                    tasks.add(loop.create_task(_call(session, ready, caller)))
                else:
                    session._call_sync(ready)
            if not called and not tasks and caller.left and waits:
                return None
            if not called:
                await readable(session, wants_to_write, look_again, tasks)
            for task in [task for task in tasks if task.done()]:
                tasks.discard(task)
                task.result()
    except PydenoError as error:
        return False, session._lost(error)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_PATIENCE)


async def pay_first(session: AgentBase) -> None:
    """Have written down what the session has spent; where that fails, the run is stopped."""
    try:
        written = session._pay()
        if written is not None:
            await written
    except BaseException:
        stopped = session._abort()
        if stopped is not None:
            await stopped
        raise


async def _call(session: AgentBase, call: ReadyCall, caller: Caller) -> None:
    """Call an async tool and answer."""
    try:
        awaitable = caller.invoke(call)
        if session._tool_timeout is not None:
            awaitable = asyncio.wait_for(awaitable, session._tool_timeout)
        value = await awaitable
    except caller.leaves as reason:
        caller.left.append((call, reason))
    except caller.escapes:
        raise
    except Exception as error:  # noqa: BLE001 - the program is told, as much of it as it may see
        session._answer_error(call, error)
    else:
        session._answer(call, value)


async def readable(
    session: AgentBase,
    wants_to_write: bool,  # noqa: FBT001
    look_again: float | None,
    tasks: Iterable[asyncio.Task[None]] = (),
) -> None:
    """Wait until the worker has said something, a task has ended, or it is time to look."""
    socket = session._running_core().socket()
    if socket is None:
        return
    loop = asyncio.get_running_loop()
    said: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not said.done():
            said.set_result(None)

    loop.add_reader(socket.fileno(), wake)
    if wants_to_write:
        loop.add_writer(socket.fileno(), wake)
    try:
        await asyncio.wait({said, *tasks}, timeout=look_again, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(socket.fileno())
        if wants_to_write:
            loop.remove_writer(socket.fileno())
        said.cancel()
