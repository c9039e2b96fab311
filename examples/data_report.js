// Which currencies did the euro gain on since 1999, and which did it lose to?
//
// Written the way a language model writes such a script. It is not trusted, and it knows only its tools:
//
//   read_rows(offset, limit)       [{ date: Date, currency: "USD", rate: 1.1789 }, ...], oldest first; [] at the end
//   tools.rate(currency)           what one euro buys today, or null when the currency is no longer quoted
//   tools.save_chart(name, svg)    keeps an SVG picture
//   tools.log(message)             one line for the person who waits
//
// The value of the last expression is the report.

const PAGE = 10_000;
const WEEK = 7 * 24 * 60 * 60 * 1000;
const CHARTED = ["TRY", "ZAR", "JPY", "GBP", "USD", "CHF"];

// --- Group: one pass over all rows, one accumulator a currency ----------------------------------------------------

function emptyHistory(row) {
  return {
    quotes: 0, sum: 0,
    first: row, last: row, low: row, high: row,
    leap: { change: 0, date: null },
    years: new Map(),
  };
}

function addRow(history, row) {
  const { rate, date } = row;
  // A currency may go unquoted for years; the first quote after such a gap is not a move of one day.
  if (history.quotes > 0 && date - history.last.date <= WEEK) {
    const change = rate / history.last.rate - 1;
    if (Math.abs(change) > Math.abs(history.leap.change)) history.leap = { change, date };
  }
  history.quotes += 1;
  history.sum += rate;
  history.last = row;
  if (rate < history.low.rate) history.low = row;
  if (rate > history.high.rate) history.high = row;

  const year = date.getUTCFullYear();
  const cell = history.years.get(year) ?? { sum: 0, quotes: 0 };
  cell.sum += rate;
  cell.quotes += 1;
  history.years.set(year, cell);
}

function readHistories() {
  const histories = new Map();
  let rows = 0;
  for (;;) {
    const page = read_rows(rows, PAGE);
    if (page.length === 0) return { histories, rows };
    for (const row of page) {
      let history = histories.get(row.currency);
      if (history === undefined) histories.set(row.currency, (history = emptyHistory(row)));
      addRow(history, row);
    }
    rows += page.length;
    if (rows % 50_000 === 0) tools.log(`${count.format(rows)} rows read`);
  }
}

// --- Format -------------------------------------------------------------------------------------------------------

const count = new Intl.NumberFormat("en");
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1, signDisplay: "exceptZero" });
const day = new Intl.DateTimeFormat("en", { dateStyle: "long", timeZone: "UTC" });
const names = new Intl.DisplayNames("en", { type: "currency" });
const list = new Intl.ListFormat("en");

const money = (amount, currency, locale = "en") =>
  new Intl.NumberFormat(locale, { style: "currency", currency }).format(amount);

function describe(currency, history) {
  const { first, last, low, high, leap, quotes, sum } = history;
  const today = tools.rate(currency);
  return {
    currency,
    name: names.of(currency),
    quoted: today !== null,
    quotes,
    mean: sum / quotes,
    low: low.rate, low_date: low.date,
    high: high.rate, high_date: high.date,
    change: last.rate / first.rate - 1,
    leap: leap.change, leap_date: leap.date,
    yearly: Object.fromEntries([...history.years].map(([year, cell]) => [year, cell.sum / cell.quotes])),
    text: {
      since: day.format(first.date),
      change: percent.format(last.rate / first.rate - 1),
      hundred_euros: money(100 * (today ?? last.rate), currency),
      leap: leap.date && `${percent.format(leap.change)} on ${day.format(leap.date)}`,
    },
  };
}

// --- Draw: yearly means, 1999 (or the first full year) = 100, logarithmic ------------------------------------------

const COLOURS = ["#8c2d04", "#d95f0e", "#2166ac", "#4d9221", "#333333", "#7b3294"];
const WIDTH = 960, HEIGHT = 560;
const PLOT = { left: 64, right: WIDTH - 220, top: 92, bottom: HEIGHT - 64 };
const TICKS = [50, 75, 100, 150, 250, 500, 1000, 2500, 5000];

const escapeXml = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const text = (x, y, content, attributes = "") => `<text x="${x}" y="${y}" ${attributes}>${escapeXml(content)}</text>`;

