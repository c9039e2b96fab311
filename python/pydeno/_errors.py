"""The exceptions of pydeno, and their choice by kind.

Every one has `kind`, a stable name for programs to branch on, and `runtime_survives`, which says whether the runtime
that raised it takes further evaluations.
"""

from __future__ import annotations

from ._pydeno import undefined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._gates import Verdict


class PydenoError(Exception):
    """The base of pydeno's own exceptions.

    Attributes:
        kind: The stable name of what went wrong, such as `"timeout"`.
        runtime_survives: Whether the runtime that raised it takes further evaluations.
    """

    kind: str = "unknown"
    runtime_survives: bool = False


class Frame:
    """One frame of a script's stack.

    Attributes:
        function: The function's name, or `""` for the script itself.
        file: The script's name, `"<eval>"` for code that the script made from a text, `""` for native code and where
            it is not known.
        line: 1-based, in the script's own text; 0 when unknown.
        column: 1-based; 0 when unknown.
    """

    __slots__ = ("column", "file", "function", "line")

    def __init__(self, function: str, file: str, line: int, column: int) -> None:
        """Make a frame; pydeno does."""
        self.function = function
        self.file = file
        self.line = line
        self.column = column

    def __repr__(self) -> str:
        """Show every field."""
        return f"Frame({self.function!r}, {self.file!r}, line={self.line}, column={self.column})"

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, Frame) and self._key() == other._key()

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash(self._key())

    def _key(self) -> tuple[str, str, int, int]:
        return (self.function, self.file, self.line, self.column)


class JavaScriptError(PydenoError):
    """The script threw, did not parse, or its promise was rejected or can never settle. The runtime survives.

    `str()` and `format()` of it are safe to print: control, bidi and invisible characters of the script are removed,
    and what is very long is cut. The attributes are exact.

    Nothing of the script runs to describe what it threw. So a name behind a getter is not known, and what is in
    `properties`, `cause`, `errors` and `value` is an excerpt: data that crosses, within 64 KiB, 64 properties, 16
    errors of an aggregate and 8 causes of causes.

    `__cause__` is never the script's: it is the Python exception of the host function whose error the script did not
    handle, if that is what happened.

    Attributes:
        name: The error's `name`, such as `"TypeError"`; `""` when something else than an `Error` was thrown.
        message: The error's `message`, or the text of what was thrown.
        stack: The engine's stack text.
        frames: The stack, innermost first. A script that does not parse has one frame: where it is wrong.
        value: What was thrown, when that is no `Error` and crosses; else `pydeno.undefined`.
        properties: The error's other own enumerable properties, such as `code`.
        cause: The error's `cause`: a `JavaScriptError`, or the value of what is no `Error`; `None` without one.
        errors: The `errors` of an `AggregateError`, each like `cause`.
    """

    kind = "js_error"
    name: str = ""
    message: str = ""
    stack: str = ""
    frames: list[Frame]
    value: Any = undefined
    properties: dict[str, Any]
    cause: Any = None
    errors: list[Any]

    def format(self) -> str:
        """The error, its stack and its causes as lines to print; at most 64 Ki characters.

        Each frame is a line `    at function (file:line:column)`. Further lines of a message begin with `  | `, so that
        a message cannot pass for frames.
        """
        from ._report import report

        return report(self)


class ConversionError(PydenoError, TypeError):
    """A value cannot cross between JavaScript and Python. The runtime survives.

    Attributes:
        path: Where it stands, from the value's root: `$.items[3].x`.
    """

    kind = "invalid_input"
    path: str = "$"


class InvalidInput(PydenoError, ValueError):
    """An argument is outside what can be asked for, or the call is not possible here. The runtime survives."""

    kind = "invalid_input"


class RuntimeTimeout(PydenoError, TimeoutError):
    """The script did not end within `timeout`, or the evaluation within `request_timeout`.

    A script that the engine could stop leaves the runtime usable (`runtime_survives` is true); one that had to be
    killed with its worker does not.
    """

    kind = "timeout"


class HostCallBudgetExceeded(PydenoError):
    """The script called more host functions in one evaluation than `max_host_calls`. The runtime survives."""

    kind = "host_call_budget"


class InflightLimitExceeded(PydenoError):
    """The script had more async host functions under way than `max_inflight_host_calls`. The runtime survives."""

    kind = "inflight_limit"


class HostWaitExceeded(PydenoError, TimeoutError):
    """The script waited for host functions longer than `max_host_wait` in one evaluation. The runtime survives."""

    kind = "host_wait"


class StreamLimitExceeded(PydenoError):
    """A stream had more items than `JsStream.limit` allows, and has been ended. The runtime survives."""

    kind = "stream_limit"
    runtime_survives = True


