"""`SandboxPool`: isolated runtimes that are ready before anybody asks for them."""

# ruff: noqa: SLF001 - a pool makes runtimes around their constructors

from __future__ import annotations

from ._async_isolated import AsyncIsolatedRuntime
from ._bootstrap import script_of
from ._closing import Closing
from ._config import count, flag, is_async, seconds
from ._console import Console
from ._errors import InvalidInput
from ._isolated import _WORKER, IsolatedBase, IsolatedRuntime, _shut_down_at_exit
from ._pydeno import Pool as PoolCore
from ._runtime import DEFAULT_NAME
from ._status import _Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from ._config import Language, RuntimeConfig
    from ._pydeno import IsolatedRuntime as IsolatedCore
    from ._ticket_window import TicketWindow

    F = TypeVar("F", bound=Callable[..., object])
    R = TypeVar("R", bound=IsolatedBase)
    Self = TypeVar("Self", bound="PoolBase")

#: The most workers that one pool may have.
_MOST = 100_000


class PoolStats(_Frozen):
    """What a pool has, and what has happened to it so far. Immutable.

    Attributes:
        ready: Workers that wait to be checked out.
        in_use: Workers that were checked out and have not ended.
        starting: Workers that confine themselves or run the bootstrap script.
        waiting: Callers that wait for a worker.
        created: Workers that became ready.
        checkouts: Workers that were handed out.
        waits: Checkouts that found none ready and waited.
        timeouts: Checkouts that waited in vain.
        failures: Workers that could not be started, or died before they were used.
    """

    __slots__ = (
        "checkouts",
        "created",
        "failures",
        "in_use",
        "ready",
        "starting",
        "timeouts",
        "waiting",
        "waits",
    )

    ready: int
    in_use: int
    starting: int
    waiting: int
    created: int
    checkouts: int
    waits: int
    timeouts: int
    failures: int

    def __init__(
        self,
        *,
        ready: int,
        in_use: int,
        starting: int,
        waiting: int,
        created: int,
        checkouts: int,
        waits: int,
        timeouts: int,
        failures: int,
    ) -> None:
        """Make a record; a pool does."""
        object.__setattr__(self, "ready", ready)
        object.__setattr__(self, "in_use", in_use)
        object.__setattr__(self, "starting", starting)
        object.__setattr__(self, "waiting", waiting)
        object.__setattr__(self, "created", created)
        object.__setattr__(self, "checkouts", checkouts)
        object.__setattr__(self, "waits", waits)
        object.__setattr__(self, "timeouts", timeouts)
        object.__setattr__(self, "failures", failures)

    def __repr__(self) -> str:
        """Show every field."""
        return f"PoolStats({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _stats_of, self._values()


def _stats_of(*values: int) -> PoolStats:
    return PoolStats(**dict(zip(PoolStats.__slots__, values, strict=True)))


