// What all widgets share; Python puts this text in place of each widget's import line.
export const FONT = "12px system-ui, sans-serif";
const TOUCHED = new Set(["button", "canvas", "input", "select", "summary"]);

/** An element with properties and children. Strings become text and never HTML. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  // JupyterLab leaves the keys to an element that says so itself; its parents saying so is no use.
  if (TOUCHED.has(tag)) element.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A number with fixed decimals and no negative zero; × where there is none (NaN). */
export function fmt(x, decimals = 4) {
  if (!Number.isFinite(x)) return x < 0 ? "−∞" : x > 0 ? "∞" : "×";
  const text = x.toFixed(decimals);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

/** A shown number that also holds all its digits. */
export const exact = (x, decimals = 4) => h("data", { value: String(x) }, fmt(x, decimals));

/** A token in one line, at most `limit` signs; only how it looks, the token stays as it is. */
export function visible(token, limit = 24) {
  const line = token.replaceAll("\n", "⏎").replaceAll("\t", "⇥");
  const signs = [...line.replace(/[\p{Cc}\p{Bidi_C}]/gu, "·")];
  return signs.length > limit ? signs.slice(0, limit - 1).join("") + "…" : signs.join("");
}

/** Bytes that came from Python, in memory of their own. */
const ownBytes = ({ buffer, byteOffset, byteLength }) =>
  new Uint8Array(buffer, byteOffset, byteLength).slice();
/** The same as float32. */
export const floats = (bytes) => new Float32Array(ownBytes(bytes).buffer);
/** What zlib deflated, as a Response. */
export const inflated = (bytes) =>
  new Response(
    new Blob([ownBytes(bytes)]).stream().pipeThrough(new DecompressionStream("deflate")),
  );
/** Python's `pack` undone: { shape, data, decimals }, as many decimals as are true. */
export async function unpack({ shape, step, bytes }) {
  if (!step) return { shape, data: floats(bytes), decimals: 4 };
  const halves = new Uint8Array(await inflated(bytes).arrayBuffer());
  const data = new Float32Array(halves.length / 2);
  for (let i = 0; i < data.length; i++) {
    const whole = ((halves[i] | (halves[data.length + i] << 8)) << 16) >> 16;
    data[i] = whole === -32768 ? -Infinity : whole * step;
  }
  return { shape, data, decimals: Math.max(0, Math.floor(-Math.log10(step) + 1e-9)) };
}

/** Hand every array to `use(arrays)`: now, when Python changes them, when exact numbers arrive. */
export async function arrays(model, use) {
  const all = {};
  const take = async () => {
    for (const [name, packed] of Object.entries(model.get("arrays"))) {
      all[name] = await unpack(packed);
      if (packed.step) model.send({ exact: name });
    }
    use(all);
  };
  model.on("msg:custom", (message, buffers) => {
    if (!message?.exact || !buffers?.length) return;
    const { buffer, byteOffset = 0, byteLength } = buffers[0];
    const data = new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
    all[message.exact] = { ...all[message.exact], data, decimals: 4 };
    use(all);
  });
  model.on("change:arrays", take);
  await take();
}

/** What every widget stands in: its root, and `redraw`, which draws in the next frame, once. */
export function frame(model, el, draw) {
  const root = h("section", { className: "step" });
  const name = () => root.setAttribute("aria-label", model.get("words"));
  let waiting = 0;
  const now = () => ((waiting = 0), root.isConnected && draw());
  const redraw = () => void (waiting ||= requestAnimationFrame(now));
  // Asking for sizes and colours makes the browser lay out the page, so it is asked only when due.
  const renew = () => redraw((root.dataset.look = performance.now()));
  const later = () => [0, 100, 500].forEach((ms) => setTimeout(renew, ms)); // a theme takes time
  const sizes = new ResizeObserver(renew);
  const themes = new MutationObserver(later);
  sizes.observe(root);
  for (const page of [document.body, document.documentElement])
    themes.observe(page, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
  model.on("change:words", name);
  name();
  el.append(root);
  return { root, redraw, close: () => (sizes.disconnect(), themes.disconnect()) };
}

/** A row of controls, or of whatever belongs together. */
export const row = (...children) => h("div", { className: "row" }, ...children);
/** The line that says in words what is selected; screen readers speak it. */
export const readout = () => h("output", { className: "read", "aria-live": "polite" });
/** A labelled slider; `log` gives each factor the same way. */
export function slider(label, { min, max, step, value, decimals = 2, log }, change) {
  const [to, from] = log ? [Math.log10, (x) => 10 ** x] : [Number, Number];
  const range = { type: "range", min: to(min), max: to(max), step };
  const oninput = () => (show(read()), change(read()));
  const input = h("input", { ...range, "aria-label": label, oninput });
  const shown = h("span", { className: "value" });
  const read = () => Number(from(input.value).toPrecision(6));
  const show = (x) => {
    shown.replaceChildren(exact(x, decimals));
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  const set = (x) => ((input.value = to(x)), show(x)); // x may lie between two steps
  set(value);
  const element = h("label", {}, h("span", {}, label), input, shown);
  return Object.assign(element, { className: "slider", set, input });
}
/** A labelled check box. */
export function toggle(label, checked, change) {
  const input = h("input", { type: "checkbox", checked, onchange: () => change(input.checked) });
  const set = (on) => (input.checked = on);
  return Object.assign(h("label", { className: "toggle" }, input, label), { set, input });
}
/** A button. */
export const button = (label, click) => h("button", { type: "button", onclick: click }, label);
/** Set a trait and tell Python, if it listens, at once: an echo of an older value would win. */
export const put = (model, name, value) => (model.set(name, value), model.save_changes());
/** A slider, or with `range` left out a check box, that holds a trait. */
export function control(model, name, label, changed, range) {
  const [value, set] = [model.get(name), (x) => put(model, name, x)];
  const made = range ? slider(label, { ...range, value }, set) : toggle(label, value, set);
  model.on(`change:${name}`, () => (made.set(model.get(name)), changed()));
  return made;
}

/** A menu that holds a trait: one of `values`, or the number of the option. */
export function menu(model, name, options, changed, values = [...options.keys()]) {
  const items = options.map((text) => h("option", {}, text));
  const onchange = () => put(model, name, values[select.selectedIndex]);
  const select = h("select", { "aria-label": name, onchange }, ...items);
  const set = (value) => (select.selectedIndex = values.indexOf(value));
  set(model.get(name));
  model.on(`change:${name}`, () => (set(model.get(name)), changed()));
  return h("label", {}, h("span", {}, name), select);
}

/** A canvas of so many CSS pixels, sharp on every screen; its context. */
export function sheet(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: width * ratio, height: height * ratio });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}
