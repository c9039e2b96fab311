"""Sessions of a pool on an event loop, over stores of either kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pydeno
from on_a_loop import RunOnLoop, until
from pydeno import (
    AsyncSessionPool,
    AsyncSessionStore,
    SQLiteSessionStore,
    SQLiteVersionCounter,
    StoredSession,
    VersionConflict,
)

KEY = b"k" * 32


async def tool(item: str) -> str:
    """A tool that says it again."""
    await asyncio.sleep(0)
    return item * 2


class MemoryStore:
    """A store of coroutines, without any durability."""

    def __init__(self) -> None:
        self.rows: dict[str, StoredSession] = {}
        self.held: dict[str, str] = {}
        self.calls: list[str] = []
        #: Where set, whoever puts waits for it.
        self.gate: asyncio.Event | None = None

    async def _step(self, name: str) -> None:
        self.calls.append(name)
        await asyncio.sleep(0)

    async def get(self, session_id: str) -> StoredSession | None:
        await self._step("get")
        return self.rows.get(session_id)

    async def version(self, session_id: str) -> int:
        await self._step("version")
        return self.rows[session_id].version if session_id in self.rows else 0

    async def put(self, session_id: str, data: bytes | None, *, expected: int, note: bytes = b"") -> int:
        await self._step("put")
        if self.gate is not None:
            await self.gate.wait()
        before = self.rows.get(session_id, StoredSession(None, 0))
        if before.version != expected:
            raise VersionConflict("stored by another")
        self.rows[session_id] = StoredSession(before.data if data is None else data, expected + 1, note)
        return expected + 1

    async def delete(self, session_id: str) -> bool:
        await self._step("delete")
        return self.rows.pop(session_id, None) is not None

    async def lease(self, session_id: str, holder: str, duration: float) -> bool:
        await self._step("lease")
        return self.held.setdefault(session_id, holder) == holder

    async def renew(self, session_id: str, holder: str, duration: float) -> bool:
        await self._step("renew")
        return self.held.get(session_id) == holder

    async def release(self, session_id: str, holder: str) -> bool:
        await self._step("release")
        if self.held.get(session_id) != holder:
            return False
        del self.held[session_id]
        return True


@pytest.fixture(params=["coroutines", "threads", "path"])
def store_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """A store of each kind, each time the same one."""
    if request.param == "path":
        return lambda: tmp_path / "s.db"
    store: AsyncSessionStore | SQLiteSessionStore
    store = MemoryStore() if request.param == "coroutines" else SQLiteSessionStore(tmp_path / "s.db")
    return lambda: store


def test_sessions_go_on_whatever_the_store(store_of: Callable[[], Any], run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        async with AsyncSessionPool(store_of(), KEY, tools=[tool], max_live=1) as pool:
            async with pool.session("a") as session:
                assert session.is_new
                await session.run("globalThis.all = await Promise.all([tool('x'), tool('y')])")
                await session.save()
            async with pool.session("b") as session:
                await session.run("1")
            async with pool.session("a") as session:
                assert await session.run("all") == ["xx", "yy"]
            assert (pool.stats().made, pool.stats().loaded) == (2, 1)
            with pytest.raises(pydeno.RuntimeClosed):
                await session.run("1")
            assert await pool.delete("a")
        assert pool.is_closed()

    run_on_loop(main())


def test_what_is_spent_is_stored_before_async_tools_are_called(run_on_loop: RunOnLoop) -> None:
    store = MemoryStore()
    seen: list[int] = []

    async def look() -> None:
        seen.append(store.calls.count("put"))

    async def main() -> None:
        async with (
            AsyncSessionPool(store, KEY, tools=[look]) as pool,
            pool.session("a") as session,
        ):
            await session.run("await look(); await look()")

    run_on_loop(main())
    assert seen == [1, 2]


def test_an_async_tool_is_not_called_where_its_price_cannot_be_stored(run_on_loop: RunOnLoop) -> None:
    store = MemoryStore()
    called: list[int] = []

    async def act() -> None:
        called.append(1)

    async def main() -> None:
        async with AsyncSessionPool(store, KEY, tools=[act]) as pool:
            with pytest.raises(VersionConflict):
                async with pool.session("a") as session:
                    store.rows["a"] = StoredSession(None, 7)
                    with pytest.raises(VersionConflict):
                        await session.run("await act()")
                    step = await session.start("await act()")
                    assert isinstance(step, pydeno.Failed)
                    assert await session.run("1 + 1") == 2

    run_on_loop(main())
    assert called == []


def test_a_task_that_is_cancelled_while_it_pays_knows_what_it_has_stored(run_on_loop: RunOnLoop) -> None:
    store = MemoryStore()

    async def main() -> None:
        async with AsyncSessionPool(store, KEY, tools=[tool]) as pool:
            async with pool.session("a") as session:
                await session.run("globalThis.n = 1")
                store.gate = asyncio.Event()
                run = asyncio.create_task(session.run("await tool('x')"))
                await until(lambda: "put" in store.calls)
                run.cancel()
                asyncio.get_running_loop().call_later(0.01, store.gate.set)
                with pytest.raises(asyncio.CancelledError):
                    await run
                assert await session.run("n += 1") == 2
            async with pool.session("a") as session:
                assert await session.run("n") == 2

    run_on_loop(main())


def test_a_block_whose_task_is_cancelled_is_stored(run_on_loop: RunOnLoop) -> None:
    store = MemoryStore()
    ready = asyncio.Event()

    async def block(pool: AsyncSessionPool) -> None:
        async with pool.session("a") as session:
            await session.run("globalThis.n = 1")
            ready.set()
            await session.run("await forever()")

    async def forever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        async with AsyncSessionPool(store, KEY, tools=[forever]) as pool:
            task = asyncio.create_task(block(pool))
            await ready.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert store.held == {}
            async with pool.session("a") as session:
                assert await session.run("n") == 1

    run_on_loop(main())


def test_a_checkout_that_is_cancelled_leaves_no_lease_and_no_worker(run_on_loop: RunOnLoop) -> None:
    store = MemoryStore()

    async def main() -> None:
        async with AsyncSessionPool(store, KEY, max_live=1) as pool:
            store.held["a"] = "somebody"

            async def wait() -> None:
                async with pool.session("a"):
                    pass

            task = asyncio.create_task(wait())
            await until(lambda: "lease" in store.calls)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (pool.stats().in_use, store.held) == (0, {"a": "somebody"})
            async with pool.session("b") as session:
                assert await session.run("1 + 1") == 2

    run_on_loop(main())


def test_blocks_of_many_tasks_take_turns(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        async with AsyncSessionPool(MemoryStore(), KEY, max_live=2) as pool:

            async def count(name: str) -> None:
                async with pool.session(name) as session:
                    await session.run("globalThis.n = (globalThis.n ?? 0) + 1")

            await asyncio.gather(*(count(name) for name in "abcabcabc"))
            for name in "abc":
                async with pool.session(name) as session:
                    assert await session.run("n") == 3

    run_on_loop(main())


def test_idle_workers_are_closed_and_leases_renewed(run_on_loop: RunOnLoop) -> None:
    store = MemoryStore()

    async def main() -> None:
        async with AsyncSessionPool(store, KEY, max_idle=0.1, lease=0.1) as pool:
            async with pool.session("a"):
                await until(lambda: "renew" in store.calls)
            await until(lambda: pool.stats().idle == 0)

    run_on_loop(main())


def test_a_counter_works_on_a_loop_too(tmp_path: Path, run_on_loop: RunOnLoop) -> None:
    store = MemoryStore()

    async def main() -> None:
        with SQLiteVersionCounter(tmp_path / "counter.db") as counter:
            async with AsyncSessionPool(store, KEY, counter=counter) as pool:
                for _ in range(2):
                    async with pool.session("a") as session:
                        await session.run("globalThis.n = 1")
                    old = store.rows["a"] if session.is_closed() and len(store.rows) else None
                assert old is not None
            store.rows["a"] = StoredSession(old.data, 1, old.note)
            async with AsyncSessionPool(store, KEY, counter=counter) as pool:
                with pytest.raises(pydeno.JournalError, match="older copy"):
                    async with pool.session("a"):
                        pass

    run_on_loop(main())
