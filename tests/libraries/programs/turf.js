// Areas, distances, buffers, cells and a union.
(() => {
  const square = (x, y, size) => turf.polygon([[[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]]);
  const points = turf.featureCollection(Array.from({ length: 20 }, (_, i) => turf.point([(i * 7) % 13, (i * 11) % 17], { n: i })));
  return {
    area: turf.area(square(0, 0, 1)),
    distance: turf.distance([13.4, 52.5], [2.35, 48.85]),
    union: turf.union(turf.featureCollection([square(0, 0, 2), square(1, 1, 2)])),
    difference: turf.difference(turf.featureCollection([square(0, 0, 2), square(1, 1, 2)])),
    buffer: turf.area(turf.buffer(turf.point([10, 50]), 5, { units: "kilometers" })),
    hull: turf.convex(points),
    inside: points.features.filter((point) => turf.booleanPointInPolygon(point, square(2, 2, 8))).map((point) => point.properties.n),
    hexes: turf.hexGrid([0, 0, 1, 1], 40).features.length,
    along: turf.along(turf.lineString([[0, 0], [10, 10], [20, 0]]), 1500).geometry.coordinates,
    simple: turf.simplify(turf.lineString([[0, 0], [1, 0.1], [2, -0.1], [3, 5], [4, 6]]), { tolerance: 0.5 }),
    clusters: turf.clustersKmeans(points, { numberOfClusters: 3 }).features.map((point) => point.properties.cluster),
  };
})()
