"""Functions that the host binds: a script's only way out."""

from __future__ import annotations

from typing import Any

import pytest

from pydeno import (
    HostCallBudgetExceeded,
    HostWaitExceeded,
    InflightLimitExceeded,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    Runtime,
    RuntimeClosed,
    RuntimeConfig,
    RuntimeTerminated,
)

AnyRuntime = Runtime | IsolatedRuntime


def test_a_bound_function_gets_arguments_and_gives_its_value(rt: AnyRuntime) -> None:
    calls: list[tuple[object, ...]] = []

    def record(*arguments: object) -> int:
        calls.append(arguments)
        return len(calls)

    rt.bind_function("record", record)
    assert rt.eval("[record(), record(1, 'a'), record({x: [null]})]") == [1, 2, 3]
    assert calls == [(), (1, "a"), ({"x": [None]},)]


def test_bind_is_a_decorator(rt: AnyRuntime) -> None:
    @rt.bind
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8
    assert rt.eval("double(21)") == 42


def test_an_object_of_functions_is_one_global(rt: AnyRuntime) -> None:
    rt.bind_object("tools", {"one": lambda: 1, "two": lambda: 2})
    rt.bind_object("tools", {"three": lambda: 3})
    assert rt.eval("[tools.one(), tools.two(), tools.three()]") == [1, 2, 3]


def test_binding_a_name_again_replaces_it(rt: AnyRuntime) -> None:
    rt.bind_function("f", lambda: "old")
    rt.bind_function("f", lambda: "new")
    assert rt.eval("f()") == "new"


def test_a_bound_function_looks_like_any_native_one(rt: AnyRuntime) -> None:
    rt.bind_function("lookup", lambda: 1)
    text = rt.eval("String(lookup)")
    assert "[native code]" in text
    assert "/" not in text
    assert rt.eval("typeof lookup") == "function"
    assert rt.eval("lookup.name") == "lookup"
    assert rt.eval("Object.getOwnPropertyNames(lookup).sort().join()") in ("length,name", "name", "")


def test_an_exception_is_thrown_into_the_script_redacted(rt: AnyRuntime) -> None:
    def fail() -> None:
        raise ValueError("secret /etc/path")

    rt.bind_function("fail", fail)
    seen = rt.eval(
        "let seen; try { fail() } catch (e) { seen = [e instanceof Error, e.name, e.message, e.stack] } seen"
    )
    assert seen[:2] == [True, "Error"]
    assert "secret" not in repr(seen)
    assert "ValueError" not in repr(seen)


def test_an_uncaught_exception_comes_back_with_its_cause(rt: AnyRuntime) -> None:
    original = ValueError("what happened")

    def fail() -> None:
        raise original

    rt.bind_function("fail", fail)
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("fail()")
    assert caught.value.__cause__ is original


def test_an_exception_shows_when_redaction_is_off() -> None:
    with IsolatedRuntime(redact_host_errors=False) as rt:

        def fail() -> None:
            raise ValueError("visible")

        rt.bind_function("fail", fail)
        assert rt.eval("let m; try { fail() } catch (e) { m = e.message } m") == "ValueError: visible"


def test_an_exception_whose_text_fails_is_still_an_error() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def fail() -> None:
        raise Mute

    with IsolatedRuntime(redact_host_errors=False) as rt:
        rt.bind_function("fail", fail)
        assert rt.eval("let m; try { fail() } catch (e) { m = e.message } m").startswith("Mute")


