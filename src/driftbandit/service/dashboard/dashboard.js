// ---- the service: every request carries the API key, if there is one

const at = id => document.getElementById(id);
const KEY = "driftbandit key", AGAIN = 2000; // milliseconds until an unreachable service is asked again
const BREAK = 300; // milliseconds from one stream to the next
let key = sessionStorage.getItem(KEY), watching = null, latest = null;

const ask = (address, options = {}) => fetch(address, { cache: "no-store", ...options,
  headers: key ? { Authorization: `Bearer ${key}` } : {} });
const loopAt = name => `v1/loops/${encodeURIComponent(name)}`;
const pause = time => new Promise(done => setTimeout(done, time));

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part.slice("data: ".length));
  }
}

const REFUSED = {
  401: "The service does not know this API key: it is mistyped, was revoked, or belongs to another ledger. ",
  403: "The service knows this API key, but it may not read. ",
};

async function refused(answer) {
  const problem = await answer.json().catch(() => ({}));
  complain((REFUSED[answer.status] ?? "") + (problem.detail ?? `the service answers ${answer.status}`));
  if (answer.status === 401 || answer.status === 403) forget();
  return answer.status;
}

async function watch() {
  watching?.abort();
  const own = watching = new AbortController();
  while (!own.signal.aborted) {
    try {
      await follow(own.signal);
      await pause(BREAK);
    } catch (error) {
      if (own.signal.aborted) return;
      at("view").classList.add("stale");
      say("The service does not answer, so the numbers are old. Trying again.");
      await pause(AGAIN);
    }
  }
}

async function follow(signal) {
  const answer = await ask("v1/loops", { signal });
  if (!answer.ok) return await refused(answer), pause(AGAIN);
  const name = chosen((await answer.json()).loops);
  at("empty").hidden = name !== undefined;
  if (name === undefined) return first(), pause(AGAIN);
  if (at("view").hidden) say("Waiting for the loop. A service that is new on its machine compiles for half a minute.");
  const stream = await ask(`${loopAt(name)}/live`, { signal });
  if (!stream.ok) return await refused(stream), pause(AGAIN);
  for await (const view of events(stream.body)) show(view);
}

// ---- which loop, which key

const DECLARED = { reward: { low: 0, high: 1, wait: "30min", missing: 0 }, exploration: 0.05,
  features: { context: { age: { type: "Number", low: 18, high: 90 } },
    arm: { topic: { type: "Category", values: ["sport", "world"] } } } };
function first() {
  const access = root.dataset.access === "open" ? "" : ` -H "Authorization: Bearer $KEY"`;
  at("first").textContent = `curl -X PUT ${location.origin}/v1/loops/news${access} ` +
    `-H "Content-Type: application/json" -d '${JSON.stringify(DECLARED)}'`;
  at("view").hidden = true;
  say("No loop is declared yet.");
}
at("copy").addEventListener("click", () => navigator.clipboard.writeText(at("first").textContent));

function chosen(names) {
  const list = at("loops");
  const name = names.find(each => `#${encodeURIComponent(each)}` === location.hash) ?? names[0];
  list.replaceChildren(...names.map(each => new Option(each, each, false, each === name)));
  at("choice").hidden = !names.length;
  return name;
}

function forget() {
  watching?.abort();
  sessionStorage.removeItem(KEY);
  key = null;
  for (const id of ["view", "choice", "report", "forget", "empty"]) at(id).hidden = true;
  at("login").hidden = root.dataset.access === "open";
  say("");
}

function enter() {
  at("login").hidden = true;
  at("forget").hidden = !key;
  watch();
}

at("login").addEventListener("submit", event => {
  event.preventDefault();
  key = at("key").value.trim();
  at("key").value = "";
  sessionStorage.setItem(KEY, key);
  complain("");
  enter();
});
at("forget").addEventListener("click", () => { complain(""); forget(); });
at("loops").addEventListener("change", () => { location.hash = encodeURIComponent(at("loops").value); });
window.addEventListener("hashchange", watch);
at("report").addEventListener("click", async () => {
  say("Evaluating the log.");
  const answer = await ask(`${loopAt(at("loops").value)}/evaluation.html`);
  if (!answer.ok) return refused(answer);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = "evaluation.html";
  link.click();
  return URL.revokeObjectURL(link.href);
});

