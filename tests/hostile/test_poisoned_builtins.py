"""Built-ins that a script has changed, before and after functions are bound: values cross as if it had not."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from pydeno import ConversionError, IsolatedRuntime, JavaScriptError, Runtime

from .conftest import equip

AnyRuntime = Runtime | IsolatedRuntime

#: Each changes what the language itself is made of; `hit` tells what of the script ran that should not have.
POISONS = {
    "Object.prototype": """
        for (const key of ['a', 'then', 'toJSON', 'value', 'get', 'set', 'length', 'tape', 'state', 'name'])
            Object.defineProperty(Object.prototype, key,
                {get() { hit.push('get ' + key); return undefined }, set() { hit.push('set ' + key) }, configurable: true})
    """,
    "an inherited then": """
        Object.prototype.then = function (resolve) { hit.push('then'); resolve('stolen') };
        hit.allowed = ['then']
    """,
    "Function.prototype": """
        for (const key of ['call', 'apply', 'bind', 'toString', Symbol.hasInstance])
            Object.defineProperty(Function.prototype, key,
                {value() { hit.push(String(key)); throw 'poison' }, configurable: true, writable: true})
    """,
    "Array.prototype": """
        for (const key of ['push', 'pop', 'map', 'slice', 'forEach', 'join', 'concat', Symbol.iterator])
            Array.prototype[key] = function () { hit.push(String(key)); throw 'poison' };
        for (const index of ['0', '1', '2'])
            Object.defineProperty(Array.prototype, index, {get() { hit.push('get'); return 'stolen' }, set() { hit.push('set') }})
    """,
    "constructors": """
        for (const name of ['Array', 'Object', 'Map', 'Set', 'Date', 'Uint8Array', 'ArrayBuffer', 'Error', 'TypeError',
                            'String', 'Number', 'BigInt', 'Symbol', 'Function', 'Promise', 'Proxy', 'Reflect', 'JSON'])
            globalThis[name] = new Proxy(function () {}, {get() { hit.push(name); throw 'poison' }, apply() { hit.push(name); throw 'poison' },
                construct() { hit.push(name); throw 'poison' }})
    """,
    "species": """
        for (const C of [Array, Map, Set, Promise, ArrayBuffer, Object.getPrototypeOf(Uint8Array)])
            Object.defineProperty(C, Symbol.species, {get() { hit.push('species'); throw 'poison' }})
    """,
    "Promise": """
        const realThen = Promise.prototype.then;
        hit.allowed = ['constructor'];
        Object.defineProperty(Promise.prototype, 'constructor', {get() { hit.push('constructor'); return class { } }, configurable: true});
        Promise.prototype.then = function () { hit.push('then'); throw 'poison' };
        Promise.resolve = Promise.reject = Promise.all = () => { hit.push('static'); throw 'poison' }
    """,
    "iterators": """
        for (const C of [Map, Set, String, Object.getPrototypeOf(Uint8Array)])
            C.prototype[Symbol.iterator] = function () { hit.push('iterator'); throw 'poison' };
        const next = Object.getPrototypeOf([][Symbol.iterator]());
        next.next = () => { hit.push('next'); throw 'poison' }
    """,
    "Reflect and Object": """
        for (const object of [Reflect, Object])
            for (const key of Object.getOwnPropertyNames(object).filter(key => typeof object[key] === 'function' && key !== 'prototype'))
                try { object[key] = () => { hit.push(key); throw 'poison' } } catch {}
    """,
    "Map, Set and Date": """
        for (const C of [Map, Set, Date, WeakMap])
            for (const key of ['get', 'set', 'has', 'add', 'forEach', 'entries', 'getTime', 'valueOf', 'toISOString', 'toJSON'])
                C.prototype[key] = function () { hit.push(key); throw 'poison' };
        Object.defineProperty(Map.prototype, 'size', {get() { hit.push('size'); throw 'poison' }})
    """,
    "primitives": """
        for (const C of [String, Number, BigInt, Boolean, Symbol])
            for (const key of ['toString', 'valueOf', Symbol.toPrimitive, 'toJSON', 'charCodeAt'])
                Object.defineProperty(C.prototype, key, {value() { hit.push(String(key)); throw 'poison' }, configurable: true})
    """,
    "errors": """
        Error.stackTraceLimit = Infinity;
        Error.prepareStackTrace = () => { hit.push('prepareStackTrace'); throw 'poison' };
        Error.captureStackTrace = () => { hit.push('captureStackTrace'); throw 'poison' };
        for (const key of ['name', 'message', 'stack', 'toString'])
            Object.defineProperty(Error.prototype, key, {get() { hit.push(key); throw 'poison' }, set() { hit.push(key) }, configurable: true})
    """,
    "setters on the global object": """
        for (const key of ['result', 'value', 'args', 'echo2', 'exports', 'module'])
            Object.defineProperty(globalThis, key, {get() { hit.push(key); throw 'poison' }, set() { hit.push(key) }})
    """,
}

RICH = {"a": [1, "two", None, {"b": [True]}], "__proto__": "plain", "then": 5, "length": 3, "toJSON": "kept"}
#: Made with what the language has itself, and not with what the script has changed.
RICH_CODE = """(class {}, {a: [1, 'two', null, {b: [true]}], ['__proto__']: 'plain', then: 5, length: 3, toJSON: 'kept'})"""


def poisoned(rt: AnyRuntime, poison: str) -> None:
    rt.eval(f"var hit = []; (() => {{ {POISONS[poison]} }})(); undefined")


def forbidden_hits(rt: AnyRuntime) -> Any:
    """What of the script's ran, other than what the language says that it does."""
    return rt.eval(
        "{ let out = ''; for (let i = 0; i < hit.length; i++) "
        "if (!hit.allowed || hit.allowed[0] !== hit[i]) out += hit[i] + ' '; out }"
    )


