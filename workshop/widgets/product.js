// A matrix product by hand: A left, B above the result, where a row meets a column.
import { arrays, button, exact, frame, h, put, readout, row, visible } from "./shared.js";
import { initialize } from "./keep.js";
import { Grid } from "./grid.js";
import { tints } from "./palette.js";

const HINT = "Point at a cell or use arrow keys; click or Enter keeps it, then steps through it.";
const sum = (pairs) => pairs.reduce((total, [x, y]) => total + x * y, 0);
const named = (label, k) => (label === String(k + 1) ? label : `“${visible(label)}”`);

/** A grid in line with its neighbours; where that leaves no room for figures, apart from them. */
class Part extends Grid {
  layout() {
    const [a, b, c] = this.parts;
    const fit = (cell) => {
      for (const part of this.parts) super.layout.call(Object.assign(part, { cell }));
      return Math.min(a.wide, b.wide, c.wide);
    };
    this.box.className = "product";
    const cell = fit(fit(fit(60))); // smaller cells may turn the labels, which takes room again
    if (cell < 34) return (this.box.classList.add("narrow"), fit(60));
    const [left, top] = [Math.max(b.left, c.left), Math.max(a.top, c.top)];
    for (const part of [b, c]) [part.width, part.left] = [part.width + left - part.left, left];
    for (const part of [a, c]) [part.height, part.top] = [part.height + top - part.top, top];
  }
}

async function render({ model, el }) {
  const [names, things, rows, inner, columns] = ["names", "things", "rows", "inner", "columns"].map(
    (trait) => model.get(trait),
  );
  const [n, m, p] = [rows.length, inner.length, columns.length];
  const { root, redraw, close } = frame(model, el, draw);
  const [read, box, parts] = [readout(), h("div", { style: `--m: ${m}; --p: ${p}` }), []];
  let pairs, looked, timer;
  let count = 0; // products added up in the cell that is kept; 0 is all of them at once
  const make = (k, rowLabels, columnLabels, hover, select) => {
    const label = `${names[k]} (${rowLabels.length}, ${columnLabels.length})`;
    const colours = tints(things[k]);
    const part = new Part({ label, redraw, colours, hover, select, height: 400 });
    const style = `color: var(--${things[k]})`;
    box.append(h("div", {}, h("span", { style }, label), part.element));
    return (parts[k] = Object.assign(part, { box, parts, sides: { rowLabels, columnLabels } }));
  };
  const a = make(
    0,
    rows,
    inner,
    (i, k) => look(i, at()[1], k + 1),
    () => keep(...at()),
  );
  const b = make(
    1,
    inner,
    columns,
    (k, j) => look(at()[0], j, k + 1),
    () => keep(...at()),
  );
  const c = make(
    2,
    rows,
    columns,
    (i, j) => look(i, j, kept(i, j) * count),
    (i, j) => keep(i, j, kept(i, j) * ((count % m) + 1)),
  ); // a kept cell adds up its products one by one
  /** What is shown, [row, column, number of products]: where one points, else what one keeps. */
  function at() {
    return looked ?? [...model.get("selected"), count];
  }
  function look(i, j, terms) {
    looked = i < 0 || j < 0 ? undefined : [i, j, terms];
  }
  function kept(i, j) {
    return String([i, j]) === String(model.get("selected"));
  }
  function keep(i, j, terms) {
    put(model, "selected", [i, j]);
    [looked, count] = [undefined, terms];
    redraw();
  }
  /** One product more, or less; after the last, on to the next cell. */
  function step(by) {
    const [i, j, terms] = at();
    const now = (i * p + j) * m + (by < 0 ? terms || m : terms) - 1; // among all n p m products
    const next = (now + by + n * p * m) % (n * p * m);
    keep(Math.floor(next / m / p), Math.floor(next / m) % p, (next % m) + 1);
  }
  const play = button("play", () => {
    timer = timer ? clearInterval(timer) : setInterval(step, 500, 1);
    play.textContent = timer ? "pause" : "play";
    read.setAttribute("aria-live", timer ? "off" : "polite");
  });
  function draw() {
    if (!pairs) return;
    const [i, j, terms] = at();
    Object.assign(a, { mark: { row: i, column: -1 }, row: i, column: terms - 1 });
    Object.assign(b, { mark: { row: -1, column: j }, row: terms - 1, column: j });
    Object.assign(c, { mark: { row: i, column: j }, row: i, column: j });
    for (const part of parts) part.draw();
    const some = pairs(i, j).slice(0, terms || m);
    const all = (x, { decimals }) => exact(x, 2 * decimals); // four, or none for whole numbers
    const factor = (x, part) => h("span", {}, x < 0 ? "(" : "", all(x, part), x < 0 ? ")" : "");
    const product = ([x, y], k) => [
      k ? " + " : "",
      h(k + 1 === terms ? "strong" : "span", {}, factor(x, a), " × ", factor(y, b)),
    ];
    const where = `${names[2]}, row ${named(rows[i], i)}, column ${named(columns[j], j)}`;
    read.replaceChildren(
      where,
      terms ? `, product ${terms} of ${m}` : "",
      h("br"),
      ...some.flatMap(product),
      " = ",
      h("strong", {}, all(sum(some), c)),
    );
  }
  const buttons = [button("back", () => step(-1)), button("next product", () => step(1)), play];
  root.append(box, row(...buttons, h("span", {}, HINT)), read);
  model.on("change:selected", () => (([looked, count] = [undefined, 0]), redraw()));
  await arrays(model, ({ A, B }) => {
    pairs = (i, j) => inner.map((_, k) => [A.data[i * m + k], B.data[k * p + j]]);
    const C = rows.flatMap((_, i) => columns.map((_, j) => sum(pairs(i, j))));
    const places = ([...data]) => (data.every(Number.isInteger) ? 0 : 2);
    const decimals = [A.data, B.data, [...A.data, ...B.data]].map(places);
    const show = (data, k) => parts[k].set({ data, decimals: decimals[k], ...parts[k].sides });
    [A.data, B.data, C].forEach(show);
    redraw();
  });
  return () => (clearInterval(timer), close());
}
export default { initialize, render };
