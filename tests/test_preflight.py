"""`check_source` tells authors what is not there, and is no boundary; policies are a host's own rules."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import pydeno
from pydeno import Finding, IsolatedRuntime, JavaScriptError, SourcePolicy, check_source
from pydeno._preflight import check_source as same_check_source


def rules(code: str, policy: SourcePolicy | None = None) -> list[str]:
    return [finding.rule for finding in check_source(code, policy=policy).findings]


def test_a_result_has_findings_with_places_and_a_format() -> None:
    result = check_source("let a;\n  fetch(a); b.__proto__")
    assert not result
    assert result.ok is False
    error, warning = result.findings
    assert (error.rule, error.line, error.column, error.severity) == ("fetch", 2, 3, "error")
    assert (warning.rule, warning.severity) == ("proto", "warning")
    lines = result.format().splitlines()
    assert lines == [f"2:3 error [fetch] {error.message}", f"2:15 warning [proto] {warning.message}"]
    assert error == check_source("let a;\n  fetch(a)").findings[0]
    assert eval(repr(error), {"Finding": Finding}) == error


def test_a_clean_source_is_truthy_and_formats_to_nothing() -> None:
    result = check_source("price('tea') * 2")
    assert result
    assert result.ok is True
    assert (list(result.findings), result.format()) == ([], "")


def test_it_is_one_function_under_both_names() -> None:
    assert check_source is same_check_source
    assert check_source is pydeno.check_source


def test_options_let_pass_what_they_name_and_nothing_else() -> None:
    code = "import a from 'a'; export {a}; import('b'); eval('1')"
    assert rules(code) == ["static-import", "static-export", "dynamic-import", "eval"]
    allowed = check_source(code, allow_import=True, report_eval=False).findings
    assert [finding.rule for finding in allowed] == ["dynamic-import"]
    assert check_source("import('b')", allow_dynamic_import=True)
    assert not check_source("import 'b'", allow_dynamic_import=True)


@pytest.mark.parametrize(
    "code", ["\ud800 fetch(1) \udfff", "\0fetch(1)", "é fetch(1)", "'\ud83d' + fetch(1)"]
)
def test_no_text_is_an_error_of_the_check(code: str) -> None:
    findings = check_source(code).findings
    assert [(finding.rule, finding.column) for finding in findings] == [("fetch", code.index("fetch") + 1)]


@pytest.mark.parametrize("code", [None, 1, b"fetch(1)", ["fetch(1)"]])
def test_what_is_no_text_is_a_type_error(code: object) -> None:
    with pytest.raises(TypeError, match="must be str"):
        check_source(code)  # type: ignore[arg-type]


def test_options_of_the_wrong_type_are_type_errors() -> None:
    with pytest.raises(TypeError, match="policy must be SourcePolicy"):
        check_source("1", policy={"forbid_eval": True})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="allow_import"):
        check_source("1", allow_import="no")  # type: ignore[arg-type]


def test_a_subclass_of_str_is_read_as_what_it_holds() -> None:
    class Masked(str):
        __slots__ = ()

        def encode(self, *_: object) -> bytes:
            return b""

    assert rules(Masked("fetch(1) \ud800")) == ["fetch"]


def test_findings_are_bounded_and_the_last_line_counts_the_rest() -> None:
    result = check_source("fetch(1);" * 1000)
    assert len(result.findings) == 200
    assert result.omitted == 800
    assert result.format().splitlines()[-1] == "... and 800 more"


def test_the_gil_is_free_while_a_long_source_is_read_and_kept_for_a_short_one() -> None:
    ran: list[bool] = []
    may_run = threading.Lock()
    may_run.acquire()

    def run() -> None:
        with may_run:
            ran.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)  # a thread that has the GIL keeps it until it gives it up
    try:
        may_run.release()
        for _ in range(1000):
            check_source("a + /b/ - `c`;")
        assert not ran
        long = "a + /b/ - `c`;" * 100_000
        for _ in range(1000):
            check_source(long)
            if ran:
                break
        assert ran
    finally:
        sys.setswitchinterval(interval)
        thread.join()


EVASIONS = {
    "globalThis['req' + 'uire']": "undefined",
    "globalThis['fe'.concat('tch')]": "undefined",
    "globalThis[`${'pro'}cess`]": "undefined",
    "Reflect.get(globalThis, ['De', 'no'].join(''))": "undefined",
    "(0, eval)('typeof ' + 'XMLHttp' + 'Request')": "'undefined'",
}


@pytest.mark.parametrize("code", EVASIONS)
def test_evasions_are_not_detected_and_lead_to_nothing(code: str, isolated: IsolatedRuntime) -> None:
    assert check_source(code).findings == ()
    assert isolated.eval(f"({code}) === {EVASIONS[code]}") is True


@pytest.mark.parametrize(
    "name", ["require", "fetch", "XMLHttpRequest", "WebSocket", "process", "Deno", "child_process"]
)
def test_the_names_that_are_reported_do_not_exist_in_the_isolate(
    name: str, isolated: IsolatedRuntime
) -> None:
    assert isolated.eval(f"typeof {name}") == "undefined"
    assert isolated.eval(f"'{name}' in globalThis") is False


def test_no_runtime_asks_the_check(isolated: IsolatedRuntime) -> None:
    assert not check_source("fetch(1)")
    with pytest.raises(JavaScriptError, match="fetch"):
        isolated.eval("fetch(1)")
    assert isolated.eval("const fetch = x => x + 1; fetch(1)") == 2


def test_a_policy_replaces_the_rules() -> None:
    policy = SourcePolicy(forbidden_identifiers=["secret"], forbidden_globals=("Date",), forbid_eval=True)
    assert rules("fetch(1)", policy) == []
    assert rules("a.secret; Date.now(); eval('1')", policy) == [
        "forbidden-identifier",
        "forbidden-global",
        "eval",
    ]
    both = SourcePolicy(forbidden_identifiers=["secret"], include_preflight_rules=True)
    assert rules("fetch(secret)", both) == ["fetch", "forbidden-identifier"]


def test_a_policy_reads_strings_and_comments_unless_told_otherwise() -> None:
    code = "'secret' // secret"
    assert rules(code, SourcePolicy(forbidden_identifiers=["secret"])) == ["forbidden-identifier"] * 2
    code_alone = SourcePolicy(forbidden_identifiers=["secret"], ignore_strings_and_comments=True)
    assert rules(code, code_alone) == []


def test_a_policy_counts_bytes_and_reads_no_more_than_it_allows() -> None:
    policy = SourcePolicy(max_source_bytes=4, forbid_eval=True)
    assert rules("eval", policy) == ["eval"]
    assert rules("eval('1')", policy) == ["source-size"]
    assert rules("é" * 3, policy) == ["source-size"]
    assert rules(" " * (1 << 20), SourcePolicy()) == []
    assert rules(" " * ((1 << 20) + 1), SourcePolicy()) == ["source-size"]


def test_a_policy_is_checked_immutable_and_shows_itself() -> None:
    policy = SourcePolicy(forbidden_globals=["Date"])
    assert policy.forbidden_globals == ("Date",)
    assert "forbidden_globals=('Date',)" in repr(policy)
    with pytest.raises(AttributeError, match="immutable"):
        policy.forbid_eval = True
    with pytest.raises(AttributeError):
        _ = policy.forbid_everything  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="several names"):
        SourcePolicy(forbidden_globals="Date")
    with pytest.raises(TypeError, match="must hold str"):
        SourcePolicy(forbidden_identifiers=[1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="forbid_eval must be bool"):
        SourcePolicy(forbid_eval=1)  # type: ignore[arg-type]
    with pytest.raises(pydeno.InvalidInput):
        SourcePolicy(max_source_bytes=0)


def test_the_import_of_pydeno_stays_light() -> None:
    program = "import sys; before = set(sys.modules); import pydeno; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"re", "typing", "dataclasses", "asyncio", "threading", "inspect"} & set(done.stdout.split())
