// Layouts, shapes and a map projection.
(() => {
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const nodes = names.map((id) => ({ id }));
  const links = names.slice(1).map((target, i) => ({ source: names[i >> 1], target }));
  const simulation = d3.forceSimulation(nodes).force("link", d3.forceLink(links).id((node) => node.id).distance(30))
    .force("charge", d3.forceManyBody().strength(-50)).force("center", d3.forceCenter(100, 100)).stop();
  simulation.tick(100);
  const tree = d3.hierarchy({ name: "root", children: [{ name: "x", value: 3 }, { name: "y", children: [{ name: "z", value: 5 }] }] })
    .sum((d) => d.value ?? 0);
  d3.treemap().size([100, 50])(tree);
  const voronoi = d3.Delaunay.from([[0, 0], [10, 0], [5, 8], [3, 3]]).voronoi([0, 0, 10, 10]);
  const path = d3.geoPath(d3.geoMercator().scale(100).translate([0, 0]));
  const x = d3.scaleTime([new Date(Date.UTC(2020, 0, 1)), new Date(Date.UTC(2021, 0, 1))], [0, 500]);
  return {
    nodes: nodes.map((node) => [node.id, node.x.toFixed(4), node.y.toFixed(4)]),
    treemap: tree.leaves().map((leaf) => [leaf.data.name, leaf.x0, leaf.y0, leaf.x1, leaf.y1]),
    line: d3.line().curve(d3.curveCatmullRom)([[0, 0], [1, 5], [2, 3], [3, 8]]),
    pie: d3.pie()([1, 2, 3]).map((slice) => d3.arc()({ innerRadius: 0, outerRadius: 10, ...slice })),
    cells: [...voronoi.cellPolygons()].map((cell) => cell.join(" ")),
    coast: path({ type: "Polygon", coordinates: [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]] }),
    ticks: x.ticks(5).map((date) => date.toISOString()),
    color: d3.interpolateViridis(0.4),
    csv: d3.csvParse("a,b\n1,2\n3,4", d3.autoType),
    contours: d3.contours().size([4, 4]).thresholds([1])([0, 0, 0, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 0, 0, 0])[0].coordinates,
    format: [d3.format(",.2f")(12345.678), d3.utcFormat("%Y-%m-%d")(new Date(0))],
  };
})()
