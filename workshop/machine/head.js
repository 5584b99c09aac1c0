// One word's way through a head: its query, every key, the scores, the weights, the sum.
import { visible } from "../widgets/shared.js";
import { cellText } from "./formula.js";
import { CELL, TALL, cellsOf, line, namesOf, opener, say, sourceOf, upTo } from "./scenes.js";

const TOP = 52;

/** What a head's picture is made of: its steps, whose words, and how wide all is. */
function plan(view) {
  const { engine, values, at, width } = view;
  const op = (name) => engine.by[`${at}/${name}`];
  const [weights, context] = ["weights", "context"].map(op);
  const [q, k, v] = [...op("scores").inputs, context.inputs[1]]; // as they are compared: maybe turned
  const steps = ["scores", "scaled", "masked", "weights"].map(op).filter(Boolean);
  const p = { q, k, v, weights, context, steps, x: sourceOf(k), asked: sourceOf(q) };
  p.keys = namesOf(view, k.rows, values[k.name].rows);
  p.queries = namesOf(view, q.rows, values[q.name].rows);
  const newest = p.queries.length - 1;
  p.asker = Math.min(view.asker ?? newest, newest);
  p.self = p.x === p.asked;
  p.narrow = width < 700;
  [p.wide, p.size] = p.narrow ? [35, 11] : [CELL, 12];
  p.label = Math.min(
    124,
    Math.max(...[...p.keys, ...p.queries].map((w) => 8 * Math.min(w.length, 15))) + 16,
  );
  const gaps = 3 + steps.length;
  let most = 4;
  const n = (o) => Math.min(values[o.name].columns, most);
  const cells = () => n(p.x) + n(k) + steps.length + 2 * n(v);
  const cut = () => [p.x, k, v].some((o) => values[o.name].columns > n(o));
  const least = p.narrow ? 15 : 24;
  const room = width / (p.narrow ? 0.8 : 1); // see Board.set
  while (most > 2 && p.label + cells() * p.wide + gaps * (cut() ? 34 : least) > room) most--;
  p.gap = Math.max(
    cut() ? 30 : least,
    Math.min(64, (width - p.label - 6 - cells() * p.wide) / gaps),
  );
  p.pitch = p.keys.length > 9 ? 30 : 42;
  p.row = (i) => TOP + i * p.pitch;
  p.bottom = p.row(p.keys.length) + 16;
  return placed(view, p, n);
}
/** Each column of the picture: where it begins, where it ends, how many features it shows. */
function placed(view, p, n) {
  let left = p.label;
  p.column = {};
  const put = (name, o, count, head = {}) => {
    const cut = o && view.values[o.name].columns > count;
    p.column[name] = {
      left,
      count,
      end: left + count * p.wide,
      out: left + count * p.wide + (cut ? 17 : 4),
      cut: cut && name !== "share",
      middle: left + (count * p.wide) / 2,
      ...o,
      ...head,
    };
    left += count * p.wide + p.gap;
  };
  put("x", p.x, n(p.x), {
    title: "x",
    note:
      view.engine.program.names?.x?.join(", ") ?? (p.self ? "word vector" : "of the other text"),
  });
  put("k", p.k, n(p.k));
  for (const o of p.steps) put(o.name, null, 1, view.off.has(o.name) ? { ...o, note: "off" } : o);
  put("v", p.v, n(p.v));
  put("share", p.v, n(p.v), { title: "weight × v", note: "what it adds", name: "" });
  p.width = Math.max(view.width, left - p.gap + 6);
  return p;
}
export function headScene(view) {
  const p = plan(view);
  const items = [
    ...titles(p),
    ...p.keys.flatMap((word, i) => wordRow(view, p, word, i)),
    ...asker(view, p),
  ];
  return { width: p.width, height: p.bottom + TALL + (p.self ? 28 : 58), items };
}
/** What each column is; where it is narrow, in a word. */
const titles = ({ column, gap, wide, narrow }) =>
  Object.values(column).flatMap((c) => {
    const room = c.count * wide + gap - 4;
    const title = narrow ? c.title.split(" = ")[0].replace("weight × v", "× v") : c.title;
    const head = [
      say(c.middle, narrow ? 30 : 12, title, {
        colour: c.colour,
        align: "center",
        bold: true,
        room,
      }),
    ];
    const named = narrow && c.title === "x" && c.note.includes(",");
    if (named)
      head.push(
        say(c.middle, 44, c.note, { colour: "line", align: "center", size: 10, room: room + 8 }),
      );
    if (!narrow)
      head.push(say(c.middle, 30, c.note, { colour: "line", align: "center", size: 11, room }));
    return c.name ? [...head, opener(c.name, c.middle - room / 2, 2, room, 38, c.title)] : head;
  });
