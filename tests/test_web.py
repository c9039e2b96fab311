"""`WEB_POLYFILLS`: what there is with it and not without, and timers on a time of their own."""

from __future__ import annotations

import asyncio
import copy
import pickle
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pytest

import pydeno
from conftest import AnyRuntime, Door
from pydeno import (
    WEB_POLYFILLS,
    AgentSandbox,
    AsyncIsolatedRuntime,
    IsolatedRuntime,
    RuntimeConfig,
    SandboxPool,
    ToolCall,
)

WEB = RuntimeConfig(bootstrap=WEB_POLYFILLS)
DAY = 86_400_000
KEY = b"k" * 32
NAMES = [
    *(
        "setTimeout",
        "setInterval",
        "setImmediate",
        "clearTimeout",
        "clearInterval",
        "clearImmediate",
        "queueMicrotask",
    ),
    *(
        "structuredClone",
        "atob",
        "btoa",
        "reportError",
        "URL",
        "URLSearchParams",
        "TextEncoder",
        "TextDecoder",
        "Event",
    ),
    *(
        "CustomEvent",
        "EventTarget",
        "AbortController",
        "AbortSignal",
        "DOMException",
        "performance",
        "crypto",
    ),
    *("console", "self", "Blob", "File", "FileReader"),
]


@pytest.fixture
def web(door: Door) -> Iterator[AnyRuntime]:
    """A runtime of each door with the interfaces of the web, which still answers a sum when its test is over."""
    with door(WEB) as runtime:
        yield runtime
        assert runtime.eval("40 + 2") == 42


def test_nothing_of_it_exists_without_opting_in(rt: AnyRuntime) -> None:
    assert rt.eval(f"{NAMES!r}.filter(name => name in globalThis)") == []


def test_all_of_it_exists_where_it_is_asked_for_and_none_of_it_is_listed(web: AnyRuntime) -> None:
    assert web.eval(f"{NAMES!r}.filter(name => !(name in globalThis))") == []
    assert web.eval("Object.keys(globalThis)") == []
    # Looking at one makes it an ordinary property, and replacing one before that works as for any other.
    assert web.eval(
        "const d = Object.getOwnPropertyDescriptor(globalThis, (URL, 'URL'));"
        "[d.writable, d.enumerable, d.configurable]"
    ) == [
        True,
        False,
        True,
    ]
    assert web.eval("Event = 5; [Event, Object.keys(globalThis)]") == [5, []]


def test_functions_show_no_source(web: AnyRuntime) -> None:
    shown = web.eval(
        """
        const all = [];
        const seen = new Set();
        const visit = (value, path) => {
          if ((typeof value !== 'function' && typeof value !== 'object') || value === null || seen.has(value)) return;
          seen.add(value);
          const text = typeof value === 'function' ? Function.prototype.toString.call(value) : '[native code]';
          if (!text.includes('[native code]')) all.push(path);
          visit(Object.getPrototypeOf(value), path + '.__proto__');
          for (const key of Reflect.ownKeys(value)) {
            const d = Object.getOwnPropertyDescriptor(value, key);
            for (const part of ['value', 'get', 'set']) visit(d[part], path + '.' + String(key));
          }
        };
        for (const name of NAMES) visit(globalThis[name], name);
        if (seen.size < 700) all.push('only ' + seen.size + ' objects were found');
        for (const own of [function () {}, [function () {}]]) visit(own, 'the own one');
        all""".replace("NAMES", repr(NAMES))
    )
    # The last two show that a function with a source would be found.
    assert shown == ["the own one", "the own one.0"]


def test_bootstrap_takes_it_alone_and_among_scripts(door: Door) -> None:
    config = RuntimeConfig(bootstrap=["const a = 1", WEB_POLYFILLS, "(globalThis.b = a + typeof setTimeout)"])
    with door(config) as runtime:
        assert runtime.eval("b") == "1function"
    assert config.bootstrap == ("const a = 1", WEB_POLYFILLS, "(globalThis.b = a + typeof setTimeout)")
    with door(RuntimeConfig(bootstrap=["var x = 1", "x++"])) as runtime:
        assert runtime.eval("[x, typeof setTimeout]") == [2, "undefined"]
    for wrong in (5, b"1", [b"1"], ["1", None], {"a": 1}):
        with pytest.raises(TypeError, match="bootstrap must"):
            RuntimeConfig(bootstrap=wrong)  # type: ignore[arg-type]


