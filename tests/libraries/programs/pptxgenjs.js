// A presentation with text, a table, a shape and a chart, opened again.
(async () => {
  const deck = new PptxGenJS();
  deck.title = "Quarter";
  const slide = deck.addSlide();
  slide.addText([{ text: "Results ", options: { bold: true } }, { text: "& more", options: { color: "FF0000" } }], { x: 1, y: 0.5, w: 8, fontSize: 24 });
  slide.addTable([["a", "b"], [{ text: "1", options: { fill: { color: "EEEEEE" } } }, "2"]], { x: 1, y: 1.5, w: 4 });
  slide.addShape(deck.ShapeType.ellipse, { x: 6, y: 1.5, w: 2, h: 1, fill: { color: "336699" } });
  slide.addNotes("said aloud");
  deck.addSlide().addChart(deck.ChartType.bar, [{ name: "s", labels: ["x", "y"], values: [1, 2] }], { x: 1, y: 1, w: 6, h: 3, showTitle: true, title: "Bars" });
  const bytes = await deck.write({ outputType: "uint8array" });
  const zip = await JSZip.loadAsync(bytes);
  const names = Object.keys(zip.files).sort();
  const parts = {};
  for (const name of names) if (name.endsWith(".xml") && /slides?\/|chart\d|presentation\.xml/.test(name)) parts[name] = await zip.file(name).async("string");
  const inner = names.filter((name) => name.endsWith(".xlsx"));
  const sheet = await JSZip.loadAsync(await zip.file(inner[0]).async("uint8array"));
  return { kind: String.fromCharCode(...bytes.slice(0, 2)), names, parts, sheet: Object.keys(sheet.files).sort() };
})()
