// The table of sines and cosines, two of its rows, and their dot product by distance.
import { cividis } from "./cividis.js";
import { control, frame, h, put, row, slider } from "./shared.js";
import { initialize } from "./keep.js";
import { Lines } from "./lines.js";
import { matrices, panel, table } from "./labs.js";
/** PE[pos, 2i] = sin(pos / 10000^(2i/d)), PE[pos, 2i+1] = the cosine of the same angle. */
const wave = (pos, j, d) => (j % 2 ? Math.cos : Math.sin)(pos / 10000 ** ((j - (j % 2)) / d));
const multiply = (p, q) => p.map((x, j) => x * q[j]);
const dot = (p, q) => multiply(p, q).reduce((total, x) => total + x, 0);

function render({ model, el }) {
  let vectors, features;
  const last = model.get("length") - 1;
  const pair = () => model.get("selected");
  const choose = (a, b) => put(model, "selected", [a, b]);
  const { root, redraw, close } = frame(model, el, draw);
  const say = (pos, j) => `position ${pos}, ${features[j]}`;
  const select = (pos) => choose(pair()[1], pos); // the last two clicked
  const grid = matrices(1, { redraw, say, select, height: 560, colours: cividis });
  const axes = { x: "distance", y: "dot product", height: 300 };
  const lines = new Lines({ label: "dot product by distance", ...axes });
  const numbers = table("the two positions");
  const same = table("sum of the products, here and elsewhere");

  const whole = { min: 0, max: last, step: 1, value: 0, decimals: 0 };
  const first = slider("first position", whole, (a) => choose(a, pair()[1]));
  const second = slider("second position", whole, (b) => choose(pair()[0], b));
  const both = slider("move both", whole, (low) => {
    choose(...pair().map((pos) => pos + low - Math.min(...pair())));
  });
  const even = { ...whole, min: 2, max: Math.max(64, model.get("d_model")), step: 2 };
  const width = control(model, "d_model", "d_model", renew, even);
  function renew() {
    const d = model.get("d_model");
    const [positions, columns] = [last + 1, d].map((count) => [...Array(count).keys()]);
    vectors = positions.map((pos) => columns.map((j) => wave(pos, j, d)));
    features = columns.map((j) => `${j % 2 ? "cos" : "sin"} ${Math.floor(j / 2)}`);
    const all = ["position vectors", vectors.flat(), { low: -1, high: 1 }, ": click two rows"];
    grid.set(positions.map(String), features, [all]);
    redraw();
  }
  function draw() {
    const [a, b] = pair();
    const [low, apart] = [Math.min(a, b), Math.abs(a - b)];
    first.set(a);
    second.set(b);
    both.input.max = last - apart;
    both.set(low);
    grid.draw(a, b);
    const two = pair().map((pos) => [`position ${pos}`, ...vectors[pos]]);
    numbers.show(features, [...two, ["product", ...multiply(vectors[a], vectors[b])]]);
    const starts = [low, 0, Math.floor((last - apart) / 2), last - apart];
    const dots = starts.map((pos) => dot(vectors[pos], vectors[pos + apart]));
    same.show(
      starts.map((pos) => `${pos}, ${pos + apart}`),
      [[`${apart} apart`, ...dots]],
    );
    const points = vectors.map((other, k) => [k, dot(vectors[0], other)]);
    lines.draw([{ name: "from any start", points }], [[apart, dots[0]]]);
  }

  grid.panels[0].append(grid.read);
  const right = h("div", {}, same, panel("dot product by distance", lines.element));
  const side = h("div", { className: "side" }, grid.panels[0], right);
  root.append(row(first, second, both, width), numbers, side);
  model.on("change:selected", redraw);
  renew();
  return close;
}
export default { initialize, render };
