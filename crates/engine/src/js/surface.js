// Removes what a guest shall not find: shared memory and threads of execution, machine code, and the console of the
// engine's own debugger.
(function (isReduced, hasWebAssembly) {
  "use strict";
  if (isReduced) {
    delete globalThis.SharedArrayBuffer;
    delete globalThis.Atomics;
  }
  if (!hasWebAssembly) delete globalThis.WebAssembly;
  delete globalThis.console;
})
