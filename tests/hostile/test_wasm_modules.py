"""A hostile script beside a module that the host has loaded: it wants the constructors of WebAssembly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile.conftest import AnyRuntime, equip
from pydeno import IsolatedRuntime, JavaScriptError, Runtime
from wasm_binary import F64, FUNCREF, I32, I64, Function, build

SCRIPTS = Path(__file__).parents[2] / "crates/engine/tests/wasm"
#: Its value is what of WebAssembly can be reached from `lib` and the global object, by whatever way.
SEARCH = (SCRIPTS / "search.js").read_text()
#: Replaces everything that a script can replace by what notes who uses it, in `got`.
POISON = (SCRIPTS / "poison.js").read_text()

#: Something of everything that is an object of WebAssembly's, or throws one, where it is handed over as it is.
MODULE = build(
    [
        Function("add", I32 + I32, I32, b"\x20\x00\x20\x01\x6a"),
        Function("wide", I64, I64, b"\x20\x00"),
        Function("half", F64, F64, b"\x20\x00"),
        Function("load", I32, I32, b"\x20\x00\x28\x02\x00"),
        Function("divide", I32 + I32, I32, b"\x20\x00\x20\x01\x6d"),
        Function("unreachable", b"", b"", b"\x00"),
        Function("throw", b"", b"", b"\x08\x00"),
        Function("again", b"", b"", b"\x10\x08"),
        Function("callF", I32, I32, b"\x20\x00\x10\x00"),
        # An indirect call of nothing.
        Function("nothing", b"", b"", b"\x41\x00\x11\x06\x00"),
        Function("self", b"", FUNCREF, b"\xd2\x01"),
    ],
    imports=[("env", "f", I32, I32)],
    memory=(1, 2),
    exports=[("table", 1, 0), ("constant", 3, 0), ("variable", 3, 1), ("tag", 4, 0)],
    others={4: b"\x01\x70\x00\x01", 6: b"\x02\x7f\x00\x41\x05\x0b\x7f\x01\x41\x07\x0b"},
    tag=True,
)


def runtime(kind: str) -> AnyRuntime:
    if kind == "in-process":
        return Runtime()
    jit: Any = kind
    return IsolatedRuntime(webassembly="host", jit=jit)


@pytest.fixture(params=["in-process", "off", "baseline", "full"])
def victim(request: pytest.FixtureRequest) -> Iterator[AnyRuntime]:
    """A runtime of each door, and of each tier, that is as good as before when the test is over."""
    with runtime(request.param) as rt:
        equip(rt)
        yield rt
        assert rt.eval("40 + 2") == 42
        assert rt.eval("lib.callF(3)") == 3


def load(rt: AnyRuntime) -> None:
    module = rt.load_wasm("lib", MODULE, imports={"env": {"f": lambda number: number}})
    assert module.left_out == ("self", "table", "variable", "tag")


def test_no_way_leads_to_webassembly(victim: AnyRuntime) -> None:
    load(victim)
    assert victim.eval("typeof WebAssembly") == "undefined"
    assert victim.eval(SEARCH) == ""


@pytest.mark.parametrize("jit", ["off", "baseline", "full"])
def test_from_an_instance_as_it_is_the_same_search_finds_everything(jit: Any) -> None:
    with IsolatedRuntime(webassembly=True, jit=jit) as rt:
        rt.bind_function("code", lambda: MODULE)
        rt.bind_function("f", lambda number: number)
        rt.eval("""
            globalThis.lib = {...new WebAssembly.Instance(new WebAssembly.Module(code()), {env: {f}}).exports};
            delete globalThis.WebAssembly;
        """)
        found = rt.eval(SEARCH).split(",")
        assert {"Memory", "Table", "Global", "Tag", "RuntimeError", "Exception"} <= set(found)


def test_no_way_leads_there_when_the_script_ran_first(victim: AnyRuntime) -> None:
    victim.eval(POISON)
    load(victim)
    use = """
        lib.add(1, 2); lib.wide(3n); lib.wide(3); lib.half(0.5); lib.callF(4);
        lib.memory.write(0, lib.memory.read(1, 2)); lib.memory.size();
        try { lib.load(70000) } catch {}
        try { lib.throw() } catch {}
        try { lib.add({}, 1) } catch {}
        try { lib.memory.read(-1, 1) } catch {}
        try { lib.memory.write(0, {}) } catch {}
        got.length
    """
    assert victim.eval(use) == 0
    assert victim.eval("try { [].push(1) } catch {} got[0]") == "get push"


@pytest.mark.parametrize(
    "call",
    [
        "lib.add({valueOf() { ran = true; return 1 }}, 1)",
        "lib.add({[Symbol.toPrimitive]() { ran = true; return 1 }}, 1)",
        "lib.add(new Proxy(() => 1, {get() { ran = true }, apply() { ran = true }}), 1)",
        "lib.wide({valueOf() { ran = true; return 1n }})",
        "lib.memory.read({valueOf() { ran = true; return 0 }}, 1)",
        "lib.memory.write(0, new Proxy(new Uint8Array(1), {get() { ran = true }}))",
        "lib.memory.write(0, {length: 1, get 0() { ran = true; return 1 }, byteLength: 1})",
        "lib.memory.write(0, Object.setPrototypeOf([1], Uint8Array.prototype))",
        "Reflect.construct(lib.add, [1, 2], class { constructor() { ran = true } })",
        "class Sub extends lib.add {}; new Sub(1, 2)",
    ],
)
def test_nothing_of_the_scripts_runs_on_the_way_in(victim: AnyRuntime, call: str) -> None:
    load(victim)
    with pytest.raises(JavaScriptError) as caught:
        victim.eval(f"globalThis.ran = false; {call}")
    assert caught.value.name == "TypeError"
    assert victim.eval("ran") is False


def test_views_that_lie_about_themselves_are_taken_for_what_they_are(victim: AnyRuntime) -> None:
    load(victim)
    victim.eval("""
        const view = new Uint8Array([1, 2, 3]);
        for (const name of ["length", "byteLength", "byteOffset", "buffer"]) {
            Object.defineProperty(view, name, {get() { throw new Error("asked") }});
        }
        view.constructor = {[Symbol.species]: function () { throw new Error("asked") }};
        lib.memory.write(0, view);
    """)
    assert victim.eval("lib.memory.read(0, 4)") == b"\1\2\3\0"
    with pytest.raises(JavaScriptError, match=r"must be a typed array or a buffer"):
        victim.eval("const gone = new ArrayBuffer(8); gone.transfer(); lib.memory.write(0, gone)")
    with pytest.raises(JavaScriptError, match=r"must be a typed array or a buffer"):
        victim.eval("const old = new Uint8Array(8); old.buffer.transfer(); lib.memory.write(0, old)")


def test_what_is_read_of_a_memory_is_no_window_into_it(victim: AnyRuntime) -> None:
    load(victim)
    victim.eval("const copy = lib.memory.read(0, 65536); copy[0] = 9; copy.buffer.transfer(0)")
    assert victim.eval("lib.memory.read(0, 1)") == b"\0"
    assert victim.eval("lib.memory.size()") == 65536


def test_a_script_cannot_change_what_another_finds(victim: AnyRuntime) -> None:
    load(victim)
    changes = [
        "lib.add = 1",
        "delete lib.add",
        "lib.memory.read = 1",
        "Object.setPrototypeOf(lib, {})",
        "lib.x = 1",
    ]
    for change in changes:
        with pytest.raises(JavaScriptError):
            victim.eval(f"'use strict'; {change}")
    assert victim.eval("Object.isFrozen(lib) && Object.isFrozen(lib.memory)") is True
