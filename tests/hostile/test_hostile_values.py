"""Values made to run code, or to lie, while they cross."""

from __future__ import annotations

import pytest

from pydeno import ConversionError, IsolatedRuntime, JavaScriptError, Runtime, RuntimeTimeout, undefined

from .conftest import outcome

AnyRuntime = Runtime | IsolatedRuntime

#: Each is an expression whose value runs the script's code if anybody looks inside: `ran` says so.
TRAPS = {
    "a getter": "({get x() { ran++; return 1 }})",
    "a getter deep inside": "({a: [{b: {get x() { ran++; return 1 }}}]})",
    "a getter that throws": "({get x() { ran++; throw new Error('out') }})",
    "a getter that never ends": "({get x() { ran++; for (;;) {} }})",
    "a getter that calls the host": "({get x() { ran++; return echo(1) }})",
    "a proxy": "new Proxy({}, {get() { ran++ }, ownKeys() { ran++; return [] }, getPrototypeOf() { ran++; return null }})",
    "a proxy of an array": "new Proxy([1, 2], {get(t, k) { ran++; return t[k] }})",
    "a proxy of proxies": "new Proxy({}, new Proxy({}, {get() { ran++; return () => { ran++ } }}))",
    "a revoked proxy": "(() => { const {proxy, revoke} = Proxy.revocable({}, {}); revoke(); return proxy })()",
    "an array with a getter": "Object.defineProperty([1, 2], 0, {get() { ran++; return 1 }})",
    "a proxy in an array": "[1, [new Proxy({}, {get() { ran++ }})]]",
    "a proxy in a map": "new Map([['k', new Proxy({}, {get() { ran++ }})]])",
}

