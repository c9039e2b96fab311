"""Driving a runtime on an asyncio event loop: no thread, and nothing that waits.

The core is asked for the next thing with `advance`, whenever the worker's socket can be read. What it hands over are
evaluations that have ended and calls of async host functions, each of which becomes a task.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import weakref

from ._errors import InvalidInput, PydenoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from ._pydeno import InProcessRuntime, Socket
    from ._pydeno import IsolatedRuntime as IsolatedCore

#: How long host functions that were cancelled have to end when a blocking evaluation does, in seconds.
_CANCEL_PATIENCE = 1.0


class _Request:
    """An evaluation or a call of a script's function that has not ended."""

    __slots__ = ("calls", "context", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[Any] = loop.create_future()
        #: The context variables of whoever asked for it, which its host functions see.
        self.context = contextvars.copy_context()
        #: Its calls of async host functions, answered ones included.
        self.calls: list[int] = []

    def fail(self, error: BaseException) -> bool:
        """Whether somebody still waited for it."""
        if self.future.done():
            return False
        self.future.set_exception(error)
        return True


class LoopDriver:
    """One runtime on one event loop."""

    __slots__ = (
        "__weakref__",
        "_abandoned",
        "_advancing",
        "_calls",
        "_cancelled",
        "_core",
        "_process",
        "_requests",
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
        self._requests: dict[int, _Request] = {}
        #: The calls of async host functions that have not been answered; `None` for one whose task is being made.
        self._calls: dict[int, asyncio.Task[None] | None] = {}
        #: The tasks of calls that nobody waits for any more.
        self._cancelled: set[asyncio.Task[None]] = set()
        self._socket: Socket | None = None
        self._writing = False
        self._timer: asyncio.TimerHandle | None = None
        self._advancing = False
        self._abandoned = False
        self._process = os.getpid()

    @property
    def is_idle(self) -> bool:
        """Whether no evaluation is under way."""
        return not self._requests

    async def run(self, begin: Callable[[], int]) -> Any:
        """Begin something with `begin`, which returns its number, and wait for its value.

        When the waiting task is cancelled the script is stopped; the runtime is usable again.
        """
        self._attach()
        number = begin()
        request = self._requests[number] = _Request(self.loop)
        future = request.future
        try:
            self.advance()
            return await future
        except BaseException as error:
            if future.done() and not future.cancelled():
                # It has ended; where this task was cancelled all the same, nobody asks how.
                future.exception()
            else:
                self._stop(number, look=not isinstance(error, GeneratorExit))
            raise

    def _stop(self, number: int, *, look: bool = True) -> None:
        """Ask for the end of an evaluation, and end its host functions."""
        if number in self._requests:
            for call in self._requests[number].calls:
                self._give_up(call)
        try:
            self._core.cancel(number)
        except (PydenoError, RuntimeError):
            return  # The runtime is closed, or belongs to a thread that is gone: nothing runs.
        if look:
            self.advance()

    async def settle_cancelled(self) -> None:
        """Give host functions that were cancelled a moment to end."""
        if self._cancelled:
            _, pending = await asyncio.wait(self._cancelled, timeout=_CANCEL_PATIENCE)
            # Once is enough: Ctrl-C in the loop's own code may have left one that never goes on.
            self._cancelled.difference_update(pending)

    def abandon(self) -> None:
        """Leave the loop, which does not run or has no evaluation, and ask for the end of what is under way."""
        self._abandoned = True
        requests, self._requests = self._requests, {}
        if self.loop.is_closed() or not self.loop.is_running():
            self._detach()
        else:
            # Another thread's; its next look at the socket ends it.
            self._socket = None
        for number in requests:
            self._stop(number, look=False)
        if not self.loop.is_closed():
            for call in list(self._calls):
                self._give_up(call)
            for request in requests.values():
                request.fail(InvalidInput("the runtime has been taken to another event loop meanwhile"))

    def closed(self) -> None:
        """The runtime has been closed; what was under way ends, and the loop waits for nothing."""
        if self.loop.is_closed() or not self.loop.is_running():
            self._detach()
        elif _running_loop() is self.loop:
            self.advance()
        # On another thread the loop sees the worker's end.

    def _attach(self) -> None:
        if self._socket is None:
            self._socket = self._core.socket()
            if self._socket is not None:
                fd = self._socket.fileno()
                # The loop holds the socket, so that its number stays this socket's for as long as the loop waits on
                # it, but not this object: a runtime that nobody refers to any more ends. Nor does it hold a context.
                weak = weakref.ref(self)
                contextvars.Context().run(self.loop.add_reader, fd, _readable, weak, self._socket, self.loop)

    def _detach(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._socket is not None:
            # A fork shares the kernel's part of the loop with its parent, who goes on waiting.
            if not self.loop.is_closed() and self._process == os.getpid():
                self.loop.remove_reader(self._socket.fileno())
                self._stop_writing()
            self._socket = None

    def is_waiting_on(self, socket: Socket) -> bool:
        """Whether this is still the socket to wait on."""
        return self._socket is socket

    def advance(self) -> None:
        """Take what the core has, and give out what is to be done."""
        if self._abandoned:
            return
        if self._advancing:
            # A host function, or a task that began at once, is inside of a turn.
            self.loop.call_soon(self.advance)
            return
        self._advancing = True
        try:
            stray = self._turn()
        finally:
            self._advancing = False
        if stray is not None:
            raise stray

    def _turn(self) -> BaseException | None:
        """Take what there is. What was raised, is no `Exception`, and belongs to no evaluation is returned."""
        try:
            ended, started, escaped, wants_to_write, look_again = self._core.advance()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome of all that is under way
            told = self._fail(error)
            return None if told or isinstance(error, Exception) else error
        stray = None
        for number, is_value, payload, given_up in ended:
            for call in given_up:
                self._give_up(call)
            request = self._requests.pop(number, None)
            if request is not None and not is_value:
                request.fail(payload)
            elif request is not None and not request.future.done():
                request.future.set_result(payload)
        for number, exception in escaped:
            request = self._requests.get(number)
            if request is None or not request.fail(exception):
                stray = exception
        for number, call, function, arguments in started:
            self._start(number, call, function, arguments)
        if wants_to_write:
            self._start_writing()
        elif self._writing:
            self._stop_writing()
        self._look_again(look_again)
        return stray

    def _fail(self, error: BaseException) -> bool:
        """The runtime is closed, and with it everything that was under way; whether there was anything."""
        self._detach()
        for call in list(self._calls):
            self._give_up(call)
        requests, self._requests = self._requests, {}
        for number in requests:
            # In case it is not closed.
            self._stop(number, look=False)
        told = [request.fail(error) for request in requests.values()]
        return any(told)

    def _start(
        self, number: int, call: int, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        request = self._requests.get(number)
        if request is None:
            self._core.answer_error(call, function, RuntimeError("nobody waits for the evaluation"))
            return
        # A loop may begin a task at once, and it may have ended when its name is known.
        self._calls[call] = None
        request.calls.append(call)
        serve = self._serve(number, call, function, arguments)
        task = request.context.run(self.loop.create_task, serve)
        if call in self._calls:
            self._calls[call] = task

    def _give_up(self, call: int) -> None:
        task = self._calls.pop(call, None)
        if task is not None:
            self._cancelled.add(task)
            task.add_done_callback(self._cancelled.discard)
            task.cancel()

    def _is_wanted(self, call: int) -> bool:
        """Whether the call has to be answered; from then on it has been."""
        wanted = call in self._calls
        self._calls.pop(call, None)
        return wanted

    async def _serve(
        self, number: int, call: int, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        """Run one call of an async host function and answer it."""
        try:
            awaitable = function(*arguments)
            if self._tool_timeout is not None:
                awaitable = asyncio.wait_for(awaitable, self._tool_timeout)
            value = await awaitable
        except asyncio.CancelledError:
            # Nobody waits for the answer any more; or somebody else has cancelled the task, which the script is told.
            if self._is_wanted(call):
                self._core.answer_error(call, function, RuntimeError("the host function was cancelled"))
                self.advance()
            raise
        except Exception as error:  # noqa: BLE001 - the script is told, as much of it as it may see
            if self._is_wanted(call):
                self._core.answer_error(call, function, error)
                self.advance()
        except BaseException as error:
            # No script may catch it: it is for whoever evaluates.
            request = self._requests.get(number) if self._is_wanted(call) else None
            if isinstance(error, GeneratorExit) and self.loop.is_closed():
                raise
            if request is None or not request.fail(error):
                raise
            self._stop(number)
        else:
            if self._is_wanted(call):
                self._core.answer(call, function, value)
                self.advance()

    def _start_writing(self) -> None:
        if not self._writing and self._socket is not None:
            self._writing = True
            fd = self._socket.fileno()
            weak = weakref.ref(self)
            contextvars.Context().run(self.loop.add_writer, fd, _writable, weak, self._socket, self.loop)

    def _stop_writing(self) -> None:
        if self._writing and self._socket is not None:
            self.loop.remove_writer(self._socket.fileno())
        self._writing = False

    def _look_again(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None and self._requests:
            timer = contextvars.Context().run(self.loop.call_later, seconds, _look, weakref.ref(self))
            self._timer = timer


def _readable(driver: weakref.ref[LoopDriver], socket: Socket, loop: asyncio.AbstractEventLoop) -> None:
    alive = driver()
    if alive is None or not alive.is_waiting_on(socket):
        loop.remove_reader(socket.fileno())
    else:
        alive.advance()


def _writable(driver: weakref.ref[LoopDriver], socket: Socket, loop: asyncio.AbstractEventLoop) -> None:
    alive = driver()
    if alive is None or not alive.is_waiting_on(socket):
        loop.remove_writer(socket.fileno())
    else:
        alive.advance()


def _look(driver: weakref.ref[LoopDriver]) -> None:
    alive = driver()
    if alive is not None:
        alive.advance()


#: Loops of the process that this one was forked from.
_inherited: list[asyncio.AbstractEventLoop] = []


class PrivateLoop:
    """An event loop for blocking evaluations of a runtime that has async host functions."""

    __slots__ = ("_closed", "_lock", "_loop", "_process")

    def __init__(self) -> None:
        import threading

        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._process = os.getpid()

    def run(
        self, driver_for: Callable[[asyncio.AbstractEventLoop], LoopDriver], begin: Callable[[], int]
    ) -> Any:
        """Begin something and wait for it on this thread."""
        refuse_inside_a_loop()
        if self._process != os.getpid():
            begin()  # Says that the runtime is another process's, which its loop is, too.
        try:
            with self._lock:
                if self._loop is None:
                    self._loop = asyncio.new_event_loop()
                return self._run(self._loop, driver_for(self._loop), begin)
        finally:
            if self._closed:
                self.close()

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], timeout: float | None) -> Any:
        """Run a coroutine to its end on this thread; past the timeout, in seconds, it is cancelled."""
        task = None
        try:
            refuse_inside_a_loop()
            with self._lock:
                if self._loop is None:
                    self._loop = asyncio.new_event_loop()
                task = self._loop.create_task(asyncio.wait_for(coroutine, timeout))
                return self._run_task(self._loop, task)
        finally:
            if task is None:
                coroutine.close()

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop, driver: LoopDriver, begin: Callable[[], int]) -> Any:
        try:
            return PrivateLoop._run_task(loop, loop.create_task(driver.run(begin)))
        finally:
            loop.run_until_complete(driver.settle_cancelled())

    @staticmethod
    def _run_task(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> Any:
        try:
            return loop.run_until_complete(task)
        except BaseException:
            # Ctrl-C ends the loop and leaves the task behind.
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait([task], timeout=_CANCEL_PATIENCE))
            raise

    def run_last(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Give a coroutine a moment to end on a loop that no thread uses; without such a loop it does not run."""
        task = None
        if self._process == os.getpid() and _running_loop() is None and self._lock.acquire(blocking=False):
            try:
                if self._loop is not None:
                    task = self._loop.create_task(coroutine)
                    self._loop.run_until_complete(asyncio.wait([task], timeout=_CANCEL_PATIENCE))
            finally:
                self._lock.release()
        if task is None:
            coroutine.close()

    def close(self) -> None:
        """Close the loop; one that is in use is closed by the thread that uses it."""
        self._closed = True
        if self._process == os.getpid() and self._lock.acquire(blocking=False):
            try:
                loop, self._loop = self._loop, None
                if loop is not None:
                    _end_loop(loop)
            finally:
                self._lock.release()

    def __del__(
        self,
        getpid: Callable[[], int] = os.getpid,
        inherited: list[asyncio.AbstractEventLoop] = _inherited,
    ) -> None:
        """Close the loop, without what would take time. At the end of the process the module's names are gone."""
        if self._loop is None:
            return
        if self._process == getpid():
            self._loop.close()
        else:
            # Closing it would change the parent's, with which it shares the kernel's part.
            inherited.append(self._loop)


def _end_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Give what is left on a loop a moment to end, and close it."""
    try:
        if _running_loop() is None:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left, timeout=_CANCEL_PATIENCE))
            loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def refuse_inside_a_loop() -> None:
    """Refuse to block a thread whose event loop would have to go on meanwhile."""
    if _running_loop() is None:
        return
    raise InvalidInput(
        "async host functions are bound and this thread runs an event loop, which they need; await eval_async(...), or "
        "call_async(...) of a function, instead"
    )
