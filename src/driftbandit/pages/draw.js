"use strict";
// What all pages share: SVG elements, scales, ticks, numbers, and the button for light or dark.
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

const root = document.documentElement;
document.getElementById("theme").addEventListener("click", () => {
  const isDark = getComputedStyle(root).colorScheme === "dark" ||
    (!root.style.colorScheme && matchMedia("(prefers-color-scheme: dark)").matches);
  root.style.colorScheme = isDark ? "light" : "dark";
});
