// `SuppressedError`, `DisposableStack` and `AsyncDisposableStack`.
(function (builtins, symbols) {
  "use strict";

  const { define, dispose, asyncDispose } = symbols;
  const {
    apply, list, defineProperty, getOwnPropertyDescriptor, ownKeys, construct, bindFunction, Error, TypeError, ReferenceError,
    Proxy,
  } = builtins;
  const NO_ARGUMENTS = list();

  function native(name, length, body) {
    const bound = apply(bindFunction, body, NO_ARGUMENTS);
    define(bound, "name", name, false, true);
    define(bound, "length", length, false, true);
    return bound;
  }

  // The same for methods and getters, which need `this`: a proxy that does nothing shows no source either.
  function cover(prototype) {
    const keys = ownKeys(prototype);
    for (let i = 0; i < keys.length; i++) {
      if (keys[i] === "constructor") continue;
      const found = getOwnPropertyDescriptor(prototype, keys[i]);
      const kind = found.get === undefined ? "value" : "get";
      found[kind] = new Proxy(found[kind], { __proto__: null });
      defineProperty(prototype, keys[i], found);
    }
  }

  // A constructor as the guest sees it, for one whose source it need not see.
  function show(name, length, target, parent) {
    const shown = native(name, length, target);
    define(shown, "prototype", target.prototype, false, false);
    define(target.prototype, "constructor", shown, true, true);
    builtins.setPrototypeOf(shown, parent);
    return shown;
  }

  function Suppressed(error, suppressed, message) {
    const values = list();
    if (message !== undefined) values[0] = `${message}`;
    const made = construct(Error, values, new.target === undefined ? Suppressed : new.target);
    define(made, "error", error, true, true);
    define(made, "suppressed", suppressed, true, true);
    return made;
  }
  Suppressed.prototype = builtins.create(Error.prototype);
  define(Suppressed.prototype, "name", "SuppressedError", true, true);
  define(Suppressed.prototype, "message", "", true, true);
  const offer = { __proto__: null, SuppressedError: show("SuppressedError", 3, Suppressed, Error) };

  // One error of two: what is thrown while another is on its way suppresses that.
  function both(error, suppressed) {
    return new Suppressed(error, suppressed, undefined);
  }

  function methodOf(value, symbol) {
    const method = value[symbol];
    if (method === undefined || method === null) return undefined;
    if (typeof method !== "function") throw new TypeError("the method that disposes is no function");
    return method;
  }

  function hasMethods(value) {
    return (typeof value === "object" && value !== null) || typeof value === "function";
  }

  // What both stacks have. A resource is its method, its receiver and the method's arguments.
  class Stack {
    #resources = list();
    #isDisposed = false;
    get disposed() {
      return this.#isDisposed;
    }
    defer(callback) {
      this.#open();
      this.#callable(callback);
      this.#add(callback, undefined, NO_ARGUMENTS);
    }
    adopt(value, callback) {
      this.#open();
      this.#callable(callback);
      const values = list();
      values[0] = value;
      this.#add(callback, undefined, values);
      return value;
    }
    static use(stack, value, isAsync) {
      stack.#open();
      if (value === undefined || value === null) {
        if (isAsync) stack.#add(undefined, undefined, NO_ARGUMENTS);
        return value;
      }
      if (!hasMethods(value)) throw new TypeError("a resource is an object");
      const method = (isAsync ? methodOf(value, asyncDispose) : undefined) ?? methodOf(value, dispose);
      if (method === undefined) throw new TypeError("the object has no method that disposes of it");
      stack.#add(method, value, NO_ARGUMENTS);
      return value;
    }
    // The resources, for somebody else to dispose of; `undefined` when that has happened.
    static end(stack) {
      if (stack.#isDisposed) return undefined;
      stack.#isDisposed = true;
      const resources = stack.#resources;
      stack.#resources = list();
      return resources;
    }
    static move(from, to) {
      from.#open();
      to.#resources = Stack.end(from);
      return to;
    }
    #open() {
      if (this.#isDisposed) throw new ReferenceError("the stack has been disposed of");
    }
    #callable(callback) {
      if (typeof callback !== "function") throw new TypeError("what disposes is a function");
    }
    #add(method, receiver, values) {
      this.#resources[this.#resources.length] = { __proto__: null, method, receiver, values };
    }
  }
  const { use, end, move } = Stack;

  class DisposableStack extends Stack {
    use(value) {
      return use(this, value, false);
    }
    move() {
      return move(this, new DisposableStack());
    }
    dispose() {
      const resources = end(this);
      if (resources === undefined) return;
      let thrown;
      let hasThrown = false;
      for (let i = resources.length - 1; i >= 0; i--) {
        const { method, receiver, values } = resources[i];
        try {
          apply(method, receiver, values);
        } catch (error) {
          thrown = hasThrown ? both(error, thrown) : error;
          hasThrown = true;
        }
      }
      if (hasThrown) throw thrown;
    }
  }

  class AsyncDisposableStack extends Stack {
    use(value) {
      return use(this, value, true);
    }
    move() {
      return move(this, new AsyncDisposableStack());
    }
    async disposeAsync() {
      const resources = end(this);
      if (resources === undefined) return;
      let thrown;
      let hasThrown = false;
      for (let i = resources.length - 1; i >= 0; i--) {
        const { method, receiver, values } = resources[i];
        try {
          await (method === undefined ? undefined : apply(method, receiver, values));
        } catch (error) {
          thrown = hasThrown ? both(error, thrown) : error;
          hasThrown = true;
        }
      }
      if (hasThrown) throw thrown;
    }
  }

  for (const [name, target, symbol, method] of [
    ["DisposableStack", DisposableStack, dispose, "dispose"],
    ["AsyncDisposableStack", AsyncDisposableStack, asyncDispose, "disposeAsync"],
  ]) {
    const { prototype } = target;
    // Each has these of its own, as the language says.
    for (const shared of ["disposed", "defer", "adopt"]) {
      defineProperty(prototype, shared, getOwnPropertyDescriptor(Stack.prototype, shared));
    }
    builtins.setPrototypeOf(prototype, builtins.ObjectPrototype);
    cover(prototype);
    define(prototype, symbol, prototype[method], true, true);
    define(prototype, builtins.toStringTag, name, false, true);
    offer[name] = show(name, 0, target, builtins.getPrototypeOf(native));
  }
  return offer;
})
