"""Scripts that have outrun other sandboxes' deadlines end within theirs.

No time is asserted: each script would run for ever, or far longer than the patience of `own_process.outcome`.
"""

from __future__ import annotations

import pytest

from own_process import outcome

# https://github.com/patriksimek/vm2/issues/116, https://github.com/nodejs/node/issues/3020,
# https://github.com/patriksimek/vm2/issues/581
IN_REACTIONS = {
    "a loop in a promise reaction": "Promise.resolve().then(() => { for (;;); }); 1",
    "a loop after an await": "(async () => { await null; for (;;); })(); 1",
    "a loop in a thenable": "Promise.resolve({then() { for (;;); }}); 1",
    "a loop in a reaction to a rejection": "Promise.reject(1).catch(() => { for (;;); }); 1",
    "a loop in finally": "Promise.resolve().finally(() => { for (;;); }); 1",
    "a loop that catches its end": """Promise.resolve().then(() => {
        for (;;) try { for (;;); } catch {} finally { for (;;); }
    }); 1""",
    "a loop in an async generator's return": """
        async function* g() { try { yield 1 } finally { for (;;); } }
        const it = g(); it.next().then(() => it.return()); 1""",
    "a loop in an iterator's next": """
        const it = {[Symbol.asyncIterator]() { return {next() { for (;;); }} }};
        (async () => { for await (const x of it); })(); 1""",
}


@pytest.mark.parametrize("door", ["Runtime", "IsolatedRuntime"])
@pytest.mark.parametrize("code", IN_REACTIONS.values(), ids=IN_REACTIONS.keys())
def test_an_endless_loop_in_a_job_after_the_script_is_a_timeout(door: str, code: str) -> None:
    told = outcome(code, door=door, config={"timeout": 0.2})
    assert (told["class"], told["kind"], told["survives"]) == ("RuntimeTimeout", "timeout", True)


def test_a_loop_in_a_finalizer_or_in_a_disposal_does_not_outlive_its_script() -> None:
    finalizer = """
        const registry = new FinalizationRegistry(() => { for (;;); });
        for (let i = 0; i < 1e4; i++) registry.register({}, i);
        for (let i = 0; i < 1e5; i++) ({ i });
        1"""
    # An engine may run the callbacks in this evaluation, in the next one, or never.
    assert outcome(finalizer, timeout=0.2)["kind"] in {None, "timeout"}
    disposal = "const s = new AsyncDisposableStack(); s.defer(() => { for (;;); }); s.disposeAsync(); 1"
    assert outcome(disposal, timeout=0.2)["kind"] in {"timeout", "js_error"}


# https://github.com/DelSkayn/rquickjs/issues/663, https://github.com/littledivy/v8x/pull/14,
# https://github.com/BabylonJS/JsRuntimeHost/issues/241
CHAINS = {
    "awaits of a settled value": "(async () => { for (;;) await null })()",
    "the same that nobody awaits": "(async () => { for (;;) await null })(); 1",
    "two functions that wake each other": """
        let wake; const turn = () => new Promise(resolve => { const last = wake; wake = resolve; last?.() });
        (async () => { for (;;) await Promise.race([turn(), null]) })();
        (async () => { for (;;) await Promise.race([turn(), null]) })(); 1""",
    "a reaction that re-queues itself": "const again = () => Promise.resolve().then(again); again(); 1",
    "an async generator without an end": """
        async function* g() { for (;;) yield 1 } (async () => { for await (const x of g()); })(); 1""",
}


# Only a process can be killed from outside: in `Runtime` these never end, as its documentation says.
@pytest.mark.parametrize("code", CHAINS.values(), ids=CHAINS.keys())
def test_an_endless_chain_of_short_jobs_is_a_timeout(code: str) -> None:
    told = outcome(code, timeout=0.2)
    assert (told["class"], told["kind"]) == ("RuntimeTimeout", "timeout")


def test_a_chain_with_a_host_call_in_each_turn_meets_the_budget_of_calls_or_the_deadline() -> None:
    code = "(async () => { for (;;) await host() })()"
    assert outcome(code, timeout=5, max_host_calls=100)["kind"] == "host_call_budget"
    assert outcome(code, timeout=0.2, max_host_calls=2**62)["kind"] == "timeout"


# https://github.com/mozilla/rhino/issues/1189, https://github.com/sebastienros/jint/issues/608
PATTERNS = {
    "nested quantifiers": ("/(a+)+b/.test('a'.repeat(40) + 'c')", False),
    "alternatives that overlap": ("/^(a|a)*b$/.test('a'.repeat(40) + 'c')", False),
    "a back reference": ("/^(a|a)*\\1b$/.test('a'.repeat(40) + 'c')", False),
    "replace with a callback": ("('a'.repeat(40) + 'c').replace(/(a+)+b/g, () => 'x').length", 41),
    "split": ("('a'.repeat(40) + 'c').split(/(?:a+)+b/).length", 1),
    "matchAll": ("[...('a'.repeat(40) + 'c').matchAll(/(a+)+b/g)].length", 0),
    "a lookbehind": ("/(?<=(a+)+c)b/.test('a'.repeat(40) + 'd')", False),
    "the flag for sets": ("/^([\\p{L}--[b]]+)+b$/v.test('a'.repeat(40) + 'c')", False),
    "ten megabytes": ("/(a+)+b/.test('a'.repeat(1e7))", False),
}


@pytest.mark.parametrize(("code", "value"), PATTERNS.values(), ids=PATTERNS.keys())
def test_a_catastrophic_regular_expression_ends_or_is_stopped(code: str, value: object) -> None:
    told = outcome(code, timeout=0.2)
    # An engine may give up on its own, or know a better way; then it is to be right.
    assert told["kind"] == "timeout" or (told["kind"], told["value"]) == (None, value)


# https://github.com/laverdet/isolated-vm/issues/202, https://github.com/sebastienros/jint/issues/2486
OPERATORS = {
    "a power": "String((7n ** 100000n) ** 1000n).length",
    "a larger power": "2n ** (2n ** 40n)",
    "a product of large factors": "let n = 3n ** 200000n; for (let i = 0; i < 30; i++) n *= n; 0",
    "the decimal text of a large integer": "(7n ** 370000n).toString().length",
    "a shift": "1n << (1n << 40n)",
    "splitting a giant string": "'x'.repeat(1.2e8).split('').length",
    "sorting a sparse array": "const a = []; a[2 ** 32 - 2] = 1; a[5] = 'x'; a.sort().length",
    "searching a sparse array": "const a = []; a[2 ** 32 - 2] = 1; a.indexOf(2)",
    "reversing a sparse array": "const a = []; a[2 ** 32 - 2] = 1; a.reverse().length",
}


@pytest.mark.parametrize("door", ["Runtime", "IsolatedRuntime"])
@pytest.mark.parametrize("code", OPERATORS.values(), ids=OPERATORS.keys())
def test_one_operator_that_is_too_big_is_refused_or_stopped(door: str, code: str) -> None:
    told = outcome(code, door=door, config={"timeout": 0.5})
    assert told["kind"] in {None, "timeout", "memory_limit", "js_error"}
    if told["kind"] == "js_error":
        assert told["message"].startswith("RangeError: ")
    if told["kind"] is None:
        assert isinstance(told["value"], int)
