"use strict";
// Charts are drawn when they come into view, and drawn anew only if something changed since.
const data = JSON.parse(document.getElementById("data").textContent);
const charts = [...document.querySelectorAll(".chart")];
const boxes = [...document.querySelectorAll("input[data-policy]")];
const system = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)").matches;
const root = document.documentElement;
const inView = new Set();
let version = 0; // of what all charts show

const isDark = () => root.style.colorScheme ? root.style.colorScheme === "dark" : system.matches;
const ink = policy => isDark() ? policy.dark : policy.colour;
const worldOf = element => data.worlds[element.closest("[data-world]").dataset.world];
const siblings = chart => [...chart.closest("section").querySelectorAll(".chart")];

// ---- charts

function traces(chart) {
  const world = worldOf(chart), column = chart.dataset.column;
  const mode = world.t.length < 5 ? "lines+markers" : "lines";
  return world.series.filter(series => series[column]).flatMap(series => {
    const policy = data.policies[series.policy];
    const common = { meta: series.policy, hoverinfo: "skip", visible: boxes[series.policy].checked };
    const line = { ...common, x: world.t, y: series[column], mode, connectgaps: true,
      line: { color: ink(policy), dash: policy.dash, width: policy.hero ? 3.5 : 1.8 } };
    const framed = column === "regret" && series.half;
    return framed ? [{ ...common, ...band(policy, series, chart) }, line] : [line];
  });
}

function band(policy, series, chart) {
  const { t } = worldOf(chart), half = k => series.half[k] ?? 0;
  const least = k => chart.dataset.y === "log" ? series.regret[k] / 100 : -Infinity;
  const known = [...t.keys()].filter(k => series.regret[k] !== null), back = [...known].reverse();
  return { x: [...known, ...back].map(k => t[k]),
    y: [...known.map(k => series.regret[k] + half(k)),
      ...back.map(k => Math.max(series.regret[k] - half(k), least(k)))],
    fill: "toself", fillcolor: ink(policy), opacity: 0.14, mode: "lines", line: { width: 0 } };
}

function decades(chart) {
  const values = worldOf(chart).series.flatMap(s => s[chart.dataset.column] ?? []).filter(v => v > 0);
  const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [1e300, 0]);
  return values.length ? Math.log10(high / low) : 0;
}

function layout(chart) {
  const style = getComputedStyle(document.body), faint = isDark() ? "#363c45" : "#e1e5ea";
  const { range } = worldOf(chart);
  const axis = (type, title) => ({ type, title: { text: title }, gridcolor: faint,
    linecolor: faint, zerolinecolor: faint, automargin: true, nticks: 7 });
  const yaxis = axis(chart.dataset.y, chart.dataset.title);
  if (yaxis.type === "log") yaxis.dtick = decades(chart) > 2 ? 1 : "D2";
  const xaxis = { ...axis(chart.dataset.x, "round t"), autorange: !range,
    ...(range && { range: [...range] }), uirevision: String(range) };
  return { xaxis, yaxis: { ...yaxis, rangemode: "tozero" }, showlegend: false, hovermode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: style.color, family: "system-ui, sans-serif", size: 12 },
    dragmode: touch ? false : "zoom", margin: { l: 60, r: 12, t: 26, b: 45 },
    modebar: { bgcolor: "rgba(0,0,0,0)",
      color: getComputedStyle(document.querySelector("figcaption")).color,
      activecolor: getComputedStyle(document.querySelector("a")).color },
    uirevision: chart.dataset.x + chart.dataset.y };
}

