"""Built-ins that a script has changed, before and after functions are bound: values cross as if it had not."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from pydeno import ConversionError, IsolatedRuntime, JavaScriptError, Runtime

from .conftest import equip

AnyRuntime = Runtime | IsolatedRuntime

#: Each changes what the language itself is made of; `note` tells what of the script ran that should not have.
POISONS = {
    "Object.prototype": """
        const keys = ['a', 'then', 'toJSON', 'value', 'get', 'set', 'length', 'tape', 'state', 'name', 'enumerable'];
        const define = Object.defineProperty, traps = keys.map(key => Object.assign(Object.create(null),
            {get() { note('get ' + key) }, set() { note('set ' + key) }, configurable: true}));
        for (let i = 0; i < keys.length; i++) define(Object.prototype, keys[i], traps[i])
    """,
    "an inherited then": """
        Object.prototype.then = function (resolve) { note('then'); resolve('stolen') }
    """,
    "Function.prototype": """
        for (const key of ['call', 'apply', 'bind', 'toString'])
            Object.defineProperty(Function.prototype, key,
                {value() { note(key); throw 'poison' }, configurable: true, writable: true})
    """,
    "Array.prototype": """
        const A = Array.prototype, define = Object.defineProperty;
        for (const index of ['0', '1', '2'])
            define(A, index, {get() { note('get'); return 'stolen' }, set() { note('set') }});
        const throwing = name => function () { note(name); throw 'poison' };
        A.push = throwing('push'); A.pop = throwing('pop'); A.map = throwing('map'); A.slice = throwing('slice');
        A.join = throwing('join'); A.concat = throwing('concat'); A.forEach = throwing('forEach');
        A[Symbol.iterator] = throwing('iterator')
    """,
    "constructors": """
        const P = Proxy;
        for (const name of ['Array', 'Object', 'Map', 'Set', 'Date', 'Uint8Array', 'ArrayBuffer', 'Error', 'TypeError',
                            'String', 'Number', 'BigInt', 'Symbol', 'Function', 'Promise', 'Proxy', 'Reflect', 'JSON']) {
            const trap = () => { note(name); throw 'poison' };
            globalThis[name] = new P(function () {}, {get: trap, apply: trap, construct: trap})
        }
    """,
    "species": """
        for (const C of [Array, Map, Set, Promise, ArrayBuffer, Object.getPrototypeOf(Uint8Array)])
            Object.defineProperty(C, Symbol.species, {get() { note('species'); throw 'poison' }})
    """,
    "Promise": """
        Promise.prototype.then = function () { note('then'); throw 'poison' };
        Promise.prototype.catch = Promise.prototype.finally = Promise.prototype.then;
        Promise.resolve = Promise.reject = Promise.all = Promise.withResolvers = () => { note('static'); throw 'poison' }
    """,
    "iterators": """
        const next = Object.getPrototypeOf([][Symbol.iterator]());
        const types = [Map, Set, String, Object.getPrototypeOf(Uint8Array)];
        for (let i = 0; i < types.length; i++)
            types[i].prototype[Symbol.iterator] = function () { note('iterator'); throw 'poison' };
        next.next = () => { note('next'); throw 'poison' }
    """,
    "Reflect and Object": """
        const names = Object.getOwnPropertyNames;
        for (const object of [Reflect, Object])
            for (const key of names(object))
                if (typeof object[key] === 'function')
                    try { object[key] = () => { note(key); throw 'poison' } } catch {}
    """,
    "Map, Set and Date": """
        const keys = ['get', 'set', 'has', 'add', 'forEach', 'entries', 'getTime', 'valueOf', 'toISOString', 'toJSON'];
        for (const C of [Map, Set, Date, WeakMap])
            for (const key of keys)
                C.prototype[key] = function () { note(key); throw 'poison' };
        Object.defineProperty(Map.prototype, 'size', {get() { note('size'); throw 'poison' }})
    """,
    "primitives": """
        for (const C of [String, Number, BigInt, Boolean])
            for (const key of ['toString', 'valueOf', 'toJSON', 'charCodeAt', Symbol.toPrimitive])
                Object.defineProperty(C.prototype, key, {value() { note('primitive'); throw 'poison' }, configurable: true})
    """,
    "errors": """
        Error.stackTraceLimit = Infinity;
        Error.prepareStackTrace = () => { note('prepareStackTrace'); throw 'poison' };
        Error.captureStackTrace = () => { note('captureStackTrace'); throw 'poison' };
        for (const key of ['name', 'message', 'stack', 'toString'])
            Object.defineProperty(Error.prototype, key,
                {get() { note(key); throw 'poison' }, set() { note(key) }, configurable: true})
    """,
    "setters on the global object": """
        for (const key of ['result', 'value', 'args', 'exports', 'module'])
            Object.defineProperty(globalThis, key, {get() { note(key); throw 'poison' }, set() { note(key) }})
    """,
}

RICH = {"a": [1, "two", None, {"b": [True]}], "__proto__": "plain", "then": 5, "length": 3, "toJSON": "kept"}
#: Made with what the language has itself, and not with what the script has changed.
RICH_CODE = """(class {}, {a: [1, 'two', null, {b: [true]}], ['__proto__']: 'plain', then: 5, length: 3, toJSON: 'kept'})"""


def poisoned(rt: AnyRuntime, poison: str) -> None:
    rt.eval(
        f"var hits = '', note = name => {{ hits += name + ' ' }}; (() => {{ {POISONS[poison]} }})(); hits = ''; 0"
    )


def hits(rt: AnyRuntime) -> Any:
    """What of the script's ran."""
    return rt.eval("hits")


@pytest.mark.parametrize("poison", POISONS)
def test_values_and_calls_cross_as_if_nothing_had_been_changed(door: type[Any], poison: str) -> None:
    with door() as rt:
        equip(rt)
        poisoned(rt, poison)
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
        assert hits(rt) == ""
        assert rt.eval("1 + 1") == 2


@pytest.mark.parametrize("poison", POISONS)
def test_functions_bound_after_the_change_work_like_those_before(door: type[Any], poison: str) -> None:
    with door() as rt:
        poisoned(rt, poison)
        equip(rt)
        assert rt.eval("echo(41) + 1") == 42
        assert rt.eval("tools.echo('x')") == "x"
        assert rt.eval("call(x => x + 1, 41)") == 42
        # `await` and `try` are the language's own and reach nothing that was changed.
        assert rt.eval("(async () => await later(5) + await later(6))()") == 11
        assert rt.eval("(async () => { try { await failLater() } catch { return 'caught' } })()") == "caught"
        assert rt.eval("{ let what = 'missed'; try { fail() } catch { what = 'caught' }; what }") == "caught"
        assert hits(rt) == ""
        assert rt.eval("1 + 1") == 2


@pytest.mark.parametrize("poison", POISONS)
def test_a_function_of_the_script_is_called_past_what_it_has_changed(door: type[Any], poison: str) -> None:
    with door() as rt:
        equip(rt)
        function = rt.eval("(a, b) => a + b")
        throws = rt.eval("() => { null.x }")
        poisoned(rt, poison)
        assert function(20, 22) == 42
        with pytest.raises(JavaScriptError) as caught:
            throws()
        assert "null" in str(caught.value) or poison in ("errors", "primitives")
        assert hits(rt) == ""
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
        with contextlib.suppress(JavaScriptError, ConversionError):
            rt.eval(uses[poison])
        assert hits(rt) != ""
