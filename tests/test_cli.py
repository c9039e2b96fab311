"""The `pydeno` command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from degraded_host import ENOSYS, run
from pydeno import sandbox_status

COMMAND = Path(sysconfig.get_path("scripts")) / "pydeno"


def pydeno(
    *arguments: str, stdin: str | bytes = "", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [COMMAND, *arguments],
        input=data,
        capture_output=True,
        check=False,
        timeout=60,
        env={**os.environ, **(env or {})},
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize(
    ("code", "out"),
    [
        ("1 + 1", "2\n"),
        ("[1, 'a', null, {b: true}]", '[1, "a", null, {"b": true}]\n'),
        ("'text'", '"text"\n'),
        ("new Date(0)", '"1970-01-01T00:00:00.000Z"\n'),
        ("Promise.resolve([1])", "[1]\n"),
    ],
)
def test_the_value_is_printed_as_json(code: str, out: str) -> None:
    done = pydeno(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, out, "")
    assert json.loads(done.stdout) is not None


def test_the_script_comes_from_an_argument_a_file_or_standard_input(tmp_path: Path) -> None:
    script = tmp_path / "script.js"
    script.write_text("6 * 7", encoding="utf-8")
    for arguments, stdin in (
        (["6 * 7"], ""),
        (["-c", "6 * 7"], ""),
        (["-f", str(script)], ""),
        (["-"], "6 * 7"),
    ):
        assert pydeno(*arguments, stdin=stdin).stdout == "42\n"


def test_a_javascript_error_is_code_1_with_its_place(tmp_path: Path) -> None:
    script = tmp_path / "report.js"
    script.write_text("function f() {\n  null.x\n}\nf()", encoding="utf-8")
    done = pydeno("-f", str(script))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "TypeError" in done.stderr
    assert "report.js:2:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["1", "2"], 2),
        (["--nope", "1"], 2),
        (["--timeout", "-1", "1"], 2),
        (["-f", "/no/such/file.js"], 2),
        (["--timeout", "0.2", "for (;;);"], 3),
        (["undefined"], 6),
        (["({a: NaN})"], 6),
        (["1n"], 6),
        (["--max-output", "10", "'x'.repeat(100)"], 5),
        (["--max-memory", "64M", "new Uint8Array(2 ** 28).fill(1)"], 5),
    ],
)
def test_each_way_to_fail_has_its_code_and_says_why(arguments: list[str], code: int) -> None:
    done = pydeno(*arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.startswith("pydeno: ")


def test_input_is_bounded_and_must_be_text() -> None:
    assert pydeno("-", stdin=b"'\xff'").returncode == 2
    too_long = pydeno("-", stdin=b" " * ((16 << 20) + 1))
    assert too_long.returncode == 2
    assert "16777216" in too_long.stderr


def test_json_output_holds_the_value_or_the_error() -> None:
    assert json.loads(pydeno("--json", "[1]").stdout) == {"ok": True, "value": [1]}
    done = pydeno("--json", "throw new RangeError('no')")
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error == {"kind": "js_error", "message": "RangeError: no"}


def test_raw_output_is_the_string_itself() -> None:
    assert pydeno("--raw", "'a\\nb'").stdout == "a\nb"


def test_guest_text_cannot_talk_to_the_terminal() -> None:
    assert pydeno("'\\u001b[31m\\u202e'").stdout == '"\\u001b[31m\\u202e"\n'
    assert "\x1b" not in pydeno("throw new Error('\\u001b[31m')").stderr


def test_no_engine_is_code_4_and_names_what_to_do() -> None:
    done = pydeno("1", env={"PYDENO_JSC": "/no/such/library.so"})
    assert done.returncode == 4
    assert "/no/such/library.so" in done.stderr


def test_doctor_tells_the_layers_and_the_engine() -> None:
    done = pydeno("doctor")
    assert done.returncode == 0, done.stdout
    status = sandbox_status()
    for layer in ("engine", *status.layers):
        assert f"\n{layer} " in f"\n{done.stdout}"
    report = json.loads(pydeno("doctor", "--json").stdout)
    assert report["engine_error"] is None
    assert report.keys() - {"engine", "engine_error"} == status.to_dict().keys()
    for name, value in status.to_dict().items():
        # What the two throwaway processes used differs.
        if name != "resource_probes":
            assert report[name] == value, name


def test_doctor_on_a_machine_without_a_layer_is_code_4_and_names_the_fix() -> None:
    command = str(COMMAND)
    out = run(
        f"""
        import subprocess
        refuse("landlock_create_ruleset", {ENOSYS})
        for arguments in ([], ["--json"]):
            done = subprocess.run([{command!r}, "doctor", *arguments], capture_output=True, text=True)
            print(json.dumps([done.returncode, done.stdout]))
        """
    )
    (code, text), (code_of_json, report) = map(json.loads, out.splitlines())
    assert code == code_of_json == 4
    assert "landlock        NO " in text
    assert "to fix: use Linux 5.13" in text
    assert "refuses to start" in text
    assert json.loads(report)["complete"] is False
    assert "Linux 5.13" in json.loads(report)["landlock"]["fix"]


def test_doctor_without_a_worker_is_code_4_and_says_what_to_do(tmp_path: Path) -> None:
    command = shutil.copy(COMMAND, tmp_path)
    done = subprocess.run([command, "doctor"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 4
    assert "no pydeno-worker belongs to" in done.stdout
    assert "to fix: install pydeno again" in done.stdout
    report = subprocess.run(
        [command, "doctor", "--json"], capture_output=True, check=False, timeout=60
    ).stdout
    assert json.loads(report)["complete"] is False
    assert json.loads(report)["seccomp"]["applied"] is False


def test_doctor_without_an_engine_is_code_4() -> None:
    done = pydeno("doctor", env={"PYDENO_JSC": "/no/such/library.so"})
    assert done.returncode == 4
    assert "NO" in done.stdout


def test_check_prints_a_line_for_each_finding_and_is_code_1_when_there_is_an_error(tmp_path: Path) -> None:
    bad, warned, good = (tmp_path / name for name in ("bad.js", "warned.js", "good.js"))
    bad.write_text("let a\n  fetch(a)", encoding="utf-8")
    warned.write_text("a.__proto__", encoding="utf-8")
    good.write_text("1 + 1", encoding="utf-8")
    done = pydeno("check", str(good), str(bad), str(warned))
    assert done.returncode == 1
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{bad}:2:3 error [fetch] ")
    assert second.startswith(f"{warned}:1:3 warning [proto] ")
    assert pydeno("check", str(warned)).returncode == 0
    done = pydeno("check", str(good))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_check_reads_standard_input_and_passes_what_is_allowed() -> None:
    assert pydeno("check", "-", stdin="fetch(1)").stdout.startswith("stdin:1:1 error [fetch] ")
    code = "import a from 'a'; import('b')"
    assert len(pydeno("check", "-", stdin=code).stdout.splitlines()) == 2
    assert len(pydeno("check", "-", "--allow-import", stdin=code).stdout.splitlines()) == 1
    assert pydeno("check", "-", "--allow-import", "--allow-dynamic-import", stdin=code).returncode == 0
    assert pydeno("check", "-", stdin=b"\xff fetch(1)").returncode == 1


def test_check_runs_nothing_and_needs_no_engine() -> None:
    done = pydeno("check", "-", stdin="for (;;);", env={"PYDENO_JSC": "/no/such/library.so"})
    assert done.returncode == 0


def test_check_prints_json_and_sarif_for_other_programs(tmp_path: Path) -> None:
    script = tmp_path / "a\u202e.js"
    script.write_text("'é' + fetch(1); eval('2')", encoding="utf-8")
    done = pydeno("check", "--json", str(script))
    assert done.returncode == 1
    assert done.stdout.isascii()
    report = json.loads(done.stdout)
    assert report["ok"] is False
    assert report["files"][0]["file"] == str(script)
    places = [
        (finding["rule"], finding["line"], finding["column"], finding["severity"])
        for finding in report["files"][0]["findings"]
    ]
    assert places == [("fetch", 1, 7, "error"), ("eval", 1, 17, "info")]
    run = json.loads(pydeno("check", "--sarif", str(script)).stdout)["runs"][0]
    assert [result["level"] for result in run["results"]] == ["error", "note"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startColumn"] == 7


@pytest.mark.parametrize(
    "arguments",
    [["check"], ["check", "/no/such/file.js"], ["check", "-", "--json", "--sarif"], ["--sarif", "1"]],
)
def test_a_check_that_cannot_be_made_is_code_2(arguments: list[str]) -> None:
    done = pydeno(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pydeno: ")


def test_help_and_version_are_printed() -> None:
    assert pydeno("--help").stdout.startswith("pydeno: ")
    assert pydeno("--version").stdout.startswith("pydeno ")


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pydeno", "1 + 1"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "2\n")
