// A schema that accepts, refuses and transforms.
(async () => {
  const { z } = zod;
  const user = z.object({
    name: z.string().min(2).trim(), email: z.email(), age: z.coerce.number().int().positive().optional(),
    role: z.enum(["admin", "user"]).default("user"), tags: z.array(z.string()).max(3), address: z.discriminatedUnion("kind", [
      z.object({ kind: z.literal("street"), street: z.string() }), z.object({ kind: z.literal("box"), number: z.number() })]),
  }).refine((value) => value.name !== value.email, { message: "the same", path: ["name"] });
  const good = user.parse({ name: " Ann ", email: "a@b.co", age: "41", tags: [], address: { kind: "box", number: 5 } });
  const bad = user.safeParse({ name: "x", email: "nope", age: -1, tags: ["a", "b", "c", "d"], address: { kind: "other" } });
  const later = await z.string().transform(async (text) => text.length).parseAsync("four");
  return { good, issues: bad.error.issues, later, schema: z.toJSONSchema(z.object({ a: z.number().min(1), b: z.string().optional() })), pretty: z.prettifyError(bad.error) };
})()
