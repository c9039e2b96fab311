"""`execute`: an evaluation as data, whatever comes of it; and what a script writes to its console."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pydeno import (
    ConsoleLine,
    ExecutionResult,
    GateContext,
    InvalidInput,
    IsolatedRuntime,
    Runtime,
    RuntimeConfig,
    Verdict,
)

AnyRuntime = Runtime | IsolatedRuntime


def test_a_value_and_what_was_written_are_in_the_result(door: type[Any]) -> None:
    with door(capture_console=True) as rt:
        result = rt.execute("console.log('out', 1); console.warn('err'); console.info({a: [1]}); 6 * 7")
        assert (result.status, result.result, result.error, result.exception) == ("ok", 42, None, None)
        assert result.stdout.startswith("out 1\n")
        assert result.stderr == "err\n"
        assert bool(result)
        assert not result.truncated
        assert json.loads(json.dumps(result.to_dict()))["result"] == 42


@pytest.mark.parametrize(
    ("code", "status", "error_type"),
    [
        ("throw new RangeError('x')", "js_error", "RangeError"),
        ("syntax error", "js_error", "SyntaxError"),
        ("throw 5", "js_error", None),
        ("for (;;) {}", "timeout", "RuntimeTimeout"),
        ("Symbol('x')", None, "ConversionError"),
        ("new Promise(() => {})", "js_error", None),
        ("fail()", "js_error", "Error"),
    ],
)
def test_what_goes_wrong_is_in_the_result_and_not_raised(
    door: type[Any], code: str, status: str | None, error_type: str | None
) -> None:
    def fail() -> None:
        raise ValueError

    with door(RuntimeConfig(timeout=0.3), capture_console=True) as rt:
        rt.bind_function("fail", fail)
        result = rt.execute("console.log('before'); " * ("syntax" not in code) + code)
        assert isinstance(result, ExecutionResult)
        assert not result
        assert result.exception is not None
        assert result.status == (status or result.exception.kind)
        if error_type is not None:
            assert result.error_type == error_type
        assert result.error
        assert result.stdout == ("before\n" if "syntax" not in code else "")
        assert rt.eval("40 + 2") == 42


@pytest.mark.parametrize("way", ["closed", "killed", "denied"])
def test_a_runtime_that_cannot_evaluate_is_a_result_too(way: str) -> None:
    def gate(source: str, context: GateContext) -> Verdict:
        return Verdict(way != "denied", "never")

    rt = IsolatedRuntime(gate=gate)
    if way == "closed":
        rt.close()
    elif way == "killed":
        rt.terminate()
    result = rt.execute("1")
    assert result.status == {"closed": "closed", "killed": "terminated", "denied": "gate_denied"}[way]
    rt.close()


def test_output_is_bounded_and_says_that_it_was_cut(door: type[Any]) -> None:
    with door(capture_console=True) as rt:
        result = rt.execute("for (let i = 0; i < 5000; i++) console.log('x'.repeat(9)); 1", max_output=100)
        assert result.stdout == ("x" * 9 + "\n") * 10
        assert result.truncated
        assert result.result == 1
        result = rt.execute("for (let i = 0; i < 100000; i++) console.error(''); 1", max_output=50)
        assert (result.stderr, result.stdout, result.truncated) == ("\n" * 50, "", True)


def test_output_that_the_worker_drops_is_told_of() -> None:
    heard: list[tuple[str, str]] = []
    config = RuntimeConfig(on_console=lambda level, text: heard.append((level, text)))
    with IsolatedRuntime(config, capture_console=True) as rt:
        # 1 MiB has room for 1023 of these with what a line counts beside its text.
        code = "for (let i = 0; i < 1500; i++) console.log('x'.repeat(960)); 1"
        result = rt.execute(code, max_output=1 << 24)
        note = result.stderr.strip()
        assert note == (
            "(console output was dropped: 476 more lines, 456960 bytes; one evaluation may write 1048576 bytes)"
        )
        assert (result.truncated, result.result, len(result.stdout)) == (True, 1, 1024 * 961)
        assert heard[-1] == ("warn", note)
        lines = rt.take_console()
        assert [(line.level, line.text) for line in lines[-2:]] == [("log", "x" * 960), ("warn", note)]
        # What is said again counts again; and a script that says it itself cuts nothing.
        assert not rt.execute("console.log('x')").truncated
        assert not rt.execute(f"console.warn({note!r})").truncated


def test_results_are_apart(door: type[Any]) -> None:
    with door(capture_console=True) as rt:
        first, second = rt.execute("console.log('first')"), rt.execute("console.log('second')")
        assert (first.stdout, second.stdout) == ("first\n", "second\n")


def test_a_result_is_immutable_and_shows_itself(rt: AnyRuntime) -> None:
    result = rt.execute("1")
    with pytest.raises(AttributeError):
        result.status = "changed"
    assert "status='ok'" in repr(result)


def test_what_is_no_source_or_no_size_is_the_callers_mistake(rt: AnyRuntime) -> None:
    with pytest.raises(TypeError):
        rt.execute(5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        rt.execute("1", max_output=-1)


def test_what_no_script_may_catch_is_raised(rt: AnyRuntime) -> None:
    def leave() -> None:
        raise SystemExit(3)

    rt.bind_function("leave", leave)
    with pytest.raises(SystemExit):
        rt.execute("leave()")


def test_console_lines_are_kept_in_order_until_they_are_taken(door: type[Any]) -> None:
    with door(capture_console=True) as rt:
        rt.eval(
            "console.log('a'); console.error('b', {c: 1}); console.debug(); console.warn('\\u0000\\ud800')"
        )
        lines = rt.take_console()
        assert [line.level for line in lines] == ["log", "error", "debug", "warn"]
        assert lines[0] == ConsoleLine("log", "a")
        assert lines[3].text == "\0\ud800"
        assert rt.take_console() == []


@pytest.mark.parametrize("line", ["''", "'x'.repeat(1000)", "'\\u{1F600}'.repeat(100)"])
def test_what_is_kept_of_the_console_is_bounded(door: type[Any], line: str) -> None:
    with door(capture_console=True) as rt:
        for _ in range(2):
            assert rt.eval(f"for (let i = 0; i < 30000; i++) console.log({line}); 'done'") == "done"
        lines = rt.take_console()
        assert 0 < len(lines) < 20_000
        assert sum(len(line.text) for line in lines) <= 1 << 20
        rt.eval("console.log('after')")
        assert [line.text for line in rt.take_console()] == ["after"]


def test_an_on_console_that_fails_is_no_concern_of_the_script(
    door: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    reported: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)

    def fails(level: str, text: str) -> None:
        raise ValueError(text)

    with door(RuntimeConfig(enable_console=True, on_console=fails)) as rt:
        assert rt.eval("console.log('x'); 42") == 42
    assert [type(report.exc_value) for report in reported] == [ValueError]


def test_without_a_console_there_is_none(rt: AnyRuntime) -> None:
    assert rt.eval("typeof console") == "undefined"
    assert rt.execute("console.log(1)").error_type == "ReferenceError"
