"""What `Runtime` and the isolated runtimes have in common."""

from __future__ import annotations

from _thread import allocate_lock

from ._bootstrap import script_of
from ._closing import Closing
from ._config import (
    RuntimeConfig,
    check_callable,
    check_host_function,
    check_language,
    check_name,
    check_source,
    core_options,
    count,
    exception_classes,
    flag,
    is_async,
    seconds,
)
from ._console import Console
from ._errors import InvalidInput, PydenoError
from ._execution import MAX_OUTPUT, ExecutionResult, Output
from ._gates import GateContext, pass_gate, pass_gate_async

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any, TypeVar

    from ._config import Language
    from ._console import ConsoleLine
    from ._event_loop import LoopDriver, PrivateLoop
    from ._gates import Gate
    from ._modules import Loader, ModuleLanguage, Modules, Resolver
    from ._pydeno import InProcessRuntime, JsFunction, JsStream
    from ._pydeno import IsolatedRuntime as IsolatedCore
    from ._wasm import Imports, Loading, WasmModule

    F = TypeVar("F", bound=Callable[..., object])

_GIB = 1 << 30
#: Two threads may be the first to need a runtime's own loop.
_making_a_loop = allocate_lock()
#: What a script is called in stacks when its caller does not name it.
DEFAULT_NAME = "script.js"
#: What a module is called when its caller does not name it.
MODULE_NAME = "module.mjs"
#: How long a gate may take, in seconds, when nothing else is asked for.
GATE_TIMEOUT = 10.0


