// Why this word: machine/why.py in the browser. What takes long is a generator: a run, then a yield.
import { LEFT, meanOf, newest, nothing, parent, range, rowOf, total } from "./engine.js";

export const EVERY = "every word"; // what all words get alike: it changes no probability
const BENT = new Set(["relu", "gelu", "gelu_tanh", "silu", "times"]);
const [LEAST, MOST] = [0.1, 24]; // what must be lost for a step to be told; links tried for one
function dot(x, g) {
  let sum = 0;
  for (let k = 0; k < g.length; k++) sum += x[k] * g[k];
  return sum;
}
const centred = (row) => {
  const middle = meanOf(row);
  return row.map((x) => x - middle);
};
/** Of logits the id of the largest, and its probability. */
function saidBy(logits) {
  const largest = Math.max(...logits);
  return [logits.indexOf(largest), 1 / total(logits, (x) => Math.exp(x - largest))];
}
/** The keys of numbers, those of the largest first. */
const largestFirst = (map) => [...map.keys()].sort((a, b) => map.get(b) - map.get(a));

/** What an operation's row adds along a covector g: its own parts, and the covectors of its inputs. */
function apart(op, values, g, row) {
  const [input] = op.inputs;
  if (op.kind === "add") return [[], op.inputs.map((one) => [one, g, row])];
  if (op.kind === "norm" || op.kind === "rms") return throughNorm(op, values, g, row);
  if (op.kind === "last") return [[], [[input, g, values[input.name].rows - 1]]];
  if (op.kind === "join") {
    const d = g.length / op.inputs.length;
    return [[], op.inputs.map((one, h) => [one, g.subarray(h * d, (h + 1) * d), row])];
  }
  if (op.kind === "linear" && !BENT.has(input.kind)) {
    const W = values[op.weights[0]];
    const below = Float64Array.from(range(W.rows, (k) => dot(rowOf(W, k), g)));
    return [biasOf(values, op.name, g), [[input, below, row]]];
  }
  return [ends(op, values, g, row), []];
}
/** What the way back stops at: a head, a feed-forward with its biases, a word, its place. */
function ends({ kind, name, inputs }, values, g, row) {
  const adds = dot(rowOf(values[name], row), g);
  if (!["mix", "linear", "blend"].includes(kind)) return [[name, adds]];
  const shares = kind === "blend" ? rowOf(values[inputs[0].name], row) : [];
  const experts = [...shares].flatMap((share, e) => biasOf(values, inputs[e + 1].name, g, share));
  const biases = kind === "linear" ? biasOf(values, name, g) : experts;
  return [[parent(name), adds - total(biases, ([, x]) => x)], ...biases];
}
function biasOf(values, name, g, by = 1) {
  const b = values[`${name}/b`];
  return b ? [[`${name}/b`, by * dot(b.data, g)]] : [];
}
/** gain (x − mean x) / s + shift, s as it is, back to (gain g − mean(gain g)) / s. */
function throughNorm({ kind, name, inputs: [input], options }, values, g, row) {
  const [gain, shift] = ["gain", "shift"].map((key) => values[`${name}/${key}`]?.data);
  const all = kind === "norm" ? centred : (some) => some;
  const some = all(rowOf(values[input.name], row));
  const size = Math.sqrt(total(some, (y) => y * y) / some.length + options.eps);
  const below = all(g.map((y, k) => y * (gain?.[k] ?? 1))).map((y) => y / size);
  return [shift ? [[`${name}/shift`, dot(shift, g)]] : [], [[input, below, row]]];
}
/** As much of each text by lot as there is now of these; a longer one goes on with the next. */
function asLong(others, texts) {
  const ids = (n, of) => [
    ...others[n][of],
    ...[...others.slice(n + 1), ...others.slice(0, n)].flatMap((one) => one[of].slice(1)),
  ];
  const cut =
    (n) =>
    ([of, { length }]) => [of, ids(n, of).slice(0, length)];
  return others.map((_, n) => Object.fromEntries(Object.entries(texts).map(cut(n))));
}
/** The share of the lead that is lost, if there is a rival, else of the probability. */
export function lostOf(now, after, hasRival) {
  const key = hasRival ? "lead" : "probability";
  return (now[key] - after[key]) / Math.max(Math.abs(now[key]), 1e-12);
}

