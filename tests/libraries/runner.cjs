// Runs scripts and then a program in Node, without what marks it as Node and from a given moment on, and prints the program's value.
const { stdout } = process;
const read = require("fs").readFileSync(0, "utf8");
const { runInThisContext } = require("vm");
for (const name of ["process", "Buffer", "global", "navigator", "fetch", "Worker", "localStorage"]) delete globalThis[name];
const { now, scripts, program } = JSON.parse(read);

// Of the interfaces that libraries ask of a browser Node lacks this one.
globalThis.FileReader ??= class FileReader {
  async readAsArrayBuffer(blob) {
    this.result = await blob.arrayBuffer();
    this.onload?.();
    this.onloadend?.();
  }
  async readAsDataURL(blob) {
    this.result = `data:${blob.type};base64,${btoa(String.fromCharCode(...new Uint8Array(await blob.arrayBuffer())))}`;
    this.onload?.();
    this.onloadend?.();
  }
};

const Real = Date;
const shift = now - Real.now();
globalThis.Date = class Date extends Real {
  constructor(...values) {
    super(...(values.length === 0 ? [Real.now() + shift] : values));
  }
  static now() {
    return Real.now() + shift;
  }
};

for (const script of scripts) runInThisContext(script);
Promise.resolve(runInThisContext(program)).then((value) => stdout.write(JSON.stringify(value)));
