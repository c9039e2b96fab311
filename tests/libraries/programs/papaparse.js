// Quoted CSV both ways, row by row.
(() => {
  const text = 'name,amount,note\n"Ann ""A""",1.5,"two\nlines"\nBob,2,\n# comment\n"C, D",3,é';
  const steps = [];
  Papa.parse(text, { header: true, comments: "#", step: (row) => steps.push(row.data.name) });
  return {
    parsed: Papa.parse(text, { header: true, dynamicTyping: true, comments: "#", skipEmptyLines: true }), steps,
    guessed: Papa.parse("a;b\n1;2").meta.delimiter, errors: Papa.parse('a,b\n"1,2', { header: true }).errors,
    written: Papa.unparse([{ a: 1, b: 'x"y' }, { a: null, b: "p,q" }], { quotes: false }), tabs: Papa.unparse({ fields: ["a", "b"], data: [[1, 2]] }, { delimiter: "\t" }),
  };
})()