def test_there_is_one_of_it() -> None:
    assert repr(WEB_POLYFILLS) == "pydeno.WEB_POLYFILLS"
    assert copy.deepcopy(WEB_POLYFILLS) is WEB_POLYFILLS
    assert pickle.loads(pickle.dumps(WEB_POLYFILLS)) is WEB_POLYFILLS


# Timers


def test_timers_go_off_in_the_order_of_their_times_and_take_none(web: AnyRuntime) -> None:
    began = time.monotonic()
    order = web.eval(
        f"""
        const order = []; const note = what => order.push(what);
        setTimeout(note, {DAY}, 'day'); setTimeout(note, 10, 'b'); setTimeout(note, 10, 'c');
        setTimeout(note, 9.9, 'a');
        setTimeout(note, 0, '0'); setImmediate(note, 'immediate'); Promise.resolve('micro').then(note); note('sync');
        new Promise(resolve => setTimeout(resolve, {2 * DAY}, order))"""
    )
    assert order == ["sync", "micro", "0", "immediate", "a", "b", "c", "day"]
    # Two days would be noticed.
    assert time.monotonic() - began < 3600


def test_the_clocks_follow_the_timers(web: AnyRuntime) -> None:
    passed = web.eval(
        f"const before = [Date.now(), performance.now()]; await new Promise(r => setTimeout(r, {DAY}));"
        f"[Date.now() - before[0] - {DAY}, performance.now() - before[1] - {DAY}, new Date() - before[0] - {DAY}]"
    )
    # What is left is the time that really passed.
    assert all(0 <= left < 3_600_000 for left in passed)


def test_a_frozen_clock_moves_with_the_timers_alone() -> None:
    start = datetime(2020, 1, 1, tzinfo=timezone.utc)
    code = """
        const seen = [Date.now(), performance.now(), performance.timeOrigin];
        for (let i = 0; i < 1e5; i++);
        seen.push(Date.now());
        await new Promise(r => setTimeout(r, 1500));
        seen.push(+new Date(), performance.now(), new Intl.DateTimeFormat('en', {second: 'numeric'}).format());
        seen"""
    began = start.timestamp() * 1000
    for _ in range(2):
        with IsolatedRuntime(WEB, clock=start) as rt:
            assert rt.eval(code) == [began, 0, began, began, began + 1500, 1500, "1"]


def test_runtimes_with_the_interfaces_and_without_take_turns() -> None:
    # Each kind has a worker that was made ready before it was asked for.
    for _ in range(3):
        with IsolatedRuntime() as plain:
            assert plain.eval("[typeof URL, typeof setTimeout, typeof console]") == ["undefined"] * 3
        with IsolatedRuntime(WEB) as rt:
            assert rt.eval("[typeof URL, typeof setTimeout, typeof console]") == [
                "function",
                "function",
                "object",
            ]


def test_the_time_of_a_worker_that_was_ready_before_begins_with_its_runtime() -> None:
    IsolatedRuntime(WEB).close()
    time.sleep(0.3)
    began = time.time() * 1000
    with IsolatedRuntime(WEB) as rt:
        origin, now = rt.eval("[performance.timeOrigin, Date.now()]")
    assert int(began) <= origin <= now


def test_a_library_that_asks_the_clock_whether_its_timer_was_early_is_content(web: AnyRuntime) -> None:
    # As lodash's debounce does, which would otherwise set another timer again and again.
    assert (
        web.eval(
            """
            let fired = 0;
            await new Promise(resolve => {
              const start = Date.now();
              const check = () => { fired++; Date.now() - start >= 5000 ? resolve() : setTimeout(check, 1) };
              setTimeout(check, 5000);
            });
            fired"""
        )
        == 1
    )


def test_an_interval_repeats_until_it_is_cleared(web: AnyRuntime) -> None:
    assert web.eval(
        """
        const times = []; const start = performance.now();
        await new Promise(resolve => {
          const id = setInterval(() => {
            times.push(Math.round((performance.now() - start) / 50) * 50);
            if (times.length === 4) { clearInterval(id); setTimeout(resolve, 1000) }
          }, 50);
        });
        times"""
    ) == [50, 100, 150, 200]


