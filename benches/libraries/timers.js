// Two libraries set timers for what a page would show later. Nothing here waits for it, so in every engine none runs.
for (const name of ["setTimeout", "clearTimeout", "setInterval", "clearInterval"]) globalThis[name] = () => 0;
