"""`ExecutionResult`: an evaluation as data, for callers that hand the outcome on instead of handling exceptions."""

from __future__ import annotations

from ._errors import JavaScriptError, PydenoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._config import ConsoleLevel

#: How much of each stream `execute` keeps when nothing else is asked for, in code points.
MAX_OUTPUT = 64 << 10


class ExecutionResult:
    """What came of one execution. Immutable.

    Attributes:
        status: `"ok"`, or the kind of the error: `"js_error"`, `"timeout"`, `"memory_limit"`, ...
        stdout: What the script wrote with `console.debug`, `log` and `info`, a line each.
        stderr: What it wrote with `console.warn` and `error`, and its unhandled rejections.
        result: The value of the last expression; `None` when there is none.
        error: What went wrong in words that are safe to print; `None` when nothing did.
        error_type: The script's own error's name, such as `"TypeError"`, or else the class of pydeno's exception;
            `None` when nothing went wrong.
        truncated: Whether output was dropped because there was more than `max_output`, or than the 1 MiB that one
            evaluation of an isolated runtime may write. In the second case a last line of `stderr` says how much.
        exception: The exception that `eval` would have raised; `None` when nothing went wrong.
    """

    __slots__ = ("error", "error_type", "exception", "result", "status", "stderr", "stdout", "truncated")

    status: str
    stdout: str
    stderr: str
    result: Any
    error: str | None
    error_type: str | None
    truncated: bool
    exception: PydenoError | None

    def __init__(self, *, output: Output, result: Any, exception: PydenoError | None) -> None:
        """Put the parts together; pydeno does."""
        values = {
            "status": "ok" if exception is None else exception.kind,
            "stdout": output.stdout,
            "stderr": output.stderr,
            "result": result,
            "error": None if exception is None else str(exception),
            "error_type": None if exception is None else _type_of(exception),
            "truncated": output.truncated,
            "exception": exception,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: it is a record of what happened."""
        raise AttributeError(f"an ExecutionResult is immutable; {name} cannot be set")

    def __bool__(self) -> bool:
        """Whether it went well."""
        return self.exception is None

    def __repr__(self) -> str:
        """Show every field but the exception, which `error` tells of."""
        names = (name for name in self.__slots__ if name != "exception")
        return f"ExecutionResult({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def to_dict(self) -> dict[str, Any]:
        """Every field but the exception."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "exception"}


def _type_of(exception: PydenoError) -> str:
    name = exception.name if isinstance(exception, JavaScriptError) else ""
    return name or type(exception).__name__


class Output:
    """Collects console lines into two texts of bounded length."""

    __slots__ = ("_left", "_lines", "truncated")

    def __init__(self, max_output: int) -> None:
        self.truncated = False
        self._left = [max_output, max_output]
        self._lines: tuple[list[str], list[str]] = ([], [])

    def __call__(self, level: ConsoleLevel, text: str) -> None:
        """Take a line."""
        stream = int(level in ("warn", "error"))
        if self._left[stream] == 0:
            self.truncated = True
            return
        text += "\n"
        if len(text) > self._left[stream]:
            self.truncated = True
            text = text[: self._left[stream]]
        self._left[stream] -= len(text)
        self._lines[stream].append(text)

    @property
    def stdout(self) -> str:
        """What was written with the quieter methods."""
        return "".join(self._lines[0])

    @property
    def stderr(self) -> str:
        """What was written with the louder ones."""
        return "".join(self._lines[1])
