// Attention as a heatmap: scores become weights in the browser, one head or all of them.
import { limits, paint, shares } from "./pixels.js";
import { arrays, button, control, exact, frame, h } from "./shared.js";
import { menu, put, readout, row, sheet, visible } from "./shared.js";
import { initialize } from "./keep.js";
import { Grid } from "./grid.js";
import { css, Palette, tinted } from "./palette.js";

const HOW = ["raw", "d_k", "layer", "head", "view", "temperature", "scaled", "causal", "softmax"];
const count = (n) => [...Array(n).keys()];

/** One head as it is shown: divided by √d_k and the temperature, masked, normalised as asked. */
function transform(data, how, rows, columns, out) {
  const factor = 1 / ((how.scaled ? Math.sqrt(how.d_k) : 1) * how.temperature);
  for (let i = 0; i < rows; i++) {
    const [start, end] = [i * columns, (i + 1) * columns];
    for (let k = start; k < end; k++) out[k] = data[k] * factor;
    if (how.causal) out.fill(-Infinity, Math.min(start + i + 1, end), end);
    const row = out.subarray(start, end);
    if (how.softmax) shares(row, row);
  }
  return out;
}
/** Save the grid as it stands on the screen, on the page's background, as a file of the reader's. */
function save({ canvas: { width, height }, canvas, element }) {
  const page = h("canvas", { width, height });
  const context = page.getContext("2d");
  context.fillStyle = getComputedStyle(element.closest(".step")).backgroundColor;
  context.fillRect(0, 0, width, height);
  context.drawImage(canvas, 0, 0);
  page.toBlob((blob) => {
    const href = URL.createObjectURL(blob);
    h("a", { download: "attention.png", href }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
}

async function render({ model, el }) {
  let matrices, tokens, keys, buffer, stale, palette;
  let [look, pinned] = ["", -1];
  const get = () => Object.fromEntries(HOW.map((name) => [name, model.get(name)]));
  const read = readout();
  const pins = h("canvas", { className: "pins", "aria-hidden": "true", hidden: true });
  const small = h("div", { className: "small", role: "group", "aria-label": "heads" });
  const { root, redraw, close } = frame(model, el, draw);
  const changed = () => ((stale = true), redraw());
  const label = "attention: queries down, keys across";
  const colours = (range) => tinted(palette, thing(), range);
  const grid = new Grid({ label, redraw, colours, hover: tell, select });
  const value = (i, j) => grid.data[i * keys.length + j];
  /** The numbers of one head, as shown. */
  function shown(layer, head, how, out) {
    const [n, place] = [tokens.length * keys.length, layer * matrices.shape[1] + head];
    const data = matrices.data.subarray(place * n, (place + 1) * n);
    return how.raw ? transform(data, how, tokens.length, keys.length, out) : data;
  }
  /** The page's colours; if they are no longer the same, every picture is made again. */
  function mix() {
    if (look === root.dataset.look) return;
    look = root.dataset.look;
    const now = new Palette(root);
    if (`${[palette?.paper, palette?.ink]}` === `${[now.paper, now.ink]}`) return;
    [palette, stale] = [now, true];
  }
  function draw() {
    if (!matrices) return;
    mix();
    if (stale) {
      const how = get();
      const data = shown(how.layer, how.head, how, buffer);
      grid.set({ data, ...limits(data) });
      drawSmall(how);
    }
    stale = false;
    grid.mark = pinned;
    grid.draw();
    drawPins();
    if (grid.row >= 0) tell(grid.row, grid.column);
  }
  /** Every head as a button with its picture, on one scale, so that they can be compared. */
  function drawSmall({ view, ...how }) {
    small.hidden = view === "one head";
    if (small.hidden) return;
    const layers = view === "all layers" ? count(matrices.shape[0]) : [how.layer];
    const heads = layers.flatMap((layer) => count(matrices.shape[1]).map((head) => [layer, head]));
    const all = heads.map(([layer, head]) => shown(layer, head, how, buffer.slice()));
    const { pixel } = colours(limits(all.flatMap((data) => Object.values(limits(data)))));
    while (small.childElementCount > heads.length) small.lastChild.remove();
    heads.forEach(([layer, head], i) => {
      const item = small.children[i] ?? small.appendChild(button("", () => {}));
      if (!item.childElementCount) item.replaceChildren(h("canvas"), h("span"));
      const name = visible(model.get("head_names")[head], 16);
      const size = { rows: tokens.length, columns: keys.length };
      paint(item.firstChild, { data: all[i], ...size, pixel }, [128, 128]);
      const which = /^\d+$/.test(name) ? `head ${name}` : name;
      item.lastChild.textContent = view === "all layers" ? `layer ${layer}, ${which}` : which;
      item.setAttribute("aria-pressed", layer === how.layer && head === how.head);
      item.onclick = () => (put(model, "layer", layer), put(model, "head", head));
    });
  }
  /** The pinned row as bars over the sentence, in the columns of the grid. */
  function drawPins() {
    pins.hidden = pinned < 0;
    if (pins.hidden) return;
    const height = 64;
    const context = sheet(pins, grid.width, height);
    context.fillStyle = css(palette[thing()]);
    const { low, high } = limits(keys.map((_, j) => value(pinned, j)));
    keys.forEach((_, j) => {
      const tall = Math.max(0, (value(pinned, j) - low) / (high - low || 1)) * height;
      context.fillRect(grid.left + (j + 0.1) * grid.wide, height - tall, grid.wide * 0.8, tall);
    });
  }
  /** Say in words what stands in a cell; without one, what is pinned. */
  function tell(i, j) {
    if (i < 0) return tellPinned();
    const words = `“${visible(tokens[i], 200)}” → “${visible(keys[j], 200)}”: ${what()} `;
    read.replaceChildren(words, exact(value(i, j), matrices.decimals));
  }
  function tellPinned() {
    if (pinned < 0) return read.replaceChildren("Point at a cell, or use the arrow keys.");
    const order = count(keys.length).sort((a, b) => value(pinned, b) - value(pinned, a));
    const say = (j) => [`${visible(keys[j])} `, exact(value(pinned, j)), "  "];
    const parts = order.slice(0, 5).flatMap(say);
    read.replaceChildren(`“${visible(tokens[pinned])}” is pinned; largest: `, ...parts);
  }
  /** What the numbers are now: weights, or scores on their way. */
  function what() {
    const { raw, softmax: done, scaled, temperature } = get();
    if (!raw || done) return "weight";
    return scaled || temperature !== 1 ? "scaled score" : "score";
  }
  const thing = () => (what() === "weight" ? "weights" : "scores");
  function select(i, j) {
    pinned = pinned === i ? -1 : i;
    const { layer, head } = get();
    const kind = what().split(" ").pop(); // a score also when scaled
    put(model, "selected", { layer, head, query: i, key: j, [kind]: value(i, j) });
    redraw();
  }
  function controls([layers, heads]) {
    const views = ["one head", "all heads", "all layers"].slice(0, 2 + (layers > 1));
    const cool = { min: 0.1, max: 10, step: 0.01, log: true };
    const box = (name, label, range) => control(model, name, label, changed, range);
    const list = [];
    if (layers > 1) list.push(menu(model, "layer", count(layers), changed));
    if (heads > 1) list.push(menu(model, "head", model.get("head_names"), changed));
    if (layers * heads > 1) list.push(menu(model, "view", views, changed, views));
    if (!model.get("raw")) return list;
    list.push(box("scaled", `÷ √d_k (${model.get("d_k")})`));
    list.push(box("temperature", "temperature", cool), box("causal", "causal mask"));
    return [...list, box("softmax", "softmax")];
  }

  const bar = row();
  const png = button("PNG", () => save(grid));
  root.append(bar, read, pins, grid.element, row(grid.scale, png), small);
  await arrays(model, (all) => {
    const same = String(matrices?.shape) === String(all.matrices.shape);
    matrices = all.matrices;
    [tokens, keys] = [model.get("tokens"), model.get("key_tokens")];
    buffer = new Float32Array(tokens.length * keys.length);
    grid.set({ data: buffer, rowLabels: tokens, columnLabels: keys });
    if (!same) bar.replaceChildren(...controls(matrices.shape));
    tellPinned();
    changed();
  });
  return close;
}
export default { initialize, render };
