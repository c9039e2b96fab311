"""Sessions in an SQLite database, for the processes of one machine."""

from __future__ import annotations

from ._closing import Closing
from ._config import choice, count, seconds
from ._errors import InvalidInput
from ._session_store import StoredSession, VersionConflict, check_session_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable
    from typing import Any, Literal


# `expires` is when data and note go. `used` orders sessions by when they were stored, whatever the clock does.
_SESSIONS = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0,
    expires REAL NOT NULL,
    holder TEXT,
    held_until REAL NOT NULL DEFAULT 0,
    note BLOB NOT NULL DEFAULT x'',
    data BLOB
)
"""
# One row: the highest version of all names that were forgotten, and how often something was stored.
_FORGOTTEN = """
CREATE TABLE IF NOT EXISTS forgotten (
    one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, puts INTEGER NOT NULL
)
"""
_COUNTERS = """
CREATE TABLE IF NOT EXISTS counters (id TEXT PRIMARY KEY, version INTEGER NOT NULL, updated REAL NOT NULL) WITHOUT ROWID
"""


#: How long a lock of another process is waited for, in seconds.
_PATIENCE = 10.0


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Have a write-ahead log. Where several make one at the same time, SQLite does not wait but fails."""
    import sqlite3
    import time

    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:  # noqa: PERF203 - once, where a file is opened
            if "locked" not in str(error) or time.monotonic() >= until:
                raise
            time.sleep(0.01)
        else:
            return


class _Database(Closing):
    """One connection, used by one thread at a time; the file is its owner's alone."""

    __slots__ = ("_clock", "_connection", "_lock")

    def __init__(
        self, path: str | os.PathLike[str], clock: Callable[[], float] | None, schema: tuple[str, ...]
    ) -> None:
        import os
        import sqlite3
        import threading
        import time

        self._clock = clock if clock is not None else time.time
        # Journals are signed and not encrypted.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        _log_ahead(self._connection)
        self._connection.execute("PRAGMA synchronous=FULL")
        for statement in schema:
            self._connection.execute(statement)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._connection.close()

    def _step(self) -> _Step:
        return _Step(self._lock, self._connection, self._clock)


