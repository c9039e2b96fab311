// Draws a chart of lines and bars as SVG, without a document, and counts its paths.
var work = () => {
  const chart = echarts.init(null, null, {renderer: "svg", ssr: true, width: 800, height: 400});
  const days = Array.from({length: 300}, (_, i) => `day ${i}`);
  const series = [3, 5, 7].map((step) => ({
    type: "line",
    name: `series ${step}`,
    data: days.map((_, i) => (i * step) % 100),
    markLine: {data: [{type: "average"}]},
  }));
  chart.setOption({
    animation: false,
    title: {text: "A chart"},
    legend: {},
    xAxis: {type: "category", data: days},
    yAxis: {type: "value"},
    series: [...series, {type: "bar", name: "bars", data: days.map((_, i) => i % 40)}],
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg.split("<path").length;
};
