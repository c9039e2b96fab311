"""Waiting for a pool's workers on an event loop: no thread, and nothing that waits."""

from __future__ import annotations

import asyncio
import weakref

from ._errors import InvalidInput, PydenoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._pydeno import IsolatedRuntime as IsolatedCore
    from ._pydeno import Pool as PoolCore
    from ._pydeno import Socket


class TicketWindow:
    """One pool on one event loop. A ticket is a place in the pool's queue."""

    __slots__ = ("__weakref__", "_bell", "_core", "_waiting", "loop")

    def __init__(self, core: PoolCore, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._core = core
        self._bell: Socket | None = None
        #: Who waits, in the order of the tickets, and the options of the runtime that is waited for.
        self._waiting: dict[int, tuple[asyncio.Future[IsolatedCore], dict[str, Any]]] = {}

    async def wait(self, options: dict[str, Any], timeout: float) -> IsolatedCore:
        """A worker, once this caller's ticket is served."""
        self._listen()
        future: asyncio.Future[IsolatedCore] = self.loop.create_future()
        ticket = self._core.wait()
        self._waiting[ticket] = (future, options)
        timer = self.loop.call_later(timeout, self._time_out, ticket, timeout)
        # It may have been served before the loop listened.
        self.serve()
        try:
            return await future
        except asyncio.CancelledError:
            if not future.cancelled() and future.exception() is None:
                # Served in the moment in which the caller was cancelled.
                future.result().close()
            raise
        finally:
            timer.cancel()
            if self._waiting.pop(ticket, None) is not None:
                self._core.withdraw(ticket)
            if not self._waiting:
                self._stop_listening()

    def abandon(self) -> None:
        """Leave the loop, which must have nobody that waits."""
        if self._waiting and self.loop.is_running():
            raise InvalidInput("another event loop waits for this pool's workers; use one pool for each loop")
        for ticket in self._waiting:
            self._core.withdraw(ticket)
        self._waiting.clear()
        self._stop_listening()

    def _listen(self) -> None:
        if self._bell is None:
            self._bell = self._core.bell()
            # The loop holds the bell, so that its number stays the bell's, but not this object.
            self.loop.add_reader(self._bell.fileno(), _rung, weakref.ref(self), self._bell, self.loop)

    def _stop_listening(self) -> None:
        if self._bell is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._bell.fileno())
            self._bell = None

    def serve(self) -> None:
        """Hand out what the tickets have brought."""
        self._core.hush()
        for ticket, (future, options) in list(self._waiting.items()):
            if future.done():
                continue
            try:
                core = self._core.collect(ticket, options)
            except PydenoError as error:
                future.set_exception(error)
            else:
                if core is None:
                    # Tickets are served in their order.
                    return
                future.set_result(core)
            del self._waiting[ticket]

    def _time_out(self, ticket: int, timeout: float) -> None:
        waiting = self._waiting.pop(ticket, None)
        if waiting is not None and not waiting[0].done():
            try:
                self._core.time_out(ticket, timeout)
            except PydenoError as error:
                waiting[0].set_exception(error)


def _rung(window: weakref.ref[TicketWindow], bell: Socket, loop: asyncio.AbstractEventLoop) -> None:
    alive = window()
    if alive is None:
        loop.remove_reader(bell.fileno())
    else:
        alive.serve()
