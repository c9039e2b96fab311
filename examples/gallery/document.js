// A page as PDF: the planets in their proportions, and a table.
import {PDFDocument, StandardFonts, rgb} from "pdf-lib";

const colour = (text) => rgb(...[1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255));
const INK = colour("#1f2328");

export async function make(planets) {
  const file = await PDFDocument.create();
  file.setTitle("Eight planets");
  // The same planets give the same bytes.
  file.setCreationDate(new Date(0));
  file.setModificationDate(new Date(0));
  const plain = await file.embedFont(StandardFonts.Helvetica);
  const bold = await file.embedFont(StandardFonts.HelveticaBold);
  const page = file.addPage([595, 842]);
  const write = (text, x, y, size = 11, font = plain) => page.drawText(text, {x, y, size, font, color: INK});
  const right = (text, x, y, font = plain) => write(text, x - font.widthOfTextAtSize(text, 11), y, 11, font);

  write("Eight planets", 56, 762, 28, bold);
  write("Diameters in proportion; distances are not.", 56, 738);

  const gap = 12;
  const scale = (483 - gap * (planets.length - 1)) / planets.reduce((sum, planet) => sum + planet.diameter, 0);
  let x = 56;
  for (const planet of planets) {
    const radius = (planet.diameter * scale) / 2;
    page.drawCircle({x: x + radius, y: 640, size: radius, color: colour(planet.colour)});
    x += 2 * radius + gap;
  }

  const columns = [
    ["Diameter (km)", 250, (planet) => planet.diameter.toLocaleString("en-US")],
    ["Distance (AU)", 345, (planet) => planet.distance.toFixed(3)],
    ["Year (days)", 440, (planet) => planet.period.toLocaleString("en-US")],
    ["Day (hours)", 539, (planet) => planet.day.toLocaleString("en-US")],
  ];
  let y = 520;
  write("Planet", 56, y, 11, bold);
  for (const [head, at] of columns) right(head, at, y, bold);
  for (const planet of planets) {
    page.drawLine({start: {x: 56, y: y - 8}, end: {x: 539, y: y - 8}, thickness: 0.5, color: colour("#d0d7de")});
    y -= 26;
    write(planet.name, 56, y);
    for (const [, at, value] of columns) right(value(planet), at, y);
  }
  return file.save();
}
