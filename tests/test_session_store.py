"""Sessions in a store: one writer at a time, bounded, and no way back to an older journal."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pydeno
from pydeno import (
    AgentSandbox,
    SQLiteSessionStore,
    SQLiteVersionCounter,
    VersionConflict,
    load_session,
    save_session,
)

KEY = b"k" * 32


class Clock:
    """A clock that stands still until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[SQLiteSessionStore]:
    with SQLiteSessionStore(tmp_path / "s.db", ttl=100, max_sessions=3, max_bytes=1000, clock=clock) as made:
        yield made


def test_a_session_is_stored_and_goes_on_from_there(store: SQLiteSessionStore) -> None:
    with AgentSandbox() as session:
        session.run("globalThis.n = 1")
        assert save_session(store, "a", session, KEY) == 1
        session.run("n++")
        assert save_session(store, "a", session, KEY, version=1) == 2
    again, version = load_session(store, "a", KEY)
    with again:
        assert (again.run("n"), version) == (2, 2)


def test_of_two_writers_the_second_is_told(store: SQLiteSessionStore) -> None:
    assert store.put("a", b"first", expected=0) == 1
    with pytest.raises(VersionConflict):
        store.put("a", b"second", expected=0)
    stored = store.get("a")
    assert stored is not None
    assert (stored.data, stored.version) == (b"first", 1)


def test_an_older_journal_in_place_of_the_newest_is_noticed(
    store: SQLiteSessionStore, tmp_path: Path
) -> None:
    with AgentSandbox() as session:
        save_session(store, "a", session, KEY)
        old = store.get("a")
        session.run("1")
        save_session(store, "a", session, KEY, version=1)
    assert old is not None
    with sqlite3.connect(tmp_path / "s.db") as database:
        database.execute("UPDATE sessions SET data = ?", (old.data,))
    with pytest.raises(pydeno.JournalError):
        load_session(store, "a", KEY)


def test_the_journal_of_another_session_is_noticed(store: SQLiteSessionStore) -> None:
    with AgentSandbox() as session:
        save_session(store, "a", session, KEY)
    stored = store.get("a")
    assert stored is not None
    store.put("b", stored.data, expected=0)
    with pytest.raises(pydeno.JournalError):
        load_session(store, "b", KEY)


def test_a_session_that_is_there_is_not_saved_as_a_new_one(store: SQLiteSessionStore) -> None:
    with AgentSandbox() as session:
        save_session(store, "a", session, KEY)
        with pytest.raises(VersionConflict):
            save_session(store, "a", session, KEY)


def test_a_version_never_goes_back(store: SQLiteSessionStore, clock: Clock) -> None:
    store.put("a", b"1", expected=0)
    assert store.delete("a")
    assert not store.delete("a")
    assert store.get("a") is None
    with pytest.raises(VersionConflict):
        store.put("a", b"2", expected=1)
    assert store.put("a", b"2", expected=2) == 3
    clock.now += 101
    assert store.get("a") is None
    assert store.version("a") == 3


def test_names_that_were_forgotten_begin_above_what_they_had(
    store: SQLiteSessionStore, clock: Clock, tmp_path: Path
) -> None:
    for version in range(5):
        store.put("a", b"1", expected=version)
    clock.now += 101
    store.put("b", b"1", expected=0)
    with sqlite3.connect(tmp_path / "s.db") as database:
        assert database.execute("SELECT id FROM sessions").fetchall() == [("b",)]
    assert store.version("a") == 5
    with pytest.raises(VersionConflict):
        store.put("a", b"1", expected=0)
    assert store.put("a", b"1", expected=5) == 6


def test_a_note_is_replaced_alone_and_read_with_the_data(store: SQLiteSessionStore, clock: Clock) -> None:
    store.put("a", b"data", expected=0, note=b"one")
    store.put("a", None, expected=1, note=b"two")
    stored = store.get("a")
    assert stored is not None
    assert (stored.data, stored.note, stored.version) == (b"data", b"two", 2)
    clock.now += 101
    store.put("a", None, expected=2, note=b"three")
    stored = store.get("a")
    assert stored is not None
    assert (stored.data, stored.note) == (None, b"three"), "what has expired does not come back"


