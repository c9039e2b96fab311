"""Streams of Python: generators and async iterables that a script asks for one item after the other."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from on_a_loop import Any3, RunOnLoop, until
from pydeno import (
    AgentSandbox,
    AsyncIsolatedRuntime,
    ConversionError,
    HostCallBudgetExceeded,
    HostWaitExceeded,
    InflightLimitExceeded,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    Runtime,
    RuntimeTimeout,
    SandboxPool,
)

AnyRuntime = Runtime | IsolatedRuntime
TAKE_ALL = """globalThis.all = async (stream) => {
    const out = [];
    for await (const item of stream) out.push(item);
    return out;
}; all"""


class Source:
    """Makes generators that know how far they were read and how they ended."""

    def __init__(self, length: int = 1_000_000) -> None:
        self.length, self.given, self.ended = length, 0, 0

    def plain(self) -> Iterator[int]:
        try:
            for n in range(self.length):
                self.given += 1
                yield n
        finally:
            self.ended += 1

    async def asynchronous(self) -> AsyncIterator[int]:
        try:
            for n in range(self.length):
                self.given += 1
                yield n
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0)
            self.ended += 1


class Countdown:
    """An async iterable that is no generator."""

    def __init__(self, start: int) -> None:
        self.left, self.closed = start, 0

    def __aiter__(self) -> Countdown:
        return self

    async def __anext__(self) -> int:
        if self.left == 0:
            raise StopAsyncIteration
        self.left -= 1
        return self.left

    async def aclose(self) -> None:
        self.closed += 1


@pytest.fixture(params=["plain", "asynchronous"])
def flavour(request: pytest.FixtureRequest) -> str:
    """A method of `Source`."""
    name: str = request.param
    return name


async def started(rt: Any) -> Any:
    if isinstance(rt, AsyncIsolatedRuntime):
        await rt.start()
    return rt


def test_a_script_takes_every_item_in_order(rt: AnyRuntime, flavour: str) -> None:
    source = Source(1500)
    rt.bind_function("rows", getattr(source, flavour))
    assert rt.eval(f"{TAKE_ALL}(rows())") == list(range(1500))
    assert (source.given, source.ended) == (1500, 1)


def test_a_script_takes_items_on_an_event_loop(kind: Any3, flavour: str, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, source = await started(kind()), Source(500)
        rt.bind_function("rows", getattr(source, flavour))
        assert await rt.eval_async(f"{TAKE_ALL}(rows())") == list(range(500))
        assert source.ended == 1
        rt.close()

    run_on_loop(main())


def test_a_stream_is_an_argument_and_inside_of_one_and_of_an_item(rt: AnyRuntime, flavour: str) -> None:
    take = rt.eval(f"{TAKE_ALL}; (x) => all(x)")
    assert take(getattr(Source(3), flavour)()) == [0, 1, 2]
    inside = rt.eval("(x) => all(x.list[1])")
    assert inside({"list": [0, getattr(Source(2), flavour)()]}) == [0, 1]
    nested = rt.eval(
        "async (x) => { const out = []; for await (const s of x) out.push(await all(s)); return out }"
    )
    assert nested(getattr(Source(n), flavour)() for n in (2, 1)) == [[0, 1], [0]]


def test_an_async_function_can_return_a_stream(rt: AnyRuntime, flavour: str) -> None:
    async def rows(length: int) -> Any:
        return getattr(Source(length), flavour)()

    rt.bind_function("rows", rows)
    assert rt.eval(f"{TAKE_ALL}; all(await rows(4))") == [0, 1, 2, 3]


def test_whatever_is_async_iterable_is_a_stream(rt: AnyRuntime) -> None:
    countdown = Countdown(3)
    rt.bind_function("count", lambda: countdown)
    assert rt.eval(f"{TAKE_ALL}(count())") == [2, 1, 0]
    countdown.left = 5
    assert rt.eval("(async () => { for await (const n of count()) if (n === 3) return n })()") == 3
    assert countdown.closed == 1


def test_nothing_is_taken_ahead_of_what_is_asked(rt: AnyRuntime, flavour: str) -> None:
    source = Source()
    rt.bind_function("rows", getattr(source, flavour))
    assert rt.eval("globalThis.it = rows(); 1") == 1
    assert source.given == 0
    assert rt.eval("it.next()") == {"value": 0, "done": False}
    assert source.given == 1
    # It stays for a later evaluation.
    assert rt.eval("it.next().then((r) => r.value)") == 1
    assert rt.eval("it.return(5)") == {"value": 5, "done": True}
    assert source.ended == 1
    assert rt.eval("(async () => (await it.next()).done)()") is True


def test_leaving_the_loop_closes_the_generator(rt: AnyRuntime, flavour: str) -> None:
    source = Source()
    rt.bind_function("rows", getattr(source, flavour))
    assert rt.eval("(async () => { for await (const n of rows()) if (n === 7) return n })()") == 7
    assert (source.given, source.ended) == (8, 1)
    with pytest.raises(JavaScriptError, match="mine"):
        rt.eval("(async () => { for await (const n of rows()) throw new Error('mine') })()")
    assert source.ended == 2
    rt.eval("(async () => { const it = rows(); await it.next(); try { await it.throw(1) } catch {} })()")
    assert source.ended == 3


def test_calls_of_next_that_overlap_are_answered_in_order(rt: AnyRuntime, flavour: str) -> None:
    rt.bind_function("rows", getattr(Source(5), flavour))
    code = """(() => {
        const it = rows();
        return Promise.all(Array.from({length: 7}, () => it.next().then((r) => r.done ? 'end' : r.value)));
    })()"""
    assert rt.eval(code) == [0, 1, 2, 3, 4, "end", "end"]


def test_an_exception_is_redacted_and_ends_the_stream(rt: AnyRuntime) -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("secret")

    def plain() -> Iterator[int]:
        yield 1
        raise ValueError("secret")

    rt.bind_object("rows", {"failing": failing, "plain": plain})
    for name in ("failing", "plain"):
        code = f"""(async () => {{
            const it = rows.{name}(), seen = [];
            try {{ for await (const n of it) seen.push(n) }} catch (error) {{ seen.push(error.message) }}
            return [...seen, (await it.next()).done];
        }})()"""
        assert rt.eval(code) == [1, "the host function failed", True]
        with pytest.raises(JavaScriptError) as caught:
            rt.eval(f"(async () => {{ for await (const n of rows.{name}()); }})()")
        assert isinstance(caught.value.__cause__, ValueError)
        assert "secret" not in str(caught.value)


def test_an_item_that_does_not_cross_ends_the_stream_and_closes_the_generator(rt: AnyRuntime) -> None:
    ended = []

    async def rows() -> AsyncIterator[object]:
        try:
            yield 1
            yield object()
        finally:
            ended.append(1)

    rt.bind_function("rows", rows)
    with pytest.raises(JavaScriptError) as caught:
        rt.eval(f"{TAKE_ALL}(rows())")
    assert isinstance(caught.value.__cause__, ConversionError)
    assert ended == [1]


def test_keyboard_interrupt_in_a_generator_ends_the_evaluation(rt: AnyRuntime) -> None:
    def rows() -> Iterator[int]:
        yield 1
        raise KeyboardInterrupt

    rt.bind_function("rows", rows)
    with pytest.raises(KeyboardInterrupt):
        rt.eval("(async () => { for (;;) try { for await (const n of rows()); } catch {} })()")


def test_the_number_of_open_streams_is_bounded(rt: AnyRuntime, flavour: str) -> None:
    rt.bind_function("rows", getattr(Source(1), flavour))
    rt.eval("globalThis.kept = Array.from({length: 1000}, () => rows()); 1")
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("rows()")
    assert isinstance(caught.value.__cause__, InvalidInput)
    rt.eval(f"{TAKE_ALL}(kept[0])")
    assert rt.eval("all(rows())") == [0]


def test_a_value_that_does_not_cross_after_all_opens_no_stream(rt: AnyRuntime) -> None:
    take = rt.eval("(x) => 1")
    for _ in range(1100):
        with pytest.raises(ConversionError):
            take([Source().plain(), object()])
    assert take(Source().plain()) == 1


def test_pulls_count_as_host_calls_and_wait_like_them(flavour: str) -> None:
    with IsolatedRuntime(max_host_calls=50) as rt:
        rt.bind_function("rows", getattr(Source(), flavour))
        with pytest.raises(HostCallBudgetExceeded):
            rt.eval(f"{TAKE_ALL}(rows())")
        assert rt.eval("1 + 1") == 2
    with IsolatedRuntime(max_inflight_host_calls=10) as rt:
        rt.bind_function("rows", getattr(Source(), flavour))
        with pytest.raises(InflightLimitExceeded):
            rt.eval("const it = rows(); await Promise.all(Array.from({length: 11}, () => it.next()))")
        assert rt.eval("1 + 1") == 2


def test_a_generator_that_takes_too_long_is_stopped() -> None:
    async def slow() -> AsyncIterator[int]:
        await asyncio.sleep(3600)
        yield 1

    with IsolatedRuntime(tool_timeout=0.1) as rt:
        rt.bind_function("rows", slow)
        code = "(async () => { try { for await (const n of rows()); } catch (error) { return error.message } })()"
        assert rt.eval(code) == "the host function failed"
    for has_loop in (False, True):
        with IsolatedRuntime(max_host_wait=0.2) as rt:
            if has_loop:
                rt.bind_function("unused", asyncio.sleep)
            rt.bind_function("rows", slow)
            with pytest.raises(HostWaitExceeded):
                rt.eval(f"{TAKE_ALL}(rows())")
            assert rt.eval("1 + 1") == 2


def test_time_in_a_generator_is_not_the_scripts() -> None:
    async def slow() -> AsyncIterator[int]:
        for n in range(3):
            await asyncio.sleep(0.2)
            yield n

    with IsolatedRuntime(timeout=0.3) as rt:
        rt.bind_function("rows", slow)
        assert rt.eval(f"{TAKE_ALL}(rows())") == [0, 1, 2]
        with pytest.raises(RuntimeTimeout):
            rt.eval("(async () => { for await (const n of rows()) for (;;); })()")


def test_cancelling_the_evaluation_ends_the_generator(kind: Any3, run_on_loop: RunOnLoop) -> None:
    state = {"waits": 0, "ended": 0}

    async def rows() -> AsyncIterator[int]:
        try:
            yield 1
            state["waits"] = 1
            await asyncio.sleep(3600)
        finally:
            state["ended"] = 1

    async def main() -> None:
        rt = await started(kind())
        rt.bind_function("rows", rows)
        task = asyncio.ensure_future(rt.eval_async(f"{TAKE_ALL}(rows())"))
        await until(lambda: state["waits"] == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: state["ended"] == 1)
        assert await rt.eval_async("1 + 1") == 2
        rt.close()

    run_on_loop(main())


def test_the_end_of_the_runtime_closes_what_is_open(door: Any, flavour: str) -> None:
    source = Source()
    with door() as rt:
        rt.bind_function("rows", getattr(source, flavour))
        rt.eval("globalThis.it = rows(); it.next()")
        assert source.ended == 0
    assert source.ended == 1


def test_the_end_of_a_runtime_on_a_loop_closes_what_is_open(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        source, countdown = Source(), Countdown(3)
        rt = await started(kind())
        rt.bind_object("host", {"rows": source.asynchronous, "count": lambda: countdown})
        await rt.eval_async(
            "globalThis.its = [host.rows(), host.count()]; Promise.all(its.map((it) => it.next()))"
        )
        rt.close()
        await until(lambda: source.ended == countdown.closed == 1)
        async with AsyncIsolatedRuntime() as other:
            other.bind_function("count", lambda: countdown)
            await other.eval("globalThis.it = count(); it.next()")
        assert countdown.closed == 2

    run_on_loop(main())


def test_a_runtime_that_is_gone_keeps_no_generator(door: Any) -> None:
    generator = Source().plain()
    gone = weakref.ref(generator)
    rt = door()
    rt.eval("(x) => { globalThis.it = x; return it.next() }")(generator)
    del generator
    rt.close()
    del rt
    gc.collect()
    assert gone() is None


def test_a_pools_runtimes_take_streams() -> None:
    with SandboxPool(size=1) as pool:
        pool.bind_function("rows", Source(3).plain)
        for _ in range(2):
            with pool.checkout() as rt:
                assert rt.eval(f"{TAKE_ALL}(rows())") == [0, 1, 2]


def test_asking_for_async_items_inside_a_running_loop_says_what_to_do(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        with IsolatedRuntime() as rt:
            rt.bind_function("rows", Source(3).asynchronous)
            with pytest.raises(JavaScriptError) as caught:
                rt.eval(f"{TAKE_ALL}(rows())")
            assert isinstance(caught.value.__cause__, InvalidInput)
            assert "eval_async" in str(caught.value.__cause__)

    run_on_loop(main())


def test_a_script_cannot_make_up_a_stream(rt: AnyRuntime) -> None:
    source = Source()
    rt.bind_function("rows", source.plain)
    code = """(async () => {
        const one = rows(), two = rows();
        const stolen = one.next;
        return [(await stolen.call(two)).value, (await stolen.apply(null, [1, 1])).value, (await two.next()).value,
                Object.getOwnPropertyNames(one).join(), Object.keys(one).length];
    })()"""
    assert rt.eval(code) == [0, 1, 0, "next,return,throw", 0]


def test_poisoned_built_ins_change_nothing_for_the_host(rt: AnyRuntime) -> None:
    source = Source(3)
    rt.bind_function("rows", source.plain)
    code = """(async () => {
        Array.prototype[Symbol.iterator] = null; Object.prototype.length = 9; Object.prototype[0] = 'x';
        Function.prototype.bind = Function.prototype.call = Reflect.apply = null;
        const seen = [], it = rows();
        for (;;) { const r = await it.next(); if (r.done) break; seen.push(r.value) }
        delete Object.prototype.length; delete Object.prototype[0];
        return seen;
    })()"""
    assert rt.eval(code) == [0, 1, 2]
    assert source.ended == 1


def test_other_iterators_and_an_agents_answers_are_refused(rt: AnyRuntime) -> None:
    take = rt.eval("(x) => 1")
    for value in (range(3), map(str, [1]), iter([1]), zip([1], [2], strict=True)):
        with pytest.raises(ConversionError):
            take(value)
    with AgentSandbox({"rows": Source(3).plain}) as agent:
        result = agent.execute("return await rows()")
        assert result.status != "ok"
        assert agent.execute("return 2").result == 2
