// The asynchronous half of `WebAssembly`. The engine's own compiles on its run loop, which nobody turns here, so that its
// promises would never settle. This one compiles at once; the promises settle with the next job.
(function () {
  "use strict";

  if (typeof WebAssembly !== "object") return;
  const { Module, Instance } = WebAssembly;
  const { apply } = Reflect;
  const { isView } = ArrayBuffer;
  const bufferLength = Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength").get;
  const NO_ARGUMENTS = Object.setPrototypeOf([], null);

  // Bytes to compile; what is neither bytes nor a module is refused as a module.
  function isBytes(value) {
    if (isView(value)) return true;
    try {
      apply(bufferLength, value, NO_ARGUMENTS);
      return true;
    } catch {
      return false;
    }
  }

  const replacements = {
    async compile(bytes) {
      return new Module(bytes);
    },
    async instantiate(source, imports) {
      if (!isBytes(source)) return new Instance(source, imports);
      const module = new Module(source);
      return { module, instance: new Instance(module, imports) };
    },
  };

  for (const name of ["compile", "instantiate"]) {
    // What a guest sees of a function that has been bound is what it sees of the engine's own.
    const native = replacements[name].bind(undefined);
    Object.defineProperty(native, "name", { value: name, writable: false, enumerable: false, configurable: true });
    Object.defineProperty(native, "length", { value: 1, writable: false, enumerable: false, configurable: true });
    WebAssembly[name] = native;
  }
  delete WebAssembly.compileStreaming;
  delete WebAssembly.instantiateStreaming;
})
