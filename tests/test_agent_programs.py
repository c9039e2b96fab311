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
    (
        "const l = []\n{ using r = { [Symbol.dispose]() { l.push(2) } }; l.push(1) }\nl.join()",
        "1,2",
    ),
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


TYPESCRIPT: list[tuple[str, Any]] = [
    ("1 as number", 1),
    ("const x: number = 1; x + 1", 2),
    ("type Pair = [number, number]\nconst p: Pair = [1, 2]\np[0] + p[1]", 3),
    ("interface Item { name: string }\nconst item: Item = { name: 'tea' }\nitem.name", "tea"),
    ("enum Size { Small = 1, Large }\nSize.Large", 2),
    ("return (await one()) satisfies number", 1),
    ("function twice<T>(value: T): T[] { return [value, value] }\ntwice<number>(2)", [2, 2]),
    ("async (): Promise<number> => 2", 2),
    ("export default async function main(): Promise<number> { return await one() }", 1),
    ("class Point { constructor(public x: number) {} }\nnew Point(3).x", 3),
    ("const o = {a: 1} as const\n;({...o, b: 2})", {"a": 1, "b": 2}),
    ("1 + 1", 2),
    ("interface Nothing {}", undefined),
    ("type Last = number\n", undefined),
]


@pytest.mark.parametrize(("program", "value"), TYPESCRIPT)
def test_programs_in_typescript_are_read_as_leniently(program: str, value: Any) -> None:
    with AgentSandbox({"one": lambda: 1}, language="ts") as session:
        assert session.run(program) == value


def test_a_fence_that_says_so_is_typescript_and_so_is_a_run_that_is_said_to_be() -> None:
    with AgentSandbox() as session:
        assert session.run("```ts\nconst x: number = 1\nx\n```") == 1
        assert session.run("const x: number = 2; x", language="ts") == 2
        with pytest.raises(pydeno.JavaScriptError) as caught:
            session.run("const x: number = 3; x")
        assert caught.value.name == "SyntaxError"
        with pytest.raises(pydeno.InvalidInput):
            session.run("1", language="coffee")  # type: ignore[arg-type]
    with pytest.raises(pydeno.InvalidInput):
        AgentSandbox(language="coffee")


@pytest.mark.parametrize("mode", ["function", "script"])
def test_errors_of_typescript_name_the_authors_own_lines(mode: Any) -> None:
    program = (
        "interface Item {\n  name: string\n}\nconst item: Item | null = null as any;\n(item as any).name\n"
    )
    with AgentSandbox(mode=mode, language="ts") as session:
        with pytest.raises(pydeno.JavaScriptError) as caught:
            session.run(program)
        assert caught.value.name == "TypeError"
        assert (caught.value.frames[0].file, caught.value.frames[0].line) == ("program.js", 5)
        with pytest.raises(pydeno.JavaScriptError) as caught:
            session.run("const a: number = 1\nconst b: = 2\n")
        assert caught.value.name == "SyntaxError"
        assert caught.value.frames[0].line == 2


@pytest.mark.parametrize("mode", ["function", "script"])
def test_a_session_in_two_languages_is_replayed_in_both(mode: Any) -> None:
    key = b"k" * 32
    with AgentSandbox(mode=mode) as session:
        session.run("globalThis.n = (1 as number)", language="ts")
        session.run("n += 1")
        session.run("enum E { A = 5 }; globalThis.e = E.A", language="ts")
        data = session.dump(key)
    with AgentSandbox.load(data, key, mode=mode) as again:
        assert again.run("[n, e]") == [2, 5]


def test_a_script_may_await_outside_of_functions_and_is_replayed() -> None:
    calls = []

    def ask(question: str) -> str:
        calls.append(question)
        return question + "!"

    key = b"k" * 32
    with AgentSandbox([ask], mode="script") as session:
        assert session.run("const a = await ask('a'); a") == "a!"
        assert session.run("const [b, c] = await Promise.all([ask('b'), ask('c')]); a + b + c") == "a!b!c!"
        data = session.dump(key)
    with AgentSandbox.load(data, key, tools=[ask], mode="script") as again:
        assert again.run("a + c") == "a!c!"
    assert calls == ["a", "b", "c"]


def test_a_cell_is_run_again_where_that_is_asked_for() -> None:
    cell = "const x = await one(); let y = x + 1; class C { z = 1 }; x + y"
    key = b"k" * 32
    options: dict[str, Any] = {"tools": {"one": lambda: 1}, "mode": "script", "redeclare": True}
    with AgentSandbox(**options) as session:
        assert session.run(cell) == 3
        assert session.run(cell.replace("x + 1", "x + 2")) == 4
        assert session.run("const x = 7; x + y", language="ts") == 10
        data = session.dump(key)
    with AgentSandbox.load(data, key, **options) as again:
        assert again.run("x + y") == 10
    with pytest.raises(pydeno.JournalError):
        AgentSandbox.load(data, key, **{**options, "redeclare": False})
    with AgentSandbox(mode="script") as plain:
        plain.run("const x = 1")
        with pytest.raises(pydeno.JavaScriptError, match="x"):
            plain.run("const x = 2")
    with pytest.raises(pydeno.InvalidInput, match="script"):
        AgentSandbox(redeclare=True)