export class Why {
  /** `word` and `rival` are ids; `changes` are those made by hand. */
  constructor(engine, texts, word, rival = null, changes = []) {
    Object.assign(this, { engine, texts, word, rival, changes, sweep: new Map() });
    this.logits = engine.operations.find((o) => o.columns === "vocab" && o.kind === "linear").name;
    this.values = engine.run(texts, changes);
    this.now = this.said(this.values);
    this.side = Object.keys(texts).at(-1);
    this.asker = texts[this.side].length - 1;
    const heads = {};
    for (const { name, kind } of engine.operations)
      if (kind === "mix") (heads[parent(parent(name))] ??= []).push(parent(name));
    this.attentions = Object.entries(heads).map(([at, some]) => this.attention(at, some));
    this.outputs = this.partsThatAdd();
  }
  attention(at, heads) {
    const { by } = this.engine;
    const [weights, v] = by[`${heads[0]}/context`].inputs;
    const whole = (op) => (op.kind === "linear" ? op.name : whole(op.inputs[0]));
    const isScore = ({ name, kind }) => kind === "scores" && parent(name) === heads[0];
    const scores = this.engine.operations.filter(isScore);
    const keys = scores.map(({ inputs: [, k] }) => whole(k)); // two where a part of each key turns
    return { at, heads, keys, read: [...keys, whole(v)], asks: weights.rows, reads: v.rows };
  }
  /** Every head and feed-forward, by its path: the operation that gives what it found. */
  partsThatAdd() {
    const found = this.engine.operations.filter(
      ({ kind, inputs, name }) =>
        kind === "mix" ||
        kind === "blend" ||
        (kind === "linear" && BENT.has(inputs[0].kind) && !name.includes("/expert ")),
    );
    return new Map(found.map(({ name }) => [parent(name), name]));
  }
  /** What adds up to the word's logit, or to its lead over its rival: [part, what it adds]. */
  get parts() {
    const logits = newest(this.values[this.logits]);
    const g = new Float64Array(logits.length).fill(this.rival === null ? -1 / logits.length : 0);
    g[this.word] += 1;
    if (this.rival !== null) g[this.rival] -= 1;
    const parts = this.rival === null ? [[EVERY, meanOf(logits)]] : [];
    const waiting = [[this.engine.by[this.logits], g, this.values[this.logits].rows - 1]];
    while (waiting.length) {
      const [op, g, row] = waiting.pop();
      const [own, below] = this.isOff(op) ? this.left(op, g, row) : apart(op, this.values, g, row);
      parts.push(...own);
      waiting.push(...below);
    }
    return parts.filter(([, x]) => x).sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
  }
  isOff = ({ name, kind }) =>
    kind in LEFT && this.changes.some(({ at, off }) => off && at === name);
  left({ kind, inputs }, g, row) {
    const input = inputs[kind === "add" ? 1 : 0];
    return [[], LEFT[kind] === nothing ? [] : [[input, g, row]]];
  }