def test_a_timer_that_is_cleared_does_not_go_off(web: AnyRuntime) -> None:
    assert (
        web.eval(
            """
            let n = 0;
            clearTimeout(setTimeout(() => n++, 5)); clearInterval(setTimeout(() => n++, 5));
            const late = setTimeout(() => n++, 20); setTimeout(() => clearTimeout(late), 10);
            clearTimeout(undefined); clearTimeout('x'); clearTimeout(-1); clearTimeout(1e99);
            await new Promise(r => setTimeout(r, 30));
            n"""
        )
        == 0
    )


def test_nested_timers_do_not_keep_time_from_passing(web: AnyRuntime) -> None:
    for step in ("setTimeout(again)", "setImmediate(again)"):
        assert web.eval(
            f"""(async () => {{
              let n = 0, done = false;
              (function again() {{ n++; if (!done) {step} }})();
              await new Promise(r => setTimeout(r, 100));
              done = true;
              return n > 5 && n < 100;
            }})()"""
        )
    assert web.eval(
        "(async () => { const id = setInterval(() => 0, 0); await new Promise(r => setTimeout(r, 100));"
        "clearInterval(id); return 1 })()"
    )


def test_an_evaluation_does_not_wait_for_timers_that_it_does_not_await(web: AnyRuntime) -> None:
    assert web.eval("globalThis.fired = []; setTimeout(() => fired.push(1), 10); 'value'") == "value"
    assert web.eval("fired") == []
    # They go off when a later one waits for long enough.
    assert web.eval("new Promise(r => setTimeout(() => r(fired), 5))") == []
    assert web.eval("new Promise(r => setTimeout(() => r(fired), 5))") == [1]


def test_a_promise_that_nothing_can_settle_ends_at_once(web: AnyRuntime) -> None:
    with pytest.raises(pydeno.PydenoError, match="settle"):
        web.eval("new Promise(() => {})")
    # And when the last timer has gone off without settling it.
    with pytest.raises(pydeno.PydenoError, match="settle"):
        web.eval(f"setTimeout(() => {{ globalThis.last = 1 }}, {DAY}); new Promise(() => {{}})")
    assert web.eval("last") == 1


@pytest.mark.parametrize(
    "code",
    [
        "setInterval(() => 0, 1); new Promise(() => {})",
        "setInterval(() => 0); new Promise(() => {})",
        "(function again() { setImmediate(again) })(); new Promise(() => {})",
        "setTimeout(() => { for (;;); }, 5); new Promise(() => {})",
        "setTimeout(async () => { for (;;) await 0 }, 5); new Promise(() => {})",
    ],
    ids=["interval", "at once", "immediates", "busy", "microtasks"],
)
def test_timers_that_never_end_are_stopped_at_the_deadline(code: str) -> None:
    with IsolatedRuntime(WEB, timeout=0.3) as rt:
        began = time.monotonic()
        with pytest.raises(pydeno.RuntimeTimeout):
            rt.eval(code)
        assert time.monotonic() - began < 30
        if "await 0" not in code:
            # The timers were given up with the evaluation that set them.
            assert rt.eval("new Promise(r => setTimeout(r, 1000, 'fine'))") == "fine"


def test_timers_that_fill_the_heap_are_stopped() -> None:
    with IsolatedRuntime(RuntimeConfig(bootstrap=WEB_POLYFILLS, max_heap_size=64 << 20), timeout=20) as rt:
        with pytest.raises(pydeno.MemoryLimitExceeded):
            rt.eval(
                "globalThis.all = []; setInterval(() => all.push(new Uint8Array(1 << 20)), 1); new Promise(() => {})"
            )
        assert rt.eval("all.length = 0; 1") == 1


def test_timers_in_process_are_stopped_at_the_deadline_too() -> None:
    with pydeno.Runtime(RuntimeConfig(bootstrap=WEB_POLYFILLS, timeout=0.2)) as rt:
        with pytest.raises(pydeno.RuntimeTimeout):
            rt.eval("setInterval(() => 0, 1); new Promise(() => {})")
        assert rt.eval("new Promise(r => setTimeout(r, 10, 1))") == 1


