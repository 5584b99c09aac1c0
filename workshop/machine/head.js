// One word's way through a head: its query, every key, the scores, the weights, the sum.
import { visible } from "../widgets/shared.js";
import { featuresOf, range } from "./engine.js";
import { cellText } from "./formula.js";
import { CELL, TALL, cellsOf, line, namesOf, opener, say, sourceOf, spot } from "./scenes.js";

const TOP = 52;

/** What a head's picture is made of: its steps, whose words, and how wide all is. */
function plan(view) {
  const { engine, values, at, width } = view;
  const op = (name) => engine.by[`${at}/${name}`];
  const [weights, context] = ["weights", "context"].map(op);
  const [q, k, v] = [...op("scores").inputs, context.inputs[1]]; // as they are compared: maybe turned
  const steps = ["scores", "both", "scaled", "masked", "weights"].map(op).filter(Boolean);
  const p = { q, k, v, weights, context, steps, x: sourceOf(k), asked: sourceOf(q) };
  p.sink = op("sink");
  [p.keys, p.queries] = [k, q].map(({ name, rows }) => namesOf(view, rows, values[name].rows));
  const newest = p.queries.length - 1;
  p.asker = Math.min(view.asker ?? newest, newest);
  [p.self, p.narrow] = [p.x === p.asked, width < 700];
  p.look = p.narrow ? { wide: 35, size: 11 } : { wide: CELL, size: 12 };
  const long = [...p.keys, ...p.queries].map((word) => 8 * Math.min(word.length, 15));
  p.label = Math.min(124, Math.max(...long) + 16);
  const [gaps, { wide }] = [3 + steps.length, p.look];
  let most = 4;
  const n = (o) => Math.min(values[o.name].columns, most);
  const cells = () => wide * (n(p.x) + n(k) + steps.length + 2 * n(v));
  const cut = () => [p.x, k, v].some((o) => values[o.name].columns > n(o));
  const least = p.narrow ? 15 : 24;
  const room = width / (p.narrow ? 0.8 : 1); // see Board.set
  while (most > 2 && p.label + cells() + gaps * (cut() ? 34 : least) > room) most--;
  const past = p.narrow ? 0 : Math.max(0, 84 - n(v) * wide) / 2; // the last name, of one feature
  const even = (width - p.label - 6 - past - cells()) / gaps;
  p.gap = Math.max(cut() ? 30 : least, Math.min(64, even));
  const pitch = p.keys.length > 9 ? 30 : 42;
  p.row = (i) => TOP + i * pitch;
  p.bottom = p.row(p.keys.length + (p.sink ? 1 : 0)) + 16;
  p.cells = ({ name }, row, { count, left }, y, more) => {
    const some = range(count, (k) => k);
    return cellsOf(view, name, row, some, left, y, { ...p.look, ...more });
  };
  return placed(view, p, n);
}
/** Each column of the picture: where it begins, where it ends, how many features it shows. */
function placed(view, p, n) {
  let left = p.label;
  p.column = {};
  const put = (name, shown, count, cut = false) => {
    const end = left + count * p.look.wide;
    const place = { left, count, cut, end, out: end + (cut ? 17 : 4), middle: (left + end) / 2 };
    p.column[name] = { ...place, ...shown };
    left = end + p.gap;
  };
  const part = (name, o, shown) => put(name, shown, n(o), view.values[o.name].columns > n(o));
  const plain = p.self ? "word vector" : "of the other text";
  const note = view.engine.program.names?.x?.join(", ") ?? plain;
  part("x", p.x, { ...p.x, title: "x", note });
  part("k", p.k, p.k);
  for (const o of p.steps) put(o.name, view.off.has(o.name) ? { ...o, note: "off" } : o, 1);
  part("v", p.v, p.v);
  put("share", { ...p.v, title: "weight × v", note: "what it adds", name: "" }, n(p.v));
  p.width = Math.max(view.width, left - p.gap + 6);
  return p;
}
export function headScene(view) {
  const p = plan(view);
  const rows = p.keys.flatMap((word, i) => wordRow(view, p, word, i));
  if (p.sink) rows.push(...sinkRow(view, p));
  const items = [...titles(p), ...rows, ...asker(view, p)];
  return { width: p.width, height: p.bottom + TALL + (p.self ? 28 : 58), items };
}
/** What each column is; where it is narrow, in a word. */
const titles = ({ column, gap, look, narrow }) =>
  Object.values(column).flatMap((c) => {
    const room = c.count * look.wide + gap - 4;
    const title = narrow ? c.title.split(" = ")[0].replace("weight × v", "× v") : c.title;
    const bold = { colour: c.colour, align: "center", bold: true, room };
    const quiet = { colour: "line", align: "center", size: 11, room };
    const head = [say(c.middle, narrow ? 30 : 12, title, bold)];
    if (!narrow) head.push(say(c.middle, 30, c.note, quiet));
    else if (c.title === "x" && c.note.includes(","))
      head.push(say(c.middle, 44, c.note, { ...quiet, size: 10, room: room + 8 }));
    return c.name ? [...head, opener(c.name, c.middle - room / 2, 2, room, 38, c.title)] : head;
  });
