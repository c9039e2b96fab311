// Draws the plots of docs/benchmarks.md with ECharts, inside pydeno: `ratios(data)` and `curves(data)` return SVG.
const COLOURS = ["#0b6bcb", "#d9480f", "#2b8a3e", "#862e9c", "#c2255c", "#5c5f66"];
const SYMBOLS = ["circle", "diamond", "triangle", "rect", "roundRect", "arrow"];
const TEXT = {color: "#1f2328", fontFamily: "Helvetica, Arial, sans-serif"};
const LINE = {lineStyle: {color: "#d8dee4"}};

function render(option, width, height) {
  const chart = echarts.init(null, null, {renderer: "svg", ssr: true, width, height});
  chart.setOption({animation: false, backgroundColor: "#ffffff", textStyle: TEXT, color: COLOURS, ...option});
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

const short = (value) => Number(value.toPrecision(3)).toLocaleString("en-US", {maximumFractionDigits: 3});

function amount(value, unit) {
  if (unit === "seconds") {
    if (value < 1e-3) return `${short(value * 1e6)} µs`;
    return value < 1 ? `${short(value * 1e3)} ms` : `${short(value)} s`;
  }
  if (unit === "bytes") {
    if (value < 1e6) return value < 1000 ? `${short(value)} B` : `${short(value / 1e3)} kB`;
    return value < 1e9 ? `${short(value / 1e6)} MB` : `${short(value / 1e9)} GB`;
  }
  return value < 1e6 ? short(value) : `${short(value / 1e6)} M`;
}

// How many times as much as pydeno each peer takes: a row for each quantity, a symbol for each peer.
function ratios({title, rows, peers, reference}) {
  const height = 120 + 30 * rows.length;
  const values = peers.flatMap((peer) => peer.ratios.filter((ratio) => ratio !== null));
  const bound = (end, step) => 10 ** step(Math.log10(end));
  return render(
    {
      title: {text: title, left: 10, top: 8, textStyle: {...TEXT, fontSize: 15}},
      legend: {top: 34, left: 10, textStyle: TEXT, itemGap: 18},
      grid: {left: 270, right: 30, top: 70, bottom: 50},
      yAxis: {
        type: "category",
        data: rows,
        inverse: true,
        axisLabel: {...TEXT, fontSize: 12, width: 255, overflow: "truncate"},
        axisTick: {show: false},
        splitLine: {show: true, ...LINE},
      },
      xAxis: {
        type: "log",
        min: bound(Math.min(0.5, ...values), Math.floor),
        max: bound(Math.max(2, ...values), Math.ceil),
        name: `times ${reference} (to the right of 1: ${reference} takes less)`,
        nameLocation: "middle",
        nameGap: 28,
        nameTextStyle: TEXT,
        axisLabel: {...TEXT, formatter: (value) => `${value.toLocaleString("en-US", {maximumFractionDigits: 4})}×`},
        splitLine: {show: true, ...LINE},
      },
      series: peers.map((peer, i) => ({
        type: "scatter",
        name: peer.label,
        symbol: SYMBOLS[i],
        symbolSize: 11,
        itemStyle: {opacity: 0.85},
        data: peer.ratios.flatMap((ratio, row) => (ratio === null ? [] : [[ratio, row]])),
        markLine:
          i === 0
            ? {
                symbol: "none",
                silent: true,
                label: {show: false},
                lineStyle: {color: "#1f2328", type: "solid", width: 1.5},
                data: [{xAxis: 1}],
              }
            : undefined,
      })),
    },
    860,
    height,
  );
}

// One quantity for each contender, as bars of which shorter is better.
function bars({title, unit, entries}) {
  return render(
    {
      title: {text: title, left: 10, top: 8, textStyle: {...TEXT, fontSize: 15}},
      grid: {left: 190, right: 90, top: 44, bottom: 30},
      yAxis: {
        type: "category",
        data: entries.map((entry) => entry.label),
        inverse: true,
        axisTick: {show: false},
        axisLabel: {...TEXT, fontSize: 12},
      },
      xAxis: {
        type: "value",
        axisLabel: {...TEXT, formatter: (value) => (value ? amount(value, unit) : "0")},
        splitLine: {show: true, ...LINE},
      },
      series: [
        {
          type: "bar",
          barWidth: 15,
          label: {show: true, position: "right", ...TEXT, formatter: ({value}) => amount(value, unit)},
          data: entries.map((entry) => ({
            value: entry.value,
            itemStyle: {color: entry.own ? COLOURS[0] : "#adb5bd"},
          })),
        },
      ],
    },
    860,
    84 + 25 * entries.length,
  );
}

// How something grows: doubly logarithmic, with a dashed line for what is exactly linear.
function curves({title, x, y, series}) {
  const names = Object.keys(series);
  const [first] = names;
  const points = series[first];
  const [endX, endY] = points[points.length - 1];
  const all = names.flatMap((name) => series[name]);
  const bound = (values, end, step) => 10 ** step(Math.log10(end(...values)));
  const [left, right] = [Math.min, Math.max].map((end) => end(...all.map((point) => point[0])));
  const lowest = bound(all.map((point) => point[1]), Math.min, Math.floor);
  const highest = bound(all.map((point) => point[1]), Math.max, Math.ceil);
  const start = Math.max(left, (lowest / endY) * endX);
  const axis = (unit, name, gap) => ({
    type: "log",
    name,
    nameLocation: "middle",
    nameGap: gap,
    nameTextStyle: TEXT,
    axisLabel: {...TEXT, fontSize: 11, hideOverlap: true, formatter: (value) => amount(value, unit)},
    splitLine: {show: true, ...LINE},
  });
  return render(
    {
      title: {text: title, left: 10, top: 8, textStyle: {...TEXT, fontSize: 13}},
      legend: {top: 32, left: 10, textStyle: TEXT, data: [...names, {name: "linear", icon: "path://M0 5h8v2h-8zM12 5h8v2h-8z"}]},
      grid: {left: 76, right: 24, top: 64, bottom: 52},
      xAxis: {...axis(x, x, 30), min: left, max: right},
      yAxis: {...axis(y, "", 56), min: lowest, max: highest},
      series: [
        ...names.map((name, i) => ({type: "line", name, symbol: SYMBOLS[i], symbolSize: 7, data: series[name]})),
        {
          type: "line",
          name: "linear",
          symbol: "none",
          lineStyle: {type: "dashed", color: "#8c959f", width: 1.5},
          itemStyle: {color: "#8c959f"},
          data: [
            [start, (start / endX) * endY],
            [endX, endY],
          ],
        },
      ],
    },
    430,
    310,
  );
}
