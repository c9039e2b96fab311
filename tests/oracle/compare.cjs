// Compares the scanner's idea of what is a variable or keyword, a property, a string, a comment, a template and a regular
// expression with acorn's, word by word, on the files of npm packages: node --expose-internals compare.cjs SPANS_PROGRAM < LIST
//
// LIST names a file a line. acorn is the one that Node itself has inside.
//
// Prints one JSON object: how many files and words were compared, how many words differ, where the first few are, and
// which files acorn itself refuses.
const { spawnSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const acorn = require("internal/deps/acorn/acorn/dist/acorn");

const CODES = { code: 0, string: 1, comment: 2, template: 3, regex: 4, property: 5, type: 6, either: 7 };
const NAMES = Object.keys(CODES);
// The `$` of `${` is a word to neither.
const WORD = /[A-Za-z_][\w$]*|\$(?!\{)[\w$]*/g;

/** Words that modify a key, which the scanner takes for one: nothing looks for them. */
const MODIFIERS = new Set(["get", "set", "static", "async", "accessor"]);

/** Marks the names of properties in a syntax tree; a shorthand is a key and a variable at once. */
function markProperties(program, classes) {
  const todo = [program];
  while (todo.length > 0) {
    const node = todo.pop();
    const name = { MemberExpression: "property", MetaProperty: "property", Property: "key", MethodDefinition: "key", PropertyDefinition: "key" }[node.type];
    const key = name && !node.computed && node[name];
    if (key && key.type === "Identifier") {
      classes.fill(node.shorthand ? CODES.either : CODES.property, key.start, key.end);
    }
    for (const child of Object.values(node).flat()) {
      if (child && typeof child.type === "string") todo.push(child);
    }
  }
}

/** A class for each UTF-16 unit, as acorn's parser sees it; null when it does not parse. */
function oracle(source, name) {
  const modes = /\.mjs$|\.module\.js$/.test(name) ? ["module", "script"] : ["script", "module"];
  for (const sourceType of modes) {
    const classes = new Uint8Array(source.length);
    try {
      const program = acorn.parse(source, {
        ecmaVersion: "latest",
        sourceType,
        allowHashBang: true,
        allowReturnOutsideFunction: sourceType === "script",
        onToken: ({ type, start, end }) => {
          const kind = { string: "string", template: "template", invalidTemplate: "template", regexp: "regex" }[type.label];
          if (kind) classes.fill(CODES[kind], start, end);
        },
        onComment: (block, text, start, end) => classes.fill(CODES.comment, start, end),
      });
      // acorn does not report the line of a `#!`.
      if (source.startsWith("#!")) classes.fill(CODES.comment, 0, source.search(/[\n\r\u2028\u2029]|$/));
      markProperties(program, classes);
      return classes;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return null;
}

/** The unit that each byte of the source belongs to. */
function unitsOfBytes(source, bytes) {
  if (bytes === source.length) return null;
  const units = new Uint32Array(bytes + 1);
  let byte = 0;
  let unit = 0;
  for (const character of source) {
    const length = Buffer.byteLength(character);
    units.fill(unit, byte, byte + length);
    byte += length;
    unit += character.length;
  }
  units[bytes] = unit;
  return units;
}

const program = process.argv[2];
const files = readFileSync(0, "utf8").split("\n").filter(Boolean);
const result = { files: 0, words: 0, differences: 0, places: [], refused: [] };
for (let first = 0; first < files.length; first += 200) {
  const batch = files.slice(first, first + 200);
  const run = spawnSync(program, batch, { encoding: "utf8", maxBuffer: 1 << 30 });
  if (run.status !== 0) throw new Error(`${program}: ${run.error ?? run.stderr}`);
  const outputs = run.stdout.split(/^= .*\n/m).slice(1);
  batch.forEach((name, index) => {
    const raw = readFileSync(name);
    const source = raw.toString("utf8");
    const expected = Buffer.from(source, "utf8").equals(raw) ? oracle(source, name) : null;
    if (expected === null) {
      result.refused.push(name);
      return;
    }
    const found = new Uint8Array(source.length);
    const units = unitsOfBytes(source, raw.length);
    for (const line of outputs[index].split("\n").slice(0, -1)) {
      const [kind, start, end] = line.split(" ");
      found.fill(CODES[kind], units ? units[start] : +start, units ? units[end] : +end);
    }
    result.files += 1;
    let isFirst = true;
    for (const { 0: word, index: at } of source.matchAll(WORD)) {
      result.words += 1;
      if (found[at] === expected[at] || expected[at] === CODES.either) continue;
      if (MODIFIERS.has(word) && found[at] === CODES.property && expected[at] === CODES.code) continue;
      result.differences += 1;
      if (isFirst && result.places.length < 20) {
        const context = source.slice(Math.max(0, at - 40), at + 40);
        result.places.push({ name, at, word, found: NAMES[found[at]], expected: NAMES[expected[at]], context });
      }
      isFirst = false;
    }
  });
}
console.log(JSON.stringify(result, null, 1));
