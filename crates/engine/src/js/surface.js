// Removes what a guest shall not find: shared memory and threads of execution, machine code, and the console of the
// engine's own debugger. Returns what the host needs of WebAssembly to load modules, where it may.
(function (isReduced, hostHasWebAssembly, guestHasWebAssembly) {
  "use strict";
  const { getOwnPropertyDescriptor } = Object;
  let compiler;
  if (hostHasWebAssembly && typeof WebAssembly === "object") {
    const { Module, Instance, Memory, Global, LinkError } = WebAssembly;
    compiler = {
      __proto__: null,
      Module,
      Instance,
      exportsOf: getOwnPropertyDescriptor(Instance.prototype, "exports").get,
      bufferOf: getOwnPropertyDescriptor(Memory.prototype, "buffer").get,
      valueOf: getOwnPropertyDescriptor(Global.prototype, "value").get,
      LinkErrorPrototype: LinkError.prototype,
    };
  }
  if (isReduced) {
    delete globalThis.SharedArrayBuffer;
    delete globalThis.Atomics;
  }
  if (!guestHasWebAssembly) delete globalThis.WebAssembly;
  delete globalThis.console;
  return compiler;
})
