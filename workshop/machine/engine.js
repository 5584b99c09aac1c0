// The machine's arithmetic: every number of a model, from its list of operations. One short function
// a kind, beside its line of NumPy in formulas.py. A matrix is { data, rows, columns }.
import { shares } from "../widgets/pixels.js";

/** Where the values of a run keep its texts and changes, for sums.js; no operation is named so. */
export const RUN = Symbol("run");
const empty = (rows, columns) => ({ data: new Float64Array(rows * columns), rows, columns });

/** A matrix of `f(row, column, place in the data)`. */
function filled(rows, columns, f) {
  const out = empty(rows, columns);
  for (let i = 0, at = 0; i < rows; i++)
    for (let j = 0; j < columns; j++, at++) out.data[at] = f(i, j, at);
  return out;
}
const each = ({ data, rows, columns }, f) => filled(rows, columns, (i, j, at) => f(data[at], at));
const copied = ({ data, rows, columns }) => ({ data: Float64Array.from(data), rows, columns });
/** −∞ where a key comes after its query, or is neither of the newest of a window nor of the first. */
const hiding = ({ data, rows, columns }, { window = Infinity, keep_first = 0 }) =>
  filled(rows, columns, (i, j, at) => {
    const end = i + columns - rows + 1;
    return j < end && (j >= end - window || j < keep_first) ? data[at] : -Infinity;
  });

/** x W + b: two rows by four columns at once, which is three times as fast; what is left singly. */
function product(x, W, b) {
  const [out, n, m] = [empty(x.rows, W.columns), x.columns, W.columns];
  const [high, wide] = [x.rows - (x.rows % 2), m - (m % 4)];
  for (let j = 0; j < wide; j += 4)
    for (let i = 0; i < high; i += 2) tile(out.data, x.data, W.data, i, j, n, m);
  for (let i = 0; i < x.rows; i++)
    for (let j = i < high ? wide : 0; j < m; j++)
      for (let k = 0; k < n; k++) out.data[i * m + j] += x.data[i * n + k] * W.data[k * m + j];
  if (b) for (let at = 0; at < out.data.length; at++) out.data[at] += b.data[at % m];
  return out;
}

function tile(out, x, W, i, j, n, m) {
  const [upper, lower, to] = [i * n, (i + 1) * n, i * m + j];
  let [a, b, c, d, e, f, g, h] = [0, 0, 0, 0, 0, 0, 0, 0];
  for (let k = 0, at = j; k < n; k++, at += m) {
    const p = x[upper + k],
      q = x[lower + k];
    const r = W[at],
      s = W[at + 1],
      t = W[at + 2],
      u = W[at + 3];
    a += p * r;
    b += p * s;
    c += p * t;
    d += p * u;
    e += q * r;
    f += q * s;
    g += q * t;
    h += q * u;
  }
  out[to] = a;
  out[to + 1] = b;
  out[to + 2] = c;
  out[to + 3] = d;
  out[to + m] = e;
  out[to + m + 1] = f;
  out[to + m + 2] = g;
  out[to + m + 3] = h;
}
const turned = ({ data, rows, columns }) => filled(columns, rows, (i, j) => data[j * columns + i]);

/** A row, in the same memory; the last. */
export const rowOf = ({ data, columns }, i) => data.subarray(i * columns, (i + 1) * columns);
export const newest = (matrix) => rowOf(matrix, matrix.rows - 1);
/** The path of what a part is in. */
export const parent = (path) => path.slice(0, Math.max(0, path.lastIndexOf("/")));
/** `f(row, place to write)` for each row. */
function byRow(x, f) {
  const out = empty(x.rows, x.columns);
  for (let i = 0; i < x.rows; i++) f(rowOf(x, i), rowOf(out, i));
  return out;
}
export const range = (n, f) => Array.from({ length: n }, (_, k) => f(k));
export const total = (row, f) => {
  let sum = 0;
  for (let j = 0; j < row.length; j++) sum += f(row[j]);
  return sum;
};

export const meanOf = (row) => total(row, (x) => x) / row.length;
const deviationOf = (row, mean = meanOf(row), eps = 0) =>
  Math.sqrt(total(row, (x) => (x - mean) ** 2) / row.length + eps);
const ofRows = (x, f) => filled(x.rows, 1, (i) => f(rowOf(x, i)));

function normal(row, out, eps, gain, shift) {
  const mean = meanOf(row);
  const deviation = deviationOf(row, mean, eps);
  for (let j = 0; j < row.length; j++)
    out[j] = ((gain?.data[j] ?? 1) * (row[j] - mean)) / deviation + (shift?.data[j] ?? 0);
}

/** x / √(mean x² + eps) · gain, of each `width` numbers by themselves. */
function rootMeanSquared(row, out, eps, gain, width = row.length) {
  for (let start = 0; start < row.length; start += width) {
    const mean = total(row.subarray(start, start + width), (x) => x * x) / width;
    const size = Math.sqrt(mean + eps);
    for (let j = 0; j < width; j++) out[start + j] = (row[start + j] / size) * (gain?.data[j] ?? 1);
  }
}