class SQLiteSessionStore(_Database):
    """Sessions in an SQLite database, for the processes of one machine.

    Args:
        path: The file, made for its owner alone where there is none.
        ttl: How long a session is kept after it was stored, in seconds.
        max_sessions: How many journals are kept.
        max_bytes: How many bytes of journals are kept.
        eviction: What happens when there is no room: `"oldest"` drops the journal that was stored longest ago and that
            nobody has leased; `"refuse"` stores nothing. What a session has spent is kept with its note until it
            expires.
        clock: What time it is, in seconds since 1970. One that is put back makes sessions and leases last longer,
            leases by no more than what they were taken for, and nothing else.

    Raises:
        InvalidInput: A limit is out of range.
        OSError, sqlite3.Error: The file cannot be used. So may every method.
    """

    __slots__ = ("_evicts", "_max_bytes", "_max_sessions", "_ttl")

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        ttl: float = 7 * 86400.0,
        max_sessions: int = 10_000,
        max_bytes: int = 1 << 30,
        eviction: Literal["oldest", "refuse"] = "oldest",
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Open the database."""
        self._ttl = seconds(ttl, "ttl")
        self._max_sessions = count(max_sessions, "max_sessions")
        self._max_bytes = count(max_bytes, "max_bytes")
        self._evicts = choice(eviction, "eviction", ("oldest", "refuse")) == "oldest"
        first = "INSERT OR IGNORE INTO forgotten VALUES (1, 0, 0)"
        super().__init__(path, clock, (_SESSIONS, _FORGOTTEN, first))

    def get(self, session_id: str) -> StoredSession | None:
        """The session, unless there is none or it has expired."""
        with self._step() as (connection, now):
            row = connection.execute(
                "SELECT data, version, note FROM sessions WHERE id = ? AND expires > ? "
                "AND (data IS NOT NULL OR note != x'')",
                (check_session_id(session_id), now),
            ).fetchone()
        return None if row is None else StoredSession(*row)

    def version(self, session_id: str) -> int:
        """The version, which never goes back."""
        with self._step() as (connection, _):
            return _version(connection, check_session_id(session_id))

    def put(self, session_id: str, data: bytes | None, *, expected: int, note: bytes = b"") -> int:
        """Store a session whose version is the expected one, and return its next version.

        Raises:
            VersionConflict: It is another. Nothing was stored.
            InvalidInput: The data alone is more than `max_bytes`, or no session can be evicted for it.
        """
        with self._step() as (connection, now):
            version = _version(connection, check_session_id(session_id))
            if version != expected:
                raise VersionConflict(f"the session is at version {version}, not {expected}; read it again")
            if data is not None:
                self._make_room(connection, now, session_id, len(data))
            connection.execute("UPDATE forgotten SET puts = puts + 1")
            connection.execute(
                "INSERT INTO sessions (id, version, used, data, note, expires) "
                "VALUES (?, ?, (SELECT puts FROM forgotten), ?, ?, ?) ON CONFLICT (id) DO "
                "UPDATE SET version = excluded.version, used = excluded.used, note = excluded.note, "
                "data = coalesce(excluded.data, CASE WHEN expires > ? THEN data END), expires = excluded.expires",
                (session_id, version + 1, data, note, now + self._ttl, now),
            )
            return version + 1

    def _make_room(self, connection: sqlite3.Connection, now: float, session_id: str, size: int) -> None:
        _forget(connection, now, session_id)
        while True:
            sessions, used = connection.execute(
                "SELECT count(*), coalesce(sum(length(data)), 0) FROM sessions WHERE data IS NOT NULL AND id != ?",
                (session_id,),
            ).fetchone()
            if sessions < self._max_sessions and used + size <= self._max_bytes:
                return
            evicted = self._evicts and connection.execute(
                "UPDATE sessions SET data = NULL WHERE id = (SELECT id FROM sessions WHERE data IS NOT NULL "
                "AND id != ? AND held_until <= ? ORDER BY used LIMIT 1)",
                (session_id, now),
            )
            if not evicted or evicted.rowcount == 0:
                raise InvalidInput(f"there is no room for {size} bytes; raise max_sessions or max_bytes")

    def delete(self, session_id: str) -> bool:
        """Delete a session's data and note; whether there was something. Its version goes on."""
        with self._step() as (connection, _):
            sql = (
                "UPDATE sessions SET data = NULL, note = x'', version = version + 1 WHERE id = ? "
                "AND (data IS NOT NULL OR note != x'')"
            )
            return connection.execute(sql, (check_session_id(session_id),)).rowcount > 0

    def lease(self, session_id: str, holder: str, duration: float) -> bool:
        """Let one holder have a name for a time, or for longer; whether no other has it."""
        duration = seconds(duration, "duration")
        with self._step() as (connection, now):
            connection.execute(
                "INSERT INTO sessions (id, version, expires) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
                (check_session_id(session_id), _version(connection, session_id), now),
            )
            # A lease from a time that is yet to come is one of before the clock was put back.
            connection.execute(
                "UPDATE sessions SET held_until = ? WHERE id = ? AND held_until > ?",
                (now + duration, session_id, now + duration),
            )
            taken = connection.execute(
                "UPDATE sessions SET holder = ?, held_until = ? WHERE id = ? AND (holder IS NULL OR holder = ? OR "
                "held_until <= ?)",
                (holder, now + duration, session_id, holder, now),
            )
            return taken.rowcount > 0

    def renew(self, session_id: str, holder: str, duration: float) -> bool:
        """Let a holder keep its lease for a time from now; whether it was the holder's."""
        duration = seconds(duration, "duration")
        with self._step() as (connection, now):
            sql = "UPDATE sessions SET held_until = ? WHERE id = ? AND holder = ?"
            return (
                connection.execute(sql, (now + duration, check_session_id(session_id), holder)).rowcount > 0
            )

    def release(self, session_id: str, holder: str) -> bool:
        """Give a lease back; whether it was the holder's."""
        with self._step() as (connection, _):
            sql = "UPDATE sessions SET holder = NULL, held_until = 0 WHERE id = ? AND holder = ?"
            return connection.execute(sql, (check_session_id(session_id), holder)).rowcount > 0


class SQLiteVersionCounter(_Database):
    """The newest versions of sessions, in a database apart from the store, for `SessionPool`'s `counter`.

    Args:
        path: The file, made for its owner alone where there is none. Where a backup of the store does not reach it, a
            store that is put back is noticed.
        keep: How long the version of a session is kept that is not stored any more, in seconds: longer than the store
            keeps sessions.
        clock: What time it is, in seconds since 1970.
    """

    __slots__ = ("_keep",)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        keep: float = 90 * 86400.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Open the database."""
        self._keep = seconds(keep, "keep")
        super().__init__(path, clock, (_COUNTERS,))

    def get(self, session_id: str) -> int:
        """The newest version that was told; 0 when none was."""
        with self._step() as (connection, _):
            row = connection.execute("SELECT version FROM counters WHERE id = ?", (session_id,)).fetchone()
            return 0 if row is None else int(row[0])

    def advance(self, session_id: str, version: int) -> None:
        """Take a version, unless a newer one was told."""
        with self._step() as (connection, now):
            connection.execute(
                "INSERT INTO counters VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "version = max(version, excluded.version), updated = excluded.updated",
                (session_id, version, now),
            )
            connection.execute("DELETE FROM counters WHERE updated < ?", (now - self._keep,))


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
    row = connection.execute(
        "SELECT coalesce((SELECT version FROM sessions WHERE id = ?), (SELECT version FROM forgotten))",
        (session_id,),
    ).fetchone()
    return int(row[0])


def _forget(connection: sqlite3.Connection, now: float, but: str) -> None:
    """Drop what has expired; new names begin above the versions that are dropped."""
    expired = "FROM sessions WHERE expires <= ? AND held_until <= ? AND id != ?"
    connection.execute(
        f"UPDATE forgotten SET version = max(version, (SELECT coalesce(max(version), 0) {expired}))",  # noqa: S608
        (now, now, but),
    )
    connection.execute(f"DELETE {expired}", (now, now, but))
