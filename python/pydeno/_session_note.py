"""The note that a pool keeps with a session's journal: what it has spent, and which journal is its own, signed.

A note is written before a tool is called, which a whole journal would be too long for. It is the newest word on a
session: signed for the session's name and version, with the digest of the journal that belongs to it.
"""

from __future__ import annotations

import hashlib
import hmac
import json

from ._agent_errors import JournalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ._agent_session import Spent

_MAGIC = b"pydenoN\x01"
_TAG = 32


def bound(session_id: str, version: int, associated_data: bytes) -> bytes:
    """What journals and notes are signed for, in a form that no two of these share."""
    name = session_id.encode()
    return b"".join((version.to_bytes(8, "big"), len(name).to_bytes(8, "big"), name, associated_data))


class Note:
    """What is known of a session beside its journal.

    Attributes:
        version: The version that the journal was signed for; 0 when none was stored.
        digest: The journal's SHA-256.
        spent: What the session has spent.
    """

    __slots__ = ("digest", "spent", "version")

    def __init__(self, version: int = 0, digest: bytes = b"", spent: Spent = (0, {}, 0)) -> None:
        self.version = version
        self.digest = digest
        self.spent = spent

    @classmethod
    def of(cls, version: int, data: bytes, spent: Spent) -> Note:
        """The note of a journal that is about to be stored."""
        return cls(version, hashlib.sha256(data).digest(), spent)

    def having(self, spent: Spent) -> Note:
        """The note of the same journal once more was spent."""
        return Note(self.version, self.digest, spent)

    def is_of(self, data: bytes) -> bool:
        """Whether this is its journal."""
        return hmac.compare_digest(self.digest, hashlib.sha256(data).digest())

    def seal(self, key: bytes, bound_to: bytes) -> bytes:
        """The note, signed."""
        calls, by_tool, next_call = self.spent
        payload = json.dumps([self.version, self.digest.hex(), calls, by_tool, next_call]).encode()
        return b"".join((_MAGIC, _mac(key, bound_to, payload), payload))

    @classmethod
    def open(cls, sealed: bytes, keys: Iterable[bytes], bound_to: bytes) -> Note:
        """Check that one of the keys has signed it, for this, and read it.

        Raises:
            JournalError: It was changed, is signed with another key, or is of another session or version.
        """
        tag, payload = sealed[len(_MAGIC) :][:_TAG], sealed[len(_MAGIC) + _TAG :]
        if not sealed.startswith(_MAGIC) or not any(
            hmac.compare_digest(tag, _mac(key, bound_to, payload)) for key in keys
        ):
            raise JournalError(
                "the note of the session does not match its signature: it was changed, is of another session or "
                "version, or was signed with another key"
            )
        version, digest, calls, by_tool, next_call = json.loads(payload)
        return cls(version, bytes.fromhex(digest), (calls, by_tool, next_call))


def _mac(key: bytes, bound_to: bytes, payload: bytes) -> bytes:
    signed = b"".join((_MAGIC, len(bound_to).to_bytes(8, "big"), bound_to, payload))
    return hmac.digest(key, signed, "sha256")
