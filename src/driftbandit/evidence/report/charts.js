// Charts of an evaluation. They have one size and shrink with the page; tables give their numbers.
const WIDTH = 760, HEIGHT = 300, ROOM = 3; // pixels; for intervals, in ranges of the means
const EDGE = { left: 64, right: 12, top: 10, bottom: 34 };
const { starts, names, charts } = JSON.parse(document.getElementById("data").textContent);

const seriesOf = ({ middle, low, high, ...look }) => ({ look,
  points: starts.map((x, k) => middle[k] === null ? null :
    { x, y: middle[k], low: low[k] ?? middle[k], high: high[k] ?? middle[k] }) });

function draw(svg, { lines, zero }) {
  const series = lines.map(seriesOf), last = starts[starts.length - 1], [low, high] = heights(series, ROOM);
  const x = scale(false, [starts[0], last > starts[0] ? last : starts[0] + 1], [EDGE.left, WIDTH - EDGE.right]);
  const y = scale(false, zero ? [Math.min(low, 0), Math.max(high, 0)] : [low, high], [HEIGHT - EDGE.bottom, EDGE.top]);
  grid(svg, y, x.domain.map(x));
  names.forEach(([place, text, anchor]) => add(svg, "text", { x: x(place), y: HEIGHT - 12, "text-anchor": anchor }, text));
  if (zero) add(svg, "line", { class: "cursor", x1: EDGE.left, x2: WIDTH - EDGE.right, y1: y(0), y2: y(0) });
  const groups = series.map(({ look: { colour, dark, dash } }) =>
    ({ style: `--own: light-dark(${colour}, ${dark})`, "stroke-dasharray": dash }));
  series.forEach(({ points }, k) => addBand(add(svg, "g", groups[k]), points, x, y));
  series.forEach(({ points }, k) => {
    const group = add(svg, "g", groups[k]);
    addLine(group, points, x, y);
    addDots(group, points, x, y, 2.5);
  });
}

document.querySelectorAll(".plots svg").forEach((svg, k) => draw(svg, charts[k]));