@pytest.mark.parametrize("escaping", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_no_script_may_catch_ends_the_evaluation(rt: AnyRuntime, escaping: type[BaseException]) -> None:
    def leave() -> None:
        raise escaping

    rt.bind_function("leave", leave)
    with pytest.raises(escaping):
        rt.eval("for (;;) { try { leave() } catch {} }")
    assert rt.eval("1 + 1") == 2


def test_no_stale_exception_is_raised_by_a_later_call(rt: AnyRuntime) -> None:
    def fail() -> None:
        raise ValueError

    rt.bind_function("fail", fail)
    rt.eval("try { fail() } catch {}")
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("throw new Error('of its own')")
    assert caught.value.__cause__ is None


def test_a_host_function_may_not_use_the_runtime_that_waits_for_it(rt: AnyRuntime) -> None:
    raised: list[BaseException] = []

    def nested() -> None:
        try:
            rt.eval("1")
        except InvalidInput as error:
            raised.append(error)

    rt.bind_function("nested", nested)
    rt.eval("nested()")
    assert "another runtime" in str(raised[0])


def test_a_host_function_may_use_another_runtime(rt: AnyRuntime) -> None:
    def elsewhere(x: int) -> Any:
        with IsolatedRuntime() as other:
            return other.eval(f"{x} * 2")

    rt.bind_function("elsewhere", elsewhere)
    assert rt.eval("elsewhere(21)") == 42


def test_the_call_budget_stops_the_evaluation_and_leaves_the_runtime() -> None:
    calls = 0

    def count() -> int:
        nonlocal calls
        calls += 1
        return calls

    with IsolatedRuntime(max_host_calls=5) as rt:
        rt.bind_function("count", count)
        with pytest.raises(HostCallBudgetExceeded) as caught:
            rt.eval("for (;;) { try { count() } catch {} }")
        assert caught.value.kind == "host_call_budget"
        assert calls == 5
        assert rt.eval("count() + count()") == 13


def test_arguments_that_cannot_cross_are_a_type_error_in_the_script(rt: AnyRuntime) -> None:
    rt.bind_function("take", lambda value: value)
    assert rt.eval("try { take(Symbol('x')); 'taken' } catch (e) { e.name }") == "TypeError"
    assert rt.eval("try { take({get a() { return 1 }}); 'taken' } catch (e) { e.name }") == "TypeError"


@pytest.mark.parametrize("name", ["", "a b", "a-b", "1a", "a.b"])
def test_a_name_that_no_script_can_write_is_refused(rt: AnyRuntime, name: str) -> None:
    with pytest.raises(InvalidInput, match="identifier"):
        rt.bind_function(name, int)


def test_what_cannot_be_called_or_named_is_refused(rt: AnyRuntime) -> None:
    with pytest.raises(TypeError, match="callable"):
        rt.bind_function("f", 5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="identifier"):
        rt.bind_function("not a name", len)


def test_large_arguments_and_answers_cross(isolated: IsolatedRuntime) -> None:
    isolated.bind_function("size", len)
    isolated.bind_function("make", lambda n: b"x" * n)
    assert isolated.eval("size(new Uint8Array(5_000_000))") == 5_000_000
    assert isolated.eval("make(5_000_000).length") == 5_000_000


def test_an_answer_over_the_limit_is_an_error_in_the_script() -> None:
    with IsolatedRuntime(RuntimeConfig(max_serialization_bytes=100_000)) as rt:
        rt.bind_function("make", lambda n: "x" * n)
        assert rt.eval("make(1000).length") == 1000
        assert rt.eval("try { make(1_000_000); 'taken' } catch (e) { e.name }") == "TypeError"
        assert rt.eval("1 + 1") == 2


def test_a_revoked_function_is_gone_wherever_the_script_keeps_it(rt: AnyRuntime) -> None:
    rt.bind_function("f", lambda: "f")
    rt.bind_object("tools", {"f": lambda: "tools.f", "g": lambda: "tools.g"})
    rt.eval("const kept = f, bound = f.bind(null)")
    assert rt.revoke_function("f")
    for call in ("f()", "kept()", "bound()", "f.call(1)", "Reflect.apply(kept, null, [])", "[1].map(kept)"):
        assert (
            rt.eval(f"try {{ {call} }} catch (error) {{ error.message }}")
            == "the host function f has been revoked"
        )
    assert rt.eval("[tools.f(), tools.g()]") == ["tools.f", "tools.g"]
    assert rt.revoke_function("tools.f")
    assert rt.eval("try { tools.f() } catch (error) { error.message }").endswith("has been revoked")
    assert [rt.revoke_function(name) for name in ("f", "tools.f", "nothing", "tools")] == [False] * 4
    rt.bind_function("f", lambda: "again")
    assert rt.eval("f()") == "again"
    with pytest.raises(TypeError):
        rt.revoke_function(5)  # type: ignore[arg-type]


def test_a_function_may_revoke_itself(rt: AnyRuntime) -> None:
    def once() -> str:
        rt.revoke_function("once")
        return "once"

    rt.bind_function("once", once)
    assert rt.eval(
        "const first = once(); let second; try { once() } catch (error) { second = 'gone' } [first, second]"
    ) == [
        "once",
        "gone",
    ]


def test_the_script_is_told_the_name_that_it_knows_and_not_pythons(rt: AnyRuntime) -> None:
    def _secret_internal_name() -> None:
        raise ValueError

    rt.bind_function("price", _secret_internal_name)
    rt.bind_object("tools", {"rate": lambda: 1 / 0})
    read = "try { %s } catch (error) { error.message + error.stack }"
    for call, name in (("price()", "price"), ("tools.rate()", "rate")):
        told = rt.eval(read % call)
        assert told.startswith(f"the host function {name} failed")
        assert "secret" not in told
        assert "lambda" not in told


def test_some_exceptions_can_be_shown(door: type[Any]) -> None:
    class Refused(Exception):
        pass

    class Narrower(Refused):
        pass

    def fail(how: str) -> None:
        raise {"refused": Refused, "narrower": Narrower, "other": ValueError}[how](f"it is {how}")

    with door(expose_host_errors=(Refused,)) as rt:
        rt.bind_function("fail", fail)
        message = "try { fail('%s') } catch (error) { error.message }"
        assert rt.eval(message % "refused") == "Refused: it is refused"
        assert rt.eval(message % "narrower") == "Narrower: it is narrower"
        assert rt.eval(message % "other") == "the host function fail failed"
    for wrong in (ValueError, [ValueError], (5,), (BaseException,)):
        with pytest.raises((TypeError, InvalidInput)):
            door(expose_host_errors=wrong)


@pytest.mark.parametrize(
    "exception",
    [
        ValueError("x"),
        StopIteration(1),
        StopAsyncIteration(),
        RecursionError(),
        MemoryError(),
        OSError(5, "io"),
        TimeoutError(),
    ],
    ids=lambda exception: type(exception).__name__,
)
def test_whatever_a_function_raises_is_the_scripts_to_catch_and_the_cause_of_what_it_does_not(
    rt: AnyRuntime, exception: Exception
) -> None:
    def fail() -> None:
        raise exception

    rt.bind_function("fail", fail)
    assert rt.eval("try { fail() } catch (error) { error instanceof Error }") is True
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("(async () => { await 0; fail() })()")
    assert caught.value.__cause__ is exception
    assert rt.eval("40 + 2") == 42


def test_a_cancelled_error_of_a_function_that_is_not_async_ends_the_evaluation(rt: AnyRuntime) -> None:
    from asyncio import CancelledError

    def cancelled() -> None:
        raise CancelledError

    rt.bind_function("cancelled", cancelled)
    with pytest.raises(CancelledError):
        rt.eval("for (;;) { try { cancelled() } catch {} }")
    assert rt.eval("40 + 2") == 42


def test_an_endless_recursion_between_python_and_script_is_an_error(rt: AnyRuntime) -> None:
    def again(function: Any) -> Any:
        return function()

    rt.bind_function("again", again)
    with pytest.raises((JavaScriptError, RecursionError)):
        rt.eval("function f() { return again(f) } f()")
    assert rt.eval("40 + 2") == 42


def test_a_function_that_takes_too_long_has_its_answer_replaced(door: type[Any]) -> None:
    import time

    def slow() -> str:
        time.sleep(0.1)
        return "late"

    with door(tool_timeout=0.05) as rt:
        rt.bind_function("slow", slow)
        rt.bind_function("quick", lambda: "in time")
        assert rt.eval("try { slow() } catch (error) { error.message }") == "the host function slow failed"
        with pytest.raises(JavaScriptError) as caught:
            rt.eval("slow()")
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert rt.eval("quick()") == "in time"


def test_waiting_for_functions_has_a_limit_in_all() -> None:
    import time

    with IsolatedRuntime(max_host_wait=0.2) as rt:
        rt.bind_function("nap", lambda: time.sleep(0.05))
        with pytest.raises(HostWaitExceeded) as caught:
            rt.eval("for (;;) nap()")
        assert caught.value.kind == "host_wait"
        assert rt.eval("nap(); 40 + 2") == 42


def test_the_time_of_functions_is_not_the_scripts(door: type[Any]) -> None:
    import time

    with door(RuntimeConfig(timeout=0.3)) as rt:
        rt.bind_function("nap", lambda: time.sleep(0.5))
        assert rt.eval("nap(); 42") == 42


def test_too_many_async_calls_at_a_time_stop_the_evaluation() -> None:
    import asyncio

    async def wait() -> None:
        await asyncio.sleep(60)

    with IsolatedRuntime(max_inflight_host_calls=3) as rt:
        rt.bind_function("wait", wait)
        with pytest.raises(InflightLimitExceeded) as caught:
            rt.eval("for (;;) { try { wait() } catch {} }")
        assert caught.value.kind == "inflight_limit"
        assert rt.eval("40 + 2") == 42


def test_a_binding_that_fails_moves_no_other_function_to_another_name(door: type[Any]) -> None:
    with door() as rt:
        rt.eval("Object.defineProperty(globalThis, 'taken', {value: 1}); 0")
        with pytest.raises((InvalidInput, JavaScriptError)):
            rt.bind_object("taken", {"a": lambda: "a", "b": lambda: "b", "c": lambda: "c"})
            rt.eval("0")
        rt.bind_function("d", lambda: "d")
        rt.bind_object("e", {"f": lambda: "f", "g": lambda: "g"})
        assert rt.eval("[d(), e.f(), e.g()]") == ["d", "f", "g"]


@pytest.mark.parametrize("ending", ["close", "terminate"])
def test_a_function_may_end_the_runtime_that_waits_for_it(ending: str) -> None:
    with IsolatedRuntime() as rt:
        rt.bind_function("end", getattr(rt, ending))
        with pytest.raises(RuntimeClosed if ending == "close" else RuntimeTerminated):
            rt.eval("end(); 1")
        assert rt.is_closed()


def test_a_runtime_that_its_own_functions_refer_to_is_collected(door: type[Any]) -> None:
    import gc
    import weakref

    def use() -> Any:
        rt = door()

        def fail() -> Any:
            raise ValueError(rt)

        rt.bind_function("itself", lambda: rt)
        rt.bind_function("fail", fail)
        # The exception that is remembered holds a frame that holds the runtime.
        rt.eval("try { fail() } catch {}")
        return weakref.ref(rt)

    alive = use()
    gc.collect()
    assert alive() is None
