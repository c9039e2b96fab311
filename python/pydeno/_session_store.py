"""Where journals of sessions are kept: a protocol that any database can fill, and SQLite."""

from __future__ import annotations

from typing import Protocol

from ._agent_errors import JournalError
from ._config import count, seconds
from ._errors import InvalidInput, PydenoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    from ._agent import AgentSandbox

    Self = TypeVar("Self", bound="SQLiteSessionStore")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    data BLOB,
    updated REAL NOT NULL,
    expires REAL NOT NULL,
    holder TEXT,
    held_until REAL NOT NULL DEFAULT 0
) WITHOUT ROWID
"""


class VersionConflict(PydenoError):
    """Another process has stored the session since it was read. Nothing was stored; read it again."""

    kind = "invalid_input"
    runtime_survives = True


class StoredSession:
    """What a store has of a session.

    Attributes:
        data: The signed journal.
        version: How often the session has been stored.
    """

    __slots__ = ("data", "version")

    def __init__(self, data: bytes, version: int) -> None:
        """Put the parts together."""
        self.data = data
        self.version = version


class SessionStore(Protocol):
    """What a store does. Every method is one atomic step, in whatever process it is called."""

    def get(self, session_id: str) -> StoredSession | None:
        """The session, unless there is none or it has expired."""

    def put(self, session_id: str, data: bytes, *, expected: int) -> int:
        """Store a session whose version is the expected one, 0 for a new one, and return its next version.

        Raises:
            VersionConflict: It is another. Nothing was stored.
        """

    def version(self, session_id: str) -> int:
        """The version, which never goes back: not when a session is deleted or expires. 0 when it was never stored."""

    def delete(self, session_id: str) -> bool:
        """Delete a session's data; whether there was some."""

    def lease(self, session_id: str, holder: str, duration: float) -> bool:
        """Let one holder have the session for a time, in seconds, or for longer; whether no other has it."""

    def release(self, session_id: str, holder: str) -> bool:
        """Give a lease back; whether it was the holder's."""


