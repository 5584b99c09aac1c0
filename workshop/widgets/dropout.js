// Attention weights under dropout: one draw, the mean of many, and its error.
import { limits } from "./pixels.js";
import { arrays, button, control, fmt, frame, h, put, row, visible } from "./shared.js";
import { initialize } from "./keep.js";
import { Lines } from "./lines.js";
import { matrices, panel, table } from "./labs.js";
import { tints } from "./palette.js";

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

async function render({ model, el }) {
  let weights, done;
  const [tokens, keys] = [model.get("tokens"), model.get("key_tokens")];
  const { root, redraw, close } = frame(model, el, draw);
  const say = (i, j) => `“${visible(tokens[i])}” → “${visible(keys[j])}”`;
  const grid = matrices(3, { redraw, say, colours: tints("weights") });
  const lines = new Lines({ label: "error by draws", x: "draws", y: "root mean square" });
  const sums = table("sum of each row");
  function renew() {
    const [seed, draws] = [model.get("seed"), model.get("draws")];
    const p = model.get("training") ? model.get("p") : 0; // in eval nothing is dropped
    done = experiment(weights, p, seed, draws);
    const range = { low: 0, high: limits(weights).high / (1 - p) }; // one scale for all
    const rule = p ? `: × is dropped, the rest ÷ ${fmt(1 - p, 2)}` : ": nothing is dropped";
    const all = [
      ["weights", weights, range],
      [`draw ${draws}`, done.last, range, rule],
    ];
    all.push([`mean of ${draws} draw${draws > 1 ? "s" : ""}`, done.mean, range]);
    grid.set(tokens, keys, all);
    const n = keys.length;
    const sum = (data, i) => data.slice(i * n, (i + 1) * n).reduce((s, x) => s + (x || 0), 0);
    sums.show(
      tokens,
      all.map(([name, data]) => [name, ...tokens.map((_, i) => sum(data, i))]),
    );
    redraw();
  }
  function draw() {
    if (!done) return;
    grid.draw();
    lines.draw([{ name: "error", points: done.errors }], done.errors.slice(-1));
  }

  const chances = { min: 0, max: 0.9, step: 0.01 };
  const p = control(model, "p", "p, the probability of dropping", renew, chances);
  const training = control(model, "training", "training (off: eval)", renew);
  const clamp = (n) => Math.max(1, Math.min(model.get("most"), n));
  const add = (text, n) => button(text, () => put(model, "draws", clamp(model.get("draws") + n)));
  const buttons = [add("draw again", 1), add("10 draws", 10), add("100 draws", 100)];
  const [before, once, mean] = grid.panels;
  const right = h("div", {}, mean, panel("error of the mean", lines.element));
  const side = h("div", { className: "side" }, h("div", {}, before, once), right);
  root.append(row(p, training), row(...buttons, add("start again", -Infinity)), grid.read);
  root.append(side, sums);
  model.on("change:draws", renew);
  await arrays(model, (all) => ((weights = [...all.weights.data]), renew()));
  return close;
}
export default { initialize, render };