def test_too_many_timers_are_refused(web: AnyRuntime) -> None:
    assert (
        web.eval("try { for (let n = 0; ; n++) setTimeout(() => 0, n) } catch (e) { e.name }") == "RangeError"
    )
    assert (
        web.eval("for (let id = 1; id < 100_001; id++) clearTimeout(id); typeof setTimeout(() => 0)")
        == "number"
    )


def test_what_a_callback_throws_is_reported_and_stops_nothing() -> None:
    with IsolatedRuntime(WEB, capture_console=True) as rt:
        assert (
            rt.eval(
                """
                setTimeout(() => { throw new RangeError('from a timer') });
                setTimeout(() => Promise.reject(new Error('from a promise')));
                queueMicrotask(() => { throw 'from a microtask' });
                const target = new EventTarget();
                target.addEventListener('x', () => { throw new TypeError('from a listener') });
                target.dispatchEvent(new Event('x'));
                reportError(new Error('from itself'));
                new Promise(r => setTimeout(r, 5, 'value'))"""
            )
            == "value"
        )
        lines = [line.text for line in rt.take_console()]
    for where in ("a timer", "a promise", "a microtask", "a listener", "itself"):
        assert sum(f"from {where}" in line for line in lines) == 1, lines


# Timers and calls of the host


def test_timers_wait_for_calls_that_are_in_flight() -> None:
    async def main() -> None:
        async with AsyncIsolatedRuntime(WEB) as rt:

            async def slow(what: str) -> str:
                await asyncio.sleep(0.05)
                return what

            rt.bind_function("slow", slow)
            # However short the timer, the call wins; what is due already goes off before.
            assert await rt.eval_async(
                "const log = []; setTimeout(() => log.push('due')); setTimeout(() => log.push('later'), 1);"
                "log.push(await Promise.race([slow('answer'), new Promise(r => setTimeout(r, 5, 'timeout'))]));"
                "await new Promise(r => setTimeout(r, 1)); log"
            ) == ["due", "answer", "later"]
            # A timer that can go off does not keep others from theirs.
            first = asyncio.ensure_future(
                rt.eval_async("slow('first').then(v => new Promise(r => setTimeout(r, 10, v)))")
            )
            second = asyncio.ensure_future(rt.eval_async("new Promise(r => setTimeout(r, 20, 'second'))"))
            assert list(await asyncio.gather(first, second)) == ["first", "second"]

    asyncio.run(main())


def test_an_evaluation_whose_timers_never_end_can_be_cancelled() -> None:
    async def main() -> None:
        async with AsyncIsolatedRuntime(WEB, timeout=60) as rt:
            endless = asyncio.ensure_future(
                rt.eval_async(
                    "setInterval(() => { globalThis.n = (globalThis.n ?? 0) + 1 }, 1); new Promise(() => {})"
                )
            )
            await asyncio.sleep(0.2)
            # Another is answered meanwhile.
            assert await rt.eval_async("n > 0")
            endless.cancel()
            with pytest.raises(asyncio.CancelledError):
                await endless
            assert await rt.eval_async("const m = n; new Promise(r => setTimeout(() => r(n - m), 1000))") == 0

    asyncio.run(main())


def test_functions_of_the_guest_wait_for_timers_too(web: AnyRuntime) -> None:
    later = web.eval("x => new Promise(r => setTimeout(r, 1000, 2 * x))")
    assert later(21) == 42


def test_within_a_call_of_the_host_no_timer_goes_off(web: AnyRuntime) -> None:
    found: list[Any] = []

    def outer(function: Any) -> int:
        try:
            found.append(function())
        except pydeno.PydenoError as error:
            found.append(error)
        return 1

    web.bind_function("outer", outer)
    assert (
        web.eval(
            "outer(() => { setTimeout(() => { globalThis.inner = 1 }, 1); return new Promise(r => setTimeout(r, 1)) })"
        )
        == 1
    )
    assert isinstance(found[0], pydeno.PydenoError)
    assert web.eval("new Promise(r => setTimeout(() => r(inner), 2))") == 1


