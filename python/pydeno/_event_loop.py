"""Driving a runtime on an asyncio event loop: no thread, and nothing that waits.

The core is asked for the next thing with `advance`, whenever the worker's socket can be read. What it hands over are
evaluations that have ended and calls of async host functions, each of which becomes a task.
"""

from __future__ import annotations

import asyncio
import weakref

from ._errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._pydeno import InProcessRuntime, Socket
    from ._pydeno import IsolatedRuntime as IsolatedCore

#: How long host functions that were cancelled have to end when a blocking evaluation does, in seconds.
_CANCEL_PATIENCE = 1.0


class LoopDriver:
    """One runtime on one event loop."""

    __slots__ = (
        "__weakref__",
        "_calls",
        "_cancelled",
        "_core",
        "_futures",
        "_socket",
        "_timer",
        "_tool_timeout",
        "_writing",
        "loop",
    )

    def __init__(
        self,
        core: IsolatedCore | InProcessRuntime,
        loop: asyncio.AbstractEventLoop,
        tool_timeout: float | None,
    ) -> None:
        self.loop = loop
        self._core = core
        self._tool_timeout = tool_timeout
        #: The evaluations that have not ended.
        self._futures: dict[int, asyncio.Future[Any]] = {}
        #: The calls of async host functions that have not been answered.
        self._calls: dict[int, asyncio.Task[None]] = {}
        #: Those of them that nobody waits for any more.
        self._cancelled: set[asyncio.Task[None]] = set()
        self._socket: Socket | None = None
        self._writing = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no evaluation is under way."""
        return not self._futures

    async def run(self, begin: Callable[[], int]) -> Any:
        """Begin something with `begin`, which returns its number, and wait for its value.

        When the waiting task is cancelled the script is stopped; the runtime is usable again.
        """
        self._attach()
        request = begin()
        future: asyncio.Future[Any] = self.loop.create_future()
        self._futures[request] = future
        self.advance()
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled() and request in self._futures:
                self._core.cancel(request)
                self.advance()
            raise

    async def settle_cancelled(self) -> None:
        """Give host functions that were cancelled a moment to end."""
        if self._cancelled:
            await asyncio.wait(self._cancelled, timeout=_CANCEL_PATIENCE)

    def abandon(self) -> None:
        """Leave the loop, which may be closed, and ask for the end of what is under way."""
        self._detach()
        for request in self._futures:
            self._core.cancel(request)
        self._futures.clear()

    def _attach(self) -> None:
        if self._socket is None:
            self._socket = self._core.socket()
            if self._socket is not None:
                fd = self._socket.fileno()
                # The loop holds the socket, so that its number stays this socket's for as long as the loop waits on
                # it, but not this object: a runtime that nobody refers to any more ends.
                self.loop.add_reader(fd, _readable, weakref.ref(self), self._socket, self.loop)

    def _detach(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            if not self.loop.is_closed():
                self.loop.remove_reader(self._socket.fileno())
                self._stop_writing()
            self._socket = None

    def advance(self) -> None:
        """Take what the core has to say, and tell whoever waits for it."""
        try:
            ended, started, escaped, wants_to_write, look_again = self._core.advance()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome of all that is under way
            self._fail(error)
            return
        for request, is_value, payload, given_up in ended:
            for call in given_up:
                self._give_up(call)
            future = self._futures.pop(request, None)
            if future is None or future.done():
                continue
            if is_value:
                future.set_result(payload)
            else:
                future.set_exception(payload)
        for call, function, arguments in started:
            task = self.loop.create_task(self._serve(call, function, arguments))
            self._calls[call] = task
        for request, exception in escaped:
            future = self._futures.get(request)
            if future is not None and not future.done():
                future.set_exception(exception)
        if wants_to_write:
            self._start_writing()
        elif self._writing:
            self._stop_writing()
        self._look_again(look_again)

    def _fail(self, error: BaseException) -> None:
        """The runtime is closed, and with it everything that was under way."""
        self._detach()
        for call in list(self._calls):
            self._give_up(call)
        futures = list(self._futures.values())
        self._futures.clear()
        for future in futures:
            if not future.done():
                future.set_exception(error)

    def _give_up(self, call: int) -> None:
        task = self._calls.pop(call, None)
        if task is not None:
            self._cancelled.add(task)
            task.add_done_callback(self._cancelled.discard)
            task.cancel()

    async def _serve(self, call: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Run one call of an async host function and answer it."""
        try:
            awaitable = function(*arguments)
            if self._tool_timeout is not None:
                awaitable = asyncio.wait_for(awaitable, self._tool_timeout)
            value = await awaitable
        except asyncio.CancelledError:
            # Either nobody waits for the answer any more, or somebody else has cancelled the task, which the script
            # is told.
            if self._calls.pop(call, None) is not None:
                self._core.answer_error(call, function, RuntimeError("the host function was cancelled"))
                self.advance()
            raise
        except Exception as error:  # noqa: BLE001 - the script is told, as much of it as it may see
            if self._calls.pop(call, None) is not None:
                self._core.answer_error(call, function, error)
                self.advance()
        else:
            if self._calls.pop(call, None) is not None:
                self._core.answer(call, function, value)
                self.advance()

    def _start_writing(self) -> None:
        if not self._writing and self._socket is not None:
            self._writing = True
            fd = self._socket.fileno()
            self.loop.add_writer(fd, _writable, weakref.ref(self), self._socket, self.loop)

    def _stop_writing(self) -> None:
        if self._writing and self._socket is not None:
            self.loop.remove_writer(self._socket.fileno())
        self._writing = False

    def _look_again(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None and self._futures:
            self._timer = self.loop.call_later(seconds, _look, weakref.ref(self))


def _readable(driver: weakref.ref[LoopDriver], socket: Socket, loop: asyncio.AbstractEventLoop) -> None:
    alive = driver()
    if alive is None:
        loop.remove_reader(socket.fileno())
    else:
        alive.advance()


def _writable(driver: weakref.ref[LoopDriver], socket: Socket, loop: asyncio.AbstractEventLoop) -> None:
    alive = driver()
    if alive is None:
        loop.remove_writer(socket.fileno())
    else:
        alive.advance()


def _look(driver: weakref.ref[LoopDriver]) -> None:
    alive = driver()
    if alive is not None:
        alive.advance()


class PrivateLoop:
    """An event loop for blocking evaluations of a runtime that has async host functions."""

    __slots__ = ("_lock", "_loop")

    def __init__(self) -> None:
        import threading

        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(
        self, driver_for: Callable[[asyncio.AbstractEventLoop], LoopDriver], begin: Callable[[], int]
    ) -> Any:
        """Begin something and wait for it on this thread."""
        refuse_inside_a_loop()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            loop = self._loop
            driver = driver_for(loop)
            task = loop.create_task(driver.run(begin))
            try:
                return loop.run_until_complete(task)
            except BaseException:
                # Ctrl-C ends the loop and leaves the task behind.
                if not task.done():
                    task.cancel()
                    loop.run_until_complete(asyncio.wait([task], timeout=_CANCEL_PATIENCE))
                raise
            finally:
                loop.run_until_complete(driver.settle_cancelled())

    def close(self) -> None:
        """Close the loop, unless another thread is using it."""
        if self._lock.acquire(blocking=False):
            try:
                if self._loop is not None:
                    self._loop.close()
                    self._loop = None
            finally:
                self._lock.release()


def refuse_inside_a_loop() -> None:
    """Refuse to block a thread whose event loop would have to go on meanwhile."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise InvalidInput(
        "async host functions are bound and this thread runs an event loop, which they need; await eval_async(...), or "
        "call_async(...) of a function, instead"
    )
