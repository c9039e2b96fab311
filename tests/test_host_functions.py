"""Functions that the host binds: a script's only way out."""

from __future__ import annotations

from typing import Any

import pytest

from pydeno import (
    HostCallBudgetExceeded,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    Runtime,
    RuntimeConfig,
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
