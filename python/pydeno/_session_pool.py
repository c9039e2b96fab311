"""`SessionPool`: agents' sessions by name, with their journals in a store and a bounded number of workers."""

from __future__ import annotations

import threading
import time

from ._agent import AgentSandbox
from ._closing import Closing
from ._config import seconds
from ._pooled_session import Checkout, PooledBase
from ._session_shelf import SessionPoolBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, TypeVar
    from weakref import ReferenceType

    from ._session_shelf import PoolTools, VersionCounter
    from ._session_store import SessionStore
    from ._tools import Tools

    T = TypeVar("T")


class PooledSession(PooledBase, AgentSandbox):
    """An `AgentSandbox` of a `SessionPool`, for as long as the `with` block of `SessionPool.session` goes on."""

    __slots__ = ("_checkout",)

    def __init__(self, tools: Tools, *, _checkout: Checkout, **options: Any) -> None:
        """Start a worker; a pool does."""
        self._checkout = _checkout
        super().__init__(tools, **options)

    def save(self) -> None:
        """Store the session now, and not only at the end of the block.

        Raises:
            VersionConflict: Another process has stored it since it was read.
            JournalError: It has outgrown `max_journal_bytes`.
            InvalidInput: The store has no room, or a run goes on.
        """
        checkout = self._checked_out()
        checkout.pool.drive(checkout.pool.save(checkout))


class SessionPool(SessionPoolBase, Closing):
    """Agents' sessions by name, which outlive their process: journals in a store, few workers for many sessions.

    A session is used by one `with` block at a time, whichever process it is in, under a lease that is renewed
    meanwhile. At the end of the block it is stored. Its worker stays for the next use, which takes it if nobody has
    stored the session since; else the journal is replayed in a fresh one. What tools cost (`max_tool_calls`,
    `tool_budgets`) is stored before each call: after a crash the session is where it was stored last, and what it has
    spent since stays spent.

    Args:
        store: Where sessions are kept: a `SessionStore`, or the path of an SQLite database.
        keys: At least 16 secret bytes, or a list of such keys: the first signs, any opens. To change keys put the new
            one first, and drop the old one once every session has been stored again or has expired.
        tools: As for `AgentSandbox`, or a function that makes the tools of the session with a name.
        max_live: How many workers there are at a time. Idle ones are closed for others, the one used longest ago first.
        max_idle: How long a worker is kept that nobody uses, in seconds.
        checkout_timeout: How long to wait for a session that is used elsewhere, or for a worker, in seconds.
        lease: How long a session is another's after its process has died, in seconds.
        counter: Where the newest versions are kept apart from the store, such as an `SQLiteVersionCounter`. With it a
            store that was put back as a whole is noticed; without it, only by a process that has seen a newer one.
        associated_data: What journals are tied to besides their names, such as the name of the service.
        **options: As for `AgentSandbox`. Sessions are durable.

    Raises:
        InvalidInput: An option is not what it must be.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "sessions.db")
    >>> with SessionPool(path, b"32 secret bytes, from your vault") as pool:
    ...     with pool.session("user 7") as session:
    ...         _ = session.run("globalThis.n = 41")
    ...     with pool.session("user 7") as session:
    ...         session.run("n + 1")
    42
    """

    __slots__ = ("_changed", "_keeper", "_stop")

    def __init__(
        self,
        store: SessionStore | str | os.PathLike[str],
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
        self._changed = threading.Condition(self._lock)
        self._keeper: threading.Thread | None = None
        self._stop = threading.Event()

    def session(self, session_id: str, *, checkout_timeout: float | None = None) -> _Block:
        """A context manager that has the session with this name, made where there is none, and stores it at its end.

        An error of the block does not keep the session from being stored: it is where its last run left it.

        Args:
            session_id: The session's name, up to 512 bytes of UTF-8.
            checkout_timeout: How long to wait for it, where that is not the pool's.

        Raises:
            CheckoutTimeout: It is used elsewhere, or all workers are. Nothing has changed.
            JournalError: It was changed in the store, is older than what was seen before, or is of another build or
                of other options.
            ReplayDivergence: As `AgentSandbox.load`.
            VersionConflict: At the end: another process has stored it, and what was done here is lost.
            RuntimeClosed: The pool is closed.
            Exception: What the store raises, and as `AgentSandbox`.
        """
        timeout = None if checkout_timeout is None else seconds(checkout_timeout, "checkout_timeout")
        return _Block(self, session_id, timeout)

    def delete(self, session_id: str) -> bool:
        """Delete a session from the store, with what it has spent; whether there was one.

        Where it is in use, that use ends with a `VersionConflict`.
        """
        return self.drive(self._delete(session_id))

    def close(self) -> None:
        """Close the idle workers; sessions in use are stored at the end of their blocks. A second time does nothing."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._stop.set()
        self.drive(self._close())

    def drive(self, steps: Generator[Callable[[], Any], Any, T]) -> T:
        """Take the steps of something, one after the other, on this thread."""
        try:
            step = next(steps)
            while True:
                try:
                    result = step()
                except BaseException as error:  # noqa: BLE001, PERF203 - the steps decide
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def whole(self, steps: Generator[Callable[[], Any], Any, T]) -> T:
        """Take all steps of something short."""
        return self.drive(steps)

    def _wait(self, seen: int, timeout: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn != seen, timeout)

    def _wake(self) -> None:
        self._changed.notify_all()

    def _start_keeper(self) -> None:
        if self._keeper is None:
            import weakref

            target = (weakref.ref(self), self._stop, self.keeper_period)
            self._keeper = threading.Thread(target=_keep, args=target, name="pydeno-sessions", daemon=True)
            self._keeper.start()

    def _make(self, session_id: str, **loaded: Any) -> PooledSession:
        return PooledSession(self._tools_of(session_id), **loaded, **self._options)


class _Block:
    """One use of a session."""

    __slots__ = ("_checkout", "_pool", "_session_id", "_timeout")

    def __init__(self, pool: SessionPool, session_id: str, timeout: float | None) -> None:
        self._pool = pool
        self._session_id = session_id
        self._timeout = timeout
        self._checkout: Checkout | None = None

    def __enter__(self) -> PooledSession:
        """Wait for the session."""
        self._checkout = self._pool.drive(self._pool.check_out(self._session_id, self._timeout))
        session = self._checkout.session
        assert isinstance(session, PooledSession)  # noqa: S101 - it is the pool's own
        return session

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Store it and give it back."""
        checkout, self._checkout = self._checkout, None
        if checkout is not None:
            self._pool.drive(self._pool.check_in(checkout))


def _keep(pool_of: ReferenceType[SessionPool], stop: threading.Event, period: float) -> None:
    """Renew leases and close what is idle for long, until the pool is closed or gone."""
    while not stop.wait(period):
        pool = pool_of()
        if pool is None:
            return
        pool.drive(pool.keep(time.monotonic()))
        del pool
