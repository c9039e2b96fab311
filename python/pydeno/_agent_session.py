"""What `AgentSandbox` and `AsyncAgentSandbox` have in common: options, tools, and the calls between core and tools."""

from __future__ import annotations

from collections import deque

from ._agent_steps import Done, Failed, PendingCall, ReadyCall, ToolCall
from ._bootstrap import script_of
from ._catalog import Catalog
from ._config import check_language, check_source, choice, count, flag, seconds
from ._errors import InvalidInput, PydenoError
from ._execution import ExecutionResult, Output
from ._gates import GateContext, pass_gate, pass_gate_async
from ._isolated import _WORKER, IsolatedBase, _shut_down_at_exit
from ._pydeno import AgentCore
from ._tool_text import describe, stubs
from ._tools import ArgumentsError, collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Any, Literal, Protocol

    from ._config import Language, RuntimeConfig
    from ._console import Console, ConsoleLine
    from ._isolated import SandboxLayer
    from ._tools import Tools

    #: Calls of tools, the same by tool as far as they have budgets of their own, and the number of the next call.
    Spent = tuple[int, dict[str, int], int]

    class Ledger(Protocol):
        """Where it is written down what a session has spent, before it gets anything for it."""

        def record(self, spent: Spent) -> Awaitable[None] | None:
            """Write it down; an awaitable where that takes an event loop."""


#: The kinds of steps of the core.
CALL, VALUE, ERROR = 0, 1, 2
#: What a call of the catalog is for, in the core's numbers.
_SEARCH, _DESCRIBE = -1, -2
#: What a program is called in stacks when its caller does not name it.
PROGRAM = "program.js"
#: How long a run that is given up has to end, in seconds.
CANCEL_PATIENCE = 2.0


class _RuntimeOptions(IsolatedBase):
    """The options of an isolated runtime, checked; the worker is a session's."""

    __slots__ = ()

    def core(self) -> dict[str, Any]:
        """The options in the core's words."""
        return self._options

    def adopt(self, core: Any) -> None:
        """Say what the worker's sandbox is."""
        self._adopt(core, stacklevel=3)

    def _begin(self, core: Any) -> None:
        self._core = core

    @property
    def console(self) -> Console:
        """Where lines of the program go."""
        return self._console

    def check(self, code: str, name: str, door: str) -> None:
        """Ask the gate."""
        if self._gate is not None:
            pass_gate(self._gate, self._gate_timeout, code, GateContext(name, door))

    async def check_async(self, code: str, name: str, door: str) -> None:
        """Ask the gate."""
        if self._gate is not None:
            await pass_gate_async(self._gate, self._gate_timeout, code, GateContext(name, door))


