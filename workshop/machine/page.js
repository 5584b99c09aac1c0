// The machine: a model, open. What the reader does is kept in traits; the rest is computed from them.
import {
  button,
  floats,
  frame,
  h,
  inflated,
  put,
  row,
  slider,
  unpack,
  visible,
} from "../widgets/shared.js";
import { initialize } from "../widgets/keep.js";
import { Engine, RUN, predicts } from "./engine.js";
import { knobName, knobOf, switches } from "./knobs.js";
import { cellText } from "./formula.js";
import { explain } from "./sums.js";
import { inLetters } from "./letters.js";
import { Board } from "./board.js";
import { parent } from "./cache.js";
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
    const {
      data,
      shape: [rows, columns],
    } = await unpack(one);
    return [name, { data, rows, columns }];
  });
  return Object.fromEntries(await Promise.all(all));
}

async function render({ model, el }) {
  const program = await inflated(model.get("description")).json();
  const { vocab, sides, room, fixed, remote } = program;
  const engine = new Engine(program, floats(model.get("learned")));
  const grows = sides.at(-1); // the text that is written on
  const ids = Object.fromEntries(
    Object.entries(vocab).map(([of, words]) => [of, new Map(words.map((word, id) => [word, id]))]),
  );
  const last = engine.operations.findLast((op) => predicts(op) && op.columns === "vocab");
  const view = {
    engine,
    windows: {},
    lit: [],
    sources: new Set(),
    off: new Set(),
    fixed: (name) => (alive ? (CHOSEN[engine.by[name]?.kind] ?? "") : SAVED),
    tokens: {},
    texts: {},
  };
  let [stale, start] = [true, null];
  let [alive, asked] = [!remote || Boolean(model.widget_manager), 0]; // a page alone has no kernel
  const get = (name) => model.get(name);
  const { root, redraw, close } = frame(model, el, draw);

  // ---------------------------------------------------------------- computing
  /** What is wrong with a text, if anything. */
  function problemOf(side, text) {
    const words = wordsOf(text);
    const unknown = vocab[side] && words.find((word) => !ids[side].has(word));
    const some = vocab[side]
      ?.slice(0, 12)
      .map((word) => visible(word, 12))
      .join(", ");
    if (vocab[side] && words.includes(PAD))
      return `“${PAD}” only fills up the shorter texts of a batch: it is no word.`;
    if (unknown)
      return `“${visible(unknown)}” is not among the words of this model: ${some}${vocab[side].length > 12 ? " …" : ""}`;
    if (!words.length) return "Write at least one word.";
    return words.length > room ? `There is room for ${room} words.` : "";
  }
  function compute() {
    const [changes, temperature] = [get("changes"), get("temperature")];
    if (!remote) {
      for (const side of sides) {
        view.tokens[side] = program.tokens[side] ?? wordsOf(get(side));
        view.texts[side] = view.tokens[side].map((word) => ids[side]?.get(word) ?? 0);
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
    const run = {
      [RUN]: { texts: kept.ids, changes: get("changes"), temperature: get("temperature") },
    };
    view.values = { ...run, ...engine.all, ...values };
    Object.assign(view, {
      before: { ...view.values, ...before },
      tokens: kept.tokens,
      texts: kept.ids,
    });
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
    if (!isHere(path)) return say(alive ? AWAY : SAVED, "", [], []);
    const [name, i, j] = get("cell");
    if (name !== undefined && get("cell") !== view.cell) board.key = numberKey(name, i, j); // the frame goes along
    view.cell = get("cell");
    tell();
    board.set(
      (isHead(engine, path) ? headScene : engine.by[path] || program.step ? stageScene : mapScene)(
        view,
      ),
      wide,
    );
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
    if (none || over) return say(over ? board.item.label : invitation(), "", [], []);
    const place = { name, row: i, column: j };
    const [op, sent] = [engine.by[name], view.kept?.cell.join() === get("cell").join()];
    const away = remote && !sent && !(isHere(name) && !op.weights.length && op.kind !== "split");
    const { words, formula, sources } = away
      ? { words: alive ? AWAY : SAVED, formula: cellText(at(place)), sources: [] }
      : explain(engine, view.values, name, i, j, view.tokens);
    view.lit = [place, ...sources];
    for (const source of sources)
      view.sources.add(numberKey(source.name, source.row, source.column));
    const [value, was] = [at(place), view.before[name].data[i * matrix.columns + j]];
    const once = [
      ...new Map(sources.map((source) => [Object.values(source).join("|"), source])).values(),
    ];
    const parts = once
      .slice(0, 14)
      .map((source) =>
        button(`${placeOf(view, source)}: ${cellText(at(source))}`, () => openNumber(source)),
      );
    if (once.length > 14) parts.push(`and ${once.length - 14} more`);
    if (document.activeElement !== number)
      Object.assign(number, {
        step: step(place),
        value: Number.isFinite(value) ? Number(value.toFixed(4)) : "",
      });
    const before =
      cellText(was) === cellText(value) ? [] : [h("strong", {}, `before: ${cellText(was)}`)];
    say(
      words,
      formula,
      fixed ? [...before, fixed] : before,
      parts.length ? ["made of", ...parts] : [],
    );
    if (formula.includes("=") && engine.by[name])
      letters.replaceChildren(
        ...inLetters(engine.by[name]).map(([text, colour]) =>
          colour
            ? Object.assign(h("strong", {}, text), { style: `color: var(--${colour})` })
            : text,
        ),
      );
  }
  /** Into the panel; its field stays, for somebody may be typing there. */
  function say(words, formula, before, parts) {
    [title.textContent, sum.textContent] = [words, formula];
    letters.replaceChildren();
    title.className = formula ? "" : "quiet";
    was.replaceChildren(...before);
    trailOf.replaceChildren(...parts);
  }
  /** A button that may do nothing without a kernel. */
  const live = (label, click, on = alive) => Object.assign(button(label, click), { disabled: !on });
  const invitation = () =>
    isHead(engine, get("at")) || engine.by[get("at")] || program.step
      ? `Click a number: where does it come from? Drag it up or down, and see what follows.${program.step ? "" : " Click a word: it asks."} A title opens; Escape leads back.`
      : "Click a part to open it, down to its numbers. Escape leads back.";
  function tellAll() {
    crumbs.hidden = program.step && !get("at");
    crumbs.replaceChildren(...trail());
    const path = engine.by[get("at")] ? parent(get("at")) : get("at");
    bar.replaceChildren(
      ...switches(engine, path).map(([label, name]) => {
        const input = h("input", {
          type: "checkbox",
          checked: !view.off.has(name),
          disabled: !alive,
          onchange: () => turnOff(name, !input.checked),
        });
        return h("label", { className: "toggle" }, input, label);
      }),
    );
    const list = get("changes");
    marks.hidden = !list.length;
    for (const { control } of fields) control.disabled = fixed || !alive;
    heat.input.disabled = !alive;
    marks.replaceChildren(
      "changed:",
      ...list.map((one, n) => live(`${nameOf(one)} ✕`, () => putBack((_, k) => k === n))),
      live("put all back", () => putBack(() => true)),
    );
    const words = last ? writing.update(alive) : [];
    why?.offer(words);
    why?.update();
  }
  function nameOf(change) {
    const { at: name, off, values, row: i, column } = change;
    const knob = knobName(program, change, (x) => cellText(x));
    if (knob) return knob;
    const title = name
      .replace(/\/(context|out)$/, "")
      .split("/")
      .slice(-2)
      .join(" ");
    if (off) return `${title} off`;
    if (values)
      return `${engine.by[name].kind === "softmax" ? "weights" : "vector"} of “${visible(namesOf(view, engine.by[name].rows, view.values[name].rows)[i] ?? String(i + 1), 12)}”`;
    return `${placeOf(view, { name, row: i, column })} = ${cellText(change.value)}`;
  }
  function trail() {
    const parts = get("at").split("/").filter(Boolean);
    const steps = parts.map((part, n) => [parts.slice(0, n + 1).join("/"), part]);
    const items = [["", program.step ? "the whole step" : "the whole model"], ...steps].map(
      ([path, part]) => [path, engine.by[path]?.title ?? part],
    );
    return items.flatMap(([path, title], n) => {
      const here = n === items.length - 1;
      return [
        n ? "›" : "",
        here
          ? h("strong", { "aria-current": "true" }, title)
          : live(title, () => open(path), alive || isHere(path)),
      ];
    });
  }

  // ---------------------------------------------------------------- what is done
  const show = (path) => (alive || isHere(path)) && put(model, "at", path);
  /** Open a part; what was said of a number elsewhere is over. */
  function open(path) {
    if (!alive && !isHere(path)) return;
    put(model, "cell", []);
    show(path);
  }
  function choose({ name, row: i, column }) {
    start = null;
    put(model, "cell", [name, i, column]);
  }
  /** Go to a number, where it can be seen with all that it is made of. */
  function openNumber(place) {
    choose(place);
    board.canvas.focus({ preventScroll: true });
    const seen =
      isHead(engine, get("at")) &&
      (place.name.startsWith(get("at")) ||
        board.places.some(({ key }) => key === numberKey(place.name, place.row, place.column)));
    if (engine.by[place.name] && !seen) show(place.name);
  }
  function turnOff(name, off) {
    const rest = get("changes").filter((one) => one.at !== name || !one.off);
    put(model, "changes", off ? [...rest, { at: name, off: true }] : rest);
  }
  /** A step that moves a number by about a twentieth of the largest beside it. */
  const step = ({ name }) => 10 ** Math.round(Math.log10(largestOf(view.before[name])) - 1.3);
  function change(place, value, done) {
    const { name, row: i, column: j } = place;
    if (view.fixed(name) || !Number.isFinite(value) || !Number.isFinite(at(place))) return;
    const { data, columns } = view.values[name];
    const own = [...data.slice(i * columns, (i + 1) * columns)];
    const all = engine.by[name]?.kind === "softmax";
    const one = all
      ? { values: rebalanced(own, j, value) }
      : { column: j, value: Number(value.toFixed(6)) };
    const rest = get("changes").filter(
      (c) => c.at !== name || c.row !== i || (c.values ? !all : c.column !== j),
    );
    model.set("changes", [...rest, { at: name, row: i, ...one }]);
    if (done) model.save_changes();
  }
  /** Python hears of a key's change when the keys rest: each message costs the page some milliseconds. */
  let saving = 0;
  function saveSoon() {
    clearTimeout(saving);
    saving = setTimeout(() => model.save_changes(), 150);
  }
  const putBack = (which) =>
    put(
      model,
      "changes",
      get("changes").filter((one, n) => !which(one, n)),
    );
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
  const board = new Board({
    label: "the machine",
    redraw,
    on: {
      focus: (item) => item.number && choose(item.at),
      open: (item) =>
        item.number
          ? openNumber(item.at)
          : item.turn
            ? turn(item.turn)
            : item.still
              ? null
              : item.ask === undefined
                ? open(item.path)
                : put(model, "asker", item.ask),
      drag,
      nudge: (item, steps) =>
        item.number && (change(item.at, at(item.at) + steps * step(item.at), false), saveSoon()),
      back: (item) =>
        item.number && putBack((one) => one.at === item.at.name && one.row === item.at.row),
      up: () => open(parent(get("at"))),
    },
  });

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
    const input = h("input", {
      type: "text",
      value: get(side),
      spellcheck: false,
      disabled: fixed,
      "aria-label": side === "written" ? "written so far" : "sentence",
      oninput,
    });
    model.on(`change:${side}`, () => document.activeElement === input || (input.value = get(side)));
    const list = visible(vocab[side]?.slice(0, 60).join(" ") ?? "", 400);
    return h(
      "label",
      { className: "sentence", title: list && `words: ${list}` },
      side === "written" ? "writes" : "reads",
      input,
    );
  });
  const note = h("div", { className: "problem", role: "status" });
  const crumbs = h("nav", { className: "row crumbs", "aria-label": "where you are" });
  const [bar, marks] = [row(), h("div", { className: "row marks", hidden: true })];
  const [title, sum, was, trailOf] = [
    h("strong"),
    h("div", { className: "sum" }),
    h("span"),
    row(),
  ];
  const letters = h("div", { className: "letters" });
  const number = h("input", {
    type: "number",
    "aria-label": "set this number",
    oninput: () => {
      const [name, i, column] = get("cell");
      change({ name, row: i, column }, number.valueAsNumber, true);
    },
  });
  const setter = h("label", {}, "set to", number);
  const hand = h(
    "div",
    { className: "hand" },
    h("div", { "aria-live": "polite" }, title, letters, sum),
    row(was, trailOf),
  );
  const range = { min: 0.1, max: 10, step: 0.01, value: get("temperature"), log: true };
  const heat = slider("temperature", range, (t) => put(model, "temperature", t));
  const writing = new Writing({ model, program, engine, view, last });
  const knobs = program.knobs.map((knob) => knobOf(engine, model, knob));
  if (engine.operations.some(predicts)) knobs.push(heat);
  const controls = [...writing.buttons, ...knobs];
  const ways = [
    ...(controls.length ? [row(...controls)] : []),
    ...(writing.writes && !program.step ? [writing.kept] : []),
  ];
  const why = writing.writes ? new WhyPanel({ model, program, engine, view, open, redraw }) : null;
  root.classList.add("machine");
  root.append(
    row(...fields),
    note,
    writing.next,
    ...(why ? [why.asks, why.element] : []),
    ...ways,
    crumbs,
    bar,
    marks,
    board.element,
    hand,
    ...(why ? [why.more] : []),
  );
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
    if (alive) return;
    alive = true;
    receive();
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
