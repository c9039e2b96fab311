// Expressions, matrices, units, big numbers and derivatives.
(() => {
  const text = (value) => math.format(value, { precision: 12 });
  const scope = {};
  const parser = math.parser();
  return {
    values: ["sqrt(3^2 + 4^2)", "sin(45 deg) ^ 2", "det([1, 2; 3, 4])", "inv([1, 2; 3, 5])", "12.7 cm to inch", "5!", "(2 + 3i) * i", "bignumber(1) / 3", "gcd(84, 36)", "std([1, 2, 3, 4])"]
      .map((expression) => text(math.evaluate(expression, scope))),
    derivative: math.derivative("x^3 * sin(x)", "x").toString(), simple: math.simplify("2 x + 3 x - x * (4 - 1)").toString(), rational: math.rationalize("1 / (x + 1) + x").toString(),
    parsed: [parser.evaluate("f(x, y) = x ^ y"), parser.evaluate("f(2, 10)")].map((value) => (typeof value === "function" ? value.name : value)),
    solved: text(math.lusolve([[2, 1], [1, 3]], [3, 5])), eigen: text(math.eigs([[2, 0], [0, 3]]).values), tex: math.parse("sqrt(a / b)").toTex(),
    fraction: math.format(math.fraction(0.375)), chain: math.chain(3).add(4).multiply(2).done(), bits: math.bin ? math.bin(10) : "",
  };
})()
