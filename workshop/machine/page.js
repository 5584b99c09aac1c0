// The machine: a model, open. What the reader does is kept in traits; the rest is computed from them.
import { button, floats, frame, h, inflated, put, row } from "../widgets/shared.js";
import { slider, toggle, unpack, visible } from "../widgets/shared.js";
import { initialize } from "../widgets/keep.js";
import { Engine, RUN, parent, predicts, rowOf } from "./engine.js";
import { knobName, knobOf, switches } from "./knobs.js";
import { cellText } from "./formula.js";
import { explain } from "./sums.js";
import { inLetters } from "./letters.js";
import { Board } from "./board.js";
import { isHead, largestOf, mapScene, namesOf, numberKey, placeOf, stageScene } from "./scenes.js";
import { headScene } from "./head.js";
import { WhyPanel } from "./why_page.js";
import { PAD, Writing, wordsOf } from "./writing.js";

const AWAY =
  "This is computed by Python. If nothing appears, run the cell that shows this machine.";
const SAVED = "Saved state: run the cell to change it.";
const PATIENCE = 3000; // ms for the kernel to answer
/** Numbers that nobody sets by hand, and why. */
const CHOSEN = {
  "one-hot": "A one-hot row is chosen by its word: type another word.",
  ids: "This number stands for a word: type another word.",
};
/** The weights of a row when one is set by hand: the others share what is left as before. */
function rebalanced(own, j, value) {
  const [share, others] = [Math.max(0, Math.min(1, value)), 1 - own[j]];
  const even = (1 - share) / (own.length - 1 || 1);
  return own.map((w, k) => (k === j ? share : others > 1e-12 ? (w * (1 - share)) / others : even));
}

async function matrices(packed) {
  const all = Object.entries(packed).map(async ([name, one]) => {
    const { data, shape } = await unpack(one);
    return [name, { data, rows: shape[0], columns: shape[1] }];
  });
  return Object.fromEntries(await Promise.all(all));
}