/** Pairs of features turned, each by its place times the speed of the pair; all grow by `louder`. */
export const speedOf = (j, d, { base, slower }) =>
  base ** (((j % 2) - j) / d) * (slower?.[j >> 1] ?? 1);
function rotated({ data, rows, columns }, how) {
  const speeds = range(columns, (j) => speedOf(j, columns, how));
  return filled(rows, columns, (i, j, at) => {
    const angle = i * speeds[j];
    const across = data[at + (j % 2 ? -1 : 1)] * Math.sin(angle);
    return (how.louder ?? 1) * (data[at] * Math.cos(angle) + (j % 2 ? across : -across));
  });
}

/** Where the `count` largest numbers of a row stand; of equal ones the first. */
export const largestAt = (row, count) =>
  new Set([...row.keys()].sort((a, b) => row[b] - row[a] || a - b).slice(0, count));
function routed(row, out, count) {
  const kept = largestAt(row, count);
  const chosen = row.map((x, j) => (kept.has(j) ? x : -Infinity));
  shares(chosen, out);
}

/** The error function, by its series: x + 2x³/3 + 4x⁵/15 + …, all of one sign, times e^(−x²). */
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let [sum, term] = [x, x];
  for (let n = 3; Math.abs(term) > 1e-12 * Math.abs(sum); n += 2) sum += term *= (2 * x * x) / n;
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}
const bent = (x) => Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3));
const wave = (place, j, d) => (j % 2 ? Math.cos : Math.sin)(place / 10000 ** ((j - (j % 2)) / d));

/** Of each kind: ids of its tokens, options, inputs, weights → its matrix. */
const KINDS = {
  "one-hot": (ids, { size }) => filled(ids.length, size, (i, j) => (ids[i] === j ? 1 : 0)),
  ids: (ids) => filled(ids.length, 1, (i) => ids[i]),
  given: (ids, _, x) => copied(x),
  embed: (ids, { factor = 1 }, x, { data, columns }) =>
    filled(ids.length, columns, (i, j) => factor * data[ids[i] * columns + j]),
  places: ({ length }, _, { data, rows, columns }) => {
    if (length > rows) throw new Error(`${length} words, but there are places for ${rows}`);
    return filled(length, columns, (i, j, at) => data[at]);
  },
  waves: ({ length }, { d }) => filled(length, d, (i, j) => wave(i, j, d)),
  same: (ids, _, row) => filled(ids.length, row.columns, (i, j) => row.data[j]),
  add: (ids, _, x, y) => each(x, (a, at) => a + y.data[at]),
  linear: (ids, _, x, W, b) => product(x, W, b),
  split: (ids, { start, stop }, { data, rows, columns }) =>
    filled(rows, stop - start, (i, j) => data[i * columns + start + j]),
  scores: (ids, _, q, k) => product(q, turned(k)),
  scale: (ids, { by }, scores) => each(scores, (x) => x / by),
  rotate: (ids, how, x) => rotated(x, how),
  mask: (ids, how, scores) => hiding(scores, how),
  sink: (ids, _, { data, rows, columns }, score) =>
    filled(rows, columns + 1, (i, j) => (j < columns ? data[i * columns + j] : score.data[0])),
  softmax: (ids, { temperature = 1 }, x) => byRow(x, (row, out) => shares(row, out, temperature)),
  shares: (ids, how, x) => KINDS.softmax(ids, how, each(x, Math.log)), // of zeros nothing
  entropy: (ids, _, x) => ofRows(x, (row) => -total(row, (p) => (p > 0 ? p * Math.log(p) : 0))),
  slope: (ids, _, x) => each(x, (p) => p * (1 - p)),
  deviation: (ids, _, x) => ofRows(x, (row) => deviationOf(row)),
  mix: (ids, _, weights, v) => product(KINDS.split(ids, { start: 0, stop: v.rows }, weights), v),
  join: (ids, _, ...heads) => {
    const { rows, columns: d } = heads[0];
    return filled(rows, d * heads.length, (i, j) => heads[(j / d) | 0].data[i * d + (j % d)]);
  },
  norm: (ids, { eps }, x, gain, shift) =>
    byRow(x, (row, out) => normal(row, out, eps, gain, shift)),
  rms: (ids, { eps, width }, x, gain) =>
    byRow(x, (row, out) => rootMeanSquared(row, out, eps, gain, width)),
  relu: (ids, _, x) => each(x, (value) => Math.max(value, 0)),
  gelu: (ids, _, x) => each(x, (value) => (value * (1 + erf(value / Math.SQRT2))) / 2),
  gelu_tanh: (ids, _, x) => each(x, (value) => 0.5 * value * (1 + bent(value))),
  silu: (ids, _, x) => each(x, (value) => value / (1 + Math.exp(-value))),
  times: (ids, _, x, y) => each(x, (a, at) => a * y.data[at]),
  route: (ids, { top_k }, x) => byRow(x, (row, out) => routed(row, out, top_k)),
  blend: (ids, _, shares, ...found) =>
    filled(shares.rows, found[0].columns, (i, j, at) =>
      found.reduce((sum, { data }, e) => sum + shares.data[i * found.length + e] * data[at], 0),
    ),
  last: (ids, _, x) => filled(1, x.columns, (_, j) => x.data[(x.rows - 1) * x.columns + j]),
  mean: (ids, { axis }, x) => (axis ? ofRows(x, meanOf) : turned(ofRows(turned(x), meanOf))),
  unit: (ids, _, x) =>
    byRow(x, (row, out) => out.set(row.map((value) => value / Math.hypot(...row)))),
};
const asItCame = (value, x) => x;
export const nothing = ({ rows, columns }) => empty(rows, columns);
export const forAll = (kinds, left) =>
  Object.fromEntries(kinds.split(" ").map((kind) => [kind, left]));
