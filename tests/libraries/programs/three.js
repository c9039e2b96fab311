// A scene, exported as a binary glTF file.
(async () => {
  const scene = new THREE.Scene();
  const material = new THREE.MeshStandardMaterial({ color: 0x336699, roughness: 0.4, metalness: 0.2 });
  const knot = new THREE.Mesh(new THREE.TorusKnotGeometry(1, 0.3, 64, 8), material);
  knot.position.set(1, 2, 3);
  knot.rotation.set(0.1, 0.2, 0.3);
  const shape = new THREE.Shape().moveTo(0, 0).lineTo(1, 0).lineTo(1, 1).lineTo(0, 1);
  const block = new THREE.Mesh(new THREE.ExtrudeGeometry(shape, { depth: 0.5, bevelEnabled: true, bevelSegments: 2 }), material.clone());
  const group = new THREE.Group();
  group.add(knot, block);
  group.name = "parts";
  scene.add(group, new THREE.DirectionalLight(0xffffff, 2));
  scene.updateMatrixWorld(true);
  const binary = new Uint8Array(await new THREE.GLTFExporter().parseAsync(scene, { binary: true }));
  const view = new DataView(binary.buffer);
  const length = view.getUint32(12, true);
  const json = JSON.parse(new TextDecoder().decode(binary.subarray(20, 20 + length)));
  const floats = [];
  const start = 20 + length + 8;
  for (let i = 0; i < 300; i++) floats.push(view.getFloat32(start + 4 * i, true));
  const ray = new THREE.Raycaster(new THREE.Vector3(1, 2, 10), new THREE.Vector3(0, 0, -1));
  return {
    magic: new TextDecoder().decode(binary.subarray(0, 4)), size: binary.length, json, floats: floats.map((value) => value.toFixed(4)),
    box: new THREE.Box3().setFromObject(group).getSize(new THREE.Vector3()).toArray().map((value) => value.toFixed(4)),
    hits: ray.intersectObjects(scene.children).map((hit) => hit.distance.toFixed(3)),
  };
})()
