// Charts are drawn when they come into view, and drawn anew only if something changed since.
const data = JSON.parse(document.getElementById("data").textContent);
const charts = [...document.querySelectorAll(".chart")];
const boxes = [...document.querySelectorAll("input[data-policy]")];
const inView = new Set();
const MARGIN = { left: 64, right: 12, top: 10, bottom: 42 };
let version = 0; // of what all charts show

const worldOf = element => data.worlds[element.closest("[data-world]").dataset.world];
const siblings = chart => [...chart.closest("section").querySelectorAll(".chart")];

// ---- drawing

function yDomain(chart, shown, isInside) {
  const { column } = chart.dataset, isLog = chart.dataset.y === "log";
  let low = Infinity, high = -Infinity;
  for (const series of shown) {
    series[column].forEach((value, k) => {
      if (value === null || !isInside(k) || (isLog && value <= 0)) return;
      low = Math.min(low, value);
      high = Math.max(high, value + (isLog || column !== "regret" ? 0 : series.half?.[k] ?? 0));
    });
  }
  if (high < low) return isLog ? [1, 10] : [0, 1];
  if (isLog) return low < high ? [low / 1.15, high * 1.15] : [low / 2, high * 2];
  return [Math.min(0, low), high > 0 ? 1.04 * high : 1];
}

function scalesOf(chart, shown) {
  const { t, range } = worldOf(chart), isLog = chart.dataset.x === "log";
  const { width, height } = chart.getBoundingClientRect();
  const last = t[t.length - 1], ends = range ?? [isLog ? t[0] : 0, last > t[0] ? last : t[0] + 1];
  const isInside = k => t[k] >= ends[0] && t[k] <= ends[1];
  return { width, height,
    x: scale(isLog, ends, [MARGIN.left, width - MARGIN.right]),
    y: scale(chart.dataset.y === "log", yDomain(chart, shown, isInside),
      [height - MARGIN.bottom, MARGIN.top]) };
}

function draw(chart) {
  const world = worldOf(chart), { column } = chart.dataset;
  const shown = world.series.filter(s => s[column] && boxes[s.policy].checked);
  const frame = scalesOf(chart, shown), svg = add(chart, "svg", { width: "100%", height: "100%" });
  drawAxes(svg, frame, chart.dataset.title);
  const plot = add(svg, "svg", { x: MARGIN.left, y: MARGIN.top, overflow: "hidden",
    width: Math.max(1, frame.width - MARGIN.left - MARGIN.right),
    height: Math.max(1, frame.height - MARGIN.top - MARGIN.bottom) });
  const lines = add(plot, "g", { transform: `translate(${-MARGIN.left},${-MARGIN.top})` });
  if (column === "regret") shown.filter(s => s.half).forEach(s => drawBand(lines, frame, world.t, s));
  // The hero comes last, on top of everybody.
  const rank = series => data.policies[series.policy].hero ? 1 : 0;
  [...shown].sort((a, b) => rank(a) - rank(b)).forEach(s => drawLine(lines, frame, world.t, s, column));
  const height = frame.height - MARGIN.bottom;
  add(svg, "line", { class: "cursor", y1: MARGIN.top, y2: height, visibility: "hidden" });
  add(svg, "rect", { class: "zoom", y: MARGIN.top, height: height - MARGIN.top, width: 0 });
  chart.replaceChildren(svg);
  chart.frame = frame;
  chart.dataset.version = version;
  showCursor(chart);
}

