// Markdown with tables, code and a renderer of one's own.
(async () => {
  const text = "# Title\n\nSome *text* with `code` and [a link](http://h/?a=1&b \"t\").\n\n| a | b |\n|---|:-:|\n| 1 | ~~2~~ |\n\n1. one\n   - nested\n   - [x] done\n2. two\n\n> quote\n\n```js\nlet a = '<b>';\n```\n\n<div>html</div>\n\nhttp://auto.link\n";
  const { Marked } = marked;
  const own = new Marked({ async: true, walkTokens: async (token) => { if (token.type === "heading") token.depth += 1; } });
  return { html: marked.parse(text), own: await own.parse(text), tokens: marked.lexer("a **b**"), inline: marked.parseInline("x *y*") };
})()
