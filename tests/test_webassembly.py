"""`webassembly=True`: what scripts may compile themselves, under the same limits."""

from __future__ import annotations

import asyncio

import pytest

import pydeno
from conftest import fresh_runtime_answers
from pydeno import AsyncIsolatedRuntime, InvalidInput, IsolatedRuntime, JavaScriptError, RuntimeTimeout
from wasm_binary import ADD, AGAIN, FIRST, GET, SPIN, code, module, section

TIERS = ["off", "baseline", "full"]


def instance(binary: bytes) -> str:
    return f"new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array({list(binary)}))).exports"


@pytest.mark.parametrize("jit", TIERS)
def test_a_module_is_compiled_and_called_in_every_tier(jit: str) -> None:
    with IsolatedRuntime(webassembly=True, jit=jit) as rt:  # type: ignore[arg-type]
        assert rt.eval(f"{instance(ADD)}.add(2, 40)") == 42
        add = rt.eval(f"{instance(ADD)}.add")
        assert add(-1, 1) == 0


def test_without_the_option_there_is_none() -> None:
    with IsolatedRuntime() as rt:
        assert rt.eval("typeof WebAssembly") == "undefined"
    with pytest.raises(TypeError, match="webassembly must be bool or 'host'"):
        IsolatedRuntime(webassembly=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="webassembly must be one of 'host'"):
        IsolatedRuntime(webassembly="yes")  # type: ignore[arg-type]


def test_runtimes_with_and_without_it_stand_side_by_side() -> None:
    with IsolatedRuntime() as plain, IsolatedRuntime(webassembly=True) as rich, IsolatedRuntime() as other:
        found = [rt.eval("typeof WebAssembly") for rt in (plain, rich, other)]
        assert found == ["undefined", "object", "undefined"]
        assert rich.sandbox == plain.sandbox


def test_the_promises_of_compile_and_instantiate_settle() -> None:
    binary = f"new Uint8Array({list(ADD)})"
    with IsolatedRuntime(webassembly=True) as rt:
        assert (
            rt.eval(f"WebAssembly.instantiate({binary}).then(({{instance}}) => instance.exports.add(1, 2))")
            == 3
        )
        compiled = f"WebAssembly.compile({binary}).then((m) => WebAssembly.instantiate(m))"
        assert rt.eval(f"{compiled}.then((instance) => instance.exports.add(3, 4))") == 7
        failed = "WebAssembly.compile(new Uint8Array([1, 2, 3])).catch((error) => error.name)"
        assert rt.eval(failed) == "CompileError"
        assert rt.eval("WebAssembly.instantiate(5).catch((error) => error.name)") == "TypeError"
        assert rt.eval("[WebAssembly.compile.name, WebAssembly.instantiate.length]") == ["compile", 1]
        assert "[native code]" in rt.eval("String(WebAssembly.instantiate)")


def test_what_a_script_has_poisoned_does_not_reach_them() -> None:
    poison = """
        Function.prototype.call = Function.prototype.apply = Reflect.apply = () => { throw new Error("poisoned") };
        Object.defineProperty(Array.prototype, "0", {set() { throw new Error("poisoned") }, configurable: true});
        WebAssembly.Module.exports = () => { throw new Error("poisoned") };
        WebAssembly.Instance = WebAssembly.Module = undefined;
    """
    with IsolatedRuntime(webassembly=True) as rt:
        rt.eval(poison)
        made = f"WebAssembly.compile(new Uint8Array({list(ADD)})).then((m) => WebAssembly.instantiate(m))"
        assert rt.eval(f"{made}.then((instance) => instance.exports.add(5, 6))") == 11


def test_a_host_function_can_be_imported() -> None:
    # (import "env" "f" (func (param i32) (result i32)))
    # (func (export "go") (param i32) (result i32) local.get 0 call 0)
    binary = module(
        section(1, b"\x01\x60\x01\x7f\x01\x7f"),
        section(2, b"\x01\x03env\x01f\x00\x00"),
        FIRST,
        section(7, b"\x01\x02go\x00\x01"),
        code(b"\x20\x00\x10\x00"),
    )
    with IsolatedRuntime(webassembly=True) as rt:
        rt.bind_function("double", lambda x: 2 * x)
        compiled = f"new WebAssembly.Module(new Uint8Array({list(binary)}))"
        assert rt.eval(f"new WebAssembly.Instance({compiled}, {{env: {{f: double}}}}).exports.go(21)") == 42


@pytest.mark.parametrize("jit", TIERS)
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (f"{instance(GET)}.get(65533)", "RuntimeError"),
        (f"{instance(GET)}.get(-1)", "RuntimeError"),
        (f"{instance(AGAIN)}.again()", "RangeError"),
    ],
    ids=["beyond the end", "before the beginning", "without end"],
)
def test_a_trap_is_an_error_of_the_script(jit: str, call: str, name: str) -> None:
    with IsolatedRuntime(webassembly=True, jit=jit) as rt:  # type: ignore[arg-type]
        with pytest.raises(JavaScriptError) as caught:
            rt.eval(call)
        assert caught.value.name == name
        assert rt.eval(f"{instance(GET)}.get(65532)") == 0


@pytest.mark.parametrize("jit", TIERS)
def test_a_loop_inside_a_module_costs_the_worker_at_the_deadline(jit: str) -> None:
    with IsolatedRuntime(webassembly=True, jit=jit, timeout=0.3) as rt:  # type: ignore[arg-type]
        with pytest.raises(RuntimeTimeout) as caught:
            rt.eval(f"{instance(SPIN)}.spin()")
        assert not caught.value.runtime_survives
    assert fresh_runtime_answers()


def test_memory_of_a_module_crosses_as_bytes() -> None:
    with IsolatedRuntime(webassembly=True) as rt:
        assert (
            rt.eval("new Uint8Array(new WebAssembly.Memory({initial: 1}).buffer, 0, 4).fill(7)")
            == b"\7\7\7\7"
        )


def test_it_works_on_an_event_loop_too() -> None:
    async def main() -> object:
        async with AsyncIsolatedRuntime(webassembly=True) as rt:
            return await rt.eval(f"{instance(ADD)}.add(20, 22)")

    assert asyncio.run(main()) == 42
    assert pydeno.eval("typeof WebAssembly") == "undefined"
