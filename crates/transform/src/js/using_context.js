(() => {
  "use strict";
  const none = {};
  const resources = [];
  let count = 0;
  const add = (asynchronous, value) => {
    if (value === null || value === undefined) {
      if (asynchronous) resources[count++] = { value, dispose: undefined, asynchronous };
      return value;
    }
    if (typeof value !== "object" && typeof value !== "function") throw new TypeError("using needs an object, null or undefined");
    let dispose;
    let wrapped = false;
    if (asynchronous) dispose = value[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")];
    if (dispose === undefined || dispose === null) {
      dispose = value[Symbol.dispose ?? Symbol.for("Symbol.dispose")];
      wrapped = asynchronous;
    }
    if (typeof dispose !== "function") throw new TypeError("the object of using has no method to dispose of it");
    resources[count++] = { value, dispose, asynchronous, wrapped };
    return value;
  };
  return {
    e: none,
    u: (value) => add(false, value),
    a: (value) => add(true, value),
    d() {
      let error = this.e;
      const fail = (thrown) => {
        if (error === none) error = thrown;
        else if (typeof SuppressedError === "function") error = new SuppressedError(thrown, error);
        else error = Object.assign(new Error("an error was suppressed during disposal"), { name: "SuppressedError", error: thrown, suppressed: error });
      };
      const end = () => {
        if (error !== none) throw error;
      };
      const next = (waiting) => {
        while (count > 0) {
          const { value, dispose, asynchronous, wrapped } = resources[--count];
          if (!asynchronous && waiting) {
            count++;
            return Promise.resolve().then(() => next(false));
          }
          try {
            const result = dispose === undefined ? undefined : dispose.call(value);
            if (asynchronous) {
              if (dispose === undefined) waiting = true;
              else return Promise.resolve(wrapped ? undefined : result).then(() => next(false), (thrown) => (fail(thrown), next(false)));
            }
          } catch (thrown) {
            fail(thrown);
          }
        }
        if (waiting) return Promise.resolve().then(end);
        return end();
      };
      return next(false);
    },
  };
})
