"""Allocations that have outrun other sandboxes' limits meet theirs, and the host's memory stays as it was."""

from __future__ import annotations

import pytest

from own_process import outcome

MIB = 1 << 20
#: The most that a host process may have used, interpreter included: none of what the scripts ask for.
HOST_BYTES = 128 * MIB
#: As the language or a limit of the sandbox has it; never the host's own MemoryError.
LIMITS = {"memory_limit", "timeout"}

# https://github.com/laverdet/isolated-vm/issues/107, https://github.com/laverdet/isolated-vm/issues/186
GIANTS = {
    "spreading a giant string": "[...'x'.repeat(1e9)].length",
    "filling sixty million elements": "new Array(6e7).fill(1).length",
    "filling an array of the maximum length": "new Array(2 ** 32 - 1).fill(0).length",
    "slicing a giant string as if it were an array": "Array.prototype.slice.call('x'.repeat(1e9)).length",
    "joining a giant string as if it were an array": "Array.prototype.join.call('x'.repeat(1e9), 'y').length",
    "copying a giant string as if it were an array": "Array.from('x'.repeat(1e9)).length",
    "the JSON of a giant array": "JSON.stringify(new Array(5e7).fill(1)).length",
}

# https://github.com/sebastienros/jint/issues/2486, https://github.com/sebastienros/jint/issues/683,
# https://github.com/dop251/goja/issues/645, https://github.com/javadelight/delight-rhino-sandbox/issues/31
BULK = {
    "joining two billion holes": "new Array(2e9).join('ab').length",
    "an array from a length alone": "Array.from({length: 5e7}).length",
    "doubling an array": "let a = [1, 2, 3]; for (let i = 0; i < 28; i++) a = a.concat(a); a.length",
    "replacing all": "let s = 'a'; for (let i = 0; i < 40; i++) s = s.replaceAll('a', 'aaaa'); s.length",
    "a giant argument list": "Math.max.apply(null, new Array(1e8))",
    "flattening nested arrays": "let a = [1]; for (let i = 0; i < 30; i++) a = [a, a]; a.flat(Infinity).length",
}


@pytest.mark.parametrize("code", [*GIANTS.values(), *BULK.values()], ids=[*GIANTS, *BULK])
def test_a_built_in_that_allocates_for_a_giant_meets_a_limit_of_the_sandbox(code: str) -> None:
    told = outcome(code, timeout=2, max_memory=64 * MIB)
    assert told["kind"] in LIMITS or told["message"].startswith("RangeError: "), told
    assert told["resident"] < HOST_BYTES


@pytest.mark.parametrize(
    "code", ["new Array(6e7).fill(1).length", "let a = []; for (;;) a.push(a.length + 0.5)"]
)
def test_a_heap_of_eight_mebibytes_is_a_limit_too(code: str) -> None:
    told = outcome(code, config={"timeout": 5, "max_heap_size": 8 * MIB}, max_memory=64 * MIB)
    assert told["kind"] == "memory_limit"


STRINGS = {
    "padding to two billion": "'x'.padEnd(2e9).length",
    "padding to just below the engine's maximum": "'x'.padEnd(2 ** 31 - 2, 'ab').length",
    "padding past it": "'x'.padEnd(2 ** 31)",
    "repeating to just below it": "'ab'.repeat(2 ** 30 - 1).length",
    "repeating past it": "'ab'.repeat(2 ** 30)",
    "doubling in a loop": "let s = 'x'; for (;;) s += s",
    "joining templates": "let s = 'x'; for (let i = 0; i < 60; i++) s = `${s}${s}`; s.length",
    "doubling and using it": "let s = 'ab'; for (;;) { s += s; s.charCodeAt(s.length - 1) }",
    "an argument list from a length alone": "String.fromCharCode.apply(null, {length: 2 ** 31})",
    "an array buffer": "new ArrayBuffer(2 ** 40)",
}


@pytest.mark.parametrize("code", STRINGS.values(), ids=STRINGS.keys())
def test_a_string_of_any_length_is_a_length_a_range_error_or_a_limit(code: str) -> None:
    told = outcome(code, timeout=2, max_memory=64 * MIB)
    is_error = told["kind"] in LIMITS or told["message"].startswith("RangeError: ")
    assert is_error or (told["kind"] is None and told["value"] > 2**30), told
    assert told["resident"] < HOST_BYTES


def test_a_giant_string_as_the_result_is_not_sent() -> None:
    told = outcome("'x'.repeat(2 ** 30)", timeout=5, max_memory=64 * MIB)
    assert told["kind"] in {"invalid_input", "memory_limit"}
    assert told["resident"] < HOST_BYTES


# https://github.com/LTplus-AG/ifc-lite/issues/1922
LEFT_OVER = {
    "an async function that nobody awaits": "(async () => { await null; const a = []; for (;;) a.push([1]) })(); 1",
    "an async generator that nobody reads": """
        async function* g() { await null; const a = []; for (;;) a.push([1]) } g().next(); 1""",
    "a loop over an async generator": """
        async function* g() { const a = []; for (;;) { a.push(new Array(1000).fill(1)); yield 1 } }
        (async () => { for await (const x of g()); })(); 1""",
}


@pytest.mark.parametrize("code", LEFT_OVER.values(), ids=LEFT_OVER.keys())
def test_work_that_the_script_leaves_behind_is_done_under_its_limits(code: str) -> None:
    told = outcome(code, timeout=20, max_memory=64 * MIB)
    assert (told["class"], told["kind"]) == ("MemoryLimitExceeded", "memory_limit")


def test_work_that_is_left_behind_and_ends_is_done_before_the_value_is_there() -> None:
    told = outcome(
        "globalThis.n = 0; (async () => { await null; n = 1 })(); (async () => { await null; await null; return n })()"
    )
    assert told["value"] == 1