function draw(chart) {
  const config = { responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "",
    displayModeBar: touch ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const isNew = chart.dataset.version === undefined;
  chart.dataset.version = version;
  Plotly.react(chart, traces(chart), layout(chart), config);
  if (!isNew) return;
  chart.on("plotly_relayout", change => link(chart, change));
  chart.addEventListener("pointermove", event => point(chart, event.clientX));
  chart.addEventListener("pointerdown", event => point(chart, event.clientX));
}

function drawStale(chart) {
  if (chart.dataset.version !== String(version)) draw(chart);
}

function refresh() {
  version += 1;
  inView.forEach(drawStale);
}

// ---- what charts of one world share: the range of x, and the round pointed at

function link(chart, change) {
  const world = worldOf(chart), ends = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  if (ends[0] === undefined && !change["xaxis.autorange"]) return;
  const range = change["xaxis.autorange"] ? null : ends;
  if (String(range) === String(world.range ?? null)) return;
  world.range = range;
  redraw(siblings(chart).filter(other => other !== chart));
}

function redraw(some) {
  for (const chart of some) {
    if (inView.has(chart)) draw(chart);
    else if (chart.dataset.version !== undefined) chart.dataset.version = "old";
  }
}

function point(chart, clientX) {
  const { xaxis } = chart._fullLayout, world = worldOf(chart);
  const at = xaxis.p2d(clientX - chart.getBoundingClientRect().left - xaxis._offset);
  const gaps = world.t.map(t => Math.abs(t - at));
  world.at = gaps.indexOf(Math.min(...gaps));
  siblings(chart).forEach(showCursor);
  readOut(chart.closest("section"), chart);
}

function showCursor(chart) {
  const cursor = chart.parentNode.querySelector(".cursor"), world = worldOf(chart);
  if (!chart._fullLayout || world.at === undefined) return;
  const { xaxis, yaxis } = chart._fullLayout, x = xaxis.d2p(world.t[world.at]);
  Object.assign(cursor.style, { left: `${xaxis._offset + x}px`, top: `${yaxis._offset}px`,
    height: `${yaxis._length}px`, visibility: x < 0 || x > xaxis._length ? "hidden" : "visible" });
}

// ---- the readout beside the charts: values at that round, least first, and a legend

function readOut(section, chart) {
  const world = worldOf(section), { column } = chart.dataset;
  const at = world.at ?? world.t.length - 1, list = section.querySelector(".readout ol");
  const rows = world.series.map(series => ({ policy: series.policy, value: series[column]?.[at],
    spread: column === "regret" ? series.deviation?.[at] : null }));
  const key = row => row.value ?? Infinity;
  rows.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
  const known = rows.map(row => row.value).filter(value => value > 0);
  const middle = known[Math.floor(known.length / 2)] ?? 1;
  const digits = Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(middle))));
  const text = value => value === null || value === undefined ? "–" : value.toFixed(digits);
  section.querySelector(".readout p").textContent = `${chart.dataset.title} at t = ${world.t[at]}` +
    (column === "regret" && rows.some(row => row.spread) ? ", ± deviation over seeds" : "");
  const entries = new Map([...list.children].map(item => [Number(item.dataset.entry), item]));
  for (const { policy, value, spread } of rows) {
    const item = entries.get(policy);
    item.querySelector("i").textContent = text(value);
    item.querySelector("small").textContent = spread ? `± ${text(spread)}` : "";
  }
  const order = rows.map(row => entries.get(row.policy));
  if (order.some((item, k) => list.children[k] !== item)) list.replaceChildren(...order);
}

// ---- which policies are shown

function show(wanted) {
  boxes.forEach((box, k) => { box.checked = wanted(k); });
  update();
}

function update() {
  document.querySelectorAll(".readout [data-policy]").forEach(entry => {
    entry.setAttribute("aria-pressed", boxes[entry.dataset.policy].checked);
  });
  refresh();
}

function isolate(chosen) {
  const alone = boxes.every((box, k) => box.checked === (k === chosen));
  show(k => alone || k === chosen);
}

document.addEventListener("click", event => {
  const entry = event.target.closest(".readout [data-policy]");
  if (!entry) return;
  const box = boxes[entry.dataset.policy];
  box.checked = !box.checked;
  update();
});
document.addEventListener("dblclick", event => {
  const entry = event.target.closest("[data-policy], .policies label");
  const found = entry?.closest("[data-policy]") ?? entry?.querySelector("[data-policy]");
  if (found) isolate(Number(found.dataset.policy));
});
boxes.forEach(box => box.addEventListener("change", update));
document.getElementById("all").addEventListener("click", () => show(() => true));
document.getElementById("none").addEventListener("click", () => show(() => false));
document.getElementById("theme").addEventListener("click", () => {
  root.style.colorScheme = isDark() ? "light" : "dark";
  refresh();
});
system.addEventListener("change", refresh);
window.addEventListener("beforeprint", () => charts.forEach(drawStale));
document.querySelectorAll("[data-axis]").forEach(button => button.addEventListener("click", () => {
  const own = button.closest("figure").querySelector(".chart"), { axis } = button.dataset;
  const kind = own.dataset[axis] === "log" ? "linear" : "log";
  const changed = axis === "x" ? siblings(own) : [own];
  if (axis === "x") worldOf(own).range = null;
  changed.forEach(chart => {
    chart.dataset[axis] = kind;
    chart.closest("figure").querySelector(`[data-axis=${axis}]`)
      .setAttribute("aria-pressed", kind === "log");
  });
  redraw(changed);
  changed.forEach(showCursor);
}));

const watcher = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) {
      inView.add(target);
      drawStale(target);
    } else inView.delete(target);
  }
  document.body.dataset.state = "ready";
});
document.querySelectorAll("section[data-world]").forEach(section => {
  readOut(section, section.querySelector(".chart"));
});
charts.forEach(chart => watcher.observe(chart));