class EvaluationCancelled(PydenoError):
    """The evaluation was stopped because its caller asked for it. The runtime survives."""

    kind = "cancelled"


class GateDenied(PydenoError):
    """The runtime's gate does not allow the source. Nothing of it has run; the runtime survives.

    Attributes:
        verdict: What the gate said.
    """

    kind = "gate_denied"
    verdict: Verdict


class GateUnavailable(PydenoError):
    """The runtime's gate gave no verdict: it failed, was too slow or answered something else.

    Nothing of the source has run; the runtime survives. What the gate raised is the cause.
    """

    kind = "gate_unavailable"


class RuntimeTerminated(PydenoError):
    """The runtime was terminated, by another thread or before the call. It is closed."""

    kind = "terminated"


class RuntimeClosed(RuntimeTerminated):
    """The runtime is closed."""

    kind = "closed"


class CheckoutTimeout(PydenoError, TimeoutError):
    """No worker of the pool became free within `checkout_timeout`. The pool and its runtimes survive."""

    kind = "checkout_timeout"


class EngineUnavailable(PydenoError):
    """JavaScriptCore cannot be loaded; the message names the package to install. No script has run."""

    kind = "engine_unavailable"


class WorkerCrashed(PydenoError):
    """The worker died, was killed or could not be started. The runtime, if there was one, is closed.

    Attributes:
        started: Whether there was a worker.
        signal: The signal that ended it, such as 9 (`SIGKILL`); `None` when that is not known or it was none.
        exit_code: What it exited with; `None` likewise.
    """

    kind = "worker_crashed"
    started: bool = True
    signal: int | None = None
    exit_code: int | None = None


class MemoryLimitExceeded(WorkerCrashed):
    """The worker's memory passed `max_memory` and it was killed, or the script's heap passed `max_heap_size`.

    In the second case the script was only stopped and the runtime survives (`runtime_survives` is true).
    """

    kind = "memory_limit"


class CpuLimitExceeded(WorkerCrashed):
    """The worker used more CPU time than its request may. The runtime is closed."""

    kind = "cpu_limit"


class ThreadLimitExceeded(WorkerCrashed):
    """The worker ran more threads than its JIT tier has any use for. The runtime is closed."""

    kind = "thread_limit"


class LimitsUnmeasurable(WorkerCrashed):
    """The worker's use of memory and time cannot be read, so it was killed. The runtime is closed."""

    kind = "limits_unmeasurable"


class SandboxViolation(WorkerCrashed):
    """The kernel killed the worker for a system call it never has a reason to make. The runtime is closed."""

    kind = "sandbox_violation"


class ProtocolViolation(WorkerCrashed):
    """The worker did not follow the protocol and was killed. The runtime is closed."""

    kind = "protocol_violation"


class SandboxUnavailable(WorkerCrashed):
    """A layer of the sandbox that was asked for is not in force on this machine. No script has run.

    Attributes:
        layers: `(name, applied, detail, fix)` for each layer, as the worker found it.
    """

    kind = "sandbox_unavailable"
    layers: list[tuple[str, bool, str, str]]


_CLASSES: dict[str, type[PydenoError]] = {
    # A conversion's kind is `invalid_input`, like that of other arguments that cannot be taken.
    "conversion": ConversionError,
    **{
        cls.kind: cls
        for cls in (
            JavaScriptError,
            InvalidInput,
            RuntimeTimeout,
            HostCallBudgetExceeded,
            InflightLimitExceeded,
            HostWaitExceeded,
            EvaluationCancelled,
            RuntimeTerminated,
            RuntimeClosed,
            CheckoutTimeout,
            EngineUnavailable,
            WorkerCrashed,
            MemoryLimitExceeded,
            CpuLimitExceeded,
            ThreadLimitExceeded,
            LimitsUnmeasurable,
            SandboxViolation,
            ProtocolViolation,
            SandboxUnavailable,
        )
    },
}


def register(*classes: type[PydenoError]) -> None:
    """Have `from_core` use more classes."""
    _CLASSES.update({cls.kind: cls for cls in classes})


def from_core(kind: str, message: str, runtime_survives: bool, data: dict[str, Any]) -> PydenoError:  # noqa: FBT001
    """Make the exception for an error of the core; the extension module calls it."""
    error = _CLASSES.get(kind, PydenoError)(message)
    error.runtime_survives = runtime_survives
    frames = data.pop("frames", None)
    if isinstance(error, JavaScriptError):
        error.frames = [Frame(*frame) for frame in frames or ()]
        error.message = message
        error.properties = {}
        error.errors = []
    for name, value in data.items():
        setattr(error, name, value)
    return error
