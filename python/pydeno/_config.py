"""`RuntimeConfig`, and the checks of every option."""

from __future__ import annotations

import math

from . import _bootstrap
from ._errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from ._bootstrap import WebPolyfills

    ConsoleLevel = Literal["debug", "log", "info", "warn", "error"]
    Language = Literal["js", "ts"]

#: The longest time that may be asked for, in seconds: a year.
MAX_SECONDS = 366 * 86400.0
#: The farthest moment from 1970 that JavaScript's `Date` has, in seconds.
MAX_INSTANT = 8.64e12
#: The deepest value that is converted, whatever is asked for.
MAX_DEPTH = 512


class RuntimeConfig:
    """What `Runtime` and `IsolatedRuntime` have in common. Immutable.

    Args:
        timeout: How long a script may run in one evaluation, in seconds; time in host functions does not count. Past
            it the script is stopped and the runtime stays usable.
        max_heap_size: The engine's heap, in bytes. Past it the script is stopped and the runtime stays usable.
            `None`: 1 GiB, or `max_memory` where that is set.
        bootstrap: A script that every runtime with this configuration evaluates first. It is trusted: give it
            libraries, not guest code. `WEB_POLYFILLS` stands for timers, `URL` and other interfaces of the web, which
            then exist before any script; a list may hold it and scripts, which are evaluated as one, in their order.
        enable_console: Whether the script has `console`.
        on_console: Called with a level (`"debug"`, `"log"`, `"info"`, `"warn"` or `"error"`) and a line of text for
            each call of a `console` method; implies `enable_console`.
        max_serialization_depth: How deeply a value may be nested, either way; at most 512.
        max_serialization_bytes: The encoded size of one value, and of a source, in bytes.
        modules: What scripts can import, by name, as `add_static_module` takes it.
        max_modules: How many modules a script may import in the runtime's life.
        max_module_bytes: How long their sources may be in all, in bytes.

    Raises:
        InvalidInput: A number is out of range.
        TypeError: An argument has the wrong type.

    >>> RuntimeConfig(timeout=2).timeout
    2.0
    """

    __slots__ = (
        "bootstrap",
        "enable_console",
        "max_heap_size",
        "max_module_bytes",
        "max_modules",
        "max_serialization_bytes",
        "max_serialization_depth",
        "modules",
        "on_console",
        "timeout",
    )

    timeout: float
    max_heap_size: int | None
    bootstrap: str | WebPolyfills | tuple[str | WebPolyfills, ...] | None
    enable_console: bool
    on_console: Callable[[ConsoleLevel, str], object] | None
    max_serialization_depth: int
    max_serialization_bytes: int
    modules: Mapping[str, str | Mapping[str, object]]
    max_modules: int
    max_module_bytes: int

    def __init__(
        self,
        *,
        timeout: float = 30.0,
        max_heap_size: int | None = None,
        bootstrap: str | WebPolyfills | Sequence[str | WebPolyfills] | None = None,
        enable_console: bool = False,
        on_console: Callable[[ConsoleLevel, str], object] | None = None,
        max_serialization_depth: int = 100,
        max_serialization_bytes: int = 64 << 20,
        modules: Mapping[str, str | Mapping[str, object]] | None = None,
        max_modules: int = 10_000,
        max_module_bytes: int = 64 << 20,
    ) -> None:
        """Check and keep the options."""
        if on_console is not None:
            check_callable(on_console, "on_console")
        values: dict[str, Any] = {
            "timeout": seconds(timeout, "timeout"),
            "max_heap_size": None if max_heap_size is None else count(max_heap_size, "max_heap_size"),
            "bootstrap": _bootstrap.checked(bootstrap),
            "enable_console": flag(enable_console, "enable_console") or on_console is not None,
            "on_console": on_console,
            "max_serialization_depth": count(
                max_serialization_depth, "max_serialization_depth", most=MAX_DEPTH
            ),
            "max_serialization_bytes": count(
                max_serialization_bytes, "max_serialization_bytes", most=1 << 30
            ),
            "modules": {} if modules is None else dict(modules),
            "max_modules": count(max_modules, "max_modules"),
            "max_module_bytes": count(max_module_bytes, "max_module_bytes"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a runtime may already use the configuration."""
        raise AttributeError(f"RuntimeConfig is immutable; make a new one with another {name}")

    def __repr__(self) -> str:
        """Show every option."""
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"RuntimeConfig({fields})"


def core_options(config: RuntimeConfig, default_heap_size: int) -> dict[str, Any]:
    """The configuration in the core's words."""
    return {
        "timeout": config.timeout,
        "max_heap_size": config.max_heap_size or default_heap_size,
        "enable_console": config.enable_console,
        "web": _bootstrap.wants_web(config.bootstrap),
        "max_serialization_depth": config.max_serialization_depth,
        "max_serialization_bytes": config.max_serialization_bytes,
    }


def check_source(code: object, name: str) -> None:
    """Refuse what is not text."""
    if not isinstance(code, str):
        raise TypeError(f"{name} must be str, not {type(code).__name__}; decode it first")


def check_name(name: object) -> None:
    """Refuse what cannot stand in a stack: text with line feeds or lone surrogates."""
    if not isinstance(name, str):
        raise TypeError(f"name must be str, not {type(name).__name__}")
    if "\n" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise InvalidInput(f"the name of a script must be one line of well-formed text, not {name[:100]!r}")


def check_language(language: object) -> None:
    """Refuse what scripts cannot be written in."""
    if language not in ("js", "ts"):
        raise InvalidInput(f"language must be 'js' or 'ts', not {language!r}")


def check_callable(value: object, name: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, not {type(value).__name__}")


def check_identifier(name: object) -> None:
    """Refuse what is no name that a script can write."""
    if not isinstance(name, str):
        raise TypeError(f"the name must be str, not {type(name).__name__}")
    if not name.isidentifier() and not name.replace("$", "_").isidentifier():
        raise InvalidInput(f"{name!r} is not a JavaScript identifier")


def check_host_function(name: str, function: object) -> None:
    """Refuse what cannot be bound: a name that no script can write, or something that cannot be called."""
    check_identifier(name)
    check_callable(function, f"the function for {name!r}")


def is_async(function: object) -> bool:
    """Whether calling it gives an awaitable.

    Of an `async def` function, a method or a partial of one, and an object with an async `__call__`, it does.
    """
    while (inner := getattr(function, "func", None)) is not None and callable(inner):
        function = inner
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004 - it is read
    coroutine_flag = 0x80  # inspect.CO_COROUTINE
    return code is not None and bool(code.co_flags & coroutine_flag)


def exception_classes(value: object, name: str) -> tuple[type[Exception], ...] | None:
    """A tuple of exception classes, `None` when it is empty."""
    if not isinstance(value, tuple):
        raise TypeError(f"{name} must be a tuple of exception classes, not {type(value).__name__}")
    for entry in value:
        if not isinstance(entry, type) or not issubclass(entry, Exception):
            raise TypeError(f"{name} must hold subclasses of Exception, not {entry!r}")
    return value or None


def integer(value: object, name: str, *, least: int, most: int) -> int:
    """An integer within bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")
    if not least <= value <= most:
        raise InvalidInput(f"{name} must be from {least} to {most}, not {value}")
    return value


def instant(value: object, name: str) -> int | None:
    """A moment as milliseconds since 1970 in UTC, or `None`: from an aware `datetime` or a number of seconds."""
    from datetime import datetime, timedelta, timezone

    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidInput(
                f"{name} must have a time zone; give it one: value.replace(tzinfo=timezone.utc)"
            )
        return (value - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(milliseconds=1)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be an aware datetime or seconds since 1970, not {type(value).__name__}")
    if not (math.isfinite(value) and abs(value) <= MAX_INSTANT):
        raise InvalidInput(f"{name} must be within {MAX_INSTANT:.0f} seconds of 1970, not {value!r}")
    return math.floor(value * 1000)


def flag(value: object, name: str) -> bool:
    """A boolean, and nothing that only looks like one."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be bool, not {type(value).__name__}")
    return value


def seconds(value: object, name: str) -> float:
    """A positive finite time."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not (math.isfinite(value) and 0 < value <= MAX_SECONDS):
        raise InvalidInput(f"{name} must be more than 0 and at most {MAX_SECONDS:.0f} seconds, not {value!r}")
    return float(value)


def count(value: object, name: str, *, most: int = (1 << 63) - 1) -> int:
    """A positive integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be int, not {type(value).__name__}")
    if not 0 < value <= most:
        raise InvalidInput(f"{name} must be from 1 to {most}, not {value}")
    return value


def choice(value: object, name: str, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value
