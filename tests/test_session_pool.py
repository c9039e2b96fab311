"""Sessions of a pool: found again by name, in few workers, and spending nothing twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pydeno
from pydeno import (
    Done,
    SessionPool,
    SQLiteSessionStore,
    SQLiteVersionCounter,
    ToolCall,
    VersionConflict,
)

KEY, NEWER = b"k" * 32, b"n" * 32
PoolMaker = Callable[..., SessionPool]


def tool(item: str) -> str:
    """A tool that says it again."""
    return item * 2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def pool_of(path: Path) -> Iterator[PoolMaker]:
    """Makes pools on one store, as several processes would have them."""
    made: list[SessionPool] = []

    def make(**options: Any) -> SessionPool:
        keys = options.pop("keys", KEY)
        made.append(SessionPool(options.pop("store", path), keys, **{"tools": [tool], **options}))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def test_a_session_goes_on_in_the_same_worker_or_in_another_pool(pool_of: PoolMaker) -> None:
    first, second = pool_of(), pool_of()
    with first.session("a") as session:
        assert session.is_new
        assert session.id == "a"
        session.run("globalThis.n = await tool('x')")
        worker = session.worker_pid
    with first.session("a") as session:
        assert not session.is_new
        assert session.worker_pid == worker
        assert session.run("n += '!'") == "xx!"
    with second.session("a") as session:
        assert session.run("n += '?'") == "xx!?"
    with first.session("a") as session:
        assert session.worker_pid != worker, "what was in the old worker is not what is stored"
        assert session.run("n") == "xx!?"
    stats = first.stats()
    assert (stats.made, stats.loaded, stats.reused, stats.idle) == (1, 1, 1, 1)


def test_sessions_of_two_names_know_nothing_of_each_other(pool_of: PoolMaker) -> None:
    pool = pool_of()
    with pool.session("a") as a, pool.session("b") as b:
        a.run("globalThis.x = 1")
        assert b.run("typeof x") == "undefined"


def test_a_session_is_nobodys_after_its_block(pool_of: PoolMaker) -> None:
    pool = pool_of()
    with pool.session("a") as session:
        session.run("1")
    assert session.is_closed()
    for use in (lambda: session.run("1"), lambda: session.dump(KEY), session.save, lambda: session.id):
        with pytest.raises(pydeno.RuntimeClosed):
            use()
    session.close()
    session.terminate()
    with pool.session("a") as again:
        assert again.run("1 + 1") == 2
    assert pool.stats().reused == 1, "what is left of a block does nothing to the session"


def test_few_workers_serve_many_sessions(pool_of: PoolMaker) -> None:
    pool = pool_of(max_live=2)
    for name in "abc":
        with pool.session(name) as session:
            session.run(f"globalThis.me = '{name}'")
            assert pool.stats().idle + pool.stats().in_use <= 2
    for name in "cab":
        with pool.session(name) as session:
            assert session.run("me") == name
    assert (pool.stats().reused, pool.stats().loaded) == (1, 2)


def test_a_pool_without_a_free_worker_makes_callers_wait(pool_of: PoolMaker) -> None:
    pool = pool_of(max_live=1, checkout_timeout=60)
    with (
        pool.session("a"),
        pytest.raises(pydeno.CheckoutTimeout, match="every worker"),
        pool.session("b", checkout_timeout=0.05),
    ):
        pass
    got: list[Any] = []

    def wait() -> None:
        with pool.session("b") as session:
            got.append(session.run("7"))

    with pool.session("a"):
        waiter = threading.Thread(target=wait)
        waiter.start()
    waiter.join()
    assert got == [7]


def test_a_session_is_used_by_one_block_at_a_time(pool_of: PoolMaker) -> None:
    first, second = pool_of(), pool_of()
    with first.session("a"):
        with pytest.raises(pydeno.CheckoutTimeout, match="in use"), first.session("a", checkout_timeout=0.05):
            pass
        with (
            pytest.raises(pydeno.CheckoutTimeout, match="another process"),
            second.session("a", checkout_timeout=0.05),
        ):
            pass
    with second.session("a", checkout_timeout=0.05) as session:
        session.run("1")


def test_blocks_of_many_threads_take_turns(pool_of: PoolMaker) -> None:
    pool = pool_of(max_live=2)

    def count() -> None:
        for _ in range(3):
            with pool.session("a") as session:
                session.run("globalThis.n = (globalThis.n ?? 0) + 1")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pool.session("a") as session:
        assert session.run("n") == 12


def test_a_lease_is_renewed_for_as_long_as_the_block_goes_on(path: Path, pool_of: PoolMaker) -> None:
    renewed = threading.Event()

    class Store(SQLiteSessionStore):
        __slots__ = ()

        def renew(self, session_id: str, holder: str, duration: float) -> bool:
            try:
                return super().renew(session_id, holder, duration)
            finally:
                renewed.set()

    with Store(path) as store:
        pool = pool_of(store=store, lease=0.15)
        with pool.session("a"):
            for _ in range(3):
                renewed.clear()
                assert renewed.wait(30)
            assert not store.lease("a", "you", 0.1)
        assert store.lease("a", "you", 0.1)


def test_a_session_that_waits_for_an_answer_is_stored_as_that(pool_of: PoolMaker) -> None:
    ask = {"name": "ask", "inputSchema": {"type": "object"}}
    first, second = pool_of(tools=[ask]), pool_of(tools=[ask])
    with first.session("a") as session:
        step = session.start("return await ask({about: 1}) + 1")
        assert isinstance(step, ToolCall)
        told = step.id
    assert first.stats().idle == 0, "its worker does not wait with it"
    with second.session("a") as session:
        assert session.paused is not None
        assert (session.paused.id, session.paused.arguments) == (told, {"about": 1})
        step = session.resume(1)
        assert isinstance(step, Done)
        assert step.value == 2


def test_an_error_of_the_block_loses_nothing(pool_of: PoolMaker) -> None:
    pool = pool_of()
    with pytest.raises(pydeno.JavaScriptError), pool.session("a") as session:
        session.run("globalThis.kept = 1")
        session.run("throw new Error('no')")
    with pool.session("a") as session:
        assert session.run("kept") == 1


def test_what_a_block_saves_is_there_before_its_end(pool_of: PoolMaker) -> None:
    first, second = pool_of(), pool_of(lease=0.001)
    with first.session("a") as session:
        session.run("globalThis.n = 1")
        session.save()
        session.save()
        assert first.stats().stored == 1, "what has not changed is not stored again"
        os.kill(session.worker_pid, signal.SIGKILL)
    with second.session("a") as session:
        assert session.run("n") == 1


def test_a_block_without_a_run_stores_nothing(pool_of: PoolMaker) -> None:
    pool = pool_of()
    with pool.session("a"):
        pass
    with pool.session("a") as session:
        assert session.is_new
    assert pool.stats().stored == 0


def test_what_is_spent_is_stored_before_the_tool_is_called(path: Path, pool_of: PoolMaker) -> None:
    versions = []
    store = SQLiteSessionStore(path)

    def look(item: str) -> str:
        versions.append(store.version("a"))
        return item

    with pool_of(tools=[look]).session("a") as session:
        session.run("await Promise.all([look('x'), look('y')]); await look('z')")
    assert versions[0] > 0
    assert versions[-1] > versions[0], "before each that is called after an answer"
    store.close()


def test_a_tool_is_not_called_where_its_price_cannot_be_stored(path: Path, pool_of: PoolMaker) -> None:
    called: list[str] = []

    def act(item: str) -> str:
        called.append(item)
        return item

    pool = pool_of(tools=[act])
    with SQLiteSessionStore(path) as store, pytest.raises(VersionConflict), pool.session("a") as session:
        session.run("await act('x')")
        session.save()
        store.put("a", b"stored by somebody else", expected=store.version("a"))
        with pytest.raises(VersionConflict):
            session.run("await act('y')")
        step = session.start("await act('z')")
        assert isinstance(step, pydeno.Failed)
        assert isinstance(step.error, VersionConflict)
        assert session.run("1 + 1") == 2, "the run was stopped and the session answers"
    assert called == ["x"]
    assert pool.stats().lost == 1


def test_budgets_of_an_evicted_session_stay_spent(path: Path, pool_of: PoolMaker) -> None:
    with SQLiteSessionStore(path, max_sessions=1) as store:
        pool = pool_of(store=store, max_live=1, tool_budgets={"tool": 1})
        for name in "ab":
            with pool.session(name) as session:
                session.run("globalThis.n = await tool('x')")
        with pool.session("a") as session:
            assert session.is_new
            assert session.run("typeof n") == "undefined"
            with pytest.raises(pydeno.ToolBudgetExceeded):
                session.run("await tool('x')")


def test_a_session_that_was_deleted_is_a_new_one(pool_of: PoolMaker) -> None:
    pool = pool_of(max_tool_calls=1)
    with pool.session("a") as session:
        session.run("await tool('x')")
    assert pool.delete("a")
    assert not pool.delete("a")
    with pool.session("a") as session:
        assert session.is_new
        assert session.run("await tool('x')") == "xx"
    with pytest.raises(VersionConflict), pool.session("a") as session:
        session.run("1")
        assert pool.delete("a")


class NoRoom(SQLiteSessionStore):
    """A store that takes notes and no journals."""

    __slots__ = ()

    def put(self, session_id: str, data: bytes | None, *, expected: int, note: bytes = b"") -> int:
        if data is not None:
            raise pydeno.InvalidInput("there is no room")
        return super().put(session_id, None, expected=expected, note=note)


def test_keys_are_changed_while_sessions_live(path: Path, pool_of: PoolMaker) -> None:
    with pool_of().session("a") as session:
        session.run("globalThis.n = 1")
    with pytest.raises(pydeno.JournalError), pool_of(keys=NEWER).session("a"):
        pass
    with (
        NoRoom(path) as store,
        pytest.raises(pydeno.InvalidInput, match="no room"),
        pool_of(keys=[NEWER, KEY], store=store).session("a") as session,
    ):
        # A note of the new key, and still the journal of the old one.
        session.run("await tool('x')")
    with pool_of(keys=[NEWER, KEY]).session("a") as session:
        assert session.run("n += 1") == 2
    with pool_of(keys=NEWER).session("a") as session:
        assert session.run("n") == 2


def test_what_was_changed_in_the_store_is_refused(path: Path, pool_of: PoolMaker) -> None:
    with pool_of(tool_budgets={"tool": 1}).session("a") as session:
        session.run("await tool('x')")
    with pool_of().session("b") as session:
        session.run("1")
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT id, data, note, version FROM sessions").fetchall()
    rows = {name: (data, note, version) for name, data, note, version in found}
    data, note, version = rows["a"]
    forged = note[:-8] + b"0" + note[-7:]
    for changed in (
        (data[:-1] + b"\0", note, version),
        (rows["b"][0], note, version),
        (data, forged, version),
        (data, b"", version),
        (data, rows["b"][1], version),
        (data, note, version + 1),
    ):
        with sqlite3.connect(path) as database:
            database.execute("UPDATE sessions SET data = ?, note = ?, version = ? WHERE id = 'a'", changed)
        with pytest.raises(pydeno.JournalError), pool_of().session("a"):
            pass
    with sqlite3.connect(path) as database:
        database.execute(
            "UPDATE sessions SET data = ?, note = ?, version = ? WHERE id = 'a'", (data, note, version)
        )
    with pool_of(tool_budgets={"tool": 1}).session("a") as session:
        assert not session.is_new, "what was there before is taken"


def test_a_session_is_of_one_service(pool_of: PoolMaker) -> None:
    with pool_of(associated_data=b"one").session("a") as session:
        session.run("1")
    with pytest.raises(pydeno.JournalError), pool_of(associated_data=b"two").session("a"):
        pass


def copy_of(path: Path) -> tuple[Any, ...]:
    with sqlite3.connect(path) as database:
        row: tuple[Any, ...] = database.execute(
            "SELECT data, note, version FROM sessions WHERE id = 'a'"
        ).fetchone()
        return row


def put_back(path: Path, row: tuple[Any, ...]) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE sessions SET data = ?, note = ?, version = ? WHERE id = 'a'", row)


def test_an_older_copy_is_noticed_by_who_has_seen_a_newer_one_and_by_the_counter(
    path: Path, tmp_path: Path, pool_of: PoolMaker
) -> None:
    with SQLiteVersionCounter(tmp_path / "counter.db") as counter:
        pool = pool_of(counter=counter)
        with pool.session("a") as session:
            session.run("globalThis.n = 1")
        old = copy_of(path)
        with pool.session("a") as session:
            session.run("await tool('x')")
        newest = copy_of(path)
        put_back(path, old)
        for other in (pool, pool_of(counter=counter)):
            with pytest.raises(pydeno.JournalError, match="older copy"), other.session("a"):
                pass
        with pool_of().session("a") as session:
            assert session.run("n") == 1, "nobody else can tell: it is whole and was signed"
        put_back(path, newest)
        with pool_of(counter=counter).session("a") as session:
            assert session.run("n") == 1


def test_tools_may_depend_on_the_name(pool_of: PoolMaker) -> None:
    pool = pool_of(tools=lambda name: {"who": lambda: name})
    for name in "ab":
        with pool.session(name) as session:
            assert session.run("await who()") == name


def test_wrong_options_are_told_of_at_once(path: Path) -> None:
    with pytest.raises(pydeno.InvalidInput, match="16 bytes"):
        SessionPool(path, [KEY, b"short"])
    with pytest.raises(TypeError):
        SessionPool(path, [])
    with pytest.raises(TypeError, match="clock"):
        SessionPool(path, KEY, clock=1)
    with pytest.raises(pydeno.InvalidInput, match="mode"):
        SessionPool(path, KEY, mode="sideways")
    with pytest.raises(TypeError, match="max_host_wait"):
        SessionPool(path, KEY, max_host_wait=1)


def test_a_closed_pool_stores_what_is_in_use_and_hands_out_nothing(path: Path, pool_of: PoolMaker) -> None:
    pool = pool_of()
    with pool.session("b") as session:
        session.run("1")
    with pool.session("a") as session:
        session.run("globalThis.n = 1")
        pool.close()
        pool.close()
        assert pool.stats().idle == 0
        with pytest.raises(pydeno.RuntimeClosed), pool.session("b"):
            pass
    assert (pool.stats().idle, pool.stats().in_use) == (0, 0)
    with pool_of().session("a") as session:
        assert session.run("n") == 1


def test_idle_workers_are_closed_after_their_time(pool_of: PoolMaker) -> None:
    pool = pool_of(max_idle=0.05)
    with pool.session("a") as session:
        session.run("globalThis.n = 1")
    waited = threading.Event()
    while pool.stats().idle:
        waited.wait(0.01)
    with pool.session("a") as session:
        assert session.run("n") == 1


def test_a_session_that_outgrows_its_journal_says_so_at_the_end(pool_of: PoolMaker) -> None:
    pool = pool_of(max_journal_bytes=20_000)
    with pool.session("a") as session:
        session.run("globalThis.n = 1")
    with pytest.raises(pydeno.JournalError, match="outgrown"), pool.session("a") as session:
        session.run(f"n = 2 /* {'x' * 20_000} */")
    with pool.session("a") as session:
        assert session.run("n") == 1