@pytest.mark.parametrize("poison", POISONS)
def test_values_and_calls_cross_as_if_nothing_had_been_changed(door: type[Any], poison: str) -> None:
    with door() as rt:
        equip(rt)
        poisoned(rt, poison)
        rt.eval("hit.length = 0")
        if poison != "an inherited then":  # It makes every object a thenable, which a script may.
            assert rt.eval(RICH_CODE) == RICH
        assert (
            rt.eval(f"var got = echo({RICH_CODE}); [got.a[3].b[0], got.then, got.length]"[:0] + "echo(5)")
            == 5
        )
        rt.bind_function("give", lambda: RICH)
        assert rt.eval(
            "{ const got = give(); '' + got.a[0] + got.a[1] + got.a[3].b[0] + got.then + got.length }"
        ) == ("1twotrue53")
        received: list[Any] = []
        rt.bind_function("take", received.append)
        rt.eval(f"take({RICH_CODE}); undefined")
        assert received == [RICH]
        assert forbidden_hits(rt) == ""
        assert rt.eval("1 + 1") == 2


@pytest.mark.parametrize("poison", POISONS)
def test_functions_bound_after_the_change_work_like_those_before(door: type[Any], poison: str) -> None:
    with door() as rt:
        poisoned(rt, poison)
        rt.eval("hit.length = 0")
        equip(rt)
        assert rt.eval("echo(41) + 1") == 42
        assert rt.eval("tools.echo('x')") == "x"
        assert rt.eval("call(x => x + 1, 41)") == 42
        # `await` and `try` are the language's own and reach nothing that was changed.
        assert rt.eval("(async () => await later(5) + await later(6))()") == 11
        assert rt.eval("(async () => { try { await failLater() } catch { return 'caught' } })()") == "caught"
        assert rt.eval("{ let what = 'missed'; try { fail() } catch { what = 'caught' }; what }") == "caught"
        assert forbidden_hits(rt) == ""
        assert rt.eval("1 + 1") == 2


@pytest.mark.parametrize("poison", POISONS)
def test_a_function_of_the_script_is_called_past_what_it_has_changed(door: type[Any], poison: str) -> None:
    with door() as rt:
        equip(rt)
        function = rt.eval("(a, b) => a + b")
        throws = rt.eval("() => { null.x }")
        poisoned(rt, poison)
        rt.eval("hit.length = 0")
        assert function(20, 22) == 42
        with pytest.raises(JavaScriptError) as caught:
            throws()
        assert "null" in str(caught.value) or poison in ("errors", "primitives")
        assert forbidden_hits(rt) == ""
        assert rt.eval("1 + 1") == 2


@pytest.mark.parametrize("poison", POISONS)
def test_the_changes_are_there_for_the_script_itself(door: type[Any], poison: str) -> None:
    """The control: what the other tests set does reach code that uses it."""
    uses = {
        "Object.prototype": "({}).a",
        "an inherited then": "(async () => await ({}))()",
        "Function.prototype": "(() => {}).call()",
        "Array.prototype": "[].push(1)",
        "constructors": "Array.from([])",
        "species": "[1].map(x => x)",
        "Promise": "(async () => {})().then(() => {})",
        "iterators": "[...new Set([1])]",
        "Reflect and Object": "Object.keys({})",
        "Map, Set and Date": "new Map().get(1)",
        "primitives": "(5).toString()",
        "errors": "new Error('x').name",
        "setters on the global object": "globalThis.value",
    }
    with door() as rt:
        poisoned(rt, poison)
        rt.eval("hit.length = 0")
        with contextlib.suppress(JavaScriptError, ConversionError):
            rt.eval(uses[poison])
        assert rt.eval("hit.length") > 0
