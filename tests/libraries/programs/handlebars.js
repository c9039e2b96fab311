// Templates with helpers, partials and loops.
(() => {
  Handlebars.registerHelper("loud", (text) => new Handlebars.SafeString(`<b>${String(text).toUpperCase()}</b>`));
  Handlebars.registerHelper("times", function (n, options) { let out = ""; for (let i = 0; i < n; i++) out += options.fn({ i, ...this }); return out; });
  Handlebars.registerPartial("row", "<li>{{@index}}: {{name}} {{#if price}}{{price}}{{else}}free{{/if}}</li>");
  const template = Handlebars.compile("<h1>{{loud title}}</h1>{{#each items}}{{> row}}{{/each}}{{#times 2}}{{i}}-{{title}};{{/times}}{{{raw}}}{{raw}}{{#with deep.er}}{{x}}{{../title}}{{/with}}{{lookup list 1}}");
  let error;
  try { Handlebars.compile("{{#if x}}")({}); } catch (thrown) { error = thrown.message; }
  return [template({ title: "shop", items: [{ name: "tea", price: 3 }, { name: "<air>" }], raw: "<i>", deep: { er: { x: 5 } }, list: ["a", "b"] }), error, Handlebars.precompile("{{a}}").length];
})()
