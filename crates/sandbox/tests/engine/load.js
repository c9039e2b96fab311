// Uses as much of the engine as one script can in about a second. Each step returns true, or throws what it must.
const wrong = [];
let steps = 0;

function step(name, run) {
  steps += 1;
  let result;
  try {
    result = run();
  } catch (error) {
    result = String(error);
  }
  if (result !== true) wrong.push(`${name}: ${String(result).slice(0, 80)}`);
}

function throws(kind, run) {
  try {
    run();
  } catch (error) {
    return error instanceof kind;
  }
  return false;
}

step("many objects", () => {
  const items = Array.from({ length: 100000 }, (_, i) => ({ i, s: "x" + i, f: () => i }));
  items.sort((a, b) => b.i - a.i);
  return JSON.parse(JSON.stringify(items.map((item) => item.s))).length === 100000;
});
step("maps thrown away", () => {
  for (let k = 0; k < 10; k++) {
    const map = new Map();
    for (let i = 0; i < 20000; i++) map.set("k" + i, { v: [i] });
  }
  return true;
});
step("large buffers", () => {
  const buffers = [];
  for (let i = 0; i < 30; i++) buffers.push(new Uint8Array(4 << 20).fill(i));
  return buffers[29][5] === 29;
});
step("a string without end", () => throws(RangeError, () => { for (let s = "x"; ; ) s += s; }));
step("a buffer too large", () => throws(RangeError, () => new ArrayBuffer(2 ** 45)));
step("a growing buffer", () => {
  const buffer = new ArrayBuffer(1024, { maxByteLength: 1 << 26 });
  buffer.resize(1 << 25);
  return buffer.byteLength === 1 << 25;
});
step("deep recursion", () => throws(RangeError, function down() { return down() + 1; }));
step("a full array", () => throws(RangeError, () => new Array(2 ** 32)));
step("regular expressions", () => {
  for (let i = 0; i < 100; i++) new RegExp("(a+)+b" + i + "|[x-z]{" + i + "}", "v").test("a".repeat(16));
  return /(?<y>\d{4})/.exec("in 2026").groups.y === "2026";
});
for (const locale of ["en-US", "de-DE", "ja-JP", "ar-EG", "zh-CN", "hi-IN"]) {
  step(`Intl in ${locale}`, () => {
    new Intl.NumberFormat(locale, { style: "currency", currency: "EUR" }).format(1234.5);
    new Intl.DateTimeFormat(locale, { timeZone: "Asia/Tokyo", dateStyle: "full", timeStyle: "long" }).format(0);
    new Intl.Collator(locale).compare("a", "b");
    new Intl.PluralRules(locale).select(3);
    new Intl.ListFormat(locale).format(["a", "b"]);
    new Intl.RelativeTimeFormat(locale).format(-1, "day");
    new Intl.DisplayNames(locale, { type: "region" }).of("US");
    return [...new Intl.Segmenter(locale, { granularity: "word" }).segment("hello big world")].length === 5;
  });
}
for (const zone of ["America/New_York", "Europe/Berlin", "Asia/Kolkata"]) {
  step(`dates in ${zone}`, () => new Date(0).toLocaleString("en-US", { timeZone: zone }).length > 10);
}
step("the clock", () => Date.now() > 1.6e12 && new Date().toString().length > 10);
step("an integer loop", () => {
  let x = 0;
  for (let i = 0; i < 3e6; i++) x = (x + i * 3) | 0;
  return x !== 0;
});
step("recursion", () => {
  const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
  return fib(24) === 46368;
});
step("properties added and deleted", () => {
  const o = {};
  for (let i = 0; i < 100000; i++) {
    o["p" + (i % 500)] = i;
    delete o["p" + ((i * 7) % 500)];
  }
  return true;
});
step("floating point", () => {
  const values = new Float64Array(1 << 18);
  for (let k = 0; k < 5; k++) for (let i = 0; i < values.length; i++) values[i] += Math.sqrt(i);
  return values[4] === 10;
});
step("eval and Function", () => eval("20 + 1") + new Function("a", "return a + 1")(20) === 42);
step("weak references", () => {
  const registry = new FinalizationRegistry(() => {});
  for (let i = 0; i < 10000; i++) registry.register({}, i);
  return new WeakRef(registry).deref() === registry;
});
step("promises", () => {
  (async () => { for (let i = 0; i < 1000; i++) await i; })();
  return true;
});
step("BigInt", () => {
  let n = 1n;
  for (let i = 1n; i < 1000n; i++) n *= i;
  return n.toString().length === 2565;
});
step("large arrays", () => {
  const big = new Array(1e6).fill(1.5).map((x) => x * 2);
  return big[999999] === 3;
});
step("sparse arrays", () => {
  const sparse = [];
  sparse[2 ** 31] = 1;
  return sparse.length === 2 ** 31 + 1;
});
step("generators", () => {
  function* count() { for (let i = 0; i < 10000; i++) yield i; }
  return [...count()].length === 10000;
});
step("proxies", () => new Proxy({}, { get: (_, key) => key }).anything === "anything");
step("errors with stacks", () => typeof new Error("x").stack === "string");
step("structured text", () => "ß".normalize("NFD").localeCompare("ss", "de") !== 2);
step("WebAssembly", () => {
  if (typeof WebAssembly === "undefined") return true;
  const bytes = new Uint8Array([
    0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3, 97, 100, 100, 0, 0, 10, 9,
    1, 7, 0, 32, 0, 32, 1, 106, 11,
  ]);
  const { add } = new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports;
  for (let k = 0; k < 100000; k++) add(k, k);
  new WebAssembly.Memory({ initial: 10, maximum: 1000 }).grow(100);
  return add(20, 22) === 42;
});
step("shared memory between nobody", () => {
  if (typeof SharedArrayBuffer === "undefined") return true;
  const shared = new Int32Array(new SharedArrayBuffer(64));
  return Atomics.add(shared, 0, 5) === 0 && Atomics.load(shared, 0) === 5;
});

wrong.length === 0 ? `${steps} steps, as expected` : wrong.join("\n");
