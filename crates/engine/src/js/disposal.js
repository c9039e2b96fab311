// What `using` needs of the language's built-ins, where the engine has none of it yet: the symbols, and, when the guest first asks
// for one of them, `SuppressedError` and the stacks of resources.
(function (builtins, load) {
  "use strict";

  const { apply, list, defineProperty, getOwnPropertyDescriptor, Proxy } = builtins;
  if (typeof Symbol.dispose === "symbol") return;

  const NO_ARGUMENTS = list();
  const dispose = Symbol("Symbol.dispose");
  const asyncDispose = Symbol("Symbol.asyncDispose");

  function define(object, name, value, writable, configurable) {
    defineProperty(object, name, { __proto__: null, value, writable, enumerable: false, configurable });
  }

  define(Symbol, "dispose", dispose, false, false);
  define(Symbol, "asyncDispose", asyncDispose, false, false);

  // An iterator is disposed of by ending it.
  const iteration = {
    [dispose]() {
      const end = this.return;
      if (end !== undefined && end !== null) apply(end, this, NO_ARGUMENTS);
    },
    async [asyncDispose]() {
      const end = this.return;
      if (end !== undefined && end !== null) await apply(end, this, NO_ARGUMENTS);
    },
  };
  // A proxy that does nothing shows no source.
  const shown = (body) => new Proxy(body, { __proto__: null });
  define(builtins.IteratorPrototype, dispose, shown(iteration[dispose]), true, true);
  define(builtins.AsyncIteratorPrototype, asyncDispose, shown(iteration[asyncDispose]), true, true);

  let made;

  for (const name of ["SuppressedError", "DisposableStack", "AsyncDisposableStack"]) {
    const accessors = {
      get [name]() {
        made ??= load()(builtins, { __proto__: null, define, dispose, asyncDispose });
        const value = made[name];
        try {
          define(globalThis, name, value, true, true);
        } catch {
          // The guest has frozen the global object; it stays as it is, and so does the value.
        }
        return value;
      },
      set [name](value) {
        define(globalThis, name, value, true, true);
      },
    };
    const found = getOwnPropertyDescriptor(accessors, name);
    found.get = shown(found.get);
    found.set = shown(found.set);
    found.enumerable = false;
    defineProperty(globalThis, name, found);
  }
})
