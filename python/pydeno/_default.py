"""One runtime for callers that want none of their own: `pydeno.eval("1 + 1")`.

It is an `IsolatedRuntime`, made when it is first needed, one a process. It keeps what scripts declare, so scripts that
must not see one another need runtimes of their own.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from ._config import check_host_function
from ._isolated import IsolatedRuntime
from ._runtime import DEFAULT_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._config import Language


class _Default:
    """The runtime of this process, and what the next one is to be made with."""

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self.process = os.getpid()
        self.runtime: IsolatedRuntime | None = None
        self.options: dict[str, Any] = {}
        self.functions: dict[str, Callable[..., object]] = {}


_default = _Default()


def _state() -> _Default:
    """The state of this process; a fork begins without a runtime, and with a lock that nobody holds."""
    global _default  # noqa: PLW0603
    if _default.process != os.getpid():
        forked = _Default()
        forked.options, forked.functions = _default.options, dict(_default.functions)
        _default = forked
    return _default


def _runtime() -> IsolatedRuntime:
    state = _state()
    with state.lock:
        if state.runtime is None or state.runtime.is_closed():
            state.runtime = _with_functions(state, state.options)
        return state.runtime


def _with_functions(state: _Default, options: dict[str, Any]) -> IsolatedRuntime:
    runtime = IsolatedRuntime(**options)
    for name, function in state.functions.items():
        runtime.bind_function(name, function)
    return runtime


def eval(  # noqa: A001 - it is `pydeno.eval`
    code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
) -> Any:
    """Evaluate a script in the default runtime, as `IsolatedRuntime.eval` does.

    The default runtime is made at the first use, and anew after its worker was lost: what scripts had declared is gone
    then, and what was bound is bound again.

    >>> import pydeno
    >>> pydeno.eval("[3, 1, 2].toSorted()")
    [1, 2, 3]
    """
    return _runtime().eval(code, name=name, language=language, redeclare=redeclare)


async def eval_async(
    code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
) -> Any:
    """Evaluate a script in the default runtime on the running event loop, as `IsolatedRuntime.eval_async` does."""
    import asyncio

    runtime = await asyncio.get_running_loop().run_in_executor(None, _runtime)
    return await runtime.eval_async(code, name=name, language=language, redeclare=redeclare)


def bind_function(name: str, function: Callable[..., object]) -> None:
    """Make a Python function a global function of the default runtime, as `IsolatedRuntime.bind_function` does."""
    check_host_function(name, function)
    state = _state()
    with state.lock:
        state.functions[name] = function
        runtime = state.runtime
    if runtime is not None and not runtime.is_closed():
        runtime.bind_function(name, function)


def configure_default_runtime(**options: Any) -> None:
    """Set the options that the default runtime is made with, those of `IsolatedRuntime`.

    A default runtime that runs is closed; functions that were bound with `pydeno.bind_function` stay bound.

    Raises:
        TypeError: There is no such option.
    """
    state = _state()
    with state.lock:
        replacement = _with_functions(state, options)
        previous, state.runtime, state.options = state.runtime, replacement, dict(options)
    if previous is not None:
        previous.close()
