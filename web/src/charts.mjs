// Line charts as SVG. A chart is a picture with a text that says what it shows; the numbers stand in a table below.

import { tick } from "./text.mjs";

const WIDTH = 640, HEIGHT = 340, LEFT = 64, RIGHT = 36, TOP = 14, BOTTOM = 60;

// Round numbers that divide an axis into about `count` parts.
function roundTicks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high * (1 + 1e-9); k++)
    found.push(Number((k * step).toPrecision(6)));
  return found;
}

function powers(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const each = Math.max(1, Math.ceil((last - first) / 6));
  return Array.from({ length: Math.floor((last - first) / each) + 1 }, (_, i) => 10 ** (first + each * i));
}

const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

// lines: [{ name, kind, points: [[x, y], …] }]. Returns markup; `logarithmic` is for x.
export function chart({ title, xLabel, yLabel, lines, logarithmic = false, mark = null }) {
  const drawn = lines.map((line) => ({ ...line, points: line.points.filter(([, y]) => Number.isFinite(y)) }));
  const all = drawn.flatMap((line) => line.points);
  const xs = all.map(([x]) => x), low = logarithmic ? Math.min(...xs) : 0, high = Math.max(...xs);
  // Another account that is far above would hide the first.
  const first = Math.max(...drawn[0].points.map(([, y]) => y), 1e-9);
  const top = Math.min(Math.max(...all.map(([, y]) => y), 1e-9), 3 * first) * 1.05;
  const along = (x) => (logarithmic ? Math.log(x / low) / Math.log(high / low) : x / high);
  const px = (x) => LEFT + along(x) * (WIDTH - LEFT - RIGHT);
  const py = (y) => HEIGHT - BOTTOM - (Math.min(y, top) / top) * (HEIGHT - TOP - BOTTOM);
  const at = (number) => number.toFixed(1);
  const parts = [`<title>${escaped(title)}</title>`];
  for (const y of roundTicks(0, top, 5))
    parts.push(`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(py(y))}" y2="${at(py(y))}"/>`,
      `<text class="end" x="${LEFT - 8}" y="${at(py(y) + 4)}">${tick(y)}</text>`);
  for (const x of logarithmic ? powers(low, high) : roundTicks(0, high, 5))
    parts.push(`<line class="grid" y1="${TOP}" y2="${HEIGHT - BOTTOM}" x1="${at(px(x))}" x2="${at(px(x))}"/>`,
      `<text class="middle" x="${at(px(x))}" y="${HEIGHT - BOTTOM + 25}">${tick(x)}</text>`);
  parts.push(`<text class="middle" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}">${escaped(xLabel)}</text>`,
    `<text class="middle" transform="translate(15 ${(HEIGHT - BOTTOM + TOP) / 2})">${escaped(yLabel)}</text>`,
    `<path class="axis" d="M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}"/>`);
  for (const line of [...drawn].reverse()) {
    const d = line.points.filter(([, y]) => y <= top).map(([x, y], i) => `${i ? "L" : "M"}${at(px(x))} ${at(py(y))}`);
    parts.push(`<path class="line ${line.kind}" d="${d.join("")}"/>`);
  }
  if (mark && Number.isFinite(mark[1]))
    parts.push(`<circle class="dot first" r="5" cx="${at(px(mark[0]))}" cy="${at(py(mark[1]))}"/>`);
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(title)}">${parts.join("")}</svg>`;
}

// About `count` of the points, the first and the last among them.
export function some(points, count) {
  const step = Math.max(1, (points.length - 1) / (count - 1)), places = new Set();
  for (let i = 0; i < points.length; i += step) places.add(Math.round(i));
  places.add(points.length - 1);
  return [...places].map((i) => points[i]);
}
