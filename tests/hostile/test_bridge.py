"""What a script can find out about, and do to, the functions that the host has bound."""

from __future__ import annotations

from typing import Any

import pytest

from pydeno import ConversionError, InvalidInput, IsolatedRuntime, JavaScriptError, Runtime

AnyRuntime = Runtime | IsolatedRuntime

FUNCTIONS = ["echo", "later", "tools.echo", "console.log"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_host_function_tells_nothing_about_where_it_comes_from(victim: AnyRuntime, function: str) -> None:
    told = victim.eval(
        f"{{ const f = {function}; [Reflect.ownKeys(f).map(String).sort().join(), f.name, String(f), typeof f.prototype,"
        " Object.getPrototypeOf(f) === Function.prototype, f.constructor === Function] }"
    )
    keys, name, text, prototype, is_function, constructor = told
    assert set(keys.split(",")) <= {"length", "name", ""}
    assert name == function.rpartition(".")[2]
    assert "[native code]" in text
    assert "/" not in text
    assert "pydeno" not in text
    assert (prototype, is_function, constructor) == ("undefined", True, True)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("key", ["caller", "arguments", "callee"])
def test_a_host_function_does_not_show_who_called(victim: AnyRuntime, function: str, key: str) -> None:
    code = f"function outer() {{ try {{ return String({function}.{key}) }} catch (error) {{ return error.name }} }} outer()"
    assert victim.eval(code) in ("undefined", "null", "TypeError")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_host_function_is_no_constructor(victim: AnyRuntime, function: str) -> None:
    assert victim.eval(f"try {{ new {function}() }} catch (error) {{ error.name }}") == "TypeError"
    assert (
        victim.eval(f"try {{ Reflect.construct(Object, [], {function}) }} catch (error) {{ error.name }}")
        == "TypeError"
    )
    assert (
        victim.eval(f"try {{ (class extends {function} {{}}, 'made') }} catch (error) {{ error.name }}")
        == "TypeError"
    )


@pytest.mark.parametrize("this", ["null", "globalThis", "new Proxy({}, {})", "Symbol()", "5", "echo"])
def test_what_a_host_function_is_called_on_does_not_matter(victim: AnyRuntime, this: str) -> None:
    assert victim.eval(f"echo.call({this}, 1)") == 1
    assert victim.eval(f"Reflect.apply(later, {this}, [2])") == 2


@pytest.mark.parametrize(
    "failing",
    [
        "fail()",
        "await failLater()",
        "echo(Symbol())",
        "await later(Symbol())",
        "call(() => { throw new Error('inner') })",
        "call(5)",
        "tools.echo(new Proxy({}, {}))",
        "echo({get a() { return 1 }})",
        "[1].map(fail)",
        "await Promise.all([failLater()])",
    ],
)
def test_the_stack_of_an_error_names_the_scripts_own_files_alone(victim: AnyRuntime, failing: str) -> None:
    code = (
        f"(async () => {{ try {{ {failing} }} catch (error) {{ return [error.stack ?? '', error.message, Object.keys(error).join(), "
        "Reflect.ownKeys(error).map(String).join(), error.constructor === globalThis[error.name]] } })()"
    )
    stack, message, visible, keys, is_own = victim.eval(code)
    for line in stack.splitlines():
        assert "script.js" in line or "@" not in line or line.endswith(("@[native code]", "@")), stack
    for word in ("prelude", "bridge", "flatten", "pydeno", ".py", "secret", "/", "Traceback"):
        assert word not in stack.replace("script.js", ""), stack
        assert word not in message
    assert set(visible.split(",")) <= {"", "line", "column", "sourceURL"}
    assert set(keys.split(",")) <= {"stack", "message", "line", "column", "sourceURL", "name"}
    assert is_own


def test_every_object_that_the_host_makes_is_of_the_scripts_own_realm(victim: AnyRuntime) -> None:
    victim.bind_function("make", lambda: {"list": [1], "set": {1}, "bytes": b"x", "object": {"a": 1}})
    code = """{ const made = make();
        [made instanceof Object, made.list instanceof Array, made.set instanceof Set, made.bytes instanceof Uint8Array,
         made.list.constructor.constructor === Function, later() instanceof Promise, echo instanceof Function,
         made.list.constructor === Array] }"""
    assert victim.eval(code) == [True] * 8
    assert victim.eval(
        "{ let e; try { fail() } catch (error) { e = error }; [e instanceof Error, Object.getPrototypeOf(e) === Error.prototype] }"
    ) == [
        True,
        True,
    ]


def test_code_made_through_a_host_function_sees_the_scripts_globals_alone(victim: AnyRuntime) -> None:
    names = victim.eval("echo.constructor('return Object.getOwnPropertyNames(globalThis)')()")
    assert sorted(names) == sorted(victim.eval("Object.getOwnPropertyNames(globalThis)"))
    for name in (
        "require",
        "process",
        "Deno",
        "std",
        "os",
        "quit",
        "load",
        "readFile",
        "print",
        "gc",
        "$vm",
        "debugger",
    ):
        assert name not in names


def test_nothing_of_the_host_is_left_on_the_global_object(victim: AnyRuntime) -> None:
    with Runtime() if isinstance(victim, Runtime) else IsolatedRuntime() as bare:
        plain = set(bare.eval("Object.getOwnPropertyNames(globalThis)"))
    equipped = set(victim.eval("Object.getOwnPropertyNames(globalThis)"))
    assert equipped - plain == {"echo", "later", "fail", "failLater", "call", "tools", "console"}
    assert victim.eval("Object.keys(globalThis).filter(key => typeof globalThis[key] === 'function')") == []


@pytest.mark.parametrize("depth", ["host", "async host", "deep argument", "deep result", "toString", "json"])
def test_an_exhausted_stack_at_the_bridge_is_a_range_error(victim: AnyRuntime, depth: str) -> None:
    codes = {
        "host": "function f(n) { return f(n + 1) + echo(n) } f(0)",
        "async host": "async function f(n) { await f(n + 1); return later(n) } f(0)",
        "deep argument": "let v = []; for (let i = 0; i < 1e5; i++) v = [v]; echo(v)",
        "deep result": "let w = []; for (let i = 0; i < 1e5; i++) w = [w]; w",
        "toString": "const o = {toString() { return echo('' + this) }}; '' + o",
        "json": "let j = {}; for (let i = 0; i < 1e5; i++) j = {j}; later(j)",
    }
    with pytest.raises((JavaScriptError, ConversionError)) as caught:
        victim.eval(codes[depth])
    if isinstance(caught.value, JavaScriptError):
        assert caught.value.name in ("RangeError", "TypeError")


@pytest.mark.parametrize(
    "function",
    ["echo(1)", "later(1)", "fail()", "call(() => 1)", "console.log({a: [1]})", "echo({a: [1, [2]]})"],
)
def test_a_host_function_with_an_almost_full_stack_works_or_throws(victim: AnyRuntime, function: str) -> None:
    """On the way back from the end of the stack every depth tries the call."""
    counted = "thrown" if function == "fail()" else "right"
    code = f"""
        let right = 0, thrown = 0;
        function down() {{
            try {{ down() }} catch {{}}
            if ({counted} > 50) return;
            try {{ {function}; right++ }} catch (error) {{ thrown++ }}
        }}
        down(); {counted}
    """
    assert victim.eval(f"{{ {code} }}") > 50


def test_calls_between_host_and_script_nest_only_so_deep(victim: AnyRuntime) -> None:
    victim.eval("var deepest = 0; function f(n) { deepest = Math.max(deepest, n); return call(f, n + 1) }")
    with pytest.raises(JavaScriptError):
        victim.eval("f(0)")
    assert 3 < victim.eval("deepest") < 100


def test_a_script_that_replaces_a_host_function_changes_it_for_itself_alone(victim: AnyRuntime) -> None:
    victim.eval("globalThis.original = echo; echo = () => 'mine'; tools.echo = () => 'mine'")
    assert victim.eval("[echo(1), tools.echo(1), original(1)]") == ["mine", "mine", 1]
    victim.eval("echo = original; Object.freeze(tools); Object.freeze(echo)")
    assert victim.eval("echo(2)") == 2


@pytest.mark.parametrize(
    "take",
    [
        "Object.freeze(globalThis.tools = {})",
        "globalThis.tools = new Proxy({}, {defineProperty: () => false})",
        "Object.defineProperty(globalThis, 'tools', {value: 1, writable: false, configurable: false})",
    ],
)
def test_a_name_that_the_script_has_taken_is_an_error_and_no_silent_loss(door: type[Any], take: str) -> None:
    with door() as rt:
        rt.eval(f"{take}; 0")
        with pytest.raises((JavaScriptError, InvalidInput), match="cannot be bound"):
            rt.bind_object("tools", {"a": lambda: "a", "b": lambda: "b"})
            rt.eval("0")
        # What is bound afterwards is what it says.
        rt.bind_function("c", lambda: "c")
        rt.bind_function("d", lambda: "d")
        assert rt.eval("[c(), d()]") == ["c", "d"]


ERRORS = {
    "a symbol as name": "const e = new Error('m'); e.name = Symbol('n'); throw e",
    "a getter as message": "throw Object.defineProperty(new Error(), 'message', {get() { throw 1 }})",
    "a looping toString": "throw {toString() { for (;;) {} }}",
    "a proxy": "throw new Proxy(new Error('x'), {get() { throw 1 }})",
    "a revoked proxy": "const r = Proxy.revocable({}, {}); r.revoke(); throw r.proxy",
    "itself as cause": "const e = new Error('x'); e.cause = e; throw e",
    "an aggregate of itself": "const e = new AggregateError([]); e.errors.push(e); throw e",
    "a frozen error": "throw Object.freeze(new Error('frozen'))",
    "a symbol": "throw Symbol('thrown')",
    "undefined": "throw undefined",
    "a stack of its own": "const e = new Error('x'); e.stack = {toString() { for (;;) {} }}; throw e",
    "a null prototype": "throw Object.setPrototypeOf(new Error('x'), null)",
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("way", ["thrown", "rejected", "in a callback", "in a reaction"])
def test_whatever_is_thrown_is_a_javascript_error(victim: AnyRuntime, error: str, way: str) -> None:
    body = ERRORS[error]
    code = {
        "thrown": f"(() => {{ {body} }})()",
        "rejected": f"(async () => {{ {body} }})()",
        "in a callback": f"call(() => {{ {body} }})",
        "in a reaction": f"later(1).then(() => {{ {body} }})",
    }[way]
    with pytest.raises(JavaScriptError) as caught:
        victim.eval(code)
    assert isinstance(str(caught.value), str)