function asks(word, i, x, y, w, tall) {
  const [label, tip] = [`“${visible(word)}”: Enter lets it ask`, `let “${visible(word)}” ask`];
  return spot(`ask ${i}`, x, y, w, tall, label, { ask: i, tip });
}
/** A word's row: x → key → score → scaled → weight, and beside it value → share. */
function wordRow(view, p, word, i) {
  const { x, k, v, share } = p.column;
  const [y, middle, steps] = [p.row(i), p.row(i) + TALL / 2, p.steps.map((o) => p.column[o.name])];
  const [from, to] = [(c) => [c.out, middle], (c) => [c.left - 4, middle]];
  const how = { align: "right", bold: p.self && i === p.asker, room: p.label - 10 };
  const items = [say(p.label - 8, middle, visible(word, 16), how)];
  if (p.self) items.push(asks(word, i, 0, y, p.label - 4, TALL));
  items.push(...p.cells(p.x, i, x, y), ...p.cells(p.k, i, k, y), ...p.cells(p.v, i, v, y));
  for (const c of [x, k, v]) if (c.cut) items.push(say(c.end + 3, middle, "…", { colour: "line" }));
  items.push(line(from(x), to(k), "x"));
  steps.forEach((c, n) => {
    items.push(line(from(steps[n - 1] ?? k), to(c), n ? "scores" : "k"));
    items.push(...cellsOf(view, c.name, p.asker, [i], c.left, y, p.look));
  });
  const times = (steps.at(-1).end + v.left) / 2;
  const [weight, shown] = sharesOf(view.off.has(p.context.name), view.values, p, i);
  const [, before] = sharesOf(false, view.before, p, i);
  const query = [k.end + (k.cut ? 16 : 5), p.bottom + 8];
  return [
    ...items,
    say(times, middle, "×", { colour: "weights", align: "center" }),
    line(from(v), to(share), "weights", { width: 0.5 + 7 * weight }),
    ...p.cells(p.v, i, share, y, { shown, before }),
    ...told(view, p, word, i, weight),
    line(query, [steps[0].left - 3, middle + 5], "q", { width: 0.8 }),
  ];
}
/** Below the words what takes weight and gives nothing. */
function sinkRow(view, { keys, label, row, sink, steps, column, asker, look }) {
  const [i, y] = [keys.length, row(keys.length)];
  const [score, weight] = steps.slice(-2).map(({ name }) => column[name]);
  const cell = ({ left }, name) => cellsOf(view, name, asker, [i], left, y, look);
  const middle = y + TALL / 2;
  return [
    say(label - 8, middle, "sink", { align: "right", colour: "weights" }),
    opener(sink.name, 0, y, label - 4, TALL, sink.title),
    ...cell(score, sink.name),
    line([score.out, middle], [weight.left - 4, middle], "scores"),
    ...cell(weight, weight.name),
    say(weight.end + 8, middle, "gives nothing", { size: 11 }),
  ];
}
/** A word's weight, and of each feature what it hands over: nothing where the head is off. */
function sharesOf(off, values, { v, weights, asker: who }, i) {
  const { data, columns } = values[v.name];
  const { data: all, columns: wide } = values[weights.name];
  const weight = off ? 0 : all[who * wide + i] || 0;
  return [weight, (j) => weight * data[i * columns + j]];
}
/** Shares are no step of their own: they say how they come about where one looks at them. */
const told = (view, { v, column: { share }, look, row }, word, i, weight) =>
  range(share.count, (j) => {
    const { data, columns } = view.values[v.name];
    const [own, product] = [data[i * columns + j], weight * data[i * columns + j]];
    const sum = `weight ${cellText(weight, true)} × value ${cellText(own)} = ${cellText(product, true)}`;
    const [x, label] = [share.left + j * look.wide, `share of “${visible(word)}”: ${sum}`];
    return spot(`share ${i} ${j}`, x, row(i), look.wide, TALL, label, { still: true });
  });
/** Below: the word that asks, its query, and what it becomes. */
function asker(view, p) {
  const { bottom, column } = p;
  const { x, k, share } = column;
  const [middle, word] = [bottom + TALL / 2, visible(p.queries[p.asker], 16)];
  const names = featuresOf(view.engine, p.context.name);
  const becomes = `“${word}” in this sentence${names ? `: ${names.join(", ")}` : ""}`;
  const became = p.self ? becomes : `what “${word}” takes from the other text`;
  const [above, to] = [p.row(p.keys.length - 1) + TALL + 3, [k.left - 4, middle]];
  const items = [
    ...p.cells(p.q, p.asker, k, bottom),
    ...p.cells(p.context, p.asker, share, bottom),
    say(k.left, bottom + TALL + 13, `q: what “${word}” looks for`, { colour: "q" }),
    line([share.middle, above], [share.middle, bottom - 3], "context", { width: 1.5 }),
    say(share.middle - 6, bottom - 10, "Σ of the column", { size: 11, align: "right" }),
    say(p.width - 4, bottom + TALL + 13, became, { align: "right" }),
  ];
  if (p.self) {
    const [start, turn] = [p.row(p.asker) + TALL - 5, x.end + Math.min(16, p.gap / 2)];
    const by = [turn + 6, start, turn - 8, middle];
    return [...items, line([x.end + 1, start], to, "q", { width: 1.6, by })];
  }
  return [
    ...items,
    say(p.label - 8, middle, word, { align: "right", bold: true, room: p.label - 10 }),
    ...p.cells(p.asked, p.asker, x, bottom),
    line([x.out, middle], to, "q", { width: 1.6 }),
    ...others(p),
  ];
}
/** The words of the other text, each of which may ask. */
function others({ queries, asker: now, bottom, width }) {
  const [y, each] = [bottom + TALL + 44, Math.min(90, (width - 40) / queries.length)];
  const words = queries.flatMap((word, i) => {
    const how = { align: "center", bold: i === now, room: each - 6 };
    const shown = say(40 + (i + 0.5) * each, y, visible(word, 12), how);
    return [shown, asks(word, i, 40 + i * each, y - 13, each, 26)];
  });
  return [say(4, y, "ask:", { colour: "q", bold: true }), ...words];
}
