"""A gate sees the exact source before it runs, and whatever is no clear permission is a refusal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from conftest import Door
from pydeno import (
    GateContext,
    GateDenied,
    GateUnavailable,
    InvalidInput,
    RuntimeConfig,
    SourcePolicy,
    Verdict,
    all_of,
    any_of,
    static_gate,
)

CONTEXT = GateContext("script.js", "Runtime")


def allow(source: str, context: GateContext) -> Verdict:
    return Verdict(allow=True, reason="fine", labels=["allowed"])


def deny(source: str, context: GateContext) -> Verdict:
    return Verdict(allow=False, reason="not today", labels=["denied"])


def fail(source: str, context: GateContext) -> Verdict:
    raise LookupError("no rules")


async def allow_later(source: str, context: GateContext) -> Verdict:
    await asyncio.sleep(0)
    return allow(source, context)


async def deny_later(source: str, context: GateContext) -> Verdict:
    await asyncio.sleep(0)
    return deny(source, context)


async def fail_later(source: str, context: GateContext) -> Verdict:
    await asyncio.sleep(0)
    return fail(source, context)


def outcome(gate: Any) -> Verdict:
    answer = gate("1", CONTEXT)
    if isinstance(answer, Verdict):
        return answer

    async def wait() -> Verdict:
        verdict: Verdict = await answer
        return verdict

    return asyncio.run(wait())


@pytest.mark.parametrize("gate", [allow, allow_later])
def test_what_the_gate_allows_runs(door: Door, gate: Any) -> None:
    with door(gate=gate) as rt:
        assert rt.eval("6 * 7") == 42


@pytest.mark.parametrize("gate", [deny, deny_later])
def test_what_the_gate_denies_does_not_run_and_the_runtime_survives(door: Door, gate: Any) -> None:
    ran: list[str] = []
    allowed = False

    def sometimes(source: str, context: GateContext) -> Any:
        return allow(source, context) if allowed else gate(source, context)

    with door(gate=sometimes) as rt:
        rt.bind_function("ran", ran.append)
        with pytest.raises(GateDenied, match="not today") as caught:
            rt.eval("ran('a')")
        assert caught.value.kind == "gate_denied"
        assert caught.value.runtime_survives
        assert caught.value.verdict == Verdict(False, "not today", ["denied"])
        assert ran == []
        allowed = True
        rt.eval("ran('b')")
        assert ran == ["b"]


def test_the_gate_sees_the_exact_text_and_where_it_goes(door: Door) -> None:
    seen: list[tuple[str, str, str]] = []

    def gate(source: str, context: GateContext) -> Verdict:
        seen.append((source, context.name, context.runtime))
        return Verdict(True)

    class Masked(str):
        __slots__ = ()

        def __contains__(self, other: object) -> bool:
            return False

        def __str__(self) -> str:
            return "masked"

    with door(RuntimeConfig(bootstrap="var trusted = 1"), gate=gate) as rt:
        assert rt.eval(Masked(" 'a\ud800\\u0062' + trusted"), name="report.js") == "a\ud800b1"
    assert seen == [(" 'a\ud800\\u0062' + trusted", "report.js", door.__name__)]


NO_VERDICTS: list[tuple[Callable[..., Any], str]] = [
    (fail, "LookupError: no rules"),
    (fail_later, "LookupError: no rules"),
    (lambda source, context: True, "must return a Verdict, not bool"),
    (lambda source, context: None, "must return a Verdict, not NoneType"),
    (lambda source: Verdict(True), "TypeError"),
]


@pytest.mark.parametrize(("gate", "why"), NO_VERDICTS)
def test_a_gate_without_a_verdict_is_unavailable(door: Door, gate: Any, why: str) -> None:
    with door(gate=gate) as rt:
        with pytest.raises(GateUnavailable, match=why) as caught:
            rt.eval("1")
        assert caught.value.kind == "gate_unavailable"
        assert caught.value.runtime_survives
        assert caught.value.__cause__ is not None


def test_an_async_gate_without_a_verdict_is_unavailable(door: Door) -> None:
    async def gate(source: str, context: GateContext) -> bool:
        return True

    with door(gate=gate) as rt, pytest.raises(GateUnavailable, match="not bool"):  # type: ignore[arg-type]
        rt.eval("1")


def test_a_gate_that_ends_its_thread_is_unavailable(door: Door) -> None:
    def gate(source: str, context: GateContext) -> Verdict:
        raise SystemExit

    with door(gate=gate) as rt, pytest.raises(GateUnavailable, match="SystemExit"):
        rt.eval("1")


def test_a_gate_that_never_answers_is_unavailable(door: Door) -> None:
    released = threading.Event()

    def gate(source: str, context: GateContext) -> Verdict:
        released.wait()
        return Verdict(True)

    with door(gate=gate, gate_timeout=0.05) as rt, pytest.raises(GateUnavailable, match="gate_timeout"):
        rt.eval("1")
    released.set()


def test_an_async_gate_that_never_answers_is_cancelled(door: Door) -> None:
    cancelled = threading.Event()

    async def gate(source: str, context: GateContext) -> Verdict:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return Verdict(True)

    with door(gate=gate, gate_timeout=0.05) as rt, pytest.raises(GateUnavailable):
        rt.eval("1")
    assert cancelled.wait(30)


def test_a_gate_may_be_asked_inside_an_event_loop_and_sees_context_variables(door: Door) -> None:
    user = ContextVar("user", default="nobody")

    async def gate(source: str, context: GateContext) -> Verdict:
        await asyncio.sleep(0)
        return Verdict(user.get() == "alice", user.get())

    async def main() -> object:
        with door(gate=gate) as rt:
            with pytest.raises(GateDenied, match="nobody"):
                rt.eval("1")
            user.set("alice")
            return rt.eval("1")

    assert asyncio.run(main()) == 1


def test_a_static_gate_applies_a_policy(door: Door) -> None:
    with door(gate=static_gate(SourcePolicy(forbid_eval=True, max_source_bytes=100))) as rt:
        assert rt.eval("1 + 1") == 2
        with pytest.raises(GateDenied) as caught:
            rt.eval("\n eval('1'); eval('2')")
        assert caught.value.verdict.labels == ("eval",)
        assert "2:2 error [eval]" in str(caught.value)
        with pytest.raises(GateDenied) as caught:
            rt.eval(" " * 101)
        assert caught.value.verdict.labels == ("source-size",)


def test_warnings_of_a_policy_are_no_refusal() -> None:
    gate = static_gate(SourcePolicy(include_preflight_rules=True))
    assert gate("a.__proto__; eval('1')", CONTEXT) == Verdict(True)
    assert gate("fetch(1)", CONTEXT).labels == ("fetch",)  # type: ignore[union-attr]


@pytest.mark.parametrize(("yes", "no"), [(allow, deny), (allow_later, deny_later)])
def test_all_of_needs_every_gate_and_any_of_one(yes: Any, no: Any) -> None:
    for gates in ((yes, no), (no, yes), (allow, no), (no, allow), (yes, deny)):
        assert outcome(all_of(*gates)) == Verdict(False, "not today", ["denied"])
        assert outcome(any_of(*gates)) == Verdict(True, "fine", ["allowed"])
    assert outcome(all_of(yes, allow, yes)) == Verdict(True, "fine; fine; fine", ["allowed"])
    assert outcome(any_of(no, deny, no)) == Verdict(False, "not today; not today; not today", ["denied"])
    assert outcome(all_of(any_of(no, yes), all_of(yes))).allow
    assert not outcome(any_of(all_of(yes, no), all_of(no))).allow


@pytest.mark.parametrize("broken", [fail, fail_later, lambda source, context: None])
def test_a_gate_that_fails_allows_nothing_in_a_combination(broken: Any) -> None:
    for gates in ((broken, allow), (allow, broken), (broken, allow_later), (allow_later, broken)):
        with pytest.raises((LookupError, TypeError)):
            outcome(all_of(*gates))
        assert outcome(any_of(*gates)).allow
    for gates in ((broken, deny), (deny, broken), (deny_later, broken)):
        with pytest.raises((LookupError, TypeError)):
            outcome(any_of(*gates))
    assert not outcome(all_of(deny, broken)).allow


def test_a_combination_of_gates_works_in_a_runtime(door: Door) -> None:
    static = static_gate(SourcePolicy(forbid_eval=True))
    with door(gate=all_of(static, allow_later)) as rt:
        assert rt.eval("1") == 1
        with pytest.raises(GateDenied, match=r"\[eval\]"):
            rt.eval("eval('1')")
    with door(gate=all_of(static, fail_later)) as rt, pytest.raises(GateUnavailable, match="no rules"):
        rt.eval("1")


def test_what_cannot_be_a_gate_is_refused(door: Door) -> None:
    with pytest.raises(TypeError, match="gate must be callable"):
        door(gate="allow")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="gate_timeout"):
        door(gate=allow, gate_timeout=0)
    for combine in (all_of, any_of):
        with pytest.raises(InvalidInput, match="at least one"):
            combine()
        with pytest.raises(TypeError, match="must be callable"):
            combine(allow, "deny")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="SourcePolicy"):
        static_gate(None)  # type: ignore[arg-type]


def test_a_verdict_is_checked_and_immutable() -> None:
    with pytest.raises(TypeError, match="allow must be bool"):
        Verdict(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="several str"):
        Verdict(True, "", "label")
    verdict = Verdict(True, "why", ["a"])
    assert (verdict.allow, verdict.reason, verdict.labels) == (True, "why", ("a",))
    assert hash(verdict) == hash(Verdict(True, "why", ("a",)))
    with pytest.raises(AttributeError, match="immutable"):
        verdict.allow = False