def test_a_pool_and_an_agent_have_it_too() -> None:
    with SandboxPool(WEB, size=1) as pool, pool.checkout() as rt:
        assert rt.eval("new Promise(r => setTimeout(r, 1000, new URL('http://h').href))") == "http://h/"
    with AgentSandbox({}, config=WEB) as agent:
        assert (
            agent.run("await new Promise(r => setTimeout(r, 1000)); return new URL('http://h').href")
            == "http://h/"
        )


def test_a_session_with_timers_is_replayed_as_it_was() -> None:
    def ask(question: str) -> str:
        """Ask somebody."""
        return f"{question}!"

    code = """
        const log = [];
        const tick = setInterval(() => log.push(Date.now() % 100000, Math.random()), 700);
        const race = await Promise.race([ask('a'), new Promise(r => setTimeout(r, 1, 'time'))]);
        await new Promise(r => setTimeout(r, 2500));
        log.push(race, await ask('b'), crypto.randomUUID(), performance.now());
        globalThis.log = log;
        return log"""
    with AgentSandbox([ask], config=WEB) as agent:
        first = agent.run(code)
        # The interval is still there.
        second = agent.run("await new Promise(r => setTimeout(r, 1000)); return log")
        data = agent.dump(KEY)
    assert first[6] == "a!"
    assert len(second) > len(first)
    with AgentSandbox.load(data, KEY, tools=[ask], config=WEB) as again:
        assert again.run("return log") == second
        assert again.run("await new Promise(r => setTimeout(r, 1000)); return log.length") > len(second)


def test_a_session_that_waits_between_timers_is_resumed_elsewhere() -> None:
    def ask(question: str) -> str:
        """Ask somebody."""
        raise AssertionError("no tool is called in a replay")

    code = """
        await new Promise(r => setTimeout(r, 5000));
        const answer = await ask(String(performance.now()));
        await new Promise(r => setTimeout(r, 5000));
        return [answer, performance.now()]"""
    with AgentSandbox([ask], config=WEB) as agent:
        step = agent.start(code)
        assert isinstance(step, ToolCall)
        assert "5000" in str(step.arguments)
        data = agent.dump(KEY)
    with AgentSandbox.load(data, KEY, tools=[ask], config=WEB) as again:
        step = again.resume("yes")
        assert isinstance(step, pydeno.Done)
        assert step.value == ["yes", 10000]


def test_a_session_without_it_is_another() -> None:
    with AgentSandbox({}, config=WEB) as agent:
        agent.run("return 1")
        data = agent.dump(KEY)
    with pytest.raises(pydeno.JournalError):
        AgentSandbox.load(data, KEY, tools=[])


# The rest


def test_random_numbers_of_a_seed_are_the_same_each_time() -> None:
    code = "[crypto.randomUUID(), [...crypto.getRandomValues(new Uint32Array(4))]]"
    drawn = []
    for seed in (1, 1, 2, None, None):
        with IsolatedRuntime(WEB, random_seed=seed) as rt:
            drawn.append(str(rt.eval(code)))
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 4


def test_a_timeout_signal_aborts_in_its_time(web: AnyRuntime) -> None:
    assert web.eval(
        "const s = AbortSignal.timeout(1000); await new Promise(r => s.addEventListener('abort', r));"
        "[s.reason.name, s.reason.code]"
    ) == ["TimeoutError", 23]


def test_an_exception_of_the_web_reaches_python_with_its_name(web: AnyRuntime) -> None:
    with pytest.raises(pydeno.JavaScriptError) as caught:
        web.eval("AbortSignal.abort().throwIfAborted()")
    assert (caught.value.name, caught.value.message) == ("AbortError", "This operation was aborted.")
    with pytest.raises(pydeno.JavaScriptError) as caught:
        web.eval("structuredClone(() => 1)")
    assert caught.value.name == "DataCloneError"


