// A schema compiled to code, with references and every error.
(() => {
  const ajv = new Ajv({ allErrors: true, useDefaults: true, coerceTypes: true });
  ajv.addSchema({ $id: "point.json", type: "object", properties: { x: { type: "number" }, y: { type: "number" } }, required: ["x", "y"] });
  const validate = ajv.compile({
    type: "object", additionalProperties: false, required: ["name", "path"],
    properties: { name: { type: "string", pattern: "^[a-z]+$" }, path: { type: "array", items: { $ref: "point.json" }, minItems: 2, uniqueItems: true }, closed: { type: "boolean", default: false } },
  });
  const good = { name: "line", path: [{ x: 1, y: "2" }, { x: 3, y: 4 }] };
  const results = [validate(good), good];
  results.push(validate({ name: "LINE", path: [{ x: 1 }], extra: 1 }), validate.errors, ajv.errorsText(validate.errors));
  return results;
})()
