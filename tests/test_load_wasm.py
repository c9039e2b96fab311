"""`load_wasm`: modules that the host trusts, beside a script that has no `WebAssembly`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pydeno
from conftest import fresh_runtime_answers
from on_a_loop import RunOnLoop
from pydeno import (
    AsyncIsolatedRuntime,
    AsyncSandboxPool,
    ConversionError,
    InvalidInput,
    IsolatedRuntime,
    JavaScriptError,
    JsFunction,
    MemoryLimitExceeded,
    Runtime,
    RuntimeClosed,
    RuntimeConfig,
    RuntimeTimeout,
    SandboxPool,
    WasmModule,
    classify_error,
)
from wasm_binary import ADD, F32, F64, FUNCREF, I32, I64, SPIN, Function, build, const

MIB = 1 << 20
AnyRuntime = Runtime | IsolatedRuntime

ADD_NUMBERS = Function("add", I32 + I32, I32, b"\x20\x00\x20\x01\x6a")
#: `grow(pages)`: the pages before, or -1.
GROW = Function("grow", I32, I32, b"\x20\x00\x40\x00")
#: `fill(value, length)`: sets the memory's first bytes.
FILL = Function("fill", I32 + I32, b"", b"\x41\x00\x20\x00\x20\x01\xfc\x0b\x00")
#: `sum(offset, length)`: the sum of bytes, what a library that is given a buffer does.
SUM = Function(
    "sum",
    I32 + I32,
    I32,
    # (if (length == 0) then 0 else load8_u(offset) + sum(offset + 1, length - 1))
    b"\x20\x01\x45\x04\x7f\x41\x00\x05\x20\x00\x2d\x00\x00\x20\x00\x41\x01\x6a\x20\x01\x41\x01\x6b\x10\x00\x6a\x0b",
)
TRAP = Function("trap", b"", b"", b"\x00")
LIBRARY = build([SUM, ADD_NUMBERS, TRAP, GROW, FILL], memory=(1, 3))


@pytest.fixture(params=["in-process", "isolated", "isolated with WebAssembly"])
def lib(request: pytest.FixtureRequest) -> Iterator[AnyRuntime]:
    """A runtime of each kind that can load modules, which still answers a sum when its test is over."""
    makers: dict[str, Callable[[], AnyRuntime]] = {
        "in-process": Runtime,
        "isolated": lambda: IsolatedRuntime(webassembly="host"),
        "isolated with WebAssembly": lambda: IsolatedRuntime(webassembly=True),
    }
    with makers[request.param]() as rt:
        yield rt
        assert rt.eval("40 + 2") == 42


@pytest.mark.parametrize("jit", ["off", "baseline", "full"])
def test_a_module_is_loaded_in_every_tier_and_the_script_has_no_webassembly(jit: Any) -> None:
    with IsolatedRuntime(webassembly="host", jit=jit) as rt:
        rt.load_wasm("lib", ADD)
        assert rt.eval("lib.add(2, 40)") == 42
        assert rt.eval("typeof WebAssembly") == "undefined"
        assert rt.eval("let n = 0; for (let i = 0; i < 20000; i++) n = lib.add(n, i); n") == sum(range(20000))


def test_what_is_loaded_is_described(lib: AnyRuntime) -> None:
    module = lib.load_wasm("lib", LIBRARY)
    assert isinstance(module, WasmModule)
    assert module.name == "lib"
    assert list(module.exports) == ["sum", "add", "trap", "grow", "fill", "memory"]
    assert module.functions["sum"] == "(i32, i32) -> i32"
    assert module.functions["trap"] == "() -> ()"
    assert (module.memory_pages, module.max_memory_pages, module.left_out) == (1, 3, ())
    assert repr(module).startswith("<pydeno.WasmModule 'lib' exports=['sum', ")


def test_the_host_calls_a_module_too_whatever_a_script_puts_under_its_name(lib: AnyRuntime) -> None:
    module = lib.load_wasm("lib", LIBRARY)
    lib.eval("lib = {sum: () => -1, memory: {read: () => 'not bytes'}}")
    memory = module.exports["memory"]
    memory["write"](8, b"\x01\x02\x03")
    assert isinstance(module.exports["sum"], JsFunction)
    assert module.exports["sum"](8, 3) == 6
    assert memory["read"](8, 2) == b"\x01\x02"
    assert memory["size"]() == 65536
    assert lib.eval("lib.sum()") == -1


def test_bytes_go_into_a_memory_and_come_out(lib: AnyRuntime) -> None:
    lib.load_wasm("lib", LIBRARY)
    lib.bind_function("data", lambda: bytes(range(10)))
    assert lib.eval("const input = data(); lib.memory.write(100, input); lib.sum(100, input.length)") == 45
    assert lib.eval("lib.fill(7, 3); lib.memory.read(0, 4)") == b"\7\7\7\0"
    assert lib.eval("[lib.grow(1), lib.memory.size(), lib.grow(5)]") == [1, 131072, -1]
    with pytest.raises(
        JavaScriptError, match=r"lib\.memory\.read: 2 bytes at 131071 are not within"
    ) as caught:
        lib.eval("lib.memory.read(131071, 2)")
    assert caught.value.name == "RangeError"


def test_numbers_of_every_type_cross(lib: AnyRuntime) -> None:
    identity = b"\x20\x00"
    code = build([Function(f"f{i}", kind, kind, identity) for i, kind in enumerate((I32, I64, F32, F64))])
    module = lib.load_wasm("n", code)
    assert lib.eval("[n.f0(-1), n.f1(2n ** 63n - 1n), n.f2(0.5), n.f3(1e300)]") == [-1, 2**63 - 1, 0.5, 1e300]
    assert module.exports["f1"](5) == 5
    assert module.exports["f1"](-(2**62)) == -(2**62)
    assert module.functions == {
        "f0": "(i32) -> i32", "f1": "(i64) -> i64", "f2": "(f32) -> f32", "f3": "(f64) -> f64",
    }  # fmt: skip
    with pytest.raises(JavaScriptError, match=r"argument 1 of n\.f0 must be a number"):
        module.exports["f0"]("1")


def test_functions_of_the_host_are_imported(lib: AnyRuntime) -> None:
    code = build(
        [
            Function("go", I32, I32, b"\x20\x00\x10\x00"),
            Function("wide", I64, I64, b"\x20\x00\x10\x01\x20\x00\x10\x02"),
        ],
        imports=[("env", "double", I32, I32), ("env", "next", I64, I64), ("log", "note", I64, b"")],
    )
    noted: list[int] = []
    functions: dict[str, Callable[..., object]] = {
        "double": lambda x: 2 * x,
        "next": lambda x: x + 1,
        "unused": print,
    }
    lib.load_wasm("lib", code, imports={"env": functions, "log": {"note": noted.append}})
    assert lib.eval("lib.go(21)") == 42
    assert lib.eval("lib.wide(2n ** 60n)") == 2**60 + 1
    assert noted == [2**60]


def test_an_imported_function_that_fails_or_returns_no_number_is_an_error_of_the_script(
    lib: AnyRuntime,
) -> None:
    answers: list[Any] = ["text", ValueError("secret"), None, 2**70, 7]

    def answer() -> Any:
        given = answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    code = build([Function("go", b"", I32, b"\x10\x00")], imports=[("env", "f", b"", I32)])
    lib.load_wasm("lib", code, imports={"env": {"f": answer}})
    wrong = r"the value of the host function env\.f must be a number"
    with pytest.raises(JavaScriptError, match=wrong):
        lib.eval("lib.go()")
    with pytest.raises(JavaScriptError, match="the host function f failed") as caught:
        lib.eval("lib.go()")
    assert isinstance(caught.value.__cause__, ValueError)
    for _ in range(2):
        with pytest.raises(JavaScriptError, match=wrong):
            lib.eval("lib.go()")
    assert lib.eval("lib.go()") == 7
    assert lib.revoke_function("lib.env.f")
    with pytest.raises(JavaScriptError, match="has been revoked"):
        lib.eval("lib.go()")


def test_an_imported_function_may_call_the_script_and_the_module_again(lib: AnyRuntime) -> None:
    def call(number: int) -> object:
        return back(number)

    code = build([Function("go", I32, I32, b"\x20\x00\x10\x00")], imports=[("env", "f", I32, I32)])
    lib.load_wasm("lib", code, imports={"env": {"f": call}})
    back = lib.eval("(x) => x > 0 ? lib.go(x - 1) + 1 : 100")
    assert lib.eval("lib.go(3)") == 103


def test_what_a_module_needs_is_told(lib: AnyRuntime) -> None:
    imports = [("env", "log", I32, b""), ("env", "now", b"", F64)]
    code = build([], imports=imports)
    with pytest.raises(
        InvalidInput, match=r"were not given: env\.log \(i32\) -> \(\), env\.now \(\) -> f64; give them"
    ):
        lib.load_wasm("lib", code)
    with pytest.raises(InvalidInput, match=r"were not given: env\.now \(\) -> f64; give them with `imports`"):
        lib.load_wasm("lib", code, imports={"env": {"log": print}})
    code = build([], imports=[("wasi_snapshot_preview1", "fd_write", I32 * 4, I32)])
    with pytest.raises(InvalidInput, match="there is no WASI here: build it for a target without a system"):
        lib.load_wasm("lib", code)

    async def later() -> float:
        return 1.0

    with pytest.raises(InvalidInput, match=r"the import env\.now is an async function"):
        lib.load_wasm("lib", build([], imports=imports[1:]), imports={"env": {"now": later}})
    assert lib.eval("typeof lib") == "undefined"


@pytest.mark.parametrize(
    ("section", "what"),
    [
        (b"\x01\x03env\x01m\x02\x00\x01", r"the memory env\.m"),
        (b"\x01\x03env\x01t\x01\x70\x00\x01", r"the table env\.t"),
        (b"\x01\x03env\x01g\x03\x7f\x00", r"the global env\.g"),
    ],
    ids=["memory", "table", "global"],
)
def test_a_module_that_imports_anything_but_functions_is_refused(
    lib: AnyRuntime, section: bytes, what: str
) -> None:
    with pytest.raises(InvalidInput, match=f"imports {what}; only functions can be given"):
        lib.load_wasm("lib", build([], others={2: section}))


def test_a_module_that_imports_functions_of_other_types_is_refused(lib: AnyRuntime) -> None:
    for parameters, results in [(FUNCREF, b""), (b"", I32 + I32)]:
        code = build([], imports=[("env", "f", parameters, results)])
        with pytest.raises(
            InvalidInput, match=r"imports the function env\.f, which has something else than numbers"
        ):
            lib.load_wasm("lib", code, imports={"env": {"f": print}})


def test_exports_that_no_script_gets_are_told(lib: AnyRuntime) -> None:
    code = build(
        [ADD_NUMBERS, Function("ref", FUNCREF, b"", b"")],
        exports=[("table", 1, 0), ("variable", 3, 1), ("constant", 3, 0)],
        others={4: b"\x01\x70\x00\x01", 6: b"\x02\x7e\x00\x42\x05\x0b\x7f\x01\x41\x07\x0b"},
    )
    module = lib.load_wasm("lib", code)
    assert module.left_out == ("ref", "table", "variable")
    assert lib.eval("Object.keys(lib)") == ["add", "constant"]
    assert lib.eval("lib.constant") == module.exports["constant"] == 5


@pytest.mark.parametrize(
    "code",
    [b"", b"text", b"\0asm", b"\0asm\1\0\0\0\x01", b"\0asm\2\0\0\0", b"\0asm\x0d\0\1\0", LIBRARY[:-40]],
    ids=["empty", "text", "magic alone", "cut", "another version", "a component", "a cut library"],
)
def test_what_is_no_module_is_refused(lib: AnyRuntime, code: bytes) -> None:
    with pytest.raises(InvalidInput, match="the WebAssembly module does not parse: ") as caught:
        lib.load_wasm("lib", code)
    assert classify_error(caught.value).kind == "invalid_input"
    assert lib.eval("typeof lib") == "undefined"


def test_what_the_engine_does_not_compile_is_an_error_that_leaves_the_runtime_usable(lib: AnyRuntime) -> None:
    # It reads well; the function's code leaves nothing where it promises a number.
    code = build([Function("bad", b"", I32, b"")])
    with pytest.raises(JavaScriptError) as caught:
        lib.load_wasm("lib", code)
    assert caught.value.name == "CompileError"
    assert classify_error(caught.value).kind == "js_error"
    start = build([TRAP], others={8: b"\x00"})
    with pytest.raises(JavaScriptError, match="the WebAssembly module lib trapped: Unreachable code"):
        lib.load_wasm("lib", start)
    lib.load_wasm("lib", LIBRARY)
    assert lib.eval("lib.add(1, 2)") == 3


def test_arguments_are_checked(lib: AnyRuntime) -> None:
    load: Any = lib.load_wasm
    for name in ("a b", "", "1a", "a.b"):
        with pytest.raises(InvalidInput, match="is not a JavaScript identifier"):
            load(name, ADD)
    with pytest.raises(TypeError, match="the name must be str"):
        load(5, ADD)
    for code in ("text", 5, None):
        with pytest.raises(TypeError):
            load("lib", code)
    for imports, told in [
        ({"env": print}, "must be a mapping of functions"),
        ({"env": {"f": 5}}, r"the import env\.f must be callable"),
        ({5: {}}, "the keys of imports must be str"),
        ({"env": {5: print}}, "the keys of imports"),
    ]:
        with pytest.raises(TypeError, match=told):
            load("lib", ADD, imports=imports)
    for buffer in (bytearray(ADD), memoryview(ADD)):
        assert load("lib", buffer).exports["add"](1, 2) == 3


def test_a_name_that_the_script_has_made_its_own_for_good_is_refused(lib: AnyRuntime) -> None:
    lib.eval("Object.defineProperty(globalThis, 'lib', {value: 1}); 0")
    with pytest.raises(JavaScriptError, match="lib cannot be bound: guest code has taken the name"):
        lib.load_wasm("lib", ADD)
    lib.load_wasm("other", ADD)
    assert lib.eval("other.add(lib, 1)") == 2


def test_a_module_under_the_name_of_another_takes_its_place(lib: AnyRuntime) -> None:
    first = lib.load_wasm("lib", LIBRARY)
    lib.eval("lib.fill(1, 1)")
    second = lib.load_wasm("lib", LIBRARY)
    assert lib.eval("lib.memory.read(0, 1)") == second.exports["memory"]["read"](0, 1) == b"\0"
    assert first.exports["memory"]["read"](0, 1) == b"\1"


def test_modules_of_scripts_find_it_too(lib: AnyRuntime) -> None:
    lib.load_wasm("lib", ADD)
    assert lib.eval_module("export const sum = lib.add(20, 22)") == {"sum": 42}


def test_a_runtime_that_was_started_without_it_says_so() -> None:
    with IsolatedRuntime() as rt:
        with pytest.raises(InvalidInput, match='start it with webassembly="host"'):
            rt.load_wasm("lib", ADD)
        assert rt.eval("typeof lib") == "undefined"


def test_a_closed_runtime_loads_nothing(door: Any) -> None:
    rt = door() if door is Runtime else door(webassembly="host")
    rt.close()
    with pytest.raises(RuntimeClosed):
        rt.load_wasm("lib", ADD)


def test_loading_inside_a_host_function_is_refused(lib: AnyRuntime) -> None:
    refusals: list[str] = []

    def load() -> None:
        try:
            lib.load_wasm("lib", ADD)
        except pydeno.PydenoError as error:
            refusals.append(error.kind)

    lib.bind_function("load", load)
    lib.eval("load()")
    assert refusals == ["invalid_input"]
    lib.load_wasm("lib", ADD)


def test_a_module_counts_against_the_length_of_values() -> None:
    config = RuntimeConfig(max_serialization_bytes=len(ADD) - 1)
    with IsolatedRuntime(config, webassembly="host") as rt:
        with pytest.raises(InvalidInput, match="`max_serialization_bytes` allows"):
            rt.load_wasm("lib", ADD)
        assert rt.eval("1") == 1


def test_a_module_that_begins_with_more_memory_than_there_may_be_is_refused() -> None:
    code = build([ADD_NUMBERS], memory=(1024, None))
    with IsolatedRuntime(webassembly="host", max_memory=63 * MIB) as rt:
        with pytest.raises(
            InvalidInput, match="begins with 67108864 bytes of memory; `max_memory` allows 66060288"
        ):
            rt.load_wasm("lib", code)
        assert rt.eval("1") == 1
    with (
        Runtime(RuntimeConfig(max_heap_size=63 * MIB)) as own,
        pytest.raises(InvalidInput, match="`max_heap_size` allows"),
    ):
        own.load_wasm("lib", code)


#: (loop: memory.grow 16, fill all of it, again)
BOMB = Function(
    "bomb", b"", b"",
    b"\x03\x40" + const(16) + b"\x40\x00\x1a\x41\x00\x41\x01\x3f\x00" + const(65536) + b"\x6c\xfc\x0b\x00\x0c\x00\x0b",
)  # fmt: skip


@pytest.mark.parametrize("who", ["lib.bomb()", "for (;;) { lib.grow(16); lib.fill(1, lib.memory.size()) }"])
def test_memory_of_a_module_that_grows_is_counted(who: str) -> None:
    code = build([BOMB, GROW, FILL], memory=(1, None))
    config = RuntimeConfig(max_heap_size=64 << 30)
    with IsolatedRuntime(config, webassembly="host", max_memory=192 * MIB, timeout=60) as rt:
        rt.load_wasm("lib", code)
        assert rt.eval("lib.grow(1)") == 1
        with pytest.raises(MemoryLimitExceeded) as caught:
            rt.eval(who)
        assert not caught.value.runtime_survives
    assert fresh_runtime_answers()


def test_a_script_that_grows_a_memory_past_the_heaps_limit_is_stopped() -> None:
    code = build([GROW, FILL], memory=(1, None))
    config = RuntimeConfig(max_heap_size=64 * MIB)
    for rt in (Runtime(config), IsolatedRuntime(config, webassembly="host")):
        with rt:
            rt.load_wasm("lib", code)
            with pytest.raises(MemoryLimitExceeded):
                rt.eval("for (;;) { lib.grow(16); lib.fill(1, lib.memory.size()) }")


def test_a_loop_inside_a_module_costs_the_worker_at_the_deadline() -> None:
    for spin in (SPIN, build([Function("", b"", b"", b"\x03\x40\x0c\x00\x0b")], others={8: b"\x00"})):
        with IsolatedRuntime(webassembly="host", timeout=0.3) as rt:
            with pytest.raises(RuntimeTimeout) as caught:
                rt.load_wasm("lib", spin)
                rt.eval("lib.spin()")
            assert not caught.value.runtime_survives
    assert fresh_runtime_answers()


def test_a_script_that_calls_a_module_for_ever_is_stopped_and_the_runtime_survives() -> None:
    with IsolatedRuntime(webassembly="host", timeout=0.3) as rt:
        rt.load_wasm("lib", ADD)
        with pytest.raises(RuntimeTimeout) as caught:
            rt.eval("for (;;) lib.add(1, 1)")
        assert caught.value.runtime_survives
        assert rt.eval("lib.add(1, 1)") == 2


def test_the_calls_of_a_module_count_against_the_budget_of_calls() -> None:
    code = build([Function("go", b"", I32, b"\x10\x00")], imports=[("env", "f", b"", I32)])
    with IsolatedRuntime(webassembly="host", max_host_calls=5) as rt:
        rt.load_wasm("lib", code, imports={"env": {"f": lambda: 1}})
        with pytest.raises(pydeno.HostCallBudgetExceeded):
            rt.eval("for (let i = 0; i < 6; i++) lib.go()")
        assert rt.eval("lib.go()") == 1


def test_it_works_on_event_loops(run_on_loop: RunOnLoop) -> None:
    async def main() -> object:
        async with AsyncIsolatedRuntime(webassembly="host") as rt:
            module = await rt.load_wasm("lib", LIBRARY)
            await module.exports["memory"]["write"](0, b"\x01\x02")
            with pytest.raises(InvalidInput):
                await rt.load_wasm("lib", b"text")

            async def later(value: int) -> int:
                await asyncio.sleep(0)
                return value

            rt.bind_function("later", later)
            return await rt.eval("later(2).then((length) => lib.sum(0, length))")

    assert run_on_loop(main()) == 3

    async def own() -> object:
        with Runtime() as rt:
            module = await rt.load_wasm_async("lib", ADD)
            return module.exports["add"](1, 2) + await rt.eval_async("lib.add(1, 2)")

    assert run_on_loop(own()) == 6


def test_a_module_that_is_loaded_while_a_script_calls_the_host_is_there_afterwards(
    run_on_loop: RunOnLoop,
) -> None:
    async def main() -> object:
        async with AsyncIsolatedRuntime(webassembly="host") as rt:
            rt.bind_function("f", lambda number: number)
            calling = rt.eval("let n = 0; for (let i = 0; i < 300; i++) n += f(1); n")
            called, *modules = await asyncio.gather(
                calling, *(rt.load_wasm(f"lib{number}", LIBRARY) for number in range(20))
            )
            assert [module.name for module in modules] == [f"lib{number}" for number in range(20)]
            return called + await rt.eval("lib0.add(1, 2) + lib19.add(3, 4)")

    assert run_on_loop(main()) == 310


def test_it_starts_a_runtime_that_has_not_started() -> None:
    async def main() -> object:
        rt = AsyncIsolatedRuntime(webassembly="host")
        await rt.load_wasm_async("lib", ADD)
        try:
            return await rt.eval("lib.add(1, 2)")
        finally:
            rt.close()

    assert asyncio.run(main()) == 3


def test_it_works_beside_async_host_functions(lib: AnyRuntime) -> None:
    async def later(value: int) -> int:
        return value

    lib.bind_function("later", later)
    module = lib.load_wasm("lib", ADD)
    assert lib.eval("later(2).then((value) => lib.add(value, 40))") == 42
    assert module.exports["add"](1, 2) == 3


def test_a_runtime_of_a_pool_loads_modules_and_gives_none_to_the_next() -> None:
    for template in (False, True):
        config = RuntimeConfig(bootstrap="var prefix = 'n' ")
        with SandboxPool(config, size=1, template=template, webassembly="host") as pool:
            with pool.checkout() as rt:
                rt.load_wasm("lib", ADD)
                assert rt.eval("prefix + lib.add(40, 2) + typeof WebAssembly") == "n42undefined"
            with pool.checkout() as rt:
                assert rt.eval("typeof lib") == "undefined"

    async def main() -> object:
        async with AsyncSandboxPool(size=1, webassembly="host") as pool, pool.checkout() as rt:
            await rt.load_wasm("lib", ADD)
            return await rt.eval("lib.add(40, 2)")

    assert asyncio.run(main()) == 42


def test_runtimes_with_and_without_it_stand_side_by_side() -> None:
    with (
        IsolatedRuntime() as plain,
        IsolatedRuntime(webassembly="host") as host,
        IsolatedRuntime(webassembly=True) as rich,
        IsolatedRuntime(webassembly="host", worker_start="exec") as own,
    ):
        found = [rt.eval("typeof WebAssembly") for rt in (plain, host, rich, own)]
        assert found == ["undefined", "undefined", "object", "undefined"]
        assert host.sandbox == plain.sandbox
        assert host.sandbox_extras == plain.sandbox_extras
        own.load_wasm("lib", ADD)


@pytest.mark.parametrize("jit", ["off", "baseline", "full"])
def test_the_globals_are_those_of_a_runtime_without_it(jit: Any) -> None:
    names = "Object.getOwnPropertyNames(globalThis).sort()"
    with IsolatedRuntime(jit=jit) as plain, IsolatedRuntime(jit=jit, webassembly="host") as host:
        assert plain.eval(names) == host.eval(names)
        host.load_wasm("lib", ADD)
        assert set(host.eval(names)) - set(plain.eval(names)) == {"lib"}
        assert set(host.eval("Object.keys(globalThis)")) == set(plain.eval("Object.keys(globalThis)"))


def test_loading_leaves_the_signals_of_the_process_as_they_are() -> None:
    def caught() -> str:
        return next(line for line in Path("/proc/self/status").read_text().splitlines() if "SigCgt" in line)

    with Runtime() as rt:
        before = caught()
        rt.load_wasm("lib", LIBRARY)
        with pytest.raises(JavaScriptError, match="trapped: Out of bounds memory access"):
            rt.eval("lib.sum(1 << 30, 1)")
        assert caught() == before


def test_strict_eval_and_a_fixed_clock_change_nothing() -> None:
    with IsolatedRuntime(webassembly="host", strict_eval=True, clock=0, random_seed=1) as rt:
        rt.load_wasm("lib", ADD)
        assert rt.eval("lib.add(40, 2)") == 42


def test_exports_that_are_more_than_a_value_may_have_are_refused() -> None:
    code = build([Function(f"function{i}", b"", b"", b"") for i in range(2000)])
    config = RuntimeConfig(max_serialization_bytes=len(code))
    with IsolatedRuntime(config, webassembly="host") as rt:
        with pytest.raises(ConversionError):
            rt.load_wasm("lib", code)
        assert rt.eval("40 + 2") == 42


def test_more_exports_than_a_message_may_name_are_refused() -> None:
    code = build([Function(f"f{i}", b"", b"", b"") for i in range(4097)])
    with IsolatedRuntime(webassembly="host") as rt:
        with pytest.raises(InvalidInput, match="the exports"):
            rt.load_wasm("lib", code)
        assert rt.eval("40 + 2") == 42
