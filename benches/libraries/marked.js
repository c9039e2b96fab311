// Turns a long document into HTML and counts its tags.
var work = () => {
  const section = (i) => `
## Section ${i}

Some *emphasis*, some **weight**, a [link](https://example.org/${i} "title"), \`code\` and <b>tags</b>.

1. first
2. second
   - nested \`${i}\`
   - [ ] to be done

| name | value |
|:-----|------:|
| a    | ${i}  |
| b    | ${i * i} |

> A quotation
> of two lines.

\`\`\`js
const answer = ${i};
\`\`\`
`;
  return marked.parse(Array.from({length: 60}, (_, i) => section(i)).join("\n")).split("<").length;
};
