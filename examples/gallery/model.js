// A model as binary glTF: the Sun, the planets and their orbits. Distances and sizes are squeezed, so that all can be seen.
import {
  Group,
  Mesh,
  MeshStandardMaterial,
  RingGeometry,
  Scene,
  SphereGeometry,
  TorusGeometry,
} from "three";
import {GLTFExporter} from "three/examples/jsm/exporters/GLTFExporter.js";

function ball(name, radius, material) {
  const mesh = new Mesh(new SphereGeometry(radius, 32, 20), material);
  mesh.name = name;
  return mesh;
}

export async function make(planets) {
  const scene = new Scene();
  scene.name = "Planets";
  scene.add(ball("Sun", 1.6, new MeshStandardMaterial({color: "#ffcc33", emissive: "#ffaa00", name: "Sun"})));
  const line = new MeshStandardMaterial({color: "#8892a0", roughness: 1, name: "orbit"});
  planets.forEach((planet, i) => {
    const distance = 2 + 5 * Math.log(1 + 2 * planet.distance);
    const orbit = new Mesh(new TorusGeometry(distance, 0.015, 4, 128), line);
    orbit.name = `orbit of ${planet.name}`;
    orbit.rotation.x = Math.PI / 2;
    const radius = 0.32 * (planet.diameter / 12756) ** 0.45;
    const place = new Group();
    place.name = `place of ${planet.name}`;
    place.position.set(distance * Math.cos(2.4 * i), 0, distance * Math.sin(2.4 * i));
    place.add(ball(planet.name, radius, new MeshStandardMaterial({color: planet.colour, roughness: 0.8, name: planet.name})));
    if (planet.name === "Saturn") {
      const ring = new Mesh(
        new RingGeometry(1.3 * radius, 2.2 * radius, 64),
        new MeshStandardMaterial({color: "#d9c79a", side: 2, name: "ring"}),
      );
      ring.name = "ring";
      ring.rotation.x = -1.1;
      place.add(ring);
    }
    scene.add(orbit, place);
  });
  scene.updateMatrixWorld(true);
  return new Uint8Array(await new GLTFExporter().parseAsync(scene, {binary: true}));
}
