"use strict";
// What all pages share: SVG elements, scales, ticks, numbers, lines with intervals, and the button for light or dark.
function add(parent, name, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}

function scale(isLog, domain, [p, q]) {
  const to = isLog ? Math.log10 : value => value, [a, b] = domain.map(to);
  const place = value => p + (to(value) - a) / (b - a) * (q - p);
  const back = pixel => a + (pixel - p) / (q - p) * (b - a);
  return Object.assign(place, { domain, isLog, back: pixel => isLog ? 10 ** back(pixel) : back(pixel) });
}

function ticks({ domain: [low, high], isLog }) {
  const decades = isLog ? Math.log10(high / low) : 0;
  if (decades < 1) {
    const size = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = [5, 2, 1].map(k => k * size).find(k => (high - low) / k >= 4) ?? size;
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
  }
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1) {
    for (const k of decades > 2.5 ? [1] : [1, 2, 5]) found.push(k * 10 ** e);
  }
  return found.filter(value => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
}

const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const number = value => value < 1e4 ? String(Number(value.toPrecision(4))) : short.format(value);

// Lines across a chart at round heights, whose numbers stand at its left.
function grid(svg, y, [left, right], label = number) {
  for (const value of ticks(y)) {
    add(svg, "line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) });
    add(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, label(value));
  }
}

const through = places => `M${places.join("L")}`;
const around = (there, back) => `M${[...there, ...back.reverse()].join("L")}Z`;

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

// ---- series of points { x, y, low, high, text }, with null where there is a gap

// The range of all means, and of intervals as far as `room` times that beyond it.
function heights(series, room) {
  const points = series.flatMap(each => each.points).filter(Boolean);
  const [low, high] = extent(points.map(point => point.y));
  const [bottom, top] = extent(points.flatMap(point => [point.low, point.high]));
  const most = room * (high - low || Math.abs(high) || 1);
  const found = [Math.min(low, Math.max(bottom, low - most)), Math.max(high, Math.min(top, high + most))];
  return found[0] < found[1] ? found : [found[0] - 0.5, found[1] + 0.5];
}

const clipped = y => value => y(Math.min(Math.max(value, y.domain[0]), y.domain[1])).toFixed(1);

function addBand(group, points, x, y) {
  const clip = clipped(y);
  for (const run of runs(points)) {
    const edge = side => run.map(p => `${x(p.x).toFixed(1)},${clip(p[side])}`);
    add(group, "path", { class: "band", d: around(edge("high"), edge("low")) });
  }
}

function addLine(group, points, x, y) {
  const clip = clipped(y);
  for (const run of runs(points)) {
    add(group, "path", { class: "line", d: through(run.map(p => `${x(p.x).toFixed(1)},${clip(p.y)}`)) });
  }
}

function addDots(group, points, x, y, r) {
  const clip = clipped(y);
  for (const p of points.filter(Boolean)) {
    const dot = add(group, "circle", { class: "dot", cx: x(p.x).toFixed(1), cy: clip(p.y), r });
    if (p.text) add(dot, "title", {}, p.text);
  }
}

// Points that follow each other without a gap.
function runs(points) {
  const found = [[]];
  for (const point of points) {
    if (point) found[found.length - 1].push(point);
    else found.push([]);
  }
  return found.filter(run => run.length);
}

const root = document.documentElement;
document.getElementById("theme").addEventListener("click", () => {
  const isDark = getComputedStyle(root).colorScheme === "dark" ||
    (!root.style.colorScheme && matchMedia("(prefers-color-scheme: dark)").matches);
  root.style.colorScheme = isDark ? "light" : "dark";
});
