// Streams: objects of the guest that the host asks for one item after the other, and the other way round.
//
// `pull` and `finish` run guest code, as guest code: its iterators, their results and whatever is looked up on the way
// are the guest's own. Nothing is converted here.
(function (builtins) {
  "use strict";

  const {
    apply, bindFunction, defineProperty, guard, list, setPrototypeOf, asyncIterator, AsyncIteratorPrototype, TypeError,
  } = builtins;

  const NO_ARGUMENTS = list();
  // What a stream of the host is asked, as in the wire's `StreamRequest`.
  const NEXT = 0, RETURN = 1;

  function isObject(value) {
    return (typeof value === "object" && value !== null) || typeof value === "function";
  }

  // What `for await` does at its beginning; `stream` is the record that flatten.js makes.
  function open(stream) {
    if (stream.iterator !== undefined) return;
    const iterator = apply(stream.iterable[asyncIterator], stream.iterable, NO_ARGUMENTS);
    if (!isObject(iterator)) throw new TypeError("[Symbol.asyncIterator]() did not return an object");
    stream.next = iterator.next;
    stream.iterator = iterator;
  }

  // The record is without prototype, so that nobody is asked whether it is a promise.
  function ended() {
    return { __proto__: null, done: true, value: undefined };
  }

  // What `for await` does each time round.
  async function pull(stream) {
    open(stream);
    const result = await apply(stream.next, stream.iterator, NO_ARGUMENTS);
    if (!isObject(result)) throw new TypeError("next() did not give an object");
    return result.done ? ended() : { __proto__: null, done: false, value: result.value };
  }

  // What `for await` does when it is left early. A stream that was never asked has nothing to end.
  async function finish(stream) {
    const iterator = stream.iterator;
    if (iterator === undefined) return ended();
    const method = iterator.return;
    if (method !== undefined && method !== null) await apply(method, iterator, NO_ARGUMENTS);
    return ended();
  }

  async function nextItem() {
    if (this.ended) return { value: undefined, done: true };
    let answer;
    try {
      answer = await this.ask(this.handle, NEXT);
    } catch (error) {
      await end(this);
      throw error;
    }
    // An array that the host has made: what is read is its own.
    if (answer.length > 0) return { value: answer[0], done: false };
    this.ended = true;
    return { value: undefined, done: true };
  }

  async function returnEarly(value) {
    await end(this);
    return { value: await value, done: true };
  }

  async function throwInto(error) {
    await end(this);
    throw error;
  }

  // Once; that it failed matters less than why it was asked for.
  async function end(source) {
    if (source.ended) return;
    source.ended = true;
    try {
      await source.ask(source.handle, RETURN);
    } catch {}
  }

  // What a guest sees of a function that has been bound is what it sees of the engine's own.
  function method(iterator, name, body, source) {
    const receiver = list();
    receiver[0] = source;
    const value = apply(bindFunction, body, receiver);
    const hidden = (value) => ({ __proto__: null, value, writable: true, enumerable: false, configurable: true });
    defineProperty(value, "name", hidden(name));
    defineProperty(iterator, name, hidden(value));
  }

  // The guest's iterator over a stream of the host; `ask` is the native function that asks it.
  function make(handle, ask) {
    const source = { __proto__: null, handle, ask, ended: false };
    const iterator = setPrototypeOf({}, AsyncIteratorPrototype);
    method(iterator, "next", nextItem, source);
    method(iterator, "return", returnEarly, source);
    method(iterator, "throw", throwInto, source);
    return iterator;
  }

  return { __proto__: null, pull, finish, make: guard(make) };
})