// ---- words and numbers; all that comes from the service is set as text

const say = text => { at("state").textContent = text; };
function complain(text) {
  at("wrong").textContent = text;
  at("wrong").hidden = !text;
}

const whole = value => `${Number((100 * value).toPrecision(3))} %`;
const percent = value => `${(100 * value).toFixed(1)} %`;
const signed = value => (value < 0 ? "−" : "+") + number(Number(Math.abs(value).toPrecision(2)));
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const plain = value => (value < 0 ? "−" : "") + number(Math.abs(value));
const mean = found => found ? plain(Number(found.mean.toPrecision(3))) : "unknown";
const range = found => found ?
  `${[found.low, found.high].map(end => plain(Number(end.toPrecision(3)))).join(" to ")}` : "";
const NAMES = { loop: "live" };
const nameOf = name => Object.hasOwn(NAMES, name) ? NAMES[name] : name;

function element(name, text, ...inner) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  node.append(...inner);
  return node;
}

const unrewarded = ({ missing_reward: value }) => value === null ? "not learnt from" : `counted as ${plain(value)}`;

const MEANS = {
  "value-loop": "Mean reward of all decisions that the loop made, with its 95 % interval",
  "value-default": "Mean reward if every decision had played its default, estimated from the log",
  "value-uniform": "Mean reward if every decision had been drawn at random, estimated from the log",
  memory: "How many rewards the estimate rests on; it falls when the loop forgets",
  exploration: "Mean probability of an arm other than the one that the learner prefers",
  missing: "Decisions whose window closed without a reward",
  behind: "How long the oldest example has waited to be trained",
};

function tile(name, label, text, note, value) {
  const shown = element("dd", text), box = element("div", undefined, element("dt", label), shown);
  box.dataset.tile = name;
  if (Object.hasOwn(MEANS, name)) box.firstChild.title = MEANS[name];
  shown.dataset.value = value ?? "";
  box.append(element("small", note));
  return box;
}

const ORDER = { loop: 0, uniform: 2 }; // the others between them
function tiles({ report, behind, waiting, mode, policy }) {
  const last = name => Object.hasOwn(ORDER, name) ? ORDER[name] : 1;
  const named = Object.entries(report.values).sort(([a], [b]) => last(a) - last(b));
  const values = named.map(([name, found]) =>
    tile(`value-${name}`, `reward, ${nameOf(name)}`, mean(found), range(found), found?.mean));
  const { memory } = report;
  const short = value => plain(Number(value.toPrecision(3)));
  const budgets = Object.entries(report.budget).map(([name, found]) =>
    tile(`budget-${name}`, `${name} for a decision`, short(found.mean),
      `of ${short(found.bound)}, price ${found.price === null ? "unknown" : short(found.price)}` +
      (found.left === null ? "" : `, ${short(found.left)} left`), found.mean));
  return [[...values, ...budgets,
    tile("decisions", "decisions", report.decisions.toLocaleString("en"), `${policy}, ${mode}`, report.decisions)],
    [tile("rewards", "rewards", report.rewards.toLocaleString("en"), `of the latest ${counted(report.recent, "decision")}`, report.rewards),
    tile("memory", "memory", memory === null ? "unknown" : number(Math.round(memory)), report.state ?? "rewards", memory),
    tile("exploration", "exploration", percent(report.exploration_share), "chance of another arm", report.exploration_share),
    tile("missing", "no reward in time", percent(report.missing), `${unrewarded(report)}, late ${percent(report.late)}`, report.missing),
    tile("behind", "learner behind", `${behind.toFixed(1)} s`, `${counted(waiting, "example")} not trained yet`, behind)]];
}

// ---- the status in words

const WORLD = {
  "learning": "It is too early to say whether rewards change over time.",
  "stationary": "The loop sees no change at present.",
  "drifting": "Rewards keep changing, and the loop follows.",
  "just changed": "The loop has just detected a change: it forgets what no longer holds, and learns anew.",
};

const rounded = (value, relative) => relative ? `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(0)} %` : signed(value);