class RuntimeBase(Closing):
    """What every runtime does; make a `Runtime`, an `IsolatedRuntime` or an `AsyncIsolatedRuntime`."""

    __slots__ = (
        "__weakref__",
        "_asynchronous",
        "_console",
        "_core",
        "_driver",
        "_gate",
        "_gate_timeout",
        "_modules",
        "_private_loop",
        "_tool_timeout",
        "config",
    )

    _core: InProcessRuntime | IsolatedCore
    _gate: Gate | None
    config: RuntimeConfig

    def __init__(
        self,
        config: RuntimeConfig | None,
        *,
        gate: Gate | None,
        gate_timeout: float,
        capture_console: bool = False,
        tool_timeout: float | None = None,
    ) -> None:
        if gate is not None:
            check_callable(gate, "gate")
        self._gate = gate
        self._gate_timeout = seconds(gate_timeout, "gate_timeout")
        self.config = config if config is not None else RuntimeConfig()
        self._console = Console(self.config.on_console, capture=flag(capture_console, "capture_console"))
        self._tool_timeout = None if tool_timeout is None else seconds(tool_timeout, "tool_timeout")
        #: Whether async host functions are bound, which need an event loop.
        self._asynchronous = False
        self._driver: LoopDriver | None = None
        self._private_loop: PrivateLoop | None = None
        #: What the script can import, once there is anything.
        self._modules: Modules | None = None

    def _core_options(
        self,
        default_heap_size: int,
        redact_host_errors: bool,  # noqa: FBT001
        expose_host_errors: tuple[type[Exception], ...],
    ) -> dict[str, Any]:
        options = core_options(self.config, default_heap_size)
        options["enable_console"] = self.config.enable_console or self._console.capture
        options["on_console"] = self._console if options["enable_console"] else None
        options["on_unhandled_rejection"] = self._console.unhandled_rejection
        options["redact_host_errors"] = flag(redact_host_errors, "redact_host_errors")
        options["expose_host_errors"] = exception_classes(expose_host_errors, "expose_host_errors")
        options["tool_timeout"] = self._tool_timeout
        return options

    def _begin(self, core: InProcessRuntime | IsolatedCore) -> None:
        """Take a core into use and run the bootstrap script."""
        self._own(core)
        script = script_of(self.config.bootstrap)
        if script is not None:
            core.eval(script, "bootstrap.js", "js", False)

    def _own(self, core: InProcessRuntime | IsolatedCore) -> None:
        self._core = core
        core.set_owner(self)
        self._give_modules()

    def _checked(self, code: str, name: str) -> str:
        """The source, once the gate has allowed it."""
        check_source(code, "code")
        if name is not DEFAULT_NAME:
            check_name(name)
        if self._gate is None:
            return code
        # A subclass of str could show the gate another text than the one that runs.
        code = str.__str__(code)
        pass_gate(self._gate, self._gate_timeout, code, GateContext(name, type(self).__name__))
        return code

    async def _checked_async(self, code: str, name: str) -> str:
        check_source(code, "code")
        if name is not DEFAULT_NAME:
            check_name(name)
        if self._gate is None:
            return code
        code = str.__str__(code)
        context = GateContext(name, type(self).__name__)
        await pass_gate_async(self._gate, self._gate_timeout, code, context)
        return code

    def eval(
        self, code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
    ) -> Any:
        """Evaluate a script and return the value of its last expression.

        State persists: `let`, `const`, functions and classes of one evaluation are there in the next. When the value
        is a promise, the value it settled to is returned; `await` may also stand outside of functions. An evaluation
        has ended when the async host functions that it called have, too; when it fails, those are cancelled.

        Args:
            code: The script.
            name: What to call it in stacks and errors; one line.
            language: `"js"`, or `"ts"` for TypeScript, whose types are removed and not checked.
            redeclare: Whether `let`, `const` and `class` of the script's top level can be declared again later, as
                where a cell of a notebook is run again. They become properties of the global object, as `var` does:
                read too early they are `undefined`, and a later script can assign to a constant. What a script without
                this option has declared stays.

        Returns:
            The value: `None` for `null`, `pydeno.undefined` for `undefined`, `int` for an integral number that is
            safe, else `float`, `int` for a BigInt, an aware UTC `datetime` for a `Date`, `bytes` for buffers, `list`,
            `dict`, `set`, a `JsFunction` for a function, a `JsStream` for an async iterator.

        Raises:
            JavaScriptError: The script threw or does not parse. The runtime survives.
            ConversionError: The value has no Python form. The runtime survives.
            RuntimeTimeout: It took too long. The runtime survives if `error.runtime_survives` says so.
            MemoryLimitExceeded: It used too much memory. As above.
            HostCallBudgetExceeded: It called too many host functions. The runtime survives.
            InflightLimitExceeded: It had too many calls of async host functions under way. The runtime survives.
            HostWaitExceeded: It waited too long for host functions. The runtime survives.
            WorkerCrashed: The worker is gone, see `error.kind`. The runtime is closed.
            RuntimeClosed: The runtime was closed before or meanwhile.
            GateDenied: The gate does not allow it. Nothing has run; the runtime survives.
            GateUnavailable: The gate gave no verdict. As above.
            InvalidInput: An async host function is bound and this thread runs an event loop: await `eval_async`.
            InvalidInput: `name` has a line feed or a lone surrogate, or the source is too long.
            TypeError: `code` or `name` is not `str`.
        """
        # What nearly every call has is told without calling the checks.
        if type(code) is not str or name is not DEFAULT_NAME or self._gate is not None:
            code = self._checked(code, name)
        if language != "js":
            check_language(language)
        if redeclare is not False:
            flag(redeclare, "redeclare")
        if self._asynchronous:
            return self._eval_on_a_loop(code, name, language, redeclare=redeclare)
        return self._core.eval(code, name, language, redeclare)

    # A closure in `eval` would make every call of it slower.
    def _eval_on_a_loop(self, code: str, name: str, language: Language, *, redeclare: bool) -> Any:
        return self._blocking_on_a_loop(lambda: self._core.begin_eval(code, name, language, redeclare))

    async def eval_async(
        self, code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
    ) -> Any:
        """Evaluate a script as `eval` does, on the running event loop.

        Evaluations of one runtime overlap where they wait for async host functions. When the awaiting task is cancelled
        the script is stopped; the runtime survives. Time that overlapping evaluations run counts against the `timeout`
        of each.

        Raises:
            Exception: As `eval`.
        """
        code = await self._checked_async(code, name)
        check_language(language)
        flag(redeclare, "redeclare")
        driver = self._driver_for_running_loop()
        return await driver.run(lambda: self._core.begin_eval(code, name, language, redeclare))

    def execute(
        self,
        code: str,
        *,
        name: str = DEFAULT_NAME,
        language: Language = "js",
        redeclare: bool = False,
        max_output: int = MAX_OUTPUT,
    ) -> ExecutionResult:
        """Evaluate a script and return everything that came of it, errors included, as data.

        Args:
            code: The script.
            name: What to call it in stacks and errors.
            language: `"js"`, or `"ts"` for TypeScript, whose types are removed and not checked.
            redeclare: As in `eval`.
            max_output: How much of each stream is kept, in code points. Console output needs a console: pass
                `capture_console=True`, or `enable_console=True` in the configuration.

        Raises:
            TypeError: `code` is not `str`.
            InvalidInput: `max_output` is out of range.
        """
        check_source(code, "code")
        output = Output(count(max_output, "max_output"))
        result, exception = None, None
        self._console.add_sink(output)
        try:
            result = self.eval(code, name=name, language=language, redeclare=redeclare)
        except PydenoError as error:
            exception = error
        finally:
            self._console.remove_sink(output)
        return ExecutionResult(output=output, result=result, exception=exception)

    async def execute_async(
        self,
        code: str,
        *,
        name: str = DEFAULT_NAME,
        language: Language = "js",
        redeclare: bool = False,
        max_output: int = MAX_OUTPUT,
    ) -> ExecutionResult:
        """Evaluate a script as `execute` does, on the running event loop.

        Output of evaluations that overlap is in the result of each.

        Raises:
            Exception: As `execute`.
        """
        check_source(code, "code")
        output = Output(count(max_output, "max_output"))
        result, exception = None, None
        self._console.add_sink(output)
        try:
            result = await self.eval_async(code, name=name, language=language, redeclare=redeclare)
        except PydenoError as error:
            exception = error
        finally:
            self._console.remove_sink(output)
        return ExecutionResult(output=output, result=result, exception=exception)

    def take_console(self) -> list[ConsoleLine]:
        """What the script has written to its console since the last call, oldest first.

        With `capture_console=True`; at most 1 MiB of text is kept between two calls, where a line counts 64 code points
        beside its own, and what goes beyond is dropped. One evaluation of an isolated runtime writes at most as much;
        when that was not all, a last line, a warning, says how much more there was.
        """
        return self._console.take()

    def bind_function(self, name: str, function: Callable[..., object]) -> None:
        """Make a Python function a global function of the script.

        Its arguments arrive converted as `eval` converts; what it returns is converted back. An exception it raises
        is thrown into the script as an `Error`, without the exception's type and text unless
        `redact_host_errors=False` or its class is in `expose_host_errors`. `KeyboardInterrupt` and others that are no
        `Exception` end the evaluation.

        An `async def` function gives the script a promise, and calls of it overlap. `eval` then runs an event loop of
        its own while it waits; `eval_async` uses the running one. A function that is not async holds up the thread,
        or the loop, for as long as it takes.

        Args:
            name: The global's name, a JavaScript identifier.
            function: Called with positional arguments.

        Raises:
            InvalidInput: The name is no identifier.
            RuntimeClosed: The runtime is closed.
        """
        self._bind(None, {name: function})

    def bind(self, function: F) -> F:
        """Bind a function under its own name; for use as a decorator.

        >>> from pydeno import Runtime
        >>> rt = Runtime()
        >>> @rt.bind
        ... def double(x):
        ...     return 2 * x
        >>> rt.eval("double(21)")
        42
        """
        self.bind_function(function.__name__, function)
        return function

    def bind_object(self, name: str, functions: Mapping[str, Callable[..., object]]) -> None:
        """Make a global object of Python functions: `bind_object("tools", {"rate": rate})` gives `tools.rate(...)`.

        Args:
            name: The global's name. An object of an earlier call with this name is added to.
            functions: The functions by their names, async ones included.

        Raises:
            InvalidInput: A name is no identifier.
            RuntimeClosed: The runtime is closed.
        """
        check_host_function(name, dict)
        self._bind(name, functions)

    @staticmethod
    def _check_bindings(functions: Mapping[str, Callable[..., object]]) -> None:
        for name, function in functions.items():
            check_host_function(name, function)

    def _bind(self, holder: str | None, functions: Mapping[str, Callable[..., object]]) -> None:
        self._check_bindings(functions)
        asynchronous = [is_async(function) for function in functions.values()]
        # Another thread may evaluate as soon as they are bound.
        self._asynchronous = self._asynchronous or any(asynchronous)
        self._core.bind(holder, list(functions), list(functions.values()), asynchronous)

    def add_static_module(
        self, name: str, module: str | Mapping[str, object], *, language: ModuleLanguage | None = None
    ) -> None:
        """Let scripts import a module by its name: `import { limit } from "config"`, or `await import("config")`.

        One that was imported already stays as it is.

        Args:
            name: What it is imported by, found as it is written or, relative to the importing module, with `./` and
                `../`; also what it is called in stacks.
            module: The source; or a mapping, whose values become exports as values that `eval` converts, and whose
                functions become exported host functions.
            language: `"js"`, `"ts"` or `"json"`; by default TypeScript for a name that ends with `.ts` or `.mts`, JSON
                for `.json`, else JavaScript.

        Raises:
            InvalidInput: The name is empty, too long or no single line, or it has been imported already.
            TypeError: The module is no text and no mapping.
            RuntimeClosed: The runtime is closed.
        """
        modules = self._modules_in_use()
        given = modules.add(name, module, language)
        self._asynchronous = self._asynchronous or modules.has_async_functions
        if self._has_core():
            from ._modules import bind_exports

            bind_exports(self._core, str.__str__(name), given)

    def set_module_resolver(self, resolver: Resolver | None) -> None:
        """Have a function say which module a specifier means: `resolver(specifier, referrer)`, sync or async.

        It is asked for every import and gets the specifier as it was written and the name of the module or script
        that imports; both are claims of code that is not trusted. It returns the module's name, which it is loaded by
        and known by from then on, or `None` to leave the specifier to the static modules. What it raises rejects the
        import, without the exception's type and text unless `redact_host_errors=False`.

        An async resolver or loader needs an event loop, as an async host function does.

        Args:
            resolver: The function; `None` takes the one that there is away.

        Raises:
            TypeError: It cannot be called.
            RuntimeClosed: The runtime is closed.
        """
        self._modules_in_use().set_resolver(resolver)
        self._bind_import()

    def set_module_loader(self, loader: Loader | None) -> None:
        """Have a function give the source of a module: `loader(name)`, sync or async.

        It is asked once for each name that is not a static module's. It returns the source, a `ModuleSource` that
        says its language, a mapping of values, or `None` where there is no such module. The name comes from the
        resolver; without one it is the specifier, or what a specifier with `./` or `../` means to the importing
        module, so it is for untrusted code to choose.

        Args:
            loader: The function; `None` takes the one that there is away.

        Raises:
            TypeError: It cannot be called.
            RuntimeClosed: The runtime is closed.
        """
        self._modules_in_use().set_loader(loader)
        self._bind_import()

    def eval_module(
        self, code: str, *, name: str = MODULE_NAME, language: Language | None = None
    ) -> dict[str, Any]:
        """Evaluate a source as a module and return its exports, converted as `eval` converts.

        It can be imported by its name from then on; another one that is evaluated under the name takes its place for
        later imports.

        Args:
            code: The module.
            name: What it is called, in stacks, as `import.meta.url` and to the resolver.
            language: `"js"` or `"ts"`; by default TypeScript for a name that ends with `.ts` or `.mts`.

        Raises:
            Exception: As `eval`. An import that is not given is a `JavaScriptError`.
        """
        code = self._checked(code, name)
        language = self._begin_module(code, name, language)
        if self._asynchronous:
            exports = self._blocking_on_a_loop(lambda: self._core.begin_eval_module(code, name, language))
        else:
            exports = self._core.eval_module(code, name, language)
        return exports  # type: ignore[no-any-return]

    async def eval_module_async(
        self, code: str, *, name: str = MODULE_NAME, language: Language | None = None
    ) -> dict[str, Any]:
        """Evaluate a module as `eval_module` does, on the running event loop.

        Raises:
            Exception: As `eval_module`.
        """
        code = await self._checked_async(code, name)
        language = self._begin_module(code, name, language)
        driver = self._driver_for_running_loop()
        return await driver.run(  # type: ignore[no-any-return]
            lambda: self._core.begin_eval_module(code, name, language)
        )

    def _begin_module(self, code: str, name: str, language: Language | None) -> Language:
        from ._modules import check_module_name, language_of

        check_module_name(name)
        if language is None:
            language = "ts" if language_of(name) == "ts" else "js"
        check_language(language)
        self._modules_in_use().evaluated(name, code, language)
        return language

    def load_wasm(
        self, name: str, wasm_bytes: bytes | bytearray | memoryview, *, imports: Imports | None = None
    ) -> WasmModule:
        """Compile a WebAssembly module that you trust and give scripts what it exports: `lib.add(2, 40)`.

        The script itself has no `WebAssembly` by this, and nothing that leads to it. It gets a global object: functions
        that take and return numbers (64-bit integers as a BigInt; an integral number will do, too), numbers for
        constants, and for a memory the functions `read(offset, length)`, which returns a copy,
        `write(offset, bytes)` and `size()`. A trap is an `Error` in the script. Memory of the module counts against the
        limits on memory. A module that is loaded under a name again takes the place of the one before.

        An isolated runtime must have been made with `webassembly="host"` (or `True`). Gates are not asked.

        Args:
            name: The global's name.
            wasm_bytes: The module in the binary format.
            imports: What it imports, by module and name: `{"env": {"log": print}}`. Functions that are not async; they
                get numbers and return the one that the module expects.

        Returns:
            What is known of the module, and its exports for the host to call.

        Raises:
            InvalidInput: It is no module, or imports what is not given; WASI has to be given like everything else. As
                with the next, nothing has been loaded and the runtime survives.
            InvalidInput: The runtime was made without WebAssembly, or the module or its memory is larger than a limit.
            JavaScriptError: The engine does not compile it (`CompileError`), its start function failed, or the script
                has made the name read-only. The runtime survives.
            RuntimeTimeout: It took too long. A loop inside a module cannot be stopped: the runtime is closed.
            TypeError: `wasm_bytes` is no buffer, or an import is no function.
            Exception: As `eval`.
        """
        loading = self._loading(name, wasm_bytes, imports)
        if self._asynchronous:
            return loading.loaded(self._blocking_on_a_loop(lambda: loading.begin(self._core)))
        return loading.loaded(loading.load(self._core))

    async def load_wasm_async(
        self, name: str, wasm_bytes: bytes | bytearray | memoryview, *, imports: Imports | None = None
    ) -> WasmModule:
        """Load a WebAssembly module as `load_wasm` does, on the running event loop.

        Raises:
            Exception: As `load_wasm`.
        """
        loading = self._loading(name, wasm_bytes, imports)
        driver = self._driver_for_running_loop()
        return loading.loaded(await driver.run(lambda: loading.begin(self._core)))

    def _loading(self, name: str, code: object, imports: Imports | None) -> Loading:
        from ._wasm import Loading

        return Loading(name, code, imports, self._memory_limit())

    def _memory_limit(self) -> tuple[int, str]:
        """How much memory there may be, in bytes, and which option says so."""
        return self.config.max_heap_size or _GIB, "max_heap_size"

    def _has_core(self) -> bool:
        return True

    def _modules_in_use(self) -> Modules:
        if self._modules is None:
            from ._modules import Modules

            modules = Modules(
                type(self).__name__, self.config, self._gate, self._gate_timeout, on_loop=self._on_loop
            )
            if self._has_core():
                modules.bind_import(self._core)
            self._modules = modules
        return self._modules

    #: Whether every evaluation runs on an event loop.
    _on_loop = False

    def _bind_import(self) -> None:
        if self._modules is not None:
            self._asynchronous = self._asynchronous or self._modules.is_async
            if self._has_core():
                self._modules.bind_import(self._core)

    def _give_modules(self) -> None:
        """Make modules known to a core that was taken into use."""
        if self._modules is not None:
            self._modules.bind(self._core)
        for name, module in self.config.modules.items():
            self.add_static_module(name, module)

    def revoke_function(self, name: str) -> bool:
        """Take a host function away, also from a script that has kept it under another name.

        Later calls of it throw an `Error` that says so. Calls that are under way are not affected.

        Args:
            name: The name it was bound under: `"price"`, `"tools.rate"` for a function of `bind_object`, or
                `"config.rate"` for one that the module `config` exports.

        Returns:
            Whether there was such a function.
        """
        if not isinstance(name, str):
            raise TypeError(f"the name must be str, not {type(name).__name__}")
        holder, _, function_name = name.rpartition(".")
        return self._core.revoke(holder or None, function_name)

    def _call_function(self, function: JsFunction, arguments: tuple[Any, ...]) -> Any:
        if self._asynchronous and not self._core.is_calling():
            return self._blocking_on_a_loop(lambda: self._core.begin_invoke(function, arguments))
        return self._core.invoke(function, arguments)

    def _pull(self, stream: JsStream, *, ends: bool) -> Any:
        if self._core.is_calling():
            raise InvalidInput(
                "a stream gives no items while the script waits for a host function; make the host function async, or "
                "take the items after the evaluation"
            )
        if self._asynchronous:
            return self._blocking_on_a_loop(lambda: self._core.begin_pull(stream, ends))
        return self._core.pull(stream, ends)

    async def _pull_async(self, stream: JsStream, *, ends: bool) -> Any:
        driver = self._driver_for_running_loop()
        return await driver.run(lambda: self._core.begin_pull(stream, ends))

    def _refuse_to_block(self) -> None:
        """Refuse what blocks where everything is awaited."""

    async def _call_function_async(self, function: JsFunction, arguments: tuple[Any, ...]) -> Any:
        driver = self._driver_for_running_loop()
        return await driver.run(lambda: self._core.begin_invoke(function, arguments))

    def _blocking_on_a_loop(self, begin: Callable[[], int]) -> Any:
        return self._loop_of_its_own().run(self._driver_for, begin)

    def _run_on_private_loop(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop_of_its_own().run_coroutine(coroutine, self._longest_wait())

    def _longest_wait(self) -> float | None:
        """How long an evaluation without an event loop may wait for an item of an async iterable, in seconds."""
        return self._tool_timeout

    def _loop_of_its_own(self) -> PrivateLoop:
        if self._private_loop is None:
            from ._event_loop import PrivateLoop

            with _making_a_loop:
                self._private_loop = self._private_loop or PrivateLoop()
        return self._private_loop

    def _driver_for_running_loop(self) -> LoopDriver:
        import asyncio

        return self._driver_for(asyncio.get_running_loop())

    def _driver_for(self, loop: AbstractEventLoop) -> LoopDriver:
        driver = self._driver
        if driver is not None and driver.loop is loop:
            return driver
        if driver is not None:
            if not driver.is_idle and driver.loop.is_running():
                raise InvalidInput(
                    "this runtime is evaluating on another event loop; use one runtime for each loop"
                )
            driver.abandon()
        from ._event_loop import LoopDriver

        self._driver = LoopDriver(self._core, loop, self._tool_timeout)
        return self._driver

    def close(self) -> None:
        """Close the runtime; a second time does nothing."""
        self._core.close()
        self._leave_loop()

    def _leave_loop(self) -> None:
        if self._driver is not None:
            self._driver.closed()
        self._close_streams()
        if self._private_loop is not None:
            self._private_loop.close()

    def _close_streams(self) -> None:
        """End the streams of the host that the script has not read to their end."""
        streams = self._core.streams()
        if streams is not None:
            from ._streams import end_all

            end_all(streams, self._driver, self._private_loop)

    def is_closed(self) -> bool:
        """Whether the runtime takes no further evaluations."""
        return self._core.is_closed()
