"""Where journals of sessions are kept: a protocol that any database can fill, and how single sessions use it."""

from __future__ import annotations

from typing import Protocol

from ._agent_errors import JournalError
from ._errors import InvalidInput, PydenoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ._agent import AgentSandbox

#: The longest name of a session, in bytes of UTF-8.
_LONGEST_ID = 512


class VersionConflict(PydenoError):
    """Another process has stored the session since it was read. Nothing was stored; read it again."""

    kind = "invalid_input"
    runtime_survives = True


class StoredSession:
    """What a store has of a session.

    Attributes:
        data: The signed journal; `None` when none was stored, or when it was evicted.
        version: Counts what has happened to it.
        note: The signed note that pools keep with it: what it has spent, and which journal is its own.
    """

    __slots__ = ("data", "note", "version")

    def __init__(self, data: bytes | None, version: int, note: bytes = b"") -> None:
        """Put the parts together."""
        self.data = data
        self.version = version
        self.note = note


class SessionStore(Protocol):
    """What a store does.

    Every method is one atomic step, whichever process it is called in, and is durable when it returns: a pool lets a
    program have a tool only after `put` has returned. Nothing depends on clocks but when leases and sessions end. What
    two holders of one session do is decided by `put`, which one of them wins.

    | method | in Redis | in PostgreSQL |
    |---|---|---|
    | `get`, `version` | `HMGET` of one hash for each session | `SELECT` by the primary key |
    | `put` | a Lua script, or `WATCH` and `MULTI`: compare the hash's `version`, then `HSET` and `PEXPIREAT` | \
`UPDATE ... WHERE id = $1 AND version = $2`, and `INSERT ... ON CONFLICT DO NOTHING` for a new one; no row changed \
is a conflict |
    | `delete` | a Lua script: `HDEL` of data and note, `HINCRBY version 1` | `UPDATE ... SET data = NULL, \
version = version + 1` |
    | `lease` | `SET key holder NX PX` | `UPDATE ... WHERE holder IS NULL OR held_until < now()`; or \
`pg_try_advisory_lock`, which ends with the connection |
    | `renew`, `release` | a Lua script: `PEXPIRE`, or `DEL`, if it is the holder's | `UPDATE ... WHERE holder = $2`; \
or nothing, and `pg_advisory_unlock` |

    A store that forgets a session altogether must not give its name a version again that it has had: let the versions
    of new names begin above those of all that were forgotten.
    """

    def get(self, session_id: str) -> StoredSession | None:
        """The session, unless there is none or it has expired. Data and note are of the same moment."""

    def version(self, session_id: str) -> int:
        """The version, which never goes back: not when a session is deleted, evicted, expires or is forgotten."""

    def put(self, session_id: str, data: bytes | None, *, expected: int, note: bytes = b"") -> int:
        """Store a session whose version is the expected one, and return the next version, one more.

        Without data, what is stored stays, unless it has expired, and only the note is replaced.

        Raises:
            VersionConflict: It is another version. Nothing was stored.
        """

    def delete(self, session_id: str) -> bool:
        """Delete data and note, as a change that counts in the version; whether there was something."""

    def lease(self, session_id: str, holder: str, duration: float) -> bool:
        """Let one holder have the name for a time, in seconds; whether no other has it.

        The session need not exist. What is leased is not evicted.
        """

    def renew(self, session_id: str, holder: str, duration: float) -> bool:
        """Let a holder keep its lease for a time from now, also one whose time is over; whether it was the holder's."""

    def release(self, session_id: str, holder: str) -> bool:
        """Give a lease back; whether it was the holder's."""


class AsyncSessionStore(Protocol):
    """A `SessionStore` whose methods are coroutines, for `AsyncSessionPool`. The same is asked of each."""

    async def get(self, session_id: str) -> StoredSession | None:
        """As `SessionStore.get`."""

    async def version(self, session_id: str) -> int:
        """As `SessionStore.version`."""

    async def put(self, session_id: str, data: bytes | None, *, expected: int, note: bytes = b"") -> int:
        """As `SessionStore.put`."""

    async def delete(self, session_id: str) -> bool:
        """As `SessionStore.delete`."""

    async def lease(self, session_id: str, holder: str, duration: float) -> bool:
        """As `SessionStore.lease`."""

    async def renew(self, session_id: str, holder: str, duration: float) -> bool:
        """As `SessionStore.renew`."""

    async def release(self, session_id: str, holder: str) -> bool:
        """As `SessionStore.release`."""


def check_session_id(value: object) -> str:
    """A name that every database can have."""
    if not isinstance(value, str):
        raise TypeError(f"a session's id must be str, not {type(value).__name__}")
    try:
        length = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"a session's id must be well-formed text, not {value[:100]!r}") from None
    if not 0 < length <= _LONGEST_ID or "\0" in value:
        raise InvalidInput(
            f"a session's id must have from 1 to {_LONGEST_ID} bytes and no NUL, not {value[:100]!r}"
        )
    return value


def save_session(
    store: SessionStore,
    session_id: str,
    session: AgentSandbox,
    key: bytes | Sequence[bytes],
    *,
    version: int | None = None,
) -> int:
    """Store a single session, of no pool, and return its version, which the next `save_session` wants.

    The journal is signed for this id and this version: an older one put in its place is noticed by `load_session`.

    Args:
        store: Where to.
        session_id: The session's name in the store.
        session: Between runs, or waiting for an answer.
        key: As for `AgentSandbox.dump`.
        version: What `save_session` or `load_session` has returned before; `None` for a session that is new.

    Raises:
        VersionConflict: Another process has stored the session meanwhile, or there is one although it should be new.
        JournalError: As `AgentSandbox.dump`.
    """
    check_session_id(session_id)
    if version is None:
        if store.get(session_id) is not None:
            raise VersionConflict(f"there is a session {session_id!r} already; load it, or delete it")
        version = store.version(session_id)
    return store.put(session_id, session.dump(key, _bound(session_id, version + 1)), expected=version)


def load_session(
    store: SessionStore, session_id: str, key: bytes | Sequence[bytes], **options: Any
) -> tuple[AgentSandbox, int]:
    """Continue a session that was stored by `save_session`; it and its version.

    Args:
        store: Where from.
        session_id: The session's name in the store.
        key: The key it was stored with, or a list that has it.
        **options: As for `AgentSandbox.load`, `tools` included.

    Raises:
        JournalError: There is none, or it was changed, or is not of this id and version.
        ReplayDivergence: As `AgentSandbox.load`.
    """
    from ._agent import AgentSandbox

    stored = store.get(check_session_id(session_id))
    if stored is None or stored.data is None:
        raise JournalError(f"the store has no session {session_id!r}, or no longer")
    bound = _bound(session_id, stored.version)
    return AgentSandbox.load(stored.data, key, associated_data=bound, **options), stored.version


def _bound(session_id: str, version: int) -> bytes:
    return f"{version}:{session_id}".encode()