/** What is left where an operation is switched off: what came in, nothing, or the sub-layer alone. */
export const LEFT = {
  ...forAll("scale mask norm relu gelu gelu_tanh rotate rms silu", asItCame),
  ...forAll("mix places waves linear blend", nothing),
  ...forAll("add times", (value, x, alone) => alone),
};

/** What is fixed about each operation, in the order in which Python lists it. */
const SAID = "name kind inputs weights options title note colour rows columns".split(" ");

/** Whether temperature acts on an operation: on what gives probabilities of the next word. */
export const predicts = ({ options }) => "temperature" in options;
/** An operation's options, as a run has them. */
export const optionsOf = (op, { changes, temperature }) => ({
  ...op.options,
  ...(predicts(op) && { temperature }),
  ...Object.fromEntries(
    changes.filter((one) => one.option && one.at === op.name).map((one) => [one.option, one.value]),
  ),
});

export class Engine {
  constructor(program, learned) {
    Object.assign(this, { program, by: {}, all: {}, plain: null }); // all weights, without changes
    const named = (given) => Object.fromEntries(SAID.map((key, i) => [key, given[i]]));
    this.operations = program.operations.map(named);
    for (const op of this.operations) {
      op.inputs = op.inputs.map((i) => this.operations[i]);
      op.parts = [...op.inputs.map(({ name }) => name), ...op.weights];
      this.by[op.name] = op;
    }
    for (const [name, [start, rows, columns]] of Object.entries(program.weights)) {
      const own = start !== null && learned.subarray(start, start + rows * columns);
      this.all[name] = { data: own ? Float64Array.from(own) : {}, rows, columns };
    }
  }

  /** Fill a row or a column of a weight that stays with the kernel (its start is null). */
  learn({ name, row, column }, numbers) {
    const { data, columns } = this.all[name];
    const [start, step] = row === undefined ? [column, columns] : [row * columns, 1];
    numbers.forEach((x, k) => (data[start + k * step] = x));
  }

  /** Every matrix for the ids of each text; the last of several changes of a number counts.
   *  What no change reaches is the same matrix as without changes, and not computed again. */
  run(texts, changes = [], temperature = 1) {
    const key = JSON.stringify(texts);
    if (this.plain?.key !== key) this.plain = { key, values: this.compute(texts, [], 1) };
    const { values } = this.plain;
    return changes.length || temperature !== 1
      ? this.compute(texts, changes, temperature, values)
      : values;
  }

  compute(texts, changes, temperature, before) {
    const values = { [RUN]: { texts, changes, temperature }, ...this.all };
    const of = (name) => changes.filter(({ at }) => at === name);
    const touched = new Set(changes.map(({ at }) => at));
    for (const name of touched)
      if (name in this.all) values[name] = written(copied(this.all[name]), of(name));
    for (const op of this.operations) {
      const { name, parts } = op;
      if (parts.some((part) => touched.has(part)) || (temperature !== 1 && predicts(op)))
        touched.add(name);
      const kept = before && !touched.has(name);
      values[name] = kept ? before[name] : written(computed(op, values, of(name)), of(name));
    }
    return values;
  }
}

/** An operation's matrix or, where it is switched off, what is left of it. */
function computed(op, values, changes) {
  const { texts } = values[RUN];
  const given = op.parts.map((name) => values[name]);
  const value = KINDS[op.kind](texts[op.rows] ?? [], optionsOf(op, values[RUN]), ...given);
  const off = op.kind in LEFT && changes.some((change) => change.off);
  return off ? copied(LEFT[op.kind](value, ...given)) : value;
}

/** With numbers set by hand, in place; what this sentence has no place for rests. */
function written({ data, rows, columns }, changes) {
  for (const { row, column, value, values } of changes) {
    if (!(row >= 0 && row < rows)) continue;
    if (values?.length === columns) data.set(values, row * columns);
    else if (!values && column >= 0 && column < columns) data[row * columns + column] = value;
  }
  return { data, rows, columns };
}

/** What the features of a step are called, if anything: sines and cosines by the number of their hand. */
export function featuresOf(engine, step, count) {
  const wave = (j) => `${j % 2 ? "cos" : "sin"} ${Math.floor(j / 2)}`;
  if (engine.by[step]?.kind === "waves") return range(count, wave);
  const { names } = engine.program;
  return names?.[step] ?? names?.[step.split("/").at(-1)];
}
