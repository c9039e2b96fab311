// Removes what a guest shall not find: shared memory and threads of execution, machine code, and the console of the
// engine's own debugger.
(function (reduced) {
  "use strict";
  if (reduced) {
    for (const name of ["SharedArrayBuffer", "Atomics", "WebAssembly"]) delete globalThis[name];
  }
  delete globalThis.console;
})
