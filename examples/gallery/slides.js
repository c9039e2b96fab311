// A deck of slides as PPTX: a title, a chart that can be edited, and a table.
import PptxGenJS from "pptxgenjs";

const INK = "1F2328";

export async function make(planets) {
  const deck = new PptxGenJS();
  deck.layout = "LAYOUT_16x9";
  deck.title = "Eight planets";

  const title = deck.addSlide();
  title.background = {color: "0D1B2A"};
  title.addText("Eight planets", {x: 0.6, y: 1.2, w: 8.8, h: 1, fontSize: 44, bold: true, color: "FFFFFF"});
  title.addText("Made by a script in a sandbox", {x: 0.6, y: 2.2, w: 8.8, h: 0.5, fontSize: 20, color: "A9BCD0"});
  planets.forEach((planet, i) => {
    const size = 0.12 + 0.75 * Math.sqrt(planet.diameter / 142984);
    title.addShape("ellipse", {
      x: 0.95 + i * 1.15 - size / 2,
      y: 4.1 - size / 2,
      w: size,
      h: size,
      fill: {color: planet.colour.slice(1)},
    });
  });

  const chart = deck.addSlide();
  chart.addText("Diameter in thousands of kilometres", {x: 0.5, y: 0.3, w: 9, h: 0.6, fontSize: 26, bold: true, color: INK});
  chart.addChart(
    "bar",
    [
      {
        name: "Diameter",
        labels: planets.map((planet) => planet.name),
        values: planets.map((planet) => planet.diameter / 1000),
      },
    ],
    {
      x: 0.5,
      y: 1,
      w: 9,
      h: 4.3,
      chartColors: planets.map((planet) => planet.colour.slice(1)),
      showValue: true,
      dataLabelFormatCode: "0.0",
      valAxisHidden: true,
      valGridLine: {style: "none"},
    },
  );

  const table = deck.addSlide();
  table.addText("Days and years", {x: 0.5, y: 0.3, w: 9, h: 0.6, fontSize: 26, bold: true, color: INK});
  const head = ["Planet", "Distance (AU)", "Year (days)", "Day (hours)"];
  const cell = (text, i, more) => ({text, options: {align: i ? "right" : "left", ...more}});
  table.addTable(
    [
      head.map((text, i) => cell(text, i, {bold: true, color: "FFFFFF", fill: {color: "0B6BCB"}})),
      ...planets.map((planet) =>
        [planet.name, planet.distance.toFixed(2), planet.period.toLocaleString("en-US"), planet.day.toLocaleString("en-US")].map(
          (text, i) => cell(text, i),
        ),
      ),
    ],
    {x: 0.5, y: 1.05, w: 9, fontSize: 14, color: INK, border: {type: "solid", pt: 0.5, color: "D0D7DE"}},
  );

  return new Uint8Array(await deck.write({outputType: "uint8array"}));
}