class PoolBase:
    """What `SandboxPool` and `AsyncSandboxPool` have in common. The options are documented with `SandboxPool`."""

    __slots__ = ("__weakref__", "_checkout_timeout", "_core", "_prototype")

    def __init__(
        self,
        config: RuntimeConfig | None = None,
        *,
        size: int = 4,
        max_workers: int = 64,
        checkout_timeout: float = 30.0,
        template: bool = False,
        **options: Any,
    ) -> None:
        """Check the options and begin to start workers."""
        count(size, "size", most=_MOST)
        count(max_workers, "max_workers", most=_MOST)
        if size > max_workers:
            raise InvalidInput(f"size must be at most max_workers ({max_workers}), not {size}")
        self._checkout_timeout = seconds(checkout_timeout, "checkout_timeout")
        flag(template, "template")
        # It has every option of the runtimes, checked, and never a worker.
        self._prototype = IsolatedBase(config, **options)
        self._core = PoolCore(
            _WORKER,
            self._prototype._options,
            script_of(self._prototype.config.bootstrap),
            template,
            size,
            max_workers,
        )
        _shut_down_at_exit()

    def bind_function(self, name: str, function: Callable[..., object]) -> None:
        """Make a Python function a global function of every script, as `IsolatedRuntime.bind_function` does.

        It applies to runtimes that are checked out from now on. One function may then be called for several scripts at
        the same time.

        Raises:
            InvalidInput: The name is no identifier.
            RuntimeClosed: The pool is closed.
        """
        self._bind(None, {name: function})

    def bind(self, function: F) -> F:
        """Bind a function under its own name; for use as a decorator."""
        self.bind_function(function.__name__, function)
        return function

    def bind_object(self, name: str, functions: Mapping[str, Callable[..., object]]) -> None:
        """Make a global object of Python functions, as `IsolatedRuntime.bind_object` does."""
        self._prototype._check_bindings({name: dict})
        self._bind(name, functions)

    def _bind(self, holder: str | None, functions: Mapping[str, Callable[..., object]]) -> None:
        self._prototype._check_bindings(functions)
        asynchronous = [is_async(function) for function in functions.values()]
        # Before the first runtime can have one.
        self._prototype._asynchronous = self._prototype._asynchronous or any(asynchronous)
        self._core.bind(holder, list(functions), list(functions.values()), asynchronous)

    def _reports(self) -> tuple[Console, dict[str, Any]]:
        """A runtime's own console, and the options with it."""
        console = Console(self._prototype.config.on_console, capture=self._prototype._console.capture)
        options = self._prototype._options.copy()
        if options["enable_console"]:
            options["on_console"] = console
        options["on_unhandled_rejection"] = console.unhandled_rejection
        return console, options

    def _runtime(self, cls: type[R], core: IsolatedCore, console: Console, stacklevel: int) -> R:
        runtime = cls.__new__(cls)
        runtime._come_from(self._prototype, core, console, stacklevel + 1)
        return runtime

    def stats(self) -> PoolStats:
        """What the pool has, and what has happened to it so far.

        Raises:
            InvalidInput: The pool belongs to the process that this one was forked from.
        """
        ready, in_use, starting, waiting, created, checkouts, waits, timeouts, failures = self._core.stats()
        return PoolStats(
            ready=ready,
            in_use=in_use,
            starting=starting,
            waiting=waiting,
            created=created,
            checkouts=checkouts,
            waits=waits,
            timeouts=timeouts,
            failures=failures,
        )

    def close(self) -> None:
        """End the workers that are ready, and every wait for one with `RuntimeClosed`. A second time does nothing.

        Runtimes that were checked out go on until they are closed.
        """
        self._core.close()

    def is_closed(self) -> bool:
        """Whether the pool hands out no more runtimes."""
        return self._core.is_closed()

    def __repr__(self) -> str:
        """Say what it has."""
        if self.is_closed():
            return f"<pydeno.{type(self).__name__} closed>"
        stats = self.stats()
        return f"<pydeno.{type(self).__name__} ready={stats.ready} in_use={stats.in_use}>"


class SandboxPool(PoolBase, Closing):
    """Isolated runtimes that are ready ahead of time: forked, confined, limited, bound and bootstrapped.

    A checkout takes one from a queue. A worker serves one checkout and is never used for another; the pool starts its
    successor meanwhile. Any thread may use the pool. Those who have to wait are served in the order in which they came.

    Args:
        config: As for `IsolatedRuntime`. `bootstrap` is evaluated ahead, too; its console output reaches whoever checks
            the runtime out.
        size: How many workers to keep ready.
        max_workers: How many workers there may be in all: starting, ready, and checked out.
        checkout_timeout: How long a checkout waits for a worker, in seconds.
        template: Evaluate `bootstrap` once, in a confined process of which the workers are forks, so that one with a
            large library is ready as fast as an empty one. The script must be trusted and hold no secrets, and what it
            makes has the same addresses in every worker; `docs/pools.md` says what else they share. Only with
            `jit="off"`.
        options: Every other option of `IsolatedRuntime`.

    Raises:
        InvalidInput: An option is out of range, or `template` is not possible with the others.
        TypeError: There is no such option.
        WorkerCrashed: The system gives the pool no thread or no descriptor.

    A worker that cannot be started is an error of the checkout that needed it.

    >>> with SandboxPool(size=2) as pool:
    ...     pool.bind_function("double", lambda x: 2 * x)
    ...     with pool.checkout() as rt:
    ...         print(rt.eval("double(21)"))
    ...     pool.eval("6 * 7")
    42
    42
    """

    __slots__ = ()

    def checkout(self) -> IsolatedRuntime:
        """Take a runtime; it is the caller's to close, best with a `with` statement.

        One that is forgotten is closed by the garbage collector.

        Raises:
            CheckoutTimeout: None became free within `checkout_timeout`. The pool survives.
            RuntimeClosed: The pool is closed.
            InvalidInput: The pool belongs to the process that this one was forked from.
            SandboxUnavailable: A required layer is not in force.
            EngineUnavailable: JavaScriptCore is not installed.
            WorkerCrashed: A worker could not be started. The pool survives, and the next checkout tries again.
            JavaScriptError: The bootstrap script failed. As above.
        """
        return self._checkout(stacklevel=2)

    def _checkout(self, stacklevel: int) -> IsolatedRuntime:
        console, options = self._reports()
        core = self._core.take(options)
        if core is None:
            core = self._core.checkout(options, self._checkout_timeout)
        return self._runtime(IsolatedRuntime, core, console, stacklevel + 1)

    def eval(
        self, code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
    ) -> Any:
        """Evaluate a script in a runtime of its own, as `IsolatedRuntime.eval` does.

        Raises:
            Exception: As `checkout` and `IsolatedRuntime.eval`.
        """
        with self._checkout(stacklevel=2) as runtime:
            return runtime.eval(code, name=name, language=language, redeclare=redeclare)


