"""Streams of a script: async iterators that Python asks for one item after the other."""

from __future__ import annotations

import asyncio
import copy
import gc
import itertools
from typing import Any

import pytest

from on_a_loop import Any3, Gauge, RunOnLoop, until
from pydeno import (
    AgentSandbox,
    AsyncIsolatedRuntime,
    ConversionError,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    JsStream,
    PydenoError,
    Runtime,
    RuntimeClosed,
    RuntimeConfig,
    RuntimeTerminated,
    RuntimeTimeout,
    StreamLimitExceeded,
    undefined,
)

AnyRuntime = Runtime | IsolatedRuntime
COUNT = "async function* count(n) { for (let i = 0; i < n; i++) yield i }"
#: Notes in `log` how it ends.
GUARDED = """globalThis.log = []; (async function* () {
    try { for (let i = 0; ; i++) yield i } finally { log.push('end') }
})()"""


def test_a_loop_takes_every_item_in_order(rt: AnyRuntime) -> None:
    stream = rt.eval(f"{COUNT} count(3000)")
    assert isinstance(stream, JsStream)
    assert list(stream) == list(range(3000))
    assert stream.closed
    assert list(stream) == []
    with pytest.raises(StopIteration):
        next(stream)


def test_a_loop_on_an_event_loop_takes_every_item_in_order(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        stream = await rt.eval_async(f"{COUNT} count(1000)")
        assert [item async for item in stream] == list(range(1000))
        assert stream.closed
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert await rt.eval_async("1 + 1") == 2
        rt.close()

    run_on_loop(main())


def test_items_are_values_of_every_kind(rt: AnyRuntime) -> None:
    code = "(async function* () { yield undefined; yield null; yield {a: [1n, new Set(['x'])]}; yield () => 7 })()"
    nothing, null, data, function = rt.eval(code)
    assert nothing is undefined
    assert null is None
    assert data == {"a": [1, {"x"}]}
    assert function() == 7


def test_streams_are_found_wherever_values_are(rt: AnyRuntime) -> None:
    value = rt.eval(f"{COUNT} ({{rows: count(2), list: [count(3)], map: new Map([['k', count(1)]])}})")
    assert [list(value["rows"]), list(value["list"][0]), list(value["map"]["k"])] == [[0, 1], [0, 1, 2], [0]]
    given: list[Any] = []
    rt.bind_function("give", given.append)
    rt.eval("give({s: count(2)})")
    assert list(given[0]["s"]) == [0, 1]


def test_a_stream_can_give_a_stream(rt: AnyRuntime) -> None:
    outer = rt.eval(f"{COUNT} (async function* () {{ for (const n of [2, 3]) yield count(n) }})()")
    assert [list(inner) for inner in outer] == [[0, 1], [0, 1, 2]]


def test_nothing_of_the_script_runs_before_it_is_asked(rt: AnyRuntime) -> None:
    stream = rt.eval("globalThis.made = 0; (async function* () { for (;;) { made++; yield made } })()")
    assert rt.eval("made") == 0
    assert next(stream) == 1
    assert next(stream) == 2
    assert rt.eval("made") == 2


def test_whatever_would_run_code_to_say_it_is_a_stream_is_none(rt: AnyRuntime) -> None:
    rt.eval("globalThis.ran = 0")
    for code in [
        "({get [Symbol.asyncIterator]() { ran++; return async function* () {} }})",
        "({__proto__: new Proxy({}, {get() { ran++ }, has() { ran++ }, getPrototypeOf() { ran++ }})})",
    ]:
        assert rt.eval(code) == {}
    assert rt.eval("ran") == 0
    with pytest.raises(ConversionError, match="proxy"):
        rt.eval("new Proxy((async function* () {})(), {})")


def test_leaving_a_loop_calls_return(rt: AnyRuntime) -> None:
    for item in rt.eval(GUARDED):
        if item == 3:
            break
    assert rt.eval("log") == ["end"]
    with pytest.raises(ZeroDivisionError):
        for item in rt.eval(GUARDED):
            1 // item
    assert rt.eval("log") == ["end"]


def test_leaving_a_loop_on_an_event_loop_calls_return(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        async for item in await rt.eval_async(GUARDED):
            if item == 3:
                break
        while await rt.eval_async("log") != ["end"]:
            await asyncio.sleep(0)
        rt.close()

    run_on_loop(main())


def test_closing_calls_return_once(rt: AnyRuntime) -> None:
    stream = rt.eval(GUARDED)
    assert next(stream) == 0
    with stream:
        assert next(stream) == 1
    stream.close()
    assert stream.closed
    assert rt.eval("log") == ["end"]
    untouched = rt.eval(GUARDED)
    untouched.close()
    assert rt.eval("log") == []


def test_closing_on_an_event_loop_calls_return_and_waits_for_it(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        stream = await rt.eval_async(GUARDED)
        async with stream:
            assert await anext(stream) == 0
        await stream.aclose()
        assert await rt.eval_async("log") == ["end"]
        rt.close()

    run_on_loop(main())


def test_an_object_that_is_gone_is_let_go_of_without_running_the_script(rt: AnyRuntime) -> None:
    rt.eval(GUARDED.replace("(async", "globalThis.make = (async").removesuffix("()"))
    for _ in range(20):
        # More in all than are held at a time, so they are let go of.
        streams = rt.eval("Array.from({length: 1000}, () => make())")
        assert next(streams[0]) == 0
        del streams
        gc.collect()
    assert rt.eval("log") == []


def test_the_number_of_streams_that_are_held_is_bounded(rt: AnyRuntime) -> None:
    streams = rt.eval(f"{COUNT} Array.from({{length: 10000}}, () => count(1))")
    with pytest.raises(ConversionError, match="more than the host holds"):
        rt.eval("count(1)")
    assert list(streams[0]) == [0]
    assert list(rt.eval("count(1)")) == [0]


def test_an_error_of_the_script_ends_the_stream(rt: AnyRuntime) -> None:
    stream = rt.eval("(async function* () { yield 1; throw new RangeError('mine') })()")
    assert next(stream) == 1
    with pytest.raises(JavaScriptError, match="mine") as caught:
        next(stream)
    assert caught.value.name == "RangeError"
    assert stream.closed
    assert list(stream) == []


@pytest.mark.parametrize(
    "next_method",
    [
        "() => 1",
        "() => { throw 1 }",
        "() => Promise.reject(new Error('no'))",
        "() => new Promise(() => {})",
        "() => ({then() {}})",
        "() => ({get done() { throw new Error('no') }})",
        "() => ({done: false, get value() { throw new Error('no') }})",
        "undefined",
        "new Proxy(() => 1, {apply() { throw new Error('no') }})",
    ],
)
def test_a_hostile_next_is_an_error_of_the_script(rt: AnyRuntime, next_method: str) -> None:
    stream = rt.eval(f"({{[Symbol.asyncIterator]: () => ({{next: {next_method}}})}})")
    with pytest.raises(JavaScriptError):
        next(stream)
    assert stream.closed


def test_what_next_gives_is_read_as_the_script_would(rt: AnyRuntime) -> None:
    def first(next_method: str) -> Any:
        return next(rt.eval(f"({{[Symbol.asyncIterator]: () => ({{next: {next_method}}})}})"))

    assert first("function () { return this }") is undefined
    assert first("() => ({then(f) { f({value: 5}) }})") == 5
    assert first("() => ({value: Promise.resolve(6)})") == 6
    assert first("() => ({get done() { return 0 }, get value() { return 7 }})") == 7
    assert first("() => new Proxy({value: 8}, {})") == 8


def test_no_getter_of_an_item_runs(rt: AnyRuntime) -> None:
    code = "globalThis.ran = 0; (async function* () { yield {deep: {get x() { ran++ }}} })()"
    stream = rt.eval(code)
    with pytest.raises(ConversionError) as caught:
        next(stream)
    assert caught.value.path == "$.deep.x"
    assert rt.eval("ran") == 0


def test_an_item_that_does_not_cross_ends_the_stream_and_calls_return(rt: AnyRuntime) -> None:
    code = GUARDED.replace("yield i", "yield i ? Symbol() : i")
    stream = rt.eval(code)
    assert next(stream) == 0
    with pytest.raises(ConversionError):
        next(stream)
    assert stream.closed
    assert rt.eval("log") == ["end"]


def test_each_item_is_bounded_by_itself(door: Any) -> None:
    with door(RuntimeConfig(max_serialization_bytes=100_000)) as rt:
        stream = rt.eval(
            "(async function* () { for (let i = 0; i < 50; i++) yield 'x'.repeat(9e4); yield 'x'.repeat(11e4) })()"
        )
        sizes: list[int] = []
        with pytest.raises(ConversionError, match="bytes"):
            sizes.extend(len(item) for item in iter(stream))
        assert rt.eval("1 + 1") == 2


def test_each_item_has_the_timeout_of_an_evaluation(isolated: IsolatedRuntime) -> None:
    stream = isolated.eval("(async function* () { yield 1; for (;;) {} })()")
    assert next(stream) == 1
    with pytest.raises(RuntimeTimeout) as caught:
        next(stream)
    assert caught.value.runtime_survives
    assert stream.closed
    assert isolated.eval("1 + 1") == 2
    endless = isolated.eval(
        "({[Symbol.asyncIterator]: () => ({next: () => ({}), return() { for (;;) {} }})})"
    )
    assert next(endless) is undefined
    with pytest.raises(RuntimeTimeout):
        endless.close()
    assert endless.closed


def test_a_limit_of_items_ends_a_stream_that_has_more(rt: AnyRuntime) -> None:
    taken: list[int] = []
    with pytest.raises(StreamLimitExceeded) as caught:
        taken.extend(item for item in rt.eval(GUARDED).limit(10))
    assert caught.value.kind == "stream_limit"
    assert rt.eval("log") == ["end"]
    assert list(rt.eval(f"{COUNT} count(10)").limit(10)) == list(range(10))


def test_a_limit_of_items_holds_on_an_event_loop(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        with pytest.raises(StreamLimitExceeded):
            async for _ in (await rt.eval_async(GUARDED)).limit(10):
                pass
        assert await rt.eval_async("log") == ["end"]
        rt.close()

    run_on_loop(main())


def test_a_stream_that_is_passed_back_is_the_same_object(rt: AnyRuntime) -> None:
    stream = rt.eval(f"{COUNT} globalThis.s = count(4); s")
    assert next(stream) == 0
    assert rt.eval("(x) => x === s")(stream) is True
    assert rt.eval("(x) => x.list[0] === s")({"list": [stream]}) is True
    # Both sides take from the same one.
    assert rt.eval("async (x) => (await x.next()).value")(stream) == 1
    assert next(stream) == 2
    stream.close()
    with pytest.raises(ConversionError, match="has ended"):
        rt.eval("(x) => 1")(stream)


def test_a_stream_is_of_use_only_to_its_runtime(door: Any) -> None:
    with door() as one, door() as other:
        stream = one.eval(f"{COUNT} count(2)")
        with pytest.raises(ConversionError, match="another runtime"):
            other.eval("(x) => 1")(stream)
        assert list(stream) == [0, 1]
        with pytest.raises(TypeError):
            copy.copy(stream)


def test_a_closed_runtime_gives_no_items(door: Any) -> None:
    rt = door()
    asked, unasked = rt.eval(f"{COUNT} [count(2), count(2)]")
    assert next(asked) == 0
    rt.close()
    for stream in (asked, unasked):
        with pytest.raises(RuntimeClosed):
            next(stream)
        assert stream.closed
        stream.close()


def test_closing_after_the_runtime_is_no_error(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        stream = await rt.eval_async(f"{COUNT} count(2)")
        rt.close()
        await stream.aclose()
        assert stream.closed

    run_on_loop(main())


def test_a_pull_waits_for_async_host_functions(rt: AnyRuntime) -> None:
    async def double(n: int) -> int:
        await asyncio.sleep(0)
        return 2 * n

    rt.bind_function("double", double)
    stream = rt.eval("(async function* () { for (let i = 0; i < 20; i++) yield await double(i) })()")
    assert list(stream) == [2 * n for n in range(20)]


def test_an_async_host_function_can_take_the_items_of_a_stream_it_was_given(
    kind: Any3, run_on_loop: RunOnLoop
) -> None:
    async def total(stream: JsStream) -> int:
        return sum([item async for item in stream])

    async def main() -> None:
        rt = kind()
        if isinstance(rt, AsyncIsolatedRuntime):
            await rt.start()
        rt.bind_function("total", total)
        assert await rt.eval_async(f"{COUNT} Promise.all([total(count(4)), total(count(5))])") == [6, 10]
        rt.close()

    run_on_loop(main())


def test_a_host_function_that_is_not_async_is_told_why_it_gets_no_items(rt: AnyRuntime) -> None:
    raised: list[BaseException] = []

    def take(stream: JsStream) -> None:
        try:
            next(stream)
        except InvalidInput as error:
            raised.append(error)
        assert not stream.closed

    rt.bind_function("take", take)
    rt.eval(f"{COUNT} take(count(2))")
    assert "make the host function async" in str(raised[0])


def test_streams_of_one_runtime_are_taken_from_side_by_side(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        streams = await rt.eval_async(f"{COUNT} Array.from({{length: 20}}, () => count(20))")

        async def take(stream: JsStream) -> list[int]:
            return [item async for item in stream]

        assert await asyncio.gather(*map(take, streams)) == [list(range(20))] * 20
        rt.close()

    run_on_loop(main())


def test_asking_twice_at_a_time_is_refused(isolated_kind: type[Any], run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(), Gauge()
        if isinstance(rt, AsyncIsolatedRuntime):
            await rt.start()
        rt.bind_function("work", gauge)
        stream = await rt.eval_async("(async function* () { yield await work(1) })()")
        answers: tuple[Any, Any] = await asyncio.gather(anext(stream), anext(stream), return_exceptions=True)
        assert answers[0] == 1
        assert isinstance(answers[1], InvalidInput)
        rt.close()

    run_on_loop(main())


def test_cancelling_a_pull_ends_the_stream_and_not_the_runtime(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = kind(), Gauge()
        if isinstance(rt, AsyncIsolatedRuntime):
            await rt.start()
        rt.bind_function("work", gauge)
        code = """globalThis.log = []; (async function* () {
            try { yield await work(1, 3600) } finally { log.push('end') }
        })()"""
        stream = await rt.eval_async(code)

        async def take() -> None:
            async for _ in stream:
                pass

        task = asyncio.ensure_future(take())
        await until(lambda: gauge.now == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stream.closed
        await until(lambda: gauge.cancelled == 1)
        # The generator awaits what nobody will give it any more.
        assert await rt.eval_async("log") == []
        rt.close()

    run_on_loop(main())


def test_cancelling_between_items_calls_return(kind: Any3, run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt = kind()
        stream = await rt.eval_async(GUARDED)
        taken = []

        async def take() -> None:
            async for item in stream:
                taken.append(item)
                await asyncio.sleep(3600)

        task = asyncio.ensure_future(take())
        await until(lambda: taken == [0])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while await rt.eval_async("log") != ["end"]:
            await asyncio.sleep(0)
        rt.close()

    run_on_loop(main())


def test_an_async_runtime_is_not_iterated_without_a_loop(run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        async with AsyncIsolatedRuntime() as rt:
            stream = await rt.eval(f"{COUNT} count(2)")
            for blocking in (iter, next, JsStream.close):
                with pytest.raises(TypeError, match="async for"):
                    blocking(stream)
            assert not stream.closed
            assert [item async for item in stream] == [0, 1]

    run_on_loop(main())


def test_terminating_ends_a_pull(isolated_kind: type[Any], run_on_loop: RunOnLoop) -> None:
    async def main() -> None:
        rt, gauge = isolated_kind(), Gauge()
        if isinstance(rt, AsyncIsolatedRuntime):
            await rt.start()
        rt.bind_function("work", gauge)
        stream = await rt.eval_async("(async function* () { yield await work(1, 3600) })()")
        task = asyncio.ensure_future(anext(stream))
        await until(lambda: gauge.now == 1)
        rt.terminate()
        with pytest.raises(RuntimeTerminated):
            await task
        assert stream.closed

    run_on_loop(main())


def test_poisoned_built_ins_do_not_reach_what_is_pulled(rt: AnyRuntime) -> None:
    stream = rt.eval(
        "globalThis.stolen = 0; const s = (async function* () { yield {a: 1}; yield 2 })();"
        "Promise.prototype.then = () => stolen++; Reflect.apply = () => stolen++;"
        "Object.prototype.done = true; Object.getPrototypeOf(async function* () {}).prototype.next = null; s"
    )
    with pytest.raises(PydenoError):
        # Its own `next` is what it has broken.
        next(stream)
    give = "{next: () => ({__proto__: null, value: {a: 1}})}"
    other = rt.eval(f"({{__proto__: null, [Symbol.asyncIterator]: () => ({give})}})")
    assert list(itertools.islice(other, 3)) == [{"a": 1}] * 3
    assert rt.eval("stolen") == 0


def test_an_agents_run_does_not_end_with_a_stream_and_gives_none_to_a_tool() -> None:
    def take(value: object) -> str:
        return type(value).__name__

    with AgentSandbox({"take": take}) as agent:
        result = agent.execute("return (async function* () { yield 1 })()")
        assert "streams" in str(result.error)
        result = agent.execute("return await take((async function* () { yield 1 })())")
        assert "stream" in str(result.error)
        assert agent.execute("return 1 + 1").result == 2
