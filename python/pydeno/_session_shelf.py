"""What `SessionPool` and `AsyncSessionPool` have in common: who has which session, and how it is got and kept.

The steps are generators of functions to call: a pool's driver calls each, or awaits what it returns, and sends the
result back. So leases, versions, notes and journals are handled once, and whether a store blocks is the driver's.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Protocol

from ._agent_errors import JournalError
from ._agent_session import AgentBase, as_bytes, as_keys
from ._config import count, seconds
from ._errors import CheckoutTimeout, InvalidInput, RuntimeClosed
from ._pooled_session import Checkout, PooledBase
from ._session_note import Note, bound
from ._session_store import check_session_id
from ._status import _Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, TypeAlias, TypeVar

    from ._agent_session import Spent
    from ._session_store import AsyncSessionStore, SessionStore, StoredSession
    from ._tools import Tools

    T = TypeVar("T")
    PoolTools: TypeAlias = "Tools | Callable[[str], Tools]"
    Steps: TypeAlias = "Generator[Callable[[], Any], Any, T]"

#: The shortest key that is taken, in bytes.
_SHORTEST_KEY = 16
#: How many sessions' newest versions a pool remembers.
_REMEMBERED = 100_000
#: How long to wait before a lease that another process has is asked for again, in seconds: first, and at most.
_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.5


class VersionCounter(Protocol):
    """Keeps the newest version of each session somewhere that a store which is put back does not take along."""

    def get(self, session_id: str) -> Any:
        """The newest version that was told, 0 when none was; an awaitable of it for `AsyncSessionPool`."""

    def advance(self, session_id: str, version: int) -> Any:
        """Take a version, durably, unless a newer one was told; an awaitable for `AsyncSessionPool`."""


class SessionPoolStats(_Frozen):
    """What a pool of sessions has, and what has happened to it so far. Immutable.

    Attributes:
        in_use: Sessions that are checked out, or are being loaded.
        idle: Workers that wait for the next use of their session.
        made: Sessions that did not exist before.
        loaded: Sessions whose journal was replayed.
        reused: Checkouts that found a worker with the session in it.
        stored: Journals that were stored.
        lost: Uses that ended without the session being stored.
    """

    __slots__ = ("idle", "in_use", "loaded", "lost", "made", "reused", "stored")

    in_use: int
    idle: int
    made: int
    loaded: int
    reused: int
    stored: int
    lost: int

    def __init__(self, **counts: int) -> None:
        """Make a record; a pool does."""
        for name in self.__slots__:
            object.__setattr__(self, name, counts[name])

    def __repr__(self) -> str:
        """Show every field."""
        return f"SessionPoolStats({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _stats_of, self._values()


def _stats_of(*values: int) -> SessionPoolStats:
    return SessionPoolStats(**dict(zip(SessionPoolStats.__slots__, values, strict=True)))


class SessionPoolBase:
    """What both kinds of pools do. The options are documented with `SessionPool`."""

    __slots__ = (
        "__weakref__",
        "_associated_data",
        "_checkout_timeout",
        "_counter",
        "_counts",
        "_idle",
        "_in_use",
        "_is_closed",
        "_keys",
        "_lease",
        "_lock",
        "_max_idle",
        "_max_live",
        "_options",
        "_owned_store",
        "_seen",
        "_store",
        "_tools",
        "_turn",
        "keeper_period",
    )

    def __init__(
        self,
        store: SessionStore | AsyncSessionStore | str | os.PathLike[str],
        keys: bytes | Sequence[bytes],
        *,
        tools: PoolTools,
        max_live: int,
        max_idle: float,
        checkout_timeout: float,
        lease: float,
        counter: VersionCounter | None,
        associated_data: bytes,
        **options: Any,
    ) -> None:
        self._keys = as_keys(keys)
        for key in self._keys:
            if len(key) < _SHORTEST_KEY:
                raise InvalidInput(
                    f"a key must have {_SHORTEST_KEY} bytes at least; use secrets.token_bytes(32)"
                )
        for name in ("durable", "clock", "random_seed"):
            if name in options:
                raise TypeError(
                    f"a pool takes no {name}: its sessions are durable, with the clock and seed of their start"
                )
        self._tools = tools
        self._max_live = count(max_live, "max_live")
        self._max_idle = seconds(max_idle, "max_idle")
        self._checkout_timeout = seconds(checkout_timeout, "checkout_timeout")
        self._lease = seconds(lease, "lease")
        self._counter = counter
        self._associated_data = as_bytes(associated_data, "associated_data")
        self._options = options
        #: How often leases are renewed and idle workers looked at, in seconds.
        self.keeper_period = min(self._lease / 3, self._max_idle / 2)
        # Wrong options are told of now and not at the first checkout. Nothing is started.
        if not callable(tools):
            AgentBase(tools, **options)
        self._lock = threading.RLock()
        self._is_closed = False
        self._in_use: dict[str, Checkout] = {}
        #: By name, the one that was used longest ago first, each with when that was.
        self._idle: OrderedDict[str, tuple[Checkout, float]] = OrderedDict()
        self._seen: OrderedDict[str, int] = OrderedDict()
        #: Counts what may let a waiting checkout go on.
        self._turn = 0
        self._counts = {"made": 0, "loaded": 0, "reused": 0, "stored": 0, "lost": 0}
        self._owned_store: Any = None
        if isinstance(store, str) or hasattr(store, "__fspath__"):
            from ._sqlite_store import SQLiteSessionStore

            store = self._owned_store = SQLiteSessionStore(store)  # type: ignore[arg-type]
        self._store: Any = store

    def stats(self) -> SessionPoolStats:
        """What there is, and what has happened so far."""
        with self._lock:
            return SessionPoolStats(in_use=len(self._in_use), idle=len(self._idle), **self._counts)

    def is_closed(self) -> bool:
        """Whether the pool hands out no further sessions."""
        return self._is_closed

    # What the kinds of pools do differently.

    def drive(self, steps: Generator[Callable[[], Any], Any, Any]) -> Any:
        """Take the steps of something, one after the other."""
        raise NotImplementedError

    def whole(self, steps: Generator[Callable[[], Any], Any, Any]) -> Any:
        """Take all steps of something short, whoever is cancelled meanwhile: what was stored has to be known."""
        raise NotImplementedError

    def _wait(self, seen: int, timeout: float) -> Any:
        """Wait until something has changed since this turn."""
        raise NotImplementedError

    def _wake(self) -> None:
        """Wake whoever waits; the lock is held."""
        raise NotImplementedError

    def _start_keeper(self) -> None:
        raise NotImplementedError

    def _make(self, session_id: str, **loaded: Any) -> Any:
        raise NotImplementedError

    # Who has what.

    def _tools_of(self, session_id: str) -> Tools:
        return self._tools(session_id) if callable(self._tools) else self._tools

    def _take(self, session_id: str) -> tuple[Checkout, Checkout | None, Checkout | None] | None:
        """A new use of a session, what is idle of it, and what has to be closed for it; `None` when it has to wait."""
        with self._lock:
            if self._is_closed:
                raise RuntimeClosed("the pool is closed")
            if session_id in self._in_use:
                return None
            idle, _ = self._idle.pop(session_id, (None, 0.0))
            oldest = None
            if idle is None and len(self._in_use) + len(self._idle) >= self._max_live:
                if not self._idle:
                    return None
                _, (oldest, _) = self._idle.popitem(last=False)
            checkout = self._in_use[session_id] = Checkout(self, session_id)
            self._start_keeper()
            return checkout, idle, oldest

    def _free(self, checkout: Checkout, *, keep: bool) -> Checkout | None:
        """End a use; what has to be closed."""
        session = checkout.session
        left = None
        with self._lock:
            del self._in_use[checkout.session_id]
            if session is not None:
                assert isinstance(session, PooledBase)  # noqa: S101 - it is the pool's own
                left = Checkout(self, checkout.session_id)
                left.version, left.note = checkout.version, checkout.note
                left.session = session.moved()
                left.changes = left.session._changes  # noqa: SLF001
                if keep and not self._is_closed:
                    self._idle[checkout.session_id] = (left, time.monotonic())
                    left = None
            self._turn += 1
            self._wake()
        return left

    def _remember(self, session_id: str, version: int) -> None:
        with self._lock:
            self._seen[session_id] = max(version, self._seen.pop(session_id, 0))
            if len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)

    def _bound(self, session_id: str, version: int) -> bytes:
        return bound(session_id, version, self._associated_data)

    # The steps.

    def check_out(self, session_id: str, timeout: float | None) -> Steps[Checkout]:
        """Have a session under a lease, in a worker."""
        check_session_id(session_id)
        deadline = time.monotonic() + (self._checkout_timeout if timeout is None else timeout)
        while True:
            turn = self._turn
            taken = self._take(session_id)
            if taken is not None:
                break
            what = "the session is in use" if session_id in self._in_use else "every worker is in use"
            yield from self._pause(turn, deadline, _LONGEST_WAIT, what)
        checkout, idle, oldest = taken
        try:
            _close(oldest)
            yield from self._take_lease(checkout, deadline)
            yield from self._fill(checkout, idle)
        except BaseException:
            _close(idle)
            yield from self._give_back(checkout, keep=False)
            raise
        return checkout

    def _pause(self, turn: int, deadline: float, longest: float, what: str) -> Steps[None]:
        left = deadline - time.monotonic()
        if left <= 0:
            raise CheckoutTimeout(f"{what}, and was until `checkout_timeout`; try again later")
        yield lambda: self._wait(turn, min(left, longest))

    def _take_lease(self, checkout: Checkout, deadline: float) -> Steps[None]:
        wait = _FIRST_WAIT
        while True:
            # From here on a lease may be there, whatever comes of the call.
            checkout.leased = True
            if (yield lambda: self._store.lease(checkout.session_id, checkout.holder, self._lease)):
                return
            checkout.leased = False
            yield from self._pause(self._turn, deadline, wait, "the session is in use in another process")
            wait = min(2 * wait, _LONGEST_WAIT)

    def _fill(self, checkout: Checkout, idle: Checkout | None) -> Steps[None]:
        """Have what the store has, in the worker that has it already or in a fresh one."""
        session_id = checkout.session_id
        stored: StoredSession | None = yield lambda: self._store.get(session_id)
        if stored is None:
            checkout.version = yield lambda: self._store.version(session_id)
        else:
            checkout.version = stored.version
        newest = self._seen.get(session_id, 0)
        if (counter := self._counter) is not None:
            newest = max(newest, (yield lambda: counter.get(session_id)))
        if checkout.version < newest:
            raise JournalError(
                f"the store has version {checkout.version} of the session, and there was version {newest}: an older "
                "copy was put back"
            )
        if idle is not None and idle.session is not None:
            if stored is not None and idle.version == stored.version and not idle.session.is_closed():
                checkout.session, checkout.note, checkout.changes = idle.session, idle.note, idle.changes
                idle.session = None
                self._counts["reused"] += 1
            else:
                _close(idle)
        if checkout.session is None:
            yield from self._load(checkout, stored)
        session = checkout.session
        assert isinstance(session, PooledBase)  # noqa: S101 - it is the pool's own
        session._checkout = checkout  # noqa: SLF001
        session._ledger = checkout  # noqa: SLF001

    def _load(self, checkout: Checkout, stored: StoredSession | None) -> Steps[None]:
        session_id = checkout.session_id
        loaded: dict[str, Any] = {}
        if stored is not None:
            checkout.note = Note.open(stored.note, self._keys, self._bound(session_id, stored.version))
            loaded["_spent"] = checkout.note.spent
            if stored.data is not None:
                if not checkout.note.is_of(stored.data):
                    raise JournalError("the journal of the session is not the one that its note names")
                signed_for = self._bound(session_id, checkout.note.version)
                loaded["_journal"] = (stored.data, self._keys, signed_for)
        checkout.is_new = "_journal" not in loaded
        checkout.session = yield lambda: self._make(session_id, _checkout=checkout, **loaded)
        self._counts["made" if checkout.is_new else "loaded"] += 1

    def spend(self, checkout: Checkout, spent: Spent) -> Steps[None]:
        """Write down what was spent."""
        note = checkout.note.having(spent)
        yield from self._put(checkout, None, note)

    def save(self, checkout: Checkout) -> Steps[None]:
        """Store the session, if it has changed."""
        session = checkout.session
        if session is None or not checkout.is_changed:
            return
        changes, version = session._changes, checkout.version + 1  # noqa: SLF001
        core = AgentBase._running_core(session)  # noqa: SLF001
        data = core.dump(self._keys[0], self._bound(checkout.session_id, version))
        yield from self._put(checkout, data, Note.of(version, data, core.spent()))
        checkout.changes = changes
        self._counts["stored"] += 1

    def _put(self, checkout: Checkout, data: bytes | None, note: Note) -> Steps[None]:
        session_id, version = checkout.session_id, checkout.version
        sealed = note.seal(self._keys[0], self._bound(session_id, version + 1))
        yield lambda: self._store.put(session_id, data, expected=version, note=sealed)
        checkout.version, checkout.note = version + 1, note
        self._remember(session_id, version + 1)
        if (counter := self._counter) is not None:
            yield lambda: counter.advance(session_id, version + 1)

    def check_in(self, checkout: Checkout) -> Steps[None]:
        """Store a session and end its use."""
        try:
            yield from self.save(checkout)
        except BaseException:
            self._counts["lost"] += 1
            yield from self._give_back(checkout, keep=False)
            raise
        session = checkout.session
        # What waits for an answer waits long, and its worker's patience has an end.
        keep = session is not None and session.paused is None and not session.is_closed()
        yield from self._give_back(checkout, keep=keep)

    def _give_back(self, checkout: Checkout, *, keep: bool) -> Steps[None]:
        # The use ends here before it does for other processes: the lease is a new one's then.
        leased, checkout.leased = checkout.leased, False
        try:
            if leased:
                yield lambda: self._store.release(checkout.session_id, checkout.holder)
        finally:
            _close(self._free(checkout, keep=keep))
            self._close_store()

    def keep(self, now: float) -> Steps[None]:
        """Renew leases, and close what was not used for long."""
        with self._lock:
            leased = [checkout for checkout in self._in_use.values() if checkout.leased]
            late = [name for name, (_, since) in self._idle.items() if now - since > self._max_idle]
            closing = [self._idle.pop(name)[0] for name in late]
        for checkout in closing:
            _close(checkout)
        for checkout in leased:
            # A lease is a courtesy, `put` decides. What fails now may work the next time.
            with suppress(Exception):
                yield self._renewal(checkout)

    def _renewal(self, checkout: Checkout) -> Callable[[], Any]:
        return lambda: self._store.renew(checkout.session_id, checkout.holder, self._lease)

    def _delete(self, session_id: str) -> Steps[bool]:
        check_session_id(session_id)
        with self._lock:
            idle, _ = self._idle.pop(session_id, (None, 0.0))
        _close(idle)
        deleted: bool = yield lambda: self._store.delete(session_id)
        return deleted

    def _close(self) -> Steps[None]:
        with self._lock:
            closing = [checkout for checkout, _ in self._idle.values()]
            self._idle.clear()
        for checkout in closing:
            _close(checkout)
        self._close_store()
        return
        yield  # it is a generator like the others

    def _close_store(self) -> None:
        """Close a store of the pool's own once nobody needs it."""
        with self._lock:
            if self._is_closed and not self._in_use and self._owned_store is not None:
                self._owned_store.close()
                self._owned_store = None


def _close(checkout: Checkout | None) -> None:
    if checkout is not None and checkout.session is not None and checkout.session._core is not None:  # noqa: SLF001
        checkout.session._core.close()  # noqa: SLF001
