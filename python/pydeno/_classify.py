"""`classify_error()`: what an exception means for a program that has to go on."""

from __future__ import annotations

import sys

from ._errors import PydenoError
from ._status import _Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Signals by which others end a process: SIGHUP, SIGINT, SIGKILL (the kernel sends it for lack of memory), SIGTERM.
#: A worker's filter lets it send none of them, and a crash of the engine is another one.
_FROM_OUTSIDE = frozenset({1, 2, 9, 15})


class ErrorInfo(_Frozen):
    """What `classify_error` says. Immutable.

    Attributes:
        kind: The stable name of what went wrong, such as `"timeout"`; `"unknown"` for what pydeno does not know.
        retryable: Whether the same call may well succeed when it is made again, because what failed was around it: the
            machine, not the script and not the configuration.
        summary: One fixed sentence that says what to do. It holds nothing of the script's and is safe to print.
        retry_with_larger_limits: Whether a limit of the caller's choosing was reached, so that a larger one helps if
            the work is legitimate.

    >>> classify_error(TimeoutError()).kind
    'timeout'
    """

    __slots__ = ("kind", "retry_with_larger_limits", "retryable", "summary")

    kind: str
    retryable: bool
    summary: str
    retry_with_larger_limits: bool

    def __init__(self, kind: str, retryable: bool, summary: str, retry_with_larger_limits: bool) -> None:  # noqa: FBT001
        """Make one; pydeno does."""
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "retryable", retryable)
        object.__setattr__(self, "summary", summary)
        object.__setattr__(self, "retry_with_larger_limits", retry_with_larger_limits)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Pickle by the arguments in their order."""
        return type(self), (self.kind, self.retryable, self.summary, self.retry_with_larger_limits)

    def __repr__(self) -> str:
        """Show what matters."""
        return (
            f"ErrorInfo({self.kind!r}, retryable={self.retryable}, "
            f"retry_with_larger_limits={self.retry_with_larger_limits})"
        )

    def to_dict(self) -> dict[str, str | bool]:
        """The same as plain JSON."""
        return {
            "kind": self.kind,
            "retryable": self.retryable,
            "summary": self.summary,
            "retry_with_larger_limits": self.retry_with_larger_limits,
        }


def _table(*rows: tuple[str, str, str]) -> dict[str, ErrorInfo]:
    return {
        kind: ErrorInfo(kind, advice == "again", summary, advice == "larger")
        for kind, advice, summary in rows
    }


#: Every kind: its name, what is worth trying ("again" the same, "larger" limits, "" neither) and its summary.
INFO: dict[str, ErrorInfo] = _table(
    ("js_error", "", "The script failed by itself; mend the script, its error says where."),
    (
        "timeout",
        "larger",
        "A time limit passed; make the work smaller, or raise `timeout` or `request_timeout`.",
    ),
    ("cpu_limit", "larger", "The worker used too much CPU time; make the work smaller, or raise `timeout`."),
    (
        "memory_limit",
        "larger",
        "A memory limit was reached; make the work smaller, or raise `max_memory` or `max_heap_size`.",
    ),
    # No option sets it: an honest engine never comes near.
    ("thread_limit", "", "The worker ran more threads than an engine needs; treat the script as hostile."),
    # Only where it was killed from outside or never ran: a crash of the engine comes from the script, and comes again.
    (
        "worker_crashed",
        "",
        "The worker crashed, most likely on this script; do not run it again, and report it.",
    ),
    (
        "checkout_timeout",
        "again",
        "No worker of the pool became free in time; try again, or make the pool larger.",
    ),
    ("terminated", "", "The runtime was terminated on request; make a new one if there is more to do."),
    (
        "host_wait",
        "larger",
        "The host functions took too long together; make them faster, or raise `max_host_wait`.",
    ),
    ("max_pause", "larger", "The session was paused for too long; resume it sooner, or raise `max_pause`."),
    (
        "host_call_budget",
        "larger",
        "The script called too many host functions; have it call fewer, or raise `max_host_calls`.",
    ),
    (
        "inflight_limit",
        "larger",
        "The script made too many calls at once; have it await some first, or raise `max_inflight_host_calls`.",
    ),
    (
        "stream_limit",
        "larger",
        "The script's stream has too many items; have it give fewer, or raise its limit.",
    ),
    (
        "tool_budget",
        "larger",
        "The session has spent its tool calls; have it call fewer, or raise `max_tool_calls`.",
    ),
    (
        "tool_not_found",
        "",
        "The script called a tool that does not exist; tell its author which tools there are.",
    ),
    (
        "tool_failed",
        "",
        "A tool raised an exception, which is the cause; mend the tool or what it was given.",
    ),
    ("protocol_violation", "", "The worker broke the protocol and was killed; treat the script as hostile."),
    # The machine has to change first, and does not by itself.
    (
        "sandbox_unavailable",
        "",
        "This machine cannot apply the sandbox that was asked for; see `pydeno doctor` for what would fix it.",
    ),
    (
        "sandbox_violation",
        "",
        "The worker made a forbidden system call and was killed; treat the script as hostile.",
    ),
    (
        "limits_unmeasurable",
        "",
        "The worker cannot be measured, so its limits cannot be kept; make /proc readable for this user.",
    ),
    ("engine_unavailable", "", "JavaScriptCore cannot be loaded; install the package that the error names."),
    ("closed", "", "The runtime is closed; make a new one."),
    (
        "journal_invalid",
        "",
        "The session's record is damaged or was signed with another key; begin a new session.",
    ),
    ("replay_divergence", "", "The session did not replay as it was recorded; begin a new session."),
    (
        "invalid_input",
        "",
        "An argument or a value cannot be taken; the error says which, and what would be right.",
    ),
    ("cancelled", "", "The evaluation was cancelled on request; nothing is wrong with it."),
    ("gate_denied", "", "The gate does not allow this source; its verdict says why."),
    (
        "gate_unavailable",
        "again",
        "The gate gave no verdict, so nothing ran; try again, or see why the gate fails.",
    ),
    ("unknown", "", "This is no error of pydeno's; see the exception itself."),
)

_KILLED_FROM_OUTSIDE = ErrorInfo(
    "worker_crashed",
    True,
    "The worker was killed from outside, perhaps for lack of memory on this machine; try again with a new runtime.",
    False,
)
_NOT_STARTED = ErrorInfo(
    "worker_crashed",
    True,
    "The worker could not be started, and no script has run; see the error, free what is short, and try again.",
    False,
)
#: Exceptions of Python that mean one of the kinds. Those of modules that may not be loaded are looked up by name.
_BUILTIN: tuple[tuple[type[BaseException], str], ...] = (
    (TimeoutError, "timeout"),
    (MemoryError, "memory_limit"),
    (KeyboardInterrupt, "cancelled"),
)
_LOADED: tuple[tuple[str, str, str], ...] = (
    ("asyncio.exceptions", "CancelledError", "cancelled"),
    ("asyncio.exceptions", "TimeoutError", "timeout"),
    ("concurrent.futures._base", "CancelledError", "cancelled"),
    ("concurrent.futures._base", "TimeoutError", "timeout"),
)
# What `__mro__` and `__dict__` are, whatever a metaclass or a class says.
_bases_of = type.__dict__["__mro__"].__get__
_namespace_of = type.__dict__["__dict__"].__get__
_fields_of = BaseException.__dict__["__dict__"].__get__


def classify_error(exc: object) -> ErrorInfo:
    """Say what kind of failure an exception is, and whether trying again makes sense.

    Never raises, whatever it is given. It reads classes and fields alone, never a message, which a script could have
    written, and runs no code of the exception's: not its properties, nor its `__class__`.

    >>> from pydeno import JavaScriptError, Runtime
    >>> try:
    ...     Runtime().eval("null.x")
    ... except JavaScriptError as error:
    ...     classify_error(error).kind
    'js_error'
    """
    try:
        return _classify(exc)
    except Exception:  # noqa: BLE001 - fields are a dict, and a key of it may compare itself with an error
        return INFO["unknown"]


def _classify(exc: object) -> ErrorInfo:
    cls = type(exc)
    if issubclass(cls, PydenoError):
        fields = _fields_of(exc)
        info = INFO.get(_kind_of(cls, fields), INFO["unknown"])
        return _crash(fields) if info.kind == "worker_crashed" else info
    for known, kind in _BUILTIN:
        if issubclass(cls, known):
            return INFO[kind]
    for module, name, kind in _LOADED:
        loaded = getattr(sys.modules.get(module), name, None)
        if isinstance(loaded, type) and issubclass(cls, loaded):
            return INFO[kind]
    return INFO["unknown"]


def _crash(fields: dict[str, Any]) -> ErrorInfo:
    """By what the host saw of the worker's end."""
    if fields.get("started") is False:
        return _NOT_STARTED
    signal = fields.get("signal")
    if type(signal) is int and signal in _FROM_OUTSIDE:
        return _KILLED_FROM_OUTSIDE
    return INFO["worker_crashed"]


def _kind_of(cls: type, fields: dict[str, Any]) -> str:
    """The exception's `kind`. What is no plain text, such as a property of a subclass, does not count."""
    for namespace in (fields, *map(_namespace_of, _bases_of(cls))):
        kind = namespace.get("kind")
        if type(kind) is str:
            return kind
    return "unknown"
