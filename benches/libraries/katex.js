// Sets formulas and counts the spans of their HTML.
var work = () => {
  const formulas = [
    String.raw`\int_{-\infty}^{\infty} e^{-x^2}\,dx = \sqrt{\pi}`,
    String.raw`\begin{pmatrix} a & b \\ c & d \end{pmatrix}^{-1} = \frac{1}{ad-bc}\begin{pmatrix} d & -b \\ -c & a \end{pmatrix}`,
    String.raw`\sum_{k=0}^{n} \binom{n}{k} x^k y^{n-k} = (x+y)^n`,
    String.raw`f(x) = \begin{cases} x^2 & \text{if } x \geq 0 \\ -x & \text{otherwise} \end{cases}`,
  ];
  let spans = 0;
  for (let i = 0; i < 12; i += 1) {
    spans += katex.renderToString(`${formulas[i % 4]} + c_{${i}}`, {output: "html"}).split("<span").length;
  }
  return spans;
};