def test_a_lease_is_one_holders_until_it_ends(store: SQLiteSessionStore, clock: Clock) -> None:
    assert store.lease("a", "me", 10), "the session need not exist"
    assert store.renew("a", "me", 20)
    assert not store.lease("a", "you", 10)
    assert not store.renew("a", "you", 10)
    assert not store.release("a", "you")
    clock.now += 21
    assert store.lease("a", "you", 10)
    assert not store.renew("a", "me", 10)
    assert not store.release("a", "me")
    assert store.release("a", "you")
    assert not store.renew("a", "you", 10), "what was given back is not taken again by renewing it"


def test_a_clock_that_is_put_back_makes_a_lease_no_longer_than_it_was_taken_for(
    store: SQLiteSessionStore, clock: Clock
) -> None:
    store.put("a", b"1", expected=0)
    assert store.lease("a", "me", 10)
    clock.now -= 500
    assert not store.lease("a", "you", 10)
    clock.now += 11
    assert store.lease("a", "you", 10)


def test_what_was_stored_last_is_evicted_last_whatever_the_clock_does(
    store: SQLiteSessionStore, clock: Clock
) -> None:
    for name in "abc":
        clock.now -= 50
        store.put(name, b"x" * 300, expected=0)
    store.put("d", b"x" * 300, expected=0)
    assert [name for name in "abcd" if store.get(name)] == ["b", "c", "d"]


def test_the_oldest_session_that_nobody_holds_makes_room(store: SQLiteSessionStore, clock: Clock) -> None:
    for name in "abc":
        clock.now += 1
        store.put(name, b"x" * 300, expected=0)
    store.lease("a", "me", 50)
    store.put("d", b"x" * 300, expected=0)
    assert [name for name in "abcd" if store.get(name)] == ["a", "c", "d"]
    store.put("e", b"x" * 600, expected=0)
    assert [name for name in "abcde" if store.get(name)] == ["a", "e"]
    with pytest.raises(pydeno.InvalidInput):
        store.put("f", b"x" * 1001, expected=0)
    assert [name for name in "abcde" if store.get(name)] == ["a", "e"], "what fails changes nothing"


def test_what_is_evicted_keeps_its_note(store: SQLiteSessionStore) -> None:
    for name in "abcd":
        store.put(name, b"x" * 200, expected=0, note=name.encode())
    stored = store.get("a")
    assert stored is not None
    assert (stored.data, stored.note) == (None, b"a")


def test_a_store_that_may_not_evict_refuses(tmp_path: Path) -> None:
    with SQLiteSessionStore(tmp_path / "r.db", max_sessions=1, eviction="refuse") as store:
        store.put("a", b"1", expected=0)
        with pytest.raises(pydeno.InvalidInput, match="no room"):
            store.put("b", b"1", expected=0)
        assert store.put("a", b"2", expected=1) == 2


@pytest.mark.parametrize("name", ["", "x" * 513, "a\0b", "\ud800"])
def test_names_that_databases_cannot_have_are_refused(store: SQLiteSessionStore, name: str) -> None:
    for method in (store.get, store.version, store.delete):
        with pytest.raises(pydeno.InvalidInput):
            method(name)
    with pytest.raises(pydeno.InvalidInput):
        store.put(name, b"1", expected=0)
    with pytest.raises(pydeno.InvalidInput):
        store.lease(name, "me", 1)


def test_a_version_counter_never_goes_back_and_forgets_what_is_old(tmp_path: Path, clock: Clock) -> None:
    with SQLiteVersionCounter(tmp_path / "c.db", keep=100, clock=clock) as counter:
        counter.advance("a", 3)
        counter.advance("a", 2)
        assert (counter.get("a"), counter.get("b")) == (3, 0)
        clock.now += 101
        counter.advance("b", 1)
        assert counter.get("a") == 0


def test_the_file_is_its_owners_alone_and_shared_by_connections(
    store: SQLiteSessionStore, tmp_path: Path
) -> None:
    assert stat.S_IMODE((tmp_path / "s.db").stat().st_mode) == 0o600
    store.put("a", b"1", expected=0)
    with SQLiteSessionStore(tmp_path / "s.db") as other, pytest.raises(VersionConflict):
        other.put("a", b"2", expected=0)


def test_a_database_is_made_by_many_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def make(number: int) -> bool:
        together.wait(10)
        with SQLiteSessionStore(tmp_path / f"{number}.db") as store:
            return store.version("a") == 0

    with ThreadPoolExecutor(4) as makers:
        assert all(makers.map(make, [number for number in range(100) for _ in range(4)]))
