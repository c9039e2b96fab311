"""What is tolerated of programs that models write: a table, and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pydeno
from pydeno import AgentSandbox, undefined

PROGRAMS: list[tuple[str, Any]] = [
    # An expression, and statements with a last expression.
    ("1 + 1", 2),
    ("1 + 1;", 2),
    ("const x = 1; x + 1", 2),
    ("const x = 1\nx + 1\n", 2),
    ("let a = 1\na\n  + 1", 2),
    ("let a = 2\n;[1, 2].length", 2),
    ("'a;b'.length // ; c", 3),
    ("`a${'b'}\n;c`.length", 5),
    ("/[;]/.test(';')", True),
    ("if (true) {}\n(2)", 2),
    ("function f() { return 2 }\nf()", 2),
    ("main()\nfunction main() { return 2 }", undefined),
    ("const r = await Promise.resolve(2); r", 2),
    ("await one() + 1", 2),
    ("one()", 1),
    ("const o = {a: 1}\n;({...o, b: 2})", {"a": 1, "b": 2}),
    ("({a: 1})", {"a": 1}),
    ("{a: 1}", {"a": 1}),
    ("x = 5\nx", 5),
    ("let i = 0\n++i", 1),
    # A body.
    ("return 2", 2),
    ("if (true) return 2; return 3", 2),
    ("for (const x of [1]) {}", undefined),
    ("let s = 0\nfor (const x of [1, 2])\n  s += x\nreturn s", 3),
    ("let s = 0; for (const x of [1, 2])\n  s += x", undefined),
    ("const a = 1", undefined),
    ("", undefined),
    ("// nothing", undefined),
    # A function as the whole program.
    ("async () => { return await one() }", 1),
    ("() => 2", 2),
    ("(async () => 2)", 2),
    ("(async () => 2)()", 2),
    ("async function main() { return 2 }", 2),
    ("function () { return 2 }", 2),
    # A default export.
    ("export default async function main() { return helper() }\nfunction helper() { return 2 }", 2),
    ("export default async () => 2", 2),
    ("export default function () { return 2 }", 2),
    ("const two = 2\nexport default () => two\n", 2),
    ("export default 2", 2),
    # A fence around everything.
    ("```js\n1 + 1\n```", 2),
    ("```javascript\nreturn 2\n```\n", 2),
    ("\n```\nawait one()\n```", 1),
    ("~~~ts\nasync () => 2\n~~~", 2),
]


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentSandbox]:
    with AgentSandbox({"one": lambda: 1}) as session:
        yield session


@pytest.mark.parametrize(("code", "value"), PROGRAMS, ids=[repr(code)[:60] for code, _ in PROGRAMS])
def test_a_program_of_the_table_has_its_value(agent: AgentSandbox, code: str, value: Any) -> None:
    found = agent.run(code)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "code",
    [
        "Here is the program:\n```js\n1\n```",
        "import fs from 'fs'",
        "export const a = 1",
        "1 +",
        "const a = 1; const a = 2",
        "let x: number = 1",
    ],
)
def test_what_is_not_tolerated_does_not_parse(agent: AgentSandbox, code: str) -> None:
    with pytest.raises(pydeno.JavaScriptError) as caught:
        agent.run(code)
    assert caught.value.name == "SyntaxError"


def test_of_two_fences_neither_is_chosen(agent: AgentSandbox) -> None:
    with pytest.raises(pydeno.JavaScriptError):
        agent.run("```js\n1\n```\nand\n```js\n2\n```")


def test_a_program_is_run_once_whatever_it_throws(agent: AgentSandbox) -> None:
    agent.run("globalThis.times = 0")
    with pytest.raises(pydeno.JavaScriptError, match="SyntaxError"):
        agent.run("times++; JSON.parse('{')")
    assert agent.run("times") == 1


def test_a_syntax_error_names_the_line_of_the_program(agent: AgentSandbox) -> None:
    with pytest.raises(pydeno.JavaScriptError) as caught:
        agent.run("```js\nconst a = 1\nconst b = = 2\n```", name="p.js")
    assert caught.value.frames[0].line == 3


def test_a_program_of_many_lines_costs_no_more_readings_than_its_end_has(agent: AgentSandbox) -> None:
    assert agent.run("f()\n" * 5000 + "function f() {}\n2") == 2
