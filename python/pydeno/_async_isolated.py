"""`AsyncIsolatedRuntime`: JavaScript that nobody has vetted, on asyncio."""

from __future__ import annotations

from ._bootstrap import script_of
from ._errors import InvalidInput, RuntimeClosed
from ._execution import MAX_OUTPUT
from ._isolated import IsolatedBase
from ._runtime import DEFAULT_NAME, MODULE_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from ._config import Language
    from ._console import Console
    from ._execution import ExecutionResult
    from ._pydeno import InProcessRuntime, JsFunction, JsStream
    from ._pydeno import IsolatedRuntime as IsolatedCore
    from ._wasm import Imports, WasmModule

    Self = TypeVar("Self", bound="AsyncIsolatedRuntime")


class AsyncIsolatedRuntime(IsolatedBase):
    """JavaScript that you do not trust, in a confined worker process, driven by the running asyncio event loop.

    The options are those of `IsolatedRuntime`. Nothing is started before `async with`, `start()` or the first
    evaluation. No thread belongs to a runtime; a thousand of them fit one loop. A runtime belongs to the loop that it
    is used on.

    Evaluations overlap where they wait for async host functions. A host function that is not async holds up the loop
    for as long as it takes.

    >>> import asyncio
    >>> async def main():
    ...     async with AsyncIsolatedRuntime() as rt:
    ...
    ...         async def rate(currency):
    ...             await asyncio.sleep(0.01)
    ...             return {"EUR": 1.0, "USD": 1.1}[currency]
    ...
    ...         rt.bind_function("rate", rate)
    ...         return await rt.eval("Promise.all(['EUR', 'USD'].map(c => rate(c)))")
    >>> asyncio.run(main())
    [1, 1.1]
    """

    __slots__ = ("_bound_early", "_closed_early", "_starting")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Check the options; nothing is started yet."""
        super().__init__(*arguments, **options)
        #: What was bound before the start; `None` from then on.
        self._bound_early: list[tuple[str | None, dict[str, Callable[..., object]]]] | None = []
        self._closed_early = False
        self._starting: asyncio.Task[None] | None = None

    def _come_from(
        self, prototype: IsolatedBase, core: IsolatedCore, console: Console, stacklevel: int
    ) -> None:
        self._bound_early = None
        self._closed_early = False
        self._starting = None
        super()._come_from(prototype, core, console, stacklevel + 1)

    async def start(self) -> None:
        """Start the worker and wait until it has proved its sandbox; nothing is done where it runs.

        Raises:
            Exception: As the constructor of `IsolatedRuntime`.
        """
        import asyncio

        if self._bound_early is None:
            return
        if self._closed_early:
            raise RuntimeClosed("the runtime is closed; make a new one")
        loop = asyncio.get_running_loop()
        starting = self._starting
        if starting is not None and not starting.done() and starting.get_loop() is not loop:
            if starting.get_loop().is_running():
                raise InvalidInput(
                    "this runtime is starting on another event loop; use one runtime for each loop"
                )
            starting = None
        if starting is None or starting.done():
            starting = self._starting = loop.create_task(self._start())
        # Another evaluation may be waiting for the same start.
        await asyncio.shield(starting)

    async def _start(self) -> None:
        import asyncio

        # A start waits for processes: on a thread of the loop's own pool.
        core = await asyncio.get_running_loop().run_in_executor(None, self._make_core)
        try:
            self._refuse_if_closed()
            self._adopt(core, stacklevel=1)
            bootstrap = script_of(self.config.bootstrap)
            if bootstrap is not None:
                driver = self._driver_for_running_loop()
                await driver.run(lambda: core.begin_eval(bootstrap, "bootstrap.js", "js", False))
                self._refuse_if_closed()
            for holder, functions in self._bound_early or []:
                super()._bind(holder, functions)
        except BaseException:
            core.close()
            self._driver = None
            raise
        self._bound_early = None

    def _refuse_if_closed(self) -> None:
        if self._closed_early:
            raise RuntimeClosed("the runtime was closed while it started")

    _on_loop = True

    def _has_core(self) -> bool:
        return hasattr(self, "_core")

    def _begin(self, core: InProcessRuntime | IsolatedCore) -> None:
        # The bootstrap script is awaited by whoever starts the runtime.
        self._own(core)

    def _bind(self, holder: str | None, functions: Mapping[str, Callable[..., object]]) -> None:
        if self._bound_early is None:
            super()._bind(holder, functions)
        else:
            self._check_bindings(functions)
            self._bound_early.append((holder, dict(functions)))

    def revoke_function(self, name: str) -> bool:
        """Take a host function away, as `IsolatedRuntime.revoke_function` does."""
        if self._bound_early is None:
            return super().revoke_function(name)
        if not isinstance(name, str):
            raise TypeError(f"the name must be str, not {type(name).__name__}")
        holder, _, function_name = name.rpartition(".")
        early = [bound for bound in self._bound_early if bound[0] == (holder or None)]
        revoked = [functions.pop(function_name) for _, functions in early if function_name in functions]
        return bool(revoked)

    async def eval(
        self, code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
    ) -> Any:
        """Evaluate a script and return the value of its last expression, as `IsolatedRuntime.eval` does.

        Raises:
            Exception: As `IsolatedRuntime.eval`, and what `start` raises.
        """
        return await self.eval_async(code, name=name, language=language, redeclare=redeclare)

    async def eval_async(
        self, code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
    ) -> Any:
        """The same as `eval`."""
        await self.start()
        return await super().eval_async(code, name=name, language=language, redeclare=redeclare)

    async def eval_module(  # type: ignore[override]
        self, code: str, *, name: str = MODULE_NAME, language: Language | None = None
    ) -> dict[str, Any]:
        """Evaluate a source as a module and return its exports, as `IsolatedRuntime.eval_module` does.

        Raises:
            Exception: As `IsolatedRuntime.eval_module`, and what `start` raises.
        """
        return await self.eval_module_async(code, name=name, language=language)

    async def eval_module_async(
        self, code: str, *, name: str = MODULE_NAME, language: Language | None = None
    ) -> dict[str, Any]:
        """The same as `eval_module`."""
        await self.start()
        return await super().eval_module_async(code, name=name, language=language)

    async def load_wasm(  # type: ignore[override]
        self, name: str, wasm_bytes: bytes | bytearray | memoryview, *, imports: Imports | None = None
    ) -> WasmModule:
        """Give scripts what a WebAssembly module that you trust exports, as `IsolatedRuntime.load_wasm` does.

        Raises:
            Exception: As `IsolatedRuntime.load_wasm`, and what `start` raises.
        """
        return await self.load_wasm_async(name, wasm_bytes, imports=imports)

    async def load_wasm_async(
        self, name: str, wasm_bytes: bytes | bytearray | memoryview, *, imports: Imports | None = None
    ) -> WasmModule:
        """The same as `load_wasm`."""
        await self.start()
        return await super().load_wasm_async(name, wasm_bytes, imports=imports)

    async def execute(  # type: ignore[override]
        self,
        code: str,
        *,
        name: str = DEFAULT_NAME,
        language: Language = "js",
        redeclare: bool = False,
        max_output: int = MAX_OUTPUT,
    ) -> ExecutionResult:
        """Evaluate a script and return everything that came of it as data, as `IsolatedRuntime.execute` does."""
        return await self.execute_async(
            code, name=name, language=language, redeclare=redeclare, max_output=max_output
        )

    def _call_function(self, function: JsFunction, arguments: tuple[Any, ...]) -> Any:
        if self._core.is_calling():
            return self._core.invoke(function, arguments)
        return self._call_function_async(function, arguments)

    def _pull(self, stream: JsStream, *, ends: bool) -> Any:  # noqa: ARG002 - it refuses every one
        self._refuse_to_block()

    def _refuse_to_block(self) -> None:
        raise TypeError("use `async for`, `anext` and `aclose` for a stream of an AsyncIsolatedRuntime")

    def close(self) -> None:
        """Close the runtime and kill its worker; does not wait. A second time does nothing."""
        self._closed_early = True
        # There is a worker once it has started, and while the bootstrap script runs.
        if hasattr(self, "_core"):
            super().close()

    def terminate(self) -> None:
        """Kill the worker at once, from any thread. Evaluations that run raise `RuntimeTerminated`."""
        if self._bound_early is None:
            super().terminate()
        else:
            self.close()

    def is_closed(self) -> bool:
        """Whether the runtime takes no further evaluations."""
        return self._closed_early if self._bound_early is not None else super().is_closed()

    def __enter__(self: Self) -> Self:
        """Refuse: it starts by awaiting."""
        raise TypeError("use `async with` for an AsyncIsolatedRuntime")

    async def __aenter__(self: Self) -> Self:
        """Start the runtime, and close it at the end of the block."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the runtime, and wait for the end of the host's streams that its script has not read to theirs."""
        streams = self._core.streams() if hasattr(self, "_core") else None
        sources = [] if streams is None else streams.take_open()
        self.close()
        if sources:
            from ._streams import end_async

            await end_async(sources)

    def __repr__(self) -> str:
        """Say what it is and how it is confined."""
        if self._bound_early is not None:
            return "<pydeno.AsyncIsolatedRuntime not started>"
        state = " closed" if self.is_closed() else ""
        return f"<pydeno.AsyncIsolatedRuntime sandbox={self.sandbox!r} worker_pid={self.worker_pid}{state}>"
