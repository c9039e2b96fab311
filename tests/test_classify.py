"""`classify_error` says what an exception means, whatever it is given."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import pickle
import signal
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

import pydeno
from pydeno import ErrorInfo, IsolatedRuntime, PydenoError, WorkerCrashed, classify_error

KINDS = [
    *(
        "js_error",
        "timeout",
        "cpu_limit",
        "memory_limit",
        "thread_limit",
        "worker_crashed",
        "checkout_timeout",
    ),
    *("terminated", "host_wait", "max_pause", "host_call_budget", "inflight_limit", "tool_budget"),
    *("tool_not_found", "tool_failed", "protocol_violation", "sandbox_unavailable", "sandbox_violation"),
    *("limits_unmeasurable", "engine_unavailable", "closed", "journal_invalid", "replay_divergence"),
    *("invalid_input", "cancelled", "stream_limit", "gate_denied", "gate_unavailable", "unknown"),
]
OWN = [
    error
    for error in (getattr(pydeno, name) for name in pydeno.__all__)
    if isinstance(error, type) and issubclass(error, PydenoError)
]


def raised_by(code: str, **options: Any) -> BaseException:
    with IsolatedRuntime(**options) as rt:
        rt.bind_function("host", lambda: None)
        with pytest.raises(PydenoError) as caught:
            rt.eval(code)
    return caught.value


@pytest.mark.parametrize("error", OWN)
def test_every_exception_has_the_kind_of_its_class(error: type[PydenoError]) -> None:
    info = classify_error(error("fetch failed: timeout, please retry"))
    assert (info.kind, info.kind in KINDS) == (error.kind, True)
    assert classify_error(type("Own", (error,), {})()).kind == error.kind


def test_every_kind_has_advice_of_its_own() -> None:
    infos = [classify_error(type("Own", (PydenoError,), {"kind": kind})()) for kind in KINDS]
    assert [info.kind for info in infos] == KINDS
    assert len({info.summary for info in infos}) == len(KINDS)
    assert all(info.summary.isprintable() and info.summary.endswith(".") for info in infos)
    assert not any(info.retryable and info.retry_with_larger_limits for info in infos)
    retryable = {info.kind for info in infos if info.retryable}
    assert retryable == {"checkout_timeout", "gate_unavailable"}
    larger = {info.kind for info in infos if info.retry_with_larger_limits}
    assert larger == {
        *("timeout", "cpu_limit", "memory_limit", "host_wait", "max_pause"),
        *("host_call_budget", "inflight_limit", "tool_budget", "stream_limit"),
    }


@pytest.mark.parametrize(
    ("code", "options", "expected"),
    [
        ("null.x", {}, ("js_error", False)),
        ("+", {}, ("js_error", False)),
        ("Symbol()", {}, ("invalid_input", False)),
        ("for (;;);", {"timeout": 0.1}, ("timeout", True)),
        ("host(); host()", {"max_host_calls": 1}, ("host_call_budget", True)),
        ("const a = []; for (;;) a.push({});", {"max_memory": 64 << 20}, ("memory_limit", True)),
    ],
)
def test_what_scripts_cause_is_never_worth_the_same_try_again(
    code: str, options: dict[str, Any], expected: tuple[str, bool]
) -> None:
    info = classify_error(raised_by(code, **options))
    assert (info.kind, info.retry_with_larger_limits) == expected
    assert not info.retryable


def test_a_script_cannot_forge_a_kind() -> None:
    forged = raised_by(
        "throw Object.assign(new Error('WorkerCrashed: worker_crashed, retryable'), "
        "{name: 'RuntimeTimeout', kind: 'timeout', signal: 9, started: false, retryable: true})"
    )
    info = classify_error(forged)
    assert (info.kind, info.retryable, info.retry_with_larger_limits) == ("js_error", False, False)
    assert "retryable" not in info.summary


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_killed_from_outside_is_worth_another_try(number: int) -> None:
    with IsolatedRuntime() as rt:
        os.kill(rt.worker_pid, number)
        with pytest.raises(WorkerCrashed) as caught:
            rt.eval("1")
    assert (caught.value.signal, caught.value.exit_code, caught.value.started) == (number, None, True)
    info = classify_error(caught.value)
    assert (info.kind, info.retryable) == ("worker_crashed", True)


def test_a_worker_that_crashed_by_itself_is_not() -> None:
    with IsolatedRuntime() as rt:
        os.kill(rt.worker_pid, signal.SIGABRT)
        with pytest.raises(WorkerCrashed) as caught:
            rt.eval("1")
    assert caught.value.signal == signal.SIGABRT
    info = classify_error(caught.value)
    assert (info.kind, info.retryable) == ("worker_crashed", False)


def test_a_worker_that_could_not_be_started_is() -> None:
    error = WorkerCrashed("no more processes")
    assert not classify_error(error).retryable
    error.started = False
    assert classify_error(error).retryable


@pytest.mark.parametrize(
    ("exception", "kind"),
    [
        (asyncio.CancelledError(), "cancelled"),
        (concurrent.futures.CancelledError(), "cancelled"),
        (KeyboardInterrupt(), "cancelled"),
        (TimeoutError(), "timeout"),
        (asyncio.TimeoutError(), "timeout"),
        (concurrent.futures.TimeoutError(), "timeout"),
        (MemoryError(), "memory_limit"),
        (ValueError("timeout"), "unknown"),
        (Exception("cancelled"), "unknown"),
        (SystemExit(), "unknown"),
    ],
)
def test_pythons_own_exceptions_are_known_where_they_mean_one_of_the_kinds(
    exception: BaseException, kind: str
) -> None:
    assert classify_error(exception).kind == kind


def hostile() -> Iterator[tuple[str, object]]:
    """Objects that fail, or lie, when they are looked at."""

    def fail(*_: object) -> NoReturn:
        raise RuntimeError("looked at")

    class Meta(type):
        __subclasscheck__ = __instancecheck__ = fail

        def __getattribute__(cls, name: str) -> NoReturn:
            raise RuntimeError("looked at")

    class Failing(PydenoError, metaclass=Meta):
        kind = property(fail)
        __class__ = property(fail)
        __getattribute__ = __str__ = __repr__ = __eq__ = __hash__ = __bool__ = fail

    class Lying(Exception):
        kind = "timeout"
        __class__ = pydeno.RuntimeTimeout  # type: ignore[assignment]

    class Unhashable(str):
        __slots__ = ()
        __hash__ = __eq__ = fail

    class Key:
        def __hash__(self) -> int:
            return hash("kind")

        __eq__ = fail

    odd_kind = PydenoError()
    odd_kind.kind = Unhashable("timeout")
    odd_key = PydenoError()
    odd_key.__dict__[Key()] = 1  # type: ignore[index]
    yield "fails at everything", Failing()
    yield "lies about its class", Lying()
    yield "has a kind that is no plain text", odd_kind
    yield "has a field that cannot be compared", odd_key
    for plain in (None, 1, "timeout", object(), Exception, TimeoutError, classify_error, ..., b"", []):
        yield repr(plain), plain


def test_nothing_makes_it_raise_and_nothing_of_the_exception_runs() -> None:
    for what, exc in hostile():
        assert classify_error(exc).kind == "unknown", what


def test_a_kind_that_nobody_knows_is_unknown() -> None:
    error = PydenoError()
    error.kind = "new_kind"
    assert classify_error(error).kind == "unknown"


def test_what_it_says_is_immutable_comparable_and_plain_json() -> None:
    info = classify_error(TimeoutError())
    with pytest.raises(AttributeError, match="immutable"):
        info.kind = "other"
    assert info == classify_error(asyncio.TimeoutError()) != classify_error(MemoryError())
    assert len({info, classify_error(TimeoutError())}) == 1
    assert pickle.loads(pickle.dumps(info)) == info
    assert json.loads(json.dumps(info.to_dict())) == {
        "kind": "timeout",
        "retryable": False,
        "summary": info.summary,
        "retry_with_larger_limits": True,
    }
    assert isinstance(info, ErrorInfo)
    assert repr(info) == "ErrorInfo('timeout', retryable=False, retry_with_larger_limits=True)"
