// The next token: Python says what the model expects, the browser chooses.
import { arrays, button, control, exact, frame, h, put, readout, row, visible } from "./shared.js";
import { initialize } from "./keep.js";
const ASKING = "The model computes …";

/** Softmax with temperature, then top-k, then top-p: ids, likeliest first, and probabilities. */
function choose(logits, temperature, topK, topP) {
  const order = [...logits.keys()].filter((i) => logits[i] > -Infinity);
  order.sort((i, j) => logits[j] - logits[i]); // equal ones stay in the vocabulary's order
  const scale = (x, total = x.reduce((a, b) => a + b, 0)) => x.map((each) => each / total);
  let p = scale(order.map((i) => Math.exp((logits[i] - logits[order[0]]) / temperature)));
  let sum = 0;
  if (topK) p = scale(p.map((x, rank) => (rank < topK ? x : 0)));
  if (topP) p = scale(p.map((x) => ((sum += x) - x < topP ? x : 0)));
  return { order, p };
}

async function render({ model, el }) {
  const get = (name) => model.get(name);
  const [words, prompt, end, most] = ["vocabulary", "prompt", "end", "max_tokens"].map(get);
  const key = () => JSON.stringify(get("tokens")); // the name of the logits that follow
  let [known, random, timer, run, late] = [{}, get("state"), 0, null, false];
  const { root, redraw, close } = frame(model, el, draw);
  const [text, read] = [h("p", { className: "next-text" }), readout()];
  const now = () => choose(known[key()].data, get("temperature"), get("top_k"), get("top_p"));
  const rank =
    (k) =>
    ({ order }) =>
      order[k];
  function sample({ order, p }) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0; // a linear congruential generator
    let left = random / 2 ** 32;
    return order[
      Math.max(
        0,
        p.findIndex((x) => (left -= x) < 0),
      )
    ];
  }
  /** Why no token can be appended now, if so. */
  function obstacle(status = get("status")) {
    if (end && get("tokens").at(-1) === end) return `“${visible(end)}” ends the text.`;
    if (get("tokens").length >= most) return `The limit here is ${most} tokens.`;
    if (known[key()]) return !now().order.length && "Nothing can follow: every probability is 0.";
    return status[key()] ?? (late ? "Run this cell: the model needs Python." : ASKING);
  }
  /** The text has changed, or Python has answered: ask for what is not known, or go on. */
  function turn() {
    clearTimeout(timer);
    redraw((late = false));
    if (obstacle({}) !== ASKING) return (timer = setTimeout(() => append(run), 250));
    timer = setTimeout(() => redraw((late = true)), 1000);
    model.send({ exact: key() });
  }
  function append(pick) {
    if (!pick || obstacle()) return (run = null);
    put(model, "tokens", [...get("tokens"), words[pick(now())]]);
  }
  const once = (pick) => () => append(pick, (run = null));
  const on = (pick) => () => append((run = run ? null : pick)); // pressed again, it stops
  const back = (count) => () => put(model, "tokens", get("tokens").slice(0, count), (run = null));
  function draw() {
    const [stop, focus] = [obstacle(), list.querySelector(":focus")];
    const last = visible([...prompt, ...get("tokens")].at(-1) ?? "");
    const says = stop || `What follows “${last}”? Press a token, or let one be chosen.`;
    const chips = (tag, tokens) => tokens.flatMap((t) => [" ", h(tag, {}, visible(t))]);
    text.replaceChildren("So far:", ...chips("span", prompt), ...chips("ins", get("tokens")));
    if (read.textContent !== says) read.textContent = says; // said aloud only when it is new
    for (const way of ways) way.setAttribute("aria-disabled", Boolean(stop));
    list.hidden = stop && stop !== ASKING;
    if (!stop) show(now());
    if (focus && !focus.offsetParent) undo.focus(); // its button is gone
  }
  function show({ order, p }) {
    items.forEach((item, k) => {
      const to = k < 12 ? k + 1 : order.length;
      const name = k < 12 ? visible(words[order[k]] ?? "") : `${to - k} more`;
      const x = p.slice(k, to).reduce((a, b) => a + b, 0);
      const bar = h("span", { className: "bar", style: `--p: ${x}` });
      const parts = [h("span", {}, name), bar, x ? exact(x) : h("data", { value: 0 }, "cut")];
      item.replaceChildren(...(k < order.length ? parts : []));
    });
  }

  const items = [...Array(13).keys()].map((k) => (k < 12 ? button("", once(rank(k))) : h("div")));
  const list = h("div", { className: "next", role: "group", "aria-label": "candidates" }, ...items);
  const until = end ? `until “${visible(end, 12)}”` : "to the end";
  const ways = [
    ["likeliest", rank(0)],
    ["sample", sample],
  ].flatMap(([name, pick]) => [button(name, once(pick)), button(`${name} ${until}`, on(pick))]);
  const undo = button("undo", back(-1));
  const knob = (name, min, max, step, more) =>
    control(model, name, name.replace("_", "-"), redraw, { min, max, step, ...more });
  root.append(
    text,
    row(...ways, undo, button("restart", back(0))),
    read,
    row(
      knob("temperature", 0.1, 10, 0.01, { log: true }),
      knob("top_k", 1, words.length, 1, { decimals: 0, off: "all" }),
      knob("top_p", 0.01, 1, 0.01, { off: "all" }),
    ),
    list,
  );
  model.on("change:tokens", turn);
  model.on("change:status", redraw);
  await arrays(model, (all) => turn((known = all)));
  return () => close((run = null));
}
export default { initialize, render };
