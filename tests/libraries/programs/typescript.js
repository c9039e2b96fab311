// The compiler: types checked against a library of our own, and the program emitted.
(() => {
  const files = {
    "lib.d.ts": "interface Array<T> { length: number; map<U>(f: (x: T) => U): U[]; [n: number]: T } interface Boolean {} interface CallableFunction {} interface Function {} interface IArguments {} interface NewableFunction {} interface Number { toFixed(n?: number): string } interface Object {} interface RegExp {} interface String { length: number }",
    "main.ts": "enum Kind { A, B = 5 }\nclass Box<T> { constructor(private readonly value: T) {} map<U>(f: (x: T) => U): Box<U> { return new Box(f(this.value)); } get(): T { return this.value; } }\nconst text: string = new Box(3).map(x => x.toFixed(2)).get();\nconst wrong: number = text;\nexport const all = [1, 2].map(n => ({ n, kind: Kind.B }));\nasync function later() { for (const x of all as any) await x?.y ?? 5; }\n",
  };
  const host = {
    getSourceFile: (name, target) => (files[name] === undefined ? undefined : ts.createSourceFile(name, files[name], target)),
    getDefaultLibFileName: () => "lib.d.ts", writeFile: (name, text) => { files[name] = text; }, getCurrentDirectory: () => "", getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true, getNewLine: () => "\n", fileExists: (name) => name in files, readFile: (name) => files[name],
  };
  const program = ts.createProgram(["main.ts"], { target: ts.ScriptTarget.ES2017, module: ts.ModuleKind.CommonJS, strict: true, declaration: true, noResolve: true }, host);
  const found = [...program.getSemanticDiagnostics(), ...program.getSyntacticDiagnostics()].map((d) => [d.code, d.start, ts.flattenDiagnosticMessageText(d.messageText, "\n")]);
  program.emit();
  const checker = program.getTypeChecker();
  const symbol = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile("main.ts")))[0];
  return { found, js: files["main.js"], types: files["main.d.ts"], inferred: checker.typeToString(checker.getTypeOfSymbol(symbol)) };
})()