function verdict({ rewards, values, uplift }) {
  if (!values.loop) return rewards ? "No mean reward is known." : "No rewards yet.";
  if (!uplift) return "Cannot say how the loop compares: pass default= with each decision, and explore or hold out a share.";
  const { mean: middle, low, high, relative, better } = uplift;
  const shown = rounded(middle, relative), ends = `95 %: ${rounded(low, relative)} to ${rounded(high, relative)}`;
  if (better === null) return `Cannot say yet whether the loop beats the default: ${shown} reward (${ends}).`;
  return `${shown} reward over the default (${ends})${better ? "" : ": the default does better"}`;
}

function world({ state, acts }, detected) {
  const last = detected.length ? ` Latest change detected at ${time(detected[detected.length - 1])}.` : "";
  const now = acts === "default" ? "The default acts, not the loop. " : "";
  return now + (Object.hasOwn(WORLD, state ?? "") ? WORLD[state] : "") + last;
}

function who({ acts, candidates }) {
  const shares = Object.entries(candidates).map(([name, share]) => `${name} (${share ? percent(share) : "shadow"})`);
  return `Acting policy: ${acts}.${shares.length ? ` Candidates: ${shares.join(", ")}.` : ""}`;
}

// ---- charts over time

const STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400];
const ROOM = 0.7; // for intervals, in ranges of the means
const EDGE = { left: 52, right: 14, top: 10, bottom: 26 };
const clock = options => new Intl.DateTimeFormat("en-GB", options);
const seconds = clock({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const minutes = clock({ hour: "2-digit", minute: "2-digit" }), days = clock({ day: "numeric", month: "short" });
const time = moment => seconds.format(1000 * moment);

function timeTicks([from, to], most) {
  const least = (to - from) / most;
  const step = STEPS.find(each => each >= least) ?? 86400 * Math.ceil(least / 86400);
  const format = step < 60 ? seconds : step < 86400 ? minutes : days, found = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) found.push([t, format.format(1000 * t)]);
  return found;
}

// `range` is that of the values, `span` that of the times; `marks` are times with a line of their own.
function plot(box, series, { label = number, range: given, marks = [], span } = {}) {
  const points = series.flatMap(each => each.points).filter(Boolean);
  const { width, height } = box.getBoundingClientRect();
  box.replaceChildren();
  const svg = add(box, "svg", { width, height });
  if (!points.length) return add(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "No rewards yet.");
  const [from, to] = span ?? extent(points.map(point => point.x));
  const x = scale(false, from < to ? [from, to] : [from - 1, to + 1], [EDGE.left, width - EDGE.right]);
  const y = scale(false, given ?? heights(series, ROOM), [height - EDGE.bottom, EDGE.top]);
  axes(svg, x, y, { width, height }, label);
  series.forEach(each => lines(add(svg, "g", { class: each.look ?? `series series-${each.place}` }), each, x, y));
  const inside = marks.filter(({ moment }) => moment >= x.domain[0] && moment <= x.domain[1]);
  inside.forEach(each => mark(svg, x(each.moment), each, { width, height }));
  uncovered(svg.querySelectorAll(".mark text"));
  return svg;
}

// Leave out labels that would cover a later one; their lines stay.
function uncovered(labels) {
  const kept = [];
  for (const label of [...labels].reverse()) {
    const own = label.getBBox();
    const hit = kept.some(({ x, y, width }) => y === own.y && own.x < x + width && x < own.x + own.width);
    if (hit) label.remove();
    else kept.push(own);
  }
}

const marked = ({ detected, happened = [] }) => [
  ...happened.map(moment => ({ moment, text: "tastes changed", look: "mark happened", line: 1 })),
  ...detected.map(moment => ({ moment, text: "change detected", look: "mark", line: 0 }))];

function mark(svg, x, { text, look, line }, { width, height }) {
  const group = add(svg, "g", { class: look }), room = 130;
  const isLeft = x > width - room || (look.includes("happened") && x > EDGE.left + room); // away from its detection
  add(group, "line", { x1: x, x2: x, y1: EDGE.top, y2: height - EDGE.bottom });
  add(group, "text", { x: x + (isLeft ? -5 : 5), y: EDGE.top + 12 + 15 * line, "text-anchor": isLeft ? "end" : "start" }, text);
}

function axes(svg, x, y, { width, height }, label) {
  grid(svg, y, [EDGE.left, width - EDGE.right], label);
  for (const [moment, text] of timeTicks(x.domain, width / 110)) {
    const room = Math.min(Math.max(x(moment), EDGE.left), width - EDGE.right - 20);
    add(svg, "text", { x: room, y: height - 6, "text-anchor": "middle" }, text);
  }
}

function lines(group, { points }, x, y) {
  addBand(group, points, x, y);
  addLine(group, points, x, y);
  addDots(group, points.filter(each => each?.text), x, y, 3.5);
}

function legend(box, series) {
  box.replaceChildren(...series.map(({ name, place, look }) => {
    const item = element("span"), kind = look ? look.replace("stack", "") : `series series-${place}`;
    const swatch = add(item, "svg", { class: kind, width: 28, height: 8 });
    add(swatch, "path", { class: "line", d: "M0 4H28" });
    item.append(name);
    return item;
  }));
}

const PLACES = { loop: 0, default: 1 };
function rewards(curve) {
  const known = name => name !== "uniform" && curve.some(each => each.values[name]); // uniform choices have a number, no line
  const names = Object.keys(curve[0]?.values ?? {}).filter(known);
  return names.map((name, k) => ({ name: nameOf(name), place: Object.hasOwn(PLACES, name) ? PLACES[name] : k + 1,
    points: curve.map(({ start, end, rows, values: { [name]: found } }) => found && {
      x: (start + end) / 2, y: found.mean, low: found.low, high: found.high,
      text: `${nameOf(name)}, ${time(start)} to ${time(end)}: ${mean(found)} (${range(found)}), ${counted(rows, "decision")}` }) }));
}

// One band for each arm, on top of each other; the rest is of all other arms.
function stacked(curve) {
  const names = Object.keys(curve[0]?.shares ?? {}), floor = curve.map(() => 0);
  const last = curve[curve.length - 1];
  const band = (name, look, share) => ({ name: `${name} ${percent(share(last))}`, look: `stack ${look}`,
    points: curve.map((each, k) => {
      const low = floor[k], high = floor[k] = low + share(each);
      return { x: (each.start + each.end) / 2, y: high, low, high };
    }) });
  const rest = each => Math.max(0, 1 - Object.values(each.shares).reduce((sum, share) => sum + share, 0));
  const found = names.map((name, k) => band(name, `arm-${k}`, each => each.shares[name]));
  return curve.some(each => rest(each) > 1e-9) ? [...found, band("others", "arm-rest", rest)] : found;
}

const level = (history, field, name, place) => ({ name, place,
  points: history.map(each => each[field] === null ? null :
    { x: each.at, y: each[field], low: each[field], high: each[field] }) });

// ---- the view

const SENTENCES = 3; // of what changed; the table has all

// Says a term in words: "phone*kind=books" is an arm's column together with one of the context.
function named(term) {
  if (term === "1") return "Every arm";
  const [context, arm] = term.includes("*") ? term.split("*") : [undefined, term];
  return context === undefined ? arm : `With ${context}, ${arm}`;
}

function moved({ term, before, after }, since) {
  const verb = after > before ? "now does better" : "now does worse", gone = signed(after - before);
  return `${named(term)} ${verb}: ${gone} log-odds since ${time(since)} (${signed(before)} before, ${signed(after)} now)`;
}

function changes({ health: { report: { changed } }, since, detected }) {
  const than = detected.length ? "the state before the latest detected change" : "the middle of the chart";
  at("since").textContent = since === null ? "Not enough history yet." :
    changed.length ? `Compared with ${than} (${time(since)}), the clearest first:` :
      detected.length ? `No significant changes yet since ${time(since)}, just before the latest detected change. The loop may still be learning what changed.` :
        `No significant changes since ${time(since)}.`;
  at("moved").replaceChildren(...(since === null ? [] : changed.slice(0, SENTENCES)).map(each => element("li", moved(each, since))));
  at("terms").hidden = !changed.length;
  at("changed").tBodies[0].replaceChildren(...changed.map(({ term, before, after, deviation }) => {
    const name = element("th", term);
    name.scope = "row";
    const gone = `${signed(after - before)} ± ${number(Number(deviation.toPrecision(2)))}`;
    return element("tr", undefined, name, ...[signed(before), signed(after), gone].map(text => element("td", text)));
  }));
}

const ASIDE = ["apprentice", "holdout", "fallback", "spent"]; // roles in which the default is played

// Says in words why an arm was played although its estimate is behind.
function reason({ role, lead, bonus, probability, costs = {} }) {
  if (ASIDE.includes(role)) return `the default (${role}): `;
  if (!(lead < 0)) return lead + (bonus ?? 0) < 0 && probability <= 0.5 ? "explored: " : "";
  const saved = Object.entries(costs).sort((a, b) => b[1] - a[1])[0];
  if (saved && saved[1] > 0 && probability > 0.5) return `its lower ${saved[0]} outweighs: `;
  const outweighs = bonus === undefined || bonus === null ? probability > 0.5 : lead + bonus > 0;
  return outweighs ? "its exploration bonus outweighs: " : "explored: ";
}

function why({ runner_up: runner, lead, bonus, terms = {}, costs = {} }) {
  const largest = Object.entries(terms).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const extra = bonus === undefined || bonus === null ? [] : [["exploration bonus", bonus]];
  const priced = Object.entries(costs).map(([name, value]) => [`${name} at its price`, value]);
  const parts = [...largest, ...extra, ...priced].map(([term, value]) => `${term} ${signed(value)}`).join(", ");
  if (runner === undefined || runner === null) return parts;
  return `${signed(lead)} ${lead < 0 ? "against" : "over"} ${runner}${parts && `: ${parts}`}`;
}

function decisions(made) {
  at("latest").tBodies[0].replaceChildren(...made.map(each => {
    const place = each.position === null ? "" : ` (position ${each.position + 1})`;
    const name = element("th", `${each.arm}${place}`), row = element("tr", undefined, name);
    name.scope = "row";
    row.dataset.id = each.id;
    row.classList.toggle("explored", reason(each) === "explored: ");
    row.append(...[time(each.at), percent(each.probability), each.role, reason(each) + why(each)].map(text => element("td", text)));
    return row;
  }));
}

// One axis of time for all charts: from the first window to the latest view.
function spanned({ health: { report: { curve } }, history }) {
  const times = [...curve.flatMap(({ start, end }) => [start, end]), ...(curve.length ? [] : history.map(each => each.at))];
  return times.length ? extent(times) : undefined;
}

const calibration = ({ bias }) => !bias ? "" :
  `Calibration: observed minus expected reward is ${signed(bias.mean)} (95 %: ${signed(bias.low)} to ${signed(bias.high)}).`;

function show(view) {
  latest = view;
  const { health, history } = view, series = rewards(health.report.curve), marks = marked(view);
  const shares = [level(history, "exploration_share", "exploration", 0), level(history, "missing", "no reward in time", 1)];
  const span = spanned(view), [top, vitals] = tiles(health), arms = stacked(health.report.curve);
  for (const id of ["view", "report"]) at(id).hidden = false;
  at("empty").hidden = true;
  at("view").classList.remove("stale");
  complain("");
  at("concerns").replaceChildren(...health.report.concerns.map(text => element("li", text)));
  at("uplift").textContent = verdict(health.report);
  at("world").textContent = world(health.report, view.detected);
  at("tiles").replaceChildren(...top);
  at("vitals").replaceChildren(...vitals);
  at("who").textContent = who(health.report);
  legend(at("legend"), series);
  legend(at("parts"), shares);
  legend(at("arms"), arms);
  plot(at("reward"), series, { marks, span });
  plot(at("played"), arms, { label: whole, range: [0, 1], marks, span });
  if (at("health").open) {
    plot(at("memory"), [level(history, "memory", "memory", 0)], { marks, span });
    plot(at("shares"), shares, { label: whole, marks, span });
  }
  at("calibration").textContent = calibration(health.report);
  changes(view);
  decisions(view.latest);
  document.title = `${health.name} · driftbandit`;
  say(`connected, ${time(history[history.length - 1].at)}`);
}

at("health").addEventListener("toggle", () => latest && show(latest));
window.addEventListener("resize", () => latest && show(latest));
if (root.dataset.access === "open" || key) enter();
else forget();