class AgentBase:
    """What both kinds of sessions do. The options are documented with `AgentSandbox`."""

    __slots__ = (
        "__weakref__",
        "_busy",
        "_catalog",
        "_causes",
        "_changes",
        "_core",
        "_declared",
        "_journal",
        "_language",
        "_ledger",
        "_options",
        "_paused",
        "_pending",
        "_settings",
        "_tool_timeout",
        "_tools",
    )

    def __init__(
        self,
        tools: Tools = (),
        *,
        config: RuntimeConfig | None = None,
        tools_catalog: Tools | None = None,
        namespace: str | None = None,
        max_tool_calls: int = 1000,
        tool_budgets: Mapping[str, int] | None = None,
        tool_timeout: float | None = None,
        max_pause: float = 600.0,
        mode: Literal["function", "script"] = "function",
        language: Language = "js",
        redeclare: bool = False,
        durable: bool = True,
        max_journal_bytes: int = 16 << 20,
        clock: datetime | float | None = None,
        random_seed: int | None = None,
        timeout: float = 30.0,
        _journal: tuple[bytes, list[bytes], bytes] | None = None,
        _spent: Spent = (0, {}, 0),
        **options: Any,
    ) -> None:
        """Check the options."""
        check_language(language)
        if flag(redeclare, "redeclare") and mode != "script":
            raise InvalidInput("redeclare is for mode='script'; what a function declares ends with it")
        for name in ("request_timeout", "max_host_wait"):
            if name in options:
                raise TypeError(f"a session has no {name}: what a run may wait is max_pause")
        if config is not None and config.modules:
            raise InvalidInput("a session has no modules; give libraries to it with bootstrap")
        if flag(durable, "durable"):
            import secrets
            import time

            clock = time.time() if clock is None else clock
            random_seed = secrets.randbits(64) if random_seed is None else random_seed
        self._options = _RuntimeOptions(
            config, timeout=timeout, clock=clock, random_seed=random_seed, **options
        )
        declared = collect(tools, "tools", declared=True)
        catalog = [] if tools_catalog is None else collect(tools_catalog, "tools_catalog", declared=False)
        self._declared = declared
        self._tools = declared + catalog
        names = [tool.name for tool in self._tools]
        budgets = dict(tool_budgets or {})
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(f"two tools are named {name!r}")
        if unknown := budgets.keys() - set(names):
            raise InvalidInput(f"tool_budgets names {min(unknown)!r}, which is no tool")
        if namespace is not None:
            from ._config import check_host_function

            check_host_function(namespace, dict)
        self._catalog = None if tools_catalog is None else Catalog(self._tools)
        self._tool_timeout = None if tool_timeout is None else seconds(tool_timeout, "tool_timeout")
        self._settings: dict[str, Any] = {
            "tools": [
                (name, None if name not in budgets else count(budgets[name], f"tool_budgets[{name!r}]"))
                for name in names
            ],
            "declared": len(declared),
            "has_catalog": self._catalog is not None,
            "namespace": namespace,
            "redeclare": redeclare,
            "mode": choice(mode, "mode", ("function", "script")),
            "max_tool_calls": count(max_tool_calls, "max_tool_calls"),
            "max_pause": seconds(max_pause, "max_pause"),
            "max_journal_bytes": count(max_journal_bytes, "max_journal_bytes", most=1 << 30),
            "durable": durable,
            "bootstrap": script_of(self._options.config.bootstrap),
            "spent": _spent,
        }
        self._language = language
        self._core: AgentCore | None = None
        self._journal = _journal
        #: How often something was asked of the program: whoever keeps the session sees whether it has to keep it again.
        self._changes = 0
        self._ledger: Ledger | None = None
        self._pending: deque[PendingCall] = deque()
        self._paused: ReadyCall | None = None
        self._causes: dict[int, BaseException] = {}
        self._busy = False

    # The worker.

    def _make_core(self) -> AgentCore:
        core = AgentCore(_WORKER, self._options.core(), self._settings, self._journal)
        _shut_down_at_exit()
        return core

    def _adopt(self, core: AgentCore) -> None:
        self._journal = None
        self._core = core
        self._options.adopt(core)

    def _running_core(self) -> AgentCore:
        if self._core is None:
            raise InvalidInput("the session has not been started; await start_worker(), or use `async with`")
        return self._core

    @property
    def sandbox(self) -> str:
        """The enforcing layers in force, such as `"landlock+seccomp"`."""
        return self._options.sandbox

    @property
    def sandbox_layers(self) -> list[SandboxLayer]:
        """Every layer with what was checked."""
        return self._options.sandbox_layers

    @property
    def worker_pid(self) -> int:
        """The worker's process id. A session whose worker is lost gets another."""
        return self._running_core().worker_pid

    @property
    def paused(self) -> ToolCall | None:
        """The call that the session waits with, after `start`, `resume` or `load`."""
        return None if self._paused is None else self._paused.step()

    def take_console(self) -> list[ConsoleLine]:
        """What programs have written to the console since the last call, as `IsolatedRuntime.take_console`."""
        return self._options.take_console()

    def close(self) -> None:
        """Close the session and kill its worker; a second time does nothing."""
        if self._core is not None:
            self._core.close()

    def terminate(self) -> None:
        """Kill the worker at once, from any thread, and close the session."""
        if self._core is not None:
            self._core.terminate()

    def is_closed(self) -> bool:
        """Whether the session takes no further runs."""
        return self._core is not None and self._core.is_closed()

    # Words.

    def describe_tools(self) -> str:
        """The tools in words for a prompt, a few lines each; of a catalog, how to search it."""
        return describe(self._declared, self._settings["namespace"], has_catalog=self._catalog is not None)

    def typescript_stubs(self) -> str:
        """The tools as TypeScript declarations, which compile under `tsc --strict`."""
        return stubs(self._declared, self._settings["namespace"], has_catalog=self._catalog is not None)

    # The journal.

    @staticmethod
    def _sealed(
        data: bytes, key: bytes | Sequence[bytes], associated_data: bytes, options: Mapping[str, Any]
    ) -> tuple[bytes, list[bytes], bytes]:
        for name in ("clock", "random_seed"):
            if name in options:
                raise InvalidInput(f"the journal has the {name}; leave it out")
        return as_bytes(data, "data"), as_keys(key), as_bytes(associated_data, "associated_data")

    def dump(self, key: bytes | Sequence[bytes], associated_data: bytes = b"") -> bytes:
        """The session as signed bytes, to be continued by `load`, here or elsewhere.

        It can be dumped between runs and while it waits for the answer to a tool call. The bytes are signed, not
        encrypted: whoever has them can read the programs and what tools have returned.

        Args:
            key: At least 16 secret bytes, for HMAC-SHA256; of a list of keys, the first signs.
            associated_data: Whatever the bytes are to be tied to, such as the user's id; `load` must be given the same.

        Raises:
            JournalError: The session is not durable, or has outgrown `max_journal_bytes`.
            InvalidInput: A run is going on, or the key is too short.
        """
        return self._running_core().dump(as_keys(key)[0], as_bytes(associated_data, "associated_data"))

    # Runs.

    def _turn(self) -> _Turn:
        return _Turn(self)

    def _watch(self, code: object, max_output: int) -> _Watched:
        check_source(code, "code")
        return _Watched(self, max_output)

    def _check_idle(self) -> None:
        if self._paused is not None:
            raise InvalidInput("the run waits for a tool: call resume, or cancel, before another run")

    def _began(self, core: AgentCore, code: str, name: str, language: Language | None) -> None:
        """Begin a run; the worker is there and the gate has let the program pass."""
        self._changes += 1
        self._causes.clear()
        core.begin(code, name, self._language if language is None else language)

    def _check_program(self, code: object, language: object) -> None:
        check_source(code, "code")
        if language is not None:
            check_language(language)
        self._check_idle()

    def _take_answer(self, value: Any, error: Exception | None) -> Failed | None:
        """Answer the call that the session waits with; how the run has failed by that, if it has."""
        call, self._paused = self._paused, None
        if call is None:
            raise InvalidInput("the session does not wait for an answer")
        self._changes += 1
        try:
            if error is None:
                self._answer(call, value)
            else:
                self._answer_error(call, error)
        except PydenoError as problem:
            return Failed(self._lost(problem))
        return None

    def _look(self, core: AgentCore) -> Done | Failed | ReadyCall | tuple[bool, float | None] | None:
        """One turn of a run that is stepped through: its end, its next call, what to wait for, or nothing."""
        steps, wants_to_write, look_again = core.advance()
        ended = self._take(steps)
        if ended is not None:
            ok, outcome = self._ended(ended)
            return Done(outcome) if ok else Failed(outcome)
        return self._next_ready() if core.is_waiting() else (wants_to_write, look_again)

    def _pay(self) -> Awaitable[None] | None:
        """Write down what the session has spent, where somebody wants that, before a tool is called."""
        return None if self._ledger is None else self._ledger.record(self._running_core().spent())

    def _abort(self) -> Awaitable[None] | None:
        """Stop the run; a worker that does not stop is given up."""
        raise NotImplementedError

    def _begin_abort(self) -> AgentCore:
        self._changes += 1
        self._pending.clear()
        self._paused = None
        return self._running_core()

    def _take(self, steps: list[tuple[Any, ...]]) -> tuple[Any, ...] | None:
        """Keep what is to be answered; how the run has ended, if it has."""
        for step in steps:
            if step[0] != CALL:
                return step
            _, call, target, arguments = step
            self._pending.append(PendingCall(call, target, arguments))
        return None

    def _next_ready(self) -> ReadyCall | None:
        """The next call that a tool has to answer; what the session can answer by itself is answered."""
        core = self._running_core()
        while self._pending:
            call = self._pending.popleft()
            try:
                if call.target >= 0:
                    tool = self._tools[call.target]
                    return ReadyCall(call.id, tool, tool.bind(call.arguments))
                if self._catalog is not None and call.target == _SEARCH:
                    core.answer(call.id, search_tools, self._catalog.search(call.arguments))
                elif self._catalog is not None and call.target == _DESCRIBE:
                    description = self._catalog.describe(call.arguments)
                    if description is None:
                        core.refuse(call.id, True, "there is no tool of that name; use search_tools")
                    else:
                        core.answer(call.id, describe_tool, description)
            except ArgumentsError as error:
                core.refuse(call.id, False, str(error))
        return None

    def _answer(self, call: ReadyCall, value: object) -> None:
        failed = self._running_core().answer(call.id, call.tool, value)
        if failed is not None:
            self._remember(call, failed)

    def _answer_error(self, call: ReadyCall, error: BaseException) -> None:
        self._running_core().answer_error(call.id, call.tool, error)
        self._remember(call, error)

    def _remember(self, call: ReadyCall, error: BaseException) -> None:
        self._causes[call.id] = error
        if len(self._causes) > 64:  # noqa: PLR2004 - as many as the core remembers
            del self._causes[next(iter(self._causes))]

    def _call_sync(self, call: ReadyCall) -> None:
        """Call a tool that is not async and answer."""
        import time

        began = time.monotonic()
        try:
            value = call.tool.invoke(call.arguments)
        except Exception as error:  # noqa: BLE001 - the program is told, as much of it as it may see
            self._answer_error(call, error)
            return
        late = self._tool_timeout is not None and time.monotonic() - began > self._tool_timeout
        if late:
            self._answer_error(call, TimeoutError(f"the tool took more than {self._tool_timeout} seconds"))
        else:
            self._answer(call, value)

    def _ended(self, step: tuple[Any, ...]) -> tuple[bool, Any]:
        """The run's value, or its error: `(True, value)` or `(False, error)`."""
        self._pending.clear()
        self._paused = None
        if step[0] == VALUE:
            return True, step[1]
        _, error, call, tool = step
        if call is not None and call in self._causes:
            error.__cause__ = self._causes[call]
        if tool is not None:
            error.tool = self._tools[tool].name
        return False, self._lost(error)

    def _lost(self, error: PydenoError) -> PydenoError:
        """Say of an error whether the session goes on."""
        self._pending.clear()
        self._paused = None
        self._causes.clear()
        error.runtime_survives = not self._running_core().is_closed()
        return error


