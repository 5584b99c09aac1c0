// Softmax to touch: drag the logits, and see what becomes of them.
import { softmax } from "./colour.js";
import { button, control, exact, fmt, frame, h, put, row, visible } from "./shared.js";
import { initialize } from "./keep.js";

const RANGES = {
  temperature: { min: 0.1, max: 10, step: 0.01, log: true },
  d_k: { min: 1, max: 1024, step: Math.log10(2), decimals: 0, log: true },
};
const RULE = "scaled logit = logit ÷ √d_k ÷ temperature = logit ÷ ";
const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
/** How undecided the probabilities are, in nats: −Σ p log p. */
const entropy = (p) => -sum(p.map((x) => (x > 0 ? x * Math.log(x) : 0)));
/** How much a probability moves when its own logit, as softmax takes it, is nudged. */
const answer = (p) => p * (1 - p);

/** A line of the table: a logit to drag or to type, its probability as a bar and in numbers. */
function line(label, most, change, redraw) {
  const name = `logit of ${label}`;
  const range = { type: "range", min: -most, max: most, step: 0.1, "aria-label": name };
  const drag = h("input", range);
  const box = h("input", { type: "number", step: "any", "aria-label": `${name}, typed` });
  for (const input of [drag, box]) {
    input.oninput = () => Number.isFinite(input.valueAsNumber) && change(input.valueAsNumber);
  }
  box.onblur = redraw; // no number was typed: back to the one that counts
  const bar = h("span", { className: "bar" });
  const [title, ...cells] = [label || "“”", drag, box, bar, "", ""].map((content, i) =>
    h(i ? "td" : "th", i ? {} : { scope: "row" }, content),
  );
  const show = (x, p) => {
    drag.value = x;
    drag.setAttribute("aria-valuetext", `${fmt(x, 2)}, probability ${fmt(p)}`);
    if (!box.matches(":focus")) box.value = Number(x.toFixed(4));
    bar.style.width = `${100 * p}%`;
    cells[3].replaceChildren(exact(p));
    cells[4].replaceChildren(exact(answer(p)));
  };
  return { element: h("tr", {}, title, ...cells), show };
}

function render({ model, el }) {
  const start = model.get("start");
  const n = start.logits.length;
  const most = 5 * Math.ceil(Math.max(1, ...start.logits.map((x) => Math.abs(x) / 4)));
  const { root, redraw, close } = frame(model, el, draw);
  const set = (i) => (x) => put(model, "logits", model.get("logits").with(i, x));
  const lines = model.get("labels").map((label, i) => line(visible(label), most, set(i), redraw));
  const [rule, read] = [h("div"), h("div", { className: "read" })];
  function draw() {
    const [logits, temperature, d_k] = ["logits", "temperature", "d_k"].map((x) => model.get(x));
    const divisor = Math.sqrt(d_k) * temperature;
    const p = new Array(n);
    softmax(logits, 0, n, p, divisor);
    lines.forEach(({ show }, i) => show(logits[i], p[i]));
    rule.replaceChildren(RULE, exact(divisor));
    read.replaceChildren(
      "entropy ",
      exact(entropy(p)),
      ` nats, at most log ${n} = `,
      exact(Math.log(n)),
      h("br"),
      "gradient, the answer of p to a nudge of its scaled logit: mean of p (1 − p) = ",
      exact(sum(p.map(answer)) / n),
      ", at most ",
      exact((1 - 1 / n) / n),
    );
  }

  const knob = (name) => control(model, name, name, redraw, RANGES[name]);
  const reset = () => Object.entries(start).forEach(([name, value]) => put(model, name, value));
  const heads = ["", "logit", "", "probability p", "", "p (1 − p)"];
  const head = h("tr", {}, ...heads.map((text) => h(text ? "th" : "td", {}, text)));
  const bar = row(knob("temperature"), knob("d_k"), button("reset", reset));
  const rows = h("table", { className: "soft" }, head, ...lines.map((line) => line.element));
  const table = h("div", { className: "soft-box" }, rows);
  root.append(bar, rule, table, read);
  model.on("change:logits", redraw);
  redraw();
  return close;
}
export default { initialize, render };
