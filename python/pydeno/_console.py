"""What a script writes to its console, kept for whoever asks."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from ._config import ConsoleLevel
    from ._errors import JavaScriptError
    from ._execution import Output

#: How much console text is kept, in code points.
MAX_CAPTURED = 1 << 20
#: What a line counts beside its text, so that empty ones have a bound, too.
_LINE_COST = 64


class ConsoleLine:
    """One call of a `console` method.

    Attributes:
        level: `"debug"`, `"log"`, `"info"`, `"warn"` or `"error"`.
        text: The arguments as text, joined by a space. Exact: escape it before showing it on a terminal.
    """

    __slots__ = ("level", "text")

    def __init__(self, level: ConsoleLevel, text: str) -> None:
        """Make a line; pydeno does."""
        self.level = level
        self.text = text

    def __repr__(self) -> str:
        """Show both."""
        return f"ConsoleLine({self.level!r}, {self.text!r})"

    def __eq__(self, other: object) -> bool:
        """Compare both."""
        return isinstance(other, ConsoleLine) and (self.level, self.text) == (other.level, other.text)

    def __hash__(self) -> int:
        """Agree with `==`."""
        return hash((self.level, self.text))


class Console:
    """Where lines of one runtime go: to `on_console`, to the runtime's own list, and to `execute` while it runs."""

    __slots__ = ("_changing", "_kept", "_left", "_noted", "_sinks", "capture", "on_console", "truncated")

    def __init__(self, on_console: Callable[[ConsoleLevel, str], object] | None, *, capture: bool) -> None:
        self.on_console = on_console
        self.capture = capture
        self._changing = allocate_lock()
        self.truncated = False
        #: Whether a note of the core's has been kept since the last time.
        self._noted = False
        self._kept: list[ConsoleLine] = []
        self._left = MAX_CAPTURED
        #: Replaced and never changed: another thread may be going through it.
        self._sinks: tuple[Output, ...] = ()

    def __call__(self, level: ConsoleLevel | Literal["dropped"], text: str) -> None:
        """Take a line of the script's, or the note that some were dropped."""
        must_keep = False
        if level == "dropped":
            # Not a line of the script's: the core's note, the first of which is kept whatever there is before it.
            level = "warn"
            must_keep = not self._noted
            self._noted = self.truncated = True
            for sink in self._sinks:
                sink.truncated = True
        for sink in self._sinks:
            sink(level, text)
        if self.capture:
            cost = len(text) + _LINE_COST
            if cost > self._left and not must_keep:
                self.truncated = True
            else:
                self._left = max(0, self._left - cost)
                self._kept.append(ConsoleLine(level, text))
        if self.on_console is not None:
            self.on_console(level, text)

    def take(self) -> list[ConsoleLine]:
        """The lines since the last time, oldest first."""
        kept = self._kept
        self._kept = []
        self._left = MAX_CAPTURED
        self._noted = self.truncated = False
        return kept

    def add_sink(self, sink: Output) -> None:
        """Have `sink` called with each line, too."""
        with self._changing:
            self._sinks = (*self._sinks, sink)

    def remove_sink(self, sink: Output) -> None:
        """Undo `add_sink`."""
        with self._changing:
            self._sinks = tuple(other for other in self._sinks if other is not sink)

    def unhandled_rejection(self, error: JavaScriptError) -> None:
        """Report a rejection that nothing handled: on the console, or in the log if nobody reads it."""
        if self._sinks or self.capture or self.on_console is not None:
            self("error", f"Uncaught (in promise) {error}")
            return
        import logging

        logging.getLogger("pydeno").warning(
            "a script's promise was rejected and nothing handled it: %s", error
        )