function drawAxes(svg, { x, y, width, height }, title) {
  const left = MARGIN.left, right = width - MARGIN.right, bottom = height - MARGIN.bottom;
  for (const value of ticks(x)) {
    add(svg, "line", { class: "grid", x1: x(value), x2: x(value), y1: MARGIN.top, y2: bottom });
    add(svg, "text", { x: x(value), y: bottom + 16, "text-anchor": "middle" }, number(value));
  }
  grid(svg, y, [left, right]);
  add(svg, "text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, "round t");
  const turned = `translate(14,${(MARGIN.top + bottom) / 2}) rotate(-90)`;
  add(svg, "text", { transform: turned, "text-anchor": "middle" }, title);
}

function points({ x, y }, t, values) {
  const found = [];
  values.forEach((value, k) => {
    if (value === null || (y.isLog && value <= 0)) return;
    found.push(`${x(t[k]).toFixed(1)},${y(value).toFixed(1)}`);
  });
  return found;
}

function drawLine(parent, frame, t, series, column) {
  const policy = data.policies[series.policy], places = points(frame, t, series[column]);
  const dots = t.length < 5 ? places.map(at => `M${at}m-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0`) : [];
  add(parent, "path", { class: "line", "data-line": series.policy, fill: "none",
    "stroke-dasharray": policy.dash, "stroke-width": policy.hero ? 3.5 : 1.8,
    d: places.length ? through(places) + dots.join("") : "",
    style: `stroke: light-dark(${policy.colour}, ${policy.dark})` });
}

function drawBand(parent, frame, t, series) {
  const policy = data.policies[series.policy], floor = frame.y.isLog ? frame.y.domain[0] : -Infinity;
  const edge = sign => series.regret.map((value, k) =>
    value === null ? null : Math.max(value + sign * (series.half[k] ?? 0), floor));
  const d = around(points(frame, t, edge(1)), points(frame, t, edge(-1)));
  add(parent, "path", { class: "band", d, opacity: 0.14,
    style: `fill: light-dark(${policy.colour}, ${policy.dark})` });
}

function drawStale(chart) {
  if (chart.dataset.version !== String(version)) draw(chart);
}

function refresh() {
  version += 1;
  inView.forEach(drawStale);
}

function redraw(some) {
  for (const chart of some) {
    if (inView.has(chart)) draw(chart);
    else chart.dataset.version = "old";
  }
}

// ---- what charts of one world share: the range of rounds, and the round pointed at

function point(chart, event) {
  const world = worldOf(chart), at = chart.frame.x.back(xOf(chart, event));
  const gaps = world.t.map(t => Math.abs(t - at));
  world.at = gaps.indexOf(Math.min(...gaps));
  siblings(chart).forEach(showCursor);
  readOut(chart.closest("section"), chart);
}

const xOf = (chart, event) => event.clientX - chart.getBoundingClientRect().left;

function showCursor(chart) {
  const world = worldOf(chart), cursor = chart.querySelector(".cursor");
  if (!cursor || world.at === undefined) return;
  const { x } = chart.frame, t = world.t[world.at], isShown = t >= x.domain[0] && t <= x.domain[1];
  cursor.setAttribute("x1", x(t));
  cursor.setAttribute("x2", x(t));
  cursor.setAttribute("visibility", isShown ? "visible" : "hidden");
}

function span(chart, event) {
  const { x } = chart.frame, ends = [chart.begin, xOf(chart, event)].sort((a, b) => a - b);
  const edges = x.domain.map(x);
  return ends.map(pixel => Math.min(Math.max(pixel, edges[0]), edges[1]));
}

function zoom(chart, range) {
  worldOf(chart).range = range;
  redraw(siblings(chart));
}

function listen(chart) {
  chart.addEventListener("pointermove", event => {
    point(chart, event);
    if (chart.begin === undefined) return;
    const [from, to] = span(chart, event), box = chart.querySelector(".zoom");
    box.setAttribute("x", from);
    box.setAttribute("width", to - from);
  });
  chart.addEventListener("pointerdown", event => {
    point(chart, event);
    if (event.pointerType !== "mouse" || event.button) return;
    chart.begin = xOf(chart, event);
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener("pointerup", event => {
    if (chart.begin === undefined) return;
    const [from, to] = span(chart, event);
    chart.begin = undefined;
    if (to - from > 8) zoom(chart, [from, to].map(chart.frame.x.back));
  });
  chart.addEventListener("pointercancel", () => { chart.begin = undefined; });
  chart.addEventListener("dblclick", () => zoom(chart, null));
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
}));

const watcher = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) {
      inView.add(target);
      drawStale(target);
    } else inView.delete(target);
  }
  document.body.dataset.state = "ready";
}, { rootMargin: "200px" });
document.querySelectorAll("section[data-world]").forEach(section => {
  readOut(section, section.querySelector(".chart"));
});
charts.forEach(chart => {
  listen(chart);
  watcher.observe(chart);
});
let wide = innerWidth;
window.addEventListener("resize", () => {
  if (innerWidth !== wide) refresh(); // a phone's bars change the height all the time
  wide = innerWidth;
});
