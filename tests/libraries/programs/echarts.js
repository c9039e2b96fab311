// Charts rendered on the server, to SVG.
(() => {
  const render = (option) => {
    const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 400, height: 300 });
    chart.setOption({ animation: false, ...option });
    const svg = chart.renderToSVGString();
    chart.dispose();
    return svg;
  };
  const data = Array.from({ length: 12 }, (_, i) => (i * 37) % 23);
  return [
    render({
      title: { text: "Sales" }, legend: {}, tooltip: {},
      xAxis: { type: "category", data: data.map((_, i) => `m${i}`) }, yAxis: {},
      series: [{ type: "bar", name: "a", data }, { type: "line", name: "b", smooth: true, areaStyle: {}, data: [...data].reverse() }],
    }),
    render({ series: [{ type: "pie", radius: ["30%", "70%"], data: data.slice(0, 5).map((value, i) => ({ value, name: `p${i}` })) }] }),
    render({ radar: { indicator: ["x", "y", "z"].map((name) => ({ name, max: 10 })) }, series: [{ type: "radar", data: [{ value: [3, 8, 5] }] }] }),
    render({ series: [{ type: "sankey", data: ["a", "b", "c"].map((name) => ({ name })), links: [{ source: "a", target: "b", value: 3 }, { source: "b", target: "c", value: 2 }] }] }),
  ];
})()
