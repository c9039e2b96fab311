"""What a runtime has before any guest code: the interfaces of the web, and the host's own script."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final


class WebPolyfills:
    """The type of `WEB_POLYFILLS`, of which there is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show the name that it is imported by."""
        return "pydeno.WEB_POLYFILLS"

    def __reduce__(self) -> str:
        """Copies are the same object, and so is what comes back from a pickle."""
        return "WEB_POLYFILLS"


#: As a `bootstrap`, or one of several: timers on a time of their own, `URL`, `URLSearchParams`, `TextEncoder`,
#: `TextDecoder`, `structuredClone`, `Event`, `EventTarget`, `AbortController`, `AbortSignal`, `DOMException`, `Blob`,
#: `File`, `FileReader`, `queueMicrotask`, `console`, `atob`, `btoa`, `performance`, `crypto` and `self`.
WEB_POLYFILLS: Final = WebPolyfills()


def checked(bootstrap: object) -> str | WebPolyfills | tuple[str | WebPolyfills, ...] | None:
    """A bootstrap that can be used, with a list of several made immutable."""
    if bootstrap is None or isinstance(bootstrap, (str, WebPolyfills)):
        return bootstrap
    if not isinstance(bootstrap, (list, tuple)):
        raise TypeError(
            f"bootstrap must be str, WEB_POLYFILLS or a list of them, not {type(bootstrap).__name__}; "
            "decode bytes first"
        )
    for part in bootstrap:
        if not isinstance(part, (str, WebPolyfills)):
            raise TypeError(f"bootstrap must hold str and WEB_POLYFILLS, not {type(part).__name__}")
    return tuple(bootstrap)


def wants_web(bootstrap: str | WebPolyfills | Sequence[str | WebPolyfills] | None) -> bool:
    """Whether the interfaces of the web are among it."""
    if bootstrap is None or isinstance(bootstrap, str):
        return False
    return isinstance(bootstrap, WebPolyfills) or any(isinstance(part, WebPolyfills) for part in bootstrap)


def script_of(bootstrap: str | WebPolyfills | Sequence[str | WebPolyfills] | None) -> str | None:
    """What of it is to be evaluated, as one script."""
    if bootstrap is None or isinstance(bootstrap, str):
        return bootstrap
    if isinstance(bootstrap, WebPolyfills):
        return None
    scripts = [part for part in bootstrap if isinstance(part, str)]
    # The semicolon ends a statement that the next script could otherwise go on with.
    return "\n;\n".join(scripts) if scripts else None