class SQLiteSessionStore:
    """Sessions in an SQLite database, for the processes of one machine.

    Args:
        path: The file, made for its owner alone where there is none.
        ttl: How long a session is kept after it was stored, in seconds.
        max_sessions: How many sessions are kept. A further one evicts the one that was stored longest ago, unless it is
            leased.
        max_bytes: How many bytes of journals are kept, likewise.
        clock: What time it is, in seconds since 1970.

    Raises:
        InvalidInput: A limit is out of range.
    """

    __slots__ = ("_clock", "_connection", "_lock", "_max_bytes", "_max_sessions", "_ttl")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        ttl: float = 7 * 86400.0,
        max_sessions: int = 10_000,
        max_bytes: int = 1 << 30,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Open the database."""
        import os
        import sqlite3
        import threading
        import time

        self._ttl = seconds(ttl, "ttl")
        self._max_sessions = count(max_sessions, "max_sessions")
        self._max_bytes = count(max_bytes, "max_bytes")
        self._clock = clock if clock is not None else time.time
        # Journals are signed and not encrypted.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute(_SCHEMA)

    def get(self, session_id: str) -> StoredSession | None:
        """The session, unless there is none or it has expired."""
        with self._step() as (connection, now):
            row = connection.execute(
                "SELECT data, version FROM sessions WHERE id = ? AND data IS NOT NULL AND expires > ?",
                (session_id, now),
            ).fetchone()
        return None if row is None else StoredSession(bytes(row[0]), row[1])

    def version(self, session_id: str) -> int:
        """The version, which never goes back; 0 when the session was never stored."""
        with self._step() as (connection, _):
            return _version(connection, session_id)

    def put(self, session_id: str, data: bytes, *, expected: int) -> int:
        """Store a session whose version is the expected one, and return its next version.

        Raises:
            VersionConflict: It is another. Nothing was stored.
            InvalidInput: The data alone is more than `max_bytes`, or no session can be evicted for it.
        """
        with self._step() as (connection, now):
            version = _version(connection, session_id)
            if version != expected:
                raise VersionConflict(f"the session is at version {version}, not {expected}; read it again")
            self._make_room(connection, now, session_id, len(data))
            connection.execute(
                "INSERT INTO sessions (id, version, data, updated, expires) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO "
                "UPDATE SET version = excluded.version, data = excluded.data, updated = excluded.updated, "
                "expires = excluded.expires",
                (session_id, version + 1, data, now, now + self._ttl),
            )
            return version + 1

    def _make_room(self, connection: sqlite3.Connection, now: float, session_id: str, size: int) -> None:
        connection.execute("UPDATE sessions SET data = NULL WHERE expires <= ? AND data IS NOT NULL", (now,))
        while True:
            sessions, used = connection.execute(
                "SELECT count(*), coalesce(sum(length(data)), 0) FROM sessions WHERE data IS NOT NULL AND id != ?",
                (session_id,),
            ).fetchone()
            if sessions < self._max_sessions and used + size <= self._max_bytes:
                return
            evicted = connection.execute(
                "UPDATE sessions SET data = NULL WHERE id = (SELECT id FROM sessions WHERE data IS NOT NULL "
                "AND id != ? AND held_until <= ? ORDER BY updated, id LIMIT 1)",
                (session_id, now),
            )
            if evicted.rowcount == 0:
                raise InvalidInput(f"there is no room for {size} bytes; raise max_sessions or max_bytes")

    def delete(self, session_id: str) -> bool:
        """Delete a session's data; whether there was some. Its version stays."""
        with self._step() as (connection, _):
            sql = "UPDATE sessions SET data = NULL WHERE id = ? AND data IS NOT NULL"
            return connection.execute(sql, (session_id,)).rowcount > 0

    def lease(self, session_id: str, holder: str, duration: float) -> bool:
        """Let one holder have a session that is stored for a time, or for longer; whether no other has it."""
        with self._step() as (connection, now):
            sql = (
                "UPDATE sessions SET holder = ?, held_until = ? WHERE id = ? AND (holder IS NULL OR holder = ? OR "
                "held_until <= ?)"
            )
            until = now + seconds(duration, "duration")
            return connection.execute(sql, (holder, until, session_id, holder, now)).rowcount > 0

    def release(self, session_id: str, holder: str) -> bool:
        """Give a lease back; whether it was the holder's."""
        with self._step() as (connection, _):
            sql = "UPDATE sessions SET holder = NULL, held_until = 0 WHERE id = ? AND holder = ?"
            return connection.execute(sql, (session_id, holder)).rowcount > 0

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    def _step(self) -> _Step:
        return _Step(self._lock, self._connection, self._clock)

    def __enter__(self: Self) -> Self:
        """Use the store as a context manager that closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()


class _Step:
    """One transaction, which other processes see whole or not at all."""

    __slots__ = ("_clock", "_connection", "_lock")

    def __init__(self, lock: Any, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._lock = lock
        self._connection = connection
        self._clock = clock

    def __enter__(self) -> tuple[sqlite3.Connection, float]:
        self._lock.acquire()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._lock.release()
            raise
        return self._connection, self._clock()

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        try:
            self._connection.execute("COMMIT" if kind is None else "ROLLBACK")
        finally:
            self._lock.release()


def _version(connection: sqlite3.Connection, session_id: str) -> int:
    row = connection.execute("SELECT version FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return 0 if row is None else int(row[0])


def save_session(
    store: SessionStore, session_id: str, session: AgentSandbox, key: bytes, *, version: int = 0
) -> int:
    """Store a session and return its version, which the next `save_session` wants.

    The journal is signed for this id and this version: an older one put in its place is noticed by `load_session`.

    Args:
        store: Where to.
        session_id: The session's name in the store.
        session: Between runs, or waiting for an answer.
        key: As for `AgentSandbox.dump`.
        version: What `save_session` or `load_session` has returned before; 0 for a session that is new.

    Raises:
        VersionConflict: Another process has stored the session meanwhile.
        JournalError: As `AgentSandbox.dump`.
    """
    return store.put(session_id, session.dump(key, _bound(session_id, version + 1)), expected=version)


def load_session(
    store: SessionStore, session_id: str, key: bytes, **options: Any
) -> tuple[AgentSandbox, int]:
    """Continue a session that was stored; it and its version.

    Args:
        store: Where from.
        session_id: The session's name in the store.
        key: The key it was stored with.
        **options: As for `AgentSandbox.load`, `tools` included.

    Raises:
        JournalError: There is none, or it was changed, or is not of this id and version.
        ReplayDivergence: As `AgentSandbox.load`.
    """
    from ._agent import AgentSandbox

    stored = store.get(session_id)
    if stored is None:
        raise JournalError(f"the store has no session {session_id!r}, or no longer")
    bound = _bound(session_id, stored.version)
    return AgentSandbox.load(stored.data, key, associated_data=bound, **options), stored.version


def _bound(session_id: str, version: int) -> bytes:
    return f"{version}:{session_id}".encode("utf-8", "surrogatepass")
