// Compares the scanner's idea of what is code, a string, a comment, a template, a regular expression and the text of JSX with
// TypeScript's, word by word: node typescript.cjs TYPESCRIPT SPANS_PROGRAM < LIST
//
// TYPESCRIPT is the folder of its npm package, LIST names a file a line. Prints one JSON object, as compare.cjs does.
const { spawnSync } = require("node:child_process");
const { readFileSync } = require("node:fs");

const [folder, program] = process.argv.slice(2);
const ts = require(folder);

const CODES = { comment: 0, code: 1, string: 2, template: 3, regex: 4, jsx: 5, property: 1, type: 1 };
const NAMES = ["comment", "code", "string", "template", "regex", "jsx"];
// The `$` of `${` is a word to neither.
const WORD = /[A-Za-z_][\w$]*|\$(?!\{)[\w$]*/g;

const TEXTS = new Map([
  [ts.SyntaxKind.StringLiteral, CODES.string],
  [ts.SyntaxKind.NoSubstitutionTemplateLiteral, CODES.template],
  [ts.SyntaxKind.TemplateHead, CODES.template],
  [ts.SyntaxKind.TemplateMiddle, CODES.template],
  [ts.SyntaxKind.TemplateTail, CODES.template],
  [ts.SyntaxKind.RegularExpressionLiteral, CODES.regex],
  [ts.SyntaxKind.JsxText, CODES.jsx],
]);

/** A class for each UTF-16 unit, as TypeScript's parser sees it; null when it does not parse. */
function oracle(source, name) {
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true);
  if (file.parseDiagnostics.length > 0) return null;
  // What is in no token is white space or a comment, and white space has no words.
  const classes = new Uint8Array(source.length);
  const todo = [file];
  while (todo.length > 0) {
    const node = todo.pop();
    if (node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode) continue;
    const children = node.getChildren(file);
    if (children.length === 0) classes.fill(TEXTS.get(node.kind) ?? CODES.code, node.getStart(file), node.end);
    for (const child of children) todo.push(child);
  }
  return classes;
}

/** The unit that each byte of the source belongs to. */
function unitsOfBytes(source, bytes) {
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
    const found = new Uint8Array(source.length).fill(CODES.code);
    const units = unitsOfBytes(source, raw.length);
    for (const line of outputs[index].split("\n").slice(0, -1)) {
      const [kind, start, end] = line.split(" ");
      found.fill(CODES[kind], units[start], units[end]);
    }
    result.files += 1;
    let isFirst = true;
    for (const { 0: word, index: at } of source.matchAll(WORD)) {
      result.words += 1;
      if (found[at] === expected[at]) continue;
      result.differences += 1;
      if (isFirst && result.places.length < 20) {
        const context = source.slice(Math.max(0, at - 60), at + 40);
        result.places.push({ name, at, word, found: NAMES[found[at]], expected: NAMES[expected[at]], context });
      }
      isFirst = false;
    }
  });
}
console.log(JSON.stringify(result, null, 1));