async function render({ model, el }) {
  const program = await inflated(model.get("description")).json();
  const { vocab, sides, room, fixed, remote } = program;
  const engine = new Engine(program, floats(model.get("learned")));
  const grows = sides.at(-1); // the text that is written on
  const last = engine.operations.findLast((op) => predicts(op) && op.columns === "vocab");
  const view = { engine, windows: {}, lit: [], sources: new Set(), off: new Set() };
  const chosen = (name) => CHOSEN[engine.by[name]?.kind] ?? "";
  Object.assign(view, { tokens: {}, texts: {}, fixed: (name) => (alive ? chosen(name) : SAVED) });
  let [stale, start] = [true, null];
  let [alive, asked] = [!remote || Boolean(model.widget_manager), 0]; // a page alone has no kernel
  const get = (name) => model.get(name);
  const { root, redraw, close } = frame(model, el, draw);

  // ---------------------------------------------------------------- computing
  function problemOf(side, text) {
    const [words, known] = [wordsOf(text), vocab[side]];
    const unknown = known && words.find((word) => !known.includes(word));
    if (known && words.includes(PAD))
      return `“${PAD}” only fills up the shorter texts of a batch: it is no word.`;
    if (unknown) {
      const some = known.slice(0, 12).map((word) => visible(word, 12));
      const more = known.length > 12 ? " …" : "";
      return `“${visible(unknown)}” is not among the words of this model: ${some.join(", ")}${more}`;
    }
    if (!words.length) return "Write at least one word.";
    return words.length > room ? `There is room for ${room} words.` : "";
  }
  function compute() {
    const [changes, temperature] = [get("changes"), get("temperature")];
    if (!remote) {
      for (const side of sides) {
        view.tokens[side] = program.tokens[side] ?? wordsOf(get(side));
        view.texts[side] = view.tokens[side].map((word) => vocab[side]?.indexOf(word) ?? 0);
      }
      view.before = engine.run(view.texts);
      view.values = engine.run(view.texts, changes, temperature);
    }
    view.off = new Set(changes.filter((change) => change.off).map((change) => change.at));
    view.largest = {};
  }
  /** Where the kernel computes: take what it sends. */
  async function receive() {
    const kept = get("kept");
    note.textContent = kept.problem ?? "";
    if (kept.problem || !kept.values) return;
    const [values, before] = [await matrices(kept.values), await matrices(kept.before)];
    for (const part of kept.weights) engine.learn(part, floats(part.bytes));
    const [changes, temperature] = [get("changes"), get("temperature")];
    view.values = { [RUN]: { texts: kept.ids, changes, temperature }, ...engine.all, ...values };
    view.before = { ...view.values, ...before };
    Object.assign(view, { tokens: kept.tokens, texts: kept.ids });
    view.kept = kept;
    changed();
  }
  /** Whether a part can be shown without asking: what the kernel sent, or a step with all it is made of. */
  function isHere(path) {
    const op = engine.by[path];
    const all = op && [op, ...op.inputs].every(({ name }) => view.values?.[name]);
    return !remote || path === view.kept?.at || Boolean(all);
  }
  const at = ({ name, row: i, column: j }) =>
    view.values[name].data[i * view.values[name].columns + j];
  function draw() {
    const wide = board.room; // read before anything is written: laying out the page takes time
    if (!wide) return;
    if (stale) compute();
    const path = get("at");
    Object.assign(view, { at: path, asker: get("asker"), width: wide });
    if (stale && view.values) tellAll();
    stale = false;
    if (!alive) note.textContent = SAVED;
    if (!isHere(path)) return say(alive ? AWAY : SAVED);
    const [name, i, j] = get("cell");
    if (name !== undefined && get("cell") !== view.cell) board.key = numberKey(name, i, j); // the frame goes along
    view.cell = get("cell");
    tell();
    const step = engine.by[path] || program.step;
    const scene = isHead(engine, path) ? headScene : step ? stageScene : mapScene;
    board.set(scene(view), wide);
    board.draw();
  }

  // ---------------------------------------------------------------- what is said
  /** The number that is chosen: what it is, its computation, what it is made of. */
  function tell() {
    const [name, i, j] = get("cell");
    const matrix = view.values[name];
    [view.sources, view.lit] = [new Set(), []];
    const none = !matrix || i >= matrix.rows || j >= matrix.columns;
    const over = board.item && !board.item.number;
    const fixed = none ? "" : view.fixed(name);
    if (none || over || fixed) setter.remove();
    else if (!setter.isConnected) trailOf.before(setter);
    if (none || over) return say(over ? board.item.label : invitation());
    const place = { name, row: i, column: j };
    const { words, formula, sources } = explained(place);
    view.lit = [place, ...sources];
    view.sources = new Set(sources.map((one) => numberKey(one.name, one.row, one.column)));
    const [value, was] = [at(place), view.before[name].data[i * matrix.columns + j]];
    const shown = Number.isFinite(value) ? Number(value.toFixed(4)) : "";
    if (document.activeElement !== number)
      Object.assign(number, { step: step(place), value: shown });
    const moved = cellText(was) !== cellText(value);
    const before = moved ? [h("strong", {}, `before: ${cellText(was)}`)] : [];
    say(words, formula, fixed ? [...before, fixed] : before, partsOf(sources));
    if (formula.includes("=") && engine.by[name])
      letters.replaceChildren(...inLetters(engine.by[name]));
  }
  /** A number's computation, where all that it is made of is here. */
  function explained(place) {
    const { name, row, column } = place;
    const [op, sent] = [engine.by[name], view.kept?.cell.join() === get("cell").join()];
    if (remote && !sent && !(isHere(name) && !op.weights.length && op.kind !== "split"))
      return { words: alive ? AWAY : SAVED, formula: cellText(at(place)), sources: [] };
    return explain(engine, view.values, name, row, column, view.tokens);
  }
  /** What a number is made of, each once, as buttons that lead there. */
  function partsOf(sources) {
    const once = [...new Map(sources.map((one) => [Object.values(one).join("|"), one])).values()];
    const text = (one) => `${placeOf(view, one)}: ${cellText(at(one))}`;
    const parts = once.slice(0, 14).map((one) => button(text(one), () => openNumber(one)));
    if (once.length > 14) parts.push(`and ${once.length - 14} more`);
    return parts.length ? ["made of", ...parts] : [];
  }
  /** Into the panel; its field stays, for somebody may be typing there. */
  function say(words, formula = "", before = [], parts = []) {
    [title.textContent, sum.textContent] = [words, formula];
    letters.replaceChildren();
    title.className = formula ? "" : "quiet";
    was.replaceChildren(...before);
    trailOf.replaceChildren(...parts);
  }
  /** A button that may do nothing without a kernel. */
  const live = (label, click, on = alive) => Object.assign(button(label, click), { disabled: !on });
  function invitation() {
    const map = !isHead(engine, get("at")) && !engine.by[get("at")] && !program.step;
    if (map) return "Click a part to open it, down to its numbers. Escape leads back.";
    const word = program.step ? "" : " Click a word: it asks.";
    return `Click a number: where does it come from? Drag it up or down, and see what follows.${word} A title opens; Escape leads back.`;
  }
  function tellAll() {
    crumbs.hidden = program.step && !get("at");
    crumbs.replaceChildren(...trail());
    const path = engine.by[get("at")] ? parent(get("at")) : get("at");
    const made = switches(engine, path).map(([label, name]) =>
      toggle(label, !view.off.has(name), (on) => turnOff(name, !on)),
    );
    for (const { input } of made) input.disabled = !alive;
    bar.replaceChildren(...made);
    const list = get("changes");
    marks.hidden = !list.length;
    for (const { control } of fields) control.disabled = fixed || !alive;
    heat.input.disabled = !alive;
    const undo = (one, n) => live(`${nameOf(one)} ✕`, () => putBack((_, k) => k !== n));
    const all = live("put all back", () => putBack(() => false));
    marks.replaceChildren("changed:", ...list.map(undo), all);
    const words = last ? writing.update(alive) : [];
    why?.offer(words);
    why?.update();
  }
  function nameOf(change) {
    const { at: name, off, values, row: i, column } = change;
    const knob = knobName(program, change, (x) => cellText(x));
    if (knob) return knob;
    const path = name.replace(/\/(context|out)$/, "").split("/");
    if (off) return `${path.slice(-2).join(" ")} off`;
    if (values) {
      const { rows, kind } = engine.by[name];
      const word = namesOf(view, rows, view.values[name].rows)[i] ?? String(i + 1);
      return `${kind === "softmax" ? "weights" : "vector"} of “${visible(word, 12)}”`;
    }
    return `${placeOf(view, { name, row: i, column })} = ${cellText(change.value)}`;
  }
  function trail() {
    const parts = get("at").split("/").filter(Boolean);
    const steps = parts.map((part, n) => [parts.slice(0, n + 1).join("/"), part]);
    const items = [["", program.step ? "the whole step" : "the whole model"], ...steps];
    const crumb = ([path, part], n) => {
      const title = engine.by[path]?.title ?? part;
      if (n === items.length - 1) return h("strong", { "aria-current": "true" }, title);
      return live(title, () => open(path), alive || isHere(path));
    };
    return items.flatMap((item, n) => [n ? "›" : "", crumb(item, n)]);
  }

  // ---------------------------------------------------------------- what is done
  const show = (path) => (alive || isHere(path)) && put(model, "at", path);
  /** Open a part; what was said of a number elsewhere is over. */
  const open = (path) => (alive || isHere(path)) && (put(model, "cell", []), show(path));
  function choose({ name, row: i, column }) {
    start = null;
    put(model, "cell", [name, i, column]);
  }
  /** Go to a number, where it can be seen with all that it is made of. */
  function openNumber(place) {
    choose(place);
    board.canvas.focus({ preventScroll: true });
    const key = numberKey(place.name, place.row, place.column);
    const near = place.name.startsWith(get("at")) || board.places.some((one) => one.key === key);
    const seen = isHead(engine, get("at")) && near;
    if (engine.by[place.name] && !seen) show(place.name);
  }
  function turnOff(name, off) {
    const rest = get("changes").filter((one) => one.at !== name || !one.off);
    put(model, "changes", off ? [...rest, { at: name, off }] : rest);
  }
  /** A step that moves a number by about a twentieth of the largest beside it. */
  const step = ({ name }) => 10 ** Math.round(Math.log10(largestOf(view.before[name])) - 1.3);
  function change(place, value, done) {
    const { name, row: i, column: j } = place;
    if (view.fixed(name) || !Number.isFinite(value) || !Number.isFinite(at(place))) return;
    const own = [...rowOf(view.values[name], i)];
    const all = engine.by[name]?.kind === "softmax";
    const alone = { column: j, value: Number(value.toFixed(6)) };
    const one = all ? { values: rebalanced(own, j, value) } : alone;
    const isOther = (c) => c.at !== name || c.row !== i || (c.values ? !all : c.column !== j);
    const rest = get("changes").filter(isOther);
    model.set("changes", [...rest, { at: name, row: i, ...one }]);
    if (done) model.save_changes();
  }
  /** Python hears of a key's change when the keys rest: each message costs the page some milliseconds. */
  let saving = 0;
  function saveSoon() {
    clearTimeout(saving);
    saving = setTimeout(() => model.save_changes(), 150);
  }
  const putBack = (keeps) => put(model, "changes", get("changes").filter(keeps));
  function drag(item, pixels, done) {
    start ??= at(item.at);
    change(item.at, start + Math.round(pixels / 4) * step(item.at), done);
    if (done) start = null;
  }
  function turn({ key, start, by }) {
    view.windows[key] = start + by;
    put(model, "cell", []);
    redraw();
  }
  function enter(item) {
    if (item.number) openNumber(item.at);
    else if (item.turn) turn(item.turn);
    else if (item.ask !== undefined) put(model, "asker", item.ask);
    else if (!item.still) open(item.path);
  }
  function nudge(item, steps) {
    if (!item.number) return;
    change(item.at, at(item.at) + steps * step(item.at), false);
    saveSoon();
  }
  const back = ({ number, at: place }) =>
    number && putBack((one) => one.at !== place.name || one.row !== place.row);
  const focus = (item) => item.number && choose(item.at);
  const on = { focus, open: enter, drag, nudge, back, up: () => open(parent(get("at"))) };
  const board = new Board({ label: "the machine", redraw, on });

  // ---------------------------------------------------------------- the page
  const shownSides = program.step && fixed ? [] : sides; // a step's words stand at its numbers
  const fields = shownSides.map((side) => {
    const oninput = () => {
      const problem = problemOf(side, input.value);
      clearTimeout(view.late);
      if (problem)
        view.late = setTimeout(() => (note.textContent = problem), 600); // a word grows letter by letter
      else {
        note.textContent = "";
        if (side !== grows && program.start) put(model, grows, program.start); // another text, another answer
        put(model, side, input.value);
      }
    };
    const label = side === "written" ? "written so far" : "sentence";
    const text = { type: "text", value: get(side), spellcheck: false, disabled: fixed, oninput };
    const input = h("input", { ...text, "aria-label": label });
    model.on(`change:${side}`, () => document.activeElement === input || (input.value = get(side)));
    const list = visible(vocab[side]?.slice(0, 60).join(" ") ?? "", 400);
    const how = { className: "sentence", title: list && `words: ${list}` };
    return h("label", how, side === "written" ? "writes" : "reads", input);
  });
  const note = h("div", { className: "problem", role: "status" });
  const crumbs = h("nav", { className: "row crumbs", "aria-label": "where you are" });
  const [bar, marks] = [row(), h("div", { className: "row marks", hidden: true })];
  const [title, was, trailOf] = [h("strong"), h("span"), row()];
  const [letters, sum] = ["letters", "sum"].map((className) => h("div", { className }));
  const oninput = () => {
    const [name, i, column] = get("cell");
    change({ name, row: i, column }, number.valueAsNumber, true);
  };
  const number = h("input", { type: "number", "aria-label": "set this number", oninput });
  const setter = h("label", {}, "set to", number);
  const said = h("div", { "aria-live": "polite" }, title, letters, sum);
  const hand = h("div", { className: "hand" }, said, row(was, trailOf));
  const range = { min: 0.1, max: 10, step: 0.01, value: get("temperature"), log: true };
  const heat = slider("temperature", range, (t) => put(model, "temperature", t));
  const writing = new Writing({ model, program, engine, view, last });
  const knobs = program.knobs.map((knob) => knobOf(engine, model, knob));
  if (engine.operations.some(predicts)) knobs.push(heat);
  const controls = [...writing.buttons, ...knobs];
  const ways = controls.length ? [row(...controls)] : [];
  if (writing.writes && !program.step) ways.push(writing.kept);
  const why = writing.writes ? new WhyPanel({ model, program, engine, view, open, redraw }) : null;
  root.classList.add("machine");
  root.append(row(...fields), note, writing.next, ...(why ? [why.asks, why.element] : []), ...ways);
  root.append(crumbs, bar, marks, board.element, hand, ...(why ? [why.more] : []));
  const changed = () => ((stale = true), remote && ask(), redraw());
  /** Ask for the kernel: without an answer this is a saved state, and what it would compute freezes. */
  function ask() {
    model.send({ alive: true });
    asked ||= setTimeout(() => redraw((alive = false), (stale = true)), PATIENCE);
  }
  function answered(said) {
    if (!said?.alive) return;
    clearTimeout(asked);
    asked = 0;
    if (!alive) receive((alive = true));
  }
  for (const name of [...sides, "changes", "temperature", "at", "asked"])
    model.on(`change:${name}`, changed);
  for (const name of ["asker", "cell"]) model.on(`change:${name}`, redraw);
  if (remote) {
    model.on("change:kept", receive);
    model.on("msg:custom", answered);
  }
  await (remote ? receive() : changed());
  return () => (writing.stop(), close());
}
export default { initialize, render };
