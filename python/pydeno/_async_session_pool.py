"""`AsyncSessionPool`: agents' sessions by name, on asyncio."""

from __future__ import annotations

import asyncio
import inspect
import time

from ._async_agent import AsyncAgentSandbox
from ._config import is_async, seconds
from ._pooled_session import Checkout, PooledBase
from ._session_shelf import SessionPoolBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from types import TracebackType
    from typing import Any, TypeVar
    from weakref import ReferenceType

    from ._session_shelf import PoolTools, VersionCounter
    from ._session_store import AsyncSessionStore, SessionStore
    from ._tools import Tools

    T = TypeVar("T")
    Self = TypeVar("Self", bound="AsyncSessionPool")


class AsyncPooledSession(PooledBase, AsyncAgentSandbox):
    """An `AsyncAgentSandbox` of an `AsyncSessionPool`, for as long as the `async with` block goes on."""

    __slots__ = ("_checkout",)

    def __init__(self, tools: Tools, *, _checkout: Checkout, **options: Any) -> None:
        """Check the options; a pool does."""
        self._checkout = _checkout
        super().__init__(tools, **options)

    async def save(self) -> None:
        """Store the session now, and not only at the end of the block; as `PooledSession.save`."""
        checkout = self._checked_out()
        await checkout.pool.whole(checkout.pool.save(checkout))

    async def start_worker(self) -> None:
        """Do nothing: a pool has started it."""
        self._checked_out()
        await super().start_worker()


class AsyncSessionPool(SessionPoolBase):
    """Agents' sessions by name on the running asyncio event loop; otherwise as `SessionPool`, whose options it has.

    The methods of the store may be coroutines (`AsyncSessionStore`). Those that are not are called on a thread, as
    are those of the database that a path names; so is `counter`.
    """

    __slots__ = ("_keeper", "_waiting")

    def __init__(
        self,
        store: AsyncSessionStore | SessionStore | str | os.PathLike[str],
        keys: bytes | Sequence[bytes],
        *,
        tools: PoolTools = (),
        max_live: int = 64,
        max_idle: float = 300.0,
        checkout_timeout: float = 30.0,
        lease: float = 15.0,
        counter: VersionCounter | None = None,
        associated_data: bytes = b"",
        **options: Any,
    ) -> None:
        """Check the options; no worker is started."""
        super().__init__(
            store,
            keys,
            tools=tools,
            max_live=max_live,
            max_idle=max_idle,
            checkout_timeout=checkout_timeout,
            lease=lease,
            counter=counter,
            associated_data=associated_data,
            **options,
        )
        self._store = _OffLoop(self._store)
        self._counter = None if counter is None else _OffLoop(counter)
        self._waiting: set[asyncio.Future[None]] = set()
        self._keeper: asyncio.Task[None] | None = None

    def session(self, session_id: str, *, checkout_timeout: float | None = None) -> _Block:
        """An async context manager that has the session with this name, as `SessionPool.session`.

        Where the task is cancelled, the session is stored as far as its last run left it.
        """
        timeout = None if checkout_timeout is None else seconds(checkout_timeout, "checkout_timeout")
        return _Block(self, session_id, timeout)

    async def delete(self, session_id: str) -> bool:
        """Delete a session from the store, as `SessionPool.delete`."""
        return await self.whole(self._delete(session_id))

    async def close(self) -> None:
        """Close the idle workers; sessions in use are stored at the end of their blocks."""
        self._is_closed = True
        self._turn += 1
        self._wake()
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
        await self.drive(self._close())

    async def drive(self, steps: Generator[Callable[[], Any], Any, T]) -> T:
        """Take the steps of something, one after the other, on the loop."""
        try:
            step = next(steps)
            while True:
                try:
                    result = step()
                    if inspect.isawaitable(result):
                        result = await result
                except BaseException as error:  # noqa: BLE001, PERF203 - the steps decide
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def whole(self, steps: Generator[Callable[[], Any], Any, T]) -> T:
        """Take all steps of something short, also where whoever waits for them is cancelled."""
        return await _whole(self.drive(steps))

    async def _wait(self, seen: int, timeout: float) -> None:
        if self._turn != seen:
            return
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(changed)
        try:
            await asyncio.wait({changed}, timeout=timeout)
        finally:
            self._waiting.discard(changed)

    def _wake(self) -> None:
        for changed in self._waiting:
            if not changed.done():
                changed.set_result(None)

    def _start_keeper(self) -> None:
        if self._keeper is None:
            import weakref

            keeper = _keep(weakref.ref(self), self.keeper_period)
            self._keeper = asyncio.get_running_loop().create_task(keeper)

    async def _make(self, session_id: str, **loaded: Any) -> AsyncPooledSession:
        session = AsyncPooledSession(self._tools_of(session_id), **loaded, **self._options)
        try:
            await session.start_worker()
        except BaseException:
            session.close()
            raise
        return session

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
        await self.close()


class _Block:
    """One use of a session."""

    __slots__ = ("_checkout", "_pool", "_session_id", "_timeout")

    def __init__(self, pool: AsyncSessionPool, session_id: str, timeout: float | None) -> None:
        self._pool = pool
        self._session_id = session_id
        self._timeout = timeout
        self._checkout: Checkout | None = None

    async def __aenter__(self) -> AsyncPooledSession:
        """Wait for the session."""
        self._checkout = await self._pool.drive(self._pool.check_out(self._session_id, self._timeout))
        session = self._checkout.session
        assert isinstance(session, AsyncPooledSession)  # noqa: S101 - it is the pool's own
        return session

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        """Store it and give it back."""
        checkout, self._checkout = self._checkout, None
        if checkout is not None:
            await self._pool.whole(self._pool.check_in(checkout))


class _OffLoop:
    """A store or a counter whose methods are coroutines, or are called on a thread; what was begun is waited for."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            if is_async(method):
                return await method(*arguments, **named)
            return await asyncio.to_thread(method, *arguments, **named)

        return lambda *arguments, **named: _whole(call(*arguments, **named))


async def _whole(work: Coroutine[Any, Any, T]) -> T:
    """Do a short piece of work to its end even where whoever waits for it is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:  # noqa: PERF203 - cancelled once more
                continue
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error from None
        raise


async def _keep(pool_of: ReferenceType[AsyncSessionPool], period: float) -> None:
    """Renew leases and close what is idle for long, until the pool is closed or gone."""
    while True:
        await asyncio.sleep(period)
        pool = pool_of()
        if pool is None:
            return
        await pool.drive(pool.keep(time.monotonic()))
        del pool
