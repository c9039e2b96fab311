"""What the documents say is so: their programs run, their tables match the code, their links lead somewhere."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import pydeno
from pydeno._classify import INFO

PROJECT = Path(__file__).parent.parent
DOCUMENTS = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])
README = (PROJECT / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
# Importing `pydeno.__main__` runs the command.
MODULES = [
    "pydeno",
    *(f"pydeno.{name}" for _, name, _ in pkgutil.iter_modules(pydeno.__path__) if name != "__main__"),
]
#: It needs Python 3.11 (requirements-dev.txt).
HAS_PYDANTIC_AI = sys.version_info >= (3, 11)
if HAS_PYDANTIC_AI:
    MODULES.append("pydeno.integrations.pydantic_ai")


def run(program: str) -> list[str]:
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return finished.stdout.splitlines()


def test_the_readme_opens_with_a_program_and_a_hostile_one() -> None:
    assert len(PROGRAMS) == 2


def test_the_first_program_prints_what_its_comment_says() -> None:
    said = re.findall(r"  # (.+)$", PROGRAMS[0], re.MULTILINE)
    assert said
    assert run(PROGRAMS[0]) == said


def test_the_hostile_program_ends_each_attack_as_an_error() -> None:
    said = re.findall(r"  # (.+)$", PROGRAMS[1], re.MULTILINE)[0].split("; ")
    kinds = run(PROGRAMS[1])
    assert len(kinds) == len(said) == 3
    assert all(kind in alternatives.split(" or ") for kind, alternatives in zip(kinds, said, strict=True))


DOCS = PROJECT / "docs"
#: Pages whose programs say what they print in a way of their own; each has a test below.
OTHERWISE = {"agents", "check_source", "errors"}
#: Every other page with programs; a new page is run without being named here.
PAGES = sorted(
    name
    for page in DOCS.rglob("*.md")
    if "\n```python\n" in page.read_text(encoding="utf-8")
    and (name := page.relative_to(DOCS).with_suffix("").as_posix()) not in OTHERWISE
)
if not HAS_PYDANTIC_AI:
    PAGES.remove("integrations")


@pytest.mark.parametrize("page", PAGES)
def test_every_program_of_a_page_prints_what_its_comments_say(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert programs
    for program in programs:
        # What a loop prints is said below it, or once for each time.
        said = re.findall(r"(?:print\(.*  |^)# (.+)$", program, re.MULTILINE)
        assert said
        told = run(program)
        assert told == said * max(1, len(told) // len(said)), program


def test_the_command_line_examples_print_what_their_comments_say(tmp_path: Path) -> None:
    examples = re.findall(r"^    (pydeno '.+?) +# (.+)$", README, re.MULTILINE)
    assert examples
    for command, said in examples:
        arguments = [str(Path(sys.executable).parent / "pydeno"), *shlex.split(command)[1:]]
        finished = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert finished.stdout.strip() == said


def test_the_table_of_limits_has_the_defaults_of_the_code() -> None:
    section = README.split("| option | default |")[1].split("\n\n")[0]
    table = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE))
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(pydeno.IsolatedRuntime).parameters.items()
    }
    defaults["timeout"] = pydeno.RuntimeConfig().timeout
    units = {" s": 1, " GiB": 1 << 30, "": 1}
    for name, said in table.items():
        if said.startswith("`"):
            assert said.strip('`"') == defaults[name]
        else:
            number, unit = re.fullmatch(r"([\d,]+)( \w+)?", said).groups("")  # type: ignore[union-attr]
            assert int(number.replace(",", "")) * units[unit] == defaults[name]
    assert {"timeout", "request_timeout", "max_memory", "max_host_calls", "sandbox", "jit"} <= table.keys()


def test_the_map_has_every_crate_and_the_arrows_between_them() -> None:
    architecture = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = architecture.split("## The crates")[1].split("\n## ")[0]
    said = {
        crate: set(re.findall(r"`([a-z]+)`", arrows))
        for crate, arrows in re.findall(r"^\| `(\w+)` \|.*\|(.*)\|$", section, re.MULTILINE)
    }
    found = {}
    for manifest in (PROJECT / "crates").glob("*/Cargo.toml"):
        dependencies = manifest.read_text(encoding="utf-8").split("\n[dependencies]\n")[-1].split("\n[")[0]
        found[manifest.parent.name] = set(re.findall(r"^pydeno-(\w+)", dependencies, re.MULTILINE))
    assert said == found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_every_link_and_every_path_in_a_document_leads_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", prose) if "://" not in link]
    paths = re.findall(r"`((?:crates|tests|examples|benches|scripts|python)/[\w./]*)`", text)
    assert [link for link in links if not (document.parent / link).exists()] == []
    assert [path for path in paths if not (PROJECT / path).exists()] == []


def test_the_programs_about_checks_and_gates_print_what_their_comments_say() -> None:
    page = (PROJECT / "docs" / "check_source.md").read_text(encoding="utf-8")
    first, second, third = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    told = run("url = 'a'\n" + first)
    assert told[0].startswith(re.findall(r"  # (.+) \.\.\.$", first, re.MULTILINE)[0])
    assert [line.split(" ")[2] for line in run(second)] == ["[forbidden-global]", "[eval]"]
    assert run(third) == re.findall(r"  # (.+)$", third, re.MULTILINE)


def test_the_page_about_checks_has_every_rule_and_only_those() -> None:
    page = (PROJECT / "docs" / "check_source.md").read_text(encoding="utf-8")
    rules, options = page.split("| option | rule |")
    columns = re.findall(r"^\| (`.+?) \|", rules.split("| rule | finds |")[1], re.MULTILINE)
    columns += re.findall(r"^\| `[^|]+ \| (`[^|]+) \|", options, re.MULTILINE)
    said = set(re.findall(r"`([a-z-]+)`", "".join(columns)))

    code = """import 'a'; export {b}; import('c'); require(d); fetch(e); process.f; Deno.g; XMLHttpRequest; WebSocket;
        child_process; self.fetch; h.__proto__; i.constructor.constructor; eval(j); Date; Function; WebAssembly;
        globalThis[k]; secret"""
    policy = pydeno.SourcePolicy(
        forbidden_identifiers=["secret"],
        forbidden_globals=["Date"],
        forbid_dynamic_import=True,
        forbid_eval=True,
        forbid_function=True,
        forbid_webassembly=True,
        include_preflight_rules=True,
        forbid_computed_global_access=True,
    )
    found = {finding.rule for finding in pydeno.check_source(code, policy=policy).findings}
    found |= {finding.rule for finding in pydeno.check_source(" " * (1 << 21), policy=policy).findings}
    assert found == said


def test_the_programs_about_agents_print_what_their_comments_say() -> None:
    page = (PROJECT / "docs" / "agents.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(programs) == 3
    for program in programs:
        assert run(program) == re.findall(r"  # (.+)$", program, re.MULTILINE)


def test_the_security_page_lists_the_calls_that_a_worker_can_reach() -> None:
    page = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8")
    section = page.split("## What can be reached")[1].split("\n## ")[0]
    table = section.split("|---|---|\n")[1].split("\n\n")[0]
    said = {call for line in table.splitlines() for call in re.findall(r"`(\w+)`", line.split("|")[1])}
    listed = PROJECT / "crates" / "sandbox" / "tests" / "reachable" / "x86_64.txt"
    assert said == {line.split()[1] for line in listed.read_text(encoding="ascii").splitlines()}


def test_the_security_page_names_every_attempt_and_every_layer() -> None:
    page = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8")
    attempts = PROJECT / "crates" / "sandbox" / "tests" / "attempts"
    names = {
        name
        for file in attempts.glob("*.rs")
        for name in re.findall(
            r'attempt(?:_that_hosts_forbid)?\(\s*"([^"]+)"', file.read_text(encoding="utf-8")
        )
    }
    assert len(names) > 50
    assert [name for name in sorted(names) if name not in page] == []
    assert [name for name in pydeno.sandbox_status().layers if f"`{name}`" not in page] == []


def test_the_program_about_errors_prints_what_its_comments_say() -> None:
    page = (PROJECT / "docs" / "errors.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert run(program) == re.findall(r"^# (.+)$", program, re.MULTILINE)


def test_the_page_about_errors_has_every_kind_with_its_class_and_its_advice() -> None:
    page = (PROJECT / "docs" / "errors.md").read_text(encoding="utf-8")
    table = page.split("## The kinds")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in re.findall(r"^\| `.+$", table, re.MULTILINE)
    ]
    exported = [getattr(pydeno, name) for name in pydeno.__all__]
    classes = [cls for cls in exported if isinstance(cls, type) and issubclass(cls, pydeno.PydenoError)]
    found = {}
    for kind, info in INFO.items():
        advice = "again" if info.retryable else "larger" if info.retry_with_larger_limits else ""
        names = {cls.__name__ for cls in classes if cls.kind == kind}
        found[kind] = names, advice
    # Whether a worker that died is worth another try depends on how it died.
    found["worker_crashed"] = found["worker_crashed"][0], "again, unless it crashed by itself"
    said = {row[0].strip("`"): (set(re.findall(r"`(\w+)`", row[1])), row[4]) for row in rows}
    assert said == found


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
