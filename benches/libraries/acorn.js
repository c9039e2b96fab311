// Parses the source of another library and counts the nodes of its syntax tree.
var work = () => {
  let count = 0;
  const visit = (node) => {
    if (node && typeof node.type === "string") count += 1;
    for (const key in node) if (node[key] && typeof node[key] === "object") visit(node[key]);
  };
  visit(acorn.parse(input, {ecmaVersion: "latest"}));
  return count;
};