  // ---------------------------------------------------------------- cuts
  /** The means over the other sentences, one sentence after the other. */
  *averaging() {
    if (this.means) return;
    const runs = [];
    const { others, by_lot } = this.engine.program;
    for (const texts of by_lot ? asLong(others, this.texts) : others)
      yield runs.push(this.engine.compute(texts, this.changes, 1));
    const names = [...this.outputs.values(), ...this.attentions.flatMap((a) => a.read)];
    const middle = (name) => {
      const sum = new Float64Array(this.values[name].columns);
      const rows = total(runs, (run) => run[name].rows) || 1;
      for (const { [name]: matrix } of runs)
        for (let at = 0; at < matrix.data.length; at++) sum[at % sum.length] += matrix.data[at];
      return sum.map((x) => x / rows);
    };
    this.means = Object.fromEntries(names.map((name) => [name, middle(name)]));
  }
  said(values) {
    const logits = newest(values[this.logits]);
    const lead = logits[this.word] - (this.rival === null ? meanOf(logits) : logits[this.rival]);
    const [id, most] = saidBy(logits);
    const probability = most * Math.exp(logits[this.word] - logits[id]);
    return { probability, lead, likeliest: id };
  }
  run = (cut) => this.engine.run(this.texts, [...this.changes, ...cut]);
  without = (cut) => this.said(this.run(cut));
  lost = (after) => lostOf(this.now, after, this.rival !== null);
  /** A row as it is in a run, and as it is on the mean of the other sentences. */
  there = (at, row, values = this.values) => ({ at, row, values: rowOf(values[at], row) });
  lacking = (at, row) => ({ at, row, values: this.means[at] });
  /** All rows of what a part gives. */
  whole(path, make) {
    const at = this.outputs.get(path);
    return range(this.values[at].rows, (row) => make(at, row));
  }
  gone = (path) => this.whole(path, this.lacking);
  forgotten = (a, row) => a.read.map((at) => this.lacking(at, row));
  unread(a, row) {
    const own = a.asks === a.reads ? a.heads.map((head) => `${head}/context`) : [];
    return [...this.forgotten(a, row), ...own.map((at) => this.there(at, row))];
  }
  /** What a cut changes in what one word reads, and nothing else of it. */
  only(a, asker, cut, heads = a.heads) {
    const values = this.run(cut);
    return heads.map((head) => this.there(`${head}/context`, asker, values));
  }
  unlinked = (a, asker, j, heads) => this.only(a, asker, this.forgotten(a, j), heads);
  /** All that the sweep switches off: [path, changes]. */
  *cuts() {
    for (const path of this.outputs.keys()) yield [path, this.gone(path)];
    for (const a of this.attentions)
      for (let j = 0; j < this.texts[a.reads].length; j++)
        if (a.asks !== a.reads || a.reads !== this.side || j !== this.asker)
          yield [`${a.at}/word ${j + 1}`, this.unread(a, j)];
  }
  *sweeping() {
    yield* this.averaging();
    for (const [path, cut] of this.cuts()) {
      this.sweep.set(path, this.without(cut));
      yield;
    }
    return this.sweep;
  }

  // ---------------------------------------------------------------- where contributions mislead
  /** After the sweep: of parts that are not what they add, [kind, proven partners]. */
  *noting() {
    const adds = new Map(this.parts.filter(([at]) => at !== EVERY));
    const lead = Math.abs(total([...adds.values()], (x) => x));
    const found = new Map();
    for (const at of this.outputs.keys()) {
      const [share, lost] = [(adds.get(at) ?? 0) / lead, this.lost(this.sweep.get(at))];
      if (share >= 0.15 && lost < 0.05) found.set(at, ["stand-in", yield* this.partner(at)]);
      else if (Math.abs(share) < 0.05 && lost >= LEAST)
        found.set(at, ["carrier", yield* this.carried(at)]);
    }
    return found;
  }
  *partner(at) {
    const costs = new Map();
    for (const other of this.outputs.keys()) {
      const both = this.without([...this.gone(at), ...this.gone(other)]);
      if (other !== at) costs.set(other, this.lost(both) - this.lost(this.sweep.get(other)));
      yield;
    }
    const [best] = largestFirst(costs);
    return costs.get(best) >= 0.2 ? [best] : [];
  }
  *carried(at) {
    const [paths, alone] = [[...this.outputs.keys()], new Map()];
    const back = (other) => this.whole(other, this.there);
    const mended = (some) => -this.lost(this.without([...this.gone(at), ...some.flatMap(back)]));
    for (const other of paths.slice(paths.indexOf(at) + 1)) {
      alone.set(other, mended([other]));
      yield;
    }
    const best = largestFirst(alone).slice(0, 3);
    const half = this.lost(this.sweep.get(at)) / 2;
    const enough = range(best.length, (n) => n + 1).find((n) => -mended(best.slice(0, n)) <= half);
    return enough ? best.slice(0, enough) : [];
  }

