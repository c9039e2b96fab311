// A chart of Vega-Lite compiled to Vega and rendered to SVG.
(async () => {
  const values = Array.from({ length: 60 }, (_, i) => ({ day: `2024-${1 + (i % 12)}-1`, kind: "abc"[i % 3], amount: (i * 17) % 41 }));
  const specification = {
    data: { values },
    width: 300,
    height: 150,
    layer: [
      { mark: { type: "bar", tooltip: true }, encoding: { x: { field: "kind", type: "nominal" }, y: { aggregate: "mean", field: "amount" }, color: { field: "kind" } } },
      { mark: "rule", encoding: { y: { aggregate: "max", field: "amount" } } },
    ],
  };
  const compiled = vegaLite.compile(specification, { config: {} }).spec;
  const view = new vega.View(vega.parse(compiled), { renderer: "none" });
  const svg = await view.toSVG();
  const wide = await new vega.View(vega.parse({
    width: 200, height: 200,
    data: [{ name: "t", values, transform: [{ type: "aggregate", groupby: ["day"], fields: ["amount"], ops: ["sum"], as: ["total"] }, { type: "collect", sort: { field: "total" } }] }],
    scales: [{ name: "x", type: "linear", domain: { data: "t", field: "total" }, range: "width" }],
    marks: [{ type: "symbol", from: { data: "t" }, encode: { enter: { x: { scale: "x", field: "total" }, y: { value: 50 }, tooltip: { signal: "datum.day + ': ' + format(datum.total, '.1f')" } } } }],
  }), { renderer: "none" }).runAsync();
  return { svg, data: wide.data("t").map(({ day, total }) => [day, total]), compiled: Object.keys(compiled) };
})()
