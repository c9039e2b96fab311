"""A session of a pool while it is used: what the pool knows of it, and what it is to its user."""

from __future__ import annotations

import secrets

from ._agent_session import AgentBase
from ._errors import RuntimeClosed
from ._session_note import Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ._agent_session import Spent
    from ._pydeno import AgentCore
    from ._session_shelf import SessionPoolBase


class Checkout:
    """One use of a session. It is the session's ledger, too."""

    __slots__ = ("changes", "holder", "is_new", "leased", "note", "pool", "session", "session_id", "version")

    def __init__(self, pool: SessionPoolBase, session_id: str) -> None:
        self.pool = pool
        self.session_id = session_id
        self.holder = secrets.token_hex(16)
        self.leased = False
        self.is_new = False
        self.session: AgentBase | None = None
        #: The version in the store, as far as this process knows.
        self.version = 0
        self.note = Note()
        #: How often the program had been asked something when it was stored last.
        self.changes = 0

    def record(self, spent: Spent) -> Awaitable[None] | None:
        """Write down what was spent before anything is had for it."""
        if spent == self.note.spent:
            return None
        return self.pool.whole(self.pool.spend(self, spent))  # type: ignore[no-any-return]

    @property
    def is_changed(self) -> bool:
        """Whether there is something to store."""
        return self.session is not None and self.session._changes != self.changes  # noqa: SLF001


class PooledBase(AgentBase):
    """What sessions of pools have beyond other sessions."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def _checkout(self) -> Checkout | None: ...

        @_checkout.setter
        def _checkout(self, checkout: Checkout | None) -> None: ...

    @property
    def id(self) -> str:
        """The session's name."""
        return self._checked_out().session_id

    @property
    def is_new(self) -> bool:
        """Whether there was no journal: the session is new, has expired, or was evicted. What it spent may be left."""
        return self._checked_out().is_new

    def is_closed(self) -> bool:
        """Whether the session takes no further runs, here."""
        return self._checkout is None or super().is_closed()

    def _checked_out(self) -> Checkout:
        if self._checkout is None:
            raise RuntimeClosed("the session was given back to its pool; check it out again")
        return self._checkout

    def _running_core(self) -> AgentCore:
        self._checked_out()
        return super()._running_core()

    def close(self) -> None:
        """Close the session and kill its worker; at the end of the block it is stored all the same."""
        if self._checkout is not None:
            super().close()

    def terminate(self) -> None:
        """Kill the worker at once, from any thread; the session goes on from its last run, in another block."""
        if self._checkout is not None:
            super().terminate()

    def moved(self) -> PooledBase:
        """The same session as another object; this one is of no use any more."""
        other = object.__new__(type(self))
        for cls in type(self).__mro__:
            for name in getattr(cls, "__slots__", ()):
                if name != "__weakref__" and hasattr(self, name):
                    setattr(other, name, getattr(self, name))
        self._checkout = None
        self._core = None
        self._ledger = None
        return other