// Labels at the right edge, pushed apart so that none covers another, in the order of their values.
function spread(labels, gap) {
  labels.sort((a, b) => a.y - b.y);
  for (let i = 1; i < labels.length; i += 1) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + gap);
  return labels;
}

function drawChart(entries, lastYear) {
  const series = entries.map((entry, i) => {
    const years = Object.keys(entry.yearly).map(Number).sort((a, b) => a - b);
    const base = entry.yearly[years[0]];
    return { entry, colour: COLOURS[i], points: years.map((year) => [year, (100 * entry.yearly[year]) / base]) };
  });
  const values = series.flatMap(({ points }) => points.map(([, value]) => value));
  const ticks = TICKS.filter((tick, i) => {
    const above = TICKS[i + 1] ?? Infinity, below = TICKS[i - 1] ?? 0;
    return above > Math.min(...values) && below < Math.max(...values);
  });
  const [bottom, top] = [Math.log(ticks[0]), Math.log(ticks.at(-1))];
  const x = (year) => +(PLOT.left + ((year - 1999) / (lastYear - 1999)) * (PLOT.right - PLOT.left)).toFixed(1);
  const y = (value) => +(PLOT.bottom - ((Math.log(value) - bottom) / (top - bottom)) * (PLOT.bottom - PLOT.top)).toFixed(1);

  const grid = ticks.map((tick) =>
    `<line x1="${PLOT.left}" x2="${PLOT.right}" y1="${y(tick)}" y2="${y(tick)}" stroke="${tick === 100 ? "#888" : "#ddd"}"/>`
    + text(PLOT.left - 10, y(tick) + 4, count.format(tick), 'text-anchor="end" fill="#555"'));
  const axis = [];
  for (let year = 2000; year <= lastYear; year += 5) {
    axis.push(`<line x1="${x(year)}" x2="${x(year)}" y1="${PLOT.bottom}" y2="${PLOT.bottom + 6}" stroke="#888"/>`);
    axis.push(text(x(year), PLOT.bottom + 22, year, 'text-anchor="middle" fill="#555"'));
  }
  const lines = series.map(({ colour, points }) =>
    `<polyline fill="none" stroke="${colour}" stroke-width="2.5" stroke-linejoin="round" points="${
      points.map(([year, value]) => `${x(year)},${y(value)}`).join(" ")}"/>`);
  const labels = spread(series.map(({ entry, colour, points }) => {
    const value = points.at(-1)[1];
    return { y: y(value), colour, content: `${entry.name} ${percent.format(value / 100 - 1)}` };
  }), 18).map((label) => text(PLOT.right + 10, label.y + 4, label.content, `fill="${label.colour}"`));

  const title = "What one euro buys";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}"
  font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="13" role="img">
<title>${title}</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${text(PLOT.left, 38, title, 'font-size="24" font-weight="bold" fill="#222"')}
${text(PLOT.left, 62, "Yearly mean of the euro's rate in each currency; first year quoted = 100, logarithmic scale", 'fill="#555"')}
${[...grid, ...axis, ...lines, ...labels].join("\n")}
${text(PLOT.left, HEIGHT - 16, "Source: euro foreign exchange reference rates, European Central Bank", 'font-size="11" fill="#777"')}
</svg>
`;
}

// --- The report ---------------------------------------------------------------------------------------------------

const { histories, rows } = readHistories();
const report = [...histories].map(([currency, history]) => describe(currency, history));
report.sort((a, b) => b.change - a.change);

const lastYear = Math.max(...[...histories.values()].map(({ last }) => last.date.getUTCFullYear()));
const charted = CHARTED.map((code) => report.find(({ currency }) => currency === code));
const chart = tools.save_chart("euro", drawChart(charted, lastYear));

const quoted = report.filter((entry) => entry.quoted);
const gained = quoted.filter((entry) => entry.change > 0);
const lost = quoted.filter((entry) => entry.change < 0).reverse();

({
  rows,
  chart,
  headline: `The euro gained on ${gained.length} of ${quoted.length} currencies; it lost most to the ${
    list.format(lost.slice(0, 3).map(({ name, text }) => `${name} (${text.change})`))}.`,
  amounts: ["de", "fr", "ja", "en-IN"].map((locale) => money(1234567.891, "EUR", locale)),
  currencies: report,
});
