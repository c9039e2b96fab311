"""`JavaScriptError.format()`: an error of a script as lines for a person."""

from __future__ import annotations

from ._errors import JavaScriptError
from ._pydeno import display_safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._errors import Frame

#: The longest report.
_CHARACTERS = 64 << 10
#: The longest message, in bytes, and the longest name of a function or a file.
_MESSAGE_BYTES = 16 << 10
_NAME_BYTES = 256
#: How many frames of one error are shown, and how many errors.
_FRAMES = 64
_ERRORS = 16


def report(error: JavaScriptError) -> str:
    """The error with its stack, what it is made of and what caused it. Safe to print and bounded."""
    text = "\n".join(_lines(error, "", [_ERRORS]))
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def _lines(error: object, prefix: str, left: list[int]) -> Iterator[str]:
    if left[0] == 0:
        return
    left[0] -= 1
    if not isinstance(error, JavaScriptError):
        yield prefix + _shown(repr(error), _NAME_BYTES)
        return
    first, *rest = _head(error).split("\n")
    yield prefix + first
    yield from (f"  | {line}" for line in rest)
    yield from (f"    at {_place(frame)}" for frame in error.frames[:_FRAMES])
    if len(error.frames) > _FRAMES:
        yield f"    ... {len(error.frames) - _FRAMES} more"
    for number, inner in enumerate(error.errors, 1):
        yield from _lines(inner, f"error {number}: ", left)
    if error.cause is not None:
        yield from _lines(error.cause, "caused by: ", left)


def _head(error: JavaScriptError) -> str:
    name = _shown(error.name, _NAME_BYTES)
    message = display_safe(error.message, _MESSAGE_BYTES)
    return f"{name}: {message}" if name and message else name or message


def _place(frame: Frame) -> str:
    function, file = _shown(frame.function, _NAME_BYTES), _shown(frame.file, _NAME_BYTES)
    if frame.line:
        file += f":{frame.line}" + (f":{frame.column}" if frame.column else "")
    return f"{function} ({file})" if function and file else function or file or "native code"


def _shown(text: str, max_bytes: int) -> str:
    """A text in one line."""
    return " ".join(display_safe(text, max_bytes).split())
