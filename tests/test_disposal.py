"""What `using` needs of the language's built-ins, in every runtime."""

from __future__ import annotations

from conftest import AnyRuntime


def test_using_disposes_in_reverse(rt: AnyRuntime) -> None:
    assert rt.eval("[typeof Symbol.dispose, typeof Symbol.asyncDispose, Symbol.dispose.toString()]") == [
        "symbol",
        "symbol",
        "Symbol(Symbol.dispose)",
    ]
    assert rt.eval(
        """
        const log = []; const resource = name => ({[Symbol.dispose]() { log.push(name) }});
        { using a = resource('a'); using b = resource('b'); log.push('body') }
        log"""
    ) == ["body", "b", "a"]
    assert rt.eval(
        """
        let ended = 0;
        { using it = (function* () { try { yield 1 } finally { ended = 1 } })(); it.next() }
        ended"""
    )


def test_an_error_that_disposing_throws_suppresses_the_one_before(rt: AnyRuntime) -> None:
    assert rt.eval(
        """(() => {
          try { using a = {[Symbol.dispose]() { throw new RangeError('second') }}; throw new TypeError('first') }
          catch (e) {
            return [e.name, e instanceof SuppressedError, e instanceof Error, e.error.message, e.suppressed.message];
          }
        })()"""
    ) == ["SuppressedError", True, True, "second", "first"]
    made = "(e => [e.error, e.suppressed, e.message, Object.keys(e), SuppressedError.length])"
    assert rt.eval(f"{made}(new SuppressedError(1, 2, 'm'))") == [1, 2, "m", [], 3]
    assert rt.eval(f"{made}(SuppressedError(1, 2))") == [1, 2, "", [], 3]


def test_a_stack_disposes_of_what_was_put_on_it_in_reverse(rt: AnyRuntime) -> None:
    assert rt.eval(
        """
        const seen = []; const stack = new DisposableStack();
        stack.defer(() => seen.push('deferred'));
        seen.push(stack.adopt(5, v => seen.push('adopted ' + v)));
        stack.use({[Symbol.dispose]() { seen.push('used') }}); stack.use(null);
        const moved = stack.move();
        seen.push(stack.disposed, moved.disposed);
        moved.dispose(); moved.dispose();
        seen.push(moved.disposed);
        try { moved.defer(() => 0) } catch (e) { seen.push(e.name) }
        seen.push(Object.prototype.toString.call(moved), moved[Symbol.dispose] === moved.dispose);
        seen"""
    ) == [
        *(5, True, False, "used", "adopted 5", "deferred", True, "ReferenceError"),
        *("[object DisposableStack]", True),
    ]


def test_an_asynchronous_stack_waits_for_each(rt: AnyRuntime) -> None:
    assert rt.eval(
        """
        const order = []; const several = new AsyncDisposableStack();
        several.use({async [Symbol.asyncDispose]() { await 0; order.push('async') }});
        several.defer(async () => { throw new Error('one') });
        several.use({[Symbol.dispose]() { throw new Error('two') }});
        try { await several.disposeAsync() } catch (e) { order.push(e.name, e.error.message, e.suppressed.message) }
        order"""
    ) == ["async", "SuppressedError", "one", "two"]


def test_nothing_of_it_shows_its_source(rt: AnyRuntime) -> None:
    sources = rt.eval(
        """
        const functions = [Iterator.prototype[Symbol.dispose], SuppressedError, function own() {}];
        const agen = Object.getPrototypeOf(async function* () {}).prototype;
        functions.push(Object.getPrototypeOf(agen)[Symbol.asyncDispose]);
        for (const Stack of [DisposableStack, AsyncDisposableStack]) {
          functions.push(Stack);
          for (const key of Reflect.ownKeys(Stack.prototype)) {
            const { value, get } = Object.getOwnPropertyDescriptor(Stack.prototype, key);
            functions.push(value, get);
          }
        }
        functions.filter(f => typeof f === 'function').map(String).map(text => text.includes('[native code]'))"""
    )
    assert len(sources) > 15
    # That of the script's own function is shown.
    assert sources.count(False) == 1
    assert rt.eval("DisposableStack.prototype.dispose === DisposableStack.prototype[Symbol.dispose]")
    assert rt.eval("[DisposableStack.prototype.use.name, DisposableStack.prototype.adopt.length]") == [
        "use",
        2,
    ]
