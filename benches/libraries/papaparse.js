// Reads a table with quoted cells and numbers, and writes it again.
var work = () => {
  const rows = Array.from({length: 1500}, (_, i) => `${i},"name, ""${i}""",${i / 8},${i % 2 === 0},"two\nlines"`);
  const table = Papa.parse(`id,name,share,even,note\n${rows.join("\n")}`, {header: true, dynamicTyping: true});
  const even = table.data.filter((row) => row.even);
  return even.length + Papa.unparse(table.data).length + table.errors.length;
};