/** A word's row: x → key → score → scaled → weight, and beside it value → share. */
function wordRow(view, p, word, i) {
  const { column, wide, size, self, steps } = p;
  const [y, middle, asks] = [p.row(i), p.row(i) + TALL / 2, self && i === p.asker];
  const cells = (name, o, more = {}) =>
    cellsOf(view, o.name, i, upTo(column[name].count), column[name].left, y, {
      wide,
      size,
      ...more,
    });
  const items = [
    say(p.label - 8, middle, visible(word, 16), { align: "right", bold: asks, room: p.label - 10 }),
  ];
  if (self)
    items.push({
      draw: "none",
      key: `ask ${i}`,
      ask: i,
      x: 0,
      y,
      w: p.label - 4,
      h: TALL,
      tip: `let “${visible(word)}” ask`,
      label: `“${visible(word)}”: Enter lets it ask`,
    });
  items.push(...cells("x", p.x), ...cells("k", p.k), ...cells("v", p.v));
  for (const c of [column.x, column.k, column.v])
    if (c.cut) items.push(say(c.end + 3, middle, "…", { colour: "line" }));
  const to = (c) => [c.left - 4, middle];
  items.push(line([column.x.out, middle], to(column.k), "x"));
  let from = column.k.out;
  steps.forEach(({ name }, n) => {
    const c = column[name];
    items.push(
      line([from, middle], to(c), n ? "scores" : "k"),
      ...cellsOf(view, name, p.asker, [i], c.left, y, { wide, size }),
    );
    from = c.out;
  });
  const times = (column[steps.at(-1).name].end + column.v.left) / 2;
  items.push(say(times, middle, "×", { colour: "weights", align: "center" }));
  const [weight, share] = sharesOf(view.off.has(p.context.name), view.values, p, i);
  const [, before] = sharesOf(false, view.before, p, i);
  items.push(
    line([column.v.out, middle], to(column.share), "weights", { width: 0.5 + 7 * weight }),
    ...cells("share", p.v, { shown: share, before }),
    ...told(view, p, word, i, weight),
    line(
      [column.k.end + (column.k.cut ? 16 : 5), p.bottom + 8],
      [column[steps[0].name].left - 3, middle + 5],
      "q",
      { width: 0.8 },
    ),
  );
  return items;
}
/** A word's weight, and of each feature what it hands over: nothing where the head is off. */
function sharesOf(off, values, { v, weights, asker: who, keys }, i) {
  const { data, columns } = values[v.name];
  const weight = off ? 0 : values[weights.name].data[who * keys.length + i] || 0;
  return [weight, (j) => weight * data[i * columns + j]];
}
/** Shares are no step of their own: they say how they come about where one looks at them. */
const told = (view, { v, column: { share }, wide, ...p }, word, i, weight) =>
  upTo(share.count).map((j) => {
    const { data, columns } = view.values[v.name];
    const [own, product] = [data[i * columns + j], weight * data[i * columns + j]];
    return {
      draw: "none",
      key: `share ${i} ${j}`,
      still: true,
      x: share.left + j * wide,
      y: p.row(i),
      w: wide,
      h: TALL,
      label: `share of “${visible(word)}”: weight ${cellText(weight, true)} × value ${cellText(own)} = ${cellText(product, true)}`,
    };
  });
/** Below: the word that asks, its query, and what it becomes. */
function asker(view, p) {
  const { column, wide, size, bottom } = p;
  const [middle, word] = [bottom + TALL / 2, visible(p.queries[p.asker], 16)];
  const cells = (o, c, count = c.count) =>
    cellsOf(view, o.name, p.asker, upTo(count), c.left, bottom, { wide, size });
  const { x, k, share } = column;
  const names = view.engine.program.names?.context
    ? `: ${view.engine.program.names.context.join(", ")}`
    : "";
  const became = p.self
    ? `“${word}” in this sentence${names}`
    : `what “${word}” takes from the other text`;
  const items = [
    ...cells(p.q, k),
    ...cells(p.context, share),
    say(k.left, bottom + TALL + 13, `q: what “${word}” looks for`, { colour: "q" }),
    line(
      [share.middle, p.row(p.keys.length - 1) + TALL + 3],
      [share.middle, bottom - 3],
      "context",
      { width: 1.5 },
    ),
    say(share.middle - 6, bottom - 10, "Σ of the column", { size: 11, align: "right" }),
    say(p.width - 4, bottom + TALL + 13, became, { align: "right" }),
  ];
  if (p.self) {
    const [start, turn] = [p.row(p.asker) + TALL - 5, x.end + Math.min(16, p.gap / 2)];
    const by = [turn + 6, start, turn - 8, middle];
    return [...items, line([x.end + 1, start], [k.left - 4, middle], "q", { width: 1.6, by })];
  }
  const who = say(p.label - 8, middle, word, { align: "right", bold: true, room: p.label - 10 });
  return [
    ...items,
    who,
    ...cells(p.asked, x),
    line([x.out, middle], [k.left - 4, middle], "q", { width: 1.6 }),
    ...others(p),
  ];
}
/** The words of the other text, each of which may ask. */
function others({ queries, asker: now, bottom, width }) {
  const [y, each] = [bottom + TALL + 44, Math.min(90, (width - 40) / queries.length)];
  const words = queries.flatMap((word, i) => [
    say(40 + (i + 0.5) * each, y, visible(word, 12), {
      align: "center",
      bold: i === now,
      room: each - 6,
    }),
    {
      draw: "none",
      key: `ask ${i}`,
      ask: i,
      x: 40 + i * each,
      y: y - 13,
      w: each,
      h: 26,
      tip: `let “${visible(word)}” ask`,
      label: `“${visible(word)}”: Enter lets it ask`,
    },
  ]);
  return [say(4, y, "ask:", { colour: "q", bold: true }), ...words];
}
