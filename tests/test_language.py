"""What scripts are written in: `await` outside of functions, and TypeScript. Errors name the author's own places."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import pydeno
from conftest import AnyRuntime
from pydeno import AsyncIsolatedRuntime, InvalidInput, IsolatedRuntime, JavaScriptError, RuntimeTimeout


def failed(rt: AnyRuntime, code: str, language: str = "js") -> JavaScriptError:
    with pytest.raises(JavaScriptError) as caught:
        rt.eval(code, name="author.ts", language=language)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("await 5", 5),
        ("const x = await Promise.resolve(20); x + 22", 42),
        ("if (await true) { 'yes' } else { 'no' }", "yes"),
        ("await Promise.all([1, 2].map(async (n) => n * 2))", [2, 4]),
        ("for (const n of [1, 2]) { await n }\n'done'", "done"),
        ("await null; Promise.resolve(7)", 7),
        ("await undefined", pydeno.undefined),
        ("await 0; ({then: 5})", {"then": 5}),
    ],
)
def test_await_may_stand_outside_of_functions(rt: AnyRuntime, code: str, value: object) -> None:
    assert rt.eval(code) == value


def test_what_such_a_script_declares_stays(rt: AnyRuntime) -> None:
    rt.eval(
        "const a = await 1; let b = 2; function c() { return a + b } class D { e = await_free } var await_free = 3"
    )
    assert rt.eval("[a, b, c(), new D().e]") == [1, 2, 3, 3]
    assert rt.eval("b = await 10; c()") == 11


def test_a_value_with_a_method_named_then_is_a_value(rt: AnyRuntime) -> None:
    found = rt.eval("await 0; let asked = 0; ({then() { asked++ }, kept: 1})")
    assert found["kept"] == 1
    assert rt.eval("asked") == 0


def test_a_rejection_is_the_scripts_error_and_it_goes_on(rt: AnyRuntime) -> None:
    error = failed(rt, "await 1;\nawait Promise.reject(new RangeError('far'))")
    assert (error.name, error.message) == ("RangeError", "far")
    assert failed(rt, "await new Promise(() => {})").kind == "js_error"


def test_a_cell_that_is_run_again_may_declare_its_names_again(rt: AnyRuntime) -> None:
    cell = "const limit = %d; let used = limit - 1; class Cell {} [limit, used, new Cell() instanceof Cell]"
    assert rt.eval(cell % 3, redeclare=True) == [3, 2, True]
    assert rt.eval(cell % 5, redeclare=True) == [5, 4, True]
    assert rt.execute("const later = await limit; later", redeclare=True).result == 5
    assert rt.execute("const later = await used; later", redeclare=True).result == 4
    assert rt.eval("const typed: number = limit; typed", redeclare=True, language="ts") == 5
    assert failed(rt, "const limit = 6").name == "SyntaxError"


def test_without_being_asked_for_a_name_is_declared_once(rt: AnyRuntime) -> None:
    rt.eval("const limit = 3")
    assert failed(rt, "const limit = 4").name == "SyntaxError"
    assert failed(rt, "limit = 4").name == "TypeError"
    with pytest.raises(TypeError, match="redeclare"):
        rt.eval("1", redeclare="yes")  # type: ignore[arg-type]


def test_an_error_names_the_place_that_the_author_wrote(rt: AnyRuntime) -> None:
    error = failed(rt, "const first = await 1;\n\n  missing(first)")
    assert (error.frames[0].file, error.frames[0].line, error.frames[0].column) == ("author.ts", 3, 10)
    typed = (
        "interface A { b: number }\ntype C = string;\nenum D { E, F }\n"
        "function g(x: number): never {\n  throw new Error(D[x])\n}\ng(D.F)"
    )
    error = failed(rt, typed, "ts")
    assert error.message == "F"
    assert [(frame.function, frame.line) for frame in error.frames[:2]] == [("g", 5), ("", 7)]


def test_a_place_in_a_function_that_is_called_later_is_the_authors_too(rt: AnyRuntime) -> None:
    rt.eval("type T = 1;\n\n\nfunction late(): void {\n  null.x\n}", name="author.ts", language="ts")
    with pytest.raises(JavaScriptError) as caught:
        rt.eval("late()", name="other.js")
    assert (caught.value.frames[0].file, caught.value.frames[0].line) == ("author.ts", 5)


def test_typescript_is_evaluated_without_its_types(rt: AnyRuntime) -> None:
    code = """
        type Nothing = never;
        enum Color { Red = 1, Green }
        namespace Shapes { export const sides = 4 }
        class Point {
            constructor(public x: number, private readonly y = 2) {}
            sum(): number { return this.x + this.y }
        }
        const identity = <T,>(value: T): T => value satisfies T;
        [Color.Green, Color[1], Shapes.sides, new Point(40).sum(), identity<string>("same")!]
    """
    assert rt.eval(code, language="ts") == [2, "Red", 4, 42, "same"]
    assert rt.eval("const n: number = await Promise.resolve(3); n as unknown", language="ts") == 3


@pytest.mark.parametrize(
    ("code", "line", "column"),
    [
        ("let x: number = ;", 1, 17),
        ("type A = string\nconst b = <div/>", 2, 11),
        ("@sealed\nclass A {}", 1, 1),
    ],
    ids=["syntax", "jsx", "decorators"],
)
def test_what_cannot_be_read_is_a_syntax_error_with_a_place(
    rt: AnyRuntime, code: str, line: int, column: int
) -> None:
    error = failed(rt, code, "ts")
    assert error.name == "SyntaxError"
    assert (error.frames[0].file, error.frames[0].line, error.frames[0].column) == ("author.ts", line, column)
    assert failed(rt, "await 1; let let = 2").name == "SyntaxError"


def test_javascript_is_not_read_as_typescript(rt: AnyRuntime) -> None:
    assert failed(rt, "let x: number = 5").name == "SyntaxError"
    assert rt.eval("const a = 1, b = 2, c = 3; [a < b, b > (c)]") == [True, False]
    with pytest.raises(InvalidInput, match="'js' or 'ts'"):
        rt.eval("1", language="coffee")  # type: ignore[arg-type]


def test_the_word_alone_changes_nothing(rt: AnyRuntime) -> None:
    assert rt.eval("var await = 4; await / 2 / 1") == 2
    assert rt.eval("(async () => { await 1; return 6 })()") == 6
    assert rt.eval("'await import export'.length") == 19
    assert rt.eval("(function f() { 'await' /* as written */ }).toString()").endswith("/* as written */ }")


def test_a_source_made_to_exhaust_the_parser_ends_as_an_error(rt: AnyRuntime) -> None:
    for code in (
        "await 1;" + "(" * 50_000,
        "await 1;" + "[" * 50_000 + "]" * 50_000,
        "await " * 50_000 + "1",
    ):
        assert failed(rt, code).name in ("SyntaxError", "RangeError")
    assert failed(rt, "a<" * 50_000, "ts").name == "SyntaxError"


def test_limits_hold_for_such_scripts() -> None:
    with IsolatedRuntime(timeout=0.3) as rt:
        with pytest.raises(RuntimeTimeout):
            rt.eval("await 1; for (;;) {}")
        assert rt.eval("await 2") == 2
        rt.bind_function("f", lambda x: x + 1)
        assert rt.eval("let total = 0; for (let i = 0; i < 3; i++) total = f(await total); total") == 3


def test_async_host_functions_are_awaited_in_place() -> None:
    async def later(x: int) -> int:
        await asyncio.sleep(0.01)
        return x * 2

    async def main() -> list[object]:
        async with AsyncIsolatedRuntime() as rt:
            rt.bind_function("later", later)
            first = await rt.eval("const a = await later(1);\nconst b = await later(a);\n[a, b]")
            typed = await rt.execute("const c: number = await later(b); c", language="ts")
            return [first, typed.result, (await rt.execute("await later(await missing)")).error_type]

    assert asyncio.run(main()) == [[2, 4], 8, "ReferenceError"]


def test_the_command_reads_a_file_by_its_suffix(tmp_path: Path) -> None:
    script = tmp_path / "sum.ts"
    script.write_text("const n: number = await Promise.resolve(40)\nn + 2\n", encoding="utf-8")
    command = [str(Path(sys.executable).parent / "pydeno"), "-f", str(script)]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert finished.stdout == "42\n"