#: What the language itself calls when a value is awaited or made a string is the script's own affair: it has no effect
#: beyond the value.
LIES = {
    "toJSON": ("({toJSON() { ran++; return 'lie' }, a: 1})", None),
    "toString and valueOf": ("({a: 1, toString: 1, valueOf: 2})", {"a": 1, "toString": 1, "valueOf": 2}),
    "a tag": ("({a: 1, [Symbol.toStringTag]: 'Date'})", {"a": 1}),
    "an array's length": ("Object.assign([1, 2], {extra: 3})", [1, 2]),
    "a false date": ("Object.setPrototypeOf({a: 1}, Date.prototype)", {"a": 1}),
    "a false array": ("Object.setPrototypeOf({0: 'x', length: 1}, Array.prototype)", {"0": "x", "length": 1}),
    "a true array without its prototype": ("Object.setPrototypeOf([1, 2], null)", [1, 2]),
    "a true date without its prototype": ("Object.setPrototypeOf(new Date(0), null) && 1", 1),
    "proto as a key": ("({['__proto__']: {polluted: true}})", {"__proto__": {"polluted": True}}),
    "an object without a prototype": ("Object.assign(Object.create(null), {a: 1})", {"a": 1}),
    "inherited properties": (
        "Object.create({inherited: 1}, {own: {value: 2, enumerable: true}})",
        {"own": 2},
    ),
    "hidden properties": ("Object.defineProperty({a: 1}, 'hidden', {value: 2, enumerable: false})", {"a": 1}),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_nothing_of_the_script_runs_while_its_value_is_read(victim: AnyRuntime, trap: str) -> None:
    victim.eval("var ran = 0")
    with pytest.raises((ConversionError, JavaScriptError)) as caught:
        victim.eval(TRAPS[trap])
    if isinstance(caught.value, ConversionError):
        assert caught.value.path.startswith("$")
    assert victim.eval("ran") == 0


@pytest.mark.parametrize("trap", TRAPS)
def test_nothing_of_the_script_runs_while_an_argument_is_read(victim: AnyRuntime, trap: str) -> None:
    victim.eval("var ran = 0")
    assert (
        victim.eval(
            f"{{ let name; try {{ echo({TRAPS[trap]}) }} catch (error) {{ name = error.name }}; name }}"
        )
        == "TypeError"
    )
    assert victim.eval(f"later({TRAPS[trap]}).catch(error => error.name)") == "TypeError"
    assert victim.eval("ran") == 0


@pytest.mark.parametrize("trap", TRAPS)
def test_the_traps_do_run_when_the_script_looks(victim: AnyRuntime, trap: str) -> None:
    """The control: `ran` counts what the other tests say did not happen."""
    if trap == "a revoked proxy":
        with pytest.raises(JavaScriptError):
            victim.eval(f"({TRAPS[trap]}).x")
        return
    if trap == "a getter that never ends":
        with pytest.raises(RuntimeTimeout):
            victim.eval(f"var ran = 0; ({TRAPS[trap]}).x")
    else:
        look = (
            "function look(v) { if (v instanceof Map) v = [...v.values()]; for (const k of Reflect.ownKeys(v)) "
            "{ const x = v[k]; if (x && typeof x === 'object') look(x) } try { v.x; v[0] } catch {} }"
        )
        victim.eval(f"var ran = 0; {look} try {{ look({TRAPS[trap]}) }} catch {{}}; 0")
    assert victim.eval("ran") > 0


@pytest.mark.parametrize("lie", LIES)
def test_a_value_is_what_it_is_and_not_what_it_says(victim: AnyRuntime, lie: str) -> None:
    code, value = LIES[lie]
    victim.eval("var ran = 0")
    if value is None:
        result = victim.eval(code)
        assert set(result) == {"toJSON", "a"}
    else:
        assert victim.eval(code) == value
    assert victim.eval("ran") == 0


THENABLES = {
    "({then: 5})": {"then": 5},
    "(async () => ({then(done) { done('thenable') }}))()": "thenable",
    "(async () => ({then(done) { done({then(done) { done('twice') }}) }}))()": "twice",
    "(async () => ({get then() { throw new RangeError('no then') }}))()": "RangeError!",
    "(async () => { const p = later(1); p.then = (done) => done('own then'); return await p })()": 1,
    "(async () => { class P extends Promise {}; return await P.resolve(later(7)) })()": 7,
}


@pytest.mark.parametrize("code", THENABLES)
def test_thenables_are_what_the_language_makes_of_them(victim: AnyRuntime, code: str) -> None:
    assert outcome(victim, code) == THENABLES[code]


def test_a_promise_with_a_then_of_its_own_is_read_past_it(victim: AnyRuntime) -> None:
    code = "{ const p = later(1); p.then = () => { ran = 'own then' }; globalThis.ran = ''; p }"
    assert victim.eval(code) == 1
    assert victim.eval("ran") == ""


def test_a_proxy_of_a_promise_is_no_promise(victim: AnyRuntime) -> None:
    with pytest.raises((ConversionError, JavaScriptError)):
        victim.eval("new Proxy(Promise.resolve(1), {})")


def test_a_value_that_changes_while_it_is_used_as_an_argument_is_the_value_of_the_call(
    victim: AnyRuntime,
) -> None:
    assert victim.eval("{ const list = [1, 2]; const copy = echo(list); list.push(3); copy }") == [1, 2]


@pytest.mark.parametrize("code", ["Symbol('x')", "Symbol.iterator", "({s: Symbol('x')})", "[Symbol()]"])
def test_a_symbol_is_refused_with_its_place(victim: AnyRuntime, code: str) -> None:
    with pytest.raises(ConversionError, match=r"\$"):
        victim.eval(code)


def test_a_hostile_value_from_the_host_pollutes_nothing(victim: AnyRuntime) -> None:
    value = {"__proto__": {"polluted": True}, "constructor": {"prototype": {"polluted": True}}}
    victim.bind_function("give", lambda: value)
    assert victim.eval(
        "{ const got = give(); [got.polluted, ({}).polluted, Object.getPrototypeOf(got) === Object.prototype] }"
    ) == [
        undefined,
        undefined,
        True,
    ]
