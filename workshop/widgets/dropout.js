// Attention weights under dropout: one draw, the mean of many, and its error.
import { Grid } from "./grid.js";
import { initialize } from "./keep.js";
import { tints } from "./palette.js";
import { limits } from "./pixels.js";
import { arrays, button, control, exact, FONT, fmt, frame, h } from "./shared.js";
import { put, readout, row, sheet, visible } from "./shared.js";

/** Random number k of a seed, in [0, 1): mulberry32, whose state only counts. */
function uniform(seed, k) {
  const a = (seed + Math.imul(k + 1, 0x6d2b79f5)) | 0;
  let t = Math.imul(a ^ (a >>> 15), a | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}
/** The last draw, dropped ones NaN; the mean of all; its error (root mean square) after each. */
function experiment(weights, p, seed, draws) {
  const [last, total, errors] = [[], weights.map(() => 0), []];
  for (let n = 1, k = 0; n <= draws; n++) {
    let squares = 0;
    weights.forEach((w, i) => {
      last[i] = uniform(seed, k++) < p ? NaN : w / (1 - p);
      total[i] += last[i] || 0;
      squares += (total[i] / n - w) ** 2;
    });
    errors.push([n, Math.sqrt(squares / weights.length)]);
  }
  return { last, mean: total.map((x) => x / draws), errors };
}

/** Something under its title. */
const panel = (title, ...children) =>
  h("div", {}, h("div", { className: "lab-title" }, title), ...children);

/** The error after each draw, [[draw, error], …], as a line between two axes with their ends in numbers. */
function drawErrors(canvas, points) {
  const [width, height] = [canvas.parentElement.clientWidth, 190];
  if (!width) return;
  const context = sheet(canvas, width, height);
  const fillStyle = getComputedStyle(canvas).color;
  const [left, right, top, bottom] = [52, width - 118, 26, height - 32];
  const [draws, largest] = [points.length, Math.max(...points.map(([, error]) => error))];
  const place = ([n, error]) => [
    left + ((n - 1) / (draws - 1 || 1)) * (right - left),
    bottom - (error / (largest || 1)) * (bottom - top),
  ];
  Object.assign(context, { font: FONT, fillStyle, strokeStyle: fillStyle, textBaseline: "middle" });
  for (const [text, x, y, align] of [
    [fmt(largest, 2), left - 6, top, "right"],
    [fmt(0, 2), left - 6, bottom, "right"],
    [fmt(1, 0), left, bottom + 12, "center"],
    [fmt(draws, 0), right, bottom + 12, "center"],
    ["draws", (left + right) / 2, bottom + 22, "center"],
    ["root mean square", 4, 8, "left"],
    ["error", right + 10, place(points.at(-1))[1], "left"],
  ]) {
    context.textAlign = align;
    context.fillText(text, x, y);
  }
  context.strokeRect(left, top, right - left, bottom - top);
  context.lineWidth = 1.8;
  context.beginPath();
  for (const point of points) context.lineTo(...place(point));
  context.stroke();
  context.beginPath();
  context.arc(...place(points.at(-1)), 5, 0, 7);
  context.stroke();
}
/** A table of numbers, to be filled by rows, [name, x, y, …]. */
function showTable(table, columns, rows) {
  const th = (text, scope) => h("th", { scope }, visible(text));
  const cells = (numbers) => numbers.map((x) => h("td", {}, exact(x)));
  const lines = rows.map(([name, ...x]) => h("tr", {}, th(name, "row"), ...cells(x)));
  const head = columns.map((text) => th(text, "col"));
  table.replaceChildren(h("tr", {}, h("td"), ...head), ...lines);
}

async function render({ model, el }) {
  let weights, done, shown;
  const [tokens, keys] = [model.get("tokens"), model.get("key_tokens")];
  const { root, redraw, close } = frame(model, el, draw);
  /** Pointing at a cell of one matrix frames it in all. */
  const hover = (row, column) => grids.forEach((grid) => Object.assign(grid, { row, column }));
  const how = { redraw, colours: tints("weights"), label: "", hover };
  const grids = [0, 1, 2].map(() => new Grid(how));
  const [before, once, mean] = grids.map((grid) => panel("", grid.element));
  const [read, table, errors] = [readout(), h("table"), h("canvas", { role: "img" })];
  errors.setAttribute("aria-label", "error by draws");
  function renew() {
    const [seed, draws] = [model.get("seed"), model.get("draws")];
    const p = model.get("training") ? model.get("p") : 0; // in eval nothing is dropped
    done = experiment(weights, p, seed, draws);
    const range = { low: 0, high: limits(weights).high / (1 - p) }; // one scale for all
    const rule = p ? `: × is dropped, the rest ÷ ${fmt(1 - p, 2)}` : ": nothing is dropped";
    const several = `mean of ${draws} draw${draws > 1 ? "s" : ""}`;
    shown = { weights, [`draw ${draws}`]: done.last, [several]: done.mean };
    Object.entries(shown).forEach(([name, data], i) => {
      grids[i].element.previousSibling.textContent = name + (i === 1 ? rule : "");
      grids[i].canvas.setAttribute("aria-label", name);
      grids[i].set({ data, ...range, rowLabels: tokens, columnLabels: keys });
    });
    const n = keys.length;
    const sum = (data, i) => data.slice(i * n, (i + 1) * n).reduce((s, x) => s + (x || 0), 0);
    const sums = ([name, data]) => [name, ...tokens.map((_, i) => sum(data, i))];
    showTable(table, tokens, Object.entries(shown).map(sums));
    redraw();
  }
  function draw() {
    if (!done) return;
    for (const grid of grids) grid.draw();
    tell(grids[0]);
    drawErrors(errors, done.errors);
  }
  /** What stands in the cell pointed at. */
  function tell({ row: i, column: j }) {
    const number = (data) => exact(data[i * keys.length + j]);
    const parts = Object.entries(shown).flatMap(([name, data]) => [` · ${name} `, number(data)]);
    if (i < 0) read.replaceChildren("Point at a cell, or use the arrow keys.");
    else read.replaceChildren(`“${visible(tokens[i])}” → “${visible(keys[j])}”`, ...parts);
  }

  const chances = { min: 0, max: 0.9, step: 0.01 };
  const p = control(model, "p", "p, the probability of dropping", renew, chances);
  const training = control(model, "training", "training (off: eval)", renew);
  const clamp = (n) => Math.max(1, Math.min(model.get("most"), n));
  const add = (text, n) => button(text, () => put(model, "draws", clamp(model.get("draws") + n)));
  const buttons = [add("draw again", 1), add("10 draws", 10), add("100 draws", 100)];
  const chart = panel("error of the mean", h("div", { className: "lines" }, errors));
  const sides = [h("div", {}, before, once), h("div", {}, mean, chart)];
  const title = "sum of each row";
  const scrolls = { className: "lab-numbers", tabIndex: 0, role: "group", "aria-label": title };
  root.append(row(p, training), row(...buttons, add("start again", -Infinity)), read);
  root.append(h("div", { className: "side" }, ...sides), panel(title, h("div", scrolls, table)));
  model.on("change:draws", renew);
  await arrays(model, (all) => ((weights = [...all.weights.data]), renew()));
  return close;
}
export default { initialize, render };