def test_the_console_is_there_and_heard_where_somebody_listens() -> None:
    code = """
        console.log('a', {b: 1}); console.table([1]); console.group('g'); console.warn('in');
        console.groupEnd(); console.groupEnd(); console.count(); console.count(); console.assert(1, 'no');
        console.assert(0, 'yes'); console.time('t'); console.timeEnd('t'); console.timeEnd('t');
        console.trace('here'); console.dir(5); typeof console.error"""
    with IsolatedRuntime(WEB) as rt:
        assert rt.eval(code) == "function"
    with IsolatedRuntime(WEB, capture_console=True) as rt:
        rt.eval(code)
        lines = [(line.level, line.text) for line in rt.take_console()]
    assert lines[:6] == [
        ("log", 'a { "b": 1 }'),
        ("log", "[1]"),
        ("log", "g"),
        ("warn", "in"),
        ("info", "default: 1"),
        ("info", "default: 2"),
    ]
    assert lines[6] == ("error", "Assertion failed: yes")
    assert lines[7][1].startswith("t: ")
    assert [text for _, text in lines[8:]] == ["Trace: here", "5"]


def test_strict_eval_forbids_nothing_of_it() -> None:
    with IsolatedRuntime(WEB, strict_eval=True) as rt:
        assert rt.eval(
            "[new URL('http://h').host, structuredClone([1]), btoa('a'), new TextEncoder().encode('a').length]"
        ) == [
            "h",
            [1],
            "YQ==",
            1,
        ]


POISON = """
    const bad = () => { throw new Error('poisoned') };
    const kinds = [Object, Array, String, Function, Promise, Map, Set, Uint8Array, ArrayBuffer, RegExp, Symbol, Error];
    const { ownKeys } = Reflect, { defineProperty, getOwnPropertyDescriptor } = Object;
    const all = [];
    for (const kind of kinds) for (const key of ownKeys(kind.prototype)) all[all.length] = [kind.prototype, key];
    for (const key of ownKeys(Reflect)) all[all.length] = [Reflect, key];
    for (const key of ownKeys(Object)) all[all.length] = [Object, key];
    for (let i = 0; i < all.length; i++) {
      const descriptor = getOwnPropertyDescriptor(all[i][0], all[i][1]);
      if (descriptor?.configurable) defineProperty(all[i][0], all[i][1], {get: bad, set: bad, configurable: true});
    }
    for (let i = 0; i < 4; i++) defineProperty(Array.prototype ?? 0, i, {get: bad, set: bad, configurable: true});
    """


def failure_of(runtime: AnyRuntime, code: str) -> str | None:
    """The kind of error that a use ends as."""
    try:
        runtime.eval(f"void ({code})")
    except pydeno.PydenoError as error:
        return error.kind
    return None


@pytest.mark.parametrize("early", [True, False], ids=["loaded before", "loaded after"])
def test_a_guest_that_has_poisoned_its_built_ins_harms_itself_alone(door: Door, early: bool) -> None:
    uses = [
        "new URL('http://h/?a=1').searchParams.get('a')",
        "structuredClone({a: [new Map([[1, 2]]), new Uint8Array(2), new Date(0)]})",
        "new TextDecoder().decode(new TextEncoder().encode('é'))",
        "new TextDecoder('shift_jis').decode(new Uint8Array([1]), {stream: true})",
        "new EventTarget().dispatchEvent(new Event('x'))",
        "AbortSignal.any([new AbortController().signal]).aborted",
        "AbortSignal.timeout(5)",
        "crypto.randomUUID()",
        "performance.now()",
        "console.count()",
        "setTimeout(() => 0)",
        "setInterval(() => 0, 100)",
        "queueMicrotask(() => 0)",
        "btoa(atob('YQ=='))",
        "new DOMException('x').code",
        "new Promise(r => setTimeout(r, 5))",
        "new DisposableStack().dispose()",
    ]
    with door(WEB) as runtime:
        if early:
            for use in uses:
                runtime.eval(f"void ({use})")
        runtime.eval(f"(() => {{ {POISON} }})()")
        for use in uses:
            # A guest that has none of its own built-ins left may well fail; nothing else may happen.
            assert failure_of(runtime, use) in {None, "js_error", "invalid_input"}, use
        assert runtime.eval("1 + 1") == 2


def test_timers_and_microtasks_survive_poisoned_built_ins(web: AnyRuntime) -> None:
    web.eval(f"globalThis.n = 0; (() => {{ {POISON} }})()")
    web.eval("queueMicrotask(() => { n++ }); setTimeout(() => { n++ }, 3); 0")
    web.eval(
        "(async () => { let going; setTimeout(() => { n++; going(1) }, 5); await { then(r) { going = r } } })()"
    )
    assert web.eval("n") == 3
