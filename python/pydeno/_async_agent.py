"""`AsyncAgentSandbox`: an agent's session on asyncio."""

from __future__ import annotations

import asyncio

from ._agent_loop import Caller, finish, pay_first, readable
from ._agent_session import CANCEL_PATIENCE, PROGRAM, AgentBase
from ._agent_steps import Done, Failed, ReadyCall, ToolCall
from ._errors import InvalidInput, PydenoError, RuntimeClosed
from ._execution import MAX_OUTPUT, ExecutionResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType
    from typing import Any, TypeVar

    from ._config import Language
    from ._tools import Tools

    Self = TypeVar("Self", bound="AsyncAgentSandbox")


class AsyncAgentSandbox(AgentBase):
    """An agent's session on the running asyncio event loop; otherwise as `AgentSandbox`, whose options it has.

    Nothing is started before `async with`, `start_worker()` or the first run. Async tools of one run overlap; a tool
    that is not async holds up the loop for as long as it takes.

    >>> import asyncio
    >>> async def price(item: str) -> int:
    ...     await asyncio.sleep(0.01)
    ...     return {"tea": 3, "cake": 5}[item]
    >>> async def main():
    ...     async with AsyncAgentSandbox([price]) as session:
    ...         return await session.run("Promise.all([price('tea'), price('cake')])")
    >>> asyncio.run(main())
    [3, 5]
    """

    __slots__ = ("_is_closed",)

    def __init__(self, tools: Tools = (), **options: Any) -> None:
        """Check the options; nothing is started yet."""
        super().__init__(tools, **options)
        self._is_closed = False

    @classmethod
    async def load(
        cls,
        data: bytes,
        key: bytes | Sequence[bytes],
        *,
        tools: Tools = (),
        associated_data: bytes = b"",
        **options: Any,
    ) -> AsyncAgentSandbox:
        """Continue a session that was dumped, as `AgentSandbox.load`."""
        session = cls(tools, _journal=cls._sealed(data, key, associated_data, options), **options)
        await session.start_worker()
        return session

    async def start_worker(self) -> None:
        """Start the worker and wait until it has proved its sandbox; nothing is done where it runs."""
        if self._is_closed:
            raise RuntimeClosed("the session is closed; make a new one")
        if self._core is not None:
            return
        with self._turn():
            is_loaded = self._journal is not None
            # A start waits for processes: on a thread of the loop's own pool.
            core = await asyncio.get_running_loop().run_in_executor(None, self._make_core)
            if self._is_closed:
                core.close()
                raise RuntimeClosed("the session was closed while it started")
            self._adopt(core)
            if is_loaded and core.has_run():
                step = await self._next_step()
                if isinstance(step, Failed):
                    raise step.error

    async def run(self, code: str, *, name: str = PROGRAM, language: Language | None = None) -> Any:
        """Run a program, call its tools, and return its value, as `AgentSandbox.run`.

        When the awaiting task is cancelled the program is stopped and its tools are cancelled; the session goes on.
        """
        ended = await self._run(code, name, language)
        assert ended is not None  # noqa: S101 - nobody leaves calls here
        ok, outcome = ended
        if ok:
            return outcome
        raise outcome

    async def execute(
        self,
        code: str,
        *,
        name: str = PROGRAM,
        language: Language | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> ExecutionResult:
        """Run a program and return everything that came of it as data, as `AgentSandbox.execute`."""
        watched = self._watch(code, max_output)
        with watched:
            watched.result = await self.run(code, name=name, language=language)
        return watched.outcome()

    async def start(
        self, code: str, *, name: str = PROGRAM, language: Language | None = None
    ) -> ToolCall | Done | Failed:
        """Run a program up to its first call of a tool, as `AgentSandbox.start`."""
        await self.start_worker()
        with self._turn():
            try:
                await self._prepare(code, name, language)
            except InvalidInput:
                raise
            except PydenoError as error:
                return Failed(error)
            return await self._next_step()

    async def resume(self, value: Any = None, *, error: Exception | None = None) -> ToolCall | Done | Failed:
        """Answer the call that the session waits with, as `AgentSandbox.resume`."""
        with self._turn():
            return self._take_answer(value, error) or await self._next_step()

    async def cancel(self) -> None:
        """Give up the run that waits for an answer; does nothing when there is none."""
        with self._turn():
            if self._paused is not None:
                await self._abort()

    async def _run(
        self, code: str, name: str, language: Language | None, caller: Caller | None = None
    ) -> tuple[bool, Any] | None:
        """Run a program; `None` where it waits for calls that the caller has left, and can be dumped."""
        await self.start_worker()
        with self._turn():
            await self._prepare(code, name, language)
            return await self._finish(caller)

    async def _go_on(self, caller: Caller) -> tuple[bool, Any] | None:
        """Go on with a run that was loaded; the calls that it waits for are the caller's, all of them."""
        with self._turn():
            first, self._paused = self._paused, None
            self._changes += 1
            return await self._finish(caller, () if first is None else (first,))

    async def _finish(
        self, caller: Caller | None, first: Iterable[ReadyCall] = ()
    ) -> tuple[bool, Any] | None:
        try:
            return await finish(self, caller, first)
        except BaseException:
            await self._abort()
            raise

    async def _prepare(self, code: str, name: str, language: Language | None) -> None:
        self._check_program(code, language)
        code = str.__str__(code)
        await self._options.check_async(code, name, type(self).__name__)
        core = self._running_core()
        try:
            if core.is_stale():
                await asyncio.get_running_loop().run_in_executor(None, core.restore)
            self._began(core, code, name, language)
        except InvalidInput:
            raise
        except PydenoError as error:
            raise self._lost(error) from error.__cause__

    async def _next_step(self) -> ToolCall | Done | Failed:
        core = self._running_core()
        try:
            while True:
                seen = self._look(core)
                if isinstance(seen, (Done, Failed)):
                    return seen
                if isinstance(seen, ReadyCall):
                    await pay_first(self)
                    self._paused = seen
                    return seen.step()
                if seen is not None:
                    await readable(self, *seen)
        except PydenoError as error:
            return Failed(self._lost(error))
        except BaseException:
            await self._abort()
            raise

    async def _abort(self) -> None:
        """Stop the run; a worker that does not stop is given up."""
        loop = asyncio.get_running_loop()
        core = self._begin_abort()
        until = loop.time() + CANCEL_PATIENCE
        try:
            core.cancel()
            while core.has_run():
                _, wants_to_write, look_again = core.advance()
                self._pending.clear()
                if loop.time() > until:
                    core.close()
                await readable(self, wants_to_write, min(0.1, look_again or 0.1))
        except PydenoError:
            self._pending.clear()

    def close(self) -> None:
        """Close the session and kill its worker; does not wait. A second time does nothing."""
        self._is_closed = True
        super().close()

    def is_closed(self) -> bool:
        """Whether the session takes no further runs."""
        return self._is_closed or super().is_closed()

    async def __aenter__(self: Self) -> Self:
        """Start the worker, and close the session at the end of the block."""
        await self.start_worker()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the session."""
        self.close()

    def __repr__(self) -> str:
        """Say what it is."""
        if self._core is None:
            return "<pydeno.AsyncAgentSandbox not started>"
        state = " closed" if self.is_closed() else ""
        return f"<pydeno.AsyncAgentSandbox sandbox={self.sandbox!r} worker_pid={self.worker_pid}{state}>"