  // ---------------------------------------------------------------- the way back
  /** At most five steps: { kind, at, asker, word, after, heads }; asker and word are [text, place]. */
  *stepping() {
    yield* this.averaging();
    const found = [];
    let [upper, asker, above] = [this.logits, [this.side, this.asker], null];
    while (found.length < 5) {
      const best = yield* this.best(upper, asker);
      if (!best) break;
      found.push(...(yield* this.told(best, asker, above)));
      above = { ...best, asker };
      [upper, asker] = [best.a.keys[0], [best.a.reads, best.j]];
    }
    return found.slice(0, 5);
  }
  *best(upper, asker) {
    let best = null;
    for (const { a, j } of this.links(upper, asker)) {
      const after = this.without(this.unlinked(a, asker[1], j));
      if (!best || this.lost(after) > this.lost(best.after)) best = { a, j, after };
      yield;
    }
    return best && this.lost(best.after) >= LEAST ? best : null;
  }
  /** The words that one could have read below a step: the heaviest, of all heads together. */
  links(upper, [side, asker]) {
    const below = new Set();
    const add = (op) => below.has(op.name) || (below.add(op.name), op.inputs.forEach(add));
    add(this.engine.by[upper]);
    const found = new Map();
    for (const a of this.attentions)
      if (a.asks === side && below.has(`${a.heads[0]}/context`))
        for (let j = 0; j < this.texts[a.reads].length; j++) {
          const weight = (head) => rowOf(this.values[`${head}/weights`], asker)[j];
          const all = total(a.heads, weight);
          if (all > 0 && (a.reads !== side || j !== asker)) found.set({ a, j }, all);
        }
    return largestFirst(found).slice(0, MOST);
  }
  *told({ a, j, after }, asker, above) {
    const [worst, alone] = yield* this.worstHead(a, j, asker[1]);
    const one = this.lost(alone) >= 0.8 * this.lost(after);
    const [at, heads] = one ? [worst, 1] : [a.at, a.heads.length];
    const step = { at, asker, word: [a.reads, j], heads };
    const steps = [{ ...step, kind: above ? "had read" : "read", after: one ? alone : after }];
    if (this.lost(alone) < LEAST)
      steps.push({ ...step, kind: "together", at: worst, after: alone });
    if (!above) return steps;
    const keyed = this.keyed(above, this.unlinked(a, asker[1], j));
    if (this.lost(keyed) >= LEAST)
      steps.push({ ...step, kind: "as key", at: above.a.at, after: keyed, heads: 1 });
    return steps;
  }
  /** The head whose reading of a word alone is missed most, and what is said without that. */
  *worstHead(a, j, asker) {
    const alone = [];
    for (const head of a.heads) {
      alone.push([head, this.without(this.unlinked(a, asker, j, [head]))]);
      yield;
    }
    return alone.reduce((worst, one) => (this.lost(one[1]) > this.lost(worst[1]) ? one : worst));
  }
  /** What is said if a cut changes nothing but the key of a word for the one that read it. */
  keyed({ a, j, asker }, cut) {
    const values = this.run(cut);
    const keys = a.keys.map((at) => this.there(at, j, values));
    return this.without(this.only(a, asker[1], keys));
  }
}

/** The heights of a stream, where the vector of a word can be replaced. */
export const heights = (engine, side) =>
  engine.operations
    .filter((op) => op.rows === side && op.columns === "features" && /^(add|embed)$/.test(op.kind))
    .map(({ name }) => name);
/** What it would say if it ended at each, with the last norm: [name, [id, probability] of each place]. */
export function lens(why) {
  const names = heights(why.engine, why.side);
  return names.map((name) => {
    const rows = range(why.values[name].rows, (row) => why.there(name, row));
    const logits = why.run(rows.map((one) => ({ ...one, at: names.at(-1) })))[why.logits];
    return [name, range(logits.rows, (i) => saidBy(rowOf(logits, i)))];
  });
}

/** Run a generator to its end, a few milliseconds in each frame; null if nobody waits any more. */
export async function inFrames(generator, alive, each = () => {}) {
  for (let start = performance.now(); ; ) {
    const { value, done } = generator.next();
    if (done) return value;
    if (performance.now() - start < 12) continue;
    each();
    await new Promise(requestAnimationFrame);
    if (!alive()) return null;
    start = performance.now();
  }
}
