"""`Runtime`: JavaScript in this process."""

from __future__ import annotations

from ._pydeno import InProcessRuntime
from ._runtime import _GIB, GATE_TIMEOUT, RuntimeBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._config import RuntimeConfig
    from ._gates import Gate


class Runtime(RuntimeBase):
    """JavaScript in this process, for code that you wrote or reviewed.

    There is no boundary around it: a flaw of the engine is a flaw of your process, and a script that the engine
    cannot stop hangs the thread: an endless chain of promises, such as `for (;;) await 1`, or an endless loop in
    WebAssembly. Use `IsolatedRuntime` for code that you do not trust, whose worker is killed then. It belongs to the
    thread that made it.

    Args:
        config: The options; `RuntimeConfig()` when `None`.
        redact_host_errors: Whether scripts are kept from seeing the type and text of Python exceptions.
        expose_host_errors: Exception classes whose type and text scripts see all the same.
        capture_console: Whether the script has a `console` whose lines `take_console` returns.
        tool_timeout: How long one host function may take, in seconds. An async one is cancelled; one that is not async
            cannot be, and its late answer is replaced by the error.
        gate: Asked before each evaluation whether the source may run, see `Verdict`; `bootstrap` is not gated.
        gate_timeout: How long the gate may take, in seconds.

    Raises:
        EngineUnavailable: JavaScriptCore is not installed; the message says what to install.

    >>> with Runtime() as rt:
    ...     rt.eval("[1, 2, 3].map(x => x ** 2)")
    [1, 4, 9]
    """

    __slots__ = ()

    _core: InProcessRuntime

    def __init__(
        self,
        config: RuntimeConfig | None = None,
        *,
        redact_host_errors: bool = True,
        expose_host_errors: tuple[type[Exception], ...] = (),
        capture_console: bool = False,
        tool_timeout: float | None = None,
        gate: Gate | None = None,
        gate_timeout: float = GATE_TIMEOUT,
    ) -> None:
        """Load the engine, if this is the first runtime, and make a context."""
        super().__init__(
            config,
            gate=gate,
            gate_timeout=gate_timeout,
            capture_console=capture_console,
            tool_timeout=tool_timeout,
        )
        options = self._core_options(_GIB, redact_host_errors, expose_host_errors)
        self._begin(InProcessRuntime(options))

    def __repr__(self) -> str:
        """Say what it is."""
        return "<pydeno.Runtime>"
