"""`Runtime`: JavaScript in this process, and what it shares with `IsolatedRuntime`."""

from __future__ import annotations

from ._config import (
    RuntimeConfig,
    check_callable,
    check_host_function,
    check_source,
    core_options,
    flag,
    seconds,
)
from ._gates import GateContext, pass_gate
from ._pydeno import InProcessRuntime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from ._gates import Gate
    from ._pydeno import IsolatedRuntime as IsolatedCore

    F = TypeVar("F", bound=Callable[..., object])
    Self = TypeVar("Self", bound="RuntimeBase")

_GIB = 1 << 30
#: What a script is called in stacks when its caller does not name it.
DEFAULT_NAME = "script.js"
#: How long a gate may take, in seconds, when nothing else is asked for.
GATE_TIMEOUT = 10.0


class RuntimeBase:
    """What every runtime does; make a `Runtime` or an `IsolatedRuntime`."""

    __slots__ = ("__weakref__", "_core", "_gate", "_gate_timeout")

    _core: InProcessRuntime | IsolatedCore
    _gate: Gate | None
    _gate_timeout: float

    def _set_gate(self, gate: Gate | None, gate_timeout: float) -> None:
        if gate is not None:
            check_callable(gate, "gate")
        self._gate = gate
        self._gate_timeout = seconds(gate_timeout, "gate_timeout")

    def eval(self, code: str, *, name: str = DEFAULT_NAME) -> Any:
        """Evaluate a script and return the value of its last expression.

        State persists: `let`, `const`, functions and classes of one evaluation are there in the next. When the value
        is a promise, the value it settled to is returned.

        Args:
            code: The script.
            name: What to call it in stacks and errors.

        Returns:
            The value: `None` for `null`, `pydeno.undefined` for `undefined`, `int` for an integral number that is
            safe, else `float`, `int` for a BigInt, an aware UTC `datetime` for a `Date`, `bytes` for buffers, `list`,
            `dict`, `set`.

        Raises:
            JavaScriptError: The script threw or does not parse. The runtime survives.
            ConversionError: The value has no Python form. The runtime survives.
            RuntimeTimeout: It took too long. The runtime survives if `error.runtime_survives` says so.
            MemoryLimitExceeded: It used too much memory. As above.
            HostCallBudgetExceeded: It called too many host functions. The runtime survives.
            WorkerCrashed: The worker is gone, see `error.kind`. The runtime is closed.
            RuntimeClosed: The runtime was closed before or meanwhile.
            GateDenied: The gate does not allow it. Nothing has run; the runtime survives.
            GateUnavailable: The gate gave no verdict. As above.
            TypeError: `code` is not `str`.
        """
        check_source(code, "code")
        if self._gate is not None:
            # A subclass of str could show the gate another text than the one that runs.
            code = str.__str__(code)
            context = GateContext(name, type(self).__name__)
            pass_gate(self._gate, self._gate_timeout, code, context)
        return self._core.eval(code, name)

    def bind_function(self, name: str, function: Callable[..., object]) -> None:
        """Make a Python function a global function of the script.

        Its arguments arrive converted as `eval` converts; what it returns is converted back. An exception it raises
        is thrown into the script as an `Error`, without the exception's type and text unless
        `redact_host_errors=False`. `KeyboardInterrupt` and others that are no `Exception` end the evaluation.

        Args:
            name: The global's name, a JavaScript identifier.
            function: Called with positional arguments.

        Raises:
            InvalidInput: The name is no identifier, or the function is async.
            RuntimeClosed: The runtime is closed.
        """
        check_host_function(name, function)
        self._core.bind(None, [name], [function])

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
            functions: The functions by their names.

        Raises:
            InvalidInput: A name is no identifier, or a function is async.
            RuntimeClosed: The runtime is closed.
        """
        check_host_function(name, dict)
        for function_name, function in functions.items():
            check_host_function(function_name, function)
        self._core.bind(name, list(functions), list(functions.values()))

    def close(self) -> None:
        """Close the runtime; a second time does nothing."""
        self._core.close()

    def is_closed(self) -> bool:
        """Whether the runtime takes no further evaluations."""
        return self._core.is_closed()

    def __enter__(self: Self) -> Self:
        """Use the runtime as a context manager that closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the runtime."""
        self.close()


class Runtime(RuntimeBase):
    """JavaScript in this process, for code that you wrote or reviewed.

    There is no boundary around it: a flaw of the engine is a flaw of your process, and a script that the engine
    cannot stop hangs the thread. Use `IsolatedRuntime` for code that you do not trust. It belongs to the thread that
    made it.

    Args:
        config: The options; `RuntimeConfig()` when `None`.
        redact_host_errors: Whether scripts are kept from seeing the type and text of Python exceptions.
        gate: Asked before each evaluation whether the source may run, see `Verdict`; `bootstrap` is not gated.
        gate_timeout: How long the gate may take, in seconds.

    Raises:
        EngineUnavailable: JavaScriptCore is not installed; the message says what to install.

    >>> with Runtime() as rt:
    ...     rt.eval("[1, 2, 3].map(x => x ** 2)")
    [1, 4, 9]
    """

    __slots__ = ("config",)

    _core: InProcessRuntime

    def __init__(
        self,
        config: RuntimeConfig | None = None,
        *,
        redact_host_errors: bool = True,
        gate: Gate | None = None,
        gate_timeout: float = GATE_TIMEOUT,
    ) -> None:
        """Load the engine, if this is the first runtime, and make a context."""
        self._set_gate(gate, gate_timeout)
        self.config = config if config is not None else RuntimeConfig()
        options = core_options(self.config, _GIB)
        options["redact_host_errors"] = flag(redact_host_errors, "redact_host_errors")
        self._core = InProcessRuntime(options)
        if self.config.bootstrap is not None:
            self._core.eval(self.config.bootstrap, "bootstrap.js")

    def __repr__(self) -> str:
        """Say what it is."""
        return "<pydeno.Runtime>"
