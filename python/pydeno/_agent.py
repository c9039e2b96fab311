"""`AgentSandbox`: an agent's session in a confined worker."""

from __future__ import annotations

from ._agent_session import CANCEL_PATIENCE, PROGRAM, AgentBase
from ._agent_steps import Done, Failed, ReadyCall, ToolCall
from ._closing import Closing
from ._errors import InvalidInput, PydenoError
from ._execution import MAX_OUTPUT, ExecutionResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._config import Language
    from ._tools import Tools


class AgentSandbox(AgentBase, Closing):
    """An agent's session: programs that a model writes, run one after the other with tools, in a confined worker.

    A program calls tools as async functions, several at a time if it likes. `run` calls the tools for it; `start` and
    `resume` hand each call out and wait for its answer. In between, the session can be dumped, and loaded elsewhere.

    Args:
        tools: What programs can call: a mapping from names, or a list, of Python functions, sync or async, of
            `SchemaTool`s, and of mappings as the Model Context Protocol has them (`name`, `description`,
            `inputSchema`), with a `call`.
        config: As `IsolatedRuntime`.
        tools_catalog: More tools, which programs find with `search_tools` and `describe_tool` and call with
            `call_tool`. They are not declared, however many there are.
        namespace: The global object that holds the tools; `None` makes them globals.
        max_tool_calls: How many calls of tools the session may make, in all runs together.
        tool_budgets: How many calls of single tools it may make, by name.
        tool_timeout: How long one tool may take, in seconds. An async one is cancelled; the late answer of another is
            replaced by an error.
        max_pause: How long one run may wait for answers in all, in seconds. The time does not count against `timeout`.
        mode: `"function"` runs a program as an async function and tolerates what models write around it;
            `"script"` runs it exactly as it is, with the value of the last expression.
        language: What programs are written in, `"js"`, or `"ts"` for TypeScript, whose types are
            removed and not checked.
        redeclare: Whether a script can declare again what scripts before it declared with `let`, `const` or `class`:
            for cells that are run again. With `mode="script"` only.
        durable: Whether a journal is kept, for `dump` and for going on after a crash. Clocks of the program then stand
            still, at the session's start unless `clock` says otherwise, and `Math.random` is seeded.
        max_journal_bytes: How long the journal may become. Past it the session goes on without.
        clock: Where clocks stand still, as in `IsolatedRuntime`.
        random_seed: Where `Math.random` begins, as in `IsolatedRuntime`.
        timeout: How long one run may compute, in seconds.
        **options: As in `IsolatedRuntime`.

    Raises:
        InvalidInput: An option or a tool is not what it must be.
        Exception: As `IsolatedRuntime`.

    >>> def price(item: str) -> int:
    ...     return {"tea": 3, "cake": 5}[item]
    >>> with AgentSandbox([price]) as session:
    ...     session.run("const [a, b] = await Promise.all([price('tea'), price('cake')]); a + b")
    8
    """

    __slots__ = ("_loop",)

    def __init__(self, tools: Tools = (), **options: Any) -> None:
        """Start a worker and wait until it has proved its sandbox."""
        super().__init__(tools, **options)
        is_loaded = self._journal is not None
        self._loop: Any = None
        self._adopt(self._make_core())
        if is_loaded and self._running_core().has_run():
            self._paused = self._resumed_pause()

    @classmethod
    def load(
        cls,
        data: bytes,
        key: bytes | Sequence[bytes],
        *,
        tools: Tools = (),
        associated_data: bytes = b"",
        **options: Any,
    ) -> AgentSandbox:
        """Continue a session that was dumped, in a fresh worker.

        Its runs happen again with the answers they had; no tool is called. Then the session is where it was:
        `paused` is the call that it waits with, if it does. Its budgets are as far used up as they were.

        Args:
            data: What `dump` returned.
            key: The key it was dumped with, or a list that has it.
            tools: The tools. Those that are declared must have the names they had.
            associated_data: What it was dumped with.
            **options: As they were; `clock` and `random_seed` come from the journal.

        Raises:
            JournalError: The data was changed, cut or is too long, or is of another key, build, engine or session.
            ReplayDivergence: A run did not happen again as it did.
            Exception: As the constructor.
        """
        return cls(tools, _journal=cls._sealed(data, key, associated_data, options), **options)

    def run(self, code: str, *, name: str = PROGRAM, language: Language | None = None) -> Any:
        """Run a program, call its tools, and return its value.

        What a program leaves in globals is there for the next. A run ends when all the calls that it made are answered,
        or when it fails.

        Args:
            code: The program.
            name: What to call it in stacks and errors.
            language: What it is written in, where that is not the session's `language`.

        Raises:
            JavaScriptError: The program threw or does not parse.
            ToolFailed: A tool raised and the program did not catch it; the exception is the cause.
            ToolNotFound: `call_tool` was given a name that no tool has.
            ToolBudgetExceeded: A tool was called more often than its budget allows.
            HostCallBudgetExceeded: The session has made `max_tool_calls` calls; the run was stopped.
            MaxPauseExceeded: The run waited longer than `max_pause`; it was stopped.
            ReplayDivergence: The worker was lost before, and what had been run did not happen again.
            Exception: As `IsolatedRuntime.eval`. Where `error.runtime_survives` says so the session goes on: a durable
                one from the last run that ended, also after its worker is lost.
        """
        with self._turn():
            self._prepare(code, name, language)
            ok, outcome = self._finish()
        if ok:
            return outcome
        raise outcome

    def execute(
        self,
        code: str,
        *,
        name: str = PROGRAM,
        language: Language | None = None,
        max_output: int = MAX_OUTPUT,
    ) -> ExecutionResult:
        """Run a program as `run` does and return everything that came of it, errors included, as data.

        Args:
            code: The program.
            name: What to call it in stacks and errors.
            language: As for `run`.
            max_output: How much of each stream is kept, as in `IsolatedRuntime.execute`.
        """
        watched = self._watch(code, max_output)
        with watched:
            watched.result = self.run(code, name=name, language=language)
        return watched.outcome()

    def start(
        self, code: str, *, name: str = PROGRAM, language: Language | None = None
    ) -> ToolCall | Done | Failed:
        """Run a program up to its first call of a tool, or to its end.

        Calls come one at a time, in the order in which the program made them. No tool is called by the session.

        Args:
            code: The program.
            name: What to call it in stacks and errors.
            language: As for `run`.

        Raises:
            InvalidInput: Another run has not ended.
        """
        with self._turn():
            try:
                self._prepare(code, name, language)
            except InvalidInput:
                raise
            except PydenoError as error:
                return Failed(error)
            return self._next_step()

    def resume(self, value: Any = None, *, error: Exception | None = None) -> ToolCall | Done | Failed:
        """Answer the call that the session waits with, and go on to the next, or to the end.

        Args:
            value: What the tool returned. A value that cannot cross is the program's error.
            error: What it raised instead; the program sees it as `run` would show it.

        Raises:
            InvalidInput: The session does not wait for an answer.
        """
        with self._turn():
            return self._take_answer(value, error) or self._next_step()

    def cancel(self) -> None:
        """Give up the run that waits for an answer; does nothing when there is none."""
        with self._turn():
            if self._paused is not None:
                self._abort()

    def _prepare(self, code: str, name: str, language: Language | None) -> None:
        self._check_program(code, language)
        code = str.__str__(code)
        self._options.check(code, name, type(self).__name__)
        core = self._running_core()
        try:
            if core.is_stale():
                core.restore()
            self._began(core, code, name, language)
        except InvalidInput:
            raise
        except PydenoError as error:
            raise self._lost(error) from error.__cause__

    def _finish(self) -> tuple[bool, Any]:
        """Go on to the end and call tools."""
        if any(tool.is_async for tool in self._tools):
            return self._finish_on_a_loop()
        core = self._running_core()
        try:
            while True:
                steps, wants_to_write, look_again = core.advance()
                ended = self._take(steps)
                if ended is not None:
                    return self._ended(ended)
                # As when it is stepped through: what is called does not depend on how soon a call is heard of.
                if not (self._pending and core.is_waiting()):
                    core.wait(wants_to_write, look_again)
                    continue
                while (ready := self._next_ready()) is not None:
                    self._pay_first()
                    self._call_sync(ready)
        except PydenoError as error:
            return False, self._lost(error)
        except BaseException:
            self._abort()
            raise

    def _finish_on_a_loop(self) -> tuple[bool, Any]:
        import asyncio

        from ._agent_loop import finish
        from ._event_loop import refuse_inside_a_loop

        try:
            refuse_inside_a_loop()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
            return self._loop.run_until_complete(finish(self))  # type: ignore[no-any-return]
        except BaseException:
            self._abort()
            raise

    def _next_step(self) -> ToolCall | Done | Failed:
        core = self._running_core()
        try:
            while True:
                seen = self._look(core)
                if isinstance(seen, (Done, Failed)):
                    return seen
                if isinstance(seen, ReadyCall):
                    self._pay_first()
                    self._paused = seen
                    return seen.step()
                if seen is not None:
                    core.wait(*seen)
        except PydenoError as error:
            return Failed(self._lost(error))
        except BaseException:
            self._abort()
            raise

    def _resumed_pause(self) -> Any:
        step = self._next_step()
        if isinstance(step, Failed):
            raise step.error
        return self._paused

    def _pay_first(self) -> None:
        try:
            self._pay()
        except BaseException:
            self._abort()
            raise

    def _abort(self) -> None:
        """Stop the run; a worker that does not stop is given up."""
        import time

        core = self._begin_abort()
        until = time.monotonic() + CANCEL_PATIENCE
        try:
            core.cancel()
            while core.has_run():
                _, wants_to_write, look_again = core.advance()
                self._pending.clear()
                if time.monotonic() > until:
                    core.close()
                core.wait(wants_to_write, look_again)
        except PydenoError:
            self._pending.clear()

    def close(self) -> None:
        """Close the session and kill its worker; a second time does nothing."""
        super().close()
        if self._loop is not None and not self._busy:
            self._loop.close()
            self._loop = None

    def __repr__(self) -> str:
        """Say what it is."""
        state = " closed" if self.is_closed() else ""
        return f"<pydeno.AgentSandbox sandbox={self.sandbox!r} worker_pid={self.worker_pid}{state}>"