class _Turn:
    """One use of a session at a time."""

    __slots__ = ("_session",)

    def __init__(self, session: AgentBase) -> None:
        self._session = session

    def __enter__(self) -> None:
        if self._session._busy:  # noqa: SLF001 - it is the session's own
            raise InvalidInput("the session is running; wait until it has ended, or use another session")
        self._session._busy = True  # noqa: SLF001

    def __exit__(self, *exception: object) -> None:
        self._session._busy = False  # noqa: SLF001


def search_tools() -> None:
    """The name of the function in errors."""


def describe_tool() -> None:
    """The name of the function in errors."""


class _Watched:
    """What comes of one run, console output included."""

    __slots__ = ("_exception", "_output", "_session", "result")

    def __init__(self, session: AgentBase, max_output: int) -> None:
        self._session = session
        self._output = Output(count(max_output, "max_output"))
        self._exception: PydenoError | None = None
        self.result: Any = None

    def __enter__(self) -> None:
        self._session._options.console.add_sink(self._output)  # noqa: SLF001

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        self._session._options.console.remove_sink(self._output)  # noqa: SLF001
        if isinstance(error, PydenoError):
            self._exception = error
            return True
        return False

    def outcome(self) -> ExecutionResult:
        return ExecutionResult(output=self._output, result=self.result, exception=self._exception)


def as_keys(key: object) -> list[bytes]:
    """One key, or several, of which the first signs."""
    if isinstance(key, (bytes, bytearray, memoryview)):
        return [bytes(key)]
    if isinstance(key, (list, tuple)) and key:
        keys: Iterable[object] = key
        return [as_bytes(one, "a key") for one in keys]
    raise TypeError(f"key must be bytes or a list of them, not {type(key).__name__}")


def as_bytes(value: object, name: str) -> bytes:
    """Bytes, and nothing that could be made into some."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} must be bytes, not {type(value).__name__}")
    return bytes(value)
