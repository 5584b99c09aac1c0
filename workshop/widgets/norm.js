// A residual stream before and after Add & Norm, and one row of it step by step.
import { cividis } from "./cividis.js";
import { limits } from "./colour.js";
import { arrays, control, fmt, frame, h, put, row, visible } from "./shared.js";
import { initialize } from "./keep.js";
import { matrices, table } from "./labs.js";

const TRAITS = ["gamma", "beta", "eps", "add", "norm", "selected"];
const average = (x) => x.reduce((total, value) => total + value, 0) / x.length;
const deviation = (x, mean = average(x)) => Math.sqrt(average(x.map((v) => (v - mean) ** 2)));
/** γ · (x − mean) / √(σ² + ε) + β for a row x: each step and what it gives. */
function layerNorm(x, gamma, beta, eps) {
  const [mean, root] = [average(x), Math.sqrt(deviation(x) ** 2 + eps)];
  const steps = [
    [`− mean ${fmt(mean)}`, (v) => v - mean],
    [`÷ √(σ² + ε) ${fmt(root)}`, (v) => v / root],
    [`× γ ${fmt(gamma, 2)}`, (v) => gamma * v],
    [`+ β ${fmt(beta, 2)}`, (v) => v + beta],
  ];
  return steps.map(([name, step]) => [name, (x = x.map(step))]);
}

async function render({ model, el }) {
  let x, sublayer;
  const [tokens, two] = [model.get("tokens"), "sublayer" in model.get("arrays")];
  const { root, redraw, close } = frame(model, el, draw);
  const say = (i, j) => `“${visible(tokens[i])}”, feature ${j + 1}`;
  const select = (i) => put(model, "selected", i);
  const grid = matrices(two ? 4 : 2, { redraw, say, select, colours: cividis });
  const [steps, each] = [table("one row, step by step"), table("each row")];
  function draw() {
    if (!x) return;
    const [gamma, beta, eps, add, norm, chosen] = TRAITS.map((name) => model.get(name));
    const added = x.map((line, i) => line.map((value, j) => value + sublayer[i][j]));
    const sum = add ? added : sublayer;
    const ways = sum.map((line) => (norm ? layerNorm(line, gamma, beta, eps) : []));
    const out = ways.map((way, i) => way.at(-1)?.[1] ?? sum[i]);
    const features = x[0].map((_, j) => String(j + 1));
    const summed = [add ? "x + sublayer(x)" : "sublayer(x) alone", sum];
    const before = two ? [["x", x], ["sublayer(x)", sublayer], summed] : [["x", x]];
    const range = limits(before.flatMap(([, lines]) => lines.flat())); // one scale for these
    const all = before.map(([name, lines]) => [name, lines.flat(), range]);
    all[0].push(": click a row to follow it");
    grid.set(tokens, features, [...all, [norm ? "after Norm" : "without Norm", out.flat()]]);
    grid.draw(chosen);
    const start = before.map(([name, lines]) => [name, lines[chosen]]);
    steps.show(
      features,
      [...start, ...ways[chosen]].map(([name, line]) => [name, ...line]),
    );
    steps.firstChild.textContent = `“${visible(tokens[chosen])}”, step by step`;
    const columns = ["mean before", "deviation before", "mean after", "deviation after"];
    const measured = (line) => [average(line), deviation(line)];
    each.show(
      columns,
      tokens.map((t, i) => [t, ...measured(sum[i]), ...measured(out[i])]),
    );
  }

  const range = { min: -3, max: 3, step: 0.05 };
  const controls = two ? [control(model, "add", "add x", redraw)] : [];
  controls.push(control(model, "norm", "norm", redraw));
  controls.push(control(model, "gamma", "γ, gain", redraw, range));
  controls.push(control(model, "beta", "β, bias", redraw, range));
  const side = h("div", { className: "side" }, ...grid.panels);
  root.append(row(...controls), grid.read, side, steps, each);
  model.on("change:selected", redraw);
  await arrays(model, (all) => {
    const d = all.x.shape[1];
    const lines = ({ data }) => tokens.map((_, i) => [...data.slice(i * d, (i + 1) * d)]);
    x = lines(all.x);
    sublayer = two ? lines(all.sublayer) : x.map((line) => line.map(() => 0));
    redraw();
  });
  return close;
}
export default { initialize, render };
