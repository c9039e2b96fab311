// A chart as SVG: how long the planets take around the Sun, on the line that Kepler drew.
import {format, line, scaleLog, scaleSqrt} from "d3";

export function make(planets) {
  const [width, height, left, right, top, bottom] = [860, 520, 90, 40, 70, 60];
  const x = scaleLog([0.3, 45], [left, width - right]);
  const y = scaleLog([0.18, 300], [height - bottom, top]);
  const size = scaleSqrt([0, 142984], [0, 30]);
  const escape = (text) => text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
  const text = (at, content, more = "") =>
    `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" fill="#24292f" font-size="13" ${more}>${escape(content)}</text>`;
  const number = format(",.3~r");

  const grid = [
    ...[0.5, 1, 2, 5, 10, 20].map(
      (value) =>
        `<line x1="${x(value)}" x2="${x(value)}" y1="${top}" y2="${height - bottom}" stroke="#e6e8eb"/>` +
        text([x(value), height - bottom + 22], number(value), 'text-anchor="middle"'),
    ),
    ...[0.2, 1, 5, 20, 100].map(
      (value) =>
        `<line x1="${left}" x2="${width - right}" y1="${y(value)}" y2="${y(value)}" stroke="#e6e8eb"/>` +
        text([left - 12, y(value) + 4], number(value), 'text-anchor="end"'),
    ),
  ];
  const kepler = line((distance) => x(distance), (distance) => y(distance ** 1.5))([0.33, 1, 10, 40]);
  const marks = planets.map((planet) => {
    const at = [x(planet.distance), y(planet.period / 365.25)];
    const radius = Math.max(4, size(planet.diameter));
    return (
      `<circle cx="${at[0].toFixed(1)}" cy="${at[1].toFixed(1)}" r="${radius.toFixed(1)}" fill="${escape(planet.colour)}" stroke="#24292f" stroke-width="0.6"/>` +
      text([at[0] - radius - 8, at[1] - 6], planet.name, 'text-anchor="end" font-weight="bold"')
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="Helvetica, Arial, sans-serif">
<title>The year of each planet</title>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${text([left, 34], "The year of each planet grows as its distance to the power of 1.5", 'font-weight="bold"').replace('font-size="13"', 'font-size="18"')}
${grid.join("\n")}
<path d="${kepler}" fill="none" stroke="#0b6bcb" stroke-width="2" stroke-dasharray="6 5"/>
${marks.join("\n")}
${text([(left + width - right) / 2, height - 14], "distance from the Sun, where the Earth's is 1", 'text-anchor="middle"')}
${text([left, 58], "years")}
</svg>`;
}