class AsyncSandboxPool(PoolBase):
    """The same as `SandboxPool`, for asyncio: a checkout never holds up the event loop, and needs no thread.

    The options are those of `SandboxPool`. The pool belongs to the loop that waits for it.

    >>> import asyncio
    >>> async def main():
    ...     async with AsyncSandboxPool(size=2) as pool:
    ...         async with pool.checkout() as rt:
    ...             return await rt.eval("6 * 7")
    >>> asyncio.run(main())
    42
    """

    __slots__ = ("_window",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Check the options and begin to start workers."""
        super().__init__(*arguments, **options)
        self._window: TicketWindow | None = None

    def checkout(self) -> Checkout:
        """Take a runtime: `async with pool.checkout() as rt`, or `rt = await pool.checkout()` and close it.

        Raises:
            Exception: As `SandboxPool.checkout`, when it is awaited.
        """
        return Checkout(self)

    async def _checkout(self, stacklevel: int) -> AsyncIsolatedRuntime:
        console, options = self._reports()
        core = self._core.take(options)
        if core is None:
            core = await self._window_of_running_loop().wait(options, self._checkout_timeout)
        return self._runtime(AsyncIsolatedRuntime, core, console, stacklevel + 1)

    def _window_of_running_loop(self) -> TicketWindow:
        import asyncio

        from ._ticket_window import TicketWindow

        loop = asyncio.get_running_loop()
        if self._window is None or self._window.loop is not loop:
            if self._window is not None:
                self._window.abandon()
            self._window = TicketWindow(self._core, loop)
        return self._window

    async def eval(
        self, code: str, *, name: str = DEFAULT_NAME, language: Language = "js", redeclare: bool = False
    ) -> Any:
        """Evaluate a script in a runtime of its own, as `AsyncIsolatedRuntime.eval` does.

        Raises:
            Exception: As `checkout` and `AsyncIsolatedRuntime.eval`.
        """
        async with self.checkout() as runtime:
            return await runtime.eval(code, name=name, language=language, redeclare=redeclare)

    async def __aenter__(self: Self) -> Self:
        """Use the pool as a context manager that closes it."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the pool."""
        self.close()


class Checkout:
    """A checkout that has not been awaited; see `AsyncSandboxPool.checkout`."""

    __slots__ = ("_pool", "_runtime")

    def __init__(self, pool: AsyncSandboxPool) -> None:
        self._pool = pool
        self._runtime: AsyncIsolatedRuntime | None = None

    def __await__(self) -> Generator[Any, None, AsyncIsolatedRuntime]:
        """Take the runtime."""
        return self._pool._checkout(stacklevel=2).__await__()

    async def __aenter__(self) -> AsyncIsolatedRuntime:
        """Take the runtime, and close it at the end of the block."""
        self._runtime = await self._pool._checkout(stacklevel=2)
        return self._runtime

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the runtime."""
        if self._runtime is not None:
            self._runtime.close()
