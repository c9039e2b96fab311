"""Driving a session on an asyncio event loop, where async tools overlap."""

# ruff: noqa: SLF001 - it drives sessions, whose part it is; programs that do not use asyncio do not import it
from __future__ import annotations

import asyncio

from ._errors import PydenoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._agent_session import AgentBase, ReadyCall

#: How long tools that were cancelled have to end, in seconds.
_CANCEL_PATIENCE = 1.0


async def finish(session: AgentBase) -> tuple[bool, Any]:
    """Go on to the end of the run and call tools; those that are async overlap."""
    core = session._running_core()
    tasks: set[asyncio.Task[None]] = set()
    loop = asyncio.get_running_loop()
    try:
        while True:
            steps, wants_to_write, look_again = core.advance()
            ended = session._take(steps)
            if ended is not None:
                return session._ended(ended)
            answered = bool(session._pending)
            while (ready := session._next_ready()) is not None:
                if ready.tool.is_async:
                    tasks.add(loop.create_task(_call(session, ready)))
                else:
                    session._call_sync(ready)
            if not answered:
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


async def _call(session: AgentBase, call: ReadyCall) -> None:
    """Call an async tool and answer."""
    try:
        awaitable = call.tool.invoke(call.arguments)
        if session._tool_timeout is not None:
            awaitable = asyncio.wait_for(awaitable, session._tool_timeout)
        value = await awaitable
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
