// Lays out a network with forces, packs a tree into circles, and draws a curve over time.
var work = () => {
  const nodes = d3.range(80).map((id) => ({id}));
  const links = d3.range(140).map((i) => ({source: (i * 7) % 80, target: (i * 11 + 3) % 80}));
  const simulation = d3
    .forceSimulation(nodes)
    .force("link", d3.forceLink(links).distance(30))
    .force("charge", d3.forceManyBody().strength(-40))
    .force("center", d3.forceCenter(0, 0))
    .stop();
  simulation.tick(40);
  const rows = d3.range(400).map((i) => ({group: `g${i % 12}`, part: `p${i % 5}`, value: 1 + ((i * 37) % 50)}));
  const tree = d3.hierarchy(d3.rollup(rows, (group) => d3.sum(group, (row) => row.value), (row) => row.group, (row) => row.part));
  d3.pack().size([400, 400])(tree.sum((entry) => entry[1] ?? 0));
  const x = d3.scaleUtc([new Date(0), new Date(4e10)], [0, 500]);
  const line = d3.line((row, i) => x(i * 1e8), (row) => row.value).curve(d3.curveMonotoneX);
  const placed = nodes.filter((node) => Math.hypot(node.x, node.y) < 400).length;
  return placed + tree.descendants().length + line(rows).split("C").length;
};
