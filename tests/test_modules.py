"""Scripts import what the host gives, and nothing else."""

from __future__ import annotations

import asyncio
import datetime
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import AnyRuntime, Door
from pydeno import (
    AsyncIsolatedRuntime,
    AsyncSandboxPool,
    GateContext,
    GateDenied,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    ModuleSource,
    RuntimeConfig,
    RuntimeTimeout,
    SandboxPool,
    SourcePolicy,
    Verdict,
    static_gate,
)


class Always:
    """A resolver with one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __call__(self, specifier: str, referrer: str) -> Any:
        return self.answer


def failed(rt: AnyRuntime, code: str, name: str = "main.mjs") -> JavaScriptError:
    with pytest.raises(JavaScriptError) as caught:
        rt.eval_module(code, name=name)
    return caught.value


def where(error: JavaScriptError) -> tuple[str, int]:
    return (error.frames[0].file, error.frames[0].line)


def test_a_module_gives_its_exports(rt: AnyRuntime) -> None:
    exports = rt.eval_module("export const a = 1; export default [2]; export function f(x) { return x + a }")
    assert (exports["a"], exports["default"], exports["f"](4)) == (1, [2], 5)
    assert list(rt.eval_module("export let b, a; export { a as default }")) == ["a", "b", "default"]
    assert rt.eval_module("1 + 1") == {}
    assert rt.eval_module("export const when = await Promise.resolve(new Date(0))") == {
        "when": datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    }


def test_static_modules_are_imported_by_scripts_and_modules(rt: AnyRuntime) -> None:
    rt.add_static_module("lib/math.mjs", "import { one } from './one.mjs'; export const two = one + one")
    rt.add_static_module("lib/one.mjs", "import up from '../up.mjs'; export const one = up")
    rt.add_static_module("up.mjs", "export default 1")
    assert rt.eval_module("import { two } from 'lib/math.mjs'; export default two") == {"default": 2}
    assert rt.eval("(await import('lib/math.mjs')).two") == 2
    assert rt.eval("import('lib/one.mjs')") == {"one": 1}
    rt.eval("const later = () => import('./lib/math.mjs')")
    assert rt.eval("later().then((m) => m.two)") == 2


def test_a_mapping_is_a_module_of_values_and_host_functions(rt: AnyRuntime) -> None:
    async def slow(x: int) -> int:
        await asyncio.sleep(0)
        return x * 10

    rt.add_static_module("config", {"limit": 3, "names": ["a"], "raw": b"\x01", "double": lambda x: 2 * x})
    assert rt.eval_module(
        "import { limit, names, raw, double } from 'config'; export default [limit, names, raw, double(limit)]"
    ) == {"default": [3, ["a"], b"\x01", 6]}
    rt.add_static_module("tools", {"slow": slow})
    assert rt.eval("const { slow } = await import('tools'); await slow(4)") == 40
    assert rt.eval("typeof limit + typeof globalThis.double") == "undefinedundefined"
    assert rt.revoke_function("tools.slow")
    with pytest.raises(JavaScriptError, match="revoked"):
        rt.eval("await slow(4)")


def test_what_the_host_does_not_give_is_refused_with_the_reason_and_the_place(rt: AnyRuntime) -> None:
    error = failed(rt, "\nimport 'fs'")
    assert error.name == "TypeError"
    assert error.message.startswith("cannot import 'fs' from 'main.mjs': the host has no such module")
    assert "add_static_module" in error.message
    assert where(error) == ("main.mjs", 2)
    for specifier in (
        "std",
        "os",
        "node:fs",
        "https://example.org/x.mjs",
        "data:text/javascript,1",
        "/etc/passwd",
        "../x",
    ):
        assert f"cannot import '{specifier}'" in failed(rt, f"await import({specifier!r})").message
    with pytest.raises(JavaScriptError, match=r"cannot import 'fs' from 'cell\.js'"):
        rt.eval("await import('fs')", name="cell.js")


def test_modules_that_import_each_other_work_from_either_side(door: Door) -> None:
    for first, order in (("even", "oe"), ("odd", "eo")):
        with door() as rt:
            rt.eval("globalThis.log = ''")
            rt.add_static_module(
                "even",
                "import { odd } from 'odd'; log += 'e'; export const even = (n) => n === 0 || odd(n - 1)",
            )
            rt.add_static_module(
                "odd",
                "import { even } from 'even'; log += 'o'; export const odd = (n) => n !== 0 && even(n - 1)",
            )
            assert rt.eval_module(f"import {{ {first} as f }} from '{first}'; export default f(7)") == {
                "default": first == "odd"
            }
            assert rt.eval("log") == order
            rt.add_static_module("early", "import { late } from 'late'; late")
            rt.add_static_module("late", "import 'early'; export const late = 1")
            assert failed(rt, "import 'late'").name == "ReferenceError"


def test_a_resolver_sees_the_specifier_as_written_and_the_referrer(rt: AnyRuntime) -> None:
    seen: list[tuple[str, str]] = []

    def resolver(specifier: str, referrer: str) -> str | None:
        seen.append((specifier, referrer))
        return None if specifier == "static" else "found/" + specifier.lstrip("./")

    rt.set_module_resolver(resolver)
    rt.set_module_loader(
        lambda name: f"import s from 'static'; export default [import.meta.url, {name!r}, s]"
    )
    rt.add_static_module("static", "export default import.meta.url")
    assert rt.eval_module("import a from '../../a.mjs'; export default a", name="deep/main.mjs") == {
        "default": ["found/a.mjs", "found/a.mjs", "static"]
    }
    assert seen == [("../../a.mjs", "deep/main.mjs"), ("static", "found/a.mjs")]
    rt.set_module_resolver(None)
    assert rt.eval("(await import('./b.mjs')).default") == ["b.mjs", "b.mjs", "static"]


def test_a_loader_is_asked_once_for_each_name(rt: AnyRuntime) -> None:
    asked: list[str] = []

    def loader(name: str) -> str | ModuleSource | Mapping[str, object] | None:
        asked.append(name)
        given: dict[str, str | ModuleSource | Mapping[str, object]] = {
            "a": "import './b'; import 'b'; export default 'a'",
            "b": ModuleSource("export const b: number = 2", language="ts"),
            "d.json": '{"x": [1]}',
            "values": {"v": 5},
        }
        return given.get(name)

    rt.set_module_loader(loader)
    imports = "import a from 'a'; import { b } from 'b'; import d from './d.json' with { type: 'json' };"
    code = imports + "import { v } from 'values'; export { a, b, d, v }"
    assert rt.eval_module(code) == {"a": "a", "b": 2, "d": {"x": [1]}, "v": 5}
    assert rt.eval_module(code, name="other.mjs")["b"] == 2
    assert sorted(asked) == ["a", "b", "d.json", "values"]
    assert "no source for 'c'" in failed(rt, "import 'c'").message


@pytest.mark.parametrize(
    "answer",
    [5, b"export {}", {"f": len}, {1: 2}, {"o": object()}, ["export {}"]],
    ids=lambda answer: type(answer).__name__,
)
def test_an_answer_that_is_no_module_rejects_the_import(rt: AnyRuntime, answer: Any) -> None:
    rt.set_module_loader(lambda _name: answer)
    error = failed(rt, "\n\nimport 'x'")
    assert error.message == "cannot import 'x' from 'main.mjs': the host failed"
    assert where(error) == ("main.mjs", 3)
    assert isinstance(error.__cause__, TypeError)
    rt.set_module_resolver(Always(answer))
    assert isinstance(failed(rt, "import 'y'").__cause__, TypeError)


def test_what_resolver_and_loader_raise_is_shown_to_the_script_only_where_that_is_asked_for(
    door: Door,
) -> None:
    def loader(name: str) -> str:
        raise LookupError(f"secret path of {name}")

    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"redact_host_errors": False}, True),
        ({"expose_host_errors": (KeyError, LookupError)}, True),
    ]
    for options, shown in cases:
        with door(**options) as rt:
            rt.set_module_loader(loader)
            seen = rt.eval("import('x').catch((e) => `${e.message} ${e.cause.message}`)")
            assert ("secret path" in seen) is shown
            error = failed(rt, "import 'x'")
            assert isinstance(error.__cause__, LookupError)
            assert ("secret" in error.format()) is shown


def test_names_of_nonsense_are_refused() -> None:
    with IsolatedRuntime() as rt:
        for name in ("", "a\nb", "\ud800", "n" * 1025):
            with pytest.raises(InvalidInput):
                rt.add_static_module(name, "")
            rt.set_module_resolver(Always(name))
            assert isinstance(failed(rt, "import 'x'").__cause__, InvalidInput)
        rt.set_module_resolver(None)
        assert "longer than" in failed(rt, f"import '{'s' * 2000}'").message
        for wrong in (5, None, [("a", 1)]):
            with pytest.raises(TypeError):
                rt.add_static_module("x", wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="language"):
            rt.add_static_module("x", "", language="coffee")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            rt.set_module_loader("loader")  # type: ignore[arg-type]


def test_a_module_that_was_imported_stays(rt: AnyRuntime) -> None:
    rt.add_static_module("m", "export default 1")
    rt.add_static_module("m", "export default 2")
    assert rt.eval("(await import('m')).default") == 2
    with pytest.raises(InvalidInput, match="imported already"):
        rt.add_static_module("m", "export default 3")


def test_a_module_that_was_evaluated_is_imported_by_its_name(rt: AnyRuntime) -> None:
    rt.eval_module(
        "import * as own from './cell.mjs'; export const v = 1; export const same = own.v", name="cell.mjs"
    )
    assert rt.eval("(await import('cell.mjs')).v") == 1
    rt.eval_module("export const v = 2", name="cell.mjs")
    assert rt.eval("(await import('cell.mjs')).v") == 2
    rt.add_static_module("friend", "import { v } from 'main.mjs'; export const twice = () => v * 2")
    assert (
        rt.eval_module(
            "import { twice } from 'friend'; export const v = 21; export default twice()", name="main.mjs"
        )["default"]
        == 42
    )


def test_json_needs_its_attribute_and_nothing_else_has_it(rt: AnyRuntime) -> None:
    rt.add_static_module("d.json", '{"a": {"__proto__": 1}}')
    rt.add_static_module("text", "[1, 2]", language="json")
    rt.add_static_module("code", "export default 1")
    rt.add_static_module("bad.json", "{")
    code = "import d from 'd.json' with { type: 'json' }; import t from 'text' with { type: 'json' }; export { d, t }"
    assert rt.eval_module(code) == {"d": {"a": {"__proto__": 1}}, "t": [1, 2]}
    assert "with { type" in failed(rt, "import 'd.json'").message
    assert "is not JSON" in failed(rt, "import 'code' with { type: 'json' }").message
    assert (failed(rt, "import 'bad.json' with { type: 'json' }").name) == "SyntaxError"


def test_typescript_is_told_by_name_and_language(rt: AnyRuntime) -> None:
    rt.add_static_module("shapes.ts", "export type Area = number; export enum Unit { Metre = 1 }")
    rt.add_static_module("plain.mjs", "import { Unit } from './shapes.ts'; export const unit = Unit.Metre")
    imports = "import type { Area } from './shapes.ts';\nimport { unit } from './plain.mjs';\n"
    code = imports + "export const area: Area = unit"
    assert rt.eval_module(code, name="main.mts") == {"area": 1}
    assert rt.eval_module(code, name="untold", language="ts") == {"area": 1}
    assert failed(rt, code).name == "SyntaxError"
    rt.add_static_module("broken.ts", "type T = 1;\n\nexport const x: number = ;")
    assert where(failed(rt, "import './broken.ts'")) == ("broken.ts", 3)
    rt.add_static_module(
        "throws.ts",
        "interface Long {\n  a: 1\n}\nexport function f(): never {\n  throw new RangeError('x')\n}",
    )
    error = failed(rt, "\nimport { f } from './throws.ts'\nf()")
    assert [(frame.file, frame.line) for frame in error.frames] == [("throws.ts", 5), ("main.mjs", 3)]


def test_awaiting_modules_keep_their_order_and_errors_stay(rt: AnyRuntime) -> None:
    rt.eval("globalThis.log = []")
    for name in ("one", "two"):
        rt.add_static_module(name, f"log.push('{name} begins'); await 0; log.push('{name} ends')")
    rt.add_static_module("bad", "log.push('bad'); await 0; throw new Error('late')")
    rt.eval_module("import 'one'; import 'two'; log.push('main')")
    assert rt.eval("log.splice(0)") == ["one begins", "two begins", "one ends", "two ends", "main"]
    assert [failed(rt, "import 'bad'").message for _ in range(2)] == ["late", "late"]
    assert rt.eval("log") == ["bad"]


def test_an_async_loader_overlaps_and_needs_no_loop_of_ones_own(door: Door) -> None:
    flying = 0
    most = 0
    asked: list[str] = []

    async def loader(name: str) -> str:
        nonlocal flying, most
        asked.append(name)
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0.01)
        flying -= 1
        return f"export default {name!r}"

    with door() as rt:
        rt.set_module_loader(loader)
        imports = "".join(f"import m{index} from 'm{index}';" for index in range(20))
        names = ", ".join(f"m{index}" for index in range(20))
        assert rt.eval_module(f"{imports} export default [{names}].length") == {"default": 20}
        assert 1 < most <= 20
        shared = ";".join(f"import 'shared/{index}'" for index in range(4))
        rt.add_static_module("shared/0", "import 'both'")
        rt.add_static_module("shared/1", "import 'both'")
        rt.eval_module(shared)
        assert asked.count("both") == 1
        assert rt.eval("(await import('later')).default") == "later"


def test_async_runtimes_import_on_their_loop(run_on_loop: Callable[[Any], Any]) -> None:
    async def resolver(specifier: str, referrer: str) -> str:
        await asyncio.sleep(0)
        return f"{referrer}>{specifier}"

    async def gate(source: str, context: GateContext) -> Verdict:
        await asyncio.sleep(0)
        return Verdict(allow="forbidden" not in source)

    async def main() -> None:
        rt = AsyncIsolatedRuntime(gate=gate)
        rt.add_static_module("early", {"v": 1, "f": lambda: 2})
        async with rt:
            assert await rt.eval_module("import { v, f } from 'early'; export default v + f()") == {
                "default": 3
            }
            rt.set_module_resolver(resolver)
            rt.set_module_loader(lambda name: f"export default {name!r} // {'forbidden' * (name[-1] == '!')}")
            many = await asyncio.gather(
                *(rt.eval(f"import('m{index}')", name=f"{index}.js") for index in range(5))
            )
            assert [found["default"] for found in many] == [f"{index}.js>m{index}" for index in range(5)]
            with pytest.raises(JavaScriptError) as caught:
                await rt.eval_module("import 'no!'")
            assert isinstance(caught.value.__cause__, GateDenied)
            assert (await rt.execute("(await import('m0')).default")).result == "script.js>m0"

    run_on_loop(main())


def test_the_gate_sees_every_source_before_it_runs(door: Door) -> None:
    seen: list[tuple[str, str]] = []

    def gate(source: str, context: GateContext) -> Verdict:
        seen.append((context.name, source))
        return Verdict("eval(" not in source, "no eval")

    with door(gate=gate) as rt:
        rt.eval("globalThis.ran = false")
        rt.add_static_module("good", "export default 1")
        rt.add_static_module("bad", "globalThis.ran = true; eval('1')")
        rt.set_module_loader(lambda name: "globalThis.ran = true; eval('2')" if name == "worse" else "1")
        assert rt.eval_module("import g from 'good'; export default g", name="main.mjs") == {"default": 1}
        assert [name for name, _ in seen] == ["script.js", "main.mjs", "good"]
        for name in ("bad", "worse"):
            error = failed(rt, f"import '{name}'")
            assert isinstance(error.__cause__, GateDenied)
            assert "no eval" not in error.format()
            assert rt.eval(f"import('{name}').catch(() => ran)") is False
        with pytest.raises(GateDenied):
            rt.eval_module("eval('3')")
    with door(gate=static_gate(SourcePolicy(forbidden_identifiers=["secret"]))) as rt:
        rt.add_static_module("m", "export const secret = 1")
        assert isinstance(failed(rt, "import 'm'").__cause__, GateDenied)


def test_strict_eval_does_not_forbid_modules() -> None:
    with IsolatedRuntime(strict_eval=True) as rt:
        rt.add_static_module("m", "export default 1")
        assert rt.eval_module("import m from 'm'; export default m") == {"default": 1}
        assert rt.eval("(await import('m')).default") == 1
        assert failed(rt, "eval('1')").name == "EvalError"


def test_modules_are_bounded_in_number_and_length(door: Door) -> None:
    with door(RuntimeConfig(max_modules=3, max_module_bytes=1000)) as rt:
        rt.set_module_loader(lambda name: "1" if len(name) == 1 else "2 //" + "x" * 600)
        rt.eval_module("import 'a'; import 'b'; import 'a'")
        rt.eval_module("import 'long'")
        assert "max_modules" in failed(rt, "import 'c'").message
        rt.eval_module("import 'a'; import 'b'; import 'long'")
    with door(RuntimeConfig(max_module_bytes=1000)) as rt:
        rt.set_module_loader(lambda _name: "2 //" + "x" * 600)
        rt.eval_module("import 'a'")
        assert "max_module_bytes" in failed(rt, "import 'b'").message
    with door() as rt:
        rt.add_static_module("huge", "//" + "x" * (1 << 20))
        error = failed(rt, "import 'huge'")
        assert (error.name, error.frames[0].file) == ("SyntaxError", "huge")


def test_a_chain_of_ten_thousand_modules_needs_no_stack() -> None:
    length = 10_000

    def loader(name: str) -> str:
        index = int(name)
        return (
            "export const end = 'reached'"
            if index == length
            else f"export * from '{index + 1}'; export let own{index}"
        )

    with IsolatedRuntime(timeout=60, config=RuntimeConfig(max_modules=length + 1)) as rt:
        rt.set_module_loader(loader)
        assert rt.eval_module("import { end } from '0'; export default end") == {"default": "reached"}


def test_limits_hold_while_modules_load_and_run() -> None:
    async def never(_name: str) -> str:
        await asyncio.sleep(3600)
        return ""

    with IsolatedRuntime(timeout=0.2, max_host_wait=0.5, tool_timeout=0.1) as rt:
        rt.add_static_module("endless", "for (;;) {}")
        with pytest.raises(RuntimeTimeout):
            rt.eval_module("import 'endless'")
        assert "was stopped" in failed(rt, "import 'endless'").message
        rt.set_module_loader(never)
        error = failed(rt, "import 'x'")
        assert isinstance(error.__cause__, (TimeoutError, asyncio.TimeoutError))
        assert rt.eval("1 + 1") == 2


def test_configurations_and_pools_give_modules() -> None:
    config = RuntimeConfig(modules={"lib": "export default 5", "config": {"n": 6, "f": lambda: 7}})
    code = "import lib from 'lib'; import { n, f } from 'config'; export default [lib, n, f()]"
    with IsolatedRuntime(config) as rt:
        assert rt.eval_module(code) == {"default": [5, 6, 7]}
    with SandboxPool(config, size=1) as pool:
        for _ in range(2):
            with pool.checkout() as rt:
                rt.add_static_module("own", "export { default } from 'lib'")
                assert rt.eval_module(code) == {"default": [5, 6, 7]}
                assert rt.eval("(await import('own')).default") == 5

    async def main() -> None:
        async with AsyncSandboxPool(config, size=1) as pool, pool.checkout() as rt:
            assert await rt.eval_module(code) == {"default": [5, 6, 7]}

    asyncio.run(main())


def test_the_command_evaluates_a_module_by_its_suffix(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "pydeno"), "-f"]
    for name, source, printed in (
        ("a.mjs", "const n = await 20; export default n * 2", "40\n"),
        ("b.mts", "export const a: number = 1; export const b = 2", '{"a":1,"b":2}\n'),
        ("c.ts", "const n: number = 3; n", "3\n"),
    ):
        file = tmp_path / name
        file.write_text(source, encoding="utf-8")
        finished = subprocess.run([*command, str(file)], capture_output=True, text=True, check=True)
        assert finished.stdout.replace(" ", "") == printed
    file = tmp_path / "d.mjs"
    file.write_text("import './a.mjs'", encoding="utf-8")
    finished = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert (finished.returncode, "cannot import './a.mjs'" in finished.stderr) == (1, True)
